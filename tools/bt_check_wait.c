/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo check: time, signals, and messages to the user. All waits of the check are here, so that each one reads the stream and the figures and
 * notices a signal. DESIGN.txt section 19.10.
 */
#include "bt_check.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 50 };

/* Ignored, because a closed pipe, ^Z, or a terminal that stops background output must not leave a port down. */
static const int ignored[] = {SIGPIPE, SIGTSTP, SIGTTOU};
static volatile sig_atomic_t caught;

static void remember(int signal)
{
    caught = signal;
}

void bt_catch_signals(void)
{
    const struct sigaction action = {.sa_handler = remember};
    struct sigaction old;

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGQUIT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (0 == sigaction(SIGHUP, NULL, &old) && SIG_IGN != old.sa_handler) { /* else nohup(1) */
        sigaction(SIGHUP, &action, NULL);
    }
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); ++i) {
        signal(ignored[i], SIG_IGN);
    }
}

void bt_forget_signals(void)
{
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); ++i) {
        signal(ignored[i], SIG_DFL);
    }
}

int bt_signal(void)
{
    return caught;
}

void bt_say(bt_check_t *check, const char *format, ...)
{
    char text[1024], when[BT_TIME];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    bt_time(when, bt_wall_ns());
    fprintf(stderr, "%.12s  %s\n", when + 11, text);
    if (NULL != check->log) {
        fprintf(check->log, "%s check: %s\n", when, text);
        fflush(check->log);
    }
}

void bt_fail(bt_check_t *check, int status, const char *format, ...)
{
    const size_t used = strlen(check->reason);
    char text[512];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    bt_say(check, "%s", text);
    snprintf(check->reason + used, sizeof(check->reason) - used, "%s%s", 0 == used ? "" : "; ", text);
    check->status = BT_WELL == check->status ? status : check->status;
}

bt_wait_t bt_wait(bt_check_t *check, double seconds, bool (*is_so)(bt_check_t *))
{
    const double end = bt_now() + seconds;

    for (;;) {
        bt_stream_pump(check, POLL_MS);
        bt_look(check);
        if (NULL != is_so && is_so(check)) {
            return BT_MET;
        }
        if (0 != bt_signal()) {
            return BT_STOPPED;
        }
        if (0 == check->stream.pid) {
            return BT_ENDED;
        }
        if (bt_now() >= end) {
            return BT_TIMEOUT;
        }
    }
}

void bt_pause(bt_check_t *check, double seconds)
{
    const double end = bt_now() + seconds;

    while (bt_now() < end) {
        bt_stream_pump(check, POLL_MS);
    }
}

bool bt_find_program(const char *name, char *room, size_t size)
{
    const char *path = NULL == getenv("PATH") ? "" : getenv("PATH");

    if (NULL != strchr(name, '/')) {
        return (int) size > snprintf(room, size, "%s", name) && 0 == access(room, X_OK);
    }
    while ('\0' != *path) {
        const size_t n = strcspn(path, ":");

        if ((int) size > snprintf(room, size, "%.*s/%s", (int) n, path, name) && 0 == access(room, X_OK)) {
            return true;
        }
        path += n + (':' == path[n]);
    }
    return false;
}
