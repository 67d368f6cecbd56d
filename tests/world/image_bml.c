/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Stands in for what lies between the PML and the BTL: memory pools, registrations, and the layer that knows which module reaches which
 * process. See image_ompi.h.
 */
#include "image_checks.h"
#include "image_ompi.h"

#include "ompi/mca/bml/base/base.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/mpool/mpool.h"
#include "opal/mca/rcache/base/base.h"

extern mca_btl_base_component_3_0_0_t mca_btl_openib_component;

mca_bml_base_module_t image_bml;
opal_list_t image_btl_modules;
mca_btl_active_message_callback_t image_triggers[MCA_BTL_TAG_MAX];

static mca_btl_base_module_t **modules;
static int n_modules;

int image_bml_progress(void)
{
    return NULL != modules ? mca_btl_openib_component.btl_progress() : 0;
}

/* ---- memory ------------------------------------------------------------------------------------------------------- */

typedef struct {
    mca_rcache_base_module_t super;
    mca_rcache_base_resources_t resources;
} cache_t;

/* Keeps nothing, so that memory is out of the adapter's reach as soon as its owner says so. */
static int cache_register(mca_rcache_base_module_t *rcache, void *base, size_t size, uint32_t flags, int32_t access,
                          mca_rcache_base_registration_t **reg)
{
    const cache_t *cache = (cache_t *) rcache;
    mca_rcache_base_registration_t *made = calloc(1, cache->resources.sizeof_reg);
    int rc;

    made->rcache = rcache;
    made->base = base;
    made->bound = (unsigned char *) base + size - 1;
    made->access_flags = access;
    made->ref_count = 1;
    rc = cache->resources.register_mem(cache->resources.reg_data, base, size, made);
    *reg = OPAL_SUCCESS == rc ? made : NULL;
    if (NULL == *reg) {
        free(made);
    }
    return rc;
}

static int cache_deregister(mca_rcache_base_module_t *rcache, mca_rcache_base_registration_t *reg)
{
    const cache_t *cache = (cache_t *) rcache;
    const int rc = cache->resources.deregister_mem(cache->resources.reg_data, reg);

    free(reg);
    return rc;
}

mca_rcache_base_module_t *image_rcache_create(const char *name, void *data, mca_rcache_base_resources_t *resources)
{
    cache_t *cache = calloc(1, sizeof(*cache));

    cache->super.rcache_register = cache_register;
    cache->super.rcache_deregister = cache_deregister;
    cache->resources = *resources;
    return &cache->super;
}

int image_rcache_destroy(mca_rcache_base_module_t *rcache)
{
    free(rcache);
    return OPAL_SUCCESS;
}

static void *pool_alloc(mca_mpool_base_module_t *pool, size_t size, size_t align, uint32_t flags)
{
    void *memory;

    if (world_call_fails(CALL_list, 0)) {
        return NULL;
    }
    return 0 == posix_memalign(&memory, align < 64 ? 64 : align, size) ? memory : NULL;
}

static void pool_free(mca_mpool_base_module_t *pool, void *memory)
{
    free(memory);
}

mca_mpool_base_module_t *image_mpool(const char *hints)
{
    static mca_mpool_base_module_t pool = {.mpool_alloc = pool_alloc, .mpool_free = pool_free};

    return &pool;
}

/* ---- the layer between PML and BTL: as bml/r2 ---------------------------------------------------------------------------- */

static int bml_add_proc(ompi_proc_t *proc)
{
    mca_bml_base_endpoint_t *endpoint;
    opal_bitmap_t reachable;

    if (NULL != proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] || &proc->super == image_proc_local_get()) {
        return OMPI_SUCCESS;
    }
    endpoint = OBJ_NEW(mca_bml_base_endpoint_t);
    endpoint->btl_proc = proc;
    mca_bml_base_btl_array_reserve(&endpoint->btl_send, (size_t) n_modules);
    OBJ_CONSTRUCT(&reachable, opal_bitmap_t);
    opal_bitmap_init(&reachable, 1);
    for (int m = 0; m < n_modules; ++m) {
        struct mca_btl_base_endpoint_t *way = NULL;
        opal_proc_t *one = &proc->super;

        opal_bitmap_clear_all_bits(&reachable);
        if (OPAL_SUCCESS == modules[m]->btl_add_procs(modules[m], 1, &one, &way, &reachable) && opal_bitmap_is_set_bit(&reachable, 0)) {
            mca_bml_base_btl_t *bml = mca_bml_base_btl_array_insert(&endpoint->btl_send);

            bml->btl = modules[m];
            bml->btl_endpoint = way;
        }
    }
    OBJ_DESTRUCT(&reachable);
    proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] = endpoint;
    return OMPI_SUCCESS;
}

static int bml_add_procs(size_t n, ompi_proc_t **list, opal_bitmap_t *reachable)
{
    for (size_t i = 0; i < n; ++i) {
        (void) bml_add_proc(list[i]);
    }
    return OMPI_SUCCESS;
}

static int bml_del_procs(size_t n, ompi_proc_t **list)
{
    for (size_t i = 0; i < n; ++i) {
        mca_bml_base_endpoint_t *endpoint = list[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
        opal_proc_t *one = &list[i]->super;

        for (size_t b = 0; NULL != endpoint && b < mca_bml_base_btl_array_get_size(&endpoint->btl_send); ++b) {
            mca_bml_base_btl_t *bml = mca_bml_base_btl_array_get_index(&endpoint->btl_send, b);

            (void) bml->btl->btl_del_procs(bml->btl, 1, &one, &bml->btl_endpoint);
        }
        if (NULL != endpoint) {
            list[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] = NULL;
            OBJ_RELEASE(endpoint);
        }
    }
    return OMPI_SUCCESS;
}

static int bml_register(mca_btl_base_tag_t tag, mca_btl_base_module_recv_cb_fn_t callback, void *data)
{
    image_triggers[tag].cbfunc = image_check_arrivals(tag, callback);
    image_triggers[tag].cbdata = data;
    return OMPI_SUCCESS;
}

static int bml_register_error(mca_btl_base_module_error_cb_fn_t callback)
{
    for (int m = 0; m < n_modules; ++m) {
        (void) modules[m]->btl_register_error(modules[m], callback);
    }
    return OMPI_SUCCESS;
}

static int bml_finalize(void)
{
    for (int m = 0; m < n_modules; ++m) {
        (void) modules[m]->btl_finalize(modules[m]);
    }
    free(modules);
    modules = NULL;
    n_modules = 0;
    return mca_btl_openib_component.btl_version.mca_close_component();
}

int image_bml_init(bool progress_threads, bool mpi_threads)
{
    const mca_base_component_t *component = &mca_btl_openib_component.btl_version;

    OBJ_CONSTRUCT(&image_btl_modules, opal_list_t);
    must_be(OPAL_SUCCESS == component->mca_register_component_params(), "register parameters of the BTL");
    must_be(OPAL_SUCCESS == component->mca_open_component(), "open the BTL");
    modules = mca_btl_openib_component.btl_init(&n_modules, false, mpi_threads);
    if (0 >= n_modules) {
        world_has_no_rail();
    }
    for (int m = 0; m < n_modules; ++m) {
        mca_btl_base_selected_module_t *selected = calloc(1, sizeof(*selected));

        image_check_posts(modules[m]);
        OBJ_CONSTRUCT(&selected->super, opal_list_item_t);
        selected->btl_component = &mca_btl_openib_component;
        selected->btl_module = modules[m];
        opal_list_append(&image_btl_modules, &selected->super);
    }
    image_bml = (mca_bml_base_module_t){.bml_add_proc = bml_add_proc,
                                        .bml_add_procs = bml_add_procs,
                                        .bml_del_procs = bml_del_procs,
                                        .bml_register = bml_register,
                                        .bml_register_error = bml_register_error,
                                        .bml_finalize = bml_finalize};
    return OMPI_SUCCESS;
}

int image_framework(mca_base_framework_t *framework, mca_base_open_flag_t flags)
{
    return OPAL_SUCCESS;
}

int image_framework_ends(mca_base_framework_t *framework)
{
    return OPAL_SUCCESS;
}

int image_pml_is_selected(const char *pml, ompi_proc_t **list, size_t n)
{
    return OMPI_SUCCESS;
}
