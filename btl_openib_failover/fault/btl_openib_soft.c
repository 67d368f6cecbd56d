/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The soft verdict: a rail seems silent while another rail to its peer answers. The PML begins no new work there, and sends the messages
 * that it may copy over another rail. The new descriptor takes over the owner of the old one. The old message stays posted without an
 * owner: it keeps its place, slot and credit and is counted as ever, but nobody hears of its end. Therefore each message has one
 * callback, and a rail that fails later returns nothing that a second copy carries. See DESIGN.txt 4 (B11) and 10.2, "Silence".
 */
#include "fault/btl_openib_soft.h"

#include "bfo_assert.h"
#include "types/btl_openib_atomic.h"
#include "types/btl_openib_clock.h"
#include "out/btl_openib_coalesce.h"
#include "fault/btl_openib_deadline.h"
#include "qp/btl_openib_drain.h"
#include "types/btl_openib_log.h"
#include "types/btl_openib_mail.h"

#include <string.h>

enum {
    COPY_LIVES_MS = 60000,  /* the receiver tells first copies from new messages for much longer, at any rate of messages */
    COPIES_PART = 20,       /* copies carry at most a 20th of the bytes that the process has sent, */
    COPIES_FREE = 64 * 1024 /* and so many bytes more */
};

static void nobody_waits(mca_btl_base_module_t *btl, ofo_endpoint_t *ep, mca_btl_base_descriptor_t *des, int status) {}

static bool has_copy(const ofo_frag_t *frag)
{
    return nobody_waits == frag->base.des_cbfunc || (0 < frag->joined && 0 != frag->copied);
}

static uint64_t bytes_sent(void)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < OFO.module_count; ++i) {
        sum += __atomic_load_n(&bfo_traffic_of(&OFO.module[i]->ext)->sent_bytes, __ATOMIC_RELAXED);
    }
    return sum;
}

static bool is_affordable(size_t length)
{
    return __atomic_load_n(&OFO.copied_bytes, __ATOMIC_RELAXED) + length <= bytes_sent() / COPIES_PART + COPIES_FREE;
}

/* `bytes`: the message of the fragment, or the joined message with this tag. */
static bool offer(ofo_endpoint_t *ep, const ofo_frag_t *frag, uint8_t tag, const void *bytes, size_t length)
{
    ofo_module_t *module = ep->module;

    return 0 == (frag->base.des_flags & BFO_BTL_DES_COPY)
           && module->ext.send_again(&module->super, ep->peer->proc, tag, bytes, length, frag->is_sendi ? NULL : &frag->base);
}

static bool offer_whole(ofo_endpoint_t *ep, const ofo_frag_t *frag)
{
    return offer(ep, frag, frag->hdr->tag, frag->segment.seg_addr.pval, frag->segment.seg_len);
}

/* ---- posted messages ------------------------------------------------------------------------------ */

/* Only the holder of the poll lock ends messages, so a message that is out stays out. The lock makes what another thread has written before
 * its post visible. */
static bool is_out(ofo_endpoint_t *ep, const ofo_qpset_t *qps, const ofo_frag_t *frag)
{
    bool is = qps == frag->work.qps;

    if (is) {
        OPAL_THREAD_LOCK(&ep->lock);
        is = qps == frag->work.qps;
        OPAL_THREAD_UNLOCK(&ep->lock);
    }
    return is;
}

static void count_copy(ofo_endpoint_t *ep, size_t length)
{
    (void) __atomic_add_fetch(&OFO.copied_bytes, length, __ATOMIC_RELAXED);
    ++ep->module->count.copies;
}

static void copy(ofo_endpoint_t *ep, ofo_frag_t *frag)
{
    const uint64_t now = ofo_now_ms();

    if (has_copy(frag) || !is_affordable(frag->segment.seg_len) || !offer_whole(ep, frag)) {
        return;
    }
    count_copy(ep, frag->segment.seg_len);
    OPAL_THREAD_LOCK(&ep->lock);
    frag->is_sendi = false;
    frag->base.des_cbfunc = nobody_waits;
    frag->base.des_flags |= MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
    frag->copied_at = now;
    ep->copies_due = 0 == ep->copies_due ? now + COPY_LIVES_MS : ep->copies_due;
    OPAL_THREAD_UNLOCK(&ep->lock);
}

static void copy_joined(ofo_endpoint_t *ep, ofo_frag_t *frag)
{
    const uint8_t *bytes = frag->segment.seg_addr.pval;
    const uint64_t now = ofo_now_ms();
    size_t at = 0;
    ofo_part_t part;

    for (unsigned i = 0; ofo_parts_next(bytes, frag->segment.seg_len, &at, &part); ++i) {
        if ((frag->copied >> i & 1) || !is_affordable(part.length) || !offer(ep, frag, part.tag, bytes + part.at, part.length)) {
            continue;
        }
        count_copy(ep, part.length);
        OPAL_THREAD_LOCK(&ep->lock);
        frag->copied_at = 0 == frag->copied ? now : frag->copied_at;
        frag->copied |= UINT64_C(1) << i;
        ep->copies_due = 0 == ep->copies_due ? now + COPY_LIVES_MS : ep->copies_due;
        OPAL_THREAD_UNLOCK(&ep->lock);
    }
}

static void copy_messages(ofo_endpoint_t *ep, ofo_frag_t *frag)
{
    if (0 < frag->joined) {
        copy_joined(ep, frag);
    } else {
        copy(ep, frag);
    }
}

/* Copies of other modules make new fragments only in those modules' lists. */
static void copy_posted(ofo_endpoint_t *ep, const ofo_qpset_t *qps)
{
    for (ofo_frag_t *frag = OFO_LOAD(ep->module->all_frags); NULL != frag; frag = frag->next_of_all) {
        if (!is_out(ep, qps, frag)) {
            continue;
        }
        if (NULL == frag->parts) {
            copy_messages(ep, frag);
        }
        for (ofo_frag_t *part = frag->parts; NULL != part; part = part->next_part) {
            copy_messages(ep, part);
        }
    }
}

/* ---- messages that wait ---------------------------------------------------------------------------- */

static void count_moved(ofo_endpoint_t *ep, uint32_t messages, int fragments)
{
    OPAL_THREAD_LOCK(&ep->lock);
    BFO_ASSERT(messages <= ep->sends_out && fragments <= (int) ep->pending_count);
    ep->sends_out -= messages;
    OFO_ADD(ep->pending_count, -fragments);
    OPAL_THREAD_UNLOCK(&ep->lock);
}

/* Cuts the joined messages that move out of their fragment. Does none stay? */
static bool move_joined(ofo_endpoint_t *ep, ofo_frag_t *frag)
{
    uint8_t *bytes = frag->segment.seg_addr.pval, stay = 0;
    size_t at = 0, begin = 0, kept = 0;
    ofo_part_t part;

    for (; ofo_parts_next(bytes, frag->segment.seg_len, &at, &part); begin = at) {
        if (!offer(ep, frag, part.tag, bytes + part.at, part.length)) {
            memmove(bytes + kept, bytes + begin, at - begin);
            kept += at - begin;
            ++stay;
        }
    }
    count_moved(ep, (uint32_t) (frag->joined - stay), 0 == stay);
    frag->segment.seg_len = kept;
    frag->joined = stay;
    return 0 == stay;
}

/* The message was never posted, so it moves to another rail. */
static bool move(ofo_endpoint_t *ep, ofo_frag_t *frag)
{
    BFO_ASSERT(!has_copy(frag)); /* only posted messages have a copy */
    if (0 < frag->joined) {
        return move_joined(ep, frag);
    }
    if (NULL != frag->parts || !offer_whole(ep, frag)) {
        return false;
    }
    count_moved(ep, 1, 1);
    return true;
}

/* Messages that stay keep their order, and come before those that other threads have added meanwhile. */
static void move_waiting(ofo_endpoint_t *ep, unsigned index)
{
    opal_list_t all, stay;
    opal_list_item_t *item;

    OBJ_CONSTRUCT(&all, opal_list_t);
    OBJ_CONSTRUCT(&stay, opal_list_t);
    OPAL_THREAD_LOCK(&ep->lock);
    opal_list_join(&all, opal_list_get_end(&all), &ep->pending[index]);
    OPAL_THREAD_UNLOCK(&ep->lock);
    while (NULL != (item = opal_list_remove_first(&all))) {
        if (move(ep, (ofo_frag_t *) item)) {
            opal_free_list_return(((ofo_frag_t *) item)->list, (opal_free_list_item_t *) item);
        } else {
            opal_list_append(&stay, item);
        }
    }
    OPAL_THREAD_LOCK(&ep->lock);
    opal_list_join(&ep->pending[index], opal_list_get_first(&ep->pending[index]), &stay);
    OPAL_THREAD_UNLOCK(&ep->lock);
    OBJ_DESTRUCT(&stay);
    OBJ_DESTRUCT(&all);
}

/* ---- the verdict ------------------------------------------------------------------------------------ */

static bool pml_agrees(ofo_endpoint_t *ep, uint16_t gen)
{
    ofo_module_t *module = ep->module;

    return NULL != module->ext.rail_soft && !OFO_LOAD(OFO.closing) && !OFO_LOAD(ep->peer->closing) && ofo_drain_is_live(&ep->qps->drain)
           && module->ext.rail_soft(&module->super, ep->peer->proc, ep->rail, gen, true);
}

static void offer_all(ofo_endpoint_t *ep, const char *to_whom)
{
    ++ep->module->count.soft_rails;
    ofo_log(1, "%s: rail %u to %u seems silent%s, and gets no new work", ep->module->name, ep->rail, ep->peer->name.vpid, to_whom);
    copy_posted(ep, ep->qps);
    for (unsigned i = 0; i < OFO.queues.count; ++i) {
        move_waiting(ep, i);
    }
}

/* The peer hears first, because it can act while this side copies. */
void ofo_soft_begin(ofo_endpoint_t *ep, uint16_t gen)
{
    if (ofo_deadline_still_waits(ep, gen) && pml_agrees(ep, gen)) {
        ofo_tell_service(ep, OFO_MAIL_SOFTENED, gen, NULL, NULL);
        offer_all(ep, "");
    }
}

void ofo_soft_adopt(ofo_endpoint_t *ep, uint16_t gen)
{
    if (NULL != ep->qps && gen == ep->qps->gen && pml_agrees(ep, gen)) {
        offer_all(ep, " there");
    }
}

void ofo_soft_end(ofo_endpoint_t *ep, uint16_t gen)
{
    ofo_module_t *module = ep->module;

    if (NULL != module->ext.rail_soft && !OFO_LOAD(ep->peer->closing)) {
        (void) module->ext.rail_soft(&module->super, ep->peer->proc, ep->rail, gen, false);
    }
}

/* ---- the end of first copies ----------------------------------------------------------------------- */

static void older(uint64_t *oldest, const ofo_frag_t *frag)
{
    if (has_copy(frag) && (0 == *oldest || frag->copied_at < *oldest)) {
        *oldest = frag->copied_at;
    }
}

/* When the oldest first copy that is still out got its second one; 0: none is out. */
static uint64_t oldest_copied(ofo_endpoint_t *ep, const ofo_qpset_t *qps)
{
    uint64_t oldest = 0;

    for (ofo_frag_t *frag = OFO_LOAD(ep->module->all_frags); NULL != frag; frag = frag->next_of_all) {
        if (is_out(ep, qps, frag)) {
            older(&oldest, frag);
            for (const ofo_frag_t *part = frag->parts; NULL != part; part = part->next_part) {
                older(&oldest, part);
            }
        }
    }
    return oldest;
}

void ofo_soft_overdue(ofo_endpoint_t *ep, uint16_t gen)
{
    ofo_qpset_t *qps = ep->qps;
    const bool is_live = NULL != qps && gen == qps->gen && ofo_drain_is_live(&qps->drain);
    const uint64_t oldest = is_live ? oldest_copied(ep, qps) : 0;

    OPAL_THREAD_LOCK(&ep->lock);
    ep->copies_due = 0 == oldest ? 0 : oldest + COPY_LIVES_MS;
    OPAL_THREAD_UNLOCK(&ep->lock);
    if (0 != oldest && ofo_now_ms() >= oldest + COPY_LIVES_MS) {
        ofo_rail_failed(qps, "a message that another rail has carried as well is still out");
    }
}
