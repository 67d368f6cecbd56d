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

/* Room for a request, for its words, and for an outgoing line with its end, which may be longer because a blank follows each comma. */
enum { BT_FTB_REQUEST = 2048, BT_FTB_TEXT = 2048, BT_FTB_LINE = 4096 };
enum { BT_FTB_PAIRS = 16, BT_FTB_WORDS = 192, BT_FTB_SET = 64, BT_FTB_KEY = 32, BT_FTB_NAME = 64 };

typedef enum { BT_FTB_INFO, BT_FTB_WARNING, BT_FTB_ERROR, BT_FTB_FATAL, BT_FTB_SEVERITIES } bt_ftb_severity_t;

typedef struct {
    const char *space, *name;
    bt_ftb_severity_t severity;
    size_t n_pairs, n_words, used;
    bool is_full; /* there was no room for a word */
    struct {
        const char *key;
        bool is_set; /* it is {a, b}; otherwise there is one word */
        size_t first, n;
    } pair[BT_FTB_PAIRS];
    const char *word[BT_FTB_WORDS];
    char text[BT_FTB_TEXT]; /* holds what the pointers point to */
    char why[128];          /* why the event could not be read */
} bt_ftb_event_t;

/* Begin an event without pairs, and add pairs to it. A word may be any printable ASCII text. `name` is not copied. */
void bt_ftb_begin(bt_ftb_event_t *e, const char *name);
void bt_ftb_add(bt_ftb_event_t *e, const char *key, const char *word);
void bt_ftb_add_number(bt_ftb_event_t *e, const char *key, uint64_t number);
/* Begins an empty set, and adds a word to it, each word once. False: the set has BT_FTB_SET words. */
void bt_ftb_add_set(bt_ftb_event_t *e, const char *key);
bool bt_ftb_add_to_set(bt_ftb_event_t *e, const char *word);
/* The words of a pair, and their number in *n; NULL if there is no such pair. */
const char *const *bt_ftb_words(const bt_ftb_event_t *e, const char *key, size_t *n);
bool bt_ftb_has(const bt_ftb_event_t *e, const char *key, const char *word);

/* Reads "SPACE SEVERITY EVENT PAYLOAD". False: `why` says what is wrong. */
bool bt_ftb_read(bt_ftb_event_t *e, const char *text);
bool bt_ftb_read_payload(bt_ftb_event_t *e, const char *text);
/* Writes the same in one way only, without an end of line. */
void bt_ftb_write(const bt_ftb_event_t *e, char room[BT_FTB_LINE]);
json_t *bt_ftb_json(const bt_ftb_event_t *e, const char *time);

/* The severity of an event of this name: that of the table, or else `info`. */
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
    uint64_t shown;          /* for a process: the number of its last event that was thrown */
    uint32_t state;          /* bfo_figures_state_t: the state of a port, process or rank that was said last */
    bool was_alive;          /* for a process */
    uint64_t seen;           /* number of the look that found it last */
    struct bt_ftb_known *next;
} bt_ftb_known_t;

/* Finds the entry, or makes it from `key`; *is_new says which. NULL: there is no more room. */
bt_ftb_known_t *bt_ftb_know(const bt_ftb_known_t *key, bool *is_new);
/* Forgets the entries that were not found since the last call, but keeps ranks of jobs that were found. */
void bt_ftb_forget_others(void);
/* Calls `what` for all ports. */
void bt_ftb_known_ports(void (*what)(bt_ftb_known_t *port, void *context), void *context);

/* ---- bt_ftb_throw.c, bt_ftb_rails.c: events out of figures -------------------------------------------------- */

typedef void (*bt_ftb_sink_t)(const bt_ftb_event_t *e);

/* Throws events for what is new in `all`. */
void bt_ftb_throw(const bt_all_t *all, bt_ftb_sink_t sink);
/* Throws the events that the processes have written since the last look. `since`: ns of the wall clock; older ones are not thrown. */
void bt_ftb_throw_written(const bt_all_t *all, uint64_t since, bt_ftb_sink_t sink);
/* Throws the current state of one port again. */
void bt_ftb_throw_port_again(const char *port, bool out);
/* Begins an event of a job on its node. */
void bt_ftb_begin_of_job(bt_ftb_event_t *e, const char *name, const char *iface, const bt_process_t *p);
/* Begins an event with nodes, jobs, and an empty set of ranks. */
void bt_ftb_begin_ranks(bt_ftb_event_t *e, const char *name, const char *node, const bt_process_t *p);
bool bt_ftb_add_rank(bt_ftb_event_t *e, uint32_t rank);
/* Adds the state of a port and its rails. */
void bt_ftb_add_port(bt_ftb_event_t *e, const bt_port_t *port);

/* ---- bt_ftb_obey.c: events that the server obeys ------------------------------------------------------------ */

/* Does what an event asks for, or keeps the question until the next look; ignores other events. Returns NULL, or why it failed. */
const char *bt_ftb_obey(const bt_ftb_event_t *e, const char *root);
/* Answers the questions. */
void bt_ftb_answer(const bt_all_t *all, bt_ftb_sink_t sink);

/* ---- bt_ftb_clients.c, bt_ftb_serve.c: the server ------------------------------------------------------------ */

/* Called for each event that a client publishes. Returns NULL, or why the server does not take it. */
typedef const char *(*bt_ftb_taker_t)(bt_ftb_event_t *e);

/* Fills `fds`, which has room for BT_FTB_CLIENTS. Returns the number of descriptors. */
enum { BT_FTB_CLIENTS = 64 };
struct pollfd;
size_t bt_ftb_clients_poll(struct pollfd *fds);
/* Serves the clients that poll() found ready, and drops those that are done. */
void bt_ftb_clients_serve(const struct pollfd *fds, size_t n, bt_ftb_taker_t take);
/* Accepts all connections that wait at the socket. */
void bt_ftb_clients_accept(int socket);
/* Puts a line into the queue of each subscriber. */
void bt_ftb_clients_tell(const bt_ftb_event_t *e);
void bt_ftb_clients_close(void);

/* Serves until a signal ends it. Returns the exit status. */
int bt_ftb_serve(const char *root, bool json);

/* ---- bt_ftb_socket.c: the socket ----------------------------------------------------------------------------- */

/* Makes the listening socket; -1 after a message on stderr. *dir is the user's directory, which stays locked while it is open. */
int bt_ftb_listen(const char *root, int *dir);
/* Connects to the server of a user; -1 after a message on stderr. Reads and writes on it end with EAGAIN after ten seconds. */
int bt_ftb_connect(const char *root, uid_t uid);
void bt_ftb_wait_for_ever(int connection);
/* The user of the process at the other end; (uid_t) -1 if not known. */
uid_t bt_ftb_peer(int connection);

#endif /* BT_FTB_H */
