/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A large job: all processes send to all others, round after round (image_scale.c), all parameters of bfo have their defaults, and the fabric
 * meets one event after another:
 *   contact   the first round: no process has a connection
 *   healthy   some rounds without an event
 *   leaf      a leaf switch fails for 2 s: the ports of rail 1 of half the machines are down
 *   spine     a spine flaps three times: all ports of rail 0 are down for 0.1 s
 *   silent    a spine swallows everything on rail 1 for 1 s, and no port has an event
 *   port      the adapter of rail 1 of the first machine dies for good
 *   idle      25 s without a message of the application
 * A phase ends when traffic flows and each process has all rails that it can have. scale_figures.c has the figures. DESIGN.txt section 18.
 */
#include "scale.h"

#include <string.h>

enum {
    HEALTHY_ROUNDS = 3,
    AFTER_ROUNDS = 7, /* when all rails are back, so that their probation ends */
    INTO_US = 20,     /* from the beginning of a round to the event */
    LEAF_MS = 2000,
    FLAPS = 3,
    FLAP_MS = 100,
    FLAP_EVERY_MS = 3000,
    SILENT_MS = 1000,
    LOOK_MS = 20,
    LOOKS = 50, /* in a second */
    MOST_PHASE_S = 60,
    MOST_S = 600
};

scale_phase_t scale_phases[SCALE_PHASES];
scale_sizes_t scale_sizes;

static scale_phase_kind_t now_phase;
static unsigned n, n_ended, n_ready, flaps_left, rounds_after;
static uint64_t round_began, all_rails, shorts, longs;
static scale_sums_t after_round; /* at the end of the last round, when no process has begun the next one */
static bool is_whole;            /* no port that may return is away */

/* ---- sums ------------------------------------------------------------------------------------------------ */

uint64_t scale_all_rails(void)
{
    return (uint64_t) n * (world_ranks() - 1) * PLAN_OF(rails);
}

static void sum_up(scale_sums_t *sums)
{
    *sums = (scale_sums_t){.shorts = shorts, .longs = longs};
    for (unsigned p = 0; p < n; ++p) {
        const fabric_posts_t posts = fabric_posts(p);
        const uint64_t *from = (const uint64_t *) &posts;
        uint64_t *to = (uint64_t *) &sums->posts;

        for (size_t i = 0; i < sizeof(posts) / sizeof(*to); ++i) {
            to[i] += from[i];
        }
        world_images[p]->counts(&sums->counts);
    }
}

static int64_t memory_of_all(void)
{
    int64_t sum = 0;

    for (unsigned p = 0; p < n; ++p) {
        sum += memory_of(p);
    }
    return sum;
}

static uint64_t rails_now(void)
{
    world_scale_counts_t counts = {0};

    for (unsigned p = 0; p < n; ++p) {
        world_images[p]->counts(&counts);
    }
    return counts.rails;
}

/* ---- looks: the rails in use, and control messages in the last second --------------------------------------- */

static uint64_t history[LOOKS][WORLD_MAX_PROCESSES];
static unsigned n_looks;

static uint64_t datagrams_of(unsigned p)
{
    const fabric_posts_t posts = fabric_posts(p);
    uint64_t sum = 0;

    for (unsigned t = 0; t < FABRIC_TYPES; ++t) {
        sum += posts.datagrams[t];
    }
    return sum;
}

static void forget_history(void)
{
    for (unsigned p = 0; p < n; ++p) {
        for (unsigned i = 0; i < LOOKS; ++i) {
            history[i][p] = datagrams_of(p);
        }
    }
}

static void look_at_storm(scale_phase_t *phase)
{
    uint64_t *before = history[n_looks++ % LOOKS], sum = 0;

    for (unsigned p = 0; p < n; ++p) {
        const uint64_t is = datagrams_of(p), in_a_second = is - before[p];

        sum += in_a_second;
        phase->peak_of_one = in_a_second > phase->peak_of_one ? in_a_second : phase->peak_of_one;
        before[p] = is;
    }
    phase->peak = sum > phase->peak ? sum : phase->peak;
}

static void look(void *nothing)
{
    scale_phase_t *phase = &scale_phases[now_phase];

    look_at_storm(phase);
    if (0 != phase->event) {
        const uint64_t rails = rails_now();

        phase->least_rails = rails < phase->least_rails ? rails : phase->least_rails;
        if (0 == phase->back && is_whole && rails == all_rails && world_now > phase->event) {
            phase->back = world_now - phase->event;
            rounds_after = 0;
        }
    }
    world_at(world_now + WORLD_MS * LOOK_MS, look, NULL);
}

/* ---- events ------------------------------------------------------------------------------------------------ */

static unsigned second_rail(void)
{
    return 1 < PLAN_OF(rails) ? 1 : 0;
}

static void ports(unsigned nodes, unsigned rail, bool is_up)
{
    for (unsigned node = 0; node < nodes; ++node) {
        fabric_port(node, rail, is_up);
    }
    is_whole = is_up;
}

static void flap_begins(void *nothing);

static void flap_ends(void *nothing)
{
    ports(PLAN_OF(nodes), 0, true);
    is_whole = 0 == --flaps_left;
    if (!is_whole) {
        world_at(world_now + WORLD_MS * (FLAP_EVERY_MS - FLAP_MS), flap_begins, NULL);
    }
}

static void flap_begins(void *nothing)
{
    ports(PLAN_OF(nodes), 0, false);
    world_at(world_now + WORLD_MS * FLAP_MS, flap_ends, NULL);
}

static void silence(bool is)
{
    for (unsigned node = 0; node < PLAN_OF(nodes); ++node) {
        fabric_silence(node, second_rail(), is, is);
    }
    is_whole = !is;
}

static void silence_ends(void *nothing)
{
    silence(false);
}

/* A process with peers that have no image is a machine by itself. */
static unsigned half_the_nodes(void)
{
    return 0 != PLAN_OF(peers) ? 1 : PLAN_OF(nodes) / 2;
}

static void leaf_is_back(void *nothing)
{
    ports(half_the_nodes(), second_rail(), true);
}

/* Pairs of processes of which one, or both, is on the first machine lose a rail. */
static void adapter_dies(void)
{
    const uint64_t here = 0 != PLAN_OF(peers) ? 1 : PER_NODE;

    fabric_adapter_dies(0, second_rail(), false);
    all_rails -= 0 != PLAN_OF(peers) ? PLAN_OF(peers) : 2 * here * (n - here) + here * (here - 1);
}

static void event(void *nothing)
{
    scale_phase_t *phase = &scale_phases[now_phase];

    phase->event = world_now;
    phase->least_rails = all_rails;
    switch (now_phase) {
    case SCALE_LEAF:
        ports(half_the_nodes(), second_rail(), false);
        world_at(world_now + WORLD_MS * LEAF_MS, leaf_is_back, NULL);
        break;
    case SCALE_SPINE:
        flaps_left = FLAPS;
        flap_begins(NULL);
        break;
    case SCALE_SILENT:
        silence(true);
        world_at(world_now + WORLD_MS * SILENT_MS, silence_ends, NULL);
        break;
    default:
        adapter_dies();
        break;
    }
}

/* ---- phases --------------------------------------------------------------------------------------------------- */

static void phase_begin(scale_phase_kind_t kind)
{
    scale_phase_t *before = &scale_phases[now_phase], *phase = &scale_phases[kind];

    before->ended = phase->began = world_now;
    before->last = phase->first = after_round;
    now_phase = kind;
    forget_history();
    world_trace("scale: phase %u begins", kind);
    if (SCALE_LEAF <= kind && SCALE_IDLE > kind) {
        world_at(world_now + WORLD_US * INTO_US, event, NULL);
    }
}

static bool is_over(void)
{
    const scale_phase_t *phase = &scale_phases[now_phase];

    switch (now_phase) {
    case SCALE_INIT:
        return true;
    case SCALE_CONTACT:
        return 1 == phase->rounds;
    case SCALE_HEALTHY:
        return HEALTHY_ROUNDS == phase->rounds;
    case SCALE_IDLE:
        return false;
    default:
        return (0 != phase->flows && 0 != phase->back && AFTER_ROUNDS <= rounds_after) || world_now > phase->began + MOST_PHASE_S * WORLD_S;
    }
}

static void count_objects(void)
{
    for (unsigned p = 0; p < n; ++p) {
        scale_sizes.qps += fabric_objects(p).qps;
    }
    scale_sizes.at_end = memory_of_all();
}

/* The round of the idle phase is followed by the idle time, and then by the last round. */
unsigned world_scale_next(void)
{
    round_began = world_now;
    if (SCALE_IDLE == now_phase) {
        count_objects();
        return WORLD_SCALE_ENDS;
    }
    if (is_over()) {
        phase_begin((scale_phase_kind_t) (now_phase + 1));
    }
    return SCALE_IDLE == now_phase ? WORLD_SCALE_IDLES : WORLD_SCALE_GOES_ON;
}

void world_scale_ready(void)
{
    if (++n_ready == n) {
        scale_sizes.init = memory_of_all();
    }
}

void world_scale_ended(unsigned its_shorts, unsigned its_longs)
{
    scale_phase_t *phase = &scale_phases[now_phase];
    const bool has_event = SCALE_LEAF <= now_phase && SCALE_IDLE > now_phase;

    shorts += its_shorts;
    longs += its_longs;
    if (++n_ended < n) {
        return;
    }
    n_ended = 0;
    sum_up(&after_round);
    ++phase->rounds;
    ++rounds_after;
    if (!has_event && world_now - round_began > phase->flows) {
        phase->flows = world_now - round_began;
    } else if (has_event && 0 == phase->flows && 0 != phase->event) {
        phase->flows = world_now - phase->event;
    }
    if (SCALE_CONTACT == now_phase) {
        scale_sizes.contact = memory_of_all();
    }
    if (SCALE_IDLE == now_phase) { /* the last of these moments is that of the last round */
        phase->ended = world_now;
        phase->last = after_round;
    }
}

uint64_t scale_plan(void)
{
    n = world_ranks() - PLAN_OF(peers);
    all_rails = scale_all_rails();
    is_whole = true;
    memory_count_begin();
    world_at(WORLD_MS * LOOK_MS, look, NULL);
    return MOST_S * WORLD_S;
}

void world_scale_leaves(void)
{
    sched_end();
    for (;;) {
        world_sleep(WORLD_S);
    }
}
