/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The end of the process, for libFuzzer, when a forced order of events goes wrong.
 */
#ifndef FUZZ_MUST_H
#define FUZZ_MUST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define must(what, text) must_be((what), __FILE__, __LINE__, (text))
static inline void must_be(bool what, const char *file, int line, const char *text)
{
    if (!what) {
        fprintf(stderr, "%s:%d: %s\n", file, line, text);
        abort();
    }
}

#endif /* FUZZ_MUST_H */
