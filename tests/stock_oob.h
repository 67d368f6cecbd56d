/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Open MPI 4.1.4 unloads its component oob/tcp in MPI_Finalize while its progress thread may still call it: about one
 * job in 500 on a loaded machine ends in a segmentation fault behind all its work. A test that runs hundreds of jobs
 * keeps that component mapped; ours are unloaded as ever. DESIGN.txt section 13.
 */
#ifndef STOCK_OOB_H
#define STOCK_OOB_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Call behind MPI_Init. Without BFO_OMPI_COMPONENTDIR (tests/env.sh) nothing is kept. */
static inline void keep_stock_oob(void)
{
    const char *dir = getenv("BFO_OMPI_COMPONENTDIR");
    char path[4096];

    if (NULL != dir && sizeof(path) > (size_t) snprintf(path, sizeof(path), "%s/mca_oob_tcp.so", dir)) {
        (void) dlopen(path, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

#endif /* STOCK_OOB_H */
