/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Other nodes: runs a command on each host of a list and returns its output. No server is needed: a user who may log in on a host may
 * ask it. DESIGN.txt section 19.9.
 */
#include "bt_hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIDE_BY_SIDE = 64, PIECE = 1 << 16 };

extern char **environ;

/* ---- words ------------------------------------------------------------------------------------------------ */

static const char *rsh_of(const bt_source_t *source)
{
    const char *env = getenv("BFO_RSH");

    return NULL != source->rsh ? source->rsh : NULL != env && '\0' != env[0] ? env : "ssh -o BatchMode=yes";
}

/* Does the word have only characters that no shell interprets? */
static bool is_plain(const char *word)
{
    return '\0' != word[0] && strlen(word) == strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/@%+=,-");
}

const char *bt_hosts_check(const bt_source_t *source, const char *const *words)
{
    const size_t length = strlen(source->hosts);

    if (0 == length || ',' == source->hosts[0] || ',' == source->hosts[length - 1] || NULL != strstr(source->hosts, ",,")) {
        return "--hosts is a list of names with commas between";
    }
    if (!is_plain(source->hosts) || '-' == source->hosts[0] || NULL != strstr(source->hosts, ",-") || NULL != strpbrk(source->hosts, "/=%+")) {
        return "--hosts takes names of hosts; 'scontrol show hostnames' makes them of Slurm's lists";
    }
    for (size_t i = 0; NULL != words[i]; ++i) {
        if (!is_plain(words[i])) {
            return "with --hosts no argument may hold characters that mean something to a shell";
        }
    }
    return NULL;
}

static bool take_hosts(bt_hosts_t *hosts, const char *list)
{
    size_t n = 1;

    for (const char *c = list; '\0' != *c; ++c) {
        n += ',' == *c;
    }
    hosts->host = n <= BT_MOST_HOSTS ? calloc(n, sizeof(*hosts->host)) : NULL;
    while (NULL != hosts->host && hosts->n < n) {
        const size_t length = strcspn(list, ",");
        char *name = strndup(list, length);

        if (NULL == name) {
            return false;
        }
        hosts->host[hosts->n++] = (bt_host_t){.host = name, .status = -1};
        list += length + (',' == list[length]);
    }
    return NULL != hosts->host;
}

void bt_hosts_free(bt_hosts_t *hosts)
{
    for (size_t i = 0; i < hosts->n; ++i) {
        free(hosts->host[i].host);
        free(hosts->host[i].out);
    }
    free(hosts->host);
    *hosts = (bt_hosts_t){.host = NULL};
}

/* ---- children ------------------------------------------------------------------------------------------------ */

typedef struct {
    bt_host_t *host; /* NULL: none */
    pid_t pid;
    int out;
} child_t;

typedef struct {
    char self[4096], rsh[1024]; /* the arguments point into these */
    char *argument[2 * BT_MOST_WORDS + 4];
    size_t host_at; /* index of the host among the arguments */
    size_t most;
} call_t;

/* Makes the call RSH HOST /path/of/this/bfo WORDS. */
static bool make_call(call_t *call, const bt_source_t *source, const char *const *words)
{
    const ssize_t length = readlink("/proc/self/exe", call->self, sizeof(call->self) - 1);
    size_t n = 0;
    char *rest;

    if (0 >= length || strlen(rsh_of(source)) >= sizeof(call->rsh)) {
        return false;
    }
    call->self[length] = '\0';
    strcpy(call->rsh, rsh_of(source));
    for (char *word = strtok_r(call->rsh, " ", &rest); NULL != word && n < BT_MOST_WORDS; word = strtok_r(NULL, " ", &rest)) {
        call->argument[n++] = word;
    }
    call->host_at = n++;
    call->argument[n++] = call->self;
    for (size_t i = 0; NULL != words[i] && i < BT_MOST_WORDS; ++i) {
        call->argument[n++] = (char *) words[i];
    }
    call->argument[n] = NULL;
    return 1 < n && 0 != call->host_at;
}

static void start(child_t *child, bt_host_t *host, call_t *call)
{
    posix_spawn_file_actions_t actions;
    int ends[2], rc;

    if (0 != pipe2(ends, O_CLOEXEC)) {
        fprintf(stderr, "bfo: %s: %s\n", host->host, strerror(errno));
        return;
    }
    call->argument[call->host_at] = host->host;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    rc = posix_spawnp(&child->pid, call->argument[0], &actions, NULL, call->argument, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (0 != rc) {
        fprintf(stderr, "bfo: %s: '%s' cannot be run: %s\n", host->host, call->argument[0], strerror(rc));
        close(ends[0]);
        return;
    }
    child->host = host;
    child->out = ends[0];
}

static void finish(child_t *child, bool is_whole)
{
    int status = -1;

    close(child->out);
    if (!is_whole) {
        kill(child->pid, SIGKILL);
    }
    while (0 > waitpid(child->pid, &status, 0) && EINTR == errno) {
    }
    child->host->status = is_whole ? status : -1;
    child->host = NULL;
}

/* Takes output of the child. True if more may come. */
static bool take_output(child_t *child, size_t most)
{
    bt_host_t *host = child->host;
    ssize_t got;

    if (host->room - host->length < PIECE) {
        unsigned char *more = host->room < most ? realloc(host->out, 2 * host->room + PIECE) : NULL;

        if (NULL == more) {
            fprintf(stderr, "bfo: %s: it said more than is taken\n", host->host);
            finish(child, false);
            return false;
        }
        host->out = more;
        host->room = 2 * host->room + PIECE;
    }
    got = read(child->out, host->out + host->length, PIECE);
    if (0 < got) {
        host->length += (size_t) got;
        return true;
    }
    if (0 > got && (EINTR == errno || EAGAIN == errno)) {
        return true;
    }
    finish(child, true);
    return false;
}

static void end_all(child_t *child, double seconds)
{
    for (int i = 0; i < SIDE_BY_SIDE; ++i) {
        if (NULL != child[i].host) {
            fprintf(stderr, "bfo: %s: no answer within %g s\n", child[i].host->host, seconds);
            finish(&child[i], false);
        }
    }
}

bool bt_hosts_run(bt_hosts_t *hosts, const bt_source_t *source, const char *const *words, size_t most, double seconds)
{
    static call_t call;
    child_t child[SIDE_BY_SIDE] = {{.host = NULL}};
    const double end = bt_now() + seconds;
    size_t next = 0;

    *hosts = (bt_hosts_t){.host = NULL};
    if (!take_hosts(hosts, source->hosts) || !make_call(&call, source, words)) {
        return false;
    }
    for (;;) {
        struct pollfd wait[SIDE_BY_SIDE];
        int running = 0;

        for (int i = 0; i < SIDE_BY_SIDE; ++i) {
            while (NULL == child[i].host && next < hosts->n) {
                start(&child[i], &hosts->host[next++], &call);
            }
            wait[i] = (struct pollfd){.fd = NULL == child[i].host ? -1 : child[i].out, .events = POLLIN};
            running += NULL != child[i].host;
        }
        if (0 == running) {
            return true;
        }
        if (bt_now() >= end) {
            end_all(child, seconds);
            return true;
        }
        (void) poll(wait, SIDE_BY_SIDE, 1 + (int) ((end - bt_now()) * 1e3));
        for (int i = 0; i < SIDE_BY_SIDE; ++i) {
            if (NULL != child[i].host && 0 != wait[i].revents) {
                (void) take_output(&child[i], most);
            }
        }
    }
}

size_t bt_hosts_words(const char *words[BT_MOST_WORDS], const char *command, const char *wait, bool json, const bt_source_t *source)
{
    size_t n = 0;

    words[n++] = command;
    if (NULL != wait) {
        words[n++] = "--wait";
        words[n++] = wait;
    }
    if (json) {
        words[n++] = "--json";
    }
    if (NULL != source->root) {
        words[n++] = "--dir";
        words[n++] = source->root;
    }
    return n;
}

/* ---- a command on all hosts ---------------------------------------------------------------------------------- */

static int status_of(const bt_host_t *host)
{
    return -1 != host->status && WIFEXITED(host->status) && 128 > WEXITSTATUS(host->status) ? WEXITSTATUS(host->status) : BT_TROUBLE;
}

/* The worse of two exit statuses. "No job" is the least bad one, because some of several hosts may have no job. */
static int worse(int a, int b)
{
    static const int order[] = {[BT_NO_JOB] = 0, [BT_WELL] = 1, [BT_NOT_WELL] = 2, [BT_USAGE] = 3, [BT_TROUBLE] = 4};
    const int x = a <= BT_NO_JOB ? a : BT_TROUBLE, y = b <= BT_NO_JOB ? b : BT_TROUBLE;

    return order[x] > order[y] ? x : y;
}

static void print_lines(const bt_host_t *host)
{
    size_t at = 0;

    while (at < host->length) {
        const unsigned char *end = memchr(host->out + at, '\n', host->length - at);
        const size_t length = NULL == end ? host->length - at : (size_t) (end - host->out) - at;

        printf("%s: ", host->host);
        for (size_t i = 0; i < length; ++i) {
            const unsigned char c = host->out[at + i];

            putchar((c < 0x20 || c > 0x7e) && '\t' != c ? '?' : c);
        }
        putchar('\n');
        at += length + 1;
    }
}

static void add_json(json_t *all, const bt_host_t *host)
{
    json_t *said = json_loadb((const char *) host->out, host->length, 0, NULL);

    json_array_append_new(all,
                          json_pack("{s:s, s:i, s:o}", "host", host->host, "status", status_of(host), "output", NULL == said ? json_null() : said));
}

int bt_hosts_forward(const bt_source_t *source, const char *const *words, bool json, double seconds)
{
    const char *wrong = bt_hosts_check(source, words);
    json_t *all = json ? json_array() : NULL;
    int verdict = BT_NO_JOB;
    bt_hosts_t hosts;

    if (NULL != wrong) {
        fprintf(stderr, "bfo: %s\n", wrong);
        return BT_USAGE;
    }
    if (!bt_hosts_run(&hosts, source, words, 1 << 24, seconds)) {
        fputs("bfo: no memory, or too many hosts\n", stderr);
        bt_hosts_free(&hosts);
        return BT_TROUBLE;
    }
    for (size_t i = 0; i < hosts.n; ++i) {
        verdict = worse(verdict, status_of(&hosts.host[i]));
        if (json) {
            add_json(all, &hosts.host[i]);
        } else {
            print_lines(&hosts.host[i]);
        }
    }
    if (json) {
        bt_print_json(all, false);
    }
    bt_hosts_free(&hosts);
    return 0 == fflush(stdout) && !ferror(stdout) ? verdict : BT_TROUBLE;
}
