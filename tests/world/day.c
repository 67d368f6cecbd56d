/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A day of a job: hours of virtual time, in which image_day.c is the application and all parameters of bfo have their defaults. The value `day` of the
 * plan says what happens meanwhile:
 *   1 healthy    processes are stopped, share a core, and wake late; packets are late or get lost
 *   2 flaps      cables are pulled for 0.1 to 10 s
 *   3 silences   a path swallows everything for some seconds while two processes exchange messages
 *   4 returns    cables are pulled while two processes exchange messages
 * day_figures.c has the figures and the verdict. DESIGN.txt section 18.
 */
#include "day.h"

#include "fabric.h"
#include "world_calls.h"

#include <stdio.h>
#include <string.h>

enum {
    FIRST_FLAPS = 10,
    QUIET_MIN = 20, /* a rail stays out for 15 minutes at most */
    LOOKS = 400,    /* at the memory and the objects in the last minutes of a quiet time */
    LOOK_MS = 311,
    WINDOW_MIN = 5 /* from one series of exchanges to the next */
};

#define MINUTE (60 * WORLD_S)

static unsigned n_processes;
static uint64_t ends_at;

/* From a to b, each power of two as probable as the next. */
static uint64_t draw_between(uint64_t a, uint64_t b)
{
    unsigned doublings = 0;

    while (a << (doublings + 1) <= b) {
        ++doublings;
    }
    a <<= world_draw(doublings + 1);
    a += WORLD_US * world_draw((unsigned) (a / WORLD_US));
    return a < b ? a : b;
}

static uint64_t draw_ms(unsigned from, unsigned to)
{
    return WORLD_US * (1000 * (uint64_t) from + world_draw(1000 * (to - from)));
}

/* ---- processes that do not run ------------------------------------------------------------------------- */

enum { STOPPED = 1, PREEMPTED = 2 };
static unsigned reasons[WORLD_MAX_PROCESSES];

static void hold(unsigned process, unsigned reason, bool is_held)
{
    const unsigned before = reasons[process];

    reasons[process] = is_held ? before | reason : before & ~reason;
    if ((0 == before) != (0 == reasons[process])) {
        sched_stop(&world_processes[process], 0 != reasons[process]);
    }
}

static unsigned first_stopped, last_stopped;

static void stop_ends(void *nothing)
{
    for (unsigned p = first_stopped; p <= last_stopped; ++p) {
        hold(p, STOPPED, false);
    }
}

/* One process, as by SIGSTOP, or all of a machine. */
static void stop_begins(void *nothing)
{
    const bool is_machine = 0 == world_draw(6);
    const uint64_t time = 0 == world_draw(8) ? 30 * WORLD_S : draw_between(10 * WORLD_MS, 30 * WORLD_S);
    const unsigned p = world_draw(n_processes);

    first_stopped = is_machine ? p / PER_NODE * PER_NODE : p;
    last_stopped = is_machine ? first_stopped + PER_NODE - 1 : p;
    world_trace("day: processes %u to %u are stopped for %.3f s", first_stopped, last_stopped, (double) time / 1e9);
    for (unsigned q = first_stopped; q <= last_stopped; ++q) {
        hold(q, STOPPED, true);
    }
    ++day.stops;
    world_at(world_now + time, stop_ends, NULL);
    world_at(world_now + time + draw_ms(10000, 120000), stop_begins, NULL);
}

/* ---- a core that ten processes share --------------------------------------------------------------------- */

enum { SLICE_US = 4000, OTHERS = 9, PHASE_MIN = 5 };
static bool is_crowded, shares[WORLD_MAX_PROCESSES];

static void slice_begins(void *process);

static void slice_ends(void *process)
{
    const unsigned p = (unsigned) ((world_process_t *) process)->rank;

    hold(p, PREEMPTED, true);
    world_at(world_now + WORLD_US * (SLICE_US / 4 + world_draw(OTHERS * SLICE_US)), slice_begins, process);
}

static void slice_begins(void *process)
{
    const unsigned p = (unsigned) ((world_process_t *) process)->rank;

    hold(p, PREEMPTED, false);
    shares[p] = is_crowded;
    if (is_crowded) {
        world_at(world_now + WORLD_US * (SLICE_US / 4 + world_draw(SLICE_US)), slice_ends, process);
    }
}

static void phase(void *nothing)
{
    is_crowded = world_draw(100) < PLAN_OF(crowded);
    day.crowded += is_crowded ? PHASE_MIN * MINUTE : 0;
    for (unsigned p = 0; p < n_processes && is_crowded; ++p) {
        if (!shares[p]) {
            slice_begins(&world_processes[p]);
        }
    }
    world_at(world_now + PHASE_MIN * MINUTE, phase, NULL);
}

/* ---- cables and paths ----------------------------------------------------------------------------------------- */

typedef struct {
    unsigned node, rail;
} place_t;
static place_t places[WORLD_MAX_PROCESSES][WORLD_MAX_RAILS];

static void cable_is_back(void *place)
{
    const place_t *at = place;

    fabric_port(at->node, at->rail, true);
}

static void pull(unsigned node, unsigned rail, uint64_t time)
{
    fabric_port(node, rail, false);
    world_at(world_now + time, cable_is_back, &places[node][rail]);
}

static void path_is_back(void *place)
{
    const place_t *at = place;

    fabric_silence(at->node, at->rail, false, false);
}

static void swallow(unsigned node, unsigned rail, uint64_t time)
{
    const unsigned how = world_draw(3);

    fabric_silence(node, rail, 0 != how, 1 != how);
    world_at(world_now + time, path_is_back, &places[node][rail]);
}

/* ---- flaps ------------------------------------------------------------------------------------------------------ */

static unsigned looks;

static void look(void *objects)
{
    day_look(objects);
    if (0 != --looks) {
        world_at(world_now + WORLD_MS * LOOK_MS, look, objects);
    }
}

static void look_until(uint64_t when, day_objects_t *objects)
{
    looks = LOOKS;
    world_at(when - WORLD_MS * LOOK_MS * LOOKS, look, objects);
}

static void other_flap(void *place)
{
    const place_t *at = place;

    pull(world_draw(PLAN_OF(nodes)), at->rail, draw_between(100 * WORLD_MS, 10 * WORLD_S));
}

/* The rails in turn; now and then all of them. */
static void flap(void *nothing)
{
    const unsigned rail = day.flaps % PLAN_OF(rails);
    const bool is_all = 0 == world_draw(8);
    uint64_t next = draw_ms(60000, 240000);

    if (world_now + 15 * WORLD_S > ends_at - QUIET_MIN * MINUTE) {
        look_until(ends_at, &day.last);
        return;
    }
    pull(world_draw(PLAN_OF(nodes)), rail, draw_between(100 * WORLD_MS, 10 * WORLD_S));
    for (unsigned r = 0; r < PLAN_OF(rails) && is_all; ++r) {
        if (r != rail) {
            world_at(world_now + draw_between(WORLD_MS, WORLD_S), other_flap, &places[0][r]);
        }
    }
    day.all_flaps += is_all;
    if (FIRST_FLAPS == ++day.flaps) {
        next = QUIET_MIN * MINUTE;
        look_until(world_now + next, &day.first);
    }
    world_at(world_now + next, flap, NULL);
}

/* ---- exchanges under a fault -------------------------------------------------------------------------------------- */

static struct {
    day_kind_t kind;
    uint64_t number, next;       /* of the series; when the next may begin */
    uint64_t last, longest;      /* when the last exchange ended; the longest time between two ends from the fault on */
    uint64_t broken, back, good; /* when the fault began, when it ends, and when the job feels nothing of it any more */
    unsigned node, rail;
    uint64_t bytes; /* that the rail had carried at the last exchange */
    bool is_planned;
} series;

static const uint64_t away[] = {[DAY_AWAY_100] = 100 * WORLD_MS, [DAY_AWAY_1000] = WORLD_S, [DAY_AWAY_10000] = 10 * WORLD_S};

static void fault(void *nothing)
{
    series.broken = world_now;
    world_trace("day: fault %u, node %u rail %u", series.kind, series.node, series.rail);
    switch (series.kind) {
    case DAY_SILENT:
    case DAY_SILENT_BULK:
        series.back = world_now + draw_ms(2000, 8000);
        swallow(series.node, series.rail, series.back - world_now);
        break;
    case DAY_PORT:
    case DAY_FULL:
        series.back = world_now + draw_ms(1000, 4000);
        pull(series.node, series.rail, series.back - world_now);
        break;
    default:
        series.back = world_now + away[series.kind];
        for (unsigned r = 0; r < PLAN_OF(rails); ++r) {
            pull(series.node, r, away[series.kind]);
        }
        break;
    }
}

static bool is_bulk(day_kind_t kind)
{
    return DAY_SILENT_BULK == kind || DAY_FULL == kind;
}

unsigned world_day_next(void)
{
    const bool is_silences = DAY_SILENCES == PLAN_OF(day);

    if (world_now >= ends_at) {
        return WORLD_DAY_ENDS;
    }
    if (DAY_SILENCES > PLAN_OF(day) || world_now < series.next) {
        return WORLD_DAY_BURST;
    }
    series.kind = (day_kind_t) (is_silences ? series.number % DAY_PORT : DAY_PORT + series.number % (DAY_KINDS - DAY_PORT));
    ++series.number;
    series.next = world_now + WINDOW_MIN * MINUTE;
    series.last = series.longest = series.broken = series.back = series.good = 0;
    series.is_planned = false;
    series.node = world_draw(PLAN_OF(nodes));
    series.rail = world_draw(PLAN_OF(rails));
    return is_bulk(series.kind) ? WORLD_DAY_BULK : WORLD_DAY_PING;
}

/* Does the rail that was away carry its part of the bytes again? */
static bool is_full(void)
{
    const uint64_t before = series.bytes;

    series.bytes = fabric_bytes(world_me->node, series.rail);
    return 5 * PLAN_OF(rails) * (series.bytes - before) >= UINT64_C(4) * WORLD_DAY_BULK_BYTES;
}

void world_day_exchanged(void)
{
    const bool is_now_full = is_full();

    if (!series.is_planned) {
        series.is_planned = true;
        world_at(world_now + draw_ms(100, 400), fault, NULL);
    } else if (0 != series.broken) {
        series.longest = world_now - series.last > series.longest ? world_now - series.last : series.longest;
        if (0 == series.good && world_now > series.back && (DAY_FULL != series.kind || is_now_full)) {
            series.good = world_now;
        }
    }
    series.last = world_now;
}

/* A rail that was away must be back for its stable time before it can carry anything. */
static uint64_t felt(void)
{
    switch (series.kind) {
    case DAY_SILENT:
    case DAY_SILENT_BULK:
    case DAY_PORT:
        return series.longest;
    case DAY_FULL:
        return series.good > series.back + WORLD_S ? series.good - series.back - WORLD_S : 0;
    default:
        return series.good - series.back;
    }
}

/* Has the job felt the fault, and what must come after it? */
static bool is_seen(void)
{
    if (0 == series.broken) {
        return false;
    }
    switch (series.kind) {
    case DAY_SILENT:
    case DAY_SILENT_BULK:
        return world_now >= series.broken + WORLD_S;
    case DAY_FULL:
        return 0 != series.good || world_now >= series.back + 5 * WORLD_S;
    default:
        return 0 != series.good && world_now >= series.back + WORLD_S;
    }
}

bool world_day_goes_on(void)
{
    if (!is_seen()) {
        return true;
    }
    if (DAY_FULL == series.kind && 0 == series.good) {
        day_missed(series.kind);
    } else {
        day_felt(series.kind, felt());
    }
    return false;
}

/* ---- the day -------------------------------------------------------------------------------------------------------- */

uint64_t day_plan(void)
{
    n_processes = PLAN_OF(nodes) * PER_NODE;
    ends_at = PLAN_OF(minutes) * MINUTE;
    sched_late(WORLD_MS * PLAN_OF(late));
    for (unsigned node = 0; node < PLAN_OF(nodes); ++node) {
        for (unsigned rail = 0; rail < PLAN_OF(rails); ++rail) {
            places[node][rail] = (place_t){node, rail};
            if (0 != PLAN_OF(lost)) {
                fabric_loss(node, rail, PLAN_OF(lost));
            }
        }
    }
    if (DAY_HEALTHY == PLAN_OF(day)) {
        world_at(MINUTE, stop_begins, NULL);
        world_at(MINUTE, phase, NULL);
    } else if (DAY_FLAPS == PLAN_OF(day)) {
        world_at(MINUTE, flap, NULL);
    } else {
        series.next = MINUTE;
    }
    return ends_at + 10 * MINUTE;
}

/* What this world needs; everything else has its default. */
const char *day_parameter(const char *name)
{
    static char text[16];

    if (0 == strcmp(name, "btl_openib_ignore_locality")) {
        return "1";
    }
    if (0 == strcmp(name, "pml_bfo_status_dir")) {
        return "none";
    }
    if (0 != PLAN_OF(repeat) && 0 == strcmp(name, "btl_openib_ib_timeout")) {
        snprintf(text, sizeof(text), "%u", PLAN_OF(repeat));
        return text;
    }
    return !trace_is_verbose ? NULL : 0 == strcmp(name, "btl_openib_verbose") ? "100" : 0 == strcmp(name, "pml_bfo_verbose") ? "2" : NULL;
}
