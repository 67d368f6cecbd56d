/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The figures of a process: a small file that the PML bfo maps and writes. The command bfo reads it, whether the process computes,
 * hangs or is dead. This header is the layout; numbers are in the byte order of the machine, texts end with 0. It needs no header of
 * Open MPI. A reader trusts nothing in such a file. DESIGN.txt section 19.
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
#define BFO_FIGURES_LAYOUT 4u
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

/* Does the process survive the loss of a rail? */
typedef enum {
    BFO_FIGURES_NOT_KNOWN = 0, /* no process was contacted over a network */
    BFO_FIGURES_IN_FORCE,
    BFO_FIGURES_NOT_IN_FORCE, /* `reason` says why */
    BFO_FIGURES_VERDICTS
} bfo_figures_verdict_t;

/* Of a port: UP, PART or LOST if all, some or none of its rails are in use; DRAINING or DRAINED if it is out of service; NEVER_UP if
 * it has rails, and none was ever in use; UNUSED if it went down and never had a rail.
 * Of a rail in an event: UP or LOST. Of a process: REACHED, GIVEN_UP or WAITED_FOR. */
typedef enum {
    BFO_FIGURES_NONE = 0,
    BFO_FIGURES_UP,
    BFO_FIGURES_PART,
    BFO_FIGURES_LOST,
    BFO_FIGURES_REACHED,
    BFO_FIGURES_GIVEN_UP,
    BFO_FIGURES_DRAINING, /* of a port that is taken out of service: a rail has messages in flight, or cannot be spared */
    BFO_FIGURES_DRAINED,
    BFO_FIGURES_WAITED_FOR,
    BFO_FIGURES_NEVER_UP,
    BFO_FIGURES_UNUSED,
    BFO_FIGURES_STATES
} bfo_figures_state_t;

typedef enum {
    BFO_FIGURES_BEGUN = 1, /* the process has joined its job */
    BFO_FIGURES_PORT_DOWN, /* the device says so */
    BFO_FIGURES_RAIL_LOST,
    BFO_FIGURES_RAIL_BACK,
    BFO_FIGURES_PEER_LOST,
    BFO_FIGURES_PORT_OUT,      /* it is being taken out of service */
    BFO_FIGURES_PORT_DRAINED,  /* nothing is in flight on it */
    BFO_FIGURES_PORT_RELEASED, /* it is back in service */
    BFO_FIGURES_PEER_WAITS,    /* no rail to it is left, and its requests wait for one */
    BFO_FIGURES_PEER_BACK,     /* the requests no longer wait */
    BFO_FIGURES_PARAMETER,     /* the user or the program asked for another value of a parameter; `cause` says with what result */
    BFO_FIGURES_WHATS
} bfo_figures_what_t;

/* Names for people and programs. The caller has checked the value. */
static inline const char *bfo_figures_state_name(uint32_t state)
{
    static const char *const names[BFO_FIGURES_STATES] = {"-",        "up",      "partly lost", "lost",     "reached", "given up",
                                                          "draining", "drained", "waited for",  "never up", "unused"};

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
    uint32_t rails;          /* to processes that this one has not given up */
    uint32_t rails_lost;     /* of those, now */
    uint32_t is_out;         /* the port is taken out of service */
    uint32_t rails_kept;     /* rails that stay in use, because no other rail reaches their processes */
    uint32_t rails_draining; /* rails with something in flight at one of their ends, or whose other end has not answered yet */
    uint32_t rails_drained;
    uint64_t losses;                 /* rails lost so far */
    uint64_t returns;                /* rails that came back so far */
    uint64_t downs;                  /* how often the device said that the port went down */
    uint64_t resent;                 /* messages, alone or as part of a restart, after a rail of this port was lost */
    uint64_t since_wall, since_mono; /* ns; the last change of `state` */
    uint64_t lost_wall;              /* ns; the last loss of a rail, 0: none */
    uint64_t down_ns;                /* how long `state` was LOST in total, without the time since `since_mono` if it is LOST now */
    uint32_t penalty;                /* the largest penalty of its rails; each failure adds 1000, and it decays. Up to a second old */
    uint32_t rails_held;             /* rails that failed too often, and stay out until their penalties have decayed. As old as `penalty` */
    uint32_t rails_asking;           /* rails that cannot return before the processes at their other ends have called MPI. As old as `penalty` */
    uint32_t reserved;
    char cause[96]; /* of the last loss */
} bfo_figures_port_t;

typedef struct {
    uint64_t number;            /* counts from 1; its place is (number - 1) % BFO_FIGURES_EVENTS */
    uint64_t wall, mono;        /* ns */
    uint32_t what;              /* bfo_figures_what_t */
    uint32_t before, after;     /* bfo_figures_state_t */
    uint32_t generation;        /* of the rail; in PORT_DOWN how often the port went down */
    int32_t peer;               /* rank in its job, -1: none */
    uint32_t lasted_ms;         /* how long the state before had lasted; 0: not known, or less than 1 ms */
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
    uint32_t verdict;      /* bfo_figures_verdict_t: NOT_IN_FORCE if failover is not in force for at least one process */
    char reason[160];
    uint32_t peers; /* processes contacted, including those given up, this one and those on this node */
    uint32_t peers_given_up;
    uint32_t peers_on_last_rail; /* of the peers that had more than one */
    uint32_t peers_waited_for;   /* no rail to them is left, and the requests to them wait */
    uint32_t n_ports;
    uint32_t n_modules;
    uint64_t resent;                           /* messages, alone or as part of a restart */
    uint64_t n_events;                         /* so far; the file keeps the last BFO_FIGURES_EVENTS */
    uint32_t module_port[BFO_FIGURES_MODULES]; /* the port of each module that counts what it carries; several modules may share a port */
    uint64_t steer_number; /* `sequence` of the list (bfo_steer_t) obeyed last; at first, of the list found at the start of this process */
    int64_t parameter[BFO_FIGURES_PARAMETERS]; /* current values, by bfo_parameter_t, of the parameters that may change while the job runs */
    bfo_figures_port_t port[BFO_FIGURES_PORTS];
    bfo_figures_event_t event[BFO_FIGURES_EVENTS];
    uint8_t room[BFO_FIGURES_ROOM];
    bfo_traffic_t traffic[BFO_FIGURES_MODULES]; /* a cache line each; written outside the sequence */
} bfo_figures_t;
_Static_assert(0 == offsetof(bfo_figures_t, traffic) % 64 && 64 == sizeof(bfo_traffic_t), "no two modules share a cache line");

/* ---- what the user asks of his jobs on this node ------------------------------------------------------------ */

/* The file ".steer" in the directory of the files of figures. The command bfo writes it, under a lock; processes map it and only read it. */
#define BFO_STEER_NAME ".steer"
#define BFO_STEER_MAGIC UINT64_C(0x52454554534f4642) /* "BFOSTEER" */
#define BFO_STEER_LAYOUT 3u
enum { BFO_STEER_PORTS = BFO_FIGURES_PORTS, BFO_STEER_WISHES = 128 };

/* A wish: the processes of a job on this node are to use another value of a parameter. */
typedef struct {
    uint32_t job;       /* as in bfo_figures_t */
    uint32_t parameter; /* bfo_parameter_t, one of those that may change */
    int64_t value;
    uint64_t number; /* `sequence` of the list after the wish was written; a process that starts later does not obey it */
} bfo_steer_wish_t;

typedef struct {
    uint64_t magic;
    uint32_t layout, size;
    uint64_t sequence; /* odd while something below is written */
    uint32_t n_out;
    uint32_t n_wishes;
    char out[BFO_STEER_PORTS][64]; /* names of ports that are taken out of service */
    bfo_steer_wish_t wish[BFO_STEER_WISHES];
    uint32_t forced; /* bit i: out[i] stands out even where it has the last rail to a process */
    uint32_t reserved;
} bfo_steer_t;

/* ---- pml_bfo_figures_dir.c: where the files are, for the PML and the command ------------------------------- */

/* Opens the directory ROOT/bfo-UID, after making it if `make`. Returns its descriptor, which the caller closes, or -errno: -EPERM if it is
 * not a directory that belongs to that user and is closed to all others. */
int bfo_figures_dir(const char *root, uid_t uid, bool make);
/* Opens a file of that directory for reading. Returns its descriptor, or -1: no regular file of that user with exactly one link. */
int bfo_figures_open_file(int dir, const char *name, uid_t uid);
/* Opens the file BFO_STEER_NAME, after making it if it does not exist. Returns its descriptor, or -errno: -EPERM if it is not a file of that
 * user with exactly one link, -EPROTO if it has another layout. */
int bfo_figures_open_steer(int dir, uid_t uid);
/* Parses "FAMILY.JOB.RANK.PID"; false: the name has another form. */
bool bfo_figures_parse_name(const char *name, uint32_t *job, uint32_t *rank, uint32_t *pid);
void bfo_figures_make_name(char name[BFO_FIGURES_NAME], uint32_t job, uint32_t rank, uint32_t pid);
/* Is the process that made the file alive? It holds a lock on the file, or /proc shows it with the same start time. */
bool bfo_figures_is_alive(int file, uint32_t pid);
/* Removes the files of jobs that have no living process on this node, except those of job `spare`; returns how many. */
unsigned bfo_figures_sweep(int dir, uid_t uid, uint32_t spare);

#endif /* BFO_FIGURES_H */
