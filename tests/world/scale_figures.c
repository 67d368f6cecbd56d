/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The figures of a large job (scale.c), a line for each: "scale", or "star" if one process has peers without an image; processes, rails, phase, figure,
 * value, which is that of a process, but for the peak of all. Breaks the run if traffic or rails are not back.
 */
#include "scale.h"

#include <stdio.h>

static const char *const names[SCALE_PHASES] = {"init", "contact", "healthy", "leaf", "spine", "silent", "port", "idle"};
static unsigned n;

static void line(const char *phase, const char *what, double value)
{
    printf("%s %u %u %s %s %.6g\n", 0 != PLAN_OF(peers) ? "star" : "scale", world_ranks(), PLAN_OF(rails), phase, what, value);
}

static double per_process(uint64_t first, uint64_t last)
{
    return (double) (last - first) / n;
}

static uint64_t datagrams(const fabric_posts_t *posts)
{
    uint64_t sum = 0;

    for (unsigned t = 0; t < FABRIC_TYPES; ++t) {
        sum += posts->datagrams[t];
    }
    return sum;
}

/* SENDs that neither carry credits alone, nor were asked for by the application. A short message of the application is a SEND, or travels in that of another one; of a long one
 * its sender sends two, and its receiver one. */
static double beyond(const scale_phase_t *phase)
{
    const scale_sums_t *first = &phase->first, *last = &phase->last;
    const uint64_t own = last->shorts - first->shorts + 3 * (last->longs - first->longs) + last->counts.credits - first->counts.credits;
    const uint64_t sent = last->posts.sends - first->posts.sends + last->counts.saved - first->counts.saved;

    return ((double) sent - (double) own) / n;
}

static void control_lines(const char *name, const scale_phase_t *phase)
{
    static const char *const types[FABRIC_TYPES] = {"DOWN", "DACK", "REQ", "REP", "RTU", "REJ", "PEERDEAD", "ASK", "PROBE", "ANSWER"};
    const fabric_posts_t *first = &phase->first.posts, *last = &phase->last.posts;

    line(name, "control", per_process(datagrams(first), datagrams(last)));
    for (unsigned t = 0; t < FABRIC_TYPES; ++t) {
        if (NULL != types[t] && last->datagrams[t] != first->datagrams[t]) {
            line(name, types[t], per_process(first->datagrams[t], last->datagrams[t]));
        }
    }
    line(name, "control_peak", (double) phase->peak);
    line(name, "control_peak_of_one", (double) phase->peak_of_one);
    line(name, "control_unheard", per_process(first->unheard, last->unheard));
}

static void phase_lines(scale_phase_kind_t kind)
{
    const scale_phase_t *phase = &scale_phases[kind];
    const world_scale_counts_t *first = &phase->first.counts, *last = &phase->last.counts;
    const char *name = names[kind];
    const bool has_event = SCALE_LEAF <= kind && SCALE_IDLE > kind;

    line(name, "seconds", (double) (phase->ended - phase->began) / 1e9);
    line(name, "rounds", phase->rounds);
    line(name, has_event ? "flows_ms" : "round_ms", (double) phase->flows / 1e6);
    if (has_event) {
        line(name, "back_ms", (double) phase->back / 1e6);
        line(name, "least_rails", (double) phase->least_rails / n);
        line(name, "rails_lost", per_process(first->rails_lost, last->rails_lost));
        line(name, "rails_back", per_process(first->rails_back, last->rails_back));
    }
    control_lines(name, phase);
    line(name, "sends_beyond", beyond(phase));
    line(name, "credits", per_process(first->credits, last->credits));
    line(name, "writes", per_process(phase->first.posts.writes, phase->last.posts.writes));
    line(name, "reads", per_process(phase->first.posts.reads, phase->last.posts.reads));
    line(name, "resends", per_process(first->resends, last->resends));
    line(name, "restarts", per_process(first->restarts, last->restarts));
    line(name, "inquiries", per_process(first->inquiries, last->inquiries));
    line(name, "soft", per_process(first->soft, last->soft));
    line(name, "hard", per_process(first->hard, last->hard));
    line(name, "copies", per_process(first->copies, last->copies));
    line(name, "keepalives", per_process(first->keepalives, last->keepalives));
}

void scale_end(void)
{
    n = world_ranks() - PLAN_OF(peers);
    line("sizes", "queue_pairs", (double) scale_sizes.qps / n);
    line("sizes", "init_KiB", (double) scale_sizes.init / n / 1024);
    line("sizes", "contact_KiB", (double) (scale_sizes.contact - scale_sizes.init) / n / 1024);
    line("sizes", "end_KiB", (double) (scale_sizes.at_end - scale_sizes.init) / n / 1024);
    line("sizes", "messages", (double) (scale_phases[SCALE_IDLE].last.shorts + scale_phases[SCALE_IDLE].last.longs));
    for (unsigned kind = SCALE_CONTACT; kind < SCALE_PHASES; ++kind) {
        phase_lines((scale_phase_kind_t) kind);
    }
    fflush(stdout);
    for (unsigned kind = SCALE_LEAF; kind < SCALE_IDLE; ++kind) {
        if (0 == scale_phases[kind].flows || 0 == scale_phases[kind].back) {
            world_broken("%s: traffic or rails are not back", names[kind]);
        }
    }
    if (0 != scale_phases[SCALE_IDLE].last.counts.peers_lost) {
        world_broken("peers were given up");
    }
}
