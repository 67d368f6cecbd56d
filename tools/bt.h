/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the subcommands of `bfo` share. Each subcommand returns the exit status of the program. DESIGN.txt section 19.
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

/* The checked figures of one process: numbers are in their ranges, texts are printable and end. */
typedef struct {
    bfo_figures_t f;
    uid_t uid;
    bool alive;
    bool torn; /* the file was inconsistent, as if its process died while it wrote it */
} bt_process_t;

enum { BT_MOST_PROCESSES = 16384, BT_MOST_REFUSED = 16 };

typedef struct {
    bt_process_t **process; /* by user, job and rank */
    size_t n;
    char refused[BT_MOST_REFUSED][256]; /* files that are not trusted or not understood, and why */
    size_t n_refused;                   /* how many, also those without room in `refused` */
    bool has_failed;                    /* a host could not be asked */
} bt_all_t;

/* Where the figures come from. */
typedef struct {
    const char *root;  /* NULL: BFO_STATUS_DIR, or the default */
    const char *hosts; /* names with commas between; NULL: this node */
    const char *rsh;   /* the command that runs a command on a host; NULL: BFO_RSH, or ssh */
} bt_source_t;
/* The options --dir, --hosts and --rsh, as a child of a command's parser; its input is a bt_source_t. */
extern const struct argp bt_source_argp;

/* Reads the figures in ROOT: those of this user, or of all users if we are root. `root` NULL: BFO_STATUS_DIR, or the
 * default. `job` NULL: all jobs. False: no memory. The caller calls bt_free(). */
bool bt_read(bt_all_t *all, const char *root, const char *job);
/* The same from any source. */
bool bt_read_from(bt_all_t *all, const bt_source_t *source, const char *job);
/* Adds a process that bt_check() has found good. False: no memory, or too many processes. */
bool bt_add(bt_all_t *all, bt_process_t *process);
/* Says on stderr what was refused. */
void bt_print_refused(const bt_all_t *all);
void bt_free(bt_all_t *all);
/* Checks a file's bytes in place. Returns NULL, or what is wrong with them. `name` is that of the file. */
const char *bt_check(bfo_figures_t *f, const char *name);
/* Makes a text from a file printable, and terminates it. */
void bt_clean_text(char *text, size_t size);
/* Is this the job's name: "54321.1", "54321", or the batch system's word? NULL fits all jobs. */
bool bt_is_job(const bfo_figures_t *f, const char *job);
/* How many processes from `at` on belong to one job on one node; or to one job on all nodes. */
size_t bt_job_size(const bt_all_t *all, size_t at);
size_t bt_job_size_all_nodes(const bt_all_t *all, size_t at);
/* The directory to use: `root` (of --dir), or else BFO_STATUS_DIR, or else the default. */
const char *bt_root_of(const char *root);
/* Calls `what` for this user, or for each user who has a directory if we are root, until it returns false. */
bool bt_for_users(const char *root, bool (*what)(void *context, const char *root, uid_t uid), void *context);
/* Removes the files that dead jobs of this user left, or of all users if we are root. Returns how many. */
unsigned bt_clean(const char *root);

/* ---- bt_steer.c: what a user asks of his jobs, and the wait for them ------------------------------------------ */

/* Opens and locks the list of a user, and copies it. `make`: makes the user's directory if there is none. `tries`: how often to try the
 * lock, every 50 ms. Returns a descriptor; the caller closes it, which unlocks the list. -ENOENT: no job of the user has run here;
 * another negative number: stderr says why. */
int bt_steer_open(const char *root, uid_t uid, bool make, unsigned tries, bfo_steer_t *list);
/* Writes the list without the wishes of dead jobs, and with `wish`, which gets its number, unless that is NULL. Returns NULL, or why it
 * failed. */
const char *bt_steer_write(int file, const char *root, uid_t uid, bfo_steer_t *list, bfo_steer_wish_t *wish);
/* Says on stderr what is wrong with a user's list. */
void bt_steer_say(const char *root, uid_t uid, const char *why);
/* What bt_steer_say() said last. */
const char *bt_steer_said(void);
enum { BT_STEER_TRIES = 100 };
/* Parses the argument of --wait, in seconds. */
double bt_take_wait(struct argp_state *state, const char *arg);

/* ---- bt_ports.c: a job's ports on this node ------------------------------------------------------------- */

typedef struct {
    const bfo_figures_port_t *port; /* of the process in which it changed last */
    uint32_t state, rails, rails_lost, rails_kept, rails_draining, rails_drained;
    bool is_out;
    bool counts; /* the port's traffic is counted */
    uint64_t losses, returns, downs, resent;
    uint64_t sent_bytes, received_bytes;       /* messages, and RDMA of both sides */
    uint64_t sent_messages, received_messages; /* without RDMA */
    uint64_t lost_wall, down_ns;               /* time of the last loss; time lost until now, in the process that lost most */
    uint32_t penalty, rails_held, rails_asking;
} bt_port_t;

typedef struct {
    const bt_process_t *first; /* has what is the same in all processes */
    size_t n, n_dead;
    uint32_t ranks;
    uint32_t verdict;
    const char *reason;
    uint64_t peers_given_up, peers_on_last_rail, peers_waited_for, resent; /* sums over the processes */
    bt_port_t port[BFO_FIGURES_PORTS];
    size_t n_ports;
    size_t n_ports_lost; /* not up, and not taken out of service */
} bt_job_t;

/* How long the port was lost in total, until now, in ns. */
uint64_t bt_down_ns(const bfo_figures_port_t *port);
void bt_job_sum(bt_job_t *job, const bt_all_t *all, size_t at, size_t n);
/* Is nothing lost, and would the job survive the loss of a rail? */
bool bt_job_is_well(const bt_job_t *job);

/* ---- bt_clock.c ----------------------------------------------------------------------------------------- */

/* Seconds of the monotonic clock. */
double bt_now(void);
/* Nanoseconds of the wall clock. */
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
/* Does this process run under mpirun? Then the terminal is mpirun's, and other processes write to it too. */
bool bt_is_under_mpirun(void);
/* Escape sequences for colours on a terminal; "" if it is none. */
const char *bt_colour_of(uint32_t state);
const char *bt_no_colour(void);
/* Takes the word that a subcommand accepts in addition to its options. A second word is a usage error. */
void bt_take_word(struct argp_state *state, const char **word, const char *arg);
/* "bfo-WHAT-HOST-TIME.ENDING": a file of the current directory. */
void bt_file_name(char *name, size_t size, const char *what, const char *ending);
/* Prints and frees the value. A caller prints nothing else to stdout. */
void bt_print_json(json_t *json, bool is_line);

/* ---- bt_out.c: the ports that are out of service, in the list of each user ------------------------------------------------ */

/* What to do with the list of each user, and the result. */
typedef struct {
    const char *port; /* bt_is_port_name() holds; NULL: the list is only read */
    bool out;
    bool force;     /* the port stands out even where it has the last rail to a process */
    unsigned tries; /* how often to try the lock of a list, every 50 ms */
    json_t *ports;  /* the ports that are out of service for some user; below: those by force. NULL: nobody asks */
    json_t *forced;
    unsigned lists;   /* lists that were read */
    unsigned changed; /* lists that were changed */
    unsigned done;    /* lists that are now as wished */
    bool has_failed;  /* it failed for some user; stderr says why */
    char why[512];    /* the first reason */
} bt_wish_t;

/* Is it a port's name that fits into the list? */
bool bt_is_port_name(const char *port);
/* Is the port in this array of names? */
bool bt_is_among(const json_t *names, const char *port);
/* Changes the list of this user, or those of all users who have a directory if we are root. */
void bt_out(bt_wish_t *wish, const char *root);

/* ---- bt_prometheus.c ----------------------------------------------------------------------------------- */
void bt_print_prometheus(const bt_all_t *all);

/* ---- bt_run.c, bt_mpirun.c: mpirun in place of this process --------------------------------------------- */
/* Starts a job that uses bfo with the next `name` (mpirun, mpiexec) of PATH and the arguments after argv[0]. Returns only if that fails,
 * with the exit status; `who` begins messages. */
int bt_run(const char *name, int argc, char **argv, const char *who);
/* The same without parameters of bfo, for any job. */
int bt_mpirun_next(const char *name, char **argv, const char *who);
/* The main function of this program under the name mpirun or mpiexec. */
int bt_as_mpirun(const char *name, int argc, char **argv);
/* Do mpirun's arguments ask for the PML bfo? If they name no PML, does the environment? */
bool bt_mpirun_asks(int argc, char **argv);
/* Does a file that these arguments name with --tune set the parameter? */
bool bt_mpirun_tunes(int argc, char **argv, const char *parameter);
/* The executable `name` of PATH, after the last one that is this program; the caller frees it. NULL: there is none. */
char *bt_next_in_path(const char *name);

/* ---- bt_plot.c ------------------------------------------------------------------------------------------ */
/* Hand in each event once, and then, every time, each process that was read. */
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
