/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The objects of the fabric, and what its files share: fabric_state (objects, addresses), fabric_wire (packets), fabric_cq (completions,
 * events), fabric_recv (memory, receives), fabric_qp (posts, states, flush), fabric_request and fabric_respond (the two engines of a queue
 * pair), fabric_verbs (the other verbs), fabric (faults, figures). One thread runs everything, so there are no locks. Structures of
 * destroyed objects stay until the next fabric_begin(), so that a use after the destruction is seen. DESIGN.txt section 18.
 */
#ifndef FABRIC_INTERNAL_H
#define FABRIC_INTERNAL_H

#include "fabric.h"
#include "world_calls.h"

#include <infiniband/verbs.h>
#include <stddef.h>

enum {
    FABRIC_MAX_SGE = 4,
    FABRIC_MAX_INLINE = 256,
    FABRIC_MAX_WR = 16384,
    FABRIC_MAX_CQE = 65535,
    FABRIC_MAX_READS = 16,
    FABRIC_MAX_PACKETS = 8, /* of one message; longer messages have larger packets */
    FABRIC_GRH = 40
};

/* ---- objects ------------------------------------------------------------------------------------------ */

typedef enum { FABRIC_CONTEXT, FABRIC_PD, FABRIC_MR, FABRIC_CHANNEL, FABRIC_CQ, FABRIC_SRQ, FABRIC_QP, FABRIC_AH, FABRIC_KINDS } fabric_kind_t;

typedef struct fabric_context fabric_context_t;
typedef struct fabric_packet fabric_packet_t;

/* Each object begins with it. Lists begin with the newest. */
typedef struct fabric_object {
    struct fabric_object *next, *previous;
    fabric_context_t *context;
    uint32_t number; /* never used twice; also the key of a registration and the number of a queue pair */
    unsigned users;  /* objects that must go before this one */
    fabric_kind_t kind;
    bool is_gone;
} fabric_object_t;

/* The object of the structure that the program has. */
#define FABRIC_OF(type, pointer) ((type *) (void *) ((char *) (pointer) -offsetof(type, ibv)))

struct fabric_context {
    fabric_object_t object;
    struct ibv_context ibv;
    unsigned rank, node, rail;
    fabric_object_t *objects;       /* of this context, but for itself */
    struct ibv_async_event *events; /* not read yet */
    unsigned event_count, event_room;
    uint64_t event_at; /* when the latest event comes; later ones do not overtake it */
};

typedef struct {
    fabric_object_t object;
    struct ibv_pd ibv;
} fabric_pd_t;

typedef struct {
    fabric_object_t object;
    struct ibv_mr ibv;
    unsigned access;
} fabric_mr_t;

typedef struct {
    fabric_object_t object;
    struct ibv_ah ibv;
    int node; /* -1: nobody has the address */
    bool is_global;
} fabric_ah_t;

typedef struct {
    fabric_object_t object;
    struct ibv_comp_channel ibv;
    struct fabric_cq **events;
    unsigned event_count, event_room;
} fabric_channel_t;

typedef struct {
    uint64_t wr_id;
    uint32_t sge_count;
    struct ibv_sge sge[FABRIC_MAX_SGE];
} fabric_recv_t;

/* A queue of receives. All counts only grow; a place is free again when its completion was polled. */
typedef struct {
    fabric_recv_t *ring;
    uint32_t size, posted, taken, freed;
} fabric_rq_t;

typedef struct {
    struct ibv_wc wc;
    struct fabric_qp *qp;
    fabric_rq_t *rq; /* of a receive; NULL for a send */
    uint32_t epoch;  /* of the queue pair */
    uint32_t place;  /* of a send: its slots up to here are free when this is polled */
} fabric_cqe_t;

typedef struct fabric_cq {
    fabric_object_t object;
    struct ibv_cq ibv;
    fabric_cqe_t *ring;
    uint32_t size, first, count;
    bool is_armed;
    bool is_dead;     /* it takes no completion any more; those that it has can be polled */
    bool fails_users; /* the step is asked for */
} fabric_cq_t;

typedef struct {
    fabric_object_t object;
    struct ibv_srq ibv;
    fabric_rq_t rq;
    uint32_t max_sge;
    uint32_t limit; /* 0: not armed */
} fabric_srq_t;

typedef struct {
    uint64_t wr_id;
    uint8_t *inline_data; /* NULL if it is in memory */
    uint64_t remote_addr;
    fabric_ah_t *ah;
    uint32_t rkey, remote_qpn, remote_qkey;
    uint32_t sge_count, length;
    uint32_t psn, packets, packet; /* number of the first packet, how many, and how many bytes each has */
    uint32_t landed;               /* of a READ: answers that are in memory */
    enum ibv_wr_opcode opcode;
    bool is_signaled;
    uint8_t bad; /* enum ibv_wc_status: it fails when all before it are done */
    struct ibv_sge sge[FABRIC_MAX_SGE];
} fabric_send_t;

typedef struct fabric_qp {
    fabric_object_t object;
    struct ibv_qp ibv;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    fabric_cq_t *send_cq, *recv_cq;
    fabric_srq_t *srq;
    uint32_t epoch;        /* counts resets */
    int peer_node;         /* -1: nobody has the address */
    uint64_t last_arrival; /* of its latest packet: later ones do not overtake it */
    bool is_flushing;      /* the next step of a slow flush is asked for */
    bool last_wqe_raised;
    void (*hears)(struct fabric_qp *qp, const struct fabric_packet *packet); /* takes each message instead of a receive; mostly NULL */
    bool forgets;                                                            /* its adapter died, but still acknowledges WRITEs until forgets_until */
    uint64_t forgets_until;

    /* The send queue. freed <= done <= next <= posted. */
    fabric_send_t *sends;
    uint32_t size, room; /* places that it may have, and has */
    uint32_t posted, next, done, freed;
    uint32_t next_packet; /* of the message `next` */
    uint32_t post_psn;    /* of the next message that is posted */
    uint32_t reads_out;
    unsigned retries_left, rnr_left;
    bool has_slot;  /* it waits for its turn on the wire */
    bool went_back; /* because of a missing answer: later answers, which show the same, are not counted again */
    bool is_held;   /* until hold_until: the receiver was not ready */
    uint64_t hold_until;
    uint64_t deadline; /* 0: nothing to wait for */
    bool timer_runs;

    /* The responder. */
    fabric_rq_t rq; /* without a shared queue */
    uint32_t expected_psn;
    bool is_receiving; /* the message `current` has begun to arrive */
    bool nak_sent;
    fabric_recv_t current;
} fabric_qp_t;

/* ---- state -------------------------------------------------------------------------------------------- */

typedef struct {
    bool is_up, was_down, is_dead, is_silent_out, is_silent_in;
    unsigned loss;
    uint64_t free_at;    /* when the wire has sent all that is queued */
    uint64_t went_down;  /* the last time */
    uint64_t held_until; /* a WRITE that leaves earlier arrives later */
    uint64_t bytes, lost;
} fabric_port_t;

typedef struct {
    fabric_habits_t habits;
    fabric_port_t port[WORLD_MAX_PROCESSES][WORLD_MAX_RAILS];
    fabric_object_t *contexts, *graves;
    fabric_object_t **numbered; /* by number */
    uint32_t next_number, room;
    fabric_packet_t *in_flight;
    uint64_t grave_bytes, packet_bytes;
    fabric_posts_t posts[WORLD_MAX_PROCESSES];
    bool is_mute[WORLD_MAX_PROCESSES]; /* by node */
} fabric_state_t;

extern fabric_state_t fabric;

/* Does this call of a verb fail? Then errno is set; it is what the verb returns, or the reason for NULL. */
bool fabric_fails(world_call_t call, const fabric_context_t *context);
/* Makes an object of so many bytes; NULL with errno if the call fails. */
void *fabric_object_new(fabric_kind_t kind, fabric_context_t *context, size_t size, world_call_t call);
/* The object is destroyed. */
void fabric_object_end(fabric_object_t *object);
/* Ends the run if the object is destroyed, or is that of another process. */
void fabric_object_check(const fabric_object_t *object, const char *verb);
/* The living object of this number, or NULL. */
fabric_object_t *fabric_object_find(uint32_t number, fabric_kind_t kind);
/* Ends the context and all that is left of its objects, as the kernel does when its file is closed. */
void fabric_context_end(fabric_context_t *context);
/* May the registration be used for this access to these bytes? */
bool fabric_covers(const fabric_context_t *context, const struct ibv_pd *pd, uint32_t key, uint64_t address, uint64_t length, unsigned access);
/* The node that has the address on the rail, or -1. */
int fabric_node_of(unsigned rail, const struct ibv_ah_attr *attr);
void fabric_gid(unsigned node, unsigned rail, union ibv_gid *gid);
uint16_t fabric_lid(unsigned node);
static inline fabric_port_t *fabric_port_of(const fabric_context_t *context)
{
    return &fabric.port[context->node][context->rail];
}

/* ---- packets ------------------------------------------------------------------------------------------ */

typedef enum {
    PACKET_SEND,
    PACKET_WRITE,
    PACKET_READ,
    PACKET_ANSWER,
    PACKET_ACK,
    PACKET_GAP,
    PACKET_NOT_READY,
    PACKET_ERROR,
    PACKET_DATAGRAM
} fabric_packet_kind_t;

struct fabric_packet {
    fabric_packet_t *next, *previous;
    fabric_packet_kind_t kind;
    unsigned rail, from, to; /* nodes */
    uint32_t from_qpn, to_qpn, psn;
    uint32_t index, packets, packet; /* place in its message, packets of the message, bytes of each */
    uint32_t total;                  /* bytes of the message */
    uint64_t remote_addr;
    uint32_t rkey, qkey;
    uint8_t status; /* enum ibv_wc_status of PACKET_ERROR; rnr timer of PACKET_NOT_READY */
    bool is_global;
    bool is_ghost;        /* a dead adapter sends it */
    uint64_t made, leave; /* times */
    uint32_t length;
    uint8_t data[];
};

fabric_packet_t *fabric_packet_new(const fabric_qp_t *from, fabric_packet_kind_t kind, uint32_t to_qpn, int to_node, uint32_t length);
/* Reserves the wire of the port for so many bytes; returns when they leave. */
uint64_t fabric_wire_slot(fabric_port_t *port, uint32_t length);
/* Sends the packet, which leaves at the time `leave`; it belongs to the wire then. */
void fabric_wire_send(fabric_qp_t *from, fabric_packet_t *packet, uint64_t leave);
/* The receiving queue pair gets the packet (fabric_respond.c, fabric_request.c). */
void fabric_packet_arrives(fabric_packet_t *packet);
void fabric_answer_arrives(fabric_qp_t *qp, const fabric_packet_t *packet);
void fabric_wire_forget(void);

static inline int32_t fabric_psn_ahead(uint32_t a, uint32_t b)
{
    return (int32_t) ((a - b) << 8) >> 8;
}

/* ---- completions and events --------------------------------------------------------------------------- */

void fabric_cq_push(fabric_cq_t *cq, const fabric_cqe_t *cqe);
/* The queue fails for good, with IBV_EVENT_CQ_ERR, and so do the queue pairs that use it. */
void fabric_cq_fail(fabric_cq_t *cq);
/* Takes completions of the queue pair away, as adapters do when it is reset or destroyed. */
void fabric_cq_clean(fabric_cq_t *cq, const fabric_qp_t *qp);
void fabric_complete_send(fabric_qp_t *qp, uint32_t place, enum ibv_wc_status status);
void fabric_complete_recv(fabric_qp_t *qp, const fabric_recv_t *recv, enum ibv_wc_status status, uint32_t length, const fabric_packet_t *packet);
/* Raises the event after up to event_delay. `object` is NULL for those of ports and devices. */
void fabric_raise(fabric_context_t *context, enum ibv_event_type type, fabric_object_t *object);
/* Takes the events of a destroyed object back. */
void fabric_unraise(const fabric_object_t *object);
int fabric_poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wc);
int fabric_req_notify_cq(struct ibv_cq *ibv, int solicited_only);

/* ---- queue pairs -------------------------------------------------------------------------------------- */

static inline fabric_send_t *fabric_send_at(const fabric_qp_t *qp, uint32_t place)
{
    return &qp->sends[place % qp->room];
}
/* A zeroed array; never NULL. */
void *fabric_ring_new(uint32_t count, size_t size);
int fabric_rq_post(fabric_rq_t *rq, uint32_t max_sge, const struct ibv_recv_wr *wr);
/* Takes the next receive for a message. False if there is none. */
bool fabric_recv_take(fabric_qp_t *qp, fabric_recv_t *recv);
/* Puts the queue pair into the error state and flushes it. `event` is raised with it if not 0. */
void fabric_qp_fail(fabric_qp_t *qp, enum ibv_event_type event);
void fabric_qp_end(fabric_qp_t *qp);
/* Is the queue pair one that sends? */
bool fabric_qp_is_ready(const fabric_qp_t *qp);
int fabric_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int fabric_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fabric_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* Copies between bytes and the memory of a list. False if a key does not allow it. */
bool fabric_gather(const fabric_qp_t *qp, const fabric_send_t *send, uint32_t offset, uint8_t *to, uint32_t length);
bool fabric_scatter(const fabric_qp_t *qp, const struct ibv_sge *sge, uint32_t count, uint32_t offset, const uint8_t *from, uint32_t length);

/* ---- requester ---------------------------------------------------------------------------------------- */

/* There may be something to send. */
void fabric_request_go(fabric_qp_t *qp);

#endif /* FABRIC_INTERNAL_H */
