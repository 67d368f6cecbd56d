/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Hooks of bfo events --follow: for each event a program is run with the event in its environment, or a line is written to syslog(3). No
 * shell sees the contents of an event. DESIGN.txt section 19.12.
 */
#include "bt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

enum { MOST_SECONDS = 30 };

/* ---- environment -------------------------------------------------------------------------------------------- */

static void set_number(const char *name, long long number)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", number);
    setenv(name, text, 1);
}

/* Sets every variable for every event, so that none is left from the event before. */
static void set_environment(const bt_hook_t *hook)
{
    const bfo_figures_event_t *e = hook->event;
    char room[64], when[BT_TIME], lasted[24];

    setenv("BFO_TIME", bt_time(when, e->wall), 1);
    setenv("BFO_EVENT", bt_what_name(e->what), 1);
    setenv("BFO_JOB", bt_job_name(room, hook->process->f.job), 1);
    setenv("BFO_BATCH", hook->process->f.batch, 1);
    setenv("BFO_HOST", hook->process->f.host, 1);
    set_number("BFO_RANK", hook->process->f.rank);
    setenv("BFO_PORT", bt_port_of(room, e->here), 1);
    setenv("BFO_PEER_PORT", bt_port_of(room, e->there), 1);
    set_number("BFO_PEER", e->peer);
    setenv("BFO_PEER_HOST", e->host, 1);
    setenv("BFO_BEFORE", bt_state_name(e->before), 1);
    setenv("BFO_AFTER", bt_state_name(e->after), 1);
    snprintf(lasted, sizeof(lasted), "%.3f", e->lasted_ms / 1e3);
    setenv("BFO_LASTED", lasted, 1);
    setenv("BFO_CAUSE", e->cause, 1);
    set_number("BFO_PROCESSES", (long long) hook->others + 1);
    setenv("BFO_LINE", hook->line, 1);
}

/* ---- program ------------------------------------------------------------------------------------------------- */

/* Waits for the end of the program, and ends it if it takes too long, because later events wait for it. */
static void wait_for(pid_t pid, const char *command)
{
    const double end = bt_now() + MOST_SECONDS;
    int status;
    pid_t done;

    while (0 == (done = waitpid(pid, &status, WNOHANG)) || (0 > done && EINTR == errno)) {
        if (bt_now() > end) {
            fprintf(stderr, "bfo events: %s takes longer than %d s and is ended\n", command, MOST_SECONDS);
            (void) kill(pid, SIGKILL);
            (void) waitpid(pid, &status, 0);
            return;
        }
        bt_sleep_a_while();
    }
    if (0 < done && WIFSIGNALED(status)) {
        fprintf(stderr, "bfo events: signal %d ended %s\n", WTERMSIG(status), command);
    } else if (0 < done && 0 != WEXITSTATUS(status)) {
        fprintf(stderr, "bfo events: %s ended with status %d\n", command, WEXITSTATUS(status));
    }
}

bool bt_hook_run(const char *command, const bt_hook_t *hook)
{
    char *const arguments[] = {(char *) command, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int rc;

    fflush(stdout);
    set_environment(hook);
    rc = posix_spawn_file_actions_init(&actions);
    if (0 == rc) {
        rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        rc = 0 != rc ? rc : posix_spawnp(&pid, command, &actions, NULL, arguments, environ);
        (void) posix_spawn_file_actions_destroy(&actions);
    }
    if (0 != rc) {
        fprintf(stderr, "bfo events: --exec %s: %s; it is the name of a program, without arguments\n", command, strerror(rc));
        return false;
    }
    wait_for(pid, command);
    return true;
}

/* ---- syslog ---------------------------------------------------------------------------------------------------- */

void bt_hook_log(const bt_hook_t *hook)
{
    static bool is_open;
    const uint32_t what = hook->event->what;

    if (!is_open) {
        openlog("bfo", 0, LOG_USER);
        is_open = true;
    }
    syslog(BFO_FIGURES_PEER_LOST == what || BFO_FIGURES_PEER_WAITS == what  ? LOG_ERR
           : BFO_FIGURES_RAIL_LOST == what || BFO_FIGURES_PORT_DOWN == what ? LOG_WARNING
                                                                            : LOG_NOTICE,
           "%s", hook->line);
}
