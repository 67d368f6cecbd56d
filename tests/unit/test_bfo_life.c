/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Is a process of this node alive? Tested on children that run, are stopped, end, and are reaped, and on a /proc that hides them.
 * DESIGN.txt section 11.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bfo_config.h"

#include "formats/pml_bfo_life.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NODE = 7 };

static bfo_life_t own;

/* ---- what the kernel shows --------------------------------------------------------------------------- */

static const char *hidden; /* paths that begin so are missing */
static const char *shown;  /* NULL, or the text in the place of each /proc/PID/stat */
static bool is_refused;    /* no signal may be sent */

static int show_all(void **state)
{
    hidden = shown = NULL;
    is_refused = false;
    return 0;
}

static bool is_hidden(const char *path)
{
    const bool is = NULL != hidden && 0 == strncmp(path, hidden, strlen(hidden));

    errno = is ? ENOENT : errno;
    return is;
}

int open(const char *path, int flags, ...)
{
    int fd;

    if (is_hidden(path)) {
        return -1;
    }
    if (NULL == shown || 0 != strncmp(path, "/proc/", 6) || NULL == strstr(path, "/stat")) {
        return (int) syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
    }
    fd = memfd_create("stat", 0);
    assert_int_equal(strlen(shown), write(fd, shown, strlen(shown)));
    assert_int_equal(0, lseek(fd, 0, SEEK_SET));
    return fd;
}

int kill(pid_t pid, int number)
{
    if (is_refused) {
        errno = EPERM;
        return -1;
    }
    return (int) syscall(SYS_kill, pid, number);
}

int stat(const char *path, struct stat *found)
{
    return is_hidden(path) ? -1 : fstatat(AT_FDCWD, path, found, 0);
}

ssize_t readlink(const char *path, char *text, size_t size)
{
    return is_hidden(path) ? -1 : readlinkat(AT_FDCWD, path, text, size);
}

/* ---- children ------------------------------------------------------------------------------------------ */

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

/* /proc may hide the processes of other users (hidepid), or show a text that is none of Linux. */
static void process_that_is_not_shown_is_not_known(void **state)
{
    static const char *const odd[] = {"", "no line of a process", "7 (x) R 1 2 3"};
    const bfo_life_t child = child_begins();
    char path[64];

    snprintf(path, sizeof(path), "/proc/%u/stat", child.pid);
    hidden = path;
    assert_int_equal(BFO_PROCESS_UNKNOWN, bfo_life_of(&own, &child));
    assert_int_equal(0, bfo_life_started(child.pid));
    hidden = NULL;
    for (int i = 0; i < 3; i++) {
        shown = odd[i];
        assert_int_equal(BFO_PROCESS_UNKNOWN, bfo_life_of(&own, &child));
        assert_int_equal(0, bfo_life_started(child.pid));
    }
    shown = NULL;
    assert_int_equal(BFO_PROCESS_ALIVE, bfo_life_of(&own, &child));
    child_ends(&child);
    hidden = path;
    assert_int_equal(BFO_PROCESS_DEAD, bfo_life_of(&own, &child)); /* the kernel says so without /proc */
}

/* The kernel shows state X only for the instant in which a process disappears. */
static void process_that_disappears_is_dead(void **state)
{
    static const char line[] = "7 (a ) b) %c 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %" PRIu64 " 0 0";
    char text[sizeof(line) + 20];

    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), line, 0 == i ? 'R' : 'X', own.started);
        shown = text;
        assert_int_equal(0 == i ? BFO_PROCESS_ALIVE : BFO_PROCESS_DEAD, bfo_life_of(&own, &own));
        assert_int_equal(0 == i ? own.started : 0, bfo_life_started(own.pid));
    }
}

/* A machine that its own processes cannot tell from others; or /proc shows no processes of this name space. */
static void process_of_an_unknown_machine_knows_nothing(void **state)
{
    char path[64];
    const char *const missing[] = {"/proc/sys/kernel/random/boot_id", path, "/proc/self"};

    snprintf(path, sizeof(path), "/proc/%u/stat", own.pid);
    for (int i = 0; i < 3; i++) {
        bfo_life_t lost;

        hidden = missing[i];
        lost = bfo_life_own(NODE);
        hidden = NULL;
        assert_int_equal(0, lost.node);
        assert_int_equal(own.pid, lost.pid);
        assert_int_equal(BFO_PROCESS_UNKNOWN, bfo_life_of(&lost, &own));
        assert_int_equal(BFO_PROCESS_UNKNOWN, bfo_life_of(&lost, &lost));
        assert_int_equal(BFO_PROCESS_UNKNOWN, bfo_life_of(&own, &lost));
    }
}

static void kernel_without_name_spaces_has_one(void **state)
{
    bfo_life_t before, later;

    hidden = "/proc/self/ns/";
    before = bfo_life_own(NODE);
    later = bfo_life_own(NODE);
    hidden = NULL;
    assert_true(0 != before.node && own.node != before.node);
    assert_int_equal(before.node, later.node);
    assert_int_equal(BFO_PROCESS_ALIVE, bfo_life_of(&before, &later));
}

static void process_of_another_user_is_not_dead(void **state)
{
    const bfo_life_t child = child_begins();

    is_refused = true;
    assert_int_equal(BFO_PROCESS_ALIVE, bfo_life_of(&own, &child));
    is_refused = false;
    child_ends(&child);
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
        cmocka_unit_test_teardown(process_that_is_not_shown_is_not_known, show_all),
        cmocka_unit_test_teardown(process_that_disappears_is_dead, show_all),
        cmocka_unit_test_teardown(process_of_an_unknown_machine_knows_nothing, show_all),
        cmocka_unit_test_teardown(kernel_without_name_spaces_has_one, show_all),
        cmocka_unit_test_teardown(process_of_another_user_is_not_dead, show_all),
    };

    own = bfo_life_own(NODE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
