/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * One run: draws the plan, gives the processes their runtime (modex, barrier, parameters), and looks at what is left at the end.
 */
#include "host.h"

#include "fabric.h"
#include "peers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_S = 4000, MOST_AFTER_DEATH_S = 200, MOST_ENTRIES = 16 };

plan_t plan;
uint64_t world_seed;
const world_image_t *const *world_images;
world_process_t world_processes[WORLD_MAX_PROCESSES];
static unsigned n_processes, barriers;
static bool has_arrived[WORLD_MAX_PROCESSES];

/* What processes have published. */
static struct {
    char *key;
    void *bytes;
    size_t size;
} modex[WORLD_MAX_PROCESSES][MOST_ENTRIES];

/* ---- the plan ------------------------------------------------------------------------------------------ */

const char *const plan_names[PLAN_COUNT] = {
#define PLAN(name, simplest, drawn, meaning) [PLAN_##name] = #name,
#include "plan.def"
#undef PLAN
};
const char *const plan_meanings[PLAN_COUNT] = {
#define PLAN(name, simplest, drawn, meaning) [PLAN_##name] = meaning,
#include "plan.def"
#undef PLAN
};
const unsigned plan_simplest[PLAN_COUNT] = {
#define PLAN(name, simplest, drawn, meaning) [PLAN_##name] = simplest,
#include "plan.def"
#undef PLAN
};

static uint64_t plan_state;

static unsigned draw(unsigned n)
{
    plan_state = plan_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned) ((plan_state >> 33) * n >> 31);
}

plan_t plan_draw(uint64_t seed)
{
    plan_t drawn;

    plan_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    (void) draw(2);
#define PLAN(name, simplest, drawn_value, meaning) drawn.value[PLAN_##name] = (unsigned) (drawn_value);
#include "plan.def"
#undef PLAN
    return drawn;
}

unsigned world_plan_of(const char *name)
{
    for (unsigned i = 0; i < PLAN_COUNT; ++i) {
        if (0 == strcmp(name, plan_names[i])) {
            return plan.value[i];
        }
    }
    world_broken("plan.def has no %s", name);
}

unsigned world_turn_least(void)
{
    return PLAN_OF(turn);
}

unsigned world_hash(unsigned n, unsigned a, unsigned b, unsigned c, unsigned d)
{
    uint64_t h = world_seed ^ UINT64_C(0x51ed270b35ae2f1d);
    const unsigned parts[] = {a, b, c, d};

    for (unsigned i = 0; i < 4; ++i) {
        h = (h ^ parts[i]) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    return (unsigned) ((h >> 16 & UINT32_MAX) * n >> 32);
}

/* ---- the runtime ----------------------------------------------------------------------------------------- */

unsigned world_rank(void)
{
    return world_me->rank;
}

unsigned world_node(void)
{
    return world_me->node;
}

unsigned world_ranks(void)
{
    return n_processes + PLAN_OF(peers);
}

void *world_node_memory(size_t size)
{
    static void *memory[WORLD_MAX_PROCESSES];

    if (NULL == memory[world_me->node]) {
        memory[world_me->node] = calloc(1, size);
    }
    return memory[world_me->node];
}

unsigned world_node_of(unsigned rank)
{
    return world_processes[rank].node;
}

const world_looks_t *world_looks_of(unsigned rank)
{
    return rank < n_processes && !world_processes[rank].is_dead ? world_images[rank]->looks : NULL;
}

bool world_call_failed_in(unsigned rank)
{
    return failures_met(rank);
}

bool world_process_is_dead(unsigned rank)
{
    return world_processes[rank].is_dead;
}

void world_put(const char *key, const void *bytes, size_t size)
{
    for (unsigned i = 0; i < MOST_ENTRIES; ++i) {
        if (NULL == modex[world_me->rank][i].key) {
            modex[world_me->rank][i].key = strdup(key);
            modex[world_me->rank][i].bytes = memcpy(malloc(size), bytes, size);
            modex[world_me->rank][i].size = size;
            return;
        }
    }
    world_broken("a process publishes too many keys");
}

const void *world_get(unsigned rank, const char *key, size_t *size)
{
    if (rank >= n_processes) {
        return peers_published(rank, key, size);
    }
    for (unsigned i = 0; i < MOST_ENTRIES && NULL != modex[rank][i].key; ++i) {
        if (0 == strcmp(key, modex[rank][i].key)) {
            *size = modex[rank][i].size;
            return modex[rank][i].bytes;
        }
    }
    return NULL;
}

bool world_is_reported(unsigned rank)
{
    return world_processes[rank].is_dead && world_now >= world_processes[rank].reported;
}

unsigned world_barrier_join(void)
{
    has_arrived[world_me->rank] = true;
    return barriers;
}

bool world_barrier_is_over(unsigned mine)
{
    bool all = mine == barriers;

    for (unsigned p = 0; all && p < n_processes; ++p) {
        all = has_arrived[p] || world_processes[p].is_dead;
    }
    if (all) {
        memset(has_arrived, 0, sizeof(has_arrived));
        ++barriers;
    }
    return mine != barriers;
}

bool world_has_begun(void)
{
    return 0 < barriers;
}

ssize_t world_getrandom(void *buffer, size_t size, unsigned flags)
{
    for (size_t i = 0; i < size; ++i) {
        ((uint8_t *) buffer)[i] = (uint8_t) world_draw(256);
    }
    return (ssize_t) size;
}

void world_says(const char *format, ...)
{
    char line[400];
    va_list values;

    va_start(values, format);
    vsnprintf(line, sizeof(line), format, values);
    va_end(values);
    world_trace("says: %s", line);
}

static const char *drawn_parameter(const char *name)
{
    static char text[32];
    const struct {
        const char *name;
        unsigned value;
    } all[] = {
        {"btl_openib_eager_limit", PLAN_OF(eager)},
        {"btl_openib_rndv_eager_limit", PLAN_OF(eager)},
        {"btl_openib_max_send_size", PLAN_OF(fragment)},
        {"btl_openib_rdma_pipeline_frag_size", 4 * PLAN_OF(fragment)},
        {"btl_openib_rdma_pipeline_send_length", 2 * PLAN_OF(fragment)},
        {"btl_openib_min_rdma_pipeline_size", 4 * PLAN_OF(fragment)},
        {"btl_openib_use_eager_rdma", PLAN_OF(ring)},
        {"btl_openib_use_message_coalescing", PLAN_OF(coalescing)},
        {"btl_openib_deadline", PLAN_OF(deadline)},
        {"btl_openib_soft_deadline", PLAN_OF(soft)},
        {"btl_openib_rejoin_after", PLAN_OF(stable)},
        {"btl_openib_blocking_progress", PLAN_OF(blocking)},
        {"btl_openib_ib_retry_count", PLAN_OF(retries)},
        {"btl_openib_ib_timeout", PLAN_OF(timeout)},
        {"btl_openib_allow_ib", 1},
        {"btl_openib_ignore_locality", 1},
        {"pml_bfo_use_put", PLAN_OF(put)},
        {"pml_bfo_use_get", PLAN_OF(get)},
        {"pml_bfo_rejoin", PLAN_OF(rejoin)},
        {"pml_bfo_verbose", trace_is_verbose ? 2 : 0},
        {"btl_openib_verbose", trace_is_verbose ? 100 : 0},
    };

    if (PLAN_OF(named) && 0 == strcmp(name, "btl_openib_if_include")) {
        return "w0:1,w1:1,w2:1,w3:1";
    }
    if (0 == strcmp(name, "pml_bfo_last_rail_timeout")) {
        return !PLAN_OF(rejoin) ? "0" : PLAN_OF(fails) || PLAN_OF(kills) || PLAN_OF(generation) ? "60" : "-1"; /* a rail may be gone for good */
    }
    if (0 == strcmp(name, "pml_bfo_status_dir")) {
        return "none";
    }
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) {
        if (0 == strcmp(name, all[i].name)) {
            snprintf(text, sizeof(text), "%u", all[i].value);
            return text;
        }
    }
    return NULL;
}

const char *world_parameter(const char *name)
{
    return 0 != PLAN_OF(day) || 0 != PLAN_OF(scale) ? day_parameter(name) : drawn_parameter(name);
}

void world_saw_error(unsigned peer, int error)
{
    world_trace("error %d about %u", error, peer);
    if (peer >= n_processes) {
        for (unsigned p = 0; p < n_processes; ++p) { /* only if nobody is left */
            peer = world_processes[p].is_dead || p == world_me->rank ? peer : p;
        }
    }
    if (peer >= n_processes || world_processes[peer].is_dead) {
        return;
    }
    if (faults_are_harmless()) {
        world_broken("process %u got error %d about process %u, and a rail was left or came back", world_me->rank, error, peer);
    }
    sched_end(); /* as MPI_ERRORS_ARE_FATAL */
}

bool world_has_failed(void)
{
    return failures_met(world_me->rank);
}

void world_gives_up(const char *what)
{
    world_trace("the process cannot %s", what);
    if (!world_has_failed()) {
        world_broken("the process cannot %s", what);
    }
    sched_end();
    for (;;) {
        world_sleep(WORLD_S);
    }
}

/* A job ends in MPI_Init if all ports of a machine are down when it looks. */
void world_has_no_rail(void)
{
    for (unsigned r = 0; r < PLAN_OF(rails); ++r) {
        if (fabric_port_was_always_up(world_me->node, r) && !failures_cost(world_me->rank, r)) {
            world_broken("process %u has no rail, and port w%u was never down", world_me->rank, r);
        }
    }
    sched_end();
    for (;;) {
        world_sleep(WORLD_S);
    }
}

/* ---- the run ----------------------------------------------------------------------------------------------- */

static void look_for_leaks(void)
{
    for (unsigned p = 0; p < n_processes; ++p) {
        const fabric_objects_t left = fabric_objects(p);

        if (world_processes[p].is_dead) {
            continue;
        }
        if (1 != 1 + sched_threads_of(&world_processes[p])) {
            world_broken("process %u has ended, and %u of its threads have not", p, sched_threads_of(&world_processes[p]));
        }
        if (0 != left.contexts + left.pds + left.mrs + left.cqs + left.srqs + left.qps + left.ahs + left.channels) {
            world_broken("process %u has ended and left %u contexts, %u domains, %u registrations, %u completion queues, %u shared queues, "
                         "%u queue pairs, %u addresses, %u channels",
                         p, left.contexts, left.pds, left.mrs, left.cqs, left.srqs, left.qps, left.ahs, left.channels);
        }
    }
}

/* Whoever names a dead process learns of its death by a request that fails, by the keepalive (10 s) or by a witness, and waits for a rail
 * at most 60 s. */
static void look_at_time(void)
{
    for (unsigned p = 0; p < n_processes; ++p) {
        if (world_processes[p].is_dead && world_now > world_processes[p].died + MOST_AFTER_DEATH_S * WORLD_S) {
            world_broken("the others needed %.0f s to end after process %u had died", (double) (world_now - world_processes[p].died) / 1e9, p);
        }
    }
}

void world_run(uint64_t seed, const world_image_t *const images[WORLD_MAX_PROCESSES])
{
    const fabric_habits_t habits = {
        .nodes = PLAN_OF(nodes),
        .rails = PLAN_OF(rails),
        .latency = WORLD_US * PLAN_OF(latency),
        .jitter = WORLD_US * PLAN_OF(jitter),
        .packet_ns = 100,
        .mtu = PLAN_OF(mtu),
        .event_delay = WORLD_US * PLAN_OF(event_delay),
        .has_srq = PLAN_OF(srq),
        .raises_last_wqe = PLAN_OF(last_wqe),
        .flushes_late = PLAN_OF(flushes_late),
        .keeps_lids = PLAN_OF(named) || PLAN_OF(lids),
        .cleans_cqs = PLAN_OF(cleans_cqs),
    };

    uint64_t most = MOST_S * WORLD_S;

    world_seed = seed;
    world_images = images;
    n_processes = 0 != PLAN_OF(peers) ? 1 : PLAN_OF(nodes) * PER_NODE;
    if (n_processes > (0 != PLAN_OF(scale) ? WORLD_MAX_PROCESSES : WORLD_JOB_PROCESSES) || PLAN_OF(rails) > WORLD_MAX_RAILS
        || PLAN_OF(peers) >= WORLD_MAX_PROCESSES || (0 != PLAN_OF(peers) && PLAN_OF(peers) > PEERS_PER_NODE * (PLAN_OF(nodes) - 1))) {
        world_broken("the plan has too many processes or rails");
    }
    sched_begin(seed, PLAN_OF(preempt));
    fabric_begin(&habits);
    for (unsigned p = 0; p < n_processes; ++p) {
        world_processes[p] = (world_process_t){.rank = p, .node = p / PER_NODE};
        sched_add(&world_processes[p], images[p]);
    }
    for (unsigned p = 1; p <= PLAN_OF(peers); ++p) {
        world_processes[p] = (world_process_t){.rank = p, .node = 1 + (p - 1) / PEERS_PER_NODE};
    }
    if (0 != PLAN_OF(scale)) {
        most = scale_plan();
    } else if (0 != PLAN_OF(day)) {
        most = day_plan();
    } else {
        faults_plan();
    }
    if (!sched_run(most)) {
        if (0 != PLAN_OF(peers)) {
            scale_end();
        }
    } else {
        look_for_leaks();
        look_at_time();
        if (0 != PLAN_OF(scale)) {
            scale_end();
        } else if (0 != PLAN_OF(day)) {
            day_end();
        }
    }
}
