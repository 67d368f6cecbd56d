/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo set: changes the value of a parameter in the processes of a job on this node. The wish is written into the file that the jobs map;
 * their files of figures show the result. DESIGN.txt section 19.6.
 */
#include "bt_hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bfo_parameters.h"

typedef struct {
    bt_source_t source;
    const char *job, *name, *text, *wait_text; /* words of the command line; NULL: not given */
    uint32_t parameter;
    int64_t value;
    double wait; /* seconds */
    bool json;
} choice_t;

/* The wish for one job of one user. */
typedef struct {
    uid_t uid;
    uint32_t job;
    uint64_t number; /* 0: it could not be written */
} target_t;

enum { MOST_TARGETS = 256 };

static const char *name_of(uint32_t parameter)
{
    static char room[64];

    snprintf(room, sizeof(room), BFO_PARAMETER_PREFIX "%s", bfo_range_of(parameter)->name);
    return room;
}

/* ---- what may change, and what it is now --------------------------------------------------------------------- */

static int list_parameters(bool json)
{
    json_t *all = json ? json_array() : NULL;

    for (uint32_t i = 0; i < BFO_PARAMETERS_LIVE; ++i) {
        const bfo_range_t *range = bfo_range_of(i);

        if (json) {
            json_array_append_new(
                all, json_pack("{s:s, s:I, s:I}", "name", name_of(i), "least", (json_int_t) range->least, "most", (json_int_t) range->most));
        } else {
            printf("%-32s %s\n", name_of(i), range->values);
        }
    }
    if (json) {
        bt_print_json(json_pack("{s:o}", "parameters", all), false);
    }
    return BT_WELL;
}

static bool is_shown(const choice_t *choice, uint32_t parameter)
{
    return NULL == choice->name || parameter == choice->parameter;
}

static json_t *values_json(const bt_process_t *process, const choice_t *choice)
{
    json_t *values = json_object();
    char name[16];

    for (uint32_t i = 0; i < BFO_PARAMETERS_LIVE; ++i) {
        if (is_shown(choice, i)) {
            json_object_set_new(values, name_of(i), json_integer((json_int_t) process->f.parameter[i]));
        }
    }
    return json_pack("{s:s, s:I, s:I, s:o}", "job", bt_job_name(name, process->f.job), "rank", (json_int_t) process->f.rank, "pid",
                     (json_int_t) process->f.pid, "parameters", values);
}

/* Prints a line for each value, with the number of processes that have it. */
static void print_values(const bt_all_t *all, size_t at, size_t n, uint32_t parameter)
{
    char job[16];

    for (size_t i = at; i < at + n; ++i) {
        const int64_t value = all->process[i]->f.parameter[parameter];
        size_t same = 0, before = 0;

        for (size_t k = at; k < at + n; ++k) {
            const bool is_same = all->process[k]->alive && value == all->process[k]->f.parameter[parameter];

            before += is_same && k < i;
            same += is_same;
        }
        if (all->process[i]->alive && 0 == before) {
            printf("job %s: %s %lld in %zu process%s\n", bt_job_name(job, all->process[i]->f.job), name_of(parameter), (long long) value, same,
                   1 == same ? "" : "es");
        }
    }
}

static int show(const bt_all_t *all, const choice_t *choice)
{
    json_t *processes = choice->json ? json_array() : NULL;

    for (size_t at = 0, n; !choice->json && at < all->n; at += n) {
        n = bt_job_size(all, at);
        for (uint32_t i = 0; i < BFO_PARAMETERS_LIVE; ++i) {
            if (is_shown(choice, i)) {
                print_values(all, at, n, i);
            }
        }
    }
    for (size_t i = 0; choice->json && i < all->n; ++i) {
        if (all->process[i]->alive) {
            json_array_append_new(processes, values_json(all->process[i], choice));
        }
    }
    if (choice->json) {
        bt_print_json(json_pack("{s:o}", "processes", processes), false);
    }
    return BT_WELL;
}

/* ---- the wish ---------------------------------------------------------------------------------------------- */

static target_t *target_of(target_t *targets, size_t n, const bt_process_t *process)
{
    for (size_t i = 0; i < n; ++i) {
        if (targets[i].uid == process->uid && targets[i].job == process->f.job) {
            return &targets[i];
        }
    }
    return NULL;
}

static bool write_wish(const choice_t *choice, target_t *target)
{
    const char *root = bt_root_of(choice->source.root), *why;
    bfo_steer_wish_t wish = {.job = target->job, .parameter = choice->parameter, .value = choice->value};
    bfo_steer_t list;
    const int file = bt_steer_open(root, target->uid, false, BT_STEER_TRIES, &list);

    if (0 > file) {
        if (-ENOENT == file) {
            bt_steer_say(root, target->uid, "it is not there");
        }
        return false;
    }
    why = bt_steer_write(file, root, target->uid, &list, &wish);
    if (NULL != why) {
        bt_steer_say(root, target->uid, why);
    }
    target->number = wish.number;
    close(file);
    return NULL == why;
}

/* Writes a wish for each job. Returns the number of jobs; 0 if one of them failed, after a message. */
static size_t write_wishes(const bt_all_t *all, const choice_t *choice, target_t *targets)
{
    size_t n = 0;

    for (size_t i = 0; i < all->n; ++i) {
        if (!all->process[i]->alive || NULL != target_of(targets, n, all->process[i])) {
            continue;
        }
        if (MOST_TARGETS == n) {
            fprintf(stderr, "bfo: '%s' means more than %d jobs; name them one by one\n", choice->job, MOST_TARGETS);
            return 0;
        }
        targets[n] = (target_t){.uid = all->process[i]->uid, .job = all->process[i]->f.job};
        if (!write_wish(choice, &targets[n++])) {
            return 0;
        }
    }
    return n;
}

/* ---- what came of it --------------------------------------------------------------------------------------- */

typedef struct {
    size_t n, late, refused;
} count_t;

/* Has the process looked at the wish? */
static bool has_noticed(const bt_process_t *process, const target_t *target)
{
    return process->f.steer_number >= target->number;
}

static bool has_value(const bt_process_t *process, const choice_t *choice)
{
    return choice->value == process->f.parameter[choice->parameter];
}

static count_t count(const bt_all_t *all, const choice_t *choice, target_t *targets, size_t n)
{
    count_t c = {0};

    for (size_t i = 0; i < all->n; ++i) {
        const target_t *target = all->process[i]->alive ? target_of(targets, n, all->process[i]) : NULL;

        c.n += NULL != target;
        c.late += NULL != target && !has_noticed(all->process[i], target);
        c.refused += NULL != target && has_noticed(all->process[i], target) && !has_value(all->process[i], choice);
    }
    return c;
}

/* What the last event that a process wrote about a parameter says. */
static const char *last_word(const bt_process_t *process)
{
    const bfo_figures_event_t *last = NULL;

    for (size_t i = 0; i < BFO_FIGURES_EVENTS; ++i) {
        const bfo_figures_event_t *event = &process->f.event[i];

        if (0 != event->number && BFO_FIGURES_PARAMETER == event->what && (NULL == last || last->number < event->number)) {
            last = event;
        }
    }
    return NULL == last ? "it does not say why" : last->cause;
}

static void say_process(const bt_process_t *process, const choice_t *choice, const target_t *target)
{
    char name[16];

    printf("  job %s rank %u (pid %u): ", bt_job_name(name, process->f.job), process->f.rank, process->f.pid);
    if (has_noticed(process, target)) {
        printf("it keeps %lld; %s\n", (long long) process->f.parameter[choice->parameter], last_word(process));
    } else {
        puts("it has not noticed yet; it will in its next MPI call that waits");
    }
}

static json_t *process_json(const bt_process_t *process, const choice_t *choice, const target_t *target)
{
    char name[16];

    return json_pack("{s:s, s:I, s:I, s:b, s:b, s:I}", "job", bt_job_name(name, process->f.job), "rank", (json_int_t) process->f.rank, "pid",
                     (json_int_t) process->f.pid, "noticed", has_noticed(process, target), "done",
                     has_noticed(process, target) && has_value(process, choice), "value", (json_int_t) process->f.parameter[choice->parameter]);
}

static void report(const bt_all_t *all, const choice_t *choice, target_t *targets, size_t n, count_t c)
{
    const size_t not = c.late + c.refused;
    json_t *processes = choice->json ? json_array() : NULL;

    if (!choice->json && 0 == not ) {
        printf("%s is %lld in %zu process%s\n", name_of(choice->parameter), (long long) choice->value, c.n, 1 == c.n ? "" : "es");
    } else if (!choice->json) {
        printf("%s is not %lld%s in %zu of %zu processes:\n", name_of(choice->parameter), (long long) choice->value, 0 == c.late ? "" : " yet", not,
               c.n);
    }
    for (size_t i = 0; i < all->n; ++i) {
        const bt_process_t *process = all->process[i];
        const target_t *target = process->alive ? target_of(targets, n, process) : NULL;

        if (NULL != target && choice->json) {
            json_array_append_new(processes, process_json(process, choice, target));
        } else if (NULL != target && !(has_noticed(process, target) && has_value(process, choice))) {
            say_process(process, choice, target);
        }
    }
    if (choice->json) {
        bt_print_json(json_pack("{s:s, s:I, s:b, s:o}", "parameter", name_of(choice->parameter), "value", (json_int_t) choice->value, "done",
                                0 == not, "processes", processes),
                      false);
    }
}

static int wait_for_job(const choice_t *choice, target_t *targets, size_t n)
{
    const double end = bt_now() + choice->wait;
    bt_all_t all;
    count_t c;

    for (;;) {
        if (!bt_read(&all, choice->source.root, choice->job)) {
            fputs("bfo: no memory\n", stderr);
            return BT_TROUBLE;
        }
        c = count(&all, choice, targets, n);
        if (0 == c.late || bt_now() >= end) {
            break;
        }
        bt_free(&all);
        bt_sleep_a_while();
    }
    report(&all, choice, targets, n, c);
    bt_free(&all);
    return 0 == c.n ? BT_NO_JOB : 0 == c.late + c.refused ? BT_WELL : BT_NOT_WELL;
}

/* ---- command ----------------------------------------------------------------------------------------------- */

enum { KEY_JSON = 300, KEY_WAIT };

static void take_name(struct argp_state *state, choice_t *choice, const char *arg)
{
    choice->name = arg;
    choice->parameter = bfo_range_find(arg);
    if (BFO_PARAMETERS_LIVE <= choice->parameter) {
        argp_error(state, "'%s' cannot change while a job runs; 'bfo set' without words lists the parameters that can", arg);
    }
}

static void take_value(struct argp_state *state, choice_t *choice, const char *arg)
{
    const bool is_word = BFO_PARAMETER_COUNTERS == choice->parameter && (0 == strcmp("true", arg) || 0 == strcmp("false", arg));
    char *rest = NULL;

    choice->text = ' ' == arg[0] ? arg + 1 : arg; /* shield_numbers() */
    errno = 0;
    choice->value = is_word ? 't' == arg[0] : strtoll(arg, &rest, 10);
    if (!is_word && (rest == arg || '\0' != *rest || 0 != errno || !bfo_range_has(choice->parameter, choice->value))) {
        argp_error(state, "%s cannot be '%s': it must be %s", name_of(choice->parameter), choice->text, bfo_range_of(choice->parameter)->values);
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    choice_t *choice = state->input;

    switch (key) {
    case KEY_JSON:
        choice->json = true;
        return 0;
    case KEY_WAIT:
        choice->wait = bt_take_wait(state, arg);
        choice->wait_text = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (NULL == choice->job) {
            choice->job = arg;
        } else if (NULL == choice->name) {
            take_name(state, choice, arg);
        } else if (NULL == choice->text) {
            take_value(state, choice, arg);
        } else {
            argp_error(state, "'%s' is one word too many", arg);
        }
        return 0;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &choice->source;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* A negative number is a value and no option. With a blank in front argp takes it for a word. */
static void shield_numbers(int argc, char **argv)
{
    for (int i = 1; i < argc; ++i) {
        char *word = NULL;

        if ('-' == argv[i][0] && '0' <= argv[i][1] && argv[i][1] <= '9' && 0 < asprintf(&word, " %s", argv[i])) {
            argv[i] = word;
        }
    }
}

static int set(const bt_all_t *all, const choice_t *choice)
{
    target_t targets[MOST_TARGETS];
    const size_t n = write_wishes(all, choice, targets);

    return 0 == n ? BT_TROUBLE : wait_for_job(choice, targets, n);
}

/* Runs the same command on each of the hosts. */
static int set_there(const choice_t *choice)
{
    const char *words[BT_MOST_WORDS] = {NULL};
    size_t n = bt_hosts_words(words, "set", choice->wait_text, choice->json, &choice->source);

    words[n++] = choice->job;
    words[n++] = choice->name; /* NULL: no more words */
    words[n] = NULL == choice->name ? NULL : choice->text;
    return bt_hosts_forward(&choice->source, words, choice->json, choice->wait + BT_LOGIN_SECONDS);
}

static size_t living(const bt_all_t *all)
{
    size_t n = 0;

    for (size_t i = 0; i < all->n; ++i) {
        n += all->process[i]->alive;
    }
    return n;
}

int bt_cmd_set(int argc, char **argv)
{
    static const struct argp_option options[] = {{"wait", KEY_WAIT, "SECONDS", 0, "how long to wait for the processes (30; 0: not at all)", 0},
                                                 {"json", KEY_JSON, NULL, 0, "for programs", 0},
                                                 {0}};
    static const struct argp_child children[] = {{&bt_source_argp, 0, NULL, 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .children = children,
        .args_doc = "[JOB [PARAMETER [VALUE]]]",
        .doc =
            "Change a parameter of the PML bfo in the processes of a job on this node while they run. The command waits until each process "
            "has taken the value. Without VALUE: show the present values. Without arguments: list the parameters that can change, "
            "with their possible values.\vExit status: 0 the processes have the value, 1 not yet, or a process refuses it (these processes are named), "
            "2 wrong usage, 3 trouble, 4 no such job."};
    choice_t choice = {.wait = 30};
    bt_all_t all;
    int verdict;

    argv[0] = (char *) "bfo set";
    shield_numbers(argc, argv);
    argp_parse(&argp, argc, argv, 0, NULL, &choice);
    if (NULL == choice.job) {
        verdict = list_parameters(choice.json);
    } else if (NULL != choice.source.hosts) {
        return set_there(&choice);
    } else if (!bt_read(&all, choice.source.root, choice.job)) {
        fputs("bfo: no memory\n", stderr);
        verdict = BT_TROUBLE;
    } else {
        if (0 == living(&all)) {
            fprintf(stderr, "bfo: no process of the job '%s' lives on this node; 'bfo status' shows the jobs\n", choice.job);
            verdict = BT_NO_JOB;
        } else {
            verdict = NULL == choice.text ? show(&all, &choice) : set(&all, &choice);
        }
        bt_free(&all);
    }
    return 0 == fflush(stdout) && !ferror(stdout) ? verdict : BT_TROUBLE;
}
