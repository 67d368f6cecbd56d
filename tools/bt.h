/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The command `bfo`: what its subcommands share. Each subcommand returns the exit status of the program. DESIGN.txt section 19.
 */
#ifndef BT_H
#define BT_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bfo_figures.h"

enum { BT_WELL = 0, BT_NOT_WELL = 1, BT_USAGE = 2, BT_TROUBLE = 3, BT_NO_JOB = 4 };

int bt_cmd_status(int argc, char **argv);
int bt_cmd_top(int argc, char **argv);
int bt_cmd_events(int argc, char **argv);
int bt_cmd_doctor(int argc, char **argv);
int bt_cmd_drain(int argc, char **argv);
int bt_cmd_release(int argc, char **argv);
int bt_cmd_set(int argc, char **argv);
int bt_cmd_run(int argc, char **argv);
int bt_cmd_report(int argc, char **argv);
int bt_cmd_figures(int argc, char **argv);
int bt_cmd_check(int argc, char **argv);
int bt_cmd_clean(int argc, char **argv);
int bt_cmd_ftb(int argc, char **argv);

/* ---- bt_read.c: the files of figures ------------------------------------------------------------------ */

/* One process, checked: numbers are in their ranges, texts are printable and end. */
typedef struct {
    bfo_figures_t f;
    uid_t uid;
    bool alive;
    bool torn; /* it was read while it was being written, as of a process that died then */
} bt_process_t;

enum { BT_MOST_PROCESSES = 16384, BT_MOST_REFUSED = 16 };

typedef struct {
    bt_process_t **process; /* by user, job and rank */
    size_t n;
    char refused[BT_MOST_REFUSED][256]; /* what is not trusted or not understood, and why */
    size_t n_refused;                   /* also of those without room */
    bool has_failed;                    /* a host could not be asked */
} bt_all_t;

/* Where the figures are read. */
typedef struct {
    const char *root;  /* NULL: BFO_STATUS_DIR, or the default */
    const char *hosts; /* names with commas between; NULL: this node */
    const char *rsh;   /* the command that runs a command on a host; NULL: BFO_RSH, or ssh */
} bt_source_t;
/* --dir, --hosts and --rsh, as the child of a command's parser; its input is a bt_source_t. */
extern const struct argp bt_source_argp;

/* Reads what ROOT holds: of this user, of root of all users. `root` NULL: BFO_STATUS_DIR, or the default.
 * `job` NULL: all jobs. False: no memory. */
bool bt_read(bt_all_t *all, const char *root, const char *job);
/* The same of any source; without `job` of all jobs. */
bool bt_read_from(bt_all_t *all, const bt_source_t *source, const char *job);
/* Takes a process that bt_check() has found good. False: no memory, or too many. */
bool bt_add(bt_all_t *all, bt_process_t *process);
/* Says on stderr what was refused. */
void bt_print_refused(const bt_all_t *all);
void bt_free(bt_all_t *all);
/* Checks a file's bytes in place. NULL, or what is wrong with them. `name`: of the file. */
const char *bt_check(bfo_figures_t *f, const char *name);
/* Makes a text of a file printable, and end. */
void bt_clean_text(char *text, size_t size);
/* Is the job called so: "54321.1", "54321", or the batch system's word? NULL calls all of them. */
bool bt_is_job(const bfo_figures_t *f, const char *job);
/* How many processes from `at` on are of one job on one node; or of one job. */
size_t bt_job_size(const bt_all_t *all, size_t at);
size_t bt_job_size_all_nodes(const bt_all_t *all, size_t at);
/* What --dir, BFO_STATUS_DIR and the default make of it. */
const char *bt_root_of(const char *root);
/* Calls `what` for this user, or if we are root for each user who has a directory, until it returns false. */
bool bt_for_users(const char *root, bool (*what)(void *context, const char *root, uid_t uid), void *context);
/* Removes what dead jobs left of this user (of root: of all users); returns how many files. */
unsigned bt_clean(const char *root);

/* ---- bt_steer.c: what a user asks of his jobs, and the wait for them ------------------------------------------ */

/* Opens the list of a user, locked, and copies it. `make`: his directory is made if there is none. `tries`: to take the lock, 50 ms between two of them. Returns a descriptor, whose end unlocks
 * it; -ENOENT: no job of the user has run here; another negative number: stderr says why. */
int bt_steer_open(const char *root, uid_t uid, bool make, unsigned tries, bfo_steer_t *list);
/* Writes the list without the wishes of dead jobs, and with one more, unless it is NULL, which gets its number. NULL, or why not. */
const char *bt_steer_write(int file, const char *root, uid_t uid, bfo_steer_t *list, bfo_steer_wish_t *wish);
/* Says on stderr what is wrong with that list. */
void bt_steer_say(const char *root, uid_t uid, const char *why);
/* What it said last. */
const char *bt_steer_said(void);
enum { BT_STEER_TRIES = 100 };
/* The argument of --wait, in seconds. */
double bt_take_wait(struct argp_state *state, const char *arg);

/* ---- bt_ports.c: a job's ports on this node ------------------------------------------------------------- */

typedef struct {
    const bfo_figures_port_t *port; /* of the process in which it changed last */
    uint32_t state, rails, rails_lost, rails_kept, rails_draining, rails_drained;
    bool is_out;
    bool counts; /* what it carries */
    uint64_t losses, returns, downs, resent;
    uint64_t sent_bytes, received_bytes;       /* messages and RDMA of either side */
    uint64_t sent_messages, received_messages; /* without RDMA */
    uint64_t lost_wall, down_ns;               /* the last loss; the longest sum of a process, until now */
    uint32_t penalty, rails_held;
} bt_port_t;

typedef struct {
    const bt_process_t *first; /* says what all have alike */
    size_t n, n_dead;
    uint32_t ranks;
    uint32_t verdict;
    const char *reason;
    uint64_t peers_given_up, peers_on_last_rail, peers_waited_for, resent; /* sums over the processes */
    bt_port_t port[BFO_FIGURES_PORTS];
    size_t n_ports;
    size_t n_ports_lost; /* not up, and not taken out of service */
} bt_job_t;

/* How long the port was lost in sum, until now. */
uint64_t bt_down_ns(const bfo_figures_port_t *port);
void bt_job_sum(bt_job_t *job, const bt_all_t *all, size_t at, size_t n);
/* Nothing is lost, and a lost rail would be survived. */
bool bt_job_is_well(const bt_job_t *job);

/* ---- bt_clock.c ----------------------------------------------------------------------------------------- */

/* Seconds of a clock that nobody sets. */
double bt_now(void);
/* ns of the wall clock. */
uint64_t bt_wall_ns(void);
/* A pause between two looks. */
void bt_sleep_a_while(void);

/* ---- bt_text.c ----------------------------------------------------------------------------------------- */

enum { BT_TIME = 40 };
/* A time as 2026-11-24T11:12:13.123+0000. */
const char *bt_time(char room[BT_TIME], uint64_t wall_ns);
/* "200G", "2500M", or "-". */
const char *bt_rate(char room[16], uint32_t megabits);
/* "2.93G", six characters at most. */
const char *bt_amount(char room[16], double amount);
/* "54321.1" */
const char *bt_job_name(char room[16], uint32_t job);
/* "mlx5_0:1" of "mlx5_0:1 (GUID 0x0002c90300000001)" */
const char *bt_port_of(char room[64], const char *here);
const char *bt_state_name(uint32_t state);
const char *bt_verdict_name(uint32_t verdict);
const char *bt_what_name(uint32_t what);
/* Then the terminal is mpirun's, and others write to it as well. */
bool bt_is_under_mpirun(void);
/* Ways to write in colours on a terminal; "" elsewhere. */
const char *bt_colour_of(uint32_t state);
const char *bt_no_colour(void);
/* Takes the word that a subcommand accepts beside its options; a second word is an error of usage. */
void bt_take_word(struct argp_state *state, const char **word, const char *arg);
/* "bfo-WHAT-HOST-TIME.ENDING": a file of the current directory. */
void bt_file_name(char *name, size_t size, const char *what, const char *ending);
/* Prints and frees; nothing else goes to stdout. */
void bt_print_json(json_t *json, bool is_line);

/* ---- bt_out.c: the ports that jobs leave out, in the list of each user ---------------------------------------------------- */

/* What is to be done with the list of each user, and what came of it. */
typedef struct {
    const char *port; /* bt_is_port_name() holds; NULL: the list is only read */
    bool out;
    unsigned tries;   /* to take the lock of a list, 50 ms between two of them */
    json_t *ports;    /* that stand out for some user */
    unsigned lists;   /* that were read */
    unsigned changed; /* of those */
    unsigned done;    /* that are as they are to be now */
    bool has_failed;  /* for some user: stderr has it */
    char why[512];    /* the first reason */
} bt_wish_t;

/* A port whose name fits into the list. */
bool bt_is_port_name(const char *port);
/* Changes the list of this user, of root those of all users who have a directory. */
void bt_out(bt_wish_t *wish, const char *root);

/* ---- bt_prometheus.c ----------------------------------------------------------------------------------- */
void bt_print_prometheus(const bt_all_t *all);

/* ---- bt_run.c, bt_mpirun.c: mpirun in place of this process --------------------------------------------- */
/* Starts a job that uses bfo with the next `name` (mpirun, mpiexec) of PATH and the arguments after argv[0]. Returns only if that fails,
 * with the exit status; `who` begins messages. */
int bt_run(const char *name, int argc, char **argv, const char *who);
/* The same for any job, as it is. */
int bt_mpirun_next(const char *name, char **argv, const char *who);
/* This program under the name of mpirun or mpiexec. */
int bt_as_mpirun(const char *name, int argc, char **argv);
/* Do mpirun's arguments, or else the environment, ask for the PML bfo? */
bool bt_mpirun_asks(int argc, char **argv);
/* Does a file of theirs for --tune assign to the parameter? */
bool bt_mpirun_tunes(int argc, char **argv, const char *parameter);
/* The executable `name` of PATH, after the last one that is this program; the caller frees it. NULL: there is none. */
char *bt_next_in_path(const char *name);

/* ---- bt_plot.c ------------------------------------------------------------------------------------------ */
/* An event that has not been handed in before; then each process that was read, every time. */
void bt_plot_event(const bt_process_t *process, const bfo_figures_event_t *event);
void bt_plot_process(const bt_process_t *process);
/* Draws what was handed in, from `since` to `now` (ns of the wall clock), into an SVG file. Returns the exit status. */
int bt_plot_draw(const char *file, uint64_t since, uint64_t now);

/* ---- bt_hook.c ------------------------------------------------------------------------------------------ */
/* An event, as bfo events shows it. */
typedef struct {
    const bt_process_t *process;
    const bfo_figures_event_t *event;
    unsigned others; /* processes that wrote the same */
    const char *line;
} bt_hook_t;
/* Runs a program for the event, and waits for its end. False: there is no such program. */
bool bt_hook_run(const char *command, const bt_hook_t *hook);
void bt_hook_log(const bt_hook_t *hook);

#endif /* BT_H */
