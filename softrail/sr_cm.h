/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Connections of librdmacm between processes of the fabric. Each identifier has one local socket to its peer; an
 * event channel is an epoll descriptor over the sockets of its identifiers, so no thread is needed, and the kernel
 * tells of a peer that died. DESIGN.txt 16.
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

/* One letter between two identifiers: one packet of the socket. */
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
    bool is_read, by_others;           /* mutex; events were asked for; by more threads than reader */
    pthread_t reader;                  /* mutex; if is_read: who asked first */
    bool closed;                       /* mutex */
    struct sr_cm_channel *next_closed; /* of those that are kept because a reader may still be inside */
};

struct sr_cm_id {
    struct rdma_cm_id rdma;
    enum sr_cm_state state;        /* channel's mutex, as all below */
    struct sr_cm_id *next, **link; /* of the channel's list */
    int fd;                        /* socket; -1: none */
    int rail;                      /* -1: not bound to any */
    bool sync;                     /* the channel is the identifier's own: calls wait by themselves */
    bool passive;                  /* a listener made it */
    bool held;                     /* a letter waits in the socket for the rail to carry it */
    bool removed;                  /* DEVICE_REMOVAL was told */
    unsigned knocks;               /* KNOCKING: how often nobody was there */
    uint64_t deadline;             /* ns; 0: no answer is awaited */
    uint64_t lost_since;           /* ns; an answer is awaited, and the rail has not carried anything since; 0: it does */
    enum rdma_cm_event_type asked; /* RESOLVING: ADDR_RESOLVED or ROUTE_RESOLVED */
    char name[32];                 /* of the listening socket; empty: none */
    struct sr_cm_id *listener;     /* INCOMING only */
    struct sr_cm_id *incoming;     /* of a listener: the first that has not asked yet; of such: the next */
    struct sr_cm_letter peer;      /* the last request or reply that came */
    struct rdma_conn_param mine;
    struct ibv_qp_init_attr *accept_with; /* rdma_create_ep of a listener: for the queue pairs of requests */
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
/* The rail of a local address, or -1 for wildcards and loopback; EADDRNOTAVAIL if it is not of this machine. */
int sr_cm_rail_of(const struct sockaddr *address, int *rail);
socklen_t sr_cm_address_length(const struct sockaddr *address);
in_port_t *sr_cm_port(struct sockaddr *address);
/* Ties the identifier to the device of a rail. */
int sr_cm_take_rail(struct sr_cm_id *id, int rail);
bool sr_cm_rail_is_up(unsigned rail, unsigned slot);
/* Do letters between this process and another get through? */
bool sr_cm_rail_carries(unsigned rail, unsigned slot);
/* The device that identifiers of this rail share, and its protection domain; NULL with errno. */
struct ibv_context *sr_cm_device(int rail, struct ibv_pd **pd);
int sr_cm_listen(struct sr_cm_id *id, int backlog);
/* Connects to whoever listens there. Returns the socket, or -1 with errno. */
int sr_cm_call(enum rdma_port_space ps, in_port_t port, unsigned rail);

/* ---- sr_cm_event.c ------------------------------------------------------------------------------ */
/* Locks: the channel's mutex is held by the caller of these. */
void sr_cm_event_add(struct sr_cm_id *id, enum rdma_cm_event_type type, int status, struct sr_cm_id *listener);
void sr_cm_watch(struct sr_cm_id *id);
void sr_cm_unwatch(struct sr_cm_id *id);
void sr_cm_watch_device(struct sr_cm_id *id);
/* The channel wakes up every 10 ms, from now on or no longer. */
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
/* Asks the network until it answers, or the time is over (ms): `asked` is told, or the error that belongs to it. */
void sr_cm_resolve(struct sr_cm_id *id, enum rdma_cm_event_type asked, int timeout);
/* The identifier's socket has something to say. */
void sr_cm_readable(struct sr_cm_id *id);
/* Time has passed. Returns whether the identifier wants to hear of that again. May free it. */
bool sr_cm_on_tick(struct sr_cm_id *id);

/* ---- sr_cm_qp.c --------------------------------------------------------------------------------- */
int sr_cm_qp_to(struct sr_cm_id *id, enum ibv_qp_state state);
/* Address of the peer of the last letter. */
void sr_cm_address_peer(const struct sr_cm_id *id, struct ibv_ah_attr *attr);

/* ---- sr_cm_sync.c ------------------------------------------------------------------------------- */
/* What the public calls return: 0 or errno value in, 0 or -1 out. */
int sr_cm_result(int rc);
/* As sr_cm_result; an identifier without a channel of the caller waits for what the call leads to. Locks: none held. */
int sr_cm_finish(struct sr_cm_id *id, int rc);
/* A request to a listener without a channel of the caller gets one of its own, too. */
bool sr_cm_make_sync(struct sr_cm_id *id);

#endif /* SR_CM_H */
