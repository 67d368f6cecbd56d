/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo check: bfo_stream under `bfo run`, in a child. Its progress lines, one JSON object each, are read; other output of the job goes to the log.
 * DESIGN.txt section 19.10.
 */
#include "bt_check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The largest message: each rank has 32 buffers of this size, and both short and long messages are sent. The stream ends after one day. */
static char option_json[] = "--json", option_max[] = "--max=1048576", option_seconds[] = "--seconds=86400";
/* The default, if the user gives no words: one rank on each node of the allocation. */
static char option_map[] = "--map-by", one_a_node[] = "ppr:1:node";
static char option_mca[] = "--mca", status_dir[] = "pml_bfo_status_dir";

enum { KILL_SECONDS = 10, POLL_MS = 20, MORE_ARGUMENTS = 12 };

/* ---- the child ---------------------------------------------------------------------------------------------- */

/* Finds bfo_stream in the directory of this program, or in PATH. */
static bool find_stream(char *room, size_t size)
{
    static const char name[] = "/bfo_stream";
    const ssize_t n = readlink("/proc/self/exe", room, size - sizeof(name));
    char *slash;

    room[0 < n ? n : 0] = '\0';
    slash = strrchr(room, '/');
    if (NULL != slash) {
        strcpy(slash, name);
        if (0 == access(room, X_OK)) {
            return true;
        }
    }
    return bt_find_program(name + 1, room, size);
}

/* The job has a process group of its own, so that ^C reaches only the check. It ends if the check is killed. */
static void become_job(bt_check_t *check, int out, char *stream, pid_t parent)
{
    const bt_check_choice_t *choice = &check->choice;
    char **argv = calloc((size_t) choice->n_arguments + MORE_ARGUMENTS, sizeof(*argv));
    const int null = open("/dev/null", O_RDONLY);
    int argc = 0;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    bt_forget_signals();
    if (NULL == argv || parent != getppid() || 0 > dup2(null, STDIN_FILENO) || 0 > dup2(out, STDOUT_FILENO)
        || 0 > dup2(fileno(check->log), STDERR_FILENO)) {
        _exit(BT_TROUBLE);
    }
    argv[argc++] = stream; /* in the place of the word "run" */
    if (0 != strcmp(BFO_FIGURES_ROOT, bt_root_of(choice->root))) {
        argv[argc++] = option_mca;
        argv[argc++] = status_dir;
        argv[argc++] = (char *) bt_root_of(choice->root);
    }
    if (0 == choice->n_arguments) {
        argv[argc++] = option_map;
        argv[argc++] = one_a_node;
    }
    for (int i = 0; i < choice->n_arguments; ++i) {
        argv[argc++] = choice->arguments[i];
    }
    argv[argc++] = stream;
    argv[argc++] = option_json;
    argv[argc++] = option_max;
    argv[argc++] = option_seconds;
    _exit(bt_cmd_run(argc, argv));
}

bool bt_stream_start(bt_check_t *check)
{
    const pid_t parent = getpid();
    char stream[512];
    int ends[2];

    if (!find_stream(stream, sizeof(stream))) {
        bt_fail(check, BT_TROUBLE, "bfo_stream is neither beside this bfo nor in PATH");
        return false;
    }
    if (0 != pipe2(ends, O_CLOEXEC)) {
        bt_fail(check, BT_TROUBLE, "no pipe: %s", strerror(errno));
        return false;
    }
    check->stream.pid = fork();
    if (0 == check->stream.pid) {
        become_job(check, ends[1], stream, parent);
    }
    close(ends[1]);
    if (0 > check->stream.pid) {
        bt_fail(check, BT_TROUBLE, "no process: %s", strerror(errno));
        close(ends[0]);
        check->stream.pid = 0;
        return false;
    }
    setpgid(check->stream.pid, check->stream.pid);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    check->stream.out = ends[0];
    return true;
}

/* ---- what it says ------------------------------------------------------------------------------------------- */

/* mpirun may have put something before the object (--tag-output). */
static void take_line(bt_check_t *check, char *line)
{
    bt_stream_t *stream = &check->stream;
    const char *object = strchr(line, '{');
    json_t *json = NULL == object ? NULL : json_loads(object, JSON_DISABLE_EOF_CHECK, NULL);
    json_int_t messages, bytes, wrong;
    double pause;

    bt_clean_text(line, strlen(line) + 1);
    fprintf(check->log, "stream: %s\n", line);
    fflush(check->log);
    if (0 == json_unpack(json, "{s:I, s:I, s:I, s:F}", "messages", &messages, "bytes", &bytes, "wrong", &wrong, "longest_pause_s", &pause)) {
        stream->messages = (uint64_t) messages;
        stream->bytes = (uint64_t) bytes;
        stream->wrong = (uint64_t) wrong;
        stream->longest = pause > stream->longest ? pause : stream->longest;
        stream->gap = pause > stream->gap ? pause : stream->gap;
        stream->spoke = bt_now();
        ++stream->lines;
    }
    json_decref(json);
}

/* Reads some output. False if there is none now. */
static bool read_some(bt_check_t *check)
{
    bt_stream_t *stream = &check->stream;
    const ssize_t n = 0 > stream->out ? -1 : read(stream->out, stream->line + stream->used, sizeof(stream->line) - 1 - stream->used);
    char *end;

    if (0 == n) {
        close(stream->out);
        stream->out = -1;
    }
    if (0 >= n) {
        return false;
    }
    for (ssize_t i = 0; i < n; ++i) { /* some launchers add a zero byte to a line */
        if ('\0' == stream->line[stream->used + (size_t) i]) {
            stream->line[stream->used + (size_t) i] = ' ';
        }
    }
    stream->used += (size_t) n;
    stream->line[stream->used] = '\0';
    while (NULL != (end = memchr(stream->line, '\n', stream->used))) {
        const size_t length = (size_t) (end - stream->line) + 1;

        *end = '\0';
        take_line(check, stream->line);
        stream->used -= length;
        memmove(stream->line, end + 1, stream->used + 1);
    }
    if (sizeof(stream->line) - 1 == stream->used) {
        stream->used = 0; /* bfo_stream writes no line of this length */
    }
    return true;
}

void bt_stream_pump(bt_check_t *check, int ms)
{
    bt_stream_t *stream = &check->stream;
    struct pollfd from = {.fd = stream->out, .events = POLLIN}; /* with -1 poll() only waits */

    if (0 < poll(&from, 1, ms)) {
        while (read_some(check)) {
        }
    }
    if (0 != stream->pid && stream->pid == waitpid(stream->pid, &stream->status, WNOHANG)) {
        stream->pid = 0;
        while (read_some(check)) {
        }
    }
}

/* ---- its end -------------------------------------------------------------------------------------------------- */

static void await_end(bt_check_t *check, double seconds)
{
    const double end = bt_now() + seconds;

    while (0 != check->stream.pid && bt_now() < end) {
        bt_stream_pump(check, POLL_MS);
    }
}

bool bt_stream_end(bt_check_t *check)
{
    bt_stream_t *stream = &check->stream;
    const bool is_asked = 0 != stream->pid && 0 == bt_signal();

    if (is_asked) {
        kill(stream->pid, SIGUSR1);
        await_end(check, check->choice.wait);
    }
    if (0 != stream->pid) {
        kill(stream->pid, SIGTERM);
        await_end(check, KILL_SECONDS);
    }
    if (0 != stream->pid) {
        kill(-stream->pid, SIGKILL);
        await_end(check, KILL_SECONDS);
        return false;
    }
    return is_asked && WIFEXITED(stream->status) && 0 == WEXITSTATUS(stream->status) && 0 == stream->wrong;
}
