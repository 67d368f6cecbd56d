/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The verbs objects of this process. Each begins with the structure of libibverbs that the program sees; the part that
 * peers need is in the arena (sr_shm.h). Lock order: pending list, sq_lock, rq lock, locks between processes (queue
 * pair, receive queue, CQ), cq lock. DESIGN.txt 16.
 */
#ifndef SR_OBJECTS_H
#define SR_OBJECTS_H

#include <infiniband/verbs.h>
#include <sys/uio.h>

#include "sr_process.h"

#define SR_MAX_SGE 16
#define SR_MAX_WR 16384
#define SR_MAX_CQE 65535
#define SR_MAX_INLINE 512
#define SR_MAX_MSG (UINT32_C(1) << 30)
#define SR_MTU 4096u
#define SR_GRH_BYTES 40u

struct sr_context {
    struct ibv_context ibv;
    unsigned rail;
    unsigned entry; /* in sr_proc.contexts */
    uint32_t fifo;
};

struct sr_pd {
    struct ibv_pd ibv;
    uint32_t id;
    _Atomic int uses;
};

struct sr_channel {
    struct ibv_comp_channel ibv;
    uint32_t fifo;
};

/* Counts the events of one object that were handed out and acknowledged. Destroying the object waits until all are acknowledged. */
struct sr_acks {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    uint32_t handed_out, acknowledged;
};

/* A send completion: only this process adds and takes it. */
struct sr_local_wc {
    uint64_t wr_id;
    uint32_t qpn;
    uint32_t byte_len;
    uint32_t sq_position; /* the send queue is free up to here once this is polled */
    uint32_t behind;      /* for an error: it is polled after that many entries of the ring, because they are older */
    uint16_t epoch;
    uint8_t status;
    uint8_t opcode;
};

struct sr_cq {
    struct ibv_cq ibv;
    struct sr_cq_shm *shm;
    uint64_t offset;
    struct sr_cqe *ring;
    uint32_t mask;
    uint32_t consumed; /* lock */
    uint32_t kick_seen;
    pthread_mutex_t lock;
    struct sr_local_wc *local; /* lock; ring of local_room entries */
    uint32_t local_room, local_head;
    _Atomic uint32_t local_tail;
    bool local_first; /* lock; which ring is polled first; alternates */
    bool is_dead;     /* atomic; after CQ_ERR: no completion comes out any more */
    uint32_t idle;    /* lock; polls in a row that found nothing */
    uint32_t id;
    _Atomic int uses;
    struct sr_acks comp_acks, async_acks;
};

/* A receive queue, own or shared. */
struct sr_rq {
    struct sr_rq_shm *shm;
    uint64_t offset;
    char *wqes;
    uint32_t *order;     /* SRQ only */
    uint32_t *free_list; /* SRQ only; lock */
    uint32_t free_count;
    uint32_t mask, stride, max_wr, max_sge;
    uint32_t polled; /* own queue: entries whose completion was polled; atomic enough under cq lock */
    pthread_mutex_t lock;
};

struct sr_srq {
    struct ibv_srq ibv;
    struct sr_rq rq;
    uint32_t id;
    _Atomic int uses;
    struct sr_acks acks;
};

/* Where a message goes. */
struct sr_address {
    uint16_t dlid;
    uint8_t sl;
    uint8_t is_global;
    uint8_t src_path_bits;
    uint8_t valid;
    unsigned slot; /* of the process that has this address */
};

struct sr_ah {
    struct ibv_ah ibv;
    struct sr_address address;
};

struct sr_mr {
    struct ibv_mr ibv;
    uint32_t index;
};

/* A send work request that has not ended. */
struct sr_wqe {
    uint64_t wr_id;
    uint64_t remote_addr;
    uint64_t compare_add, swap;
    uint64_t ready;      /* not before this time, ns; 0 = at once */
    uint64_t lost_since; /* the retry clock, ns; 0 = not running */
    uint64_t rnr_since;
    const struct ibv_sge *sge;
    void *inline_copy;   /* of a waiting request */
    struct sr_wqe *next; /* waiting requests of a queue pair */
    uint32_t num_sge;
    uint32_t length;
    uint32_t imm;
    uint32_t rkey;
    uint32_t remote_qpn, remote_qkey;
    uint32_t position;     /* in the send queue */
    uint32_t flags;        /* IBV_SEND_* */
    uint8_t opcode;        /* enum ibv_wr_opcode */
    uint8_t fate;          /* enum sr_fate */
    uint8_t forced_status; /* ERROR */
    uint8_t delivered;     /* UNACKED, SILENT: the peer has it already */
    uint8_t breaks;        /* enum sr_breaks; DEFAULT after that was done */
    uint32_t corrupt_at;   /* CORRUPT: payload offset */
    uint64_t fate_time;    /* ns; what it means depends on the fate */
    struct sr_address address;
    struct iovec iov[SR_MAX_SGE]; /* resolved local memory, filled by the requester */
};

struct sr_qp {
    struct ibv_qp ibv;
    struct sr_qp_shm *shm;
    uint64_t offset;
    unsigned rail;
    uint32_t id;
    struct sr_pd *pd;
    struct sr_cq *send_cq, *recv_cq;
    struct sr_srq *srq;
    struct sr_rq own_rq;
    struct sr_rq *rq; /* own_rq or the SRQ's */
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct sr_address address;
    uint64_t retry_ns; /* how long a message may stay unanswered; 0 = without limit */
    /* send side: sq_lock */
    pthread_mutex_t sq_lock;
    uint32_t sq_posted;
    _Atomic uint32_t sq_retired;
    struct sr_wqe *wait_first, *wait_last;
    struct sr_wqe *ghosts;         /* copies that arrive after their request has failed */
    void (*run)(struct sr_qp *qp); /* tries the requests that wait; never changes */
    bool on_pending_list;          /* pending list mutex */
    struct sr_qp *pending_next, *pending_prev;
    struct sr_peer *peer; /* of the connection, with a reference */
    struct sr_qp_shm *remote;
    /* error state */
    bool in_error;       /* sq_lock; this process has flushed the queue pair and flushes later posts */
    bool flush_receives; /* rq lock; receives wait for room in the CQ */
    bool last_wqe_sent;
    struct sr_acks acks;
    struct sr_qp *next; /* all queue pairs; qp table mutex */
};

#define sr_context(p) ((struct sr_context *) (p))
#define sr_pd(p) ((struct sr_pd *) (p))
#define sr_cq(p) ((struct sr_cq *) (p))
#define sr_qp(p) ((struct sr_qp *) (p))
#define sr_srq(p) ((struct sr_srq *) (p))
#define sr_ah(p) ((struct sr_ah *) (p))
#define sr_mr(p) ((struct sr_mr *) (p))
#define sr_channel(p) ((struct sr_channel *) (p))

#endif /* SR_OBJECTS_H */
