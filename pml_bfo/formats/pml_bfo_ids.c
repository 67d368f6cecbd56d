/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Identifier tables: growth. DESIGN.txt section 5.
 */
#include "bfo_config.h"

#include "formats/pml_bfo_ids.h"

#include <stdlib.h>

int bfo_ids_add(bfo_ids_t *t, bfo_name_t *name)
{
    uint32_t slot;
    int rc = -1;

    name->slot = 0;
    name->gen = 0;
    pthread_mutex_lock(&t->lock);
    slot = t->size;
    BFO_ASSERT(slot <= BFO_IDS_CHUNKS * BFO_IDS_CHUNK);
    if (slot < BFO_IDS_CHUNKS * BFO_IDS_CHUNK) {
        bfo_name_t ***chunk = &t->chunks[slot >> BFO_IDS_CHUNK_BITS];

        if (NULL == *chunk) {
            *chunk = calloc(BFO_IDS_CHUNK, sizeof(**chunk));
        }
        if (NULL != *chunk) {
            BFO_ASSERT(NULL == (*chunk)[slot & (BFO_IDS_CHUNK - 1)]);
            name->slot = slot;
            name->gen = 1;
            (*chunk)[slot & (BFO_IDS_CHUNK - 1)] = name;
            __atomic_store_n(&t->size, slot + 1, __ATOMIC_RELEASE);
            BFO_ASSERT(name == bfo_ids_at(t, slot));
            rc = 0;
        }
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

void bfo_ids_free(bfo_ids_t *t)
{
    BFO_ASSERT((0 == t->size) == (NULL == t->chunks[0]));
    __atomic_store_n(&t->size, 0, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < BFO_IDS_CHUNKS && NULL != t->chunks[i]; ++i) {
        free(t->chunks[i]);
        t->chunks[i] = NULL;
    }
}
