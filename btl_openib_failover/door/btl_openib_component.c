/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The component: Open MPI looks it up, opens it, and asks it for parameters and modules. Its version is that of the
 * project, so that ompi_info shows a difference to the stock component of the same name. See DESIGN.txt 15.
 */
#include "fault/btl_openib_deadline.h"
#include "types/btl_openib_log.h"
#include "door/btl_openib_module.h"
#include "door/btl_openib_params.h"
#include "door/btl_openib_pvars.h"
#include "threads/btl_openib_poll.h"
#include "door/btl_openib_port.h"
#include "formats/btl_openib_queues.h"
#include "threads/btl_openib_service.h"
#include "threads/btl_openib_sleep.h"
#include "formats/btl_openib_wire.h"

#include "bfo_assert.h"
#include "bfo_help.h"

#include "opal/memoryhooks/memory.h"
#include "opal/runtime/opal_params.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define MODEX_KEY "bfo.btl.openib"

static mca_btl_base_module_t defaults;

static int component_register(void)
{
    if (!bfo_ompi_is_the_one_built_for()) {
        if (bfo_help_is_first_rank()) {
            bfo_help_line(OFO_HELP_FILE, "other release", BFO_OMPI_BUILT_FOR, bfo_ompi_running());
        }
        return OPAL_ERR_NOT_AVAILABLE;
    }
    defaults = (mca_btl_base_module_t){
        .btl_eager_limit = 12 * 1024,
        .btl_rndv_eager_limit = 12 * 1024,
        .btl_max_send_size = 64 * 1024,
        .btl_rdma_pipeline_send_length = 1024 * 1024,
        .btl_rdma_pipeline_frag_size = 1024 * 1024,
        .btl_min_rdma_pipeline_size = 256 * 1024,
        .btl_exclusivity = MCA_BTL_EXCLUSIVITY_DEFAULT,
        .btl_latency = 4,
        .btl_bandwidth = 0, /* that of the port */
        .btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_PUT | MCA_BTL_FLAGS_GET | MCA_BTL_FLAGS_RDMA_FLUSH,
        .btl_put_limit = SIZE_MAX, /* operations longer than a port's message go in parts */
        .btl_get_limit = SIZE_MAX,
    };
    ofo_module_set_functions(&defaults); /* the base removes flags whose function is missing */
    ofo_pvars_register(&mca_btl_openib_component.super.btl_version);
    return ofo_params_register(&mca_btl_openib_component.super.btl_version, &defaults);
}

static int component_open(void)
{
    if (0 != ofo_paths_init(&OFO.paths)) {
        return OPAL_ERROR;
    }
    pthread_mutex_init(&OFO.peers_lock, NULL);
    OBJ_CONSTRUCT(&OFO.peers, opal_hash_table_t);
    opal_hash_table_init(&OFO.peers, 64);
    return OPAL_SUCCESS;
}

static int component_close(void)
{
    OBJ_DESTRUCT(&OFO.peers);
    pthread_mutex_destroy(&OFO.peers_lock);
    ofo_paths_fini(&OFO.paths);
    return OPAL_SUCCESS;
}

/* A first fragment, header included, must fit into the largest receive buffer. The fragment size of the RDMA pipeline must not exceed
 * the put limit, because ob1 cuts its writes by the fragment size alone. */
static void clamp_sizes(void)
{
    size_t most = OFO.queues.queue[OFO.queues.count - 1].size - sizeof(ofo_data_hdr_t);

    if (defaults.btl_max_send_size > most) {
        defaults.btl_max_send_size = most;
    }
    if (defaults.btl_eager_limit > most) {
        defaults.btl_eager_limit = most;
    }
    if (defaults.btl_rndv_eager_limit > most) {
        defaults.btl_rndv_eager_limit = most;
    }
    if (defaults.btl_rdma_pipeline_frag_size > defaults.btl_put_limit) {
        defaults.btl_rdma_pipeline_frag_size = defaults.btl_put_limit;
    }
}

static const char *fork_support(void)
{
    switch (ibv_is_fork_initialized()) {
    case IBV_FORK_ENABLED:
        return "prepared for";
    case IBV_FORK_UNNEEDED:
        return "safe anyway";
    default:
        return "not prepared for";
    }
}

/* Nothing to do if the kernel copies registered pages at a fork: ibv_fork_init() would still take them away from the child. */
static int prepare_fork(void)
{
    if (0 != OFO.params.want_fork_support && IBV_FORK_UNNEEDED != ibv_is_fork_initialized() && 0 != ibv_fork_init()
        && 2 == OFO.params.want_fork_support) {
        bfo_help_say(OFO_HELP_FILE, "no fork support");
        return OPAL_ERR_NOT_AVAILABLE;
    }
    ofo_log(1, "fork() is %s", fork_support());
    return OPAL_SUCCESS;
}

/* Registrations may be kept after the call that made them if Open MPI notices freed memory. */
static void choose_leave_pinned(void)
{
    const int needed = OPAL_MEMORY_FREE_SUPPORT | OPAL_MEMORY_MUNMAP_SUPPORT;

    if (-1 == opal_leave_pinned && !opal_leave_pinned_pipeline && needed == (needed & opal_mem_hooks_support_level())) {
        opal_leave_pinned = 1;
    }
}

static int publish_record(void)
{
    uint8_t *bytes = malloc(OFO_RECORD_MAX_SIZE);
    size_t length;
    int rc = OPAL_ERR_OUT_OF_RESOURCE;

    if (NULL != bytes) {
        OFO.record.version = (uint8_t) OFO.params.test_record_version;
        length = ofo_record_pack(&OFO.record, bytes, OFO_RECORD_MAX_SIZE);
        BFO_ASSERT(0 < length && length <= OFO_RECORD_MAX_SIZE); /* there is room for the most ports */
        OPAL_MODEX_SEND_STRING(rc, BFO_MODEX_GLOBAL, (char *) MODEX_KEY, bytes, length);
        free(bytes);
    }
    return rc;
}

static bool start_services(void)
{
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        if (OPAL_SUCCESS != ofo_service_start(OFO.module[i])) {
            return false;
        }
    }
    return true;
}

static mca_btl_base_module_t **component_init(int *count, bool enable_progress_threads, bool enable_mpi_threads)
{
    mca_btl_base_module_t **modules;

    *count = 0;
    memset(&OFO.record, 0, sizeof(OFO.record));
    if (OPAL_SUCCESS != ofo_params_check() || OPAL_SUCCESS != prepare_fork()) {
        return NULL;
    }
    OFO.self = OPAL_PROC_MY_NAME;
    while (0 == OFO.record.incarnation
           && (ssize_t) sizeof(OFO.record.incarnation) == getrandom(&OFO.record.incarnation, sizeof(OFO.record.incarnation), 0)) {
    }
    ofo_queues_unshare(&OFO.queues, &OFO.plain);
    clamp_sizes();
    ofo_deadline_init();
    if (OPAL_SUCCESS != ofo_sleep_create()) {
        return NULL;
    }
    ofo_ports_open(&defaults);
    BFO_ASSERT(OFO.record.nports <= OFO.module_count); /* each port has a module */
    ofo_params_compare_fabrics();
    ofo_queues_publish(&OFO.queues, !OFO.no_srq, &OFO.record);
    if (OPAL_SUCCESS != publish_record() || 0 == OFO.module_count || !start_services()) {
        goto err_free;
    }
    modules = calloc(OFO.module_count, sizeof(*modules));
    if (NULL == modules) {
        goto err_free;
    }
    choose_leave_pinned();
    for (unsigned i = 0; i < OFO.module_count; ++i) {
        modules[i] = &OFO.module[i]->super;
    }
    *count = (int) OFO.module_count;
    return modules;

err_free:
    ofo_modules_free(); /* the component may be unloaded: no thread of it may be left */
    return NULL;
}

/* clang-format off */
__attribute__((visibility("default"))) ofo_component_t mca_btl_openib_component = {
    .super = {
        .btl_version = {
            BFO_BTL_BASE_VERSION,
            .mca_component_name = BFO_BTL_EXT_COMPONENT,
            .mca_component_major_version = BFO_VERSION_MAJOR,
            .mca_component_minor_version = BFO_VERSION_MINOR,
            .mca_component_release_version = BFO_VERSION_RELEASE,
            .mca_open_component = component_open,
            .mca_close_component = component_close,
            .mca_register_component_params = component_register,
        },
        .btl_data = {.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT},
        .btl_init = component_init,
        .btl_progress = ofo_component_progress,
    },
};
/* clang-format on */
