/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the files of bfo check share. A process runs one check, in one thread. All times are seconds of the monotonic clock.
 * DESIGN.txt section 19.10.
 */
#ifndef BT_CHECK_H
#define BT_CHECK_H

#include <sys/types.h>

#include "bt.h"

/* INTERRUPTED: the port was cut, but given back before there was a result, because of a signal, a command that failed, or the loss of
 * another port. */
typedef enum { BT_NOT_TRIED = 0, BT_INTERRUPTED, BT_SURVIVED, BT_NOT_SURVIVED, BT_NOT_SEEN, BT_NOT_BACK, BT_PORT_VERDICTS } bt_port_verdict_t;

/* What the check found out about a port. Negative figures are not known. */
typedef struct {
    char name[64];
    bt_port_verdict_t verdict;
    double command; /* how long the command took that cut the port, s */
    double noticed; /* from the start of that command until all processes here had lost their rails over the port, s */
    double back;    /* from the start of the command that gave it back until all processes here used it again, s */
    double gap;     /* longest pause of the stream during the try, s */
    int64_t resent; /* messages that processes here sent again during the try */
    uint32_t state; /* at the end of the check */
} bt_tried_t;

/* bfo_stream under mpirun, and its output. */
typedef struct {
    pid_t pid;  /* mpirun, 0: it has ended, or was not started */
    int status; /* of waitpid(), when it has ended */
    int out;    /* its progress lines; -1: no more will come */
    char line[1024];
    size_t used;    /* of `line` */
    uint64_t lines; /* progress lines so far */
    double spoke;   /* when the last progress line came */
    uint64_t messages, bytes, wrong;
    double longest, gap; /* the longest pause so far, and since `gap` was set to 0 */
} bt_stream_t;

typedef struct {
    const char *root, *cut, *ports, *log_name;
    double down, up, wait; /* seconds */
    bool json, yes;
    int n_arguments; /* words for mpirun */
    char **arguments;
} bt_check_choice_t;

typedef struct bt_check {
    bt_check_choice_t choice;
    char *command[64]; /* the words of choice.cut, with room for two more and NULL */
    size_t n_command;
    char log_name[256];
    FILE *log;
    bt_stream_t stream;
    /* the stream's job on this node, as it was last read */
    bt_all_t all;
    bt_job_t job;
    size_t at, n;    /* its processes in `all`; n is 0 before it is found, and after its end */
    uint32_t number; /* of the job */
    bool is_found;
    /* the ports that are tried */
    bt_tried_t tried[BFO_FIGURES_PORTS];
    size_t n_tried;
    bt_tried_t *now;  /* the port that is tried now; NULL: none yet */
    bt_port_t before; /* that port in the figures before it was cut */
    uint64_t resent_before;
    uint64_t carried_before;                /* bytes that this port had carried until it was given back */
    bool (*question)(struct bt_check *);    /* of watch() */
    uint64_t lines_before, messages_before; /* of the stream, when a wait began */
    bool is_down;                           /* the command has cut the port `now`, which is not given back yet */
    int status;                             /* the exit status so far */
    char reason[1024];                      /* why it is not BT_WELL */
} bt_check_t;

typedef enum { BT_MET, BT_TIMEOUT, BT_ENDED, BT_STOPPED } bt_wait_t;

/* From now on INT, QUIT, TERM and HUP are only remembered. The terminal cannot stop the check (^Z), because a port may be down then. */
void bt_catch_signals(void);
/* Restores the signals in a child that becomes another program. */
void bt_forget_signals(void);
/* The signal that came, or 0. */
int bt_signal(void);
/* Writes what happens to the user (stderr) and to the log. */
void bt_say(bt_check_t *check, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Notes a trouble and says it to the user. The first status stays; the reasons are collected. */
void bt_fail(bt_check_t *check, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Waits until `is_so`, or until the stream or the time is over, or a signal came. Reads the stream and the figures meanwhile. */
bt_wait_t bt_wait(bt_check_t *check, double seconds, bool (*is_so)(bt_check_t *));
/* Lets time pass while it reads the stream. A signal does not end it. */
void bt_pause(bt_check_t *check, double seconds);
/* Finds the program; false if it is not there. */
bool bt_find_program(const char *name, char *room, size_t size);

/* ---- bt_check_stream.c ---------------------------------------------------------------------------------------- */
bool bt_stream_start(bt_check_t *check);
/* Reads the stream's output, for at most so long. */
void bt_stream_pump(bt_check_t *check, int ms);
/* Lets the stream end in order, or ends it. True if it ended well. */
bool bt_stream_end(bt_check_t *check);

/* ---- bt_check_figures.c ---------------------------------------------------------------------------------------- */
/* Reads the figures again. */
void bt_look(bt_check_t *check);
const bt_port_t *bt_figures_of(const bt_check_t *check, const char *name);
/* The time since when all processes here that have rails over the port see it in this state; `fallback` if they do not. */
double bt_since(const bt_check_t *check, const char *name, uint32_t state, double fallback);
/* NULL, or why the job would not survive the loss of this port, or of any port if `name` is NULL. */
const char *bt_why_not_cut(const bt_check_t *check, const char *name, char *room, size_t size);
/* Another port than the one that is tried now, if it has lost a rail; else NULL. */
const char *bt_other_lost(const bt_check_t *check);
/* Questions for bt_wait(). */
bool bt_has_begun(bt_check_t *check);
bool bt_is_calm(bt_check_t *check); /* the stream moves and all rails work; or it is of no use to wait for that */
bool bt_is_seen_lost(bt_check_t *check);
bool bt_is_back(bt_check_t *check);
bool bt_goes_on(bt_check_t *check); /* two more progress lines, the second with more messages */

/* ---- bt_check_cut.c -------------------------------------------------------------------------------------------- */
/* Splits the command into words. Returns NULL, or what is wrong with it. */
const char *bt_cut_parse(bt_check_t *check);
/* Is the name of the port harmless as a word of a command? */
bool bt_cut_takes(const char *port);
/* Runs COMMAND down PORT. False if it failed, after a message; the port may be down then. */
bool bt_cut_down(bt_check_t *check);
/* Runs COMMAND up PORT until it succeeds, at most three times. False, after a message, if the port may still be down. */
bool bt_cut_up(bt_check_t *check);

/* ---- bt_check_report.c ----------------------------------------------------------------------------------------- */
void bt_check_report(const bt_check_t *check);

#endif /* BT_CHECK_H */
