/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The only table of parameters, and the checks of the user's values. Parameters of other versions of this BTL that have
 * no meaning here are accepted with a notice. See DESIGN.txt 15.
 */
#include "door/btl_openib_params.h"

#include "formats/btl_openib_choice.h"
#include "connect/btl_openib_connect_rdmacm.h"
#include "connect/btl_openib_connect_ud.h"
#include "connect/btl_openib_cpc.h"
#include "formats/btl_openib_queues.h"
#include "formats/btl_openib_rails.h"

#include "bfo_help.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/util/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_QUEUES "P,256,12,6,6:S,12544,256,240,12,64:S,65792,64,60,4,16"

typedef struct {
    const char *name;
    const char *help;
    mca_base_var_type_t type; /* STRING, INT, UNSIGNED_INT, BOOL */
    void *storage;
    long initial;
    const char *initial_text;
    int level;
} param_t;

/* clang-format off */
#define TEXT(name, field, text, level, help) \
    {name, help, MCA_BASE_VAR_TYPE_STRING, &OFO.params.field, 0, text, OPAL_INFO_LVL_##level}
#define NUMBER(name, field, value, level, help) \
    {name, help, MCA_BASE_VAR_TYPE_UNSIGNED_INT, &OFO.params.field, value, NULL, OPAL_INFO_LVL_##level}
#define SIGNED(name, field, value, level, help) \
    {name, help, MCA_BASE_VAR_TYPE_INT, &OFO.params.field, value, NULL, OPAL_INFO_LVL_##level}
#define TRUTH(name, field, value, level, help) \
    {name, help, MCA_BASE_VAR_TYPE_BOOL, &OFO.params.field, value, NULL, OPAL_INFO_LVL_##level}
/* clang-format on */

static const param_t table[] = {
    TEXT("if_include", if_include, NULL, 1,
         "Devices and ports to use, as a comma-separated list of device or device:port; excludes btl_openib_if_exclude. "
         "A port that is down joins a job when it comes up if this list names it, or if it has an IP address (RoCE) or a LID (InfiniBand)"),
    TEXT("if_exclude", if_exclude, NULL, 1, "Devices and ports not to use; excludes btl_openib_if_include"),
    TEXT("ipaddr_include", ipaddr_include, NULL, 3,
         "IP networks whose RoCE ports are used: address/prefix, separated by commas; excludes btl_openib_ipaddr_exclude"),
    TEXT("ipaddr_exclude", ipaddr_exclude, NULL, 3, "IP networks whose ports are not used; excludes btl_openib_ipaddr_include"),
    TEXT("device_type", device_type, "all", 5,
         "Which adapters to use: infiniband, with RoCE; iwarp, which has no failover; all: iwarp where there is no other"),
    TRUTH("ignore_locality", ignore_locality, 0, 5, "Use far ports for small messages too; near are those of the cores this process is bound to"),
    NUMBER("max_btls", max_btls, 0, 2, "Use at most this many ports (0: all)"),
    NUMBER("lanes", lanes, 1, 5, "Rails over each pair of ports (1 to 4)"),
    TEXT("rail_map", rail_map, NULL, 5, "Pairs of ports that form rails, instead of pairing by subnet: device:port-device:port,..."),
    TEXT("fabrics", fabrics, NULL, 5,
         "Names of the fabrics that ports of this host are on, where several fabrics have one subnet prefix: device:port=name,... (only "
         "ports on fabrics of one name are paired)"),
    SIGNED("gid_index", gid_index, -1, 2, "Index of the GID to use on every port (-1: the RoCE v2 GID is found)"),
    NUMBER("gid_prefix_len", gid_prefix_len, 0, 6,
           "Length of the IP network prefix of RoCE GIDs (0: that of the interface, else 24 for IPv4 and 64 for IPv6)"),
    TEXT("cpc_include", cpc_include, NULL, 4, "Connection managers to use, the first that is known: udcm (datagrams) or rdmacm (librdmacm)"),
    TEXT("cpc_exclude", cpc_exclude, NULL, 4, "Connection managers not to use; excludes btl_openib_cpc_include"),
    TEXT("receive_queues", receive_queues, DEFAULT_QUEUES, 3,
         "Receive queues of each rail, from small to large buffers, separated by colons; each is P,size,count... (for one peer) or "
         "S,size,count... (shared by all peers of a port); docs/FAQ.md explains every field"),
    NUMBER("ib_timeout", ib_timeout, 0, 4,
           "Acknowledgement timeout of a queue pair is 4.096 us * 2^ib_timeout (1 to 31; 0: 20, or 17 under a PML that waits for a last rail)"),
    NUMBER("ib_retry_count", ib_retry_count, 6, 4,
           "Repetitions of a packet before the rail is given up (1 to 7; 7 means without limit on soft-RoCE)"),
    NUMBER("ib_rnr_retry", ib_rnr_retry, 7, 6, "Receiver-not-ready retries (0 to 7; 7 means without limit)"),
    NUMBER("ib_min_rnr_timer", ib_min_rnr_timer, 12, 6, "Receiver-not-ready timer code (0 to 31)"),
    NUMBER("ib_service_level", ib_service_level, 0, 6,
           "Service level of all queue pairs (0 to 15; 0 with rdmacm: that of each path record, which udcm does not ask for)"),
    SIGNED("ib_traffic_class", ib_traffic_class, -1, 6, "Traffic class of RoCE packets (0 to 255; -1: the one the port is configured for)"),
    NUMBER("ib_pkey_index", ib_pkey_index, 0, 6, "Index into the port's partition table (0: the first of a full member)"),
    NUMBER("pkey", pkey, 0, 6, "Partition key to use, looked up in each port's table (0: by btl_openib_ib_pkey_index)"),
    NUMBER("ib_mtu", ib_mtu, 0, 6, "Largest path MTU as code 1 (256) to 5 (4096); 0: that of the ports"),
    SIGNED("max_inline_data", max_inline_data, -1, 6, "Messages up to this many bytes are sent inline (-1: 128)"),
    NUMBER("max_hw_msg_size", max_hw_msg_size, 0, 8, "Largest part of a put or get, in bytes (0: as the port allows)"),
    NUMBER("free_list_num", free_list_num, 8, 8, "Fragments of each size to begin with, of large ones as many as 256 KiB hold"),
    NUMBER("free_list_inc", free_list_inc, 32, 8, "Fragments to add when none is left, of large ones as many as 256 KiB hold"),
    SIGNED("free_list_max", free_list_max, -1, 8, "Most fragments of each size and port (-1: no limit)"),
    TRUTH("enable_srq_resize", enable_srq_resize, 1, 8, "Shared queues grow at their limit event"),
    NUMBER("ib_max_rdma_dst_ops", max_rd_atomic, 16, 6, "RDMA reads in flight on one queue pair"),
    NUMBER("rd_num", send_queue_depth, 16, 6, "Send queue slots for puts and gets of one rail, in addition to those for messages"),
    NUMBER("cq_size", cq_size, 4096, 6, "Entries of a completion queue; another one is made when it is full"),
    NUMBER(
        "connect_timeout", connect_timeout, 15, 6,
        "Seconds of a peer's silence until a rail that does not connect is given up (12 times that under a PML without failover, where it ends the job)"),
    NUMBER("time_wait", time_wait, 5, 7, "Seconds a dead queue pair keeps its number"),
    SIGNED("use_eager_rdma", use_eager_rdma, -1, 4,
           "Write small messages by RDMA into a ring that the peer polls: 1 on, 0 off, -1 automatic (off: no tested device is faster with it)"),
    NUMBER("eager_rdma_num", eager_rdma_num, 16, 6, "Slots of an eager RDMA ring; one holds a message of the first receive queue"),
    NUMBER("eager_rdma_threshold", eager_rdma_threshold, 16, 6, "Messages from a peer until a ring is made for it"),
    NUMBER("max_eager_rdma", max_eager_rdma, 16, 6, "Peers that get a ring, for each port"),
    TRUTH("use_message_coalescing", use_message_coalescing, 1, 4, "Small messages that have to wait travel together"),
    NUMBER("completion_interval", completion_interval, 8, 6, "Request a completion for every Nth small message posted in a row (1: for each)"),
    NUMBER("ctl_rate", ctl_rate, 2000, 7, "Bring-down messages per second and process, when a port with many peers dies"),
    NUMBER("fence_timeout", fence_timeout, 10, 7, "Seconds until queue pairs of a lost rail that do not return their work are destroyed"),
    NUMBER("keepalive", keepalive, 10, 5, "Seconds without traffic after which a rail is asked whether its peer still lives (0: never)"),
    NUMBER("deadline", deadline, 250, 5,
           "Milliseconds after which a rail that delivers nothing counts as lost, if another rail to the same process delivers (0: when the "
           "adapter gives up, after btl_openib_ib_timeout and btl_openib_ib_retry_count); only under a PML with failover"),
    NUMBER("soft_deadline", soft_deadline, 20, 5,
           "Milliseconds after which a rail that delivers nothing gets no new work, and its short messages are sent a second time over "
           "another rail to the same process that delivers (0: never; also if it is more than half of btl_openib_deadline)"),
    NUMBER("rejoin_after", rejoin_after, 1000, 5,
           "Milliseconds until a rail that was lost is asked whether it works again, counted from its port's return if the port was "
           "down; used again by the same job if pml_bfo_rejoin is 1; short messages follow after as long again, or once long ones have passed"),
    NUMBER(
        "rejoin_half_life", rejoin_half_life, 300, 6,
        "Seconds in which half of a rail's failures are forgotten; a rail that failed four times in short order stays out for up to 15 minutes (0: never)"),
    NUMBER("blocking_progress", blocking_progress, 0, 4,
           "Let a process that waits in MPI sleep up to this many milliseconds (0: always poll). Traffic on a rail wakes it at once; "
           "messages of other transports (vader, tcp) may be delayed by up to this time"),
    SIGNED("want_fork_support", want_fork_support, 1, 4, "Make fork() safe: 0 no, 1 if it is possible, 2 fail without it"),
    TRUTH("warn_nonexistent_if", warn_no_device, 1, 6, "Say when if_include or if_exclude names no device, or fabrics no port in use"),
    TRUTH("allow_ib", allow_ib, 1, 6, "Use ports whose link layer is InfiniBand"),
    NUMBER("verbose", verbose, 0, 7, "1: rails and connections, 2: also each control message and queue pair"),
    TEXT("test_far_devices", test_far_devices, NULL, 9, "For tests: devices that are taken for far"),
    NUMBER("test_record_version", test_record_version, OFO_RECORD_VERSION, 9, "For tests: the version this process claims in the modex"),
};

/* Parameters of other versions that have no meaning here. */
static const struct {
    const char *name, *why;
} ignored[] = {
    {"btls_per_lid", "see btl_openib_lanes"},
    {"ib_qp_ous_rd_atom", "see btl_openib_ib_max_rdma_dst_ops"},
    {"ib_max_mtu", "see btl_openib_ib_mtu"},
    {"device_param_files", "there are no device parameter files"},
    {"mtu", "see btl_openib_ib_mtu"},
    {"connect_udcm_timeout", "see btl_openib_connect_timeout"},
    {"connect_udcm_max_retry", "see btl_openib_connect_timeout"},
    {"memalign", "memory is not aligned for the application"},
    {"apm_over_lids", "path migration is not used: rails fail over"},
    {"apm_over_ports", "path migration is not used: rails fail over"},
    {"enable_apm_over_ports", "path migration is not used: rails fail over"},
    {"enable_apm_over_lmc", "path migration is not used: rails fail over"},
    {"max_lmc", "see btl_openib_lanes"},
    {"abort_not_enough_reg_mem", "this BTL never aborts a job"},
    {"allow_max_memory_registration", "the limit of locked memory is the user's"},
    {"memory_registration_verbose", "see btl_openib_verbose"},
    {"allow_different_subnets", "ports of different subnets are paired by btl_openib_rail_map"},
    {"buffer_alignment", "buffers are aligned as the adapters want it"},
    {"connect_udcm_priority", "see btl_openib_cpc_include"},
    {"connect_udcm_recv_count", "the queue for control messages has 1024 buffers"},
    {"cq_poll_ratio", "there is one kind of completion queue"},
    {"hp_cq_poll_per_progress", "there is one kind of completion queue"},
    {"eager_rdma_poll_ratio", "rings and queues are polled in turn"},
    {"poll_cq_batch", "completions are taken 16 at a time"},
    {"mpool_hints", "fragments come from the default memory pool"},
    {"rcache", "registrations are kept by grdma"},
    {"reg_mru_len", "see rcache_grdma"},
    {"psn", "queue pairs begin with random packet numbers"},
    {"rroce_enable", "RoCE v2 is always used"},
    {"use_async_event_thread", "events are read by the service thread"},
    {"ib_path_record_service_level", "path records are asked for by librdmacm alone: see btl_openib_cpc_include and btl_openib_ib_service_level"},
    {"warn_default_gid_prefix", "ports are paired by subnet, unpaired ones are named, and those that do not connect, too"},
    {"warn_no_device_params_found", "there are no device parameters"},
    {"have_fork_support", "see btl_openib_want_fork_support"},
};
static char *ignored_value[sizeof(ignored) / sizeof(ignored[0])];

static void set_initial(const param_t *param)
{
    switch (param->type) {
    case MCA_BASE_VAR_TYPE_STRING:
        *(char **) param->storage = (char *) param->initial_text;
        break;
    case MCA_BASE_VAR_TYPE_BOOL:
        *(bool *) param->storage = 0 != param->initial;
        break;
    default:
        *(int *) param->storage = (int) param->initial;
    }
}

int ofo_params_register(mca_base_component_t *component, mca_btl_base_module_t *defaults)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); ++i) {
        set_initial(&table[i]);
        if (0 > mca_base_component_var_register(component, table[i].name, table[i].help, table[i].type, NULL, 0, 0,
                                                (mca_base_var_info_lvl_t) table[i].level, MCA_BASE_VAR_SCOPE_READONLY, table[i].storage)) {
            return OPAL_ERROR;
        }
    }
    (void) mca_base_var_register_synonym(mca_base_var_find("opal", "btl", "openib", "max_inline_data"), "opal", "btl", "openib", "ib_max_inline_data",
                                         0);
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); ++i) {
        char text[160]; /* Open MPI copies it */

        snprintf(text, sizeof(text), "Accepted and not used: %s", ignored[i].why);
        (void) mca_base_component_var_register(component, ignored[i].name, text, MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_9,
                                               MCA_BASE_VAR_SCOPE_READONLY, &ignored_value[i]);
    }
    return mca_btl_base_param_register(component, defaults);
}

static int bad(const char *name, const char *value, const char *rule)
{
    bfo_help_say(OFO_HELP_FILE, "bad parameter", name, value, rule);
    return OPAL_ERR_BAD_PARAM;
}

static int check_range(const char *name, unsigned value, unsigned low, unsigned high)
{
    char text[16], rule[48];

    if (value >= low && value <= high) {
        return OPAL_SUCCESS;
    }
    snprintf(text, sizeof(text), "%u", value);
    snprintf(rule, sizeof(rule), "it must be from %u to %u", low, high);
    return bad(name, text, rule);
}

static int check_texts(ofo_params_t *p)
{
    if (NULL != p->ipaddr_include && '\0' != *p->ipaddr_include && NULL != p->ipaddr_exclude && '\0' != *p->ipaddr_exclude) {
        return bad("ipaddr_exclude", p->ipaddr_exclude, "btl_openib_ipaddr_include and btl_openib_ipaddr_exclude cannot be given together");
    }
    if (0 != strcmp(p->device_type, "all") && 0 != strcmp(p->device_type, "infiniband") && 0 != strcmp(p->device_type, "ib")
        && 0 != strcmp(p->device_type, "iwarp")) {
        return bad("device_type", p->device_type, "it must be all, infiniband or iwarp");
    }
    if (0 <= p->ib_traffic_class && OPAL_SUCCESS != check_range("ib_traffic_class", (unsigned) p->ib_traffic_class, 0, 255)) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (!ofo_fabrics_are_well(p->fabrics)) {
        return bad("fabrics", p->fabrics, "it must be a list of device:port=name, separated by commas");
    }
    if (0 <= p->gid_index && OPAL_SUCCESS != check_range("gid_index", (unsigned) p->gid_index, 0, OFO_GID_INDEX_MAX)) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (0 <= p->free_list_max) {
        p->completion_interval = 1; /* otherwise the limited fragments might all be messages that were not reported yet */
    }
    if (0 != p->deadline && OPAL_SUCCESS != check_range("deadline", p->deadline, 40, 60000)) {
        return OPAL_ERR_BAD_PARAM; /* shorter rounds would measure the scheduler */
    }
    if (0 != p->soft_deadline && OPAL_SUCCESS != check_range("soft_deadline", p->soft_deadline, 8, 60000)) {
        return OPAL_ERR_BAD_PARAM;
    }
    p->soft_deadline = p->deadline >= 2 * p->soft_deadline ? p->soft_deadline : 0;
    p->ib_max_inline_data = 0 > p->max_inline_data ? 128 : (unsigned) p->max_inline_data;
    return OPAL_SUCCESS;
}

static int check_numbers(void)
{
    const ofo_params_t *p = &OFO.params;
    const struct {
        const char *name;
        unsigned value, low, high;
    } range[] = {
        {"lanes", p->lanes, 1, OFO_MAX_LANES},
        {"ib_timeout", p->ib_timeout, 0, 31},
        {"ib_retry_count", p->ib_retry_count, 1, 7},
        {"ib_rnr_retry", p->ib_rnr_retry, 0, 7},
        {"ib_min_rnr_timer", p->ib_min_rnr_timer, 0, 31},
        {"ib_service_level", p->ib_service_level, 0, 15},
        {"ib_mtu", p->ib_mtu, 0, 5},
        {"pkey", p->pkey, 0, 65535},
        {"free_list_num", p->free_list_num, 1, 1u << 20},
        {"free_list_inc", p->free_list_inc, 1, 1u << 20},
        {"rd_num", p->send_queue_depth, 4, 8192},
        {"ib_max_rdma_dst_ops", p->max_rd_atomic, 1, 255},
        {"cq_size", p->cq_size, 64, 1u << 22},
        {"connect_timeout", p->connect_timeout, 1, 3600},
        {"time_wait", p->time_wait, 1, 3600},
        {"eager_rdma_num", p->eager_rdma_num, 2, OFO_RING_SLOTS_MAX},
        {"eager_rdma_threshold", p->eager_rdma_threshold, 1, 1u << 30},
        {"max_eager_rdma", p->max_eager_rdma, 0, 65536},
        {"completion_interval", p->completion_interval, 1, 1024},
        {"ctl_rate", p->ctl_rate, 1, 1000000},
        {"fence_timeout", p->fence_timeout, 1, 3600},
        {"keepalive", p->keepalive, 0, 86400},
        {"rejoin_after", p->rejoin_after, 10, 900000},
        {"rejoin_half_life", p->rejoin_half_life, 0, 86400},
        {"blocking_progress", p->blocking_progress, 0, 1000},
        {"gid_prefix_len", p->gid_prefix_len, 0, 127},
    };

    for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); ++i) {
        if (OPAL_SUCCESS != check_range(range[i].name, range[i].value, range[i].low, range[i].high)) {
            return OPAL_ERR_BAD_PARAM;
        }
    }
    return OPAL_SUCCESS;
}

/* Does the list have a connection manager of that name? */
static bool names_cpc(const char *list, const char *name)
{
    size_t length;

    for (; '\0' != *list; list += length + (',' == list[length])) {
        length = strcspn(list, ",");
        if (strlen(name) == length && 0 == memcmp(list, name, length)) {
            return true;
        }
    }
    return false;
}

/* The first known connection manager of the list; NULL if there is none. */
static const ofo_cpc_t *first_cpc(const char *list)
{
    const ofo_cpc_t *cpc = NULL;

    for (size_t length; NULL == cpc && '\0' != *list; list += length + (',' == list[length])) {
        length = strcspn(list, ",");
        cpc = ofo_cpc_find(list, length);
    }
    return cpc;
}

static int choose_cpc(void)
{
    const char *include = OFO.params.cpc_include, *exclude = OFO.params.cpc_exclude;
    static const char *const rule = "it must name udcm or rdmacm, and leave one of them";

    OFO.cpc = &ofo_cpc_ud;
    if (NULL != include && '\0' != *include) {
        if (NULL != exclude && '\0' != *exclude) {
            return bad("cpc_exclude", exclude, "btl_openib_cpc_include and btl_openib_cpc_exclude cannot be given together");
        }
        OFO.cpc = first_cpc(include);
        return NULL != OFO.cpc ? OPAL_SUCCESS : bad("cpc_include", include, rule);
    }
    if (NULL != exclude && names_cpc(exclude, ofo_cpc_ud.name)) {
        OFO.cpc = &ofo_cpc_rdmacm;
    }
    return NULL != exclude && names_cpc(exclude, OFO.cpc->name) ? bad("cpc_exclude", exclude, rule) : OPAL_SUCCESS;
}

bool ofo_params_allow_rdmacm(void)
{
    const char *include = OFO.params.cpc_include, *exclude = OFO.params.cpc_exclude;

    return NULL != include && '\0' != *include ? names_cpc(include, ofo_cpc_rdmacm.name)
                                               : NULL == exclude || !names_cpc(exclude, ofo_cpc_rdmacm.name);
}

int ofo_params_check(void)
{
    const ofo_params_t *p = &OFO.params;
    const char *wrong = ofo_queues_parse(p->receive_queues, &OFO.queues);

    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); ++i) {
        if (NULL != ignored_value[i]) {
            bfo_help_say(OFO_HELP_FILE, "ignored parameter", ignored[i].name, ignored[i].why);
        }
    }
    if (NULL != wrong) {
        return bad("receive_queues", p->receive_queues, wrong);
    }
    if (NULL != p->if_include && '\0' != *p->if_include && NULL != p->if_exclude && '\0' != *p->if_exclude) {
        return bad("if_exclude", p->if_exclude, "btl_openib_if_include and btl_openib_if_exclude cannot be given together");
    }
    return OPAL_SUCCESS == choose_cpc() && OPAL_SUCCESS == check_texts(&OFO.params) ? check_numbers() : OPAL_ERR_BAD_PARAM;
}

void ofo_params_compare_fabrics(void)
{
    const char *stray = ofo_fabrics_stray(OFO.params.fabrics, &OFO.record);
    char entry[128];

    if (NULL != stray && 0 < OFO.record.nports && OFO.params.warn_no_device) {
        snprintf(entry, sizeof(entry), "%.*s", (int) strcspn(stray, ","), stray);
        bfo_help_say(OFO_HELP_FILE, "no such fabric port", entry);
    }
}
