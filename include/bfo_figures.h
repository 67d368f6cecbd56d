/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The figures of a process: a small file that the PML bfo maps and writes, and the command bfo reads, whether the process computes,
 * hangs or is dead. This header is the layout; numbers are in the byte order of the machine, texts end with 0. No header of Open MPI
 * is needed. Nothing in such a file is trusted by its reader. DESIGN.txt section 19.
 */
#ifndef BFO_FIGURES_H
#define BFO_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bfo_traffic.h"

/* "BFOFIGUR", first character in the lowest byte. */
#define BFO_FIGURES_MAGIC UINT64_C(0x52554749464f4642)
#define BFO_FIGURES_LAYOUT 3u
#define BFO_FIGURES_ROOT "/dev/shm" /* default of pml_bfo_status_dir */
#define BFO_FIGURES_OFF "none"
enum {
    BFO_FIGURES_PORTS = 16,
    BFO_FIGURES_MODULES = 64,
    BFO_FIGURES_EVENTS = 64,
    BFO_FIGURES_NAME = 64,
    BFO_FIGURES_ROOM = 8,
    BFO_FIGURES_PARAMETERS = 7
};

/* Is a lost rail survived? */
typedef enum {
    BFO_FIGURES_NOT_KNOWN = 0, /* no process was contacted over a network */
    BFO_FIGURES_IN_FORCE,
    BFO_FIGURES_NOT_IN_FORCE, /* `reason` says why */
    BFO_FIGURES_VERDICTS
} bfo_figures_verdict_t;

/* Of a port: all, some, or none of its rails are in use, or it stands out. Of a rail in an event: up or lost. Of a process: reached or given up. */
typedef enum {
    BFO_FIGURES_NONE = 0,
    BFO_FIGURES_UP,
    BFO_FIGURES_PART,
    BFO_FIGURES_LOST,
    BFO_FIGURES_REACHED,
    BFO_FIGURES_GIVEN_UP,
    BFO_FIGURES_DRAINING, /* of a port that is taken out of service: something is under way on a rail, or a rail cannot be spared */
    BFO_FIGURES_DRAINED,
    BFO_FIGURES_WAITED_FOR,
    BFO_FIGURES_STATES
} bfo_figures_state_t;

typedef enum {
    BFO_FIGURES_BEGUN = 1, /* the process has joined its job */
    BFO_FIGURES_PORT_DOWN, /* the device says so */
    BFO_FIGURES_RAIL_LOST,
    BFO_FIGURES_RAIL_BACK,
    BFO_FIGURES_PEER_LOST,
    BFO_FIGURES_PORT_OUT,      /* it is being taken out of service */
    BFO_FIGURES_PORT_DRAINED,  /* nothing is under way on it */
    BFO_FIGURES_PORT_RELEASED, /* it is given back */
    BFO_FIGURES_PEER_WAITS,    /* no rail to it is left, and its requests wait for one */
    BFO_FIGURES_PEER_BACK,     /* they wait no more */
    BFO_FIGURES_PARAMETER,     /* the user or the program asked for another value of a parameter; `cause` says what came of it */
    BFO_FIGURES_WHATS
} bfo_figures_what_t;

/* Names for people and programs; of a value that was checked. */
static inline const char *bfo_figures_state_name(uint32_t state)
{
    static const char *const names[BFO_FIGURES_STATES] = {"-",        "up",       "partly lost", "lost",      "reached",
                                                          "given up", "draining", "drained",     "waited for"};

    return names[state];
}

static inline const char *bfo_figures_what_name(uint32_t what)
{
    static const char *const names[BFO_FIGURES_WHATS] = {"",         "begun",        "port-down",     "rail-lost",  "rail-back", "peer-lost",
                                                         "port-out", "port-drained", "port-released", "peer-waits", "peer-back", "parameter"};

    return names[what];
}

/* A local port (or a BTL without names of ports), with the sum over its rails to all peers. */
typedef struct {
    char name[64];           /* "mlx5_0:1" */
    char here[112];          /* the same with GUID or GID */
    uint32_t rate;           /* Mbit/s, 0: not known */
    uint32_t state;          /* bfo_figures_state_t */
    uint32_t rails;          /* to processes that are not given up */
    uint32_t rails_lost;     /* of those, now */
    uint32_t is_out;         /* the port is taken out of service */
    uint32_t rails_kept;     /* rails that go on all the same, because no other rail reaches their processes */
    uint32_t rails_draining; /* rails on which something is under way at one of their ends, or whose other end has not answered yet */
    uint32_t rails_drained;
    uint64_t losses;                 /* rails lost so far */
    uint64_t returns;                /* rails that came back so far */
    uint64_t downs;                  /* how often the device said that the port went down */
    uint64_t resent;                 /* messages, alone or as part of a restart, after a rail of this port was lost */
    uint64_t since_wall, since_mono; /* ns; the last change of `state` */
    uint64_t lost_wall;              /* ns; the last loss of a rail, 0: none */
    uint64_t down_ns;                /* how long `state` was LOST in sum, without the time since then if it is now */
    uint32_t penalty;    /* the largest of its rails, for having fallen; one fall is 1000, and it decays. As seen last, at most a second ago */
    uint32_t rails_held; /* rails that fell too often, and stay out until their penalties have decayed. As seen last */
    char cause[96];      /* of the last loss */
} bfo_figures_port_t;

typedef struct {
    uint64_t number;            /* counts from 1; its place is (number - 1) % BFO_FIGURES_EVENTS */
    uint64_t wall, mono;        /* ns */
    uint32_t what;              /* bfo_figures_what_t */
    uint32_t before, after;     /* bfo_figures_state_t */
    uint32_t generation;        /* of the rail; of PORT_DOWN how often the port went down */
    int32_t peer;               /* rank in its job, -1: none */
    uint32_t lasted_ms;         /* how long the state before had lasted, 0: not known, or shorter */
    char here[112], there[112]; /* both ports */
    char host[64];              /* of the peer */
    char cause[96];
} bfo_figures_event_t;

typedef struct {
    /* written before the file has its name, and never again */
    uint64_t magic;
    uint32_t layout, size;
    uint32_t pid, rank;
    uint32_t job; /* Open MPI's number: family << 16 | job of the family */
    uint32_t reserved;
    uint64_t started;                /* of the process, in ticks of /proc/PID/stat */
    uint64_t began_wall, began_mono; /* ns */
    char host[64], command[64], batch[64], version[32];
    /* odd while something below is written */
    uint64_t sequence;
    uint64_t changed_wall; /* ns */
    uint32_t ranks;        /* of the job, 0: not known yet */
    uint32_t verdict;      /* bfo_figures_verdict_t: NOT_IN_FORCE if it is not for one process */
    char reason[160];
    uint32_t peers; /* processes contacted, given up or not, this one and those on this node too */
    uint32_t peers_given_up;
    uint32_t peers_on_last_rail; /* of those that had more */
    uint32_t peers_waited_for;   /* no rail to them is left, and their requests wait */
    uint32_t n_ports;
    uint32_t n_modules;
    uint64_t resent;                           /* messages, alone or as part of a restart */
    uint64_t n_events;                         /* so far; the file keeps the last BFO_FIGURES_EVENTS */
    uint32_t module_port[BFO_FIGURES_MODULES]; /* the port of each module that counts what it carries; a port may have several */
    uint64_t steer_number; /* of the list of wishes (bfo_steer_t) that was obeyed last; at first, of the list that is older than this process */
    int64_t parameter[BFO_FIGURES_PARAMETERS]; /* values now, by bfo_parameter_t; those that may change while the job runs */
    bfo_figures_port_t port[BFO_FIGURES_PORTS];
    bfo_figures_event_t event[BFO_FIGURES_EVENTS];
    uint8_t room[BFO_FIGURES_ROOM];
    bfo_traffic_t traffic[BFO_FIGURES_MODULES]; /* a cache line each; written outside the sequence */
} bfo_figures_t;
_Static_assert(0 == offsetof(bfo_figures_t, traffic) % 64 && 64 == sizeof(bfo_traffic_t), "no two modules share a cache line");

/* ---- what the user asks of his jobs on this node ------------------------------------------------------------ */

/* The file ".steer" beside the files of figures. The command bfo writes it, under a lock; processes map it and only read. */
#define BFO_STEER_NAME ".steer"
#define BFO_STEER_MAGIC UINT64_C(0x52454554534f4642) /* "BFOSTEER" */
#define BFO_STEER_LAYOUT 2u
enum { BFO_STEER_PORTS = BFO_FIGURES_PORTS, BFO_STEER_WISHES = 128 };

/* The processes of a job on this node are to use another value of a parameter. */
typedef struct {
    uint32_t job;       /* as in bfo_figures_t */
    uint32_t parameter; /* bfo_parameter_t, one of those that may change */
    int64_t value;
    uint64_t number; /* `sequence` of the list as it was when the wish had been written; a later process does not obey */
} bfo_steer_wish_t;

typedef struct {
    uint64_t magic;
    uint32_t layout, size;
    uint64_t sequence; /* odd while something below is written */
    uint32_t n_out;
    uint32_t n_wishes;
    char out[BFO_STEER_PORTS][64]; /* names of ports that are taken out of service */
    bfo_steer_wish_t wish[BFO_STEER_WISHES];
} bfo_steer_t;

/* ---- pml_bfo_figures_dir.c: where the files lie, for the PML and the command ------------------------------ */

/* Descriptor of the directory ROOT/bfo-UID, or -errno: -EPERM if it is not a directory of that user and his alone. */
int bfo_figures_dir(const char *root, uid_t uid, bool make);
/* Opens a file of it to be read: -1 if it is no regular file of that user with one name. */
int bfo_figures_open_file(int dir, const char *name, uid_t uid);
/* Opens the file of what the user asks, made if it is not there; -errno: -EPERM if it is not a file of that user with one name,
 * -EPROTO if it has another layout. */
int bfo_figures_open_steer(int dir, uid_t uid);
/* "FAMILY.JOB.RANK.PID"; false: no such name. */
bool bfo_figures_parse_name(const char *name, uint32_t *job, uint32_t *rank, uint32_t *pid);
void bfo_figures_make_name(char name[BFO_FIGURES_NAME], uint32_t job, uint32_t rank, uint32_t pid);
/* Does the process that made the file live? It holds a lock, or stands in /proc with the same start. */
bool bfo_figures_is_alive(int file, uint32_t pid);
/* Removes the files of jobs of which no process of this node lives, but those of `spare`; returns how many. */
unsigned bfo_figures_sweep(int dir, uid_t uid, uint32_t spare);

#endif /* BFO_FIGURES_H */
