/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What a match costs among 10 and among 10,000 receives or messages that wait: times are printed, instructions are counted and bounded.
 * DESIGN.txt section 14.2.
 */
#include "bfo_config.h"

#include "formats/pml_bfo_recv_match.h"

#include "match_keys.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOURCES = 4 };

static struct {
    bfo_match_t m;
    bfo_lane_match_t lanes[SOURCES];
} own;

static void setup(void)
{
    assert_int_equal(0, bfo_match_init(&own.m));
    for (int s = 0; s < SOURCES; ++s) {
        bfo_lane_match_init(&own.lanes[s], 0);
    }
}

/* ---- times ------------------------------------------------------------------------------------------ */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

/* Nanoseconds for a match while `depth` receives are posted that do not fit. */
static double cost_posted(int depth)
{
    bfo_posted_t *others = calloc((size_t) depth + 1, sizeof(*others)), mine = {.key = {.src = 0, .tag = 1 << 20}};
    double best = 1e18;

    setup();
    for (int i = 0; i < depth; ++i) {
        others[i] = (bfo_posted_t){.key = {.src = i % SOURCES, .tag = i}};
        bfo_match_post(&own.m, &own.lanes[i % SOURCES], &others[i]);
    }
    for (int round = 0; round < 20; ++round) {
        const double t = now();

        for (int i = 0; i < 1000; ++i) {
            bfo_match_post(&own.m, &own.lanes[0], &mine);
            assert_ptr_equal(&mine, bfo_match_arrive(&own.m, &own.lanes[0], 0, 1 << 20));
        }
        best = (now() - t) / 1000 < best ? (now() - t) / 1000 : best;
    }
    bfo_match_free(&own.m);
    free(others);
    return best;
}

static double cost_unexpected(int depth)
{
    bfo_unexpected_t *others = calloc((size_t) depth + 1, sizeof(*others)), mine = {.by_key = {.src = 0, .tag = 1 << 20}};
    double best = 1e18;

    setup();
    for (int i = 0; i < depth; ++i) {
        others[i] = (bfo_unexpected_t){.by_key = {.src = i % SOURCES, .tag = i}};
        bfo_match_store(&own.m, &own.lanes[i % SOURCES], &others[i]);
    }
    for (int round = 0; round < 20; ++round) {
        const double t = now();

        for (int i = 0; i < 1000; ++i) {
            bfo_match_store(&own.m, &own.lanes[0], &mine);
            assert_ptr_equal(&mine, bfo_match_peek(&own.m, &own.lanes[0], 0, 1 << 20));
            bfo_match_take(&own.m, &mine);
            bfo_match_store(&own.m, &own.lanes[0], &mine);
            assert_ptr_equal(&mine, bfo_match_peek(&own.m, NULL, BFO_ANY_SOURCE, 1 << 20));
            bfo_match_take(&own.m, &mine);
        }
        best = (now() - t) / 2000 < best ? (now() - t) / 2000 : best;
    }
    bfo_match_free(&own.m);
    free(others);
    return best;
}

static int in_order(int i, int n)
{
    return i;
}
static int even_then_odd(int i, int n)
{
    return i < n / 2 ? 2 * i : 2 * (i - n / 2) + 1;
}

/* Nanoseconds for an early message, from its arrival to its turn, when `n` (even) arrive before their predecessor, in this order. */
static double cost_early(int n, int (*order)(int, int))
{
    bfo_unexpected_t *unexpected = calloc((size_t) n, sizeof(*unexpected)), *got;
    bfo_lane_match_t *lane = own.lanes;
    double t;

    bfo_lane_match_init(lane, 0);
    t = now();
    for (int i = 0; i < n; ++i) {
        const uint32_t seq = 1 + (uint32_t) order(i, n);

        unexpected[i].seq = seq;
        assert_int_equal(BFO_SEQ_EARLY, bfo_lane_admit_among(lane, seq));
        assert_false(bfo_lane_is_held(lane, seq));
        bfo_lane_hold(lane, &unexpected[i]);
    }
    assert_int_equal(BFO_SEQ_NEXT, bfo_lane_admit_among(lane, 0));
    for (uint32_t seq = 1; NULL != (got = bfo_lane_next_held(lane)); ++seq) {
        assert_int_equal(seq, got->seq);
    }
    t = now() - t;
    assert_int_equal(n + 1, lane->next_recv);
    free(unexpected);
    return t / n;
}

static void times_of_a_match(void **state)
{
    const double p10 = cost_posted(10), p10k = cost_posted(10000);
    const double u10 = cost_unexpected(10), u10k = cost_unexpected(10000);

    print_message("ns per match: posted %.0f (10 deep) %.0f (10000), unexpected %.0f, %.0f\n", p10, p10k, u10, u10k);
    print_message("ns per early message of 10000: in order %.0f, every second one first %.0f\n", cost_early(10000, in_order),
                  cost_early(10000, even_then_odd));
}

/* ---- instructions ----------------------------------------------------------------------------------- */

/* Counts the instructions of `work`, one by one. 0: it found the wrong entry; -1: the system forbids counting. */
static long instructions(void (*work)(void))
{
    const pid_t child = fork();
    int status;
    long n = 0;

    if (0 == child) {
        if (0 != ptrace(PTRACE_TRACEME, 0, NULL, NULL)) {
            _exit(1);
        }
        raise(SIGSTOP);
        work();
        raise(SIGSTOP);
        _exit(0);
    }
    if (child != waitpid(child, &status, 0) || !WIFSTOPPED(status)) {
        return -1;
    }
    do {
        if (0 != ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) || child != waitpid(child, &status, 0) || !WIFSTOPPED(status)) {
            return 0;
        }
        ++n;
    } while (SIGSTOP != WSTOPSIG(status));
    ptrace(PTRACE_KILL, child, NULL, NULL);
    waitpid(child, &status, 0);
    return n;
}

/* A case of cost: `depth` receives or messages wait, then one operation is counted. */
enum { SHALLOW = 10, DEEP = 10000, EACH = 50 };
typedef struct {
    const char *name;
    int (*src_of)(int i), (*tag_of)(int i); /* of the receives or messages that wait */
    void (*work)(void);
    enum { POSTED, UNEXPECTED, EARLY } kind;
} cost_t;

static bfo_posted_t *waiting_wants;
static bfo_unexpected_t *waiting_gots;
static int waiting, one_tag, other_tag; /* the two tags meet in one bin, with source 0 and with any source */

static int source_0(int i)
{
    return 0;
}
static int source_any(int i)
{
    return BFO_ANY_SOURCE;
}
static int source_each(int i)
{
    return i % SOURCES;
}
static int source_i(int i)
{
    return i;
}
static int source_16i(int i)
{
    return 16 * i;
}
static int tag_one(int i)
{
    return one_tag;
}
static int tag_i(int i)
{
    return i;
}
static int tag_shifted(int i)
{
    return i << 14;
}
static int tag_doubled(int i)
{
    return i * 32769;
}

static void post_and_arrive(int src, int tag)
{
    bfo_posted_t want = {.key = {.src = src, .tag = tag}};

    bfo_match_post(&own.m, own.lanes, &want);
    if (bfo_match_arrive(&own.m, own.lanes, 0, tag) != &want) {
        _exit(1);
    }
}
static void other_receive(void)
{
    post_and_arrive(0, other_tag);
}
static void other_receive_from_any(void)
{
    post_and_arrive(BFO_ANY_SOURCE, other_tag);
}
static void equal_receive(void)
{
    bfo_posted_t last = {.key = waiting_wants[0].key};

    bfo_match_withdraw(&own.m, &waiting_wants[waiting / 2]);
    bfo_match_withdraw(&own.m, &waiting_wants[waiting - 1]);
    bfo_match_post(&own.m, own.lanes, &last);
    if (bfo_match_arrive(&own.m, own.lanes, 0, last.key.tag) != &waiting_wants[0]) {
        _exit(1);
    }
}
static void store_and_take(int src, int tag)
{
    bfo_unexpected_t got = {.by_key = {.src = 0, .tag = tag}};

    bfo_match_store(&own.m, own.lanes, &got);
    if (bfo_match_peek(&own.m, own.lanes, src, tag) != &got) {
        _exit(1);
    }
    bfo_match_take(&own.m, &got);
}
static void other_message(void)
{
    store_and_take(0, other_tag);
}
static void other_message_for_any(void)
{
    store_and_take(BFO_ANY_SOURCE, other_tag);
}
static void no_message(void)
{
    if (NULL != bfo_match_peek(&own.m, own.lanes, 0, other_tag)) {
        _exit(1);
    }
}
static void equal_message(void)
{
    bfo_unexpected_t last = {.by_key = waiting_gots[0].by_key};

    bfo_match_take(&own.m, &waiting_gots[waiting / 2]);
    bfo_match_take(&own.m, &waiting_gots[waiting - 1]);
    bfo_match_store(&own.m, own.lanes, &last);
    if (bfo_match_peek(&own.m, own.lanes, BFO_ANY_SOURCE, last.by_key.tag) != &waiting_gots[0]) {
        _exit(1);
    }
    bfo_match_take(&own.m, &waiting_gots[0]);
}
static void each_receive(void)
{
    for (int i = 0; i < EACH; ++i) {
        bfo_posted_t *w = &waiting_wants[i * waiting / EACH];

        if (bfo_match_arrive(&own.m, own.lanes, w->key.src, w->key.tag) != w) {
            _exit(1);
        }
    }
}
static void each_message(void)
{
    for (int i = 0; i < EACH; ++i) {
        bfo_unexpected_t *g = &waiting_gots[i * waiting / EACH];

        if (bfo_match_peek(&own.m, own.lanes, g->by_key.src, g->by_key.tag) != g) {
            _exit(1);
        }
        bfo_match_take(&own.m, g);
    }
}

static void early_messages(void)
{
    bfo_lane_match_t *lane = own.lanes;
    bfo_unexpected_t late[EACH] = {{.seq = 0}};

    for (int i = 0; i < EACH; ++i) {
        late[i].seq = (uint32_t) (waiting + 1 + i);
        if (BFO_SEQ_EARLY != bfo_lane_admit_among(lane, late[i].seq) || bfo_lane_is_held(lane, late[i].seq)) {
            _exit(1);
        }
        bfo_lane_hold(lane, &late[i]);
    }
    if (BFO_SEQ_NEXT != bfo_lane_admit_among(lane, 0)) {
        _exit(1);
    }
    for (int i = 0; i < EACH; ++i) {
        if (bfo_lane_next_held(lane) != &waiting_gots[i]) {
            _exit(1);
        }
    }
}

/* Adds receive or message number `i`. */
static void wait_as(const cost_t *c, int i)
{
    const bfo_keyed_t key = {.src = c->src_of(i), .tag = c->tag_of(i)};

    waiting_wants[i].key = key;
    waiting_gots[i] = (bfo_unexpected_t){.by_key = key, .seq = (uint32_t) i + 1};
    if (POSTED == c->kind) {
        bfo_match_post(&own.m, &own.lanes[0], &waiting_wants[i]);
    } else if (UNEXPECTED == c->kind) {
        bfo_match_store(&own.m, &own.lanes[0], &waiting_gots[i]);
    } else {
        bfo_lane_hold(&own.lanes[0], &waiting_gots[i]);
    }
}

static long cost_of(const cost_t *c, int depth)
{
    long n;

    waiting = depth;
    waiting_wants = calloc((size_t) depth, sizeof(*waiting_wants));
    waiting_gots = calloc((size_t) depth, sizeof(*waiting_gots));
    setup();
    for (int i = 0; i < depth; ++i) {
        wait_as(c, i);
    }
    (void) bfo_match_peek(&own.m, NULL, BFO_ANY_SOURCE, -99); /* creates the bins by tag */
    post_and_arrive(0, other_tag);                            /* tables that have to grow do so now */
    post_and_arrive(BFO_ANY_SOURCE, other_tag);
    store_and_take(0, other_tag);
    n = instructions(c->work);
    bfo_match_free(&own.m);
    free(waiting_wants);
    free(waiting_gots);
    return n;
}

static void instructions_do_not_grow_with_depth(void **state)
{
    static const cost_t costs[] = {
        {"receive among equal receives", source_0, tag_one, other_receive, POSTED},
        {"receive among equal receives, any source", source_any, tag_one, other_receive_from_any, POSTED},
        {"equal receives", source_0, tag_one, equal_receive, POSTED},
        {"equal receives, any source", source_any, tag_one, equal_receive, POSTED},
        {"message among equal messages", source_0, tag_one, other_message, UNEXPECTED},
        {"message among equal messages, any source", source_0, tag_one, other_message_for_any, UNEXPECTED},
        {"equal messages", source_0, tag_one, equal_message, UNEXPECTED},
        {"equal messages of several sources", source_each, tag_one, equal_message, UNEXPECTED},
        {"probe among equal messages", source_0, tag_one, no_message, UNEXPECTED},
        {"receives, tags in a row", source_0, tag_i, each_receive, POSTED},
        {"receives, tags i * 16384", source_0, tag_shifted, each_receive, POSTED},
        {"receives, tags i * 32769", source_0, tag_doubled, each_receive, POSTED},
        {"receives, sources in a row", source_i, tag_one, each_receive, POSTED},
        {"messages, tags i * 16384", source_0, tag_shifted, each_message, UNEXPECTED},
        {"messages, sources in a row", source_i, tag_one, each_message, UNEXPECTED},
        {"messages, sources i * 16", source_16i, tag_one, each_message, UNEXPECTED},
        {"early messages", source_0, tag_one, early_messages, EARLY},
    };
    static const int sources[] = {0, BFO_ANY_SOURCE};
    int found[2], bad = 0;

    find_tags(4096, sources, 2, 1000, 1, found, 2);
    one_tag = found[0];
    other_tag = found[1];
    for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); ++i) {
        const bool each = costs[i].work == each_receive || costs[i].work == each_message || costs[i].work == early_messages;
        const long few = cost_of(&costs[i], each ? EACH : SHALLOW);
        const long many = cost_of(&costs[i], DEEP);

        if (few < 0 || many < 0) {
            print_message("skipped: a child may not be traced here (ptrace)\n");
            skip();
        }
        print_message("%-40s %6ld instructions, %6ld among %d\n", costs[i].name, few, many, DEEP);
        bad |= 0 == few || 0 == many || many > few + few / 4;
    }
    assert_int_equal(0, bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_a_match),
        cmocka_unit_test(instructions_do_not_grow_with_depth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
