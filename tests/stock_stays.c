/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Open MPI 4.1.4 unloads its components in MPI_Finalize while its progress threads may still run in them (oob/tcp was
 * seen): about one job in 500 on a loaded machine ends in a segmentation fault behind all its work. Preloaded into the
 * jobs of the tests (lib.sh), this keeps the installed components mapped; ours are unloaded as ever. test_pml_unloading.sh
 * goes without it.
 *
 * Likewise PMIx_Finalize frees its event base while Open MPI's progress thread may still answer an event of it
 * (mca_pmix_ext3x; stock ob1 over vader damages its heap alike): event bases are kept as well.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) int dlclose(void *handle)
{
    static int (*unload)(void *);
    const char *stock = getenv("BFO_OMPI_COMPONENTDIR");
    struct link_map *map = NULL;

    if (NULL != stock && 0 == dlinfo(handle, RTLD_DI_LINKMAP, &map) && 0 == strncmp(map->l_name, stock, strlen(stock))) {
        return 0;
    }
    if (NULL == unload) {
        *(void **) &unload = dlsym(RTLD_NEXT, "dlclose");
    }
    return unload(handle);
}

struct event_base;
__attribute__((visibility("default"))) void event_base_free(struct event_base *base)
{
    (void) base;
}
