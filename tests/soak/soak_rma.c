/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One-sided operations of the soak: a window with one slot per origin and a counter; fences, locks, and both kinds of
 * access. They travel as messages of the PML (osc/pt2pt).
 */
#include "soak.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    MPI_Win win;
    size_t slot; /* bytes that each origin may write at each target */
    unsigned char *memory;
    uint64_t *counter; /* behind the slots */
} window_t;

static window_t open_window(soak_t *s)
{
    window_t w = {.slot = (1 + soak_draw_length(s) / 4) * 8};
    size_t bytes = w.slot * (size_t) s->size + 8;

    w.memory = soak_room(bytes);
    memset(w.memory, 0, bytes);
    w.counter = (uint64_t *) (w.memory + w.slot * (size_t) s->size);
    SOAK_MPI(s, MPI_Win_create(w.memory, (MPI_Aint) bytes, 1, MPI_INFO_NULL, s->comm, &w.win));
    return w;
}

/* Put a slot at every target, add to every counter. */
static void access_all(soak_t *s, const window_t *w, unsigned char *data, uint64_t *one, bool locked)
{
    for (int i = 0; i < s->size; ++i) {
        int target = (s->rank + i) % s->size;
        unsigned char *mine = data + (size_t) target * w->slot;
        soak_fill(mine, w->slot, soak_key(s, s->rank, target, 7));
        if (locked) {
            SOAK_MPI(s, MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
        }
        SOAK_MPI(s, MPI_Put(mine, (int) w->slot, MPI_BYTE, target, (MPI_Aint) ((size_t) s->rank * w->slot), (int) w->slot, MPI_BYTE,
                            w->win));
        SOAK_MPI(s, MPI_Accumulate(one, 1, MPI_UINT64_T, target, (MPI_Aint) (w->slot * (size_t) s->size), 1, MPI_UINT64_T, MPI_SUM,
                                   w->win));
        if (locked) {
            SOAK_MPI(s, MPI_Win_unlock(target, w->win));
        }
    }
}

void soak_one_sided(soak_t *s)
{
    bool locked = 0 == soak_draw(s, 2);
    window_t w = open_window(s);
    unsigned char *data = soak_room(w.slot * (size_t) s->size), *back = soak_room(w.slot);
    int left = (s->rank + s->size - 1) % s->size;
    uint64_t one = 1 + (uint64_t) s->rank, sum = (uint64_t) s->size * ((uint64_t) s->size + 1) / 2;

    if (!locked) {
        SOAK_MPI(s, MPI_Win_fence(0, w.win));
    }
    access_all(s, &w, data, &one, locked);
    if (locked) {
        SOAK_MPI(s, MPI_Barrier(s->comm));
        SOAK_MPI(s, MPI_Win_lock(MPI_LOCK_EXCLUSIVE, s->rank, 0, w.win));
    } else {
        SOAK_MPI(s, MPI_Win_fence(0, w.win));
    }
    for (int p = 0; p < s->size; ++p) {
        soak_check(s, w.memory + (size_t) p * w.slot, w.slot, soak_key(s, p, s->rank, 7), "first wrong byte of a put");
    }
    soak_check_equal(s, *w.counter, sum, "sum of accumulates");
    if (locked) {
        SOAK_MPI(s, MPI_Win_unlock(s->rank, w.win));
        SOAK_MPI(s, MPI_Win_lock(MPI_LOCK_SHARED, left, 0, w.win));
    }
    /* what this rank wrote at its neighbour comes back */
    SOAK_MPI(s, MPI_Get(back, (int) w.slot, MPI_BYTE, left, (MPI_Aint) ((size_t) s->rank * w.slot), (int) w.slot, MPI_BYTE, w.win));
    if (locked) {
        SOAK_MPI(s, MPI_Win_unlock(left, w.win));
    } else {
        SOAK_MPI(s, MPI_Win_fence(0, w.win));
    }
    soak_check(s, back, w.slot, soak_key(s, s->rank, left, 7), "first wrong byte of a get");
    SOAK_MPI(s, MPI_Barrier(s->comm));
    SOAK_MPI(s, MPI_Win_free(&w.win));
    free(w.memory);
    free(data);
    free(back);
}
