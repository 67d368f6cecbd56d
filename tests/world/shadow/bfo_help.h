/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Stands in for include/bfo_help.h in an image: a text is a line of the trace that names its topic.
 */
#ifndef BFO_HELP_H
#define BFO_HELP_H

#include <limits.h>

#include "world_calls.h"

#include "opal_config.h"
#include "opal/util/proc.h"

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
    world_says("%s", text);
}
static inline void bfo_help_say(const char *file, const char *topic, ...)
{
    world_says("%s", topic);
}
static inline void bfo_help_say_once(const char *key, const char *file, const char *topic, ...)
{
    world_says("%s", topic);
}
static inline void bfo_help_line(const char *file, const char *topic, ...)
{
    world_says("%s", topic);
}

#endif /* BFO_HELP_H */
