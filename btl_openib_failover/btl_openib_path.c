/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Two rails of a path ask for all of them. See DESIGN.txt 10.2, "Paths".
 */
#include "btl_openib_path.h"

#include "bfo_assert.h"

#include <stddef.h>

ofo_path_t *ofo_path_hold(ofo_path_t table[OFO_PATHS], uint64_t key)
{
    ofo_path_t *path = NULL;

    for (unsigned i = 0; i < OFO_PATHS; ++i) {
        if (key == table[i].key && 0 != table[i].users) {
            ++table[i].users;
            return &table[i];
        }
        path = NULL == path && 0 == table[i].users ? &table[i] : path;
    }
    if (NULL != path) {
        *path = (ofo_path_t){.key = key, .users = 1};
    }
    return path;
}

void ofo_path_release(ofo_path_t *path)
{
    BFO_ASSERT(0 < path->users);
    --path->users;
}

static ofo_leader_t *place_of(ofo_path_t *path, const void *who)
{
    for (unsigned i = 0; i < OFO_PATH_LEADERS; ++i) {
        if (who == path->leader[i].who) {
            return &path->leader[i];
        }
    }
    return NULL;
}

/* What was swallowed before the work stood still says nothing of this work. */
static bool is_useful(const ofo_leader_t *leader, uint64_t since)
{
    return NULL != leader->who && (0 == leader->swallowed || since <= leader->swallowed);
}

/* A rail that led before takes its own place again, so that the two places never belong to the same process. */
void ofo_path_lead(ofo_path_t *path, const void *who, uint64_t since)
{
    ofo_leader_t *place = place_of(path, who);

    for (unsigned i = 0; NULL == place && i < OFO_PATH_LEADERS; ++i) {
        place = is_useful(&path->leader[i], since) ? NULL : &path->leader[i];
    }
    if (NULL != place) {
        *place = (ofo_leader_t){.who = who};
    }
}

void ofo_path_against(ofo_path_t *path, const void *who)
{
    ofo_leader_t *place = place_of(path, who);

    if (NULL != place) {
        place->is_against = true;
    }
}

void ofo_path_swallowed(ofo_path_t *path, const void *who, uint64_t asked)
{
    ofo_leader_t *place = place_of(path, who);

    if (NULL != place) {
        place->swallowed = asked;
    }
}

void ofo_path_leave(ofo_path_t *path, const void *who)
{
    ofo_leader_t *place = place_of(path, who);

    if (NULL != place && 0 == place->swallowed) {
        *place = (ofo_leader_t){.who = NULL};
    }
}

void ofo_path_answered(ofo_path_t *path, uint64_t now)
{
    path->answered = now;
}

ofo_path_result_t ofo_path_tells(const ofo_path_t *path, uint64_t since)
{
    unsigned useful = 0, against = 0, silent = 0;

    for (unsigned i = 0; i < OFO_PATH_LEADERS; ++i) {
        const ofo_leader_t *leader = &path->leader[i];

        if (is_useful(leader, since)) {
            ++useful;
            against += leader->is_against;
            silent += 0 != leader->swallowed;
        }
    }
    if (OFO_PATH_LEADERS != useful || since <= path->answered) {
        return OFO_PATH_ASK;
    }
    return OFO_PATH_LEADERS == silent ? OFO_PATH_SILENT : OFO_PATH_LEADERS == against ? OFO_PATH_AGAINST : OFO_PATH_WAIT;
}
