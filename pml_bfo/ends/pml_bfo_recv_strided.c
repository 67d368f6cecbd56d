/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Payload for a strided buffer: unpacked in order; a part that comes out of order waits in a copy. DESIGN.txt section 14.3.
 */
#include "types/pml_bfo.h"

#include "ends/pml_bfo_recv_unexpected.h"
#include "ends/pml_bfo_recv_strided.h"

#include <string.h>

/* Open MPI's convertor unpacks a strided type reliably only in order; parts that several rails deliver out of
 * order wait in a copy. Locks: unpack_lock held. */
static void strided_unpack(bfo_recv_t *req, const bfo_in_t *in, size_t skip)
{
    opal_convertor_t *convertor = &req->req_recv.req_base.req_convertor;

    for (size_t i = 0; i < in->n_segments; ++i) {
        const mca_btl_base_segment_t *s = &in->segments[i];
        const size_t room = req->unpacked < req->capacity ? req->capacity - req->unpacked : 0;
        struct iovec iov;
        uint32_t n = 1;
        size_t unexpected;

        if (s->seg_len <= skip) {
            skip -= s->seg_len;
            continue;
        }
        iov.iov_base = (char *) s->seg_addr.pval + skip;
        iov.iov_len = s->seg_len - skip < room ? s->seg_len - skip : room;
        req->unpacked += s->seg_len - skip;
        skip = 0;
        unexpected = iov.iov_len;
        if (0 != unexpected) {
            opal_convertor_unpack(convertor, &iov, &n, &unexpected);
        }
    }
    BFO_ASSERT(req->unpacked <= req->length); /* each part was found to lie within the message */
}

/* Keeps a copy of the payload until everything before it has arrived. False: no memory. */
static bool strided_keep(bfo_recv_t *req, size_t offset, const bfo_in_t *in, size_t skip)
{
    bfo_unexpected_frag_t *g = bfo_unexpected_keep(in, NULL);
    bfo_link_t *after = req->ahead.prev;

    if (NULL == g) {
        return false;
    }
    BFO_ASSERT(skip <= g->length);
    memmove(g->data, g->data + skip, g->length - skip);
    g->length -= skip;
    g->offset = offset;
    while (after != &req->ahead && offset < bfo_container(after, bfo_unexpected_frag_t, link)->offset) {
        after = after->prev;
    }
    bfo_link_append(after->next, &g->link);
    return true;
}

bool bfo_recv_place_strided(bfo_recv_t *req, size_t offset, const bfo_in_t *in, size_t skip)
{
    mca_pml_base_request_t *base = &req->req_recv.req_base;
    opal_mutex_t *lock = &bfo.unpack_lock[req->name.slot % 16];
    bool kept = true;

    BFO_LOCK(lock);
    if (!req->prepared) {
        opal_convertor_copy_and_prepare_for_recv(req->lane->peer->proc->super.proc_convertor, &base->req_datatype->super, base->req_count,
                                                 base->req_addr, 0, &base->req_convertor);
        req->unpacked = 0;
        bfo_link_init(&req->ahead);
        req->prepared = true;
        req->extras = true;
    }
    if (offset == req->unpacked) {
        strided_unpack(req, in, skip);
        while (!bfo_link_is_empty(&req->ahead) && req->unpacked == bfo_container(req->ahead.next, bfo_unexpected_frag_t, link)->offset) {
            bfo_unexpected_frag_t *g = bfo_container(req->ahead.next, bfo_unexpected_frag_t, link);
            const mca_btl_base_segment_t segment = {.seg_addr.pval = g->data, .seg_len = g->length};

            bfo_link_remove(&g->link);
            strided_unpack(req, &(bfo_in_t){g->btl, &segment, 1, g->length}, 0);
            bfo_unexpected_free(g);
        }
    } else {
        kept = strided_keep(req, offset, in, skip);
    }
    BFO_UNLOCK(lock);
    return kept;
}

void bfo_recv_forget_ahead(bfo_recv_t *req)
{
    while (req->prepared && !bfo_link_is_empty(&req->ahead)) {
        bfo_unexpected_frag_t *g = bfo_container(req->ahead.next, bfo_unexpected_frag_t, link);

        bfo_link_remove(&g->link);
        bfo_unexpected_free(g);
    }
}
