/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Operations between two ranks, or from all ranks to rank 0. Each window has RF_WINDOW messages of each flow.
 */
#include "rf_post.h"

#include <string.h>
#include <time.h>

enum { DATA_TAG = 7, IDLE_NS = 300000000 };
enum { SMALL_LEAST = 40, SMALL_MOST = 2000, LARGE_LEAST = 200000, LARGE_MOST = 400000, MIXED_MOST = 100000 };

static rf_post_t out, in, from_all[16]; /* this rank's flow to its partner, and back; rank 0: from each other rank */
static MPI_Request sends[RF_WINDOW], receives[RF_WINDOW];
static MPI_Datatype strided;
static uint8_t *spread_out, *spread_in;

/* Ranks 0 and 1 are partners, 2 and 3, and so on; a rank without a partner sends to itself. */
static int partner(void)
{
    return (rf_rank ^ 1) < rf_ranks ? rf_rank ^ 1 : rf_rank;
}

static void begin(size_t least, size_t most)
{
    rf_post_begin(&out, (uint32_t) rf_rank, (uint32_t) partner(), 0, least, most);
    rf_post_begin(&in, (uint32_t) partner(), (uint32_t) rf_rank, 0, least, most);
}
static void begin_small(void)
{
    begin(SMALL_LEAST, SMALL_MOST);
}
static void begin_large(void)
{
    begin(LARGE_LEAST, LARGE_MOST);
}
static void begin_mixed(void)
{
    begin(SMALL_LEAST, MIXED_MOST);
}

/* MPI_Send and MPI_Recv, one way and then the other. */
static void eager(void)
{
    for (int turn = 0; turn < 2; ++turn) {
        if (partner() == rf_rank) {
            return; /* no rank would receive what this rank sends */
        }
        for (int i = 0; i < RF_WINDOW; ++i) {
            MPI_Status status;

            if ((0 == turn) == (0 == rf_rank % 2)) {
                int bytes = (int) rf_post_fill(&out, i);
                RF_MPI(MPI_Send, (out.buffer[i], bytes, MPI_BYTE, rf_post_to(&out, i, partner()), DATA_TAG, rf_world));
            } else {
                rf_clear(in.buffer[i], in.flow.most);
                RF_MPI(MPI_Recv, (in.buffer[i], (int) in.flow.most, MPI_BYTE, partner(), DATA_TAG, rf_world, &status));
                rf_post_judge(&in, i, &status);
            }
        }
    }
    out.flow.next += RF_WINDOW;
    rf_judge_end(&in.flow);
}

static void rendezvous(void)
{
    for (int i = 0; i < RF_WINDOW; ++i) {
        int bytes = (int) rf_post_fill(&out, i);
        MPI_Status status;

        rf_clear(in.buffer[i], in.flow.most);
        RF_MPI(MPI_Sendrecv, (out.buffer[i], bytes, MPI_BYTE, rf_post_to(&out, i, partner()), DATA_TAG, in.buffer[i], (int) in.flow.most, MPI_BYTE,
                              partner(), DATA_TAG, rf_world, &status));
        rf_post_judge(&in, i, &status);
    }
    out.flow.next += RF_WINDOW;
    rf_judge_end(&in.flow);
}

static void flood(void)
{
    rf_post_exchange(&out, partner(), &in, partner(), DATA_TAG, rf_world);
}

/* The receiver learns size and sender from MPI_Mprobe. */
static void probe(void)
{
    for (int i = 0; i < RF_WINDOW; ++i) {
        int bytes = (int) rf_post_fill(&out, i);
        RF_MPI(MPI_Isend, (out.buffer[i], bytes, MPI_BYTE, rf_post_to(&out, i, partner()), DATA_TAG, rf_world, &sends[i]));
    }
    for (int i = 0; i < RF_WINDOW; ++i) {
        MPI_Message message;
        MPI_Status status;
        int bytes;

        RF_MPI(MPI_Mprobe, (MPI_ANY_SOURCE, DATA_TAG, rf_world, &message, &status));
        RF_MPI(MPI_Get_count, (&status, MPI_BYTE, &bytes));
        if (bytes < 0 || (size_t) bytes > in.flow.most) {
            rf_say_wrong("wrong length: a message of %d bytes is announced", bytes);
        }
        rf_clear(in.buffer[i], in.flow.most);
        RF_MPI(MPI_Mrecv, (in.buffer[i], bytes, MPI_BYTE, &message, &status));
        rf_post_judge(&in, i, &status);
    }
    rf_waitall(RF_WINDOW, sends);
    out.flow.next += RF_WINDOW;
    rf_judge_end(&in.flow);
}

static void begin_wildcard(void)
{
    rf_post_begin(&out, (uint32_t) rf_rank, 0, 0, SMALL_LEAST, MIXED_MOST);
    for (int r = 1; 0 == rf_rank && r < rf_ranks && r < 16; ++r) {
        rf_post_begin(&from_all[r], (uint32_t) r, 0, 0, SMALL_LEAST, MIXED_MOST);
    }
    /* rank 0 answers each rank with small messages, so that the others receive as well */
    rf_post_begin(&in, 0, (uint32_t) rf_rank, 1, SMALL_LEAST, SMALL_MOST);
}

/* Rank 0 receives from any source with any tag, and answers. */
static void wildcard(void)
{
    static rf_post_t answers[16];
    int places[16] = {0};

    if (0 != rf_rank) {
        rf_post_exchange(&out, 0, &in, 0, DATA_TAG, rf_world);
        return;
    }
    for (int n = 0; n < RF_WINDOW * (rf_ranks - 1); ++n) {
        MPI_Status status;
        int r, i;

        rf_clear(out.buffer[0], MIXED_MOST);
        RF_MPI(MPI_Recv, (out.buffer[0], MIXED_MOST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, rf_world, &status));
        r = status.MPI_SOURCE;
        if (r < 1 || r >= rf_ranks || places[r] == RF_WINDOW) {
            rf_say_wrong("doubled: a message more than rank %d sent", r);
        }
        i = places[r]++;
        if (NULL == answers[r].buffer[0]) {
            rf_post_begin(&answers[r], 0, (uint32_t) r, 1, SMALL_LEAST, SMALL_MOST);
        }
        rf_post_judge_in(&from_all[r], i, out.buffer[0], &status);
        RF_MPI(MPI_Send, (answers[r].buffer[i], (int) rf_post_fill(&answers[r], i), MPI_BYTE, rf_post_to(&answers[r], i, r), DATA_TAG, rf_world));
    }
    for (int r = 1; r < rf_ranks; ++r) {
        rf_judge_end(&from_all[r].flow);
        answers[r].flow.next += RF_WINDOW;
    }
}

static void begin_persistent(void)
{
    begin(SMALL_MOST, SMALL_MOST); /* one size, because persistent requests have a fixed size */
    for (int i = 0; i < RF_WINDOW; ++i) {
        RF_MPI(MPI_Send_init, (out.buffer[i], SMALL_MOST, MPI_BYTE, partner(), DATA_TAG, rf_world, &sends[i]));
        RF_MPI(MPI_Recv_init, (in.buffer[i], (int) in.flow.most, MPI_BYTE, partner(), DATA_TAG, rf_world, &receives[i]));
    }
}

static void persistent(void)
{
    for (int i = 0; i < RF_WINDOW; ++i) {
        rf_clear(in.buffer[i], in.flow.most);
        rf_post_fill(&out, i);
    }
    RF_MPI(MPI_Startall, (RF_WINDOW, receives));
    for (int i = 0; i < RF_WINDOW; ++i) {
        if (MPI_PROC_NULL != rf_post_to(&out, i, partner())) {
            RF_MPI(MPI_Start, (&sends[i]));
        }
    }
    for (int i = 0; i < RF_WINDOW; ++i) {
        MPI_Status status;
        RF_MPI(MPI_Wait, (&receives[i], &status));
        rf_post_judge(&in, i, &status);
    }
    rf_waitall(RF_WINDOW, sends);
    out.flow.next += RF_WINDOW;
    rf_judge_end(&in.flow);
}

static void end_persistent(void)
{
    for (int i = 0; i < RF_WINDOW; ++i) {
        RF_MPI(MPI_Request_free, (&sends[i]));
        RF_MPI(MPI_Request_free, (&receives[i]));
    }
}

/* Sends every second block of eight bytes: the blocks between them must not change. */
enum { BLOCKS = MIXED_MOST / 8 };

static void begin_types(void)
{
    begin(MIXED_MOST, MIXED_MOST);
    spread_out = rf_memory(2 * MIXED_MOST);
    spread_in = rf_memory(2 * MIXED_MOST);
    RF_MPI(MPI_Type_vector, (BLOCKS, 8, 16, MPI_BYTE, &strided));
    RF_MPI(MPI_Type_commit, (&strided));
}

static void types(void)
{
    for (int i = 0; i < RF_WINDOW; ++i) {
        MPI_Status status;
        int bytes;

        rf_post_fill(&out, i);
        for (size_t b = 0; b < BLOCKS; ++b) {
            memcpy(spread_out + 16 * b, out.buffer[i] + 8 * b, 8);
        }
        memset(spread_in, 0x5a, 2 * MIXED_MOST);
        RF_MPI(MPI_Sendrecv,
               (spread_out, 1, strided, rf_post_to(&out, i, partner()), DATA_TAG, spread_in, 1, strided, partner(), DATA_TAG, rf_world, &status));
        RF_MPI(MPI_Get_count, (&status, MPI_BYTE, &bytes));
        rf_clear(in.buffer[i], in.flow.most);
        for (size_t b = 0; b < BLOCKS; ++b) {
            memcpy(in.buffer[i] + 8 * b, spread_in + 16 * b, 8);
            for (size_t k = 8; k < 16; ++k) {
                if (0x5a != spread_in[16 * b + k]) {
                    rf_say_wrong("beyond its end: byte %zu between the blocks of a datatype was changed", 16 * b + k);
                }
            }
        }
        rf_judge(&in.flow, in.flow.next + (uint64_t) i, in.buffer[i], (size_t) bytes);
    }
    out.flow.next += RF_WINDOW;
    rf_judge_end(&in.flow);
}

static void end_types(void)
{
    RF_MPI(MPI_Type_free, (&strided));
}

/* No rank calls MPI for a while: the next message, or a thread of the MPI, notices a rail that is lost meanwhile. */
static void idle(void)
{
    static const struct timespec rest = {0, IDLE_NS};

    nanosleep(&rest, NULL);
    flood();
}

const rf_operation_t rf_p2p[] = {
    {"eager", 2, begin_small, eager, NULL, "MPI_Send and MPI_Recv of up to 2000 bytes"},
    {"rendezvous", 2, begin_large, rendezvous, NULL, "MPI_Sendrecv of 200 to 400 kB"},
    {"flood", 2, begin_mixed, flood, NULL, "MPI_Isend and MPI_Irecv of 40 bytes to 100 kB, both ways at once"},
    {"wildcard", 3, begin_wildcard, wildcard, NULL, "MPI_ANY_SOURCE and MPI_ANY_TAG at rank 0, from all others"},
    {"probe", 2, begin_mixed, probe, NULL, "MPI_Mprobe and MPI_Mrecv of messages of unknown size"},
    {"persistent", 2, begin_persistent, persistent, end_persistent, "MPI_Send_init, MPI_Recv_init, MPI_Start"},
    {"types", 2, begin_types, types, end_types, "a strided datatype of 100 kB"},
    {"idle", 2, begin_mixed, idle, NULL, "flood, with 300 ms without a call to MPI before each window"},
    {NULL, 0, NULL, NULL, NULL, NULL},
};
