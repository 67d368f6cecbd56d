/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The world of fuzz_world.h: it stands in for the PML's BTLs. DESIGN.txt section 18.
 */
#include "fuzz_world.h"

#include "failover/pml_bfo_failover.h"

#include "opal/mca/btl/base/base.h"

#include <stdlib.h>
#include <string.h>

world_btl_t world_btl[WORLD_ALL_BTLS];
unsigned world_refuse_busy, world_refuse_dead, world_refuse_memory;
void (*world_in_sendi)(void);

/* ---- posted work -------------------------------------------------------------------------------------- */

typedef struct posted_t {
    struct posted_t *next;
    enum { SEND, SENDI, PUT, GET } kind;
    world_btl_t *btl;
    mca_btl_base_descriptor_t *des; /* SEND */
    mca_btl_base_rdma_completion_fn_t done;
    void *local, *context, *data;
    size_t size;
    uint8_t theirs; /* PUT, GET: the first byte of the peer's handle */
    char *bytes;    /* SENDI: the message */
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
static bool dead[WORLD_ALL_BTLS];

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

const void *world_posted_message(unsigned n)
{
    const posted_t *p = posted;

    while (n-- > 0) {
        p = p->next;
    }
    return SEND == p->kind ? p->des->des_segments[0].seg_addr.pval : p->bytes;
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

static mca_btl_base_descriptor_t *btl_alloc(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, uint8_t order, size_t size,
                                            uint32_t flags)
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

static mca_btl_base_descriptor_t *btl_prepare_src(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                                                  struct opal_convertor_t *convertor, uint8_t order, size_t reserve, size_t *size, uint32_t flags)
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

static int btl_send(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, mca_btl_base_descriptor_t *des,
                    mca_btl_base_tag_t tag)
{
    const int rc = refusal((world_btl_t *) btl);

    if (OPAL_SUCCESS == rc) {
        post((world_btl_t *) btl, SEND)->des = des;
    }
    return rc;
}

static int btl_sendi(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, struct opal_convertor_t *convertor, void *header,
                     size_t header_size, size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
                     mca_btl_base_descriptor_t **descriptor)
{
    void (*const meanwhile)(void) = world_in_sendi;
    posted_t *p;
    int rc;

    if (NULL != meanwhile) {
        world_in_sendi = NULL;
        meanwhile();
    }
    rc = refusal((world_btl_t *) btl);

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

static int rdma(struct mca_btl_base_module_t *btl, int kind, void *local, size_t size, const mca_btl_base_registration_handle_t *theirs,
                mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    const int rc = refusal((world_btl_t *) btl);
    posted_t *p;

    if (OPAL_SUCCESS == rc) {
        p = post((world_btl_t *) btl, kind);
        p->local = local;
        p->size = size;
        p->theirs = NULL == theirs ? 0 : *(const uint8_t *) theirs;
        p->done = done;
        p->context = context;
        p->data = data;
    }
    return rc;
}

static int btl_put(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local, uint64_t remote,
                   struct mca_btl_base_registration_handle_t *local_handle, struct mca_btl_base_registration_handle_t *remote_handle, size_t size,
                   int flags, int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    return rdma(btl, PUT, local, size, remote_handle, done, context, data);
}

static int btl_get(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *local, uint64_t remote,
                   struct mca_btl_base_registration_handle_t *local_handle, struct mca_btl_base_registration_handle_t *remote_handle, size_t size,
                   int flags, int order, mca_btl_base_rdma_completion_fn_t done, void *context, void *data)
{
    return rdma(btl, GET, local, size, remote_handle, done, context, data);
}

static mca_btl_base_registration_handle_t *btl_register(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint, void *base,
                                                        size_t size, uint32_t flags)
{
    mca_btl_base_registration_handle_t *handle;

    if (world_refuse_memory > 0) {
        --world_refuse_memory;
        return NULL;
    }
    handle = calloc(1, WORLD_HANDLE);
    if (NULL != handle) {
        *(uint8_t *) handle = WORLD_HANDLE_OF((world_btl_t *) btl - world_btl);
    }
    return handle;
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
    for (const posted_t *p = posted; NULL != p; p = p->next) {
        if (&p->btl->super == btl) {
            return false;
        }
    }
    return true;
}

static int ext_fence(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc, uint8_t rail, uint16_t gen)
{
    fence_begin((world_btl_t *) btl, rail, gen);
    return OPAL_SUCCESS;
}

static void ext_declare(struct mca_btl_base_module_t *btl, struct opal_proc_t *proc)
{
    for (int b = 0; b < WORLD_ALL_BTLS; ++b) {
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

    *info = (bfo_rail_info_t){.state = dead[b] ? BFO_RAIL_DOWN_LOCAL : BFO_RAIL_UP,
                              .name = (uint8_t) b,
                              .generation = world_btl[b].gen,
                              .returns = world_btl[b].returns,
                              .is_asking = world_btl[b].asks};
    return OPAL_SUCCESS;
}

static bool ext_port_is_up(struct mca_btl_base_module_t *btl)
{
    return true;
}

static void ext_stand_out(mca_btl_base_module_t *btl, opal_proc_t *proc, bool stands_out)
{
    ((world_btl_t *) btl)->stands_out = stands_out;
}

static void ext_share(mca_btl_base_module_t *btl, int directory) {}

static uint32_t ext_penalty(mca_btl_base_module_t *btl, opal_proc_t *proc, bool *is_held)
{
    *is_held = false;
    return 1000;
}

static void ext_name_ports(mca_btl_base_module_t *btl, opal_proc_t *proc, bfo_btl_ports_t *ports)
{
    *ports = (bfo_btl_ports_t){.here = "w0:1 (GUID 0x0)", .there = "w1:1 (GUID 0x1)", .downs = 1};
}

/* ---- steps of the tests ------------------------------------------------------------------------------- */

static mca_btl_base_module_recv_cb_fn_t handlers[256];

void world_receive(world_btl_t *btl, uint8_t tag, const void *bytes, size_t length, size_t split)
{
    const size_t first = split < length ? split : length;
    mca_btl_base_segment_t segments[2] = {{.seg_len = first}, {.seg_len = length - first}};
    mca_btl_base_descriptor_t des = {.des_segments = segments, .des_segment_count = first < length ? 2 : 1};

    if (NULL == handlers[tag]) {
        return;
    }
    for (int i = 0; i < 2; ++i) { /* of the exact size */
        segments[i].seg_addr.pval = malloc(segments[i].seg_len > 0 ? segments[i].seg_len : 1);
    }
    memcpy(segments[0].seg_addr.pval, bytes, first);
    memcpy(segments[1].seg_addr.pval, (const char *) bytes + first, length - first);
    handlers[tag](&btl->super, tag, &des, NULL);
    free(segments[0].seg_addr.pval);
    free(segments[1].seg_addr.pval);
}

void world_put_comes(world_btl_t *btl, const bfo_send_t *req, size_t from, size_t size)
{
    struct {
        bfo_put_hdr_t h;
        char handle[WORLD_HANDLE];
    } put = {.h = {.type = BFO_MSG_PUT,
                   .epoch = bfo_se_epoch(req->m.se),
                   .src_id = bfo_name_id(&req->name),
                   .frag_id = 0xa00000001u,
                   .dst_id = 0x700000001u,
                   .rdma_offset = from,
                   .dst_ptr = 0x20000,
                   .dst_size = size}};

    world_receive(btl, BFO_TAG(BFO_MSG_PUT), &put, sizeof(put), sizeof(put));
}

void world_rget_comes(world_btl_t *btl, size_t length, uint32_t seq)
{
    struct {
        bfo_rget_hdr_t h;
        char handle[WORLD_HANDLE];
    } rget = {.h = {.rndv = {.msg_length = length, .src_id = 0x800000001u}, .frag_id = 0x900000001u, .src_ptr = 0x10000}};

    bfo_hdr_pack_match(&rget.h.rndv.match, BFO_MSG_RGET, BFO_FLAG_CONTIG, 0, 1, 4, seq);
    world_receive(btl, BFO_TAG(BFO_MSG_RGET), &rget, sizeof(rget), sizeof(rget));
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
            p->btl->ext.failed_frag(btl, (struct mca_btl_base_endpoint_t *) p->btl, BFO_TAG(BFO_MSG_MATCH), p->bytes, p->size, status);
        }
        free(p->bytes);
        break;
    case GET:
        if (OPAL_SUCCESS == status) {
            memset(p->local, 0x5a, p->size); /* if this is not the posted buffer, the sanitizer reports it */
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

int world_find(unsigned type)
{
    int n = 0;

    for (const posted_t *p = posted; NULL != p; p = p->next, ++n) {
        const char *bytes = SEND == p->kind ? p->des->des_segments[0].seg_addr.pval : SENDI == p->kind ? p->bytes : NULL;

        if (NULL != bytes ? type == ((const bfo_hdr_t *) bytes)->common.type : type == (PUT == p->kind ? WORLD_PUT : WORLD_GET)) {
            return n;
        }
    }
    return -1;
}

static const posted_t *nth(unsigned n)
{
    const posted_t *p = posted;

    while (n-- > 0) {
        p = p->next;
    }
    return p;
}

world_btl_t *world_btl_of(unsigned n)
{
    return nth(n)->btl;
}

size_t world_size_of(unsigned n)
{
    return nth(n)->size;
}

uint8_t world_handle_of(unsigned n)
{
    return nth(n)->theirs;
}

unsigned world_open_puts(void)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < bfo_load(&bfo.frags.size); ++i) {
        n += BFO_FRAG_PUT == bfo_container(bfo_ids_at(&bfo.frags, i), bfo_frag_t, name)->kind;
    }
    return n;
}

unsigned world_fences(void)
{
    return n_fences;
}

/* B8: all work posted on the rail comes back before the fence of the rail is done. */
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

    if (dead[b] || NULL == btl->super.btl_component) {
        return;
    }
    dead[b] = true;
    bfo_failover_btl_error(&btl->super, MCA_BTL_ERROR_FLAGS_NONFATAL, &world_proc[btl->peer]->super, NULL);
    if (BFO_BTL_EXT_MAGIC == btl->ext.magic) {
        fence_begin(btl, (uint8_t) b, btl->gen);
    }
}

void world_rail_returns_unheard(world_btl_t *btl)
{
    dead[btl - world_btl] = btl->returns = false;
    ++btl->gen;
}

void world_rail_returns(world_btl_t *btl)
{
    world_rail_returns_unheard(btl);
    if (NULL != btl->ext.rail_restored) {
        btl->ext.rail_restored(&btl->super, &world_proc[btl->peer]->super, (uint8_t) (btl - world_btl), btl->gen);
    }
}

void world_rail_is_trusted(world_btl_t *btl, uint16_t gen)
{
    if (NULL != btl->ext.rail_trusted) {
        btl->ext.rail_trusted(&btl->super, &world_proc[btl->peer]->super, (uint8_t) (btl - world_btl), gen);
    }
}

/* ---- making a module, and one life of it -------------------------------------------------------------- */

void world_btl_make(int b, int peer, const mca_btl_base_component_t *component, bool failover)
{
    world_btl_t *btl = &world_btl[b];

    world_list_module(b);
    btl->peer = peer;
    btl->super = (mca_btl_base_module_t){.btl_component = (mca_btl_base_component_t *) component,
                                         .btl_eager_limit = 512,
                                         .btl_rndv_eager_limit = 512,
                                         .btl_max_send_size = 700,
                                         .btl_rdma_pipeline_frag_size = 1500,
                                         .btl_latency = 1,
                                         .btl_bandwidth = 100,
                                         .btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_PUT | MCA_BTL_FLAGS_GET,
                                         .btl_alloc = btl_alloc,
                                         .btl_free = btl_free,
                                         .btl_prepare_src = btl_prepare_src,
                                         .btl_send = btl_send,
                                         .btl_sendi = btl_sendi,
                                         .btl_put = btl_put,
                                         .btl_get = btl_get,
                                         .btl_put_limit = 4000,
                                         .btl_get_limit = 4000};
    if (failover) {
        btl->super.btl_register_mem = btl_register;
        btl->super.btl_deregister_mem = btl_deregister;
        btl->super.btl_registration_handle_size = WORLD_HANDLE;
        btl->ext = (bfo_btl_ext_t){.magic = BFO_BTL_EXT_MAGIC,
                                   .version = BFO_BTL_EXT_VERSION,
                                   .size = sizeof(bfo_btl_ext_t),
                                   .flush = ext_flush,
                                   .fence = ext_fence,
                                   .declare = ext_declare,
                                   .des_peer = ext_des_peer,
                                   .rail_state = ext_rail_state,
                                   .port_is_up = ext_port_is_up,
                                   .name_ports = ext_name_ports,
                                   .penalty = ext_penalty,
                                   .stand_out = ext_stand_out,
                                   .share = ext_share,
                                   .traffic = &btl->traffic};
    }
}

void world_btl_handler(mca_btl_base_tag_t tag, mca_btl_base_module_recv_cb_fn_t handler)
{
    handlers[tag] = handler;
}

void world_btl_begin(void)
{
    world_refuse_busy = world_refuse_dead = world_refuse_memory = 0;
    memset(dead, 0, sizeof(dead));
    for (int b = 0; b < WORLD_ALL_BTLS; ++b) {
        world_btl[b].gen = 0;
        world_btl[b].returns = world_btl[b].asks = false;
    }
}
