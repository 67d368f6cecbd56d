/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One-sided operations of the soak: a window with a slot for each origin and two counters, and all ways to open an epoch.
 * The operations travel as messages of the PML (osc/pt2pt).
 */
#include "soak.h"

#include <stdlib.h>
#include <string.h>

enum { FENCE, POST_START, LOCK, LOCK_ALL }; /* ways to synchronise; in the last two the target makes no call */

typedef struct {
    MPI_Win win;
    size_t slot;                    /* bytes that each origin may write at each target; a multiple of 8 */
    MPI_Aint mine, counter, ticket; /* offsets in each target: this rank's slot, two shared counters */
    unsigned char *memory;
    MPI_Group everybody;
} window_t;

static window_t open_window(soak_t *s)
{
    window_t w = {.slot = (1 + soak_draw_length(s) / 8) * 8};
    size_t slots = w.slot * (size_t) s->size;

    w.mine = (MPI_Aint) ((size_t) s->rank * w.slot);
    w.counter = (MPI_Aint) slots;
    w.ticket = (MPI_Aint) slots + 8;
    w.memory = soak_receive_room(slots + 16);
    memset(w.memory, 0, slots + 16);
    SOAK_MPI(s, MPI_Win_create(w.memory, (MPI_Aint) slots + 16, 1, MPI_INFO_NULL, s->comm, &w.win));
    SOAK_MPI(s, MPI_Comm_group(s->comm, &w.everybody));
    return w;
}

static void close_window(soak_t *s, window_t *w)
{
    SOAK_MPI(s, MPI_Barrier(s->comm));
    SOAK_MPI(s, MPI_Win_free(&w->win));
    SOAK_MPI(s, MPI_Group_free(&w->everybody));
    soak_give_back(s, w->memory, w->slot * (size_t) s->size + 16);
}

/* ---- epochs: of all targets, and of one target within them -------------------------------------------------- */

static void epoch_begin(soak_t *s, const window_t *w, int how)
{
    if (FENCE == how) {
        SOAK_MPI(s, MPI_Win_fence(0, w->win));
    } else if (POST_START == how) {
        SOAK_MPI(s, MPI_Win_post(w->everybody, 0, w->win));
        SOAK_MPI(s, MPI_Win_start(w->everybody, 0, w->win));
    } else if (LOCK_ALL == how) {
        SOAK_MPI(s, MPI_Win_lock_all(0, w->win));
    }
}

static void epoch_end(soak_t *s, const window_t *w, int how)
{
    if (FENCE == how) {
        SOAK_MPI(s, MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
    } else if (POST_START == how) {
        SOAK_MPI(s, MPI_Win_complete(w->win));
        SOAK_MPI(s, MPI_Win_wait(w->win));
    } else if (LOCK_ALL == how) {
        SOAK_MPI(s, MPI_Win_unlock_all(w->win));
    }
}

static void target_begin(soak_t *s, const window_t *w, int how, int target)
{
    if (LOCK == how) {
        SOAK_MPI(s, MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
    }
}

/* With LOCK and LOCK_ALL the operations at the target are complete afterwards. */
static void target_end(soak_t *s, const window_t *w, int how, int target)
{
    if (LOCK == how) {
        SOAK_MPI(s, MPI_Win_unlock(target, w->win));
    } else if (LOCK_ALL == how) {
        SOAK_MPI(s, MPI_Win_flush(target, w->win));
    }
}

/* After all ranks have ended their epochs: opens the window of this rank for its own reads. */
static void own_begin(soak_t *s, const window_t *w)
{
    SOAK_MPI(s, MPI_Barrier(s->comm));
    SOAK_MPI(s, MPI_Win_lock(MPI_LOCK_EXCLUSIVE, s->rank, 0, w->win));
}

static void own_end(soak_t *s, const window_t *w)
{
    SOAK_MPI(s, MPI_Win_unlock(s->rank, w->win));
}

static uint64_t word_at(const window_t *w, MPI_Aint at)
{
    return *(const uint64_t *) (w->memory + at);
}

/* ---- operations --------------------------------------------------------------------------------------------- */

/* Puts a slot at every target and adds to every counter; a get brings back the slot that this rank wrote at its neighbour. */
static void put_and_get(soak_t *s, int how)
{
    window_t w = open_window(s);
    unsigned char *data = soak_room(w.slot * (size_t) s->size), *back = soak_receive_room(w.slot);
    int left = (s->rank + s->size - 1) % s->size, n = (int) w.slot;
    uint64_t one = 1 + (uint64_t) s->rank;

    epoch_begin(s, &w, how);
    for (int i = 0; i < s->size; ++i) {
        int target = (s->rank + i) % s->size;
        unsigned char *from = data + (size_t) target * w.slot;
        soak_fill(from, w.slot, soak_key(s, s->rank, target, 7));
        target_begin(s, &w, how, target);
        SOAK_MPI(s, MPI_Put(from, n, MPI_BYTE, target, w.mine, n, MPI_BYTE, w.win));
        SOAK_MPI(s, MPI_Accumulate(&one, 1, MPI_UINT64_T, target, w.counter, 1, MPI_UINT64_T, MPI_SUM, w.win));
        target_end(s, &w, how, target);
    }
    epoch_end(s, &w, how);
    own_begin(s, &w);
    for (int p = 0; p < s->size; ++p) {
        soak_check(s, w.memory + (size_t) p * w.slot, w.slot, soak_key(s, p, s->rank, 7), "first wrong byte of a put");
    }
    soak_check_equal(s, word_at(&w, w.counter), (uint64_t) s->size * ((uint64_t) s->size + 1) / 2, "sum of accumulates");
    own_end(s, &w);
    epoch_begin(s, &w, how);
    target_begin(s, &w, how, left);
    SOAK_MPI(s, MPI_Get(back, n, MPI_BYTE, left, w.mine, n, MPI_BYTE, w.win));
    target_end(s, &w, how, left);
    epoch_end(s, &w, how);
    soak_check(s, back, w.slot, soak_key(s, s->rank, left, 7), "first wrong byte of a get");
    close_window(s, &w);
    free(data);
    soak_give_back(s, back, w.slot);
}

/* Rput, and then Rget of the same bytes. */
static void requests(soak_t *s, int how)
{
    window_t w = open_window(s);
    unsigned char *data = soak_room(w.slot), *back = soak_receive_room(w.slot);
    int n = (int) w.slot;

    epoch_begin(s, &w, how);
    for (int i = 0; i < s->size; ++i) {
        int target = (s->rank + i) % s->size;
        MPI_Request request;
        soak_fill(data, w.slot, soak_key(s, s->rank, target, 8));
        SOAK_MPI(s, MPI_Rput(data, n, MPI_BYTE, target, w.mine, n, MPI_BYTE, w.win, &request));
        SOAK_MPI(s, MPI_Wait(&request, MPI_STATUS_IGNORE)); /* the buffer is free, but the data may not have arrived */
        memset(data, 0, w.slot);
        target_end(s, &w, how, target);
        SOAK_MPI(s, MPI_Rget(back, n, MPI_BYTE, target, w.mine, n, MPI_BYTE, w.win, &request));
        SOAK_MPI(s, MPI_Wait(&request, MPI_STATUS_IGNORE));
        soak_check(s, back, w.slot, soak_key(s, s->rank, target, 8), "first wrong byte of an Rget");
    }
    epoch_end(s, &w, how);
    own_begin(s, &w);
    for (int p = 0; p < s->size; ++p) {
        soak_check(s, w.memory + (size_t) p * w.slot, w.slot, soak_key(s, p, s->rank, 8), "first wrong byte of an Rput");
    }
    own_end(s, &w);
    close_window(s, &w);
    free(data);
    soak_give_back(s, back, w.slot);
}

/* Replaces this rank's slot at each target, then adds to it; each call returns the old contents. */
static void get_accumulate(soak_t *s, int how)
{
    window_t w = open_window(s);
    int n = (int) (w.slot / 8);
    uint64_t *first = soak_room(w.slot), *second = soak_room(w.slot), *before = soak_receive_room(w.slot);

    epoch_begin(s, &w, how);
    for (int i = 0; i < s->size; ++i) {
        int target = (s->rank + i) % s->size;
        soak_fill(first, w.slot, soak_key(s, s->rank, target, 9));
        soak_fill(second, w.slot, soak_key(s, s->rank, target, 10));
        target_begin(s, &w, how, target);
        SOAK_MPI(s, MPI_Get_accumulate(first, n, MPI_UINT64_T, before, n, MPI_UINT64_T, target, w.mine, n, MPI_UINT64_T, MPI_REPLACE, w.win));
        target_end(s, &w, how, target);
        for (int k = 0; k < n; ++k) {
            soak_check_equal(s, before[k], 0, "number in a slot before the first Get_accumulate");
        }
        target_begin(s, &w, how, target);
        SOAK_MPI(s, MPI_Get_accumulate(second, n, MPI_UINT64_T, before, n, MPI_UINT64_T, target, w.mine, n, MPI_UINT64_T, MPI_SUM, w.win));
        target_end(s, &w, how, target);
        soak_check(s, before, w.slot, soak_key(s, s->rank, target, 9), "first wrong byte of a Get_accumulate");
    }
    epoch_end(s, &w, how);
    own_begin(s, &w);
    for (int p = 0; p < s->size; ++p) {
        soak_fill(first, w.slot, soak_key(s, p, s->rank, 9));
        soak_fill(second, w.slot, soak_key(s, p, s->rank, 10));
        for (int k = 0; k < n; ++k) {
            soak_check_equal(s, word_at(&w, (MPI_Aint) ((size_t) p * w.slot) + 8 * k), first[k] + second[k], "sum in a slot");
        }
    }
    own_end(s, &w);
    close_window(s, &w);
    free(first);
    free(second);
    soak_give_back(s, before, w.slot);
}

/* Each rank draws a ticket at each target; every number goes to exactly one rank. */
static void tickets(soak_t *s, int how)
{
    window_t w = open_window(s);
    uint64_t one = 1, drawn[SOAK_MAX_RANKS], of_all[SOAK_MAX_RANKS];

    epoch_begin(s, &w, how);
    for (int i = 0; i < s->size; ++i) {
        int target = (s->rank + i) % s->size;
        uint64_t ticket = UINT64_MAX;
        target_begin(s, &w, how, target);
        SOAK_MPI(s, MPI_Fetch_and_op(&one, &ticket, MPI_UINT64_T, target, w.ticket, MPI_SUM, w.win));
        target_end(s, &w, how, target);
        soak_check_equal(s, ticket < (uint64_t) s->size, 1, "ticket below the number of ranks (1: yes)");
        drawn[target] = UINT64_C(1) << ticket;
    }
    epoch_end(s, &w, how);
    SOAK_MPI(s, MPI_Allreduce(drawn, of_all, s->size, MPI_UINT64_T, MPI_SUM, s->comm));
    for (int p = 0; p < s->size; ++p) {
        soak_check_equal(s, of_all[p], (UINT64_C(1) << s->size) - 1, "tickets that were drawn, as bits");
    }
    own_begin(s, &w);
    soak_check_equal(s, word_at(&w, w.ticket), (uint64_t) s->size, "tickets drawn here");
    own_end(s, &w);
    close_window(s, &w);
}

/* Compare_and_swap at one place; returns the old value. */
static uint64_t swap(soak_t *s, const window_t *w, int how, int target, MPI_Aint at, uint64_t expected, uint64_t value)
{
    uint64_t before = UINT64_MAX;

    target_begin(s, w, how, target);
    SOAK_MPI(s, MPI_Compare_and_swap(&value, &expected, &before, MPI_UINT64_T, target, at, w->win));
    target_end(s, w, how, target);
    return before;
}

/* In this rank's slot the first and the third swap succeed. All ranks compete for the counter of each target, and one rank wins. */
static void swaps(soak_t *s, int how)
{
    window_t w = open_window(s);
    uint64_t won[SOAK_MAX_RANKS], of_all[SOAK_MAX_RANKS];

    epoch_begin(s, &w, how);
    for (int i = 0; i < s->size; ++i) {
        int target = (s->rank + i) % s->size;
        uint64_t first = soak_key(s, s->rank, target, 11) | 1, last = soak_key(s, s->rank, target, 12);
        uint64_t winner = swap(s, &w, how, target, w.counter, 0, 1 + (uint64_t) s->rank);
        soak_check_equal(s, winner <= (uint64_t) s->size && winner != 1 + (uint64_t) s->rank, 1, "a winner before this rank");
        won[target] = 0 == winner ? 1 + (uint64_t) s->rank : 0;
        soak_check_equal(s, swap(s, &w, how, target, w.mine, 0, first), 0, "value that the first swap found");
        soak_check_equal(s, swap(s, &w, how, target, w.mine, 0, last), first, "value that a failing swap found");
        soak_check_equal(s, swap(s, &w, how, target, w.mine, first, last), first, "value that the last swap found");
    }
    epoch_end(s, &w, how);
    SOAK_MPI(s, MPI_Allreduce(won, of_all, s->size, MPI_UINT64_T, MPI_SUM, s->comm));
    own_begin(s, &w);
    soak_check_equal(s, word_at(&w, w.counter), of_all[s->rank], "rank that won here, from 1");
    for (int p = 0; p < s->size; ++p) {
        soak_check_equal(s, word_at(&w, (MPI_Aint) ((size_t) p * w.slot)), soak_key(s, p, s->rank, 12), "value swapped into a slot");
    }
    own_end(s, &w);
    close_window(s, &w);
}

static soak_row_t rows[] = {
    {"Put and Get by fence", put_and_get, FENCE, 0},
    {"Put and Get by post and start", put_and_get, POST_START, 0},
    {"Put and Get by lock", put_and_get, LOCK, 0},
    {"Put and Get by lock_all and flush", put_and_get, LOCK_ALL, 0},
    {"Rput and Rget", requests, LOCK_ALL, 0},
    {"Get_accumulate by lock", get_accumulate, LOCK, 0},
    {"Get_accumulate by lock_all and flush", get_accumulate, LOCK_ALL, 0},
    {"Fetch_and_op by lock", tickets, LOCK, 0},
    {"Fetch_and_op by lock_all and flush", tickets, LOCK_ALL, 0},
    {"Compare_and_swap by lock", swaps, LOCK, 0},
    {"Compare_and_swap by lock_all and flush", swaps, LOCK_ALL, 0},
};
const soak_table_t soak_one_sided = {rows, sizeof(rows) / sizeof(rows[0])};
