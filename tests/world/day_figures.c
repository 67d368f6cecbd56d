/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The figures of a day (day.c): prints a row for each, with its bound, and breaks the run if a bound is not kept.
 */
#include "day.h"

#include "fabric.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_FELT = 2000, KIB = 1024, MORE_KIB = 256, MORE_OUT = 16, DEFAULT_IB_TIMEOUT = 17, AFTER_ALL_MS = 250 };

day_t day;
static world_day_counts_t sum;
static unsigned all_rails; /* that the processes can have in use */
static uint64_t times[DAY_KINDS][MOST_FELT];
static unsigned n_felt[DAY_KINDS], n_missed[DAY_KINDS];
static bool is_bad;

/* ---- what is counted ------------------------------------------------------------------------------------ */

void world_day_counts(const world_day_counts_t *c)
{
    const uint64_t *from = (const uint64_t *) c;
    uint64_t *to = (uint64_t *) &sum;

    for (size_t i = 0; i < sizeof(sum) / sizeof(*to); ++i) {
        to[i] += from[i];
    }
    all_rails += (world_ranks() - 1) * PLAN_OF(rails);
}

void day_felt(day_kind_t kind, uint64_t time)
{
    if (MOST_FELT > n_felt[kind]) {
        times[kind][n_felt[kind]++] = time;
    }
}

void day_missed(day_kind_t kind)
{
    ++n_missed[kind];
}

static void least(uint64_t *of, uint64_t value, bool is_known)
{
    *of = !is_known || value < *of ? value : *of;
}

void day_look(day_objects_t *objects)
{
    const struct mallinfo2 heap = mallinfo2();
    world_day_lists_t lists = {0};
    uint64_t qps = 0, mrs = 0;

    for (unsigned p = 0; p < PLAN_OF(nodes) * PER_NODE; ++p) {
        const fabric_objects_t of = fabric_objects(p);

        qps += of.qps;
        mrs += of.mrs;
        world_images[p]->lists(&lists);
    }
    least(&objects->memory, heap.uordblks + heap.hblkhd - fabric_memory() - sched_memory() - lists.bytes, objects->is_known);
    least(&objects->qps, qps, objects->is_known);
    least(&objects->mrs, mrs - lists.registered, objects->is_known);
    least(&objects->out, lists.out, objects->is_known);
    least(&objects->lists, lists.bytes, objects->is_known);
    objects->is_known = true;
}

/* ---- rows ------------------------------------------------------------------------------------------------- */

static void row(const char *what, bool is_good, const char *bound, const char *format, ...) __attribute__((format(printf, 4, 5)));
static void row(const char *what, bool is_good, const char *bound, const char *format, ...)
{
    char text[80];
    va_list values;

    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    printf("%-34s | %-30s | %-24s%s\n", what, text, bound, is_good ? "" : " NOT KEPT");
    is_bad = is_bad || !is_good;
}

static void shown(const char *what, uint64_t n)
{
    row(what, true, "", "%llu", (unsigned long long) n);
}

static void must_be_none(const char *what, uint64_t n)
{
    row(what, 0 == n, "0", "%llu", (unsigned long long) n);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}

/* Bounds in ms; 0: there is none. */
static void times_of(const char *what, day_kind_t kind, unsigned median, unsigned p99)
{
    const unsigned n = n_felt[kind];
    uint64_t *t = times[kind];
    char bound[60];

    if (0 == n + n_missed[kind]) {
        return;
    }
    qsort(t, n, sizeof(*t), by_value);
    snprintf(bound, sizeof(bound), 0 == p99 ? "%u" : "%u, %u", median, p99);
    if (0 == n) {
        row(what, false, bound, "none of %u", n_missed[kind]);
        return;
    }
    row(what, t[n / 2] <= median * WORLD_MS && (0 == p99 || t[(99 * n - 1) / 100] <= p99 * WORLD_MS) && 0 == n_missed[kind], bound,
        "%.1f, %.1f, %.1f (%u)", (double) t[n / 2] / 1e6, (double) t[(99 * n - 1) / 100] / 1e6, (double) t[n - 1] / 1e6, n);
    must_be_none("  not seen", n_missed[kind]);
}

/* ---- the table ------------------------------------------------------------------------------------------------ */

static void job_rows(void)
{
    uint64_t lost = 0;

    for (unsigned node = 0; node < PLAN_OF(nodes); ++node) {
        for (unsigned rail = 0; rail < PLAN_OF(rails); ++rail) {
            lost += fabric_lost(node, rail);
        }
    }
    row("virtual hours, seed", true, "", "%.1f, %llu", (double) world_now / 3600e9, (unsigned long long) world_seed);
    row("bursts, messages verified", true, "", "%llu, %llu", (unsigned long long) sum.bursts / (PLAN_OF(nodes) * PER_NODE),
        (unsigned long long) sum.messages);
    shown("packets lost on the wire", lost);
    shown("inquiries into silent rails", sum.inquiries);
    row("soft verdicts, copies", true, "", "%llu, %llu", (unsigned long long) sum.soft, (unsigned long long) sum.copies);
    must_be_none("peers given up", sum.peers_lost);
}

static void healthy_rows(void)
{
    row("stops, share of a crowded core", 0 != day.stops, "", "%u, %.0f %%", day.stops, 100.0 * (double) day.crowded / (double) world_now);
    must_be_none("hard verdicts", sum.hard);
    must_be_none("rails lost", sum.rails_lost);
    row("rails in use at the end", sum.rails == all_rails, "all", "%llu of %u", (unsigned long long) sum.rails, all_rails);
}

static void grown(const char *what, uint64_t first, uint64_t last, uint64_t more)
{
    char bound[40];

    snprintf(bound, sizeof(bound), 0 == more ? "as after the first ten" : "%llu more", (unsigned long long) more);
    row(what, last <= first + more, bound, "%llu, then %llu", (unsigned long long) first, (unsigned long long) last);
}

static void flap_rows(void)
{
    row("flaps, with all rails", 10 < day.flaps && 0 != day.first.qps && day.last.is_known, "more than ten", "%u, %u", day.flaps, day.all_flaps);
    row("rails lost, back", sum.rails_lost == sum.rails_back, "as many", "%llu, %llu", (unsigned long long) sum.rails_lost,
        (unsigned long long) sum.rails_back);
    row("rails in use at the end", sum.rails == all_rails, "all", "%llu of %u", (unsigned long long) sum.rails, all_rails);
    grown("queue pairs", day.first.qps, day.last.qps, 0);
    grown("registrations, but for lists", day.first.mrs, day.last.mrs, 0);
    grown("fragments out", day.first.out, day.last.out, MORE_OUT);
    grown("memory but for lists, KiB", day.first.memory / KIB, day.last.memory / KIB, MORE_KIB);
    row("memory of lists, KiB", true, "", "%llu, then %llu", (unsigned long long) day.first.lists / KIB, (unsigned long long) day.last.lists / KIB);
}

/* If all rails were away, a message waits until its adapter repeats it, which takes up to an eighth longer in this world. */
static unsigned after_all(void)
{
    const uint64_t repeat = UINT64_C(4096) << (0 != PLAN_OF(repeat) ? PLAN_OF(repeat) : DEFAULT_IB_TIMEOUT);

    return 0 != PLAN_OF(repeat) ? AFTER_ALL_MS : AFTER_ALL_MS + (unsigned) (repeat * 9 / 8 / WORLD_MS);
}

static void exchange_rows(void)
{
    printf("%-34s | %-30s | %s\n", "ms", "median, p99, most (faults)", "bounds of median and p99");
    times_of("silent path, 8-byte exchange", DAY_SILENT, 30, 60);
    times_of("silent path, 1 MiB exchange", DAY_SILENT_BULK, 350, 350);
    times_of("port event, 8-byte exchange", DAY_PORT, 5, 25);
    times_of("only rails away for 0.1 s, after", DAY_AWAY_100, after_all(), 0);
    times_of("only rails away for 1 s, after", DAY_AWAY_1000, after_all(), 0);
    times_of("only rails away for 10 s, after", DAY_AWAY_10000, after_all(), 0);
    times_of("rail back, stable, to full rate", DAY_FULL, 100, 0);
}

void day_end(void)
{
    static const char *const names[] = {"", "healthy rails", "flaps", "silent paths", "returns"};

    printf("%-34s | %-30s | %s\n", names[PLAN_OF(day)], "figure", "bound");
    job_rows();
    if (DAY_HEALTHY == PLAN_OF(day)) {
        healthy_rows();
    } else if (DAY_FLAPS == PLAN_OF(day)) {
        flap_rows();
    } else {
        exchange_rows();
    }
    printf("\n");
    fflush(stdout);
    if (is_bad) {
        world_broken("a bound of the day is not kept");
    }
}
