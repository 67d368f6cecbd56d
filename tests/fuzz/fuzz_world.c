/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The world of fuzz_world.h: what Open MPI and the BTLs would be to the PML. DESIGN.txt section 18.
 */
#include "fuzz_world.h"

#include "ompi/group/group.h"
#include "ompi/mca/bml/base/base.h"
#include "opal/mca/pmix/pmix.h"
#include "opal/runtime/opal.h"
#include "opal/util/proc.h"

#include <stdlib.h>
#include <string.h>

world_btl_t world_btl[WORLD_BTLS];
ompi_communicator_t *world_comm[WORLD_COMMS];
ompi_proc_t *world_proc[WORLD_RANKS];
ompi_datatype_t *world_strided;
unsigned world_refuse_busy, world_refuse_dead, world_refuse_memory;

/* ---- what was posted --------------------------------------------------------------------------------- */

typedef struct posted_t {
    struct posted_t *next;
    enum { SEND, SENDI, PUT, GET } kind;
    world_btl_t *btl;
    mca_btl_base_descriptor_t *des; /* SEND */
    mca_btl_base_rdma_completion_fn_t done;
    void *local, *context, *data;
    size_t size;
    char *bytes; /* SENDI: the message */
} posted_t;

static posted_t *posted, **posted_end = &posted;
static unsigned n_posted;

typedef struct {
    world_btl_t *btl;
    uint8_t name;
    uint16_t gen;
} fence_t;
static fence_t fences[64];
static unsigned n_fences;
static bool dead[WORLD_BTLS];

static posted_t *post(world_btl_t *btl, int kind)
{
    posted_t *p = calloc(1, sizeof(*p));

    p->btl = btl;
    p->kind = kind;
    *posted_end = p;
    posted_end = &p->next;
    ++n_posted;
    return p;
}

static posted_t *take(unsigned n)
{
    posted_t **at = &posted, *p;

    while (n-- > 0) {
        at = &(*at)->next;
    }
    p = *at;
    *at = p->next;
    if (NULL == *at) {
        posted_end = at;
    }
    --n_posted;
    return p;
}

unsigned world_posted(void)
{
    return n_posted;
}

static int refusal(const world_btl_t *btl)
{
    if (dead[btl - world_btl]) {
        return OPAL_ERR_UNREACH;
    }
    if (world_refuse_busy > 0) {
        --world_refuse_busy;
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (world_refuse_dead > 0) {
        --world_refuse_dead;
        return OPAL_ERR_UNREACH;
    }
    return OPAL_SUCCESS;
}

/* ---- the BTL's functions ----------------------------------------------------------------------------- */

static mca_btl_base_descriptor_t *btl_alloc(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                                            uint8_t order, size_t size, uint32_t flags)
{
    mca_btl_base_descriptor_t *des;
    mca_btl_base_segment_t *segment;

    if (world_refuse_memory > 0) {
        --world_refuse_memory;
        return NULL;
    }
    des = calloc(1, sizeof(*des) + sizeof(*segment));
    segment = (mca_btl_base_segment_t *) (des + 1);
    OBJ_CONSTRUCT(des, mca_btl_base_descriptor_t);
    des->des_segments = segment;
    des->des_segment_count = 1;
    des->des_flags = flags;
    des->order = order;
    segment->seg_addr.pval = malloc(size > 0 ? size : 1);
    segment->seg_len = size;
    return des;
}

static int btl_free(struct mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *des)
{
    free(des->des_segments[0].seg_addr.pval);
    free(des);
    return OPAL_SUCCESS;
}

static mca_btl_base_descriptor_t *btl_prepare_src(struct mca_btl_base_module_t *btl,
                                                  struct mca_btl_base_endpoint_t *endpoint,
                                                  struct opal_convertor_t *convertor, uint8_t order, size_t reserve,
                                                  size_t *size, uint32_t flags)
{
    const size_t room = btl->btl_max_send_size - reserve;
    mca_btl_base_descriptor_t *des;
    struct iovec iov;
    uint32_t n = 1;

    *size = *size < room ? *size : room;
    des = btl_alloc(btl, endpoint, order, reserve + *size, flags);
    if (NULL != des) {
        iov.iov_base = (char *) des->des_segments[0].seg_addr.pval + reserve;
        iov.iov_len = *size;
        (void) opal_convertor_pack(convertor, &iov, &n, size);
        des->des_segments[0].seg_len = reserve + *size;
    }
    return des;
}

static int btl_send(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                    mca_btl_base_descriptor_t *des, mca_btl_base_tag_t tag)
{
    const int rc = refusal((world_btl_t *) btl);

    if (OPAL_SUCCESS == rc) {
        post((world_btl_t *) btl, SEND)->des = des;
    }
    return rc;
}

static int btl_sendi(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                     struct opal_convertor_t *convertor, void *header, size_t header_size, size_t payload_size,
                     uint8_t order, uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor)
{
    const int rc = refusal((world_btl_t *) btl);
    posted_t *p;

    if (NULL != descriptor) {
        *descriptor = NULL;
    }
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    p = post((world_btl_t *) btl, SENDI);
    p->size = header_size + payload_size;
    p->bytes = malloc(p->size);
    memcpy(p->bytes, header, header_size);
    if (payload_size > 0) {
        struct iovec iov = {p->bytes + header_size, payload_size};
        uint32_t n = 1;

        (void) opal_convertor_pack(convertor, &iov, &n, &payload_size);
    }
    return OPAL_SUCCESS;
}

static int rdma(struct mca_btl_base_module_t *btl, int kind, void *local, size_t size,
                mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    const int rc = refusal((world_btl_t *) btl);
    posted_t *p;

    if (OPAL_SUCCESS == rc) {
        p = post((world_btl_t *) btl, kind);
        p->local = local;
        p->size = size;
        p->done = done;
        p->context = context;
        p->data = data;
    }
    return rc;
}

static int btl_put(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local,
                   uint64_t remote, struct mca_btl_base_registration_handle_t *local_handle,
                   struct mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                   mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    return rdma(btl, PUT, local, size, done, context, data);
}

static int btl_get(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local,
                   uint64_t remote, struct mca_btl_base_registration_handle_t *local_handle,
                   struct mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
                   mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    return rdma(btl, GET, local, size, done, context, data);
}

static mca_btl_base_registration_handle_t *btl_register(struct mca_btl_base_module_t *btl,
                                                        struct mca_btl_base_endpoint_t *endpoint, void *base,
                                                        size_t size, uint32_t flags)
{
    if (world_refuse_memory > 0) {
        --world_refuse_memory;
        return NULL;
    }
    return calloc(1, WORLD_HANDLE);
}

static int btl_deregister(struct mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *handle)
{
    free(handle);
    return OPAL_SUCCESS;
}

/* ---- the extension ----------------------------------------------------------------------------------- */

static void fence_begin(world_btl_t *btl, uint8_t name, uint16_t gen)
{
    dead[btl - world_btl] = true;
    for (unsigned i = 0; i < n_fences; ++i) {
        if (fences[i].btl == btl && fences[i].gen == gen) {
            return;
        }
    }
    if (n_fences == sizeof(fences) / sizeof(fences[0])) {
        abort();
    }
    fences[n_fences++] = (fence_t){btl, name, gen};
}

static bool ext_flush(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc)
{
    return 0 == n_posted;
}

static int ext_fence(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, uint8_t rail, uint16_t gen)
{
    fence_begin((world_btl_t *) btl, rail, gen);
    return OPAL_SUCCESS;
}

static void ext_declare(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc)
{
    for (int b = 0; b < WORLD_BTLS; ++b) {
        if (BFO_BTL_EXT_MAGIC == world_btl[b].ext.magic) {
            fence_begin(&world_btl[b], (uint8_t) b, 0);
        }
    }
}

static struct opal_proc_t *ext_des_peer(struct mca_btl_base_module_t *btl, const struct mca_btl_base_descriptor_t *des)
{
    return &world_proc[((world_btl_t *) btl)->peer]->super;
}

static int ext_rail_state(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, bfo_rail_info_t *info)
{
    const int b = (int) ((world_btl_t *) btl - world_btl);

    *info = (bfo_rail_info_t){.state = dead[b] ? BFO_RAIL_DOWN_LOCAL : BFO_RAIL_UP, .name = (uint8_t) b};
    return OPAL_SUCCESS;
}

void fuzz_output(int stream, const char *format, ...);
void fuzz_progress(void);
int fuzz_progress_register(int (*progress)(void));

static bool ext_port_is_up(struct mca_btl_base_module_t *btl)
{
    return true;
}

/* ---- what the fuzzer does ---------------------------------------------------------------------------- */

static mca_btl_base_module_recv_cb_fn_t handlers[256];

void world_receive(world_btl_t *btl, uint8_t tag, const void *bytes, size_t length, size_t split)
{
    const size_t first = split < length ? split : length;
    mca_btl_base_segment_t segments[2] = {{.seg_len = first}, {.seg_len = length - first}};
    mca_btl_base_descriptor_t des = {.des_segments = segments, .des_segment_count = first < length ? 2 : 1};

    if (NULL == handlers[tag]) {
        return;
    }
    for (int i = 0; i < 2; ++i) { /* exactly as long as it is */
        segments[i].seg_addr.pval = malloc(segments[i].seg_len > 0 ? segments[i].seg_len : 1);
    }
    memcpy(segments[0].seg_addr.pval, bytes, first);
    memcpy(segments[1].seg_addr.pval, (const char *) bytes + first, length - first);
    handlers[tag](&btl->super, tag, &des, NULL);
    free(segments[0].seg_addr.pval);
    free(segments[1].seg_addr.pval);
}

void world_complete(unsigned n, int status)
{
    posted_t *p = take(n);
    struct mca_btl_base_module_t *btl = &p->btl->super;

    switch (p->kind) {
    case SEND:
        if (NULL != p->des->des_cbfunc) {
            p->des->des_cbfunc(btl, NULL, p->des, status);
        }
        btl_free(btl, p->des);
        break;
    case SENDI:
        if (OPAL_SUCCESS != status && NULL != p->btl->ext.failed_frag) {
            p->btl->ext.failed_frag(btl, (struct mca_btl_base_endpoint_t *) p->btl, BFO_TAG(BFO_MSG_MATCH), p->bytes,
                                    p->size, status);
        }
        free(p->bytes);
        break;
    case GET:
        if (OPAL_SUCCESS == status) {
            memset(p->local, 0x5a, p->size); /* the posted buffer, or the sanitizer says what else */
        }
        p->done(btl, NULL, p->local, NULL, p->context, p->data, status);
        break;
    case PUT:
        if (p->size > 0) {
            static volatile char sink;

            sink = ((const char *) p->local)[0] + ((const char *) p->local)[p->size - 1];
            (void) sink;
        }
        p->done(btl, NULL, p->local, NULL, p->context, p->data, status);
        break;
    }
    free(p);
}

unsigned world_fences(void)
{
    return n_fences;
}

/* B8: what was posted on the rail has come back before its fence is done. */
void world_fence_done(unsigned n, bool lossy)
{
    const fence_t fence = fences[n];
    bool more = true;

    fences[n] = fences[--n_fences];
    while (more) {
        unsigned i = 0;

        more = false;
        for (const posted_t *p = posted; NULL != p; p = p->next, ++i) {
            if (p->btl == fence.btl) {
                world_complete(i, OPAL_ERROR);
                more = true;
                break;
            }
        }
    }
    if (NULL != fence.btl->ext.fence_done) {
        fence.btl->ext.fence_done(&fence.btl->super, &world_proc[fence.btl->peer]->super, fence.name, fence.gen, lossy);
    }
}

void world_rail_fails(world_btl_t *btl)
{
    const int b = (int) (btl - world_btl);

    if (dead[b]) {
        return;
    }
    dead[b] = true;
    bfo_failover_btl_error(&btl->super, MCA_BTL_ERROR_FLAGS_NONFATAL, &world_proc[btl->peer]->super, NULL);
    if (BFO_BTL_EXT_MAGIC == btl->ext.magic) {
        fence_begin(btl, (uint8_t) b, 0);
    }
}

/* ---- Open MPI's side --------------------------------------------------------------------------------- */

void fuzz_output(int stream, const char *format, ...)
{
}

void fuzz_progress(void)
{
    (void) bfo_progress();
}

int fuzz_progress_register(int (*progress)(void))
{
    return OPAL_SUCCESS;
}

static int bml_register(mca_btl_base_tag_t tag, mca_btl_base_module_recv_cb_fn_t handler, void *data)
{
    handlers[tag] = handler;
    return OMPI_SUCCESS;
}

static int bml_add_proc(struct ompi_proc_t *proc)
{
    return OMPI_ERR_UNREACH;
}

/* Every peer speaks our protocol. */
static int modex_get(const opal_process_name_t *proc, const char *key, opal_list_t *info, opal_value_t **value)
{
    opal_value_t *kv = OBJ_NEW(opal_value_t);

    kv->type = OPAL_BYTE_OBJECT;
    kv->data.bo.bytes = malloc(sizeof(bfo_modex_t));
    kv->data.bo.size = sizeof(bfo_modex_t);
    memcpy(kv->data.bo.bytes, &bfo.modex, sizeof(bfo_modex_t));
    *value = kv;
    return OPAL_SUCCESS;
}

static void btl_make(int b, int peer, const mca_btl_base_component_t *component, bool failover)
{
    world_btl_t *btl = &world_btl[b];

    btl->peer = peer;
    btl->super = (mca_btl_base_module_t){
        .btl_component = (mca_btl_base_component_t *) component, .btl_eager_limit = 512, .btl_rndv_eager_limit = 512,
        .btl_max_send_size = 700, .btl_rdma_pipeline_frag_size = 1500, .btl_latency = 1, .btl_bandwidth = 100,
        .btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_PUT | MCA_BTL_FLAGS_GET, .btl_alloc = btl_alloc,
        .btl_free = btl_free, .btl_prepare_src = btl_prepare_src, .btl_send = btl_send, .btl_sendi = btl_sendi,
        .btl_put = btl_put, .btl_get = btl_get, .btl_put_limit = 4000, .btl_get_limit = 4000};
    if (failover) {
        btl->super.btl_register_mem = btl_register;
        btl->super.btl_deregister_mem = btl_deregister;
        btl->super.btl_registration_handle_size = WORLD_HANDLE;
        btl->ext = (bfo_btl_ext_t){.magic = BFO_BTL_EXT_MAGIC, .version = BFO_BTL_EXT_VERSION,
                                   .size = sizeof(bfo_btl_ext_t), .flush = ext_flush, .fence = ext_fence,
                                   .declare = ext_declare, .des_peer = ext_des_peer, .rail_state = ext_rail_state,
                                   .port_is_up = ext_port_is_up};
    }
}

static void peer_make(int rank, int first, int n)
{
    ompi_proc_t *proc = OBJ_NEW(ompi_proc_t);
    mca_bml_base_endpoint_t *endpoint = OBJ_NEW(mca_bml_base_endpoint_t);

    proc->super.proc_name = (opal_process_name_t){.jobid = 77, .vpid = (uint32_t) rank};
    proc->super.proc_convertor = opal_convertor_create(opal_local_arch, 0);
    mca_bml_base_btl_array_reserve(&endpoint->btl_send, 4);
    for (int i = 0; i < n; ++i) {
        mca_bml_base_btl_t *bml = mca_bml_base_btl_array_insert(&endpoint->btl_send);

        bml->btl = &world_btl[first + i].super;
        bml->btl_endpoint = (struct mca_btl_base_endpoint_t *) &world_btl[first + i];
    }
    if (n > 0) {
        proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML] = endpoint;
    }
    world_proc[rank] = proc;
}

static ompi_communicator_t *comm_make(uint32_t ctx, ompi_group_t *group)
{
    ompi_communicator_t *comm = OBJ_NEW(ompi_communicator_t);

    comm->c_contextid = ctx;
    comm->c_my_rank = 0;
    comm->c_local_group = comm->c_remote_group = group;
    return comm;
}

void world_init(void)
{
    static const mca_btl_base_component_t openib = {.btl_version.mca_component_name = "openib"},
                                          other = {.btl_version.mca_component_name = "other"};
    ompi_group_t *group;
    ompi_proc_t **list = calloc(WORLD_RANKS, sizeof(*list));
    int argc = 0;

    setenv("OMPI_MCA_mca_base_component_path", "/nonexistent", 1);
    setenv("OMPI_MCA_opal_signal", "", 1); /* a crash is the fuzzer's to report */
    if (OPAL_SUCCESS != opal_init_util(&argc, NULL) || OMPI_SUCCESS != ompi_datatype_init()) {
        abort();
    }
    OBJ_CONSTRUCT(&ompi_mpi_communicators, opal_pointer_array_t);
    opal_pointer_array_init(&ompi_mpi_communicators, 8, UINT16_MAX, 8);
    OBJ_CONSTRUCT(&ompi_proc_list, opal_list_t);
    OBJ_CONSTRUCT(&ompi_group_f_to_c_table, opal_pointer_array_t);
    OBJ_CONSTRUCT(&ompi_comm_f_to_c_table, opal_pointer_array_t);
    if (OMPI_SUCCESS != ompi_message_init()) {
        abort();
    }
    opal_pmix.get = modex_get;
    mca_bml.bml_register = bml_register;
    mca_bml.bml_add_proc = bml_add_proc;
    btl_make(0, 1, &openib, true);
    btl_make(1, 1, &openib, true);
    btl_make(2, 2, &other, false);
    peer_make(0, 0, 0);
    peer_make(1, 0, 2);
    peer_make(2, 2, 1);
    group = OBJ_NEW(ompi_group_t);
    memcpy(list, world_proc, sizeof(world_proc));
    group->grp_proc_count = WORLD_RANKS;
    group->grp_proc_pointers = list;
    world_comm[0] = comm_make(0, group);
    world_comm[1] = comm_make(5, group);
    ompi_datatype_create_vector(4, 8, 24, &ompi_mpi_byte.dt, &world_strided);
    (void) ompi_datatype_commit(&world_strided);
    bfo_params.free_list_num = 4;
    bfo_params.free_list_inc = 4;
}

/* ---- one life of the PML ----------------------------------------------------------------------------- */

void world_comm_add(void)
{
    (void) opal_pointer_array_set_item(&ompi_mpi_communicators, (int) world_comm[1]->c_contextid, world_comm[1]);
    (void) bfo_add_comm(world_comm[1]);
}

void world_comm_remove(void)
{
    (void) bfo_del_comm(world_comm[1]);
    (void) opal_pointer_array_set_item(&ompi_mpi_communicators, (int) world_comm[1]->c_contextid, NULL);
}

bool world_comm_is_there(void)
{
    return NULL != world_comm[1]->c_pml_comm;
}

void world_begin(void)
{
    world_refuse_busy = world_refuse_dead = world_refuse_memory = 0;
    memset(dead, 0, sizeof(dead));
    OBJ_CONSTRUCT(&mca_pml_base_send_requests, opal_free_list_t);
    OBJ_CONSTRUCT(&mca_pml_base_recv_requests, opal_free_list_t);
    bfo.n_failover_btls = 0;
    bfo.modex = (bfo_modex_t){.version = BFO_PROTOCOL_VERSION, .incarnation = 1};
    if (OMPI_SUCCESS != bfo_module.pml_enable(true) || OMPI_SUCCESS != bfo_dispatch_register()) {
        abort();
    }
    (void) opal_pointer_array_set_item(&ompi_mpi_communicators, 0, world_comm[0]);
    (void) bfo_add_comm(world_comm[0]);
}

static void complete_all(void)
{
    for (unsigned turn = 0; (n_posted > 0 || n_fences > 0 || bfo.n_pending > 0) && turn < 10000; ++turn) {
        if (n_posted > 0) {
            world_complete(0, OPAL_ERROR);
        } else if (n_fences > 0) {
            world_fence_done(0, false);
        }
        fuzz_progress();
    }
}

void world_drain(void)
{
    world_refuse_busy = world_refuse_dead = world_refuse_memory = 0;
    for (int b = 0; b < WORLD_BTLS; ++b) {
        world_rail_fails(&world_btl[b]);
    }
    for (int r = 0; r < WORLD_RANKS; ++r) {
        bfo_peer_t *peer = world_proc[r]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];

        if (NULL != peer) {
            bfo_failover_declare(peer, "the end");
        }
    }
    complete_all();
}

void world_end(void)
{
    if (world_comm_is_there()) {
        world_comm_remove();
    }
    (void) bfo_del_comm(world_comm[0]);
    for (int r = 0; r < WORLD_RANKS; ++r) {
        bfo_peer_free(world_proc[r]);
    }
    while (!bfo_link_is_empty(&bfo.held_fins)) {
        bfo_ctl_t *held = bfo_container(bfo.held_fins.next, bfo_ctl_t, work.link);

        bfo_link_remove(&held->work.link);
        opal_free_list_return(&bfo.ctl_list, &held->super);
    }
    bfo_module_finalize();
    OBJ_DESTRUCT(&mca_pml_base_send_requests);
    OBJ_DESTRUCT(&mca_pml_base_recv_requests);
    bfo_ids_free(&bfo.sends);
    bfo_ids_free(&bfo.recvs);
    bfo_ids_free(&bfo.frags);
}
