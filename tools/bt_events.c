/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo events: what happened to rails and peers. An event that many processes noticed alike is one line. DESIGN.txt section 19.
 */
#include "bt.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    bt_source_t source;
    const char *job, *plot, *exec;
    uint64_t since; /* ns of the wall clock */
    bool json, follow, syslog;
} choice_t;

/* An event, with the process that wrote it, and how many others wrote the same. */
typedef struct {
    const bt_process_t *process;
    const bfo_figures_event_t *event;
    unsigned others;
} line_t;

/* How many events of a process were shown, for --follow. */
typedef struct {
    uid_t uid;
    uint32_t job, rank, pid;
    uint64_t shown;
} shown_t;

static volatile sig_atomic_t is_over; /* the user ended --follow, and must still get the picture */

static shown_t *shown;
static size_t n_shown;

enum { POLL_MS = 200, HOSTS_SECONDS = 5, MOST_SHOWN = 1 << 20 };

static shown_t *shown_of(const bt_process_t *p)
{
    for (size_t i = 0; i < n_shown; ++i) {
        if (shown[i].uid == p->uid && shown[i].job == p->f.job && shown[i].rank == p->f.rank && shown[i].pid == p->f.pid) {
            return &shown[i];
        }
    }
    if (0 == (n_shown & (n_shown - 1))) {
        shown_t *more = MOST_SHOWN > n_shown ? realloc(shown, (0 == n_shown ? 1 : 2 * n_shown) * sizeof(*more)) : NULL;

        if (NULL == more) {
            fputs("bfo: no memory\n", stderr);
            exit(BT_TROUBLE);
        }
        shown = more;
    }
    shown[n_shown] = (shown_t){.uid = p->uid, .job = p->f.job, .rank = p->f.rank, .pid = p->f.pid};
    return &shown[n_shown++];
}

/* ---- collecting -------------------------------------------------------------------------------------------- */

/* Equal events differ only in the process that noticed them, and when. */
static int by_content(const line_t *x, const line_t *y)
{
    const bfo_figures_event_t *a = x->event, *b = y->event;
    int order = x->process->uid != y->process->uid       ? (x->process->uid < y->process->uid ? -1 : 1)
                : x->process->f.job != y->process->f.job ? (x->process->f.job < y->process->f.job ? -1 : 1)
                : a->what != b->what                     ? (a->what < b->what ? -1 : 1)
                : a->generation != b->generation         ? (a->generation < b->generation ? -1 : 1)
                                                         : 0;

    order = 0 != order ? order : strcmp(a->here, b->here);
    order = 0 != order ? order : strcmp(a->there, b->there);
    order = 0 != order ? order : strcmp(a->host, b->host);
    if (0 == order && BFO_FIGURES_PEER_LOST == a->what) {
        order = a->peer < b->peer ? -1 : a->peer > b->peer;
    }
    return 0 != order ? order : strcmp(a->cause, b->cause);
}

static int by_content_then_time(const void *x, const void *y)
{
    const line_t *a = x, *b = y;
    const int order = by_content(a, b);

    return 0 != order ? order : a->event->wall < b->event->wall ? -1 : a->event->wall > b->event->wall;
}

static int by_time(const void *x, const void *y)
{
    const line_t *a = x, *b = y;

    return a->event->wall < b->event->wall ? -1 : a->event->wall > b->event->wall;
}

/* Many processes notice the same event. Keeps the first one and counts the others. */
static size_t merge(line_t *line, size_t n)
{
    size_t kept = 0;

    qsort(line, n, sizeof(*line), by_content_then_time);
    for (size_t i = 0; i < n; ++i) {
        if (0 != kept && 0 == by_content(&line[kept - 1], &line[i])) {
            ++line[kept - 1].others;
        } else {
            line[kept++] = line[i];
        }
    }
    qsort(line, kept, sizeof(*line), by_time);
    return kept;
}

/* The events that were not shown yet. The caller frees them; NULL if there is no memory or no event. */
static line_t *collect(const bt_all_t *all, const choice_t *choice, size_t *n)
{
    line_t *line = 0 == all->n ? NULL : malloc(all->n * BFO_FIGURES_EVENTS * sizeof(*line));

    *n = 0;
    for (size_t i = 0; NULL != line && i < all->n; ++i) {
        const bt_process_t *p = all->process[i];
        shown_t *until = shown_of(p);

        for (size_t e = 0; e < BFO_FIGURES_EVENTS; ++e) {
            if (p->f.event[e].number > until->shown && NULL != choice->plot) {
                bt_plot_event(p, &p->f.event[e]);
            }
            if (p->f.event[e].number > until->shown && p->f.event[e].wall >= choice->since) {
                line[(*n)++] = (line_t){.process = p, .event = &p->f.event[e]};
            }
        }
        if (NULL != choice->plot) {
            bt_plot_process(p);
        }
        until->shown = p->f.n_events;
    }
    *n = 0 == *n ? 0 : merge(line, *n);
    return line;
}

/* ---- printing ----------------------------------------------------------------------------------------------- */

static void write_line(FILE *out, const line_t *line)
{
    const bfo_figures_event_t *e = line->event;
    char when[BT_TIME], name[16];

    fprintf(out, "%s job %s host %s rank %u %s", bt_time(when, e->wall), bt_job_name(name, line->process->f.job), line->process->f.host,
            line->process->f.rank, bt_what_name(e->what));
    if ('\0' != e->here[0]) {
        fprintf(out, " %s", e->here);
    }
    if (0 <= e->peer) {
        fprintf(out, " to%s%s rank %d on %s", '\0' == e->there[0] ? "" : " ", e->there, e->peer, e->host);
    }
    if (BFO_FIGURES_BEGUN != e->what && BFO_FIGURES_PARAMETER != e->what) {
        fprintf(out, ": %s -> %s", bt_state_name(e->before), bt_state_name(e->after));
        if (0 != e->lasted_ms) {
            fprintf(out, " after %.3f s", e->lasted_ms / 1e3);
        }
    }
    if ('\0' != e->cause[0]) {
        fprintf(out, "%s%s", BFO_FIGURES_PARAMETER == e->what ? ": " : "; cause: ", e->cause);
    }
    if (0 != line->others) {
        fprintf(out, " (and %u more process%s)", line->others, 1 == line->others ? "" : "es");
    }
    putc('\n', out);
}

static void print_line(const line_t *line)
{
    write_line(stdout, line);
}

static void print_json(const line_t *line)
{
    const bfo_figures_event_t *e = line->event;
    char when[BT_TIME], name[16];

    bt_print_json(json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:s, s:s, s:i, s:s, s:s, s:s, s:I, s:s, s:I, s:f, s:I}", "time", bt_time(when, e->wall),
                            "job", bt_job_name(name, line->process->f.job), "batch", line->process->f.batch, "host", line->process->f.host, "rank",
                            (json_int_t) line->process->f.rank, "event", bt_what_name(e->what), "port", e->here, "peer_port", e->there, "peer",
                            (int) e->peer, "peer_host", e->host, "before", bt_state_name(e->before), "after", bt_state_name(e->after), "generation",
                            (json_int_t) e->generation, "cause", e->cause, "processes", (json_int_t) line->others + 1, "lasted_seconds",
                            e->lasted_ms / 1e3, "monotonic_ns", (json_int_t) (e->mono & INT64_MAX)),
                  true);
}

/* Hands the event to the hooks. False if a hook cannot be run. */
static bool hand_on(const choice_t *choice, const line_t *line)
{
    bt_hook_t hook = {.process = line->process, .event = line->event, .others = line->others};
    char *text = NULL;
    size_t n = 0;
    FILE *room = open_memstream(&text, &n);
    bool is_well = NULL != room;

    if (is_well) {
        write_line(room, line);
        is_well = 0 == fclose(room);
    }
    if (is_well) {
        text[n - 1] = '\0'; /* the end of the line */
        hook.line = text;
        if (choice->syslog) {
            bt_hook_log(&hook);
        }
        is_well = NULL == choice->exec || bt_hook_run(choice->exec, &hook);
    }
    free(text);
    return is_well;
}

/* ---- command ------------------------------------------------------------------------------------------------ */

/* Parses "10m" (so long ago), or a time such as 2026-11-24T11:12:13 or 2026-11-24. */
static bool parse_since(const char *text, uint64_t *since)
{
    static const struct {
        char unit;
        unsigned seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    struct tm tm = {.tm_isdst = -1};
    char *end;
    const unsigned long long n = strtoull(text, &end, 10);

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && end != text && '-' != text[0]; ++i) {
        if (units[i].unit == end[0] && '\0' == end[1] && n < 100000000) {
            const uint64_t ago = n * units[i].seconds * UINT64_C(1000000000), now = bt_wall_ns();

            *since = ago < now ? now - ago : 0;
            return true;
        }
    }
    for (int with_time = 1; 0 <= with_time; --with_time) {
        const char *rest = strptime(text, with_time ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%d", &tm);

        if (NULL != rest && '\0' == *rest) {
            const time_t seconds = mktime(&tm);

            *since = 0 < seconds ? (uint64_t) seconds * UINT64_C(1000000000) : 0;
            return true;
        }
    }
    return false;
}

enum { KEY_JSON = 300, KEY_FOLLOW, KEY_SINCE, KEY_PLOT, KEY_EXEC, KEY_SYSLOG };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    choice_t *choice = state->input;

    switch (key) {
    case KEY_JSON:
        choice->json = true;
        return 0;
    case KEY_FOLLOW:
        choice->follow = true;
        return 0;
    case KEY_PLOT:
        choice->plot = arg;
        return 0;
    case KEY_EXEC:
        choice->exec = arg;
        return 0;
    case KEY_SYSLOG:
        choice->syslog = true;
        return 0;
    case KEY_SINCE:
        if (!parse_since(arg, &choice->since)) {
            argp_error(state, "--since takes 30s, 10m, 2h, 1d or 2026-11-24T11:12:13, not '%s'", arg);
        }
        return 0;
    case ARGP_KEY_ARG:
        bt_take_word(state, &choice->job, arg);
        return 0;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &choice->source;
        return 0;
    case ARGP_KEY_END:
        if (!choice->follow && (NULL != choice->exec || choice->syslog)) {
            argp_error(state, "--exec and --syslog are for what happens: they go with --follow");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool some_live(const bt_all_t *all)
{
    for (size_t i = 0; i < all->n; ++i) {
        if (all->process[i]->alive) {
            return true;
        }
    }
    return false;
}

/* Shows new events. Returns the exit status. *goes_on: a process may still write more. */
static int show(const choice_t *choice, bool *goes_on)
{
    bt_all_t all;
    line_t *line;
    bool is_well = true;
    size_t n;
    int status;

    if (!bt_read_from(&all, &choice->source, choice->job)) {
        fputs("bfo: no memory\n", stderr);
        return BT_TROUBLE;
    }
    line = collect(&all, choice, &n);
    for (size_t i = 0; is_well && i < n; ++i) {
        (choice->json ? print_json : print_line)(&line[i]);
        is_well = (NULL == choice->exec && !choice->syslog) || hand_on(choice, &line[i]);
    }
    free(line);
    *goes_on = some_live(&all);
    status = all.has_failed ? BT_TROUBLE : 0 == all.n ? BT_NO_JOB : BT_WELL;
    bt_free(&all);
    return is_well && 0 == fflush(stdout) && !ferror(stdout) ? status : BT_TROUBLE;
}

static void on_signal(int number)
{
    is_over = 1;
}

static void follow_until_interrupted(void)
{
    const struct sigaction action = {.sa_handler = on_signal};

    (void) sigaction(SIGINT, &action, NULL);
    (void) sigaction(SIGTERM, &action, NULL);
}

int bt_cmd_events(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"json", KEY_JSON, NULL, 0, "for programs: one object a line", 0},
        {"follow", KEY_FOLLOW, NULL, 0, "keep showing events; with JOB until the job has ended", 0},
        {"since", KEY_SINCE, "TIME", 0, "only later events: 30s, 10m, 2h, 1d (ago), or 2026-11-24T11:12:13", 0},
        {"plot", KEY_PLOT, "FILE", 0, "draw the ports over time into FILE, an SVG picture (needs gnuplot); with --follow when it ends", 0},
        {"exec", KEY_EXEC, "PROGRAM", 0, "with --follow: run PROGRAM for each event, with BFO_EVENT, BFO_JOB, BFO_PORT... in its environment", 0},
        {"syslog", KEY_SYSLOG, NULL, 0, "with --follow: write each event to the system log", 0},
        {0}};
    static const struct argp_child children[] = {{&bt_source_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[JOB]",
        .children = children,
        .doc = "Show the events of the rails and peers of the jobs of this node. Each process keeps its last 64 events.\v"
               "Exit status: 0 done, 2 wrong usage, 3 trouble, 4 no job."};
    struct timespec pause = {.tv_nsec = POLL_MS * 1000000};
    choice_t choice = {.job = NULL};
    bool goes_on = false;
    int status;

    argv[0] = (char *) "bfo events";
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    if (NULL != choice.source.hosts) {
        pause = (struct timespec){.tv_sec = HOSTS_SECONDS}; /* each look logs in to each host */
    }
    if (choice.follow && NULL != choice.plot) {
        follow_until_interrupted();
    }
    status = show(&choice, &goes_on);
    while (0 == is_over && choice.follow && BT_TROUBLE != status && (goes_on || NULL == choice.job)) {
        nanosleep(&pause, NULL);
        const int next = show(&choice, &goes_on);

        status = BT_NO_JOB == next ? status : next;
    }
    if (NULL != choice.plot && BT_WELL == status) {
        status = bt_plot_draw(choice.plot, choice.since, bt_wall_ns());
    }
    if (BT_NO_JOB == status) {
        fprintf(stderr, "bfo: no such job runs %s under the PML bfo\n", NULL == choice.source.hosts ? "on this node" : "on these nodes");
    }
    free(shown);
    return status;
}
