/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo check: runs the command that cuts a port and gives it back, without a shell. A signal to the check does not end a command in the middle.
 * The stream is read meanwhile. DESIGN.txt section 19.10.
 */
#include "bt_check.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SECONDS = 60, TRIES = 3, POLL_MS = 5, MOST_WORDS = sizeof(((bt_check_t *) 0)->command) / sizeof(char *) - 3 };

const char *bt_cut_parse(bt_check_t *check)
{
    static char text[4096], program[1024];
    char *rest = NULL;

    if (sizeof(text) <= strlen(check->choice.cut)) {
        return "it is too long; write a script";
    }
    strcpy(text, check->choice.cut);
    for (char *word = strtok_r(text, " \t", &rest); NULL != word; word = strtok_r(NULL, " \t", &rest)) {
        if (MOST_WORDS == check->n_command) {
            return "it has too many words; write a script";
        }
        check->command[check->n_command++] = word;
    }
    if (0 == check->n_command) {
        return "it is empty";
    }
    if (!bt_find_program(check->command[0], program, sizeof(program))) {
        return "there is no such program, in PATH or by that name";
    }
    check->command[0] = program;
    return NULL;
}

bool bt_cut_takes(const char *port)
{
    bool is_word = '-' != port[0] && '\0' != port[0];

    for (; is_word && '\0' != *port; ++port) {
        is_word = isalnum((unsigned char) *port) || NULL != strchr("_.:-", *port);
    }
    return is_word;
}

/* The command has a process group of its own, so that ^C on the terminal does not end it in the middle. */
static void become_command(bt_check_t *check)
{
    const int null = open("/dev/null", O_RDONLY);

    setpgid(0, 0);
    bt_forget_signals();
    if (0 > dup2(null, STDIN_FILENO) || 0 > dup2(fileno(check->log), STDOUT_FILENO) || 0 > dup2(fileno(check->log), STDERR_FILENO)) {
        _exit(126);
    }
    execv(check->command[0], check->command);
    fprintf(stderr, "%s: %s\n", check->command[0], strerror(errno));
    _exit(127);
}

/* Runs the command. Returns NULL if it succeeded, or what went wrong. */
static const char *run(bt_check_t *check, const char *word)
{
    static char why[64];
    const double end = bt_now() + MOST_SECONDS;
    int status = 0;
    pid_t child, ended = 0;

    check->command[check->n_command] = (char *) word;
    check->command[check->n_command + 1] = check->now->name;
    child = fork();
    if (0 == child) {
        become_command(check);
    }
    if (0 > child) {
        return strerror(errno);
    }
    setpgid(child, child);
    while (0 == ended && bt_now() < end) {
        bt_stream_pump(check, POLL_MS);
        ended = waitpid(child, &status, WNOHANG);
    }
    if (0 == ended) {
        kill(-child, SIGKILL);
        (void) waitpid(child, &status, 0);
        snprintf(why, sizeof(why), "did not end within %d s", MOST_SECONDS);
    } else if (WIFSIGNALED(status)) {
        snprintf(why, sizeof(why), "was ended by signal %d", WTERMSIG(status));
    } else {
        snprintf(why, sizeof(why), "failed with status %d", WEXITSTATUS(status));
    }
    return 0 != ended && WIFEXITED(status) && 0 == WEXITSTATUS(status) ? NULL : why;
}

bool bt_cut_down(bt_check_t *check)
{
    const char *why;

    check->is_down = true; /* from here on it may be down */
    why = run(check, "down");
    if (NULL != why) {
        bt_fail(check, BT_TROUBLE, "the command '%s down %s' %s", check->choice.cut, check->now->name, why);
    }
    return NULL == why;
}

bool bt_cut_up(bt_check_t *check)
{
    const char *why = NULL;

    for (int i = 0; i < TRIES; ++i) {
        bt_pause(check, 0 == i ? 0 : 1);
        why = run(check, "up");
        if (NULL == why) {
            check->is_down = false;
            return true;
        }
        bt_say(check, "the command '%s up %s' %s", check->choice.cut, check->now->name, why);
    }
    bt_fail(check, BT_TROUBLE, "%s may still be down: '%s up %s' %s, %d times", check->now->name, check->choice.cut, check->now->name, why, TRIES);
    return false;
}
