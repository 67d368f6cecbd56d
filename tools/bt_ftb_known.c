/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the server of fault events knows of processes, ports and ranks: finds the entry that was made for a key. The tree has a limit,
 * because every entry comes from files that users write. DESIGN.txt section 19.11.
 */
#include "bt_ftb.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KNOWN = 1 << 18 };

static void *tree;
static bt_ftb_known_t *list; /* all entries of the tree */
static size_t n_known;
static uint64_t look = 1;

#define ORDER(field) \
    if (x->field != y->field) \
    return x->field < y->field ? -1 : 1
static int compare(const void *a, const void *b)
{
    const bt_ftb_known_t *x = a, *y = b;

    ORDER(kind);
    ORDER(uid);
    ORDER(job);
    ORDER(rank);
    ORDER(pid);
    return 0 != strcmp(x->name, y->name) ? strcmp(x->name, y->name) : strcmp(x->host, y->host);
}

static bt_ftb_known_t *find(const bt_ftb_known_t *key)
{
    bt_ftb_known_t *const *place = tfind(key, &tree, compare);

    return NULL == place ? NULL : *place;
}

bt_ftb_known_t *bt_ftb_know(const bt_ftb_known_t *key, bool *is_new)
{
    bt_ftb_known_t *known = find(key);

    *is_new = NULL == known;
    if (NULL == known && MOST_KNOWN > n_known && NULL != (known = malloc(sizeof(*known)))) {
        *known = *key;
        if (NULL == tsearch(known, &tree, compare)) {
            free(known);
            return NULL;
        }
        known->next = list;
        list = known;
        ++n_known;
    }
    if (NULL != known) {
        known->seen = look;
    }
    return known;
}

/* A rank stays known while its job has a process here, because it is given up once and not found again. */
static bool is_of_living_job(const bt_ftb_known_t *known)
{
    const bt_ftb_known_t key = {.kind = BT_FTB_JOB, .uid = known->uid, .job = known->job};
    const bt_ftb_known_t *job = BT_FTB_RANK == known->kind ? find(&key) : NULL;

    return NULL != job && look == job->seen;
}

void bt_ftb_forget_others(void)
{
    bt_ftb_known_t **place = &list;

    for (bt_ftb_known_t *known = list; NULL != known; known = known->next) {
        known->seen = is_of_living_job(known) ? look : known->seen;
    }
    while (NULL != *place) {
        bt_ftb_known_t *known = *place;

        if (look == known->seen) {
            place = &known->next;
            continue;
        }
        *place = known->next;
        (void) tdelete(known, &tree, compare);
        free(known);
        --n_known;
    }
    ++look;
}

void bt_ftb_known_ports(void (*what)(bt_ftb_known_t *port, void *context), void *context)
{
    for (bt_ftb_known_t *known = list; NULL != known; known = known->next) {
        if (BT_FTB_PORT == known->kind) {
            what(known, context);
        }
    }
}
