/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Queue pairs, eager rings and shared receive queues of the BTL. The structs alone. DESIGN.txt 15.4 to 15.6.
 */
#ifndef BTL_OPENIB_QUEUE_PAIR_H
#define BTL_OPENIB_QUEUE_PAIR_H

#include "bfo_config.h"

#include "formats/btl_openib_credits.h"
#include "formats/btl_openib_queues.h"
#include "tables/btl_openib_drain_fsm.h"
#include "types/btl_openib_work.h"

#include <pthread.h>

/* The marker of a fence. Written by btl_openib_marker.[ch] alone; context: progress. */
typedef enum {
    OFO_MARKER_NONE,    /* not posted yet */
    OFO_MARKER_OUT,     /* posted; or refused for an unclear reason, and then it stays missing until the fence's time limit */
    OFO_MARKER_REFUSED, /* the adapter takes no posts in the error state: empty completion queues take the marker's place */
    OFO_MARKER_BACK     /* all work posted before it has come back */
} ofo_marker_state_t;

/* ---- queue pairs -------------------------------------------------------------------------------- */

typedef struct {
    struct ibv_qp *qp; /* NULL: none yet, or destroyed */
    uint32_t number;   /* with a shared queue: its key in module->qpmap; 0: none */
    uint32_t psn;      /* of our first packet */
    uint32_t inline_max;
    bool shared;       /* receives come from a shared queue */
    bool is_failed;    /* its send queue has had an error completion */
    bool is_fatal;     /* QP_FATAL was reported; atomic, written by service */
    bool is_returning; /* `returns` is in flight */
    ofo_marker_state_t marker_state;
    bool last_wqe_seen;      /* with a shared queue: LAST_WQE_REACHED came, or did not come in time; atomic, set by service */
    int32_t sq_free;         /* free slots for messages and RDMA; lock: ep->lock */
    int32_t sq_slots;        /* all slots for messages and RDMA */
    ofo_credits_t credits;   /* lock: ep->lock */
    ofo_recv_chain_t again;  /* context: progress */
    int32_t recv_posted;     /* own receive buffers posted; context: progress */
    uint16_t n_send, n_recv; /* completed SENDs, received messages; context: progress */
    ofo_work_t returns, prove, marker;
    /* messages that asked for no completion and are not yet known to have arrived, in the order of their posts */
    ofo_frag_t *silent, *silent_last; /* lock of the four: ep->lock */
    int32_t silent_run;               /* messages posted since the last one that asked for a completion */
    uint32_t place;                   /* that of the last message posted */
    struct rdma_cm_id *cm_id;         /* rdmacm: its connection, or the attempt; context: service */
    bool cm_passive, cm_answered, cm_done;
    ofo_data_hdr_t *returns_hdr; /* registered with the receive buffers */
} ofo_qp_t;

#define OFO_RING_SLOTS_MAX 4096

/* The eager ring that the peer writes into. */
typedef struct {
    uint8_t *memory; /* made by service; NULL: none */
    struct ibv_mr *mr;
    uint32_t slots, head;
    uint8_t turn;  /* of the next message */
    bool is_open;  /* polled; context: progress */
    uint32_t owed; /* slots consumed and not yet returned; lock: ep->lock */
} ofo_ring_in_t;

/* The peer's ring that we write into; lock: ep->lock. */
typedef struct {
    uint64_t address;
    uint32_t rkey;
    uint32_t next;
    int32_t slots, free; /* 0 slots: none */
    uint8_t turn;
    bool behind_put;         /* a put completed: messages go as sends until one that was posted after the put has completed */
    const ofo_work_t *proof; /* the first of these sends; NULL: not posted yet */
} ofo_ring_out_t;

/* The queue pairs of one generation of one rail. Built by service, handed to progress by OFO_MAIL_UP. */
struct ofo_qpset {
    ofo_module_t *module;
    ofo_endpoint_t *ep; /* not valid after ofo_peers_free() */
    uint16_t gen;
    uint32_t downs; /* module->downs when the set was made */
    unsigned nqp;
    unsigned nqp_owing; /* only queue pairs below this one have receives of their own, and owe credits for them */
    const ofo_queues_t *queues;
    struct ibv_cq *cq;
    uint8_t *memory; /* credit messages, receive buffers and `recvs` */
    struct ibv_mr *mr;
    ofo_recv_t *recvs;
    int32_t proving;      /* proofs not completed; atomic */
    ofo_work_t alive;     /* keepalive, on the first queue pair. Context of the three: progress */
    bool is_asking;       /* `alive` is in flight */
    uint32_t alive_place; /* messages below this place were posted before it */
    uint64_t seen;        /* n_ok + n_received at the last turn of the keepalive */
    ofo_drain_t drain;    /* changed by ofo_drain_raise() alone, under ep->lock */
    bool is_silent;       /* the inquiry said so; context: progress */
    bool told_first_recv;
    uint8_t heard;           /* queue pairs that have received something, one bit for each; for transport->acceptor_listens; lock: poll_lock */
    uint64_t fence_until;    /* ms; when the fence is given up. Context of the two: progress */
    ofo_qpset_t *fence_next; /* module->fencing */
    uint64_t n_ok;           /* completed SENDs and eager WRITEs */
    uint64_t n_received;
    uint64_t n_rdma;                /* completed parts of puts and gets */
    uint16_t n_eager, n_eager_recv; /* completed eager WRITEs, slots consumed */
    bool ring_asked;
    ofo_ring_in_t ring_in;
    ofo_ring_out_t ring_out;
    uint64_t ended_at;   /* ms; when its fence was over. Set before FENCE_DONE goes to service */
    uint64_t destroy_at; /* ms; end of the time-wait */
    ofo_qpset_t *next;   /* module's graveyard */
    ofo_qp_t qp[];
};

/* ---- shared receive queues ---------------------------------------------------------------------- */

#define OFO_SRQ_BATCH 16
#define OFO_LAST_WQE_MS 1000       /* longest wait for LAST_WQE_REACHED, which may get lost */
#define OFO_LAST_WQE_UNSEEN_MS 100 /* wait on a device that was never seen to raise it, because not every driver does */

typedef struct ofo_chunk ofo_chunk_t;

/* One shared receive queue of a module. */
typedef struct {
    struct ibv_srq *srq;
    ofo_module_t *module;
    uint8_t index;
    uint32_t size;          /* bytes of a buffer */
    uint32_t most;          /* buffers at most */
    uint32_t slack;         /* if all `most` buffers exist, so many may be missing before buffers are posted again */
    uint32_t limit;         /* the limit event comes when fewer are left */
    pthread_mutex_t lock;   /* of the next three: service threads */
    uint32_t buffers;       /* buffers made and not lost; atomic, read by progress */
    ofo_recv_chain_t spare; /* buffers that the queue had no room for */
    ofo_chunk_t *chunks;
    ofo_recv_chain_t again; /* context: progress */
} ofo_srq_t;

#endif /* BTL_OPENIB_QUEUE_PAIR_H */
