/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Assertions: conditions that must hold whatever peers, devices or the user send, do or refuse. Only a build configured with
 * --enable-assertions tests a condition; if it is broken, the build names it and aborts the process. In any other build the condition
 * is parsed and never evaluated. Therefore a condition has no side effect, and an assertion never replaces a test of input from a peer,
 * a device or the user. DESIGN.txt section 18.
 */
#ifndef BFO_ASSERT_H
#define BFO_ASSERT_H

#include "bfo_config.h"

#if BFO_ASSERTIONS

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* One write, so that the lines of several processes do not mix. */
static __attribute__((noinline, cold, noreturn, unused)) void bfo_assert_failed(const char *condition, const char *file, int line,
                                                                                const char *function)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    (void) dprintf(STDERR_FILENO, "bfo: assertion failed at %s:%d, %s(): %s (process %d, rank %s)\n", file, line, function, condition, (int) getpid(),
                   NULL != rank ? rank : "-");
    abort();
}

#define BFO_ASSERT(condition) (__builtin_expect(!(condition), 0) ? bfo_assert_failed(#condition, __FILE__, __LINE__, __func__) : (void) 0)

#else

#define BFO_ASSERT(condition) ((void) sizeof(!(condition)))

#endif

#endif /* BFO_ASSERT_H */
