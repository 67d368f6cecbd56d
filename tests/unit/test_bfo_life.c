/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Is a process of this node alive? Tested on children that run, are stopped, end, and are reaped. DESIGN.txt section 11.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bfo_config.h"

#include "formats/pml_bfo_life.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NODE = 7 };

static bfo_life_t own;

/* Starts a child that waits until it is killed; returns the child's own record. */
static bfo_life_t child_begins(void)
{
    bfo_life_t child;
    int way[2];
    pid_t pid;

    assert_int_equal(0, pipe(way));
    pid = fork();
    assert_true(0 <= pid);
    if (0 == pid) {
        child = bfo_life_own(NODE);
        if ((ssize_t) sizeof(child) != write(way[1], &child, sizeof(child))) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    assert_int_equal(sizeof(child), read(way[0], &child, sizeof(child)));
    close(way[0]);
    close(way[1]);
    assert_int_equal(pid, child.pid);
    assert_int_equal(own.node, child.node);
    return child;
}

/* Waits until the kernel reports this state; does not reap a child that has ended. */
static void child_is(const bfo_life_t *child, int what)
{
    siginfo_t info;

    assert_int_equal(0, waitid(P_PID, child->pid, &info, what | WNOWAIT));
}

static void child_ends(const bfo_life_t *child)
{
    assert_int_equal(0, kill((pid_t) child->pid, SIGKILL));
    assert_int_equal(child->pid, waitpid((pid_t) child->pid, NULL, 0));
}

static void own_process_lives(void **state)
{
    assert_int_not_equal(0, own.node);
    assert_int_equal(getpid(), own.pid);
    assert_int_equal(BFO_PROCESS_ALIVE, bfo_life_of(&own, &own));
    assert_int_equal(own.started, bfo_life_started(own.pid));
    assert_int_equal(24, sizeof(own)); /* its size on the wire */
}

static void stopped_process_lives(void **state)
{
    const bfo_life_t child = child_begins();

    assert_int_equal(BFO_PROCESS_ALIVE, bfo_life_of(&own, &child));
    assert_int_equal(0, kill((pid_t) child.pid, SIGSTOP));
    child_is(&child, WSTOPPED);
    assert_int_equal(BFO_PROCESS_ALIVE, bfo_life_of(&own, &child));
    child_ends(&child);
}

static void zombie_is_dead(void **state)
{
    const bfo_life_t child = child_begins();

    assert_int_equal(0, kill((pid_t) child.pid, SIGKILL));
    child_is(&child, WEXITED);
    assert_int_equal(BFO_PROCESS_DEAD, bfo_life_of(&own, &child));
    assert_int_equal(0, bfo_life_started(child.pid));
    child_ends(&child);
    assert_int_equal(BFO_PROCESS_DEAD, bfo_life_of(&own, &child));
}

static void process_that_took_the_number_is_another(void **state)
{
    bfo_life_t child = child_begins();

    --child.started; /* an earlier process that had this number */
    assert_int_equal(BFO_PROCESS_DEAD, bfo_life_of(&own, &child));
    child_ends(&child);
}

static int main_thread_way[2];

/* Waits until /proc shows the main thread as a zombie, then tells the parent. */
static void *outlives_main_thread(void *arg)
{
    char text[1024] = "", state = 'R';

    while ('Z' != state) {
        FILE *in = fopen("/proc/self/stat", "r");

        if (NULL == in || NULL == fgets(text, sizeof(text), in)) {
            _exit(1);
        }
        fclose(in);
        sscanf(strrchr(text, ')') + 1, " %c", &state);
    }
    if (1 != write(main_thread_way[1], "z", 1)) {
        _exit(1);
    }
    for (;;) {
        pause();
    }
    return arg;
}

static void process_whose_main_thread_has_ended_lives(void **state)
{
    bfo_life_t child = {.node = own.node};
    char got = 0;
    pid_t pid;

    assert_int_equal(0, pipe(main_thread_way));
    pid = fork();
    assert_true(0 <= pid);
    if (0 == pid) {
        pthread_t thread;

        if (0 != pthread_create(&thread, NULL, outlives_main_thread, NULL)) {
            _exit(1);
        }
        pthread_exit(NULL);
    }
    close(main_thread_way[1]); /* a child that fails ends the read below */
    assert_int_equal(1, read(main_thread_way[0], &got, 1));
    close(main_thread_way[0]);
    child.pid = (uint32_t) pid;
    child.started = bfo_life_started(child.pid);
    assert_int_not_equal(0, child.started);
    assert_int_equal(BFO_PROCESS_ALIVE, bfo_life_of(&own, &child));
    child_ends(&child);
    assert_int_equal(BFO_PROCESS_DEAD, bfo_life_of(&own, &child));
}

static void who_is_elsewhere_is_not_known(void **state)
{
    const bfo_life_t child = child_begins(), nobody = {0};
    const bfo_life_t elsewhere = bfo_life_own(NODE + 1);
    bfo_life_t its = child;

    child_ends(&child);
    assert_int_not_equal(own.node, elsewhere.node);
    assert_int_equal(BFO_PROCESS_UNKNOWN, bfo_life_of(&elsewhere, &its));
    assert_int_equal(BFO_PROCESS_UNKNOWN, bfo_life_of(&own, &nobody));
    assert_int_equal(BFO_PROCESS_UNKNOWN, bfo_life_of(&nobody, &nobody)); /* the node is the same, but unknown */
    its.started = 0;
    assert_int_equal(BFO_PROCESS_UNKNOWN, bfo_life_of(&own, &its));
    its = child;
    for (uint32_t i = 0; i < 2; ++i) { /* numbers that kill() takes as groups of processes */
        its.pid = 0 - i;
        assert_int_equal(BFO_PROCESS_UNKNOWN, bfo_life_of(&own, &its));
    }
}

/* In a container with the /proc of its host, /proc shows other processes under these numbers. */
static void proc_of_another_name_space_is_not_believed(void **state)
{
    int status = 0;
    pid_t pid = fork();

    assert_true(0 <= pid);
    if (0 == pid) {
        if (0 != unshare(CLONE_NEWPID) && 0 != unshare(CLONE_NEWUSER | CLONE_NEWPID)) {
            _exit(77);
        }
        pid = fork();
        if (0 == pid) {
            _exit(0 == bfo_life_own(NODE).node ? 0 : 1);
        }
        _exit(pid == waitpid(pid, &status, 0) && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    assert_int_equal(pid, waitpid(pid, &status, 0));
    assert_true(WIFEXITED(status));
    if (77 == WEXITSTATUS(status)) {
        skip();
    }
    assert_int_equal(0, WEXITSTATUS(status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_process_lives),
        cmocka_unit_test(stopped_process_lives),
        cmocka_unit_test(zombie_is_dead),
        cmocka_unit_test(process_that_took_the_number_is_another),
        cmocka_unit_test(process_whose_main_thread_has_ended_lives),
        cmocka_unit_test(who_is_elsewhere_is_not_known),
        cmocka_unit_test(proc_of_another_name_space_is_not_believed),
    };

    own = bfo_life_own(NODE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
