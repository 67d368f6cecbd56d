/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Stands in for include/bfo_help.h in the fuzzed build, where texts about millions of lost peers would help nobody, and in simulated
 * jobs, which define BFO_HELP_HEARD(text) and hear the topic of each text.
 */
#ifndef BFO_HELP_H
#define BFO_HELP_H

#include <limits.h>

#include "opal_config.h"
#include "opal/util/proc.h"

#ifndef BFO_HELP_HEARD
#define BFO_HELP_HEARD(text) ((void) (text))
#endif

static inline bool bfo_help_node_file(const char *kind, char *path, size_t size)
{
    return false;
}
#define BFO_HELP_WHEN 32
static inline const char *bfo_help_when(char room[BFO_HELP_WHEN])
{
    return "now";
}
static inline uint64_t bfo_help_mark(const char *text, bool digits)
{
    return 0;
}
static inline bool bfo_help_is_first_on_node(uint64_t mark)
{
    return true;
}
static inline bool bfo_help_is_first_rank(void)
{
    return true;
}
static inline void bfo_help_write(const char *text)
{
    BFO_HELP_HEARD(text);
}
static inline void bfo_help_say(const char *file, const char *topic, ...)
{
    BFO_HELP_HEARD(topic);
}
static inline void bfo_help_say_once(const char *key, const char *file, const char *topic, ...)
{
    BFO_HELP_HEARD(topic);
}
static inline void bfo_help_line(const char *file, const char *topic, ...)
{
    BFO_HELP_HEARD(topic);
}

#endif /* BFO_HELP_H */
