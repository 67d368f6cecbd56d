/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Where a component's help texts are: in the folder help/ beside the component itself, wherever that was installed or
 * moved to. (In a build tree help/ is a link to the sources.)
 */
#ifndef BFO_HELP_H
#define BFO_HELP_H

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "opal_config.h"
#include "opal/util/show_help.h"

/* Make opal_show_help() find the texts of the component that `symbol` belongs to. Without effect if the component's
 * file cannot be found. */
static inline void bfo_help_add_dir_of(const void *symbol)
{
    char dir[PATH_MAX];
    Dl_info info;

    if (0 == dladdr(symbol, &info) || NULL == info.dli_fname || NULL == strrchr(info.dli_fname, '/')) {
        return;
    }
    int length = (int) (strrchr(info.dli_fname, '/') - info.dli_fname);
    if ((int) sizeof(dir) > snprintf(dir, sizeof(dir), "%.*s/help", length, info.dli_fname)) {
        opal_show_help_add_dir(dir);
    }
}

#endif /* BFO_HELP_H */
