/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * What the rooms of the library offer each other, by defining file. Unless said otherwise functions return 0 or
 * an errno value and may be called from any thread. DESIGN.txt 16.
 */
#ifndef SR_ROOMS_H
#define SR_ROOMS_H

#include "sr_objects.h"

/* ---- after fork: the child forgets its parent's objects, each room its own ------------------------ */
void sr_mr_reset(void);
void sr_qp_reset(void);
void sr_pending_reset(void);
void sr_event_reset(void);

/* ---- sr_device.c -------------------------------------------------------------------------------- */
/* Address of (rail, slot), and back; link layer decides between LID and GID. */
uint16_t sr_lid(unsigned slot); /* before any LID change */
uint16_t sr_lid_shift(unsigned rail);
uint32_t sr_host_address(unsigned rail, unsigned slot); /* IPv4, host order: 127.42.rail.(slot + 1) until a GID change */
void sr_gid(unsigned rail, unsigned slot, union ibv_gid *gid);
unsigned sr_gid_count(void); /* the last one is the port's own */
bool sr_habit(unsigned flag); /* SR_FABRIC_* */
int sr_address_resolve(unsigned rail, const struct ibv_ah_attr *attr, struct sr_address *address);
/* Does the context accept further work? EIO when the device is gone. */
int sr_device_check(const struct ibv_context *context);
struct ibv_context *sr_device_open(struct ibv_device *device);
int sr_device_close(struct ibv_context *context);
struct ibv_device **sr_device_list(int *count);
void sr_device_list_free(struct ibv_device **list);
int sr_device_query(struct ibv_context *context, struct ibv_device_attr *attr);
int sr_port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);

/* ---- sr_event.c --------------------------------------------------------------------------------- */
/* Handles: small numbers for objects, so that no pointer ever travels through shared memory. */
uint32_t sr_handle_add(void *object);
void *sr_handle_get(uint32_t id);
void sr_handle_remove(uint32_t id);
/* A FIFO of this process. Returns its number and descriptor, or 0 (errno set). */
uint32_t sr_fifo_open(int *fd);
void sr_fifo_close(uint32_t number, int fd);
/* Write an event to a peer's FIFO, over a cached descriptor. */
void sr_event_send(struct sr_peer *peer, uint32_t fifo, uint32_t type, uint32_t id);
void sr_acks_init(struct sr_acks *acks);
void sr_acks_wait(struct sr_acks *acks);
int sr_event_get(struct ibv_context *context, struct ibv_async_event *event);
void sr_event_ack(struct ibv_async_event *event);
int sr_channel_get(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void sr_channel_ack(struct ibv_cq *cq, unsigned count);
struct ibv_comp_channel *sr_channel_create(struct ibv_context *context);
int sr_channel_destroy(struct ibv_comp_channel *channel);

/* ---- sr_pd.c, sr_ah.c, sr_mr.c ------------------------------------------------------------------ */
struct ibv_pd *sr_pd_alloc(struct ibv_context *context);
int sr_pd_free(struct ibv_pd *pd);
struct ibv_ah *sr_ah_create(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int sr_ah_destroy(struct ibv_ah *ah);
int sr_ah_attr_from_wc(struct ibv_context *context, uint8_t port, const struct ibv_wc *wc, const struct ibv_grh *grh,
                       struct ibv_ah_attr *attr);
struct ibv_mr *sr_mr_reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access);
int sr_mr_dereg(struct ibv_mr *mr);
/* Address in the memory of `peer` (or here: sr.self) behind (key, addr, length), if it is registered in `pd`
 * with all of `access`. Returns false if not. */
bool sr_mr_resolve(struct sr_peer *peer, uint32_t pd, uint32_t key, uint64_t addr, uint64_t length, unsigned access,
                   uint64_t *where);

/* Is all of this memory registered (for writing)? */
bool sr_mr_covers(uint64_t addr, uint64_t length, bool write);

/* ---- sr_copy.c ---------------------------------------------------------------------------------- */
/* Copy between local memory and a peer's. Returns 0; ESRCH: the peer is gone; EFAULT: memory is gone (ask
 * sr_copy_is_local_fault whose); EINTR never. */
int sr_copy_to(struct sr_peer *peer, const struct iovec *local, unsigned locals, const struct iovec *remote,
               unsigned remotes);
int sr_copy_from(struct sr_peer *peer, const struct iovec *local, unsigned locals, const struct iovec *remote,
                 unsigned remotes);
bool sr_copy_is_local_fault(const struct iovec *local, unsigned locals);
bool sr_copy_is_mapped(const void *addr, size_t length);

/* ---- sr_service.c ------------------------------------------------------------------------------- */
/* Start to serve peers that cannot reach this process's memory. */
int sr_service_start(void);
/* Have the peer copy `length` bytes (at most SR_SERVICE_BYTES). Returns 0, ESRCH, EFAULT, or EPERM without service. */
int sr_service_ask(struct sr_peer *peer, void *local, uint64_t remote, size_t length, bool write);

/* ---- sr_cq.c ------------------------------------------------------------------------------------ */
struct ibv_cq *sr_cq_create(struct ibv_context *context, int entries, void *cq_context,
                            struct ibv_comp_channel *channel, int vector);
int sr_cq_destroy(struct ibv_cq *cq);
int sr_cq_resize(struct ibv_cq *cq, int entries);
int sr_cq_arm(struct ibv_cq *cq, int solicited_only);
/* Add a receive completion to a CQ of `peer`. False if it is full. Wakes whoever armed it. */
bool sr_cq_push(struct sr_peer *peer, uint64_t offset, const struct sr_cqe *cqe, bool solicited);
bool sr_cq_has_room(struct sr_peer *peer, uint64_t offset);
void sr_cq_wake(struct sr_peer *peer, struct sr_cq_shm *shm, bool solicited);

/* ---- sr_srq.c (receive queues, own and shared) -------------------------------------------------- */
int sr_rq_init(struct sr_rq *rq, uint32_t max_wr, uint32_t max_sge, uint32_t pd, bool shared);
void sr_rq_fini(struct sr_rq *rq);
int sr_rq_post(struct sr_rq *rq, struct ibv_recv_wr *wr);
static inline struct sr_wqe_shm *sr_rq_wqe(const struct sr_rq *rq, uint32_t index)
{
    return (struct sr_wqe_shm *) (rq->wqes + (size_t) (index & rq->mask) * rq->stride);
}
/* The completion of this entry was polled: it may be posted again. */
void sr_rq_release(struct sr_rq *rq, uint32_t index);
struct ibv_srq *sr_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int sr_srq_destroy(struct ibv_srq *srq);
int sr_srq_modify(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int sr_srq_query(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int sr_srq_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ---- sr_qp.c ------------------------------------------------------------------------------------ */
struct ibv_qp *sr_qp_create(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int sr_qp_destroy(struct ibv_qp *qp);
int sr_qp_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int sr_qp_query(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init);
int sr_qp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct sr_qp *sr_qp_find(uint32_t qpn);
/* Call fn for each queue pair of this process. */
void sr_qp_each(void (*fn)(struct sr_qp *qp, void *arg), void *arg);
/* Put the queue pair in error and flush it. Locks: sq_lock is held. */
void sr_qp_fail(struct sr_qp *qp);
/* Go on flushing receives that found no room. */
void sr_qp_flush_receives(struct sr_qp *qp);
/* Wait until no peer is in the middle of a transfer that it checked before now. */
void sr_qp_wait_transfers(void);

/* ---- sr_transition.c ---------------------------------------------------------------------------- */
/* Is (from -> to) legal for this type with exactly these attributes? Returns 0 or EINVAL. */
int sr_transition_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

/* ---- sr_requester.c ----------------------------------------------------------------------------- */
int sr_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* Try the waiting requests of a queue pair. Locks: sq_lock is held. */
void sr_requester_run(struct sr_qp *qp);
/* Drop the connection's cached remote end. Locks: sq_lock is held. */
void sr_requester_forget(struct sr_qp *qp);

/* ---- sr_injector.c ------------------------------------------------------------------------------ */
/* Is a fault plan in force? */
static inline bool sr_faults_planned(void)
{
    return 0 != atomic_load_explicit(&sr.fabric.shm->plan.count, memory_order_relaxed);
}
/* Decide what the plan does to this request; local memory is resolved. Returns 0, or ENOMEM for the post. */
int sr_faults_decide(struct sr_qp *qp, struct sr_wqe *wqe);
/* Does the plan refuse this call (SR_CALL_*)? One that it makes slow comes back late. Locks: none may be held. */
bool sr_faults_refuse(unsigned rail, uint32_t call);

/* ---- sr_responder.c ----------------------------------------------------------------------------- */
/* Answers below zero mean: not now, or nothing came back; above zero: the wc status the requester gets. */
enum { SR_ANSWER_OK = 0, SR_ANSWER_RNR = -1, SR_ANSWER_BUSY = -2, SR_ANSWER_LOST = -3 };
int sr_respond(struct sr_peer *peer, struct sr_qp_shm *remote, struct sr_qp *qp, struct sr_wqe *wqe);

/* The target's queue pair goes to the error state as if it broke by itself; only if the message would be for it. */
void sr_respond_break(struct sr_peer *peer, struct sr_qp_shm *remote, const struct sr_qp *qp, const struct sr_wqe *wqe);

/* ---- sr_completer.c ----------------------------------------------------------------------------- */
/* A send work request has ended. Locks: sq_lock is held. */
void sr_complete_send(struct sr_qp *qp, const struct sr_wqe *wqe, enum ibv_wc_status status);
int sr_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);

/* ---- sr_pending.c ------------------------------------------------------------------------------- */
extern _Atomic uint32_t sr_pending_count;
/* The queue pair has waiting requests. Locks: sq_lock is held. */
void sr_pending_add(struct sr_qp *qp);
void sr_pending_remove(struct sr_qp *qp);
/* Try everything that waits. Locks: none may be held. */
void sr_pending_progress(void);

/* ---- sr_opcode.c -------------------------------------------------------------------------------- */
enum { SR_OP_RECEIVE = 1, SR_OP_IMM = 2, SR_OP_WRITE = 4, SR_OP_READ = 8, SR_OP_ATOMIC = 16, SR_OP_SEND = 32 };
struct sr_opcode {
    const char *name;
    uint8_t types;          /* bit per enum ibv_qp_type */
    uint8_t traits;         /* SR_OP_* */
    uint8_t wc;             /* enum ibv_wc_opcode of the requester's completion */
    unsigned local_access;  /* access the local memory needs */
};
const struct sr_opcode *sr_opcode(unsigned opcode);

#endif /* SR_ROOMS_H */
