/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Kept counters per (context id, peer process). DESIGN.txt section 8.
 */
#include "bfo_config.h"

#include "formats/pml_bfo_seqmap.h"

#include "bfo_assert.h"

#include <stddef.h>
#include <stdlib.h>

static bfo_seqs_t *place_of(const bfo_seqmap_t *m, uint32_t key)
{
    uint32_t i = (key * UINT32_C(0x9e3779b1)) & (m->size - 1);

    BFO_ASSERT(0 != key);
    BFO_ASSERT(0 != m->size && 0 == (m->size & (m->size - 1)));
    BFO_ASSERT(2 * m->used <= m->size); /* the search ends */
    while (0 != m->slots[i].key && key != m->slots[i].key) {
        i = (i + 1) & (m->size - 1);
    }
    return &m->slots[i];
}

static int grow(bfo_seqmap_t *m)
{
    bfo_seqmap_t bigger = {.size = 0 == m->size ? 8 : 2 * m->size, .used = m->used};

    BFO_ASSERT(bigger.size > m->size);
    bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
    if (NULL == bigger.slots) {
        return -1;
    }
    for (uint32_t i = 0; i < m->size; ++i) {
        if (0 != m->slots[i].key) {
            BFO_ASSERT(0 == place_of(&bigger, m->slots[i].key)->key);
            *place_of(&bigger, m->slots[i].key) = m->slots[i];
        }
    }
    free(m->slots);
    *m = bigger;
    return 0;
}

const bfo_seqs_t *bfo_seqmap_find(const bfo_seqmap_t *m, uint32_t ctx)
{
    const bfo_seqs_t *s = 0 == m->size ? NULL : place_of(m, ctx + 1);

    BFO_ASSERT(NULL == s || 0 == s->key || ctx + 1 == s->key);
    return NULL != s && 0 != s->key ? s : NULL;
}

int bfo_seqmap_store(bfo_seqmap_t *m, uint32_t ctx, uint32_t next_send, uint32_t next_recv)
{
    bfo_seqs_t *s = 0 == m->size ? NULL : place_of(m, ctx + 1);

    if (NULL == s || 0 == s->key) {
        if (2 * (m->used + 1) > m->size && 0 != grow(m)) {
            return -1;
        }
        s = place_of(m, ctx + 1);
        BFO_ASSERT(0 == s->key);
        ++m->used;
    }
    BFO_ASSERT(2 * m->used <= m->size);
    BFO_ASSERT(0 == s->key || ctx + 1 == s->key);
    *s = (bfo_seqs_t){.key = ctx + 1, .next_send = next_send, .next_recv = next_recv, .taken = next_recv};
    return 0;
}

int bfo_seqmap_skip(bfo_seqmap_t *m, uint32_t ctx, uint32_t next_recv)
{
    if (NULL == bfo_seqmap_find(m, ctx) && 0 != bfo_seqmap_store(m, ctx, 0, 0)) {
        return -1;
    }
    BFO_ASSERT((int32_t) (next_recv - place_of(m, ctx + 1)->next_recv) >= 0); /* counters are never reset */
    place_of(m, ctx + 1)->next_recv = next_recv;
    return 0;
}

void bfo_seqmap_free(bfo_seqmap_t *m)
{
    BFO_ASSERT((NULL == m->slots) == (0 == m->size));
    free(m->slots);
    *m = (bfo_seqmap_t){0};
}
