/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Two rails of a path ask for all of them. See DESIGN.txt 10.2, "Paths".
 */
#include "formats/btl_openib_path.h"

#include <stddef.h>

static ofo_leader_t *place_of(ofo_path_t *path, const ofo_path_rail_t *rail)
{
    for (unsigned i = 0; i < OFO_PATH_LEADERS; ++i) {
        ofo_leader_t *place = &path->leader[i];

        if (0 != place->until && rail->from == place->rail.from && rail->to == place->rail.to && rail->rail == place->rail.rail) {
            return place;
        }
    }
    return NULL;
}

/* A leader that is late may be stopped or dead. A question that was swallowed before `since` proves nothing about this work. A time after
 * `now` is an invalid entry. */
static bool is_useful(const ofo_leader_t *leader, uint64_t since, uint64_t now)
{
    return 0 != leader->until && (0 == leader->swallowed ? now <= leader->until : since <= leader->swallowed && leader->swallowed <= now);
}

static bool are_of_one(const ofo_path_t *path, uint64_t from)
{
    return path->leader[0].rail.from == path->leader[1].rail.from && from != path->leader[0].rail.from;
}

/* If two rails of one other process hold both places, the second place is free for a process without a place. */
static ofo_leader_t *place_for(ofo_path_t *path, const ofo_path_rail_t *rail, uint64_t since, uint64_t now)
{
    ofo_leader_t *place = place_of(path, rail);

    for (unsigned i = 0; NULL == place && i < OFO_PATH_LEADERS; ++i) {
        const ofo_leader_t *other = &path->leader[1 - i];
        const bool has_other = is_useful(other, since, now);
        const bool is_free = !is_useful(&path->leader[i], since, now) || (0 != i && has_other && are_of_one(path, rail->from));

        if (is_free && !(has_other && rail->to == other->rail.to)) {
            place = &path->leader[i];
        }
    }
    return place;
}

/* A rail that led before takes its own place again, so that the two places never belong to the same rail. */
void ofo_path_lead(ofo_path_t *path, const ofo_path_rail_t *rail, uint64_t since, uint64_t now, uint64_t until)
{
    ofo_leader_t *place = place_for(path, rail, since, now);

    if (NULL != place) {
        *place = (ofo_leader_t){.rail = *rail, .until = until};
    }
}

void ofo_path_hear(ofo_path_t *path, const ofo_path_rail_t *rail, ofo_path_news_t news, uint64_t at)
{
    ofo_leader_t *place = place_of(path, rail);

    if (OFO_PATH_ANSWERED == news) {
        path->answered = at;
    } else if (NULL == place) {
        return;
    } else if (OFO_PATH_GOES_ON == news) {
        place->until = at;
    } else if (OFO_PATH_COUNTS == news) {
        place->is_against = true;
    } else if (OFO_PATH_SWALLOWED == news) {
        place->swallowed = at;
    } else if (0 == place->swallowed) {
        *place = (ofo_leader_t){.until = 0};
    }
}

ofo_path_result_t ofo_path_tells(const ofo_path_t *path, uint64_t from, uint64_t since, uint64_t now)
{
    unsigned useful = 0, against = 0, silent = 0;

    for (unsigned i = 0; i < OFO_PATH_LEADERS; ++i) {
        const ofo_leader_t *leader = &path->leader[i];

        if (is_useful(leader, since, now)) {
            ++useful;
            against += 0 != leader->is_against;
            silent += 0 != leader->swallowed;
        }
    }
    if (OFO_PATH_LEADERS != useful || since <= path->answered || are_of_one(path, from)) {
        return OFO_PATH_ASK;
    }
    return OFO_PATH_LEADERS == silent ? OFO_PATH_SILENT : OFO_PATH_LEADERS == against ? OFO_PATH_AGAINST : OFO_PATH_WAIT;
}
