/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Fault events from figures: the tests change the figures step by step; each look throws the events that are new, once. DESIGN.txt 19.11.
 */
#include "bt_ftb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 100 };

static bt_process_t process[RANKS], *pointer[RANKS];
static bt_all_t all = {.process = pointer};
static char thrown[1 << 20];

static void sink(const bt_ftb_event_t *e)
{
    char line[BT_FTB_LINE];

    assert_false(e->is_full);
    bt_ftb_write(e, line);
    assert_true(strlen(thrown) + strlen(line) + 2 < sizeof(thrown));
    strcat(strcat(thrown, line), "\n");
}

static size_t look(void)
{
    size_t n = 0;

    thrown[0] = '\0';
    bt_ftb_throw(&all, sink);
    for (const char *at = thrown; NULL != (at = strchr(at, '\n')); ++at) {
        ++n;
    }
    return n;
}

static void must_throw(const char *what)
{
    if (NULL == strstr(thrown, what)) {
        fail_msg("'%s' was not thrown, but:\n%s", what, thrown);
    }
}

/* Begins another job of n ranks, each with one port. The server has forgotten earlier jobs. */
static void new_job(size_t n)
{
    static uint32_t job = 1 << 16;

    all.n = 0;
    (void) look();
    ++job;
    for (size_t i = 0; i < n; ++i) {
        process[i] = (bt_process_t){.uid = geteuid(), .alive = true};
        process[i].f.job = job;
        process[i].f.rank = (uint32_t) i;
        process[i].f.pid = 1000 + (uint32_t) i;
        process[i].f.began_wall = bt_wall_ns();
        process[i].f.ranks = (uint32_t) n;
        process[i].f.n_ports = 1;
        process[i].f.port[0] = (bfo_figures_port_t){.state = BFO_FIGURES_UP, .rails = 2};
        strcpy(process[i].f.host, "n1");
        strcpy(process[i].f.port[0].name, "sr0:1");
        pointer[i] = &process[i];
    }
    all.n = n;
}

static void write_event(size_t i, bfo_figures_what_t what, int peer, const char *there)
{
    bfo_figures_t *f = &process[i].f;
    bfo_figures_event_t *e = &f->event[f->n_events % BFO_FIGURES_EVENTS];

    *e = (bfo_figures_event_t){.number = ++f->n_events, .wall = bt_wall_ns(), .what = what, .peer = peer};
    strcpy(e->here, BFO_FIGURES_RAIL_LOST == what ? "sr0:1 (GUID 0x1)" : "");
    strcpy(e->there, there);
    strcpy(e->host, 0 > peer ? "" : "n2");
    e->after = BFO_FIGURES_PEER_LOST == what ? BFO_FIGURES_GIVEN_UP : BFO_FIGURES_PEER_WAITS == what ? BFO_FIGURES_WAITED_FOR : BFO_FIGURES_REACHED;
    strcpy(e->cause, 0 > peer ? "" : "retries \"exceeded\"");
}

static void set_ports(size_t n, uint32_t state, uint32_t lost)
{
    for (size_t i = 0; i < n; ++i) {
        process[i].f.port[0].state = state;
        process[i].f.port[0].rails_lost = lost;
    }
}

static void port_is_told_when_its_state_changes(void **state)
{
    new_job(2);
    assert_int_equal(0, look());
    set_ports(1, BFO_FIGURES_LOST, 2); /* the other process has not noticed yet */
    assert_int_equal(1, look());
    must_throw("ftb.mpi.bfo warning CHECK_INTERFACE iface: sr0:1, node: n1, job: ");
    must_throw("state: \"partly lost\", rails: 4, rails_lost: 2");
    set_ports(2, BFO_FIGURES_LOST, 2);
    assert_int_equal(1, look());
    must_throw("ftb.mpi.bfo error MPI_IFACE_DEAD iface: sr0:1, node: n1, job: ");
    must_throw("state: lost, rails: 4, rails_lost: 4");
    assert_int_equal(0, look());
    set_ports(2, BFO_FIGURES_UP, 0);
    assert_int_equal(1, look());
    must_throw("ftb.mpi.bfo info MPI_IFACE_RESTORED iface: sr0:1, node: n1, job: ");
    assert_int_equal(0, look());
    set_ports(2, BFO_FIGURES_DRAINING, 0);
    assert_int_equal(1, look());
    must_throw("ftb.mpi.bfo info MPI_IFACE_DRAINING ");
    set_ports(2, BFO_FIGURES_DRAINED, 0);
    assert_int_equal(1, look());
    must_throw("MPI_IFACE_DEAD iface: sr0:1, ");
    must_throw("state: drained");
    bt_ftb_throw_port_again("sr0:1", true); /* asked for again, therefore thrown again */
    assert_int_equal(1, look());
    must_throw("MPI_IFACE_DEAD ");
    bt_ftb_throw_port_again("sr0:1", false); /* the port is not up yet */
    bt_ftb_throw_port_again("sr1:1", true);
    assert_int_equal(0, look());
    set_ports(2, BFO_FIGURES_UP, 0);
    assert_int_equal(1, look());
    must_throw("MPI_IFACE_RESTORED ");
    bt_ftb_throw_port_again("sr0:1", false);
    assert_int_equal(1, look());
    must_throw("MPI_IFACE_RESTORED ");
}

static void port_that_was_lost_before_the_server_began_is_told(void **state)
{
    new_job(2);
    set_ports(2, BFO_FIGURES_LOST, 2);
    assert_int_equal(1, look());
    must_throw("MPI_IFACE_DEAD ");
}

/* A port that no process uses is no loss; a process that does not use the port says nothing about those that do. */
static void port_that_nobody_uses_is_no_loss(void **state)
{
    bt_job_t job;

    new_job(2);
    set_ports(2, BFO_FIGURES_UNUSED, 0);
    assert_int_equal(0, look());
    bt_job_sum(&job, &all, 0, 2);
    assert_true(bt_job_is_well(&job));
    set_ports(1, BFO_FIGURES_NEVER_UP, 2);
    assert_int_equal(1, look());
    must_throw("MPI_IFACE_DEAD ");
    must_throw("state: \"never up\"");
    bt_job_sum(&job, &all, 0, 2);
    assert_false(bt_job_is_well(&job));
    assert_int_equal(1, job.n_ports_lost);
    process[1].f.port[0].state = BFO_FIGURES_LOST;
    bt_job_sum(&job, &all, 0, 2);
    assert_int_equal(BFO_FIGURES_LOST, job.port[0].state);
    process[1].f.port[0].state = BFO_FIGURES_UP;
    bt_job_sum(&job, &all, 0, 2);
    assert_int_equal(BFO_FIGURES_PART, job.port[0].state);
}

static void what_many_noticed_alike_is_one_event(void **state)
{
    new_job(RANKS);
    assert_int_equal(0, look());
    for (size_t i = 0; i < 3; ++i) {
        write_event(i, BFO_FIGURES_RAIL_LOST, (int) i + 200, "sr7:1 (GUID 0x2)");
    }
    write_event(4, BFO_FIGURES_RAIL_LOST, 204, "sr8:1 (GUID 0x3)");
    assert_int_equal(2, look());
    must_throw("ftb.mpi.bfo error COMM_FAILURE iface: sr0:1, node: n1, job: ");
    must_throw("ranks: {0, 1, 2}, peers: {200, 201, 202}, peer_node: n2, peer_iface: sr7:1, cause: \"retries \\\"exceeded\\\"\"\n");
    must_throw("ranks: {4}, peers: {204}, peer_node: n2, peer_iface: sr8:1");
    assert_int_equal(0, look());
    for (size_t i = 0; i < RANKS; ++i) { /* more ranks than a set has room for */
        write_event(i, BFO_FIGURES_BEGUN, -1, "");
    }
    assert_int_equal(2, look());
    must_throw("ftb.mpi.bfo info MPI_INIT node: n1, job: ");
    must_throw(" 63}\n");
    must_throw("ranks: {64, ");
}

static void rank_is_given_up_once_and_dead_once(void **state)
{
    new_job(3);
    assert_int_equal(0, look());
    write_event(0, BFO_FIGURES_PEER_LOST, 2, "");
    assert_int_equal(3, look());
    must_throw("ftb.mpi.bfo error COMMUNICATION node: n1, job: ");
    must_throw("ftb.mpi.bfo error UNREACHABLE node: n1, job: ");
    must_throw("ranks: {0}, peers: {2}, state: \"given up\", peer_node: n2, ");
    must_throw("ftb.mpi.bfo error MPI_RANKS_DEAD ");
    must_throw("ranks: {2}, state: \"given up\"\n");
    write_event(1, BFO_FIGURES_PEER_LOST, 2, ""); /* a second process gives the peer up */
    assert_int_equal(2, look());
    assert_null(strstr(thrown, "MPI_RANKS_DEAD"));
    process[2].alive = false;
    assert_int_equal(1, look());
    must_throw("nodes: {n1}, jobs: {");
    must_throw("ranks: {2}, state: dead\n");
    assert_int_equal(0, look());
}

static void rank_is_waited_for_and_reached_again(void **state)
{
    new_job(3);
    assert_int_equal(0, look());
    write_event(0, BFO_FIGURES_PEER_WAITS, 2, "");
    write_event(1, BFO_FIGURES_PEER_WAITS, 2, "");
    assert_int_equal(1, look());
    must_throw("ftb.mpi.bfo error UNREACHABLE node: n1, job: ");
    must_throw("ranks: {0, 1}, peers: {2}, state: \"waited for\", peer_node: n2, ");
    write_event(0, BFO_FIGURES_PEER_BACK, 2, "");
    write_event(1, BFO_FIGURES_PEER_BACK, 2, "");
    assert_int_equal(1, look());
    must_throw("ftb.mpi.bfo info MPI_RANKS_ALIVE ");
    must_throw("nodes: {n2}, jobs: {");
    must_throw("ranks: {2}, state: reached\n");
}

/* Two containers of one node have ports of one name: the server tells them apart. */
static void hosts_of_one_node_are_kept_apart(void **state)
{
    new_job(2);
    strcpy(process[1].f.host, "n1-container");
    set_ports(1, BFO_FIGURES_LOST, 2);
    assert_int_equal(1, look());
    must_throw("MPI_IFACE_DEAD iface: sr0:1, node: n1, ");
    assert_int_equal(0, look());
}

static void old_crash_is_no_news(void **state)
{
    new_job(2);
    for (size_t i = 0; i < 2; ++i) {
        process[i].alive = false;
        process[i].f.began_wall = 1;
    }
    assert_int_equal(0, look());
    new_job(2);
    assert_int_equal(0, look());
    process[0].alive = process[1].alive = false;
    assert_int_equal(1, look());
    must_throw("ranks: {0, 1}, state: dead\n");
}

static void events_that_nobody_saw_are_counted(void **state)
{
    new_job(2);
    assert_int_equal(0, look());
    for (size_t i = 0; i < BFO_FIGURES_EVENTS + 5; ++i) {
        write_event(0, BFO_FIGURES_RAIL_LOST, 1, "sr7:1");
    }
    (void) look();
    must_throw("ftb.mpi.bfo error OUT_OF_RESOURCES resource: events, user: ");
    must_throw(" lost: 5\n");
    assert_int_equal(0, look());
}

static void hostile_figures_are_bounded(void **state)
{
    new_job(RANKS);
    assert_int_equal(0, look());
    for (size_t i = 0; i < RANKS; ++i) {
        for (int k = 0; k < BFO_FIGURES_EVENTS; ++k) {
            write_event(i, BFO_FIGURES_RAIL_LOST, (int) (1000 * i) + k, "sr7:1");
        }
    }
    assert_true(look() <= 1 + 4096 / BT_FTB_SET);
    must_throw(" lost: 2304\n"); /* of 100 times 64 events the server takes 4096 */
    process[0].f.n_events = UINT64_MAX;
    (void) look();
    process[0].f.n_events = 0;
    (void) look();
}

/* Hundreds of jobs lose all their ports at once. The next look throws the events that had no room in this look. */
static void states_of_many_jobs_are_told_in_several_looks(void **state)
{
    new_job(RANKS);
    for (size_t i = 0; i < RANKS; ++i) {
        process[i].f.job = (uint32_t) (2 + i) << 16;
        process[i].f.n_ports = BFO_FIGURES_PORTS;
        for (int k = 0; k < BFO_FIGURES_PORTS; ++k) {
            process[i].f.port[k] = process[i].f.port[0];
            snprintf(process[i].f.port[k].name, sizeof(process[i].f.port[k].name), "sr%d:1", k);
            process[i].f.port[k].state = BFO_FIGURES_LOST;
        }
    }
    assert_int_equal(1024, look());
    assert_int_equal(RANKS * BFO_FIGURES_PORTS - 1024, look());
    assert_int_equal(0, look());
}

static void count_port(bt_ftb_known_t *port, void *context)
{
    ++*(size_t *) context;
}

/* Otherwise the server would grow with every job, and would mistake a later job of the same number for the old job. */
static void job_that_is_gone_is_forgotten(void **state)
{
    size_t n_ports = 0;

    new_job(2);
    assert_int_equal(0, look());
    write_event(0, BFO_FIGURES_PEER_LOST, 1, "");
    assert_int_equal(3, look());
    bt_ftb_known_ports(count_port, &n_ports);
    assert_int_equal(1, n_ports);
    all.n = 0;
    assert_int_equal(0, look());
    n_ports = 0;
    bt_ftb_known_ports(count_port, &n_ports);
    assert_int_equal(0, n_ports);
    all.n = 2; /* the job's old events are new again */
    assert_int_equal(3, look());
    must_throw("MPI_RANKS_DEAD ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(port_is_told_when_its_state_changes),
        cmocka_unit_test(port_that_was_lost_before_the_server_began_is_told),
        cmocka_unit_test(port_that_nobody_uses_is_no_loss),
        cmocka_unit_test(what_many_noticed_alike_is_one_event),
        cmocka_unit_test(rank_is_given_up_once_and_dead_once),
        cmocka_unit_test(rank_is_waited_for_and_reached_again),
        cmocka_unit_test(hosts_of_one_node_are_kept_apart),
        cmocka_unit_test(old_crash_is_no_news),
        cmocka_unit_test(events_that_nobody_saw_are_counted),
        cmocka_unit_test(hostile_figures_are_bounded),
        cmocka_unit_test(states_of_many_jobs_are_told_in_several_looks),
        cmocka_unit_test(job_that_is_gone_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
