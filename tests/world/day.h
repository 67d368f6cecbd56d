/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A day of a job: what day.c does, day_figures.c counts.
 */
#ifndef WORLD_DAY_H
#define WORLD_DAY_H

#include "host.h"

#include "fabric.h"

/* Values of `day` in the plan. */
enum { DAY_HEALTHY = 1, DAY_FLAPS, DAY_SILENCES, DAY_RETURNS };

/* Faults under exchanges; those from DAY_PORT on belong to DAY_RETURNS. */
typedef enum { DAY_SILENT, DAY_SILENT_BULK, DAY_PORT, DAY_AWAY_100, DAY_AWAY_1000, DAY_AWAY_10000, DAY_FULL, DAY_KINDS } day_kind_t;

/* The least of many looks, because messages in flight need more. */
typedef struct {
    uint64_t memory;   /* bytes that the program has, but not for the fabric, the steps and the lists */
    uint64_t qps, mrs; /* registrations, but not those of lists */
    uint64_t out;      /* fragments of the BTL that are out, such as messages that asked for no completion */
    uint64_t lists;    /* bytes of lists */
    bool is_known;
} day_objects_t;

typedef struct {
    unsigned stops, flaps, all_flaps;
    uint64_t crowded; /* time in which processes shared a core */
    day_objects_t first, last;
} day_t;
extern day_t day;

void day_look(day_objects_t *objects);
/* A fault was felt for so long, or what it waited for did not come. */
void day_felt(day_kind_t kind, uint64_t time);
void day_missed(day_kind_t kind);

#endif /* WORLD_DAY_H */
