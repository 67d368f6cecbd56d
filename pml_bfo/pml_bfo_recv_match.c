/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Matching. A receive with a tag hangs in a bin under (source or any, tag); a message without a receive
 * hangs in four rings, one per kind of receive that may come for it. DESIGN.txt section 14.2.
 */
#include "bfo_config.h"

#include "pml_bfo_recv_match.h"

#include <stdlib.h>

#define FIRST_BINS 16u

static inline uint32_t bin_of(const bfo_bins_t *b, int32_t src, int32_t tag)
{
    const uint32_t h = (uint32_t) tag + (uint32_t) src * UINT32_C(0x9e3779b1);

    return (h ^ (h >> 15)) & b->mask;
}

static int bins_init(bfo_bins_t *b)
{
    b->heads = malloc(FIRST_BINS * sizeof(*b->heads));
    if (NULL == b->heads) {
        return -1;
    }
    b->mask = FIRST_BINS - 1;
    b->count = 0;
    for (uint32_t i = 0; i < FIRST_BINS; ++i) {
        bfo_link_init(&b->heads[i]);
    }
    return 0;
}

int bfo_match_init(bfo_match_t *m)
{
    *m = (bfo_match_t){0};
    bfo_link_init(&m->any_wants);
    bfo_link_init(&m->gots);
    bfo_link_init(&m->own_gots);
    if (0 != bins_init(&m->wants) || 0 != bins_init(&m->gots_key) || 0 != bins_init(&m->gots_tag)) {
        bfo_match_free(m);
        return -1;
    }
    return 0;
}

void bfo_match_free(bfo_match_t *m)
{
    free(m->wants.heads);
    free(m->gots_key.heads);
    free(m->gots_tag.heads);
    m->wants.heads = m->gots_key.heads = m->gots_tag.heads = NULL;
}

void bfo_lane_match_init(bfo_lane_match_t *lane, uint32_t next_recv)
{
    lane->next_recv = next_recv;
    lane->n_early = 0;
    lane->n_open = 0;
    bfo_link_init(&lane->any_tag_wants);
    bfo_link_init(&lane->gots);
    bfo_link_init(&lane->early);
}

/* ---- bins that grow ------------------------------------------------------------------------------ */

typedef uint32_t (*bin_of_element_t)(const bfo_bins_t *b, const bfo_link_t *l);

static uint32_t want_bin(const bfo_bins_t *b, const bfo_link_t *l)
{
    const bfo_want_t *w = bfo_container(l, bfo_want_t, link);

    return bin_of(b, w->src, w->tag);
}

static uint32_t got_key_bin(const bfo_bins_t *b, const bfo_link_t *l)
{
    const bfo_got_t *g = bfo_container(l, bfo_got_t, by_key);

    return bin_of(b, g->src, g->tag);
}

static uint32_t got_tag_bin(const bfo_bins_t *b, const bfo_link_t *l)
{
    const bfo_got_t *g = bfo_container(l, bfo_got_t, by_tag);

    return bin_of(b, BFO_ANY_SOURCE, g->tag);
}

/* Elements of one key stay in one bin and keep their order. Without memory the bins stay as they are. */
static __attribute__((noinline)) void bins_grow(bfo_bins_t *b, bin_of_element_t place)
{
    const uint32_t n = 4 * (b->mask + 1);
    bfo_bins_t bigger = {.heads = malloc(n * sizeof(*b->heads)), .mask = n - 1, .count = b->count};

    if (NULL == bigger.heads) {
        return;
    }
    for (uint32_t i = 0; i < n; ++i) {
        bfo_link_init(&bigger.heads[i]);
    }
    for (uint32_t i = 0; i <= b->mask; ++i) {
        while (!bfo_link_is_empty(&b->heads[i])) {
            bfo_link_t *l = b->heads[i].next;

            bfo_link_remove(l);
            bfo_link_append(&bigger.heads[place(&bigger, l)], l);
        }
    }
    free(b->heads);
    *b = bigger;
}

static inline void bins_add(bfo_bins_t *b, bfo_link_t *l, uint32_t bin, bin_of_element_t place)
{
    bfo_link_append(&b->heads[bin], l);
    if (__builtin_expect(++b->count > 2 * b->mask, 0)) {
        bins_grow(b, place);
    }
}

/* ---- numbers ------------------------------------------------------------------------------------- */

bool bfo_lane_is_held(const bfo_lane_match_t *lane, uint32_t seq)
{
    for (const bfo_link_t *l = lane->early.prev; l != &lane->early; l = l->prev) {
        const int32_t d = (int32_t) (seq - bfo_container(l, bfo_got_t, by_lane)->seq);

        if (d >= 0) {
            return 0 == d;
        }
    }
    return false;
}

void bfo_lane_hold(bfo_lane_match_t *lane, bfo_got_t *got)
{
    bfo_link_t *after = lane->early.prev;

    while (after != &lane->early && (int32_t) (got->seq - bfo_container(after, bfo_got_t, by_lane)->seq) < 0) {
        after = after->prev;
    }
    bfo_link_append(after->next, &got->by_lane);
    ++lane->n_early;
}

bfo_got_t *bfo_lane_next_held(bfo_lane_match_t *lane)
{
    bfo_got_t *got;

    if (bfo_link_is_empty(&lane->early) || 0 != lane->n_open) {
        return NULL;
    }
    got = bfo_container(lane->early.next, bfo_got_t, by_lane);
    if (got->seq != lane->next_recv) {
        return NULL;
    }
    ++lane->next_recv;
    --lane->n_early;
    bfo_link_remove(&got->by_lane);
    return got;
}

/* ---- a message arrives --------------------------------------------------------------------------- */

static inline bfo_want_t *first_want(bfo_match_t *m, int32_t src, int32_t tag)
{
    bfo_link_t *head = &m->wants.heads[bin_of(&m->wants, src, tag)];

    for (bfo_link_t *l = head->next; l != head; l = l->next) {
        bfo_want_t *w = bfo_container(l, bfo_want_t, link);

        if (w->tag == tag && w->src == src) {
            return w;
        }
    }
    return NULL;
}

static bfo_want_t *earlier(bfo_want_t *a, bfo_want_t *b)
{
    return NULL == a || (NULL != b && b->order < a->order) ? b : a;
}

static __attribute__((noinline)) bfo_want_t *first_wild_want(bfo_match_t *m, bfo_lane_match_t *lane, int32_t tag,
                                                             bfo_want_t *best)
{
    best = earlier(best, first_want(m, BFO_ANY_SOURCE, tag));
    if (tag >= 0 && !bfo_link_is_empty(&lane->any_tag_wants)) {
        best = earlier(best, bfo_container(lane->any_tag_wants.next, bfo_want_t, link));
    }
    if (tag >= 0 && !bfo_link_is_empty(&m->any_wants)) {
        best = earlier(best, bfo_container(m->any_wants.next, bfo_want_t, link));
    }
    return best;
}

bfo_want_t *bfo_match_arrive(bfo_match_t *m, bfo_lane_match_t *lane, int32_t src, int32_t tag)
{
    bfo_want_t *want = first_want(m, src, tag);

    if (__builtin_expect(0 != m->n_wild, 0)) {
        want = first_wild_want(m, lane, tag, want);
    }
    if (NULL != want) {
        bfo_match_withdraw(m, want);
    }
    return want;
}

void bfo_match_store(bfo_match_t *m, bfo_lane_match_t *lane, bfo_got_t *got)
{
    bfo_link_append(&m->gots_key.heads[bin_of(&m->gots_key, got->src, got->tag)], &got->by_key);
    bfo_link_append(&m->gots_tag.heads[bin_of(&m->gots_tag, BFO_ANY_SOURCE, got->tag)], &got->by_tag);
    if (__builtin_expect(got->tag >= 0, 1)) {
        bfo_link_append(&lane->gots, &got->by_lane);
        bfo_link_append(&m->gots, &got->by_comm);
    } else {
        bfo_link_init(&got->by_lane);
        bfo_link_append(&m->own_gots, &got->by_comm);
    }
    if (__builtin_expect(++m->n_gots > 2 * m->gots_key.mask, 0)) {
        bins_grow(&m->gots_key, got_key_bin);
        bins_grow(&m->gots_tag, got_tag_bin);
    }
}

/* ---- a receive or a probe ------------------------------------------------------------------------ */

static bfo_got_t *peek_key(bfo_match_t *m, int32_t src, int32_t tag)
{
    bfo_link_t *head = &m->gots_key.heads[bin_of(&m->gots_key, src, tag)];

    for (bfo_link_t *l = head->next; l != head; l = l->next) {
        bfo_got_t *g = bfo_container(l, bfo_got_t, by_key);

        if (g->tag == tag && g->src == src) {
            return g;
        }
    }
    return NULL;
}

static bfo_got_t *peek_tag(bfo_match_t *m, int32_t tag)
{
    bfo_link_t *head = &m->gots_tag.heads[bin_of(&m->gots_tag, BFO_ANY_SOURCE, tag)];

    for (bfo_link_t *l = head->next; l != head; l = l->next) {
        bfo_got_t *g = bfo_container(l, bfo_got_t, by_tag);

        if (g->tag == tag) {
            return g;
        }
    }
    return NULL;
}

bfo_got_t *bfo_match_peek(bfo_match_t *m, bfo_lane_match_t *lane, int32_t src, int32_t tag)
{
    if (__builtin_expect(0 == m->n_gots, 1)) {
        return NULL;
    }
    if (BFO_ANY_TAG != tag) {
        return BFO_ANY_SOURCE != src ? peek_key(m, src, tag) : peek_tag(m, tag);
    }
    if (BFO_ANY_SOURCE != src) {
        return bfo_link_is_empty(&lane->gots) ? NULL : bfo_container(lane->gots.next, bfo_got_t, by_lane);
    }
    return bfo_link_is_empty(&m->gots) ? NULL : bfo_container(m->gots.next, bfo_got_t, by_comm);
}

bfo_got_t *bfo_match_some(const bfo_match_t *m)
{
    const bfo_link_t *ring = bfo_link_is_empty(&m->gots) ? &m->own_gots : &m->gots;

    return bfo_link_is_empty(ring) ? NULL : bfo_container(ring->next, bfo_got_t, by_comm);
}

void bfo_match_take(bfo_match_t *m, bfo_got_t *got)
{
    bfo_link_cut(&got->by_key);
    bfo_link_cut(&got->by_tag);
    bfo_link_cut(&got->by_lane);
    bfo_link_cut(&got->by_comm);
    --m->n_gots;
}

void bfo_match_post(bfo_match_t *m, bfo_lane_match_t *lane, bfo_want_t *want)
{
    want->order = m->next_order++;
    if (__builtin_expect(BFO_ANY_TAG != want->tag, 1)) {
        m->n_wild += BFO_ANY_SOURCE == want->src;
        bins_add(&m->wants, &want->link, bin_of(&m->wants, want->src, want->tag), want_bin);
    } else {
        ++m->n_wild;
        bfo_link_append(BFO_ANY_SOURCE == want->src ? &m->any_wants : &lane->any_tag_wants, &want->link);
    }
}

void bfo_match_withdraw(bfo_match_t *m, bfo_want_t *want)
{
    bfo_link_remove(&want->link);
    m->n_wild -= BFO_ANY_SOURCE == want->src || BFO_ANY_TAG == want->tag;
    m->wants.count -= BFO_ANY_TAG != want->tag;
}
