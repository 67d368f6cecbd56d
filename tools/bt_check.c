/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo check: a verified stream runs while the ports of this node are cut and given back one by one. The user gives the words for mpirun and
 * the command that cuts a port, and gets a report. A port is cut only while another one works, and is given back whatever happens.
 * DESIGN.txt section 19.10.
 */
#include "bt_check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SECONDS = 86400 };

/* ---- waiting ------------------------------------------------------------------------------------------------------ */

/* Makes bt_goes_on() count from now on. */
static void mark(bt_check_t *check)
{
    check->lines_before = check->stream.lines;
    check->messages_before = check->stream.messages;
}

static void stream_has_ended(bt_check_t *check)
{
    const int status = check->stream.status;

    if (WIFEXITED(status)) {
        bt_fail(check, BT_NOT_WELL, "the stream ended with status %d%s", WEXITSTATUS(status),
                0 == check->stream.wrong ? "" : ": a message was wrong");
    } else {
        bt_fail(check, BT_NOT_WELL, "the stream was ended by signal %d", WTERMSIG(status));
    }
}

/* Says it if the outcome is a signal or the end of the stream. */
static bt_wait_t say_outcome(bt_check_t *check, bt_wait_t outcome)
{
    if (BT_STOPPED == outcome) {
        bt_fail(check, BT_TROUBLE, "it was stopped by signal %d (%s)", bt_signal(), strsignal(bt_signal()));
    } else if (BT_ENDED == outcome) {
        stream_has_ended(check);
    }
    return outcome;
}

/* Waits, and says what did not happen. `words` name what it waits for; NULL if only time has to pass. */
static bt_wait_t wait_for(bt_check_t *check, double seconds, bool (*is_so)(bt_check_t *), const char *words)
{
    const bt_wait_t outcome = say_outcome(check, bt_wait(check, seconds, is_so));

    if (BT_TIMEOUT == outcome && NULL != words) {
        bt_fail(check, BT_NOT_WELL, "%s %s within %g s", NULL == check->now ? "the check" : check->now->name, words, seconds);
    }
    return outcome;
}

static bool is_so_or_danger(bt_check_t *check)
{
    return (NULL != check->question && check->question(check)) || NULL != bt_other_lost(check);
}

/* Waits while a port is cut. If another port is lost, the last rail may be next; therefore the wait ends then as after a signal. */
static bt_wait_t watch(bt_check_t *check, double seconds, bool (*is_so)(bt_check_t *), const char *words)
{
    bt_wait_t outcome;

    check->question = is_so;
    outcome = wait_for(check, seconds, is_so_or_danger, words);
    if (BT_MET == outcome && NULL != bt_other_lost(check)) {
        bt_fail(check, BT_NOT_WELL, "%s was lost while %s was to be away", bt_other_lost(check), check->now->name);
        outcome = BT_STOPPED;
    }
    return outcome;
}

/* The verdict on a port after a wait that did not end as it should. */
static bt_port_verdict_t verdict_of(bt_wait_t outcome, bt_port_verdict_t timeout)
{
    return BT_TIMEOUT == outcome ? timeout : BT_ENDED == outcome ? BT_NOT_SURVIVED : BT_INTERRUPTED;
}

/* ---- one port ----------------------------------------------------------------------------------------------------- */

/* May the port be cut? Nothing must be lost, the stream must move, and the job must be able to survive. */
static bool may_be_cut(bt_check_t *check)
{
    const char *name = check->now->name, *why;
    bt_wait_t outcome;
    char room[256];

    if (check->now != check->tried && BT_TIMEOUT != wait_for(check, check->choice.up, NULL, NULL)) {
        return false;
    }
    mark(check);
    outcome = say_outcome(check, bt_wait(check, check->choice.wait, bt_is_calm));
    why = bt_why_not_cut(check, name, room, sizeof(room));
    if (BT_MET == outcome && NULL == why) {
        return true;
    }
    if (BT_MET == outcome || BT_TIMEOUT == outcome) {
        bt_fail(check, BT_NOT_WELL, "%s is not cut: %s", name, NULL == why ? "the stream stands still" : why);
    }
    return false;
}

static bool cut(bt_check_t *check)
{
    const double begin = bt_now();

    check->now->verdict = BT_INTERRUPTED; /* until there is a result */
    if (NULL == check->choice.cut) {
        bt_say(check, "take %s away now: pull its cable, or disable its switch port; the check waits %g s for the loss", check->now->name,
               check->choice.wait);
        return true;
    }
    bt_say(check, "%s is cut", check->now->name);
    if (!bt_cut_down(check)) {
        return false;
    }
    check->now->command = bt_now() - begin;
    return true;
}

/* Watches the stream while the port is cut. `begin`: when it was cut. */
static void watch_loss(bt_check_t *check, double begin)
{
    const bt_check_choice_t *choice = &check->choice;
    bt_tried_t *now = check->now;
    double away = bt_now(); /* since when the port is away, at the latest */
    bt_wait_t outcome = watch(check, choice->wait, bt_is_seen_lost, "was not seen lost");

    if (BT_MET != outcome) {
        now->verdict = verdict_of(outcome, BT_NOT_SEEN);
        return;
    }
    if (NULL == choice->cut) {
        away = bt_now();
    } else {
        now->noticed = bt_since(check, now->name, BFO_FIGURES_LOST, bt_now()) - begin;
    }
    bt_say(check, "%s is seen lost", now->name);
    mark(check);
    outcome = watch(check, choice->wait, bt_goes_on, "was lost, and the stream did not go on");
    if (BT_MET != outcome) {
        now->verdict = verdict_of(outcome, BT_NOT_SURVIVED);
        return;
    }
    now->verdict = verdict_of(watch(check, away + choice->down - bt_now(), NULL, NULL), BT_SURVIVED);
}

static void watch_return(bt_check_t *check, double begin)
{
    bt_tried_t *now = check->now;
    const bt_wait_t outcome = wait_for(check, check->choice.wait, bt_is_back, "did not come back");

    if (BT_MET == outcome) {
        now->back = NULL == check->choice.cut ? -1 : bt_since(check, now->name, BFO_FIGURES_UP, bt_now()) - begin;
        bt_say(check, "%s is used again", now->name);
    } else {
        now->verdict = verdict_of(outcome, BT_NOT_BACK);
    }
}

/* Gives back a port that the command cut, whatever happened. */
static void give_back(bt_check_t *check)
{
    const double begin = bt_now();
    const bt_port_t *port = bt_figures_of(check, check->now->name);
    bt_tried_t *now = check->now;

    check->carried_before = NULL == port ? 0 : port->sent_bytes + port->received_bytes;
    if (check->is_down) {
        bt_say(check, "%s is given back", now->name);
        if (!bt_cut_up(check)) {
            return;
        }
    } else if (NULL == check->choice.cut && BT_NOT_SEEN != now->verdict) {
        bt_say(check, "give %s back now%s", now->name, BT_SURVIVED == now->verdict ? "; the check waits for it" : "");
    }
    if (BT_SURVIVED == now->verdict) {
        watch_return(check, begin);
    }
}

/* Notes what the stream and the figures show for the time since the port was cut. */
static void sum_up(bt_check_t *check)
{
    bt_stream_t *stream = &check->stream;
    bt_tried_t *now = check->now;

    if (0 != stream->pid && 0 == bt_signal() && BT_NOT_SURVIVED != now->verdict) {
        bt_wait_t outcome;

        mark(check);
        outcome = wait_for(check, check->choice.wait, bt_goes_on, "was given back, and the stream did not go on");
        now->verdict = BT_MET == outcome ? now->verdict : verdict_of(outcome, BT_NOT_SURVIVED);
    }
    now->gap = stream->gap;
    if (BT_NOT_SURVIVED == now->verdict && bt_now() - stream->spoke > now->gap) {
        now->gap = bt_now() - stream->spoke; /* it stands still */
        stream->longest = now->gap > stream->longest ? now->gap : stream->longest;
    }
    if (0 != check->n) {
        now->resent = (int64_t) (check->job.resent - check->resent_before);
        if (0 != check->job.peers_given_up + check->job.n_dead) {
            now->verdict = BT_NOT_SURVIVED;
            bt_fail(check, BT_NOT_WELL, "%s was lost, and a process died or was given up", now->name);
        }
    }
}

/* True: the next port may be tried. */
static bool try_port(bt_check_t *check, bt_tried_t *tried)
{
    double begin;
    bool is_cut;

    check->now = tried;
    if (!may_be_cut(check)) {
        return false;
    }
    check->before = *bt_figures_of(check, tried->name);
    check->resent_before = check->job.resent;
    check->stream.gap = 0;
    begin = bt_now();
    is_cut = cut(check);
    if (is_cut) {
        watch_loss(check, begin);
    }
    give_back(check);
    if (is_cut) {
        sum_up(check);
    }
    return is_cut && !check->is_down && 0 == bt_signal() && (BT_SURVIVED == tried->verdict || BT_NOT_SEEN == tried->verdict);
}

/* ---- before the first cut ----------------------------------------------------------------------------------------- */

static bool begin_job(bt_check_t *check)
{
    bt_wait_t outcome;

    if (!bt_stream_start(check)) {
        return false;
    }
    outcome = bt_wait(check, check->choice.wait, bt_has_begun);
    if (BT_STOPPED == outcome) {
        (void) say_outcome(check, outcome);
    } else if (BT_ENDED == outcome || (BT_TIMEOUT == outcome && 0 == check->stream.lines)) {
        bt_fail(check, BT_TROUBLE, "the stream %s", BT_ENDED == outcome ? "ended before it had begun" : "has not begun");
    } else if (BT_TIMEOUT == outcome && !check->is_found) {
        bt_fail(check, BT_NO_JOB, "the figures of no rank are found on this node; call bfo check on a node of the job, and with the job's --dir");
    } else if (BT_TIMEOUT == outcome) {
        bt_fail(check, BT_NOT_WELL, "no rank of this node has met another one over rails; put the ranks on two nodes (-H node1,node2)");
    }
    return BT_MET == outcome;
}

static bool add_port(bt_check_t *check, const char *name)
{
    const bt_port_t *port = bt_figures_of(check, name);

    if (NULL == port || BFO_FIGURES_PORTS == check->n_tried) {
        bt_fail(check, BT_USAGE, "--ports: the job has no port '%.63s' on this node", name);
        return false;
    }
    if (NULL != check->choice.cut && !bt_cut_takes(name)) {
        bt_fail(check, BT_TROUBLE, "the name of the port '%.63s' is not handed to a command", name);
        return false;
    }
    check->tried[check->n_tried] = (bt_tried_t){.command = -1, .noticed = -1, .back = -1, .gap = -1, .resent = -1};
    strcpy(check->tried[check->n_tried++].name, port->port->name);
    return true;
}

static bool choose_ports(bt_check_t *check)
{
    char list[BFO_FIGURES_PORTS * 65] = "", *rest = NULL;
    bool is_good = true;

    if (NULL == check->choice.ports) {
        for (size_t i = 0; is_good && i < check->job.n_ports; ++i) {
            is_good = 0 == check->job.port[i].rails || add_port(check, check->job.port[i].port->name);
        }
        return is_good;
    }
    snprintf(list, sizeof(list), "%s", check->choice.ports);
    for (char *name = strtok_r(list, ",", &rest); is_good && NULL != name; name = strtok_r(NULL, ",", &rest)) {
        is_good = add_port(check, name);
    }
    return is_good;
}

static bool has_answered(bt_check_t *check)
{
    struct pollfd from = {.fd = STDIN_FILENO, .events = POLLIN};

    (void) check;
    return 0 < poll(&from, 1, 0);
}

static bool is_allowed(bt_check_t *check)
{
    char names[BFO_FIGURES_PORTS * 66] = "", answer[16] = "";

    for (size_t i = 0; i < check->n_tried; ++i) {
        strcat(names, 0 == i ? "" : ", ");
        strcat(names, check->tried[i].name);
    }
    bt_say(check, "ports of this node that are taken away, one after the other, %g s each: %s", check->choice.down, names);
    if (NULL == check->choice.cut) {
        return true;
    }
    bt_say(check, "'%s down PORT' cuts them. Nothing else may need them: no storage, and not the way to this node.", check->choice.cut);
    if (check->choice.yes) {
        return true;
    }
    fputs("Cut these ports? [y/N] ", stderr);
    if (BT_MET != wait_for(check, MOST_SECONDS, has_answered, "was given no answer")) {
        return false;
    }
    if (0 >= read(STDIN_FILENO, answer, sizeof(answer) - 1) || ('y' != answer[0] && 'Y' != answer[0])) {
        bt_fail(check, BT_NOT_WELL, "the ports were not to be cut");
        return false;
    }
    return true;
}

/* Would the job survive the loss of a port at all? In a job that has just begun a rail may be late. */
static bool would_survive(bt_check_t *check)
{
    bt_wait_t outcome;
    const char *why;
    char room[256];

    mark(check);
    outcome = say_outcome(check, bt_wait(check, check->choice.wait, bt_is_calm));
    why = bt_why_not_cut(check, NULL, room, sizeof(room));
    if (BT_STOPPED == outcome || BT_ENDED == outcome) {
        return false;
    }
    if (NULL != why) {
        bt_fail(check, BT_NOT_WELL, "%s; nothing was cut", why);
    }
    return NULL == why;
}

/* ---- command ------------------------------------------------------------------------------------------------------- */

static void run(bt_check_t *check)
{
    if (!begin_job(check) || !would_survive(check)) {
        return;
    }
    check->stream.longest = 0; /* the time that the job needed to start is no gap */
    if (choose_ports(check) && 0 == check->n_tried) {
        bt_fail(check, BT_USAGE, "--ports names no port");
    } else if (0 != check->n_tried && BT_WELL == check->status && is_allowed(check)) {
        for (size_t i = 0; i < check->n_tried && try_port(check, &check->tried[i]); ++i) {
        }
    }
}

static bool open_log(bt_check_t *check)
{
    const bool is_named = NULL != check->choice.log_name;
    int file = -1;

    for (int i = 0; 0 > file && (0 == i || (1 == i && !is_named && EEXIST == errno)); ++i) {
        bt_pause(check, i); /* the name has the time in seconds */
        if (is_named) {
            snprintf(check->log_name, sizeof(check->log_name), "%s", check->choice.log_name);
        } else {
            bt_file_name(check->log_name, sizeof(check->log_name), "check", "log");
        }
        file = open(check->log_name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    }
    check->log = 0 > file ? NULL : fdopen(file, "a");
    if (NULL == check->log) {
        fprintf(stderr, "bfo check: %s: %s; --log names another file\n", check->log_name, strerror(errno));
    }
    return NULL != check->log;
}

static void finish(bt_check_t *check)
{
    bool is_well;

    for (size_t i = 0; i < check->n_tried; ++i) {
        const bt_port_t *port = bt_figures_of(check, check->tried[i].name);

        check->tried[i].state = NULL == port ? BFO_FIGURES_NONE : port->state;
    }
    is_well = bt_stream_end(check);
    if (BT_WELL == check->status && 0 != bt_signal()) {
        (void) say_outcome(check, BT_STOPPED);
    } else if (BT_WELL == check->status && !is_well) {
        stream_has_ended(check);
    }
    bt_check_report(check);
    if (BT_WELL == check->status && NULL == check->choice.log_name) {
        unlink(check->log_name);
    }
    fclose(check->log);
    bt_free(&check->all);
    if (0 != bt_signal()) { /* so that a shell knows which signal ended it */
        fflush(stdout);
        signal(bt_signal(), SIG_DFL);
        raise(bt_signal());
    }
}

enum { KEY_CUT = 300, KEY_PORTS, KEY_DOWN, KEY_UP, KEY_WAIT, KEY_YES, KEY_JSON, KEY_LOG, KEY_DIR };

static double seconds_of(struct argp_state *state, const char *name, const char *text)
{
    char *rest;
    const double seconds = strtod(text, &rest);

    if (rest == text || '\0' != *rest || !(seconds >= 0 && seconds <= MOST_SECONDS)) {
        argp_error(state, "--%s is a number of seconds, 0 to %d, not '%s'", name, MOST_SECONDS, text);
    }
    return seconds;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    bt_check_choice_t *choice = state->input;

    switch (key) {
    case KEY_CUT:
        choice->cut = arg;
        return 0;
    case KEY_PORTS:
        choice->ports = arg;
        return 0;
    case KEY_DOWN:
        choice->down = seconds_of(state, "down", arg);
        return 0;
    case KEY_UP:
        choice->up = seconds_of(state, "up", arg);
        return 0;
    case KEY_WAIT:
        choice->wait = seconds_of(state, "wait", arg);
        return 0;
    case KEY_YES:
        choice->yes = true;
        return 0;
    case KEY_JSON:
        choice->json = true;
        return 0;
    case KEY_LOG:
        choice->log_name = arg;
        return 0;
    case KEY_DIR:
        choice->root = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (0 == state->quoted || state->next <= state->quoted) {
            argp_error(state, "'%s' is no option; the arguments of mpirun come after '--'", arg);
        }
        choice->arguments = state->argv + state->next - 1;
        choice->n_arguments = state->argc - state->next + 1;
        state->next = state->argc;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"cut", KEY_CUT, "COMMAND", 0,
     "'COMMAND down PORT' cuts a port, 'COMMAND up PORT' gives it back. COMMAND is split at blanks, and no shell reads it", 0},
    {"ports", KEY_PORTS, "LIST", 0, "the ports to cut, such as mlx5_0:1,mlx5_1:1 (default: all of this node)", 0},
    {"down", KEY_DOWN, "SECONDS", 0, "how long a port stays away at least (5)", 0},
    {"up", KEY_UP, "SECONDS", 0, "how long all ports are up before the next one is cut (5)", 0},
    {"wait", KEY_WAIT, "SECONDS", 0, "how long to wait for a loss, a return or the stream (120; without --cut 600)", 0},
    {"yes", KEY_YES, NULL, 0, "cut without a question", 0},
    {"json", KEY_JSON, NULL, 0, "for programs", 0},
    {"log", KEY_LOG, "FILE", 0, "keep the log of the run in FILE (default: bfo-check-HOST-TIME.log, kept only if something failed)", 0},
    {"dir", KEY_DIR, "DIR", 0, "the job's pml_bfo_status_dir (default: BFO_STATUS_DIR, or " BFO_FIGURES_ROOT ")", 0},
    {0}};

int bt_cmd_check(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[-- MPIRUN-ARGUMENTS...]",
        .doc = "Test whether a job survives the loss of each port of this node: bfo_stream runs under 'bfo run' with MPIRUN-ARGUMENTS (default: "
               "--map-by ppr:1:node), while the ports are taken away one by one and given back. Without --cut the command says which port you "
               "have to unplug, and when. Call it on a node of the job.\vExit status: 0 each port was lost and came back, and the stream went "
               "on; 1 a port did not, or nothing was cut because the job would not survive; 2 wrong usage; 3 trouble: the stream did not begin, or "
               "COMMAND failed; 4 no rank runs on this node."};
    static bt_check_t check; /* too large for a stack */
    const char *why;

    argv[0] = (char *) "bfo check";
    check.stream.out = -1;
    check.choice = (bt_check_choice_t){.down = 5, .up = 5, .wait = -1};
    argp_parse(&argp, argc, argv, 0, NULL, &check.choice);
    check.choice.wait = 0 <= check.choice.wait ? check.choice.wait : NULL == check.choice.cut ? 600 : 120;
    why = NULL == check.choice.cut ? NULL : bt_cut_parse(&check);
    if (NULL != why) {
        fprintf(stderr, "bfo check: --cut '%s': %s\n", check.choice.cut, why);
        return BT_USAGE;
    }
    if (NULL != check.choice.cut && !check.choice.yes && !(isatty(STDIN_FILENO) && isatty(STDERR_FILENO))) {
        fputs("bfo check: there is no terminal to ask whether the ports may be cut; --yes says so\n", stderr);
        return BT_USAGE;
    }
    bt_catch_signals();
    if (!open_log(&check)) {
        return BT_TROUBLE;
    }
    run(&check);
    finish(&check);
    return 0 == fflush(stdout) && !ferror(stdout) ? check.status : BT_TROUBLE;
}
