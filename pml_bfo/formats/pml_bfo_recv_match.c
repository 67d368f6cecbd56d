/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Matching. A receive with a tag is in a bin under (source or any, tag); an unexpected message
 * is in up to four rings, one per kind of receive that may come for it. DESIGN.txt section 14.2.
 */
#include "bfo_config.h"

#include "formats/pml_bfo_recv_match.h"

#include <stdlib.h>

#define FIRST_BINS 16u

/* Spreads keys over the bins even if sources and tags are multiples of a number, above all of a power of two. */
static inline bfo_link_t *bin_of(const bfo_bins_t *b, int32_t src, int32_t tag)
{
    const uint32_t key = (uint32_t) tag + (uint32_t) src * UINT32_C(0x9e3779b1);
    const uint64_t h = (key ^ (key >> 16)) * UINT64_C(0x61c88647);

    BFO_ASSERT(b->mask == (b->n - 1) * sizeof(*b->heads));
    return (bfo_link_t *) (void *) ((char *) b->heads + ((uint32_t) (h ^ (h >> 32)) & b->mask));
}

static int bins_init(bfo_bins_t *b, uint32_t n)
{
    BFO_ASSERT(0 != n && 0 == (n & (n - 1)));
    b->heads = malloc(n * sizeof(*b->heads));
    if (NULL == b->heads) {
        return -1;
    }
    b->n = n;
    b->n_keys = 0;
    b->mask = (n - 1) * (uint32_t) sizeof(*b->heads);
    for (uint32_t i = 0; i < n; ++i) {
        bfo_link_init(&b->heads[i]);
    }
    return 0;
}

int bfo_match_init(bfo_match_t *m)
{
    *m = (bfo_match_t){0};
    bfo_link_init(&m->any_posted);
    bfo_link_init(&m->unexpected);
    bfo_link_init(&m->own_unexpected);
    if (0 != bins_init(&m->posted, FIRST_BINS) || 0 != bins_init(&m->unexpected_key, FIRST_BINS) || 0 != bins_init(&m->unexpected_tag, FIRST_BINS)) {
        bfo_match_free(m);
        return -1;
    }
    return 0;
}

void bfo_match_free(bfo_match_t *m)
{
    free(m->posted.heads);
    free(m->unexpected_key.heads);
    free(m->unexpected_tag.heads);
    m->posted.heads = m->unexpected_key.heads = m->unexpected_tag.heads = NULL;
}

void bfo_lane_match_init(bfo_lane_match_t *lane, uint32_t next_recv)
{
    lane->next_recv = next_recv;
    lane->n_early = 0;
    lane->n_open = 0;
    bfo_link_init(&lane->any_tag_posted);
    bfo_link_init(&lane->unexpected);
    bfo_link_init(&lane->early);
}

/* ---- bins ---------------------------------------------------------------------------------------- */

/* The first element of the key, or NULL. Steps from key to key. */
static inline bfo_keyed_t *bin_find(const bfo_link_t *bin, int32_t src, int32_t tag)
{
    for (bfo_link_t *l = bin->next; l != bin;) {
        bfo_keyed_t *first = bfo_container(l, bfo_keyed_t, link);

        BFO_ASSERT(NULL != first->last);
        BFO_ASSERT(first->last->src == first->src && first->last->tag == first->tag);
        if (first->tag == tag && first->src == src) {
            return first;
        }
        l = first->last->link.next;
    }
    return NULL;
}

static inline void bin_add_first(bfo_bins_t *b, bfo_link_t *bin, bfo_keyed_t *e)
{
    BFO_ASSERT(NULL == bin_find(bin, e->src, e->tag));
    ++b->n_keys;
    e->last = e;
    bfo_link_append(bin, &e->link);
}

/* Adds the element after those of its key. False: it is the first of its key. */
static inline bool bin_add_last(bfo_bins_t *b, bfo_link_t *bin, bfo_keyed_t *e)
{
    bfo_keyed_t *first = bin_find(bin, e->src, e->tag);
    bfo_link_t *last;

    if (NULL == first) {
        bin_add_first(b, bin, e);
        return false;
    }
    BFO_ASSERT(first != e && first->last != e);
    last = &first->last->link;
    e->last = NULL;
    bfo_link_between(last, bin->prev == last ? bin : last->next, &e->link);
    first->last = e;
    return true;
}

/* Makes more bins. Elements of one key keep their order. Without memory the bins stay as they are. */
static __attribute__((noinline, cold)) void bins_grow(bfo_bins_t *b)
{
    bfo_bins_t bigger;

    BFO_ASSERT(b->n_keys > 2 * b->n && 4 * b->n > b->n);
    if (0 != bins_init(&bigger, 4 * b->n)) {
        return;
    }
    for (uint32_t i = 0; i < b->n; ++i) {
        while (!bfo_link_is_empty(&b->heads[i])) {
            bfo_keyed_t *e = bfo_container(b->heads[i].next, bfo_keyed_t, link);

            bfo_link_cut(&e->link);
            (void) bin_add_last(&bigger, bin_of(&bigger, e->src, e->tag), e);
        }
    }
    BFO_ASSERT(bigger.n_keys == b->n_keys);
    free(b->heads);
    *b = bigger;
}

/* Adds an element to a bin that is not empty. */
static __attribute__((noinline)) void bin_add_behind(bfo_bins_t *b, bfo_link_t *bin, bfo_keyed_t *e)
{
    if (!bin_add_last(b, bin, e) && b->n_keys > 2 * b->n) {
        bins_grow(b);
    }
}

static inline void bin_add(bfo_bins_t *b, bfo_link_t *bin, bfo_keyed_t *e)
{
    if (__builtin_expect(bfo_link_is_empty(bin), 1)) {
        bin_add_first(b, bin, e);
    } else {
        bin_add_behind(b, bin, e);
    }
}

/* The element goes while others of its key stay: updates which element is the last of the key. */
static __attribute__((noinline)) void bin_pass_on(const bfo_bins_t *b, const bfo_keyed_t *e)
{
    BFO_ASSERT(e != e->last);
    if (NULL != e->last) {
        BFO_ASSERT(bfo_container(e->link.next, bfo_keyed_t, link)->src == e->src);
        BFO_ASSERT(bfo_container(e->link.next, bfo_keyed_t, link)->tag == e->tag);
        BFO_ASSERT(NULL == bfo_container(e->link.next, bfo_keyed_t, link)->last);
        bfo_container(e->link.next, bfo_keyed_t, link)->last = e->last;
    } else {
        bfo_keyed_t *first = bin_find(bin_of(b, e->src, e->tag), e->src, e->tag);

        BFO_ASSERT(NULL != first && first != e);
        if (first->last == e) {
            first->last = bfo_container(e->link.prev, bfo_keyed_t, link);
        }
    }
}

/* Leaves the links of the element as they are. */
static inline void bin_cut(bfo_bins_t *b, bfo_keyed_t *e)
{
    BFO_ASSERT(0 != b->n_keys);
    if (__builtin_expect(e == e->last, 1)) {
        --b->n_keys;
    } else {
        bin_pass_on(b, e);
    }
    bfo_link_cut(&e->link);
}

/* ---- sequence numbers ---------------------------------------------------------------------------- */

static const bfo_unexpected_t *first_held(const bfo_lane_match_t *lane)
{
    BFO_ASSERT(bfo_link_is_empty(&lane->early) == (0 == lane->n_early));
    return 0 == lane->n_early ? NULL : bfo_container(lane->early.next, bfo_unexpected_t, by_lane);
}

bfo_seq_verdict_t bfo_lane_admit_among(bfo_lane_match_t *lane, uint32_t seq)
{
    const bfo_unexpected_t *first = first_held(lane);

    if (0 == (lane->n_open & ~BFO_LANE_REVOKED) && (NULL == first || seq != first->seq)) {
        const bfo_seq_verdict_t verdict = bfo_lane_admit(lane, seq);

        return BFO_SEQ_NEXT == verdict && 0 != lane->n_open ? BFO_SEQ_NEXT_REVOKED : verdict;
    }
    return (int32_t) (seq - lane->next_recv) < 0 ? BFO_SEQ_DUPLICATE : BFO_SEQ_EARLY;
}

bool bfo_lane_is_held(const bfo_lane_match_t *lane, uint32_t seq)
{
    for (const bfo_link_t *l = lane->early.prev; l != &lane->early; l = l->prev) {
        const int32_t d = (int32_t) (seq - bfo_container(l, bfo_unexpected_t, by_lane)->seq);

        if (d >= 0) {
            return 0 == d;
        }
    }
    return false;
}

void bfo_lane_hold(bfo_lane_match_t *lane, bfo_unexpected_t *unexpected)
{
    bfo_link_t *after = lane->early.prev;

    BFO_ASSERT(0 <= (int32_t) (unexpected->seq - lane->next_recv));
    while (after != &lane->early && (int32_t) (unexpected->seq - bfo_container(after, bfo_unexpected_t, by_lane)->seq) < 0) {
        after = after->prev;
    }
    BFO_ASSERT(after == &lane->early || unexpected->seq != bfo_container(after, bfo_unexpected_t, by_lane)->seq);
    bfo_link_between(after, after->next, &unexpected->by_lane);
    ++lane->n_early;
    BFO_ASSERT(0 != lane->n_early);
}

bfo_unexpected_t *bfo_lane_next_held(bfo_lane_match_t *lane)
{
    bfo_unexpected_t *unexpected;

    BFO_ASSERT(bfo_link_is_empty(&lane->early) == (0 == lane->n_early));
    if (bfo_link_is_empty(&lane->early) || 0 != (lane->n_open & ~BFO_LANE_REVOKED)) {
        return NULL;
    }
    unexpected = bfo_container(lane->early.next, bfo_unexpected_t, by_lane);
    BFO_ASSERT(0 <= (int32_t) (unexpected->seq - lane->next_recv)); /* no second copy was delivered meanwhile */
    if (unexpected->seq != lane->next_recv) {
        return NULL;
    }
    ++lane->next_recv;
    --lane->n_early;
    bfo_link_remove(&unexpected->by_lane);
    BFO_ASSERT(unexpected->seq + 1 == lane->next_recv);
    return unexpected;
}

/* ---- a message arrives --------------------------------------------------------------------------- */

static inline bfo_posted_t *first_want(bfo_match_t *m, int32_t src, int32_t tag)
{
    bfo_keyed_t *first = bin_find(bin_of(&m->posted, src, tag), src, tag);

    return NULL == first ? NULL : bfo_container(first, bfo_posted_t, key);
}

static bfo_posted_t *earlier(bfo_posted_t *a, bfo_posted_t *b)
{
    BFO_ASSERT(NULL == a || NULL == b || a->order != b->order);
    return NULL == a || (NULL != b && b->order < a->order) ? b : a;
}

static __attribute__((noinline)) bfo_posted_t *first_wild_want(bfo_match_t *m, bfo_lane_match_t *lane, int32_t tag, bfo_posted_t *best)
{
    BFO_ASSERT(0 != m->n_wild);
    best = earlier(best, first_want(m, BFO_ANY_SOURCE, tag));
    if (tag >= 0 && !bfo_link_is_empty(&lane->any_tag_posted)) {
        best = earlier(best, bfo_container(lane->any_tag_posted.next, bfo_posted_t, key.link));
    }
    if (tag >= 0 && !bfo_link_is_empty(&m->any_posted)) {
        best = earlier(best, bfo_container(m->any_posted.next, bfo_posted_t, key.link));
    }
    BFO_ASSERT(NULL == best || best->order < m->next_order);
    return best;
}

static inline void withdraw(bfo_match_t *m, bfo_posted_t *posted)
{
    if (__builtin_expect(BFO_ANY_TAG != posted->key.tag, 1)) {
        if (__builtin_expect(BFO_ANY_SOURCE == posted->key.src, 0)) {
            BFO_ASSERT(0 != m->n_wild);
            --m->n_wild;
        }
        bin_cut(&m->posted, &posted->key);
    } else {
        BFO_ASSERT(0 != m->n_wild);
        --m->n_wild;
        bfo_link_cut(&posted->key.link);
    }
    bfo_link_init(&posted->key.link);
}

bfo_posted_t *bfo_match_arrive(bfo_match_t *m, bfo_lane_match_t *lane, int32_t src, int32_t tag)
{
    bfo_posted_t *posted = first_want(m, src, tag);

    BFO_ASSERT(0 <= src);
    if (__builtin_expect(0 != m->n_wild, 0)) {
        posted = first_wild_want(m, lane, tag, posted);
    }
    if (NULL != posted) {
        BFO_ASSERT(src == posted->key.src || BFO_ANY_SOURCE == posted->key.src);
        BFO_ASSERT(BFO_ANY_TAG == posted->key.tag ? 0 <= tag : tag == posted->key.tag);
        withdraw(m, posted);
    }
    return posted;
}

static void add_by_tag(bfo_match_t *m, bfo_unexpected_t *unexpected)
{
    BFO_ASSERT(m->by_tag);
    unexpected->by_tag.src = BFO_ANY_SOURCE;
    unexpected->by_tag.tag = unexpected->by_key.tag;
    bin_add(&m->unexpected_tag, bin_of(&m->unexpected_tag, BFO_ANY_SOURCE, unexpected->by_key.tag), &unexpected->by_tag);
}

/* Stores a message where the bin is not empty, or where bins of tags are in use. */
static __attribute__((noinline)) void store_behind(bfo_match_t *m, bfo_unexpected_t *unexpected, bfo_link_t *bin)
{
    BFO_ASSERT(m->by_tag || !bfo_link_is_empty(bin));
    bin_add(&m->unexpected_key, bin, &unexpected->by_key);
    if (m->by_tag) {
        add_by_tag(m, unexpected);
    }
}

void bfo_match_store(bfo_match_t *m, bfo_lane_match_t *lane, bfo_unexpected_t *unexpected)
{
    const int32_t src = unexpected->by_key.src, tag = unexpected->by_key.tag;
    bfo_link_t *bin = bin_of(&m->unexpected_key, src, tag);

    if (__builtin_expect(tag >= 0, 1)) {
        bfo_link_append(&lane->unexpected, &unexpected->by_lane);
        bfo_link_append(&m->unexpected, &unexpected->by_comm);
    } else {
        bfo_link_init(&unexpected->by_lane);
        bfo_link_append(&m->own_unexpected, &unexpected->by_comm);
    }
    ++m->n_unexpected;
    BFO_ASSERT(0 != m->n_unexpected);
    if (__builtin_expect(bfo_link_is_empty(bin) && !m->by_tag, 1)) {
        bin_add_first(&m->unexpected_key, bin, &unexpected->by_key);
    } else {
        store_behind(m, unexpected, bin);
    }
}

/* ---- a receive or a probe ------------------------------------------------------------------------ */

static bfo_unexpected_t *peek_key(const bfo_match_t *m, int32_t src, int32_t tag)
{
    bfo_keyed_t *first = bin_find(bin_of(&m->unexpected_key, src, tag), src, tag);

    return NULL == first ? NULL : bfo_container(first, bfo_unexpected_t, by_key);
}

/* From now on messages can be found by their tag alone. */
static __attribute__((noinline, cold)) void begin_by_tag(bfo_match_t *m)
{
    const bfo_link_t *rings[2] = {&m->unexpected, &m->own_unexpected};

    BFO_ASSERT(!m->by_tag && 0 == m->unexpected_tag.n_keys);
    m->by_tag = true;
    for (int i = 0; i < 2; ++i) {
        for (bfo_link_t *l = rings[i]->next; l != rings[i]; l = l->next) {
            add_by_tag(m, bfo_container(l, bfo_unexpected_t, by_comm));
        }
    }
}

static bfo_unexpected_t *peek_tag(bfo_match_t *m, int32_t tag)
{
    bfo_keyed_t *first;

    if (__builtin_expect(!m->by_tag, 0)) {
        begin_by_tag(m);
    }
    BFO_ASSERT((0 == m->unexpected_tag.n_keys) == (0 == m->n_unexpected));
    first = bin_find(bin_of(&m->unexpected_tag, BFO_ANY_SOURCE, tag), BFO_ANY_SOURCE, tag);
    return NULL == first ? NULL : bfo_container(first, bfo_unexpected_t, by_tag);
}

bfo_unexpected_t *bfo_match_peek(bfo_match_t *m, bfo_lane_match_t *lane, int32_t src, int32_t tag)
{
    BFO_ASSERT((bfo_link_is_empty(&m->unexpected) && bfo_link_is_empty(&m->own_unexpected)) == (0 == m->n_unexpected));
    BFO_ASSERT((0 == m->unexpected_key.n_keys) == (0 == m->n_unexpected));
    if (__builtin_expect(0 == m->n_unexpected, 1)) {
        return NULL;
    }
    if (BFO_ANY_TAG != tag) {
        return BFO_ANY_SOURCE != src ? peek_key(m, src, tag) : peek_tag(m, tag);
    }
    if (BFO_ANY_SOURCE != src) {
        BFO_ASSERT(NULL != lane);
        return bfo_link_is_empty(&lane->unexpected) ? NULL : bfo_container(lane->unexpected.next, bfo_unexpected_t, by_lane);
    }
    return bfo_link_is_empty(&m->unexpected) ? NULL : bfo_container(m->unexpected.next, bfo_unexpected_t, by_comm);
}

bfo_unexpected_t *bfo_match_some(const bfo_match_t *m)
{
    const bfo_link_t *ring = bfo_link_is_empty(&m->unexpected) ? &m->own_unexpected : &m->unexpected;

    BFO_ASSERT(bfo_link_is_empty(ring) == (0 == m->n_unexpected));
    return bfo_link_is_empty(ring) ? NULL : bfo_container(ring->next, bfo_unexpected_t, by_comm);
}

bfo_unexpected_t *bfo_match_after(const bfo_match_t *m, const bfo_unexpected_t *unexpected)
{
    const bfo_link_t *next = NULL == unexpected ? m->unexpected.next : unexpected->by_comm.next;

    if (&m->unexpected == next) {
        next = m->own_unexpected.next;
    }
    return &m->own_unexpected == next ? NULL : bfo_container(next, bfo_unexpected_t, by_comm);
}

void bfo_match_count_unexpected(const bfo_match_t *m, unsigned *count, uint32_t n)
{
    const bfo_link_t *rings[2] = {&m->unexpected, &m->own_unexpected};

    for (int i = 0; i < 2; ++i) {
        for (const bfo_link_t *l = rings[i]->next; l != rings[i]; l = l->next) {
            const uint32_t src = (uint32_t) bfo_container(l, bfo_unexpected_t, by_comm)->by_key.src;

            if (src < n) {
                ++count[src];
            }
        }
    }
}

/* Takes a message out where others have its key, or where bins of tags are in use. */
static __attribute__((noinline)) void take_among(bfo_match_t *m, bfo_unexpected_t *unexpected)
{
    BFO_ASSERT(m->by_tag || &unexpected->by_key != unexpected->by_key.last);
    bin_cut(&m->unexpected_key, &unexpected->by_key);
    if (m->by_tag) {
        bin_cut(&m->unexpected_tag, &unexpected->by_tag);
    }
}

void bfo_match_take(bfo_match_t *m, bfo_unexpected_t *unexpected)
{
    BFO_ASSERT(0 != m->n_unexpected);
    bfo_link_cut(&unexpected->by_lane);
    bfo_link_cut(&unexpected->by_comm);
    --m->n_unexpected;
    if (__builtin_expect(&unexpected->by_key == unexpected->by_key.last && !m->by_tag, 1)) {
        bin_cut(&m->unexpected_key, &unexpected->by_key);
    } else {
        take_among(m, unexpected);
    }
}

void bfo_match_post(bfo_match_t *m, bfo_lane_match_t *lane, bfo_posted_t *posted)
{
    const int32_t src = posted->key.src, tag = posted->key.tag;

    BFO_ASSERT(0 <= src || BFO_ANY_SOURCE == src);
    posted->order = m->next_order++;
    if (__builtin_expect(BFO_ANY_TAG == tag, 0)) {
        ++m->n_wild;
        bfo_link_append(BFO_ANY_SOURCE == src ? &m->any_posted : &lane->any_tag_posted, &posted->key.link);
        return;
    }
    if (__builtin_expect(BFO_ANY_SOURCE == src, 0)) {
        ++m->n_wild;
    }
    bin_add(&m->posted, bin_of(&m->posted, src, tag), &posted->key);
}

bfo_posted_t *bfo_match_posted_of(bfo_match_t *m, bfo_lane_match_t *lane, int32_t src, uint32_t *bin)
{
    bfo_link_t *any_tag = NULL == lane ? &m->any_posted : &lane->any_tag_posted;

    BFO_ASSERT((BFO_ANY_SOURCE == src) == (NULL == lane) && *bin <= m->posted.n);
    if (!bfo_link_is_empty(any_tag)) {
        BFO_ASSERT(src == bfo_container(any_tag->next, bfo_posted_t, key.link)->key.src);
        return bfo_container(any_tag->next, bfo_posted_t, key.link);
    }
    for (; *bin < m->posted.n; ++*bin) {
        bfo_link_t *head = &m->posted.heads[*bin];

        for (bfo_link_t *l = head->next; l != head; l = l->next) {
            bfo_posted_t *posted = bfo_container(l, bfo_posted_t, key.link);

            if (src == posted->key.src) {
                return posted;
            }
        }
    }
    return NULL;
}

void bfo_match_withdraw(bfo_match_t *m, bfo_posted_t *posted)
{
    withdraw(m, posted);
}
