/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo ftb: fault events of a node, with the names and payloads that the CIFTS fault tolerance backplane (FTB) gives to MPI libraries. The
 * table of events is in bfo(1), the format of a line in docs/ftb.md. DESIGN.txt section 19.11.
 */
#ifndef BT_FTB_H
#define BT_FTB_H

#include "bt.h"

/* ---- bt_ftb_text.c: an event and its line ----------------------------------------------------------------- */

#define BT_FTB_SPACE "ftb.mpi.bfo" /* only the server throws events into it */
#define BT_FTB_SPACE_OF_OTHERS "ftb.monitor.bfo"
#define BT_FTB_SOCKET ".ftb"

/* A request, what it holds, and a line that goes out, which is never longer than BT_FTB_LINE with its end: a blank comes behind a comma. */
enum { BT_FTB_REQUEST = 2048, BT_FTB_TEXT = 2048, BT_FTB_LINE = 4096 };
enum { BT_FTB_PAIRS = 16, BT_FTB_WORDS = 192, BT_FTB_SET = 64, BT_FTB_KEY = 32, BT_FTB_NAME = 64 };

typedef enum { BT_FTB_INFO, BT_FTB_WARNING, BT_FTB_ERROR, BT_FTB_FATAL, BT_FTB_SEVERITIES } bt_ftb_severity_t;

typedef struct {
    const char *space, *name;
    bt_ftb_severity_t severity;
    size_t n_pairs, n_words, used;
    bool is_full; /* a word had no room */
    struct {
        const char *key;
        bool is_set; /* {a, b}: else there is one word */
        size_t first, n;
    } pair[BT_FTB_PAIRS];
    const char *word[BT_FTB_WORDS];
    char text[BT_FTB_TEXT]; /* holds what the pointers point to */
    char why[128];          /* a reader could not read it */
} bt_ftb_event_t;

/* An event without pairs, and pairs for it. A word may hold any printable ASCII. The `name` stays with the caller. */
void bt_ftb_begin(bt_ftb_event_t *e, const char *name);
void bt_ftb_add(bt_ftb_event_t *e, const char *key, const char *word);
void bt_ftb_add_number(bt_ftb_event_t *e, const char *key, uint64_t number);
/* A set that begins empty; its words are those that follow, each once. False: it has BT_FTB_SET words. */
void bt_ftb_add_set(bt_ftb_event_t *e, const char *key);
bool bt_ftb_add_to_set(bt_ftb_event_t *e, const char *word);
/* NULL: there is no such pair. `n`: how many words. */
const char *const *bt_ftb_words(const bt_ftb_event_t *e, const char *key, size_t *n);
bool bt_ftb_has(const bt_ftb_event_t *e, const char *key, const char *word);

/* Reads "SPACE SEVERITY EVENT PAYLOAD". False: `why` says what is wrong. */
bool bt_ftb_read(bt_ftb_event_t *e, const char *text);
bool bt_ftb_read_payload(bt_ftb_event_t *e, const char *text);
/* Writes the same in one way only, without an end of line. */
void bt_ftb_write(const bt_ftb_event_t *e, char room[BT_FTB_LINE]);
json_t *bt_ftb_json(const bt_ftb_event_t *e, const char *time);

/* Severity of an event by its name: that of the table, else `info`. */
bt_ftb_severity_t bt_ftb_severity_of(const char *name);
const char *bt_ftb_severity_name(bt_ftb_severity_t severity);
bool bt_ftb_is_severity(const char *word, bt_ftb_severity_t *severity);
bool bt_ftb_is_name(const char *word);
bool bt_ftb_is_space(const char *word);

/* ---- bt_ftb_known.c: what the server knows of processes, ports and ranks ------------------------------------ */

typedef enum { BT_FTB_JOB, BT_FTB_PROCESS, BT_FTB_PORT, BT_FTB_RANK } bt_ftb_kind_t;

typedef struct bt_ftb_known {
    bt_ftb_kind_t kind;
    uid_t uid;
    uint32_t job, rank, pid;
    char name[64], host[64]; /* of a port: containers of one node may have names of their own */
    uint64_t shown;          /* of a process: the number of its last event that was thrown */
    uint32_t state;          /* bfo_figures_state_t: what was said of a port, of a process or of a rank */
    bool was_alive;          /* of a process */
    uint64_t seen;           /* in which look */
    struct bt_ftb_known *next;
} bt_ftb_known_t;

/* Finds it, or makes it from `key`; NULL: there is no more room. `is_new` says which. */
bt_ftb_known_t *bt_ftb_know(const bt_ftb_known_t *key, bool *is_new);
/* Forgets what was not found since the last call, but ranks of jobs that were. */
void bt_ftb_forget_others(void);
/* Calls `what` for all ports. */
void bt_ftb_known_ports(void (*what)(bt_ftb_known_t *port, void *context), void *context);

/* ---- bt_ftb_throw.c, bt_ftb_rails.c: events out of figures -------------------------------------------------- */

typedef void (*bt_ftb_sink_t)(const bt_ftb_event_t *e);

/* Throws what is new in `all`. */
void bt_ftb_throw(const bt_all_t *all, bt_ftb_sink_t sink);
/* The events that the processes have written since the last look. `since`: ns of the wall clock; older ones are not thrown. */
void bt_ftb_throw_written(const bt_all_t *all, uint64_t since, bt_ftb_sink_t sink);
/* Throws again what is so already, of one port. */
void bt_ftb_throw_port_again(const char *port, bool out);
/* Begins an event of a job on its node. */
void bt_ftb_begin_of_job(bt_ftb_event_t *e, const char *name, const char *iface, const bt_process_t *p);
/* nodes, jobs, and an empty set of ranks */
void bt_ftb_begin_ranks(bt_ftb_event_t *e, const char *name, const char *node, const bt_process_t *p);
bool bt_ftb_add_rank(bt_ftb_event_t *e, uint32_t rank);
/* The state of a port and its rails. */
void bt_ftb_add_port(bt_ftb_event_t *e, const bt_port_t *port);

/* ---- bt_ftb_obey.c: events that the server obeys ------------------------------------------------------------ */

/* Does what an event asks for, or keeps the question until the next look. NULL, or why not. The event may be none of those. */
const char *bt_ftb_obey(const bt_ftb_event_t *e, const char *root);
/* Answers the questions. */
void bt_ftb_answer(const bt_all_t *all, bt_ftb_sink_t sink);

/* ---- bt_ftb_clients.c, bt_ftb_serve.c: the server ------------------------------------------------------------ */

/* Called for each event that a client publishes: NULL, or why the server does not take it. */
typedef const char *(*bt_ftb_taker_t)(bt_ftb_event_t *e);

/* How many descriptors stand in `fds`, which has room for BT_FTB_CLIENTS. */
enum { BT_FTB_CLIENTS = 64 };
struct pollfd;
size_t bt_ftb_clients_poll(struct pollfd *fds);
/* Serves those that poll() found ready, and drops those that ask for nothing. */
void bt_ftb_clients_serve(const struct pollfd *fds, size_t n, bt_ftb_taker_t take);
/* Takes all that wait at the socket. */
void bt_ftb_clients_accept(int socket);
/* Puts a line into the queue of each subscriber. */
void bt_ftb_clients_tell(const bt_ftb_event_t *e);
void bt_ftb_clients_close(void);

/* Serves until a signal ends it. Returns the exit status. */
int bt_ftb_serve(const char *root, bool json);

/* ---- bt_ftb_socket.c: the socket ----------------------------------------------------------------------------- */

/* The listening socket, or -1: the reason is on stderr. `dir`: of the user, locked as long as it is open. */
int bt_ftb_listen(const char *root, int *dir);
/* A connection to the server of a user, or -1: the reason is on stderr. Reading and writing end with EAGAIN after ten seconds. */
int bt_ftb_connect(const char *root, uid_t uid);
void bt_ftb_wait_for_ever(int connection);
/* User of the process at the other end; (uid_t) -1: not known. */
uid_t bt_ftb_peer(int connection);

#endif /* BT_FTB_H */
