/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Collectives. Each rank knows the contribution of every other rank, therefore a wrong result shows what happened to a contribution.
 */
#include "rf.h"

#include <inttypes.h>
#include <string.h>

enum { ELEMENTS = 4096, BLOCK = 4096, MOST_RANKS = 64 };

static uint64_t window_number;
static uint64_t values[ELEMENTS], sums[ELEMENTS];

/* Values are far below 2^64 / MOST_RANKS, so that no two mistakes look alike. */
static uint64_t contribution(int from, uint64_t number, size_t i)
{
    return ((uint64_t) from + 1) * 1000003 + number * 7919 + i * 31;
}

static uint64_t sum_of(uint64_t number, size_t i)
{
    uint64_t sum = 0;

    for (int r = 0; r < rf_ranks; ++r) {
        sum += contribution(r, number, i);
    }
    return sum;
}

static void judge_sum(size_t i)
{
    uint64_t due = sum_of(window_number, i);

    if (sums[i] == due) {
        return;
    }
    for (int r = 0; r < rf_ranks; ++r) {
        uint64_t mine = contribution(r, window_number, i);
        if (sums[i] == due - mine) {
            rf_say_wrong("lost: the contribution of rank %d to sum %" PRIu64, r, window_number);
        }
        if (sums[i] == due + mine) {
            rf_say_wrong("doubled: the contribution of rank %d to sum %" PRIu64, r, window_number);
        }
        if (sums[i] == due - mine + contribution(r, window_number + 1, i)
            || (0 < window_number && sums[i] == due - mine + contribution(r, window_number - 1, i))) {
            rf_say_wrong("swapped: the contribution of rank %d to sum %" PRIu64 " is that to another one", r, window_number);
        }
    }
    rf_say_wrong("flipped: element %zu of sum %" PRIu64 " is %" PRIu64 ", not %" PRIu64, i, window_number, sums[i], due);
}

static void allreduce(void)
{
    for (int turn = 0; turn < RF_WINDOW; ++turn, ++window_number) {
        bool is_lost = rf_is_due(RF_LOSE, window_number) || rf_is_due(RF_DROP, window_number);
        uint64_t times = is_lost ? 0 : rf_is_due(RF_DOUBLE, window_number) ? 2 : 1;
        uint64_t number = window_number + (rf_is_due(RF_SWAP, window_number) ? 1 : 0);

        for (size_t i = 0; i < ELEMENTS; ++i) {
            values[i] = times * contribution(rf_rank, number, i);
        }
        values[ELEMENTS - 1] ^= rf_is_due(RF_FLIP, window_number) ? 1u << 30 : 0;
        memset(sums, 0, sizeof sums);
        RF_MPI(MPI_Allreduce, (values, sums, ELEMENTS, MPI_UINT64_T, MPI_SUM, rf_world));
        for (size_t i = 0; i < ELEMENTS; ++i) {
            judge_sum(i);
        }
        rf_count();
    }
}

static rf_flow_t out[MOST_RANKS], in[MOST_RANKS];
static uint8_t *sent, *received;

static void begin_alltoall(void)
{
    if (rf_ranks > MOST_RANKS) {
        rf_skip("alltoall is for at most %d ranks", MOST_RANKS);
    }
    if (RF_DOUBLE == rf_wrong) {
        rf_skip("no block of alltoall can come twice");
    }
    sent = rf_memory((size_t) rf_ranks * BLOCK);
    received = rf_memory((size_t) rf_ranks * BLOCK);
    for (int r = 0; r < rf_ranks; ++r) {
        out[r] = (rf_flow_t){(uint32_t) rf_rank, (uint32_t) r, 0, BLOCK, BLOCK, 0, 0, RF_NONE};
        in[r] = (rf_flow_t){(uint32_t) r, (uint32_t) rf_rank, 0, BLOCK, BLOCK, 0, 0, RF_NONE};
    }
}

static void alltoall(void)
{
    for (int turn = 0; turn < RF_WINDOW; ++turn) {
        bool is_lost = rf_is_due(RF_LOSE, out[0].next) || rf_is_due(RF_DROP, out[0].next); /* then the previous block is sent again */
        bool is_swapped = rf_is_due(RF_SWAP, out[0].next);

        for (int r = 0; r < rf_ranks; ++r) {
            if (!is_lost) {
                rf_fill(&out[is_swapped ? rf_ranks - 1 - r : r], out[r].next, sent + (size_t) r * BLOCK);
            }
            ++out[r].next;
        }
        memset(received, 0, (size_t) rf_ranks * BLOCK);
        RF_MPI(MPI_Alltoall, (sent, BLOCK, MPI_BYTE, received, BLOCK, MPI_BYTE, rf_world));
        for (int r = 0; r < rf_ranks; ++r) {
            rf_judge_slot(&in[r], in[r].next, received + (size_t) r * BLOCK, BLOCK);
            ++in[r].next;
        }
    }
}

const rf_operation_t rf_coll[] = {
    {"allreduce", 3, NULL, allreduce, NULL, "MPI_Allreduce of 32 kB"},
    {"alltoall", 3, begin_alltoall, alltoall, NULL, "MPI_Alltoall of 4 kB blocks"},
    {NULL, 0, NULL, NULL, NULL, NULL},
};
