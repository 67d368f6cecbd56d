/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One side of a flow: fills, sends, receives and judges the messages of a window.
 */
#include "rf_post.h"

void rf_post_begin(rf_post_t *post, uint32_t from, uint32_t to, uint32_t flow, size_t least, size_t most)
{
    post->flow = (rf_flow_t){from, to, flow, least, most, 0, 0, RF_NONE};
    for (int i = 0; i < RF_WINDOW; ++i) {
        post->buffer[i] = rf_memory(most);
    }
}

size_t rf_post_fill(rf_post_t *post, int i)
{
    return rf_fill(&post->flow, rf_number(post->flow.next + (uint64_t) i), post->buffer[i]);
}

int rf_post_to(const rf_post_t *post, int i, int to)
{
    return rf_is_due(RF_DROP, post->flow.next + (uint64_t) i) ? MPI_PROC_NULL : to;
}

void rf_post_judge_in(rf_post_t *post, int i, const void *buffer, MPI_Status *status)
{
    int bytes;

    RF_MPI(MPI_Get_count, (status, MPI_BYTE, &bytes));
    rf_judge(&post->flow, post->flow.next + (uint64_t) i, buffer, (size_t) bytes);
}

void rf_post_judge(rf_post_t *post, int i, MPI_Status *status)
{
    rf_post_judge_in(post, i, post->buffer[i], status);
}

void rf_post_exchange(rf_post_t *out, int to, rf_post_t *in, int from, int tag, MPI_Comm comm)
{
    MPI_Request receives[RF_WINDOW], sends[RF_WINDOW];

    for (int i = 0; i < RF_WINDOW; ++i) {
        rf_clear(in->buffer[i], in->flow.most);
        RF_MPI(MPI_Irecv, (in->buffer[i], (int) in->flow.most, MPI_BYTE, from, tag, comm, &receives[i]));
    }
    for (int i = 0; i < RF_WINDOW; ++i) {
        RF_MPI(MPI_Isend, (out->buffer[i], (int) rf_post_fill(out, i), MPI_BYTE, rf_post_to(out, i, to), tag, comm, &sends[i]));
    }
    for (int i = 0; i < RF_WINDOW; ++i) {
        MPI_Status status;
        RF_MPI(MPI_Wait, (&receives[i], &status));
        rf_post_judge(in, i, &status);
    }
    rf_waitall(RF_WINDOW, sends);
    out->flow.next += RF_WINDOW;
    rf_judge_end(&in->flow);
}
