/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * ULFM's own messages (its broadcasts and agreements) go to the first BTL of a process and bypass the PML, and ULFM forgets those that fail.
 * On rails with failover the BTL offers them to the PML. The PML sends each as FOREIGN over any rail that is up, and again if a rail
 * is lost with it. The receiver hands each up once, in the order of their numbers, as the BTL would have. DESIGN.txt section 14.11.
 */
#include "types/pml_bfo.h"

#include "types/pml_bfo_extension.h"
#include "failover/pml_bfo_failover_peer.h"
#include "types/pml_bfo_local.h"
#include "rails/pml_bfo_post.h"
#include "rails/pml_bfo_rails.h"
#include "ulfm/pml_bfo_ulfm_tags.h"

#if BFO_OMPI_HAS_ULFM && PML_BFO
#include "opal/mca/btl/base/base.h"

#include <stdlib.h>

enum { HELD_MOST = 4096 }; /* a correct sender has fewer in flight */

typedef struct bfo_foreign_t {
    struct bfo_foreign_t *next;
    uint32_t number;
    mca_btl_base_tag_t tag;
    size_t length;
    char data[];
} bfo_foreign_t;

static bool is_ours(uint8_t tag)
{
    return MCA_BTL_TAG_FT_RBCAST == tag || MCA_BTL_TAG_FT_AGREE == tag;
}

/* ---- out ---------------------------------------------------------------------------------------------- */

/* Does a message of this length, header included, fit into a send of every rail? */
static bool fits(const bfo_peer_t *peer, size_t length)
{
    bool does = true;

    for (uint8_t r = 0; r < peer->n_rails; ++r) {
        does = does && length <= peer->rails[r].btl->btl_max_send_size;
    }
    return does;
}

static bool take(mca_btl_base_module_t *btl, opal_proc_t *proc, mca_btl_base_tag_t tag, const void *data, size_t length)
{
    bfo_peer_t *peer = bfo_peer_get((ompi_proc_t *) proc);
    const size_t size = sizeof(bfo_foreign_hdr_t) + length;
    bfo_foreign_hdr_t *h;

    if (!is_ours(tag) || NULL == peer || !bfo_peer_is_ready(peer) || peer->declared || !peer->failover || !fits(peer, size)) {
        return false;
    }
    h = malloc(size);
    if (NULL == h) {
        return false;
    }
    *h = (bfo_foreign_hdr_t){.type = BFO_MSG_FOREIGN,
                             .tag = tag,
                             .number = __atomic_add_fetch(&peer->foreign_sent, 1, __ATOMIC_RELAXED),
                             .jobid = OPAL_PROC_MY_NAME.jobid,
                             .vpid = OPAL_PROC_MY_NAME.vpid};
    memcpy(h + 1, data, length);
    if (OMPI_SUCCESS != bfo_ctl_send(peer, BFO_ANY_PATH, h, size, NULL, NULL)) {
        bfo_failover_declare(peer, "no rail takes a message of ULFM that has its number");
    }
    free(h);
    return true;
}

/* ---- in ----------------------------------------------------------------------------------------------- */

static void hand_up(mca_btl_base_module_t *btl, const bfo_peer_t *from, mca_btl_base_tag_t tag, const void *data, size_t length)
{
    const mca_btl_active_message_callback_t *callback = &mca_btl_base_active_message_trigger[tag];
    mca_btl_base_segment_t segment = {.seg_addr.pval = (void *) data, .seg_len = length};
    const uint8_t r = bfo_rail_index(from, btl);
    bfo_arrival_t got;

    BFO_ASSERT(is_ours(tag));
    if (NULL == callback->cbfunc || BFO_MAX_RAILS == r) {
        bfo_stat_drop(BFO_STAT_STALE);
        return;
    }
    bfo_arrival_init(&got, &segment);
    bfo_arrival_hand_up(callback, btl, from->rails[r].endpoint, &got, tag);
}

/* Keeps an out-of-order message. False: no memory, or too many. Locks: bfo.lock held. */
static bool hold(bfo_peer_t *from, const bfo_foreign_hdr_t *h, size_t length)
{
    bfo_foreign_t **at = &from->foreign_held, *held;

    BFO_ASSERT(0 < (int32_t) (h->number - from->foreign_heard));
    while (NULL != *at && (int32_t) ((*at)->number - h->number) < 0) {
        at = &(*at)->next;
    }
    if (NULL != *at && (*at)->number == h->number) {
        return true;
    }
    held = h->number - from->foreign_heard > HELD_MOST ? NULL : malloc(sizeof(*held) + length);
    if (NULL == held) {
        return false;
    }
    *held = (bfo_foreign_t){.next = *at, .number = h->number, .tag = h->tag, .length = length};
    memcpy(held->data, h + 1, length);
    *at = held;
    return true;
}

/* Takes the next message in order; without one, hand_up() is at rest again. */
static bfo_foreign_t *next_held(bfo_peer_t *from)
{
    bfo_foreign_t *held;

    BFO_LOCK(&bfo.lock);
    BFO_ASSERT(from->is_handing_up);
    held = from->foreign_held;
    BFO_ASSERT(NULL == held || 0 < (int32_t) (held->number - from->foreign_heard));
    if (NULL != held && from->foreign_heard + 1 == held->number) {
        from->foreign_held = held->next;
        ++from->foreign_heard;
    } else {
        held = NULL;
        from->is_handing_up = false;
    }
    BFO_UNLOCK(&bfo.lock);
    return held;
}

/* One thread at a time hands up, in order. A message that comes meanwhile, over another rail or below the callback, waits for that thread. */
static void arrived(mca_btl_base_module_t *btl, bfo_peer_t *from, const bfo_foreign_hdr_t *h, size_t length)
{
    bfo_foreign_t *held;
    bool is_next, is_kept = true;
    int32_t ahead;

    BFO_LOCK(&bfo.lock);
    ahead = (int32_t) (h->number - from->foreign_heard);
    is_next = 1 == ahead && !from->is_handing_up;
    if (is_next) {
        from->is_handing_up = true;
        ++from->foreign_heard;
    } else if (0 < ahead) {
        is_kept = hold(from, h, length);
    }
    BFO_UNLOCK(&bfo.lock);
    if (ahead <= 0) {
        bfo_stat_drop(BFO_STAT_DUPLICATE);
    } else if (!is_kept) {
        bfo_failover_declare(from, BFO_HOLE);
    } else if (is_next) {
        hand_up(btl, from, h->tag, h + 1, length);
        while (NULL != (held = next_held(from))) {
            hand_up(btl, from, held->tag, held->data, held->length);
            free(held);
        }
    }
}

static void on_foreign(BFO_ARRIVAL_ARGS)
{
    const bfo_foreign_hdr_t *h = des->des_segments[0].seg_addr.pval;
    const size_t length = des->des_segments[0].seg_len;
    ompi_proc_t *proc = bfo_ext_source(btl, des);
    bfo_peer_t *from = NULL == proc ? NULL : bfo_peer_get(proc);

    if (1 != des->des_segment_count || !bfo_hdr_is_valid(BFO_MSG_FOREIGN, h, length, length, 0) || !is_ours(h->tag)) {
        bfo_stat_drop(BFO_STAT_BAD_HEADER);
    } else if (NULL == from || h->jobid != from->proc->super.proc_name.jobid || h->vpid != from->proc->super.proc_name.vpid) {
        bfo_stat_drop(BFO_STAT_WRONG_SOURCE);
    } else if (!bfo_peer_is_ready(from) || from->declared) {
        bfo_stat_drop(BFO_STAT_STALE);
    } else {
        arrived(btl, from, h, length - sizeof(*h));
    }
}

int bfo_ulfm_tags_register(void)
{
    mca_btl_base_selected_module_t *selected;

    if (!BFO_OMPI_ULFM_IS_ON) {
        return OMPI_SUCCESS;
    }
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    {
        bfo_ext_guard(selected->btl_module, take, MCA_BTL_TAG_FT_RBCAST, MCA_BTL_TAG_FT_AGREE);
    }
    return mca_bml.bml_register(BFO_TAG(BFO_MSG_FOREIGN), on_foreign, NULL);
}
#endif /* BFO_OMPI_HAS_ULFM && PML_BFO */
