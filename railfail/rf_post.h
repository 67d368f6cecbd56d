/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One side of a flow, with the buffers of one window.
 */
#ifndef RF_POST_H
#define RF_POST_H

#include "rf.h"

typedef struct {
    rf_flow_t flow;
    uint8_t *buffer[RF_WINDOW];
} rf_post_t;

void rf_post_begin(rf_post_t *post, uint32_t from, uint32_t to, uint32_t flow, size_t least, size_t most);
size_t rf_post_fill(rf_post_t *post, int i);          /* makes the message for place i of the window; returns its size */
int rf_post_to(const rf_post_t *post, int i, int to); /* returns `to`; MPI_PROC_NULL if the message must be dropped on purpose */
void rf_post_judge(rf_post_t *post, int i, MPI_Status *status);
void rf_post_judge_in(rf_post_t *post, int i, const void *buffer, MPI_Status *status);
/* Sends a whole window and receives another, by requests. */
void rf_post_exchange(rf_post_t *out, int to, rf_post_t *in, int from, int tag, MPI_Comm comm);

#endif /* RF_POST_H */
