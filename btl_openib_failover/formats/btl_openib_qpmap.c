/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The map of queue pair numbers: open addressing, at most half full. Old tables are kept for readers. Places of removed entries
 * are not used again; when a table is full, a new table takes the live entries. See DESIGN.txt 15.4, "Shared queues".
 */
#include "formats/btl_openib_qpmap.h"

#include <stddef.h>
#include <stdlib.h>

enum { FIRST_SIZE = 64 };

/* Does not use the place of a removed entry, because a reader may be comparing it. */
static void put(ofo_qpmap_table_t *table, uint32_t number, void *value)
{
    uint32_t i = ofo_qpmap_place(number, table->mask);

    BFO_ASSERT(0 != number && OFO_QPMAP_GONE != number && NULL != value);
    BFO_ASSERT(2 * (table->used + 1) <= table->mask + 1);
    while (0 != table->entry[i].number) {
        i = (i + 1) & table->mask;
    }
    table->entry[i].value = value;
    __atomic_store_n(&table->entry[i].number, number, __ATOMIC_RELEASE);
    ++table->used;
}

static uint32_t count_alive(const ofo_qpmap_table_t *table)
{
    uint32_t alive = 0;

    for (uint32_t i = 0; i <= table->mask; ++i) {
        alive += 0 != table->entry[i].number && OFO_QPMAP_GONE != table->entry[i].number;
    }
    BFO_ASSERT(alive <= table->used);
    return alive;
}

static bool grow(ofo_qpmap_t *map)
{
    ofo_qpmap_table_t *old = map->table, *table;
    uint32_t size = FIRST_SIZE, alive = NULL == old ? 0 : count_alive(old);

    while (size < 4 * alive + 4) {
        size *= 2;
    }
    table = calloc(1, sizeof(*table) + size * sizeof(table->entry[0]));
    if (NULL == table) {
        return false;
    }
    table->mask = size - 1;
    table->older = old;
    for (uint32_t i = 0; NULL != old && i <= old->mask; ++i) {
        if (0 != old->entry[i].number && OFO_QPMAP_GONE != old->entry[i].number) {
            put(table, old->entry[i].number, old->entry[i].value);
        }
    }
    BFO_ASSERT(alive == table->used);
    BFO_ASSERT(2 * (alive + 1) <= table->mask);
    __atomic_store_n(&map->table, table, __ATOMIC_RELEASE);
    return true;
}

bool ofo_qpmap_add(ofo_qpmap_t *map, uint32_t number, void *value)
{
    if ((NULL == map->table || 2 * (map->table->used + 1) > map->table->mask) && !grow(map)) {
        return false;
    }
    BFO_ASSERT(NULL == ofo_qpmap_find(map, number));
    put(map->table, number, value);
    BFO_ASSERT(value == ofo_qpmap_find(map, number));
    return true;
}

void ofo_qpmap_remove(ofo_qpmap_t *map, uint32_t number)
{
    ofo_qpmap_table_t *table = map->table;

    BFO_ASSERT(0 != number && OFO_QPMAP_GONE != number);
    if (NULL == table) {
        return;
    }
    for (uint32_t i = ofo_qpmap_place(number, table->mask); 0 != table->entry[i].number; i = (i + 1) & table->mask) {
        if (table->entry[i].number == number) {
            __atomic_store_n(&table->entry[i].number, OFO_QPMAP_GONE, __ATOMIC_RELEASE);
        }
    }
}

void ofo_qpmap_trim(ofo_qpmap_t *map)
{
    ofo_qpmap_t older = {.table = NULL != map->table ? map->table->older : NULL};

    if (NULL != older.table) {
        BFO_ASSERT(older.table != map->table);
        map->table->older = NULL;
        ofo_qpmap_free(&older);
    }
}

void ofo_qpmap_free(ofo_qpmap_t *map)
{
    while (NULL != map->table) {
        ofo_qpmap_table_t *older = map->table->older;
        free(map->table);
        map->table = older;
    }
}
