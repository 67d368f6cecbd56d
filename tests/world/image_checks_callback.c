/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * I4: a callback finds the message and the attempt for which its descriptor was posted. Posts are noted where the PML calls the BTL, and looked
 * at where the BTL is about to call back.
 */
#include "image_checks.h"

#include "ends/pml_bfo_recv_complete.h"
#include "ends/pml_bfo_send_complete.h"
#include "out/btl_openib_complete.h"
#include "out/btl_openib_rdma.h"
#include "tables/pml_bfo_failover_fsm.h"

#include <string.h>

/* What a descriptor, or the fragment of a transfer, was posted for. */
typedef struct {
    const void *key; /* NULL: a free place */
    const void *request;
    mca_btl_base_completion_fn_t callback; /* of a descriptor */
    uint32_t name, seq;                    /* the request's generation and message */
    uint16_t epoch;
    bool is_send;
} note_t;

/* A place is found by its key and never given back, because descriptors are used again. */
static note_t *notes;
static size_t room, n_notes;

static mca_btl_base_module_send_fn_t send_by;
static mca_btl_base_module_put_fn_t put_by;
static mca_btl_base_module_get_fn_t get_by;

/* ---- notes ---------------------------------------------------------------------------------------------------- */

static note_t *place_in(note_t *table, size_t size, const void *key)
{
    size_t at = (size_t) ((uintptr_t) key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (size - 1);

    while (NULL != table[at].key && key != table[at].key) {
        at = (at + 1) & (size - 1);
    }
    return &table[at];
}

static void grow(void)
{
    const size_t size = 0 == room ? 256 : 2 * room;
    note_t *table = world_room(size * sizeof(*table));

    memset(table, 0, size * sizeof(*table));
    for (size_t i = 0; i < room; ++i) {
        if (NULL != notes[i].key) {
            *place_in(table, size, notes[i].key) = notes[i];
        }
    }
    world_room_ends(notes);
    notes = table;
    room = size;
}

static void note(const void *key, mca_btl_base_completion_fn_t callback, const void *request)
{
    const opal_class_t *class = NULL == request ? NULL : ((const opal_object_t *) request)->obj_class;
    note_t *at;

    if (2 * n_notes >= room) {
        grow();
    }
    at = place_in(notes, room, key);
    n_notes += NULL == at->key;
    *at = (note_t){.key = key};
    if (OBJ_CLASS(bfo_send_t) == class) {
        const bfo_send_t *req = request;

        *at = (note_t){key, req, callback, req->name.gen, req->match_seq, bfo_se_epoch(req->m.se), true};
    } else if (OBJ_CLASS(bfo_recv_t) == class) {
        const bfo_recv_t *req = request;

        *at = (note_t){key, req, callback, req->name.gen, req->match_seq, bfo_se_epoch(req->m.se), false};
    }
}

/* ---- callbacks -------------------------------------------------------------------------------------------------- */

static bool is_as_noted(const note_t *n, const bfo_machine_t *m, uint32_t name, uint32_t seq)
{
    return n->name == name && n->seq == seq && n->epoch == bfo_se_epoch(m->se);
}

static void check(const note_t *n)
{
    const bfo_send_t *send = n->request;
    const bfo_recv_t *recv = n->request;
    const bfo_machine_t *m = n->is_send ? &send->m : &recv->m;
    const unsigned state = bfo_se_state(m->se);
    const uint32_t seq = n->is_send ? send->match_seq : recv->match_seq;

    if (!is_as_noted(n, m, n->is_send ? send->name.gen : recv->name.gen, seq)
        || !(n->is_send ? bfo_send_state_is_open(state) : bfo_recv_state_is_open(state))) {
        world_broken("I4: a callback of message %u in attempt %u finds its %s with message %u, %s in attempt %u", n->seq, n->epoch,
                     n->is_send ? "send" : "receive", seq, n->is_send ? bfo_send_state_name(state) : bfo_recv_state_name(state), bfo_se_epoch(m->se));
    }
}

/* A descriptor whose callback is another one by now has passed its request on to a second copy. */
static void check_frag(const ofo_frag_t *frag)
{
    const note_t *n = 0 == room || frag->is_sendi || NULL == frag->base.des_cbfunc ? NULL : place_in(notes, room, frag);

    if (NULL != n && NULL != n->request && n->callback == frag->base.des_cbfunc && n->request == frag->base.des_cbdata) {
        check(n);
    }
}

static void check_rdma(const ofo_rdma_t *rdma)
{
    const note_t *n = 0 == room ? NULL : place_in(notes, room, rdma->cbdata);

    if (NULL != n && NULL != n->request) {
        check(n);
    }
}

void __real_ofo_send_complete(ofo_frag_t *frag, int status);
void __wrap_ofo_send_complete(ofo_frag_t *frag, int status);
void __wrap_ofo_send_complete(ofo_frag_t *frag, int status)
{
    if (NULL == frag->parts) {
        check_frag(frag);
    }
    for (const ofo_frag_t *part = frag->parts; NULL != part; part = part->next_part) { /* the carrier has no owner */
        check_frag(part);
    }
    __real_ofo_send_complete(frag, status);
}

/* While a part of a transfer is out, its callback has not run. */
void __real_ofo_rdma_part_done(ofo_rdma_t *rdma, int status);
void __wrap_ofo_rdma_part_done(ofo_rdma_t *rdma, int status);
void __wrap_ofo_rdma_part_done(ofo_rdma_t *rdma, int status)
{
    check_rdma(rdma);
    __real_ofo_rdma_part_done(rdma, status);
}

void __real_ofo_rdma_abandon(ofo_rdma_t *rdma);
void __wrap_ofo_rdma_abandon(ofo_rdma_t *rdma);
void __wrap_ofo_rdma_abandon(ofo_rdma_t *rdma)
{
    check_rdma(rdma);
    __real_ofo_rdma_abandon(rdma);
}

/* ---- posts -------------------------------------------------------------------------------------------------------- */

/* Is the callback of such a message for a request? That of any other one may find a request in its descriptor, and does not use it. */
static bool has_owner(mca_btl_base_tag_t tag)
{
    const uint32_t owned = 1u << BFO_MSG_MATCH | 1u << BFO_MSG_RNDV | 1u << BFO_MSG_RGET | 1u << BFO_MSG_FRAG | 1u << BFO_MSG_ACK | 1u << BFO_MSG_PUT
                           | 1u << BFO_MSG_NOTIFY | 1u << BFO_MSG_RACK | 1u << BFO_MSG_RERR;

    return BFO_TAG_BASE < tag && BFO_TAG(BFO_MSG_MAX) > tag && 0 != (owned >> (tag - BFO_TAG_BASE) & 1);
}

static int send_noted(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep, mca_btl_base_descriptor_t *des, mca_btl_base_tag_t tag)
{
    note(des, des->des_cbfunc, has_owner(tag) ? des->des_cbdata : NULL);
    return send_by(btl, ep, des, tag);
}

static void note_transfer(const bfo_frag_t *frag)
{
    note(frag, NULL, NULL != frag->send ? (const void *) frag->send : frag->recv);
}

static int put_noted(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep, void *local, uint64_t remote,
                     mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                     int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    note_transfer(data);
    return put_by(btl, ep, local, remote, local_handle, remote_handle, size, flags, order, callback, context, data);
}

static int get_noted(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *ep, void *local, uint64_t remote,
                     mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
                     int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    note_transfer(data);
    return get_by(btl, ep, local, remote, local_handle, remote_handle, size, flags, order, callback, context, data);
}

void image_check_posts(mca_btl_base_module_t *module)
{
    send_by = module->btl_send;
    module->btl_send = send_noted;
    if (NULL != module->btl_put) {
        put_by = module->btl_put;
        module->btl_put = put_noted;
    }
    if (NULL != module->btl_get) {
        get_by = module->btl_get;
        module->btl_get = get_noted;
    }
}
