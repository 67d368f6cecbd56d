/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One-sided: MPI_Put into the memory of the next rank, MPI_Get from the memory of the rank before, MPI_Accumulate onto counters, between
 * fences. The window of each rank: RF_WINDOW slots for puts, RF_WINDOW slots for gets, and one counter.
 */
#include "rf.h"

#include <inttypes.h>
#include <string.h>

enum { SLOT = 8192, GOT = RF_WINDOW * SLOT, COUNTER = 2 * RF_WINDOW * SLOT, BYTES = COUNTER + 8, ADDED = 1000003 };

static MPI_Win win;
static uint8_t *memory, *buffer;
static rf_flow_t put_out, put_in, get_out, get_in;
static uint64_t turn;

static int after(void)
{
    return (rf_rank + 1) % rf_ranks;
}
static int before(void)
{
    return (rf_rank + rf_ranks - 1) % rf_ranks;
}

static void begin_rma(void)
{
    memory = rf_memory(BYTES);
    buffer = rf_memory(2 * RF_WINDOW * SLOT);
    put_out = (rf_flow_t){(uint32_t) rf_rank, (uint32_t) after(), 0, SLOT, SLOT, 0, 0, RF_NONE};
    put_in = (rf_flow_t){(uint32_t) before(), (uint32_t) rf_rank, 0, SLOT, SLOT, 0, 0, RF_NONE};
    get_out = (rf_flow_t){(uint32_t) rf_rank, (uint32_t) after(), 1, SLOT, SLOT, 0, 0, RF_NONE};
    get_in = (rf_flow_t){(uint32_t) before(), (uint32_t) rf_rank, 1, SLOT, SLOT, 0, 0, RF_NONE};
    /* The slots have messages from the beginning, so that a slot without a put has an old message. */
    for (int i = 0; i < RF_WINDOW; ++i) {
        rf_fill(&put_in, (uint64_t) i, memory + i * SLOT);
    }
    put_in.next = put_out.next = RF_WINDOW;
    RF_MPI(MPI_Win_create, (memory, BYTES, 1, MPI_INFO_NULL, rf_world, &win));
    RF_MPI(MPI_Win_set_errhandler, (win, MPI_ERRORS_RETURN));
    RF_MPI(MPI_Win_fence, (0, win));
}

static void judge_counter(void)
{
    uint64_t counter, due = turn * ADDED;

    memcpy(&counter, memory + COUNTER, sizeof counter);
    if (counter + ADDED == due) {
        rf_say_wrong("lost: accumulate %" PRIu64 " of rank %d", turn - 1, before());
    }
    if (counter == due + ADDED) {
        rf_say_wrong("doubled: accumulate %" PRIu64 " of rank %d", turn - 1, before());
    }
    if (counter != due) {
        rf_say_wrong("flipped: after %" PRIu64 " accumulates of rank %d the counter is %" PRIu64 ", not %" PRIu64, turn, before(), counter, due);
    }
}

static void rma(void)
{
    static const uint64_t added = ADDED;
    int times = 1;

    for (int i = 0; i < RF_WINDOW; ++i) {
        rf_fill(&get_out, get_out.next + (uint64_t) i, memory + GOT + i * SLOT);
    }
    RF_MPI(MPI_Win_fence, (0, win));
    for (int i = 0; i < RF_WINDOW; ++i) {
        uint64_t number = put_out.next + (uint64_t) i;

        rf_fill(&put_out, RF_SWAP == rf_wrong ? rf_number(number) : number, buffer + i * SLOT);
        times += rf_is_due(RF_DOUBLE, number) ? 1 : 0;
        if (!rf_is_due(RF_LOSE, number) && !rf_is_due(RF_DROP, number)) {
            RF_MPI(MPI_Put, (buffer + i * SLOT, SLOT, MPI_BYTE, after(), (MPI_Aint) i * SLOT, SLOT, MPI_BYTE, win));
        }
        RF_MPI(MPI_Get, (buffer + GOT + i * SLOT, SLOT, MPI_BYTE, before(), (MPI_Aint) (GOT + i * SLOT), SLOT, MPI_BYTE, win));
    }
    for (int i = 0; i < times; ++i) {
        RF_MPI(MPI_Accumulate, (&added, 1, MPI_UINT64_T, after(), COUNTER, 1, MPI_UINT64_T, MPI_SUM, win));
    }
    RF_MPI(MPI_Win_fence, (0, win));
    ++turn;
    for (int i = 0; i < RF_WINDOW; ++i) {
        rf_judge_slot(&put_in, put_in.next + (uint64_t) i, memory + i * SLOT, SLOT);
        rf_judge_slot(&get_in, get_in.next + (uint64_t) i, buffer + GOT + i * SLOT, SLOT);
    }
    judge_counter();
    put_out.next += RF_WINDOW;
    put_in.next += RF_WINDOW;
    get_out.next += RF_WINDOW;
    get_in.next += RF_WINDOW;
}

static void end_rma(void)
{
    RF_MPI(MPI_Win_fence, (0, win));
    RF_MPI(MPI_Win_free, (&win));
}

const rf_operation_t rf_rma[] = {
    {"rma", 2, begin_rma, rma, end_rma, "MPI_Put, MPI_Get, MPI_Accumulate and MPI_Win_fence"},
    {NULL, 0, NULL, NULL, NULL, NULL},
};
