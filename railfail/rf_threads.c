/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Several threads of two ranks exchange messages at once, each over its own tag.
 */
#include "rf_post.h"

#include <pthread.h>
#include <string.h>

enum { THREADS = 3, LEAST = 40, MOST = 20000 };

static rf_post_t out[THREADS], in[THREADS];
static int partner;

static void begin_threads(void)
{
    if (rf_threads_provided < MPI_THREAD_MULTIPLE) {
        rf_skip("this MPI has no MPI_THREAD_MULTIPLE");
    }
    partner = (rf_rank ^ 1) < rf_ranks ? rf_rank ^ 1 : rf_rank;
    for (int t = 0; t < THREADS; ++t) {
        rf_post_begin(&out[t], (uint32_t) rf_rank, (uint32_t) partner, (uint32_t) t, LEAST, MOST);
        rf_post_begin(&in[t], (uint32_t) partner, (uint32_t) rf_rank, (uint32_t) t, LEAST, MOST);
    }
}

static void *exchange(void *argument)
{
    int t = *(int *) argument;

    rf_post_exchange(&out[t], partner, &in[t], partner, 100 + t, rf_world);
    return NULL;
}

static void threads(void)
{
    pthread_t thread[THREADS];
    int number[THREADS];

    for (int t = 0; t < THREADS; ++t) {
        number[t] = t;
        if (0 != pthread_create(&thread[t], NULL, exchange, &number[t])) {
            rf_skip("no thread can be made");
        }
    }
    for (int t = 0; t < THREADS; ++t) {
        pthread_join(thread[t], NULL);
    }
}

const rf_operation_t rf_threads[] = {
    {"threads", 2, begin_threads, threads, NULL, "flood by three threads of each rank (MPI_THREAD_MULTIPLE)"},
    {NULL, 0, NULL, NULL, NULL, NULL},
};
