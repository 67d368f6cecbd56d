/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Connections of librdmacm between processes of the fabric. Each identifier has one local socket to its peer. An event
 * channel is an epoll descriptor over the sockets of its identifiers, so no thread is needed, and the kernel reports when
 * a peer dies. DESIGN.txt 16.
 */
#ifndef SR_CM_H
#define SR_CM_H

#include <rdma/rdma_cma.h>

#include "sr_objects.h"

#define SR_CM_DATA 196 /* private data of a letter, bytes; sr_cm_send knows how many of them each kind may use */

enum sr_cm_state {
    SR_CM_IDLE,
    SR_CM_RESOLVING,
    SR_CM_BOUND,
    SR_CM_LISTENING,
    SR_CM_INCOMING,
    SR_CM_ASKED,
    SR_CM_KNOCKING,
    SR_CM_CONNECTING,
    SR_CM_ANSWERED,
    SR_CM_ACCEPTED,
    SR_CM_CONNECTED,
    SR_CM_ENDED
};
enum sr_cm_kind { SR_CM_REQUEST = 1, SR_CM_REPLY, SR_CM_READY, SR_CM_REJECT, SR_CM_GOODBYE };

/* A letter between two identifiers, which is one packet on the socket. */
struct sr_cm_letter {
    uint32_t kind; /* enum sr_cm_kind */
    uint32_t slot; /* of the sender */
    uint32_t rail;
    uint32_t qpn;
    uint8_t responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count, srq;
    uint8_t length; /* of data; checked when received */
    uint8_t reserved;
    struct sockaddr_storage from, to;
    uint8_t data[SR_CM_DATA];
};

struct sr_cm_event {
    struct rdma_cm_event rdma;
    struct sr_cm_event *next;
    uint8_t data[SR_CM_DATA];
};

struct sr_cm_channel {
    struct rdma_event_channel rdma; /* fd: epoll */
    int ready;                      /* semaphore: number of queued events */
    int ticker;                     /* timer; runs while identifiers wait for time to pass */
    bool ticking;                   /* mutex */
    pthread_mutex_t mutex;
    struct sr_cm_event *first, **last; /* mutex */
    struct sr_cm_id *ids;              /* mutex; all identifiers of the channel */
    bool is_read, by_others;           /* mutex; a thread asked for events; other threads than `reader` did too */
    pthread_t reader;                  /* mutex; valid if is_read: the thread that asked first */
    bool closed;                       /* mutex */
    struct sr_cm_channel *next_closed; /* list of channels that are kept because a reader may still use them */
};

struct sr_cm_id {
    struct rdma_cm_id rdma;
    enum sr_cm_state state;        /* channel's mutex, as all below */
    struct sr_cm_id *next, **link; /* of the channel's list */
    int fd;                        /* socket; -1: none */
    int rail;                      /* -1: not bound to a rail */
    bool sync;                     /* the channel belongs to the identifier alone: calls wait for their result */
    bool passive;                  /* a listener made it */
    bool held;                     /* a letter waits in the socket for the rail to carry it */
    bool removed;                  /* DEVICE_REMOVAL was reported */
    unsigned knocks;               /* KNOCKING: how many attempts found no listener */
    uint64_t deadline;             /* ns; 0: no answer is awaited */
    uint64_t lost_since;           /* ns; while an answer is awaited: since when the rail carries nothing; 0: it carries */
    enum rdma_cm_event_type asked; /* RESOLVING: ADDR_RESOLVED or ROUTE_RESOLVED */
    char name[32];                 /* of the listening socket; empty: none */
    struct sr_cm_id *listener;     /* INCOMING only */
    struct sr_cm_id *incoming;     /* in a listener: the first identifier that has not asked yet; in such an identifier: the next one */
    struct sr_cm_letter peer;      /* the last request or reply that came */
    struct rdma_conn_param mine;
    struct ibv_qp_init_attr *accept_with; /* given to rdma_create_ep of a listener, for the queue pairs of requests */
    struct sr_acks acks;
};

static inline struct sr_cm_id *sr_cm_id(struct rdma_cm_id *id)
{
    return (struct sr_cm_id *) id;
}
static inline struct sr_cm_channel *sr_cm_channel(struct rdma_event_channel *c)
{
    return (struct sr_cm_channel *) c;
}

/* ---- sr_cm_address.c ---------------------------------------------------------------------------- */
/* Finds the rail of a local address; -1 for wildcards and loopback. EADDRNOTAVAIL if the address is not of this machine. */
int sr_cm_rail_of(const struct sockaddr *address, int *rail);
socklen_t sr_cm_address_length(const struct sockaddr *address);
in_port_t *sr_cm_port(struct sockaddr *address);
/* Ties the identifier to the device of a rail. */
int sr_cm_take_rail(struct sr_cm_id *id, int rail);
bool sr_cm_rail_is_up(unsigned rail, unsigned slot);
/* Do letters between this process and the one of `slot` get through? */
bool sr_cm_rail_carries(unsigned rail, unsigned slot);
/* The device that identifiers of this rail share, and its protection domain; NULL with errno. */
struct ibv_context *sr_cm_device(int rail, struct ibv_pd **pd);
int sr_cm_listen(struct sr_cm_id *id, int backlog);
/* Connects to the process that listens there. Returns the socket, which the caller owns, or -1 with errno. */
int sr_cm_call(enum rdma_port_space ps, in_port_t port, unsigned rail);

/* ---- sr_cm_event.c ------------------------------------------------------------------------------ */
/* Locks: the channel's mutex is held by the caller of these. */
void sr_cm_event_add(struct sr_cm_id *id, enum rdma_cm_event_type type, int status, struct sr_cm_id *listener);
void sr_cm_watch(struct sr_cm_id *id);
void sr_cm_unwatch(struct sr_cm_id *id);
void sr_cm_watch_device(struct sr_cm_id *id);
/* Makes the channel wake up every 10 ms, or stops that. */
void sr_cm_tick(struct sr_cm_channel *channel, bool on);
void sr_cm_list_add(struct sr_cm_id *id);
void sr_cm_list_remove(struct sr_cm_id *id);
/* Drops the events of an identifier that ends. */
void sr_cm_purge(struct sr_cm_id *id);
/* Moves the identifier and its events to another channel. Locks: takes those of both channels. */
void sr_cm_migrate(struct sr_cm_id *id, struct sr_cm_channel *to);

/* ---- sr_cm.c ------------------------------------------------------------------------------------ */
struct sr_cm_id *sr_cm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps);
void sr_cm_id_free(struct sr_cm_id *id);
/* The identifier leaves its listener's list. Locks: the channel's mutex is held. */
void sr_cm_incoming_remove(struct sr_cm_id *id);
int sr_cm_send(struct sr_cm_id *id, enum sr_cm_kind kind, const struct rdma_conn_param *param);
/* Locks: the channel's mutex is held by the caller of these. */
void sr_cm_end(struct sr_cm_id *id, enum rdma_cm_event_type type, int status);
/* Asks the network until it answers or the time (ms) is over. Adds the event `asked`, or the error event that belongs to it. */
void sr_cm_resolve(struct sr_cm_id *id, enum rdma_cm_event_type asked, int timeout);
/* The identifier's socket is readable. */
void sr_cm_readable(struct sr_cm_id *id);
/* 10 ms have passed. Returns whether the identifier needs the next tick too. May free the identifier. */
bool sr_cm_on_tick(struct sr_cm_id *id);

/* ---- sr_cm_qp.c --------------------------------------------------------------------------------- */
int sr_cm_qp_to(struct sr_cm_id *id, enum ibv_qp_state state);
/* Fills in the address of the peer that sent the last letter. */
void sr_cm_address_peer(const struct sr_cm_id *id, struct ibv_ah_attr *attr);

/* ---- sr_cm_sync.c ------------------------------------------------------------------------------- */
/* Turns 0 or an errno value into what the public calls return: 0, or -1 with errno. */
int sr_cm_result(int rc);
/* Like sr_cm_result. If the caller gave no channel for the identifier, it waits first for the event that the call leads to. Locks: none
 * held. */
int sr_cm_finish(struct sr_cm_id *id, int rc);
/* Gives the identifier a channel of its own; false on failure. A request to a listener whose caller gave no channel needs one too. */
bool sr_cm_make_sync(struct sr_cm_id *id);

#endif /* SR_CM_H */
