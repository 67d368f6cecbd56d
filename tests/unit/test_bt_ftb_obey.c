/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Questions to the server of fault events: its answers from the figures of this node, and the questions that it leaves without an answer.
 * DESIGN.txt section 19.11.
 */
#include "bt_ftb.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 4 };

static bt_process_t process[RANKS], *pointer[RANKS];
static bt_all_t all = {.process = pointer};
static char answers[1 << 16], here[200];

static void sink(const bt_ftb_event_t *e)
{
    char line[BT_FTB_LINE];

    bt_ftb_write(e, line);
    strcat(strcat(answers, line), "\n");
}

/* Returns NULL, or why the server refuses the question. Its answers are in `answers`. */
static const char *ask(const char *event, const char *payload)
{
    static bt_ftb_event_t e;
    char line[BT_FTB_REQUEST];
    const char *why;

    snprintf(line, sizeof(line), "a.test info %s %s", event, payload);
    assert_true(bt_ftb_read(&e, line));
    why = bt_ftb_obey(&e, "/nonexistent");
    answers[0] = '\0';
    bt_ftb_answer(&all, sink);
    return why;
}

static void must_answer(const char *what)
{
    if (NULL == strstr(answers, what)) {
        fail_msg("'%s' is not answered, but:\n%s", what, answers);
    }
}

/* Job 1.1 with `ranks` ranks; ranks 0 to n - 1 run on this node. */
static void set_job(size_t n, uint32_t ranks, bool alive)
{
    for (size_t i = 0; i < n; ++i) {
        process[i] = (bt_process_t){.uid = geteuid(), .alive = alive};
        process[i].f.job = 1 << 16 | 1;
        process[i].f.rank = (uint32_t) i;
        process[i].f.ranks = ranks;
        process[i].f.n_ports = 1;
        process[i].f.port[0] = (bfo_figures_port_t){.state = BFO_FIGURES_PART, .rails = 2, .rails_lost = 1, .name = "sr0:1"};
        strcpy(process[i].f.host, "n1");
        strcpy(process[i].f.batch, "4711");
        pointer[i] = &process[i];
    }
    all.n = n;
}

static void job_is_dead_only_if_all_of_it_was_here(void **state)
{
    set_job(2, 4, false);
    assert_null(ask("CHECK_JOBS_DEAD", "jobs: 1.1"));
    must_answer("error MPI_RANKS_DEAD ");
    must_answer("ranks: {0, 1}\n");
    assert_null(strstr(answers, "CONFIRM"));
    set_job(2, 0, false); /* the number of ranks is unknown */
    assert_null(ask("CHECK_JOBS_DEAD", "jobs: 1.1"));
    assert_null(strstr(answers, "CONFIRM"));
    set_job(4, 4, false);
    assert_null(ask("CHECK_JOBS_DEAD", "jobs: {nobody, 4711}"));
    must_answer("error CONFIRM_JOBS_DEAD ");
    must_answer("jobs: {1.1}, batch: 4711, node: n1\n");
    process[3].alive = true;
    assert_null(ask("CHECK_JOBS_DEAD", "jobs: 1"));
    must_answer("info CONFIRM_JOBS_RUNNING ");
    assert_null(strstr(answers, "DEAD"));
    assert_null(ask("CHECK_JOBS_DEAD", "jobs: {2, 1.2, 47}"));
    assert_string_equal("", answers);
}

static void ranks_are_answered_for_as_far_as_they_are_here(void **state)
{
    set_job(2, 4, true);
    process[1].alive = false;
    assert_null(ask("CHECK_RANKS_DEAD", "ranks: {0, 1, 2, 3}"));
    must_answer("info CONFIRM_RANKS_ALIVE ");
    must_answer("jobs: {1.1}, ranks: {0}\n");
    must_answer("error CONFIRM_RANKS_DEAD ");
    must_answer("jobs: {1.1}, ranks: {1}\n");
    assert_null(ask("CHECK_RANKS_DEAD", "ranks: {2, 3}"));
    assert_string_equal("", answers);
    assert_null(ask("CHECK_RANKS_DEAD", "ranks: {0, 1}, jobs: 1.2"));
    assert_string_equal("", answers);
}

static void port_is_dead_when_all_its_rails_are_lost(void **state)
{
    char payload[256];

    set_job(2, 2, true);
    snprintf(payload, sizeof(payload), "iface: {sr0:1, sr1:1}, node: %s", here);
    assert_null(ask("CHECK_INTERFACE", payload));
    must_answer("info CONFIRM_INTERFACE_ALIVE iface: sr0:1, node: n1, job: 1.1, ");
    assert_null(strstr(answers, "sr1:1"));
    process[0].f.port[0].rails_lost = process[1].f.port[0].rails_lost = 2;
    assert_null(ask("CHECK_INTERFACE", payload));
    must_answer("error CONFIRM_INTERFACE_DEAD iface: sr0:1, node: n1, job: 1.1, ");
    process[0].alive = process[1].alive = false; /* no live process uses the port */
    assert_null(ask("CHECK_INTERFACE", payload));
    assert_string_equal("", answers);
}

/* Does a question for a node of this name concern this node? */
static bool is_ours(const char *name)
{
    char payload[512];

    snprintf(payload, sizeof(payload), "nodes: {other, \"%s\"}", name);
    assert_null(ask("CHECK_NODES_DEAD", payload));
    return NULL != strstr(answers, "CONFIRM_NODES_ALIVE");
}

static void node_is_known_by_its_name(void **state)
{
    char name[256];
    const bool has_domain = NULL != strchr(here, '.');

    all.n = 0;
    assert_true(is_ours(here));
    snprintf(name, sizeof(name), "%.*s", (int) strcspn(here, "."), here);
    assert_true(is_ours(name));
    for (char *at = name; '\0' != *at; ++at) {
        *at = (char) toupper((unsigned char) *at);
    }
    assert_true(is_ours(name));
    strcat(name, ".another.domain");
    assert_int_equal(!has_domain, is_ours(name)); /* a node that knows no domain of its own accepts any domain */
    snprintf(name, sizeof(name), "%s0", here);
    assert_false(is_ours(name));
    snprintf(name, sizeof(name), "%.1s", here);
    assert_int_equal(1 == strcspn(here, "."), is_ours(name));
    assert_false(is_ours(""));
    assert_false(is_ours("."));
    assert_false(is_ours("*"));
}

static void question_that_lacks_something_is_refused(void **state)
{
    assert_non_null(ask("IFACE_DEAD", "iface: sr0:1"));
    assert_non_null(ask("IFACE_DEAD", "node: n1"));
    assert_non_null(ask("IFACE_RESTORED", ""));
    assert_non_null(ask("CHECK_INTERFACE", "iface: sr0:1"));
    assert_non_null(ask("CHECK_RANKS_DEAD", "jobs: 1.1"));
    assert_non_null(ask("CHECK_JOBS_DEAD", ""));
    assert_non_null(ask("CHECK_NODES_DEAD", ""));
    assert_null(ask("SOMETHING_ELSE", ""));
}

static void questions_that_wait_are_bounded(void **state)
{
    static bt_ftb_event_t e;
    unsigned taken = 0;

    assert_true(bt_ftb_read(&e, "a.test info CHECK_RANKS_DEAD ranks: 0"));
    while (taken < 1000 && NULL == bt_ftb_obey(&e, "/nonexistent")) {
        ++taken;
    }
    assert_int_equal(64, taken);
    set_job(1, 1, true);
    answers[0] = '\0';
    bt_ftb_answer(&all, sink);
    must_answer("CONFIRM_RANKS_ALIVE ");
    assert_null(bt_ftb_obey(&e, "/nonexistent"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_is_dead_only_if_all_of_it_was_here),   cmocka_unit_test(ranks_are_answered_for_as_far_as_they_are_here),
        cmocka_unit_test(port_is_dead_when_all_its_rails_are_lost), cmocka_unit_test(node_is_known_by_its_name),
        cmocka_unit_test(question_that_lacks_something_is_refused), cmocka_unit_test(questions_that_wait_are_bounded),
    };

    if (0 != gethostname(here, sizeof(here) - 1)) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
