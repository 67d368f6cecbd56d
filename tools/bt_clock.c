/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Clocks and waits of the command `bfo`. DESIGN.txt section 19.
 */
#include "bt.h"

#include <time.h>

double bt_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

uint64_t bt_wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t) t.tv_sec * UINT64_C(1000000000) + (uint64_t) t.tv_nsec;
}

void bt_sleep_a_while(void)
{
    const struct timespec time = {.tv_nsec = 50 * 1000000};

    nanosleep(&time, NULL);
}
