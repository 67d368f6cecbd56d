/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Open MPI 4.1.4 unloads its components in MPI_Finalize while its progress threads may still run in them (for example in
 * oob/tcp): on a loaded machine about one job in 500 ends in a segmentation fault after all its work. Preloaded into the
 * jobs of the tests (lib.sh), this library keeps the installed components mapped; our components are unloaded as usual.
 * test_pml_unloading.sh runs without it.
 *
 * PMIx_Finalize also frees its event base while Open MPI's progress thread may still handle an event of that base
 * (mca_pmix_ext3x; stock ob1 over vader damages its heap in the same way). Therefore no event base is freed.
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
