/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Identifier tables: an object that the peer may name has a slot, which never changes, and a generation,
 * which changes at every completion. A lookup of a stale identifier finds nothing. DESIGN.txt section 5.
 */
#ifndef PML_BFO_IDS_H
#define PML_BFO_IDS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bfo_assert.h"
#include "formats/pml_bfo_hdr.h"

/* Part of every object with an identifier. */
typedef struct {
    uint32_t slot; /* set once */
    uint32_t gen;  /* never 0; written by the completion of the object */
} bfo_name_t;

#define BFO_IDS_CHUNK_BITS 10
#define BFO_IDS_CHUNK (1u << BFO_IDS_CHUNK_BITS)
#define BFO_IDS_CHUNKS 8192u /* 8 million objects of one kind */

/* The table only grows; entries are never removed. Readers need no lock, because size is published after the entry. */
typedef struct {
    bfo_name_t **chunks[BFO_IDS_CHUNKS];
    uint32_t size;        /* release: bfo_ids_add; acquire: bfo_ids_find */
    pthread_mutex_t lock; /* taken by bfo_ids_add */
} bfo_ids_t;

/* clang-format off */
#define BFO_IDS_INITIALIZER {.lock = PTHREAD_MUTEX_INITIALIZER}
/* clang-format on */

/* Gives `name` a slot and its first generation. Returns 0, or -1: no memory or table full (`name` then has slot 0 and
 * generation 0, and no identifier ever finds it). */
int bfo_ids_add(bfo_ids_t *t, bfo_name_t *name);

/* Frees the table, not the objects. */
void bfo_ids_free(bfo_ids_t *t);

static inline bfo_id_t bfo_name_id(const bfo_name_t *name)
{
    BFO_ASSERT(0 != name->gen);
    return ((bfo_id_t) name->gen << 32) | name->slot;
}

/* Makes every identifier of the object given out so far stale, because the object has completed. */
static inline void bfo_name_retire(bfo_name_t *name)
{
    uint32_t gen = name->gen + 1;

    BFO_ASSERT(1 != gen);
    __atomic_store_n(&name->gen, 0 == gen ? 1 : gen, __ATOMIC_SEQ_CST);
}

/* As bfo_name_retire(), for an object that several threads may find at once under `id`. Returns true to the first of these threads. */
static inline bool bfo_name_claim(bfo_name_t *name, bfo_id_t id, bool threads)
{
    uint32_t gen = (uint32_t) (id >> 32);
    const uint32_t next = UINT32_MAX == gen ? 1 : gen + 1;

    BFO_ASSERT(name->slot == (uint32_t) id);
    BFO_ASSERT(0 != gen);
    if (threads) {
        return __atomic_compare_exchange_n(&name->gen, &gen, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    if (gen != name->gen) {
        return false;
    }
    name->gen = next;
    return true;
}

static inline bfo_name_t *bfo_ids_at(bfo_ids_t *t, uint32_t slot)
{
    BFO_ASSERT(slot < __atomic_load_n(&t->size, __ATOMIC_RELAXED));
    BFO_ASSERT(NULL != t->chunks[slot >> BFO_IDS_CHUNK_BITS]);
    return t->chunks[slot >> BFO_IDS_CHUNK_BITS][slot & (BFO_IDS_CHUNK - 1)];
}

/* The object that `id` names, or NULL if it is stale, forged or 0. */
static inline bfo_name_t *bfo_ids_find(bfo_ids_t *t, bfo_id_t id)
{
    const uint32_t slot = (uint32_t) id;
    bfo_name_t *name;

    if (__builtin_expect(slot >= __atomic_load_n(&t->size, __ATOMIC_ACQUIRE), 0)) {
        return NULL;
    }
    name = bfo_ids_at(t, slot);
    BFO_ASSERT(NULL != name && slot == name->slot);
    return __builtin_expect(__atomic_load_n(&name->gen, __ATOMIC_RELAXED) == (uint32_t) (id >> 32), 1) ? name : NULL;
}

#endif /* PML_BFO_IDS_H */
