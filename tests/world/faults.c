/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The faults of a run. Each begins and ends at drawn times; only adapters and completion queues stay dead.
 */
#include "host.h"

#include "fabric.h"

#include <stdlib.h>

typedef enum { DOWN, SILENCE, LOSS, BREAK, STOP, DRAIN, DEATH, KILL, CQ, HOLD, KINDS } kind_t;

typedef struct {
    kind_t kind;
    unsigned node, rail, process, how;
    uint64_t lasts;
} fault_t;

static const char *const names[KINDS] = {"port down", "silence",      "loss",         "queue pair breaks",      "stop",
                                         "drain",     "adapter dies", "process dies", "completion queue fails", "hold"};
static unsigned dead_adapters[WORLD_MAX_PROCESSES];
static bool has_death, has_cq_failed;
static unsigned mutes[WORLD_MAX_PROCESSES];
/* How many faults hold a port down or silent; the last one that ends gives the port back. `mutes` counts the faults that make a
 * machine mute. */
static unsigned downs[WORLD_MAX_PROCESSES][WORLD_MAX_RAILS], silences[WORLD_MAX_PROCESSES][WORLD_MAX_RAILS];
static bool is_dead[WORLD_MAX_PROCESSES][WORLD_MAX_RAILS];

/* Without rejoin a process may lose all rails to another one. A dead adapter may have acknowledged WRITEs that never reached memory, and
 * then a process gives the other one up; a process cannot tell such an adapter from one whose completion queue of data failed. A failed call
 * may cost the other rail. A rail whose generations are used up does not come back, and a peer is given up with a message whose epochs are. */
bool faults_are_harmless(void)
{
    return PLAN_OF(rejoin) && failures_are_harmless() && (!has_death || (!PLAN_OF(put) && !PLAN_OF(ring) && !PLAN_OF(fails)))
           && (!has_cq_failed || !PLAN_OF(fails)) && PLAN_OF(generation) <= INT16_MAX + 10 && !PLAN_OF(epochs);
}

/* ---- drained ports --------------------------------------------------------------------------------------- */

static unsigned drains[WORLD_MAX_PROCESSES][WORLD_MAX_RAILS], forced[WORLD_MAX_PROCESSES][WORLD_MAX_RAILS];

unsigned world_drained(void)
{
    unsigned mask = 0;

    for (unsigned r = 0; r < PLAN_OF(rails); ++r) {
        mask |= 0 < drains[world_me->node][r] ? 1u << r : 0;
        mask |= 0 < forced[world_me->node][r] ? 1u << (8 + r) : 0;
    }
    return mask;
}

static unsigned *drains_of(const fault_t *f)
{
    return PLAN_OF(forced) && 0 != f->how % 4 ? &forced[f->node][f->rail] : &drains[f->node][f->rail];
}

/* Does a port that is down when the job starts join the job later? */
static bool ports_join_later(void)
{
    return PLAN_OF(named) || PLAN_OF(lids);
}

/* ---- one fault -------------------------------------------------------------------------------------------- */

static kind_t draw_kind(void)
{
    const unsigned weights[KINDS] = {PLAN_OF(downs),
                                     PLAN_OF(silences) + PLAN_OF(hush),
                                     PLAN_OF(losses),
                                     PLAN_OF(breaks),
                                     PLAN_OF(stops),
                                     PLAN_OF(drains),
                                     ports_join_later() ? PLAN_OF(deaths) : 0,
                                     PLAN_OF(kills),
                                     1 < PLAN_OF(rails) ? PLAN_OF(cqs) : 0,
                                     PLAN_OF(holds)};
    unsigned sum = 0, at;

    for (unsigned k = 0; k < KINDS; ++k) {
        sum += weights[k];
    }
    if (0 == sum) {
        return DOWN;
    }
    at = world_draw(sum);
    for (unsigned k = 0; k < KINDS; ++k) {
        if (at < weights[k]) {
            return (kind_t) k;
        }
        at -= weights[k];
    }
    return DOWN;
}

/* From 10 microseconds to some seconds, each power of two as probable as the next. */
static uint64_t draw_duration(void)
{
    return (WORLD_US * 10 << world_draw(19)) + world_draw(10000);
}

/* Up to three times as long as an adapter repeats a packet. */
static uint64_t draw_hold(void)
{
    const unsigned tries_us = (1 + PLAN_OF(retries)) * 4096u << PLAN_OF(timeout) >> 10;

    return WORLD_US * world_draw(3 * tries_us);
}

/* One process stays. If one dies in MPI_Init, the runtime ends the job. */
static void kill_process(world_process_t *process)
{
    if (1 == sched_alive() || process->is_dead) {
        return;
    }
    sched_kill(process);
    process->died = world_now;
    process->reported = world_now + draw_duration();
    fabric_process_gone(process->rank);
    if (!world_has_begun()) {
        sched_end();
    }
}

static void begin(void *argument)
{
    fault_t *f = argument;
    const unsigned ranks = PLAN_OF(nodes) * PER_NODE;

    world_trace("fault: %s, node %u rail %u process %u how %u", names[f->kind], f->node, f->rail, f->process, f->how);
    switch (f->kind) {
    case DOWN:
        ++downs[f->node][f->rail];
        fabric_port(f->node, f->rail, false);
        break;
    case SILENCE:
        ++silences[f->node][f->rail];
        fabric_silence(f->node, f->rail, 0 != (f->how & 1), 0 == (f->how & 1) || 0 != (f->how & 2));
        break;
    case LOSS:
        fabric_loss(f->node, f->rail, 1u << f->how % 9);
        break;
    case BREAK:
        (void) fabric_breaks_a_queue_pair(f->process, f->rail);
        break;
    case STOP:
        if (!world_processes[f->process % ranks].is_stopped) {
            sched_stop(&world_processes[f->process % ranks], true);
        }
        break;
    case DRAIN:
        ++*drains_of(f);
        break;
    case KILL:
        kill_process(&world_processes[f->process]);
        break;
    case CQ:
        has_cq_failed = true;
        has_death |= fabric_breaks_a_completion_queue(f->process, f->rail);
        break;
    case HOLD:
        fabric_hold(f->node, f->rail, world_now + f->lasts);
        ++mutes[f->node];
        fabric_mute(f->node, true);
        break;
    default:
        if (0 == dead_adapters[f->node] && 1 < PLAN_OF(rails)) {
            is_dead[f->node][f->rail] = true;
            dead_adapters[f->node] = 1;
            has_death = true;
            fabric_adapter_dies(f->node, f->rail, PLAN_OF(forgets));
        }
        break;
    }
}

static void end(void *argument)
{
    fault_t *f = argument;

    world_trace("fault ends: %s, node %u rail %u process %u", names[f->kind], f->node, f->rail, f->process);
    switch (f->kind) {
    case DOWN:
        if (0 == --downs[f->node][f->rail] && !is_dead[f->node][f->rail]) {
            fabric_port(f->node, f->rail, true);
        }
        break;
    case SILENCE:
        if (0 == --silences[f->node][f->rail]) {
            fabric_silence(f->node, f->rail, false, false);
        }
        break;
    case LOSS:
        fabric_loss(f->node, f->rail, 0);
        break;
    case STOP:
        sched_stop(&world_processes[f->process], false);
        break;
    case DRAIN:
        --*drains_of(f);
        break;
    case HOLD:
        fabric_mute(f->node, 0 < --mutes[f->node]);
        break;
    default:
        break;
    }
    free(f);
}

enum { BEGUN_US = 5000 };

/* Adapters and completion queues of one rail only die, so that each pair of machines keeps a path. A port that nobody names and that has no
 * LID when the job starts stays out of the job; therefore faults wait until the job has begun if ports are like that. So do completion
 * queues, which do not exist before. */
void faults_plan(void)
{
    const unsigned dying = world_draw(PLAN_OF(rails));

    for (unsigned i = 0; i < PLAN_OF(faults); ++i) {
        fault_t *f = malloc(sizeof(*f));
        uint64_t at = WORLD_US * (world_draw(PLAN_OF(horizon)) + (ports_join_later() ? 0 : BEGUN_US));

        *f = (fault_t){.kind = draw_kind(),
                       .node = world_draw(PLAN_OF(nodes)),
                       .rail = world_draw(PLAN_OF(rails)),
                       .process = world_draw(PLAN_OF(nodes) * PER_NODE),
                       .how = world_draw(64)};
        f->rail = DEATH == f->kind || CQ == f->kind ? dying : f->rail;
        at += CQ == f->kind && ports_join_later() ? WORLD_US * BEGUN_US : 0;
        world_at(at, begin, f);
        f->lasts = HOLD == f->kind ? draw_hold() : draw_duration();
        world_at(at + f->lasts, end, f);
    }
}
