/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A table from the number of a queue pair to its object, because a completion of a shared receive queue names its queue
 * pair by the number alone. Service writes, progress reads without a lock. No Open MPI header. See DESIGN.txt 15.4.
 */
#ifndef BTL_OPENIB_QPMAP_H
#define BTL_OPENIB_QPMAP_H

#include "bfo_assert.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint32_t number; /* 0: never used, OFO_QPMAP_GONE: removed; release: add; acquire: find */
    void *value;
} ofo_qpmap_entry_t;

typedef struct ofo_qpmap_table {
    struct ofo_qpmap_table *older; /* a reader may still look at it */
    uint32_t mask, used;           /* used: entries ever taken */
    ofo_qpmap_entry_t entry[];
} ofo_qpmap_table_t;

typedef struct {
    ofo_qpmap_table_t *table; /* release: growth; acquire: find */
} ofo_qpmap_t;

#define OFO_QPMAP_GONE UINT32_MAX

/* False: out of memory. Context: one writer at a time. */
bool ofo_qpmap_add(ofo_qpmap_t *map, uint32_t number, void *value);
void ofo_qpmap_remove(ofo_qpmap_t *map, uint32_t number);
/* Frees the tables that growth has replaced. Context: the writer, while no thread reads. */
void ofo_qpmap_trim(ofo_qpmap_t *map);
void ofo_qpmap_free(ofo_qpmap_t *map);

/* Queue pairs that are made one after the other have neighbouring numbers; the multiplication scatters them well enough. */
static inline uint32_t ofo_qpmap_place(uint32_t number, uint32_t mask)
{
    BFO_ASSERT(0 == (mask & (mask + 1)));
    return (number * 2654435761u >> 8) & mask;
}

/* The value of that number, or NULL. Any thread. */
static inline void *ofo_qpmap_find(const ofo_qpmap_t *map, uint32_t number)
{
    const ofo_qpmap_table_t *table = __atomic_load_n(&map->table, __ATOMIC_ACQUIRE);

    BFO_ASSERT(OFO_QPMAP_GONE != number);
    if (__builtin_expect(0 == table, 0)) {
        return 0;
    }
    for (uint32_t i = ofo_qpmap_place(number, table->mask);; i = (i + 1) & table->mask) {
        uint32_t found = __atomic_load_n(&table->entry[i].number, __ATOMIC_ACQUIRE);
        if (found == number) {
            BFO_ASSERT(0 != table->entry[i].value);
            return table->entry[i].value;
        }
        if (0 == found) {
            return 0;
        }
    }
}

#endif /* BTL_OPENIB_QPMAP_H */
