/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * All data that processes share: the fabric file (rails, process slots, queue pair table) and the objects in each
 * process's arena. It has offsets, never pointers; every offset that a peer reads is checked against the arena size.
 * DESIGN.txt 16.
 */
#ifndef SR_SHM_H
#define SR_SHM_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "sr_faultplan.h"

#define SR_MAGIC UINT64_C(0x314c494152544653)
#define SR_LAYOUT 9u

#define SR_MAX_RAILS 8
#define SR_MAX_PROCS 250
#define SR_MAX_CONTEXTS 32 /* open devices of one process */
#define SR_QP_INDEX_BITS 15
#define SR_MAX_QPS (1u << SR_QP_INDEX_BITS)
#define SR_QPN_INDEX(qpn) ((qpn) & (SR_MAX_QPS - 1))

#define SR_ARENA_MAX (UINT64_C(2) << 30) /* address space per process; memory is taken as needed */
#define SR_MR_CHUNK 256u                 /* memory regions per table chunk */
#define SR_MR_CHUNKS 256u

#define SR_CQE_INLINE 20u      /* payload bytes that travel in the completion entry itself */
#define SR_PAYLOAD_RING 32768u /* payload ring of a queue pair, bytes; a power of two */

/* A lock between processes: 0, or slot+1 and incarnation of the holder, which may be dead (sr_process.c). */
struct sr_lock {
    _Atomic uint32_t word;
};

struct sr_counters {
    _Atomic uint64_t tx_messages, tx_bytes, rx_messages, rx_bytes;
    _Atomic uint64_t errors;        /* work requests that ended in an error other than a flush */
    _Atomic uint64_t retries;       /* work requests that had to wait for the peer or the link */
    _Atomic uint64_t rnr_waits;     /* of these, the ones that found no receive posted (RNR) */
    _Atomic uint64_t faults;        /* faults injected */
    _Atomic uint64_t registrations; /* of memory regions, so far */
    _Atomic uint64_t regions;       /* registered now; 0 in `retired` */
};

struct sr_rail {
    alignas(64) _Atomic uint32_t down;      /* cable pulled for everybody */
    _Atomic uint32_t gone;                  /* device gone */
    _Atomic uint32_t gid_serial;            /* raised by each GID change */
    _Atomic uint32_t lid_serial;            /* raised by each LID change */
    _Atomic uint32_t silent;                /* the path drops everything, but the ports stay active */
    _Atomic uint32_t mtu_blackhole;         /* a packet with more payload is dropped; 0 = none is */
    _Atomic uint64_t up_at;                 /* ns: when the plan plugs the cable in again; 0 = it does not */
    uint64_t guid;                          /* host order */
    uint64_t gid_prefix;                    /* host order */
    _Atomic uint64_t rate;                  /* bit/s, 0 = unlimited */
    _Atomic uint64_t latency;               /* ns added to each message */
    struct sr_counters retired;             /* of processes that left; fabric lock */
    alignas(64) _Atomic uint64_t next_free; /* ns, CLOCK_MONOTONIC: when the wire is free again */
};

struct sr_context_entry {
    _Atomic uint32_t fifo; /* number of the asynchronous event FIFO, 0 = free */
    uint32_t rail;
};

struct sr_proc {
    alignas(64) _Atomic uint32_t incarnation; /* 24 bits, 0 = slot never used or clean */
    _Atomic uint32_t pid;
    _Atomic uint32_t down_rails; /* bit per rail: cable pulled for this process only */
    char command[48];
    struct sr_context_entry contexts[SR_MAX_CONTEXTS];
    struct sr_counters done[SR_MAX_RAILS]; /* counters of destroyed queue pairs, and of work that belongs to no queue pair */
};

struct sr_qp_entry {
    _Atomic uint32_t owner;  /* lock word of the owning process, 0 = free */
    _Atomic uint32_t qpn;    /* 0 while being created or destroyed */
    _Atomic uint64_t offset; /* of the sr_qp_shm in the owner's arena */
    uint32_t generation;     /* owner; part of the next queue pair number */
    uint32_t reserved;
};

/* What differs between adapters, in addition to the bits of SR_FABRIC_*. Constant while the fabric lives. */
#define SR_MAX_PKEYS 8
struct sr_habits {
    uint32_t max_inline;    /* creating a queue pair that asks for more fails */
    uint32_t mtu_blackhole; /* of each rail when the fabric begins */
    uint32_t traffic_class; /* sysfs shows it for the ports; 0 = none is set */
    uint32_t pkey_count;    /* at least 1 */
    uint16_t pkeys[SR_MAX_PKEYS];
};

struct sr_fabric_shm {
    uint64_t magic;
    uint32_t layout;
    uint32_t rails;
    uint32_t link_layer; /* IBV_LINK_LAYER_* */
    uint32_t copy_max;   /* largest payload that goes through a payload ring, bytes */
    uint64_t retry_ns;   /* replaces the retry time of all queue pairs; 0 = as the attributes say */
    uint64_t created;    /* CLOCK_REALTIME, s */
    uint32_t owner_pid;  /* of softrail run */
    uint32_t flags;      /* SR_FABRIC_* */
    _Atomic uint32_t next_incarnation;
    struct sr_habits habits;
    struct sr_rail rail[SR_MAX_RAILS];
    struct sr_proc proc[SR_MAX_PROCS];
    struct sr_plan plan;
    struct sr_qp_entry qp[SR_MAX_QPS];
};

enum {
    SR_FABRIC_SPLIT_TAIL = 1,        /* the last 8 bytes of a remote write are written as a piece of their own */
    SR_FABRIC_NO_CMA = 4,            /* process_vm_* is refused here: copy services */
    SR_FABRIC_MEMLOCK = 2,           /* registered memory counts against RLIMIT_MEMLOCK */
    SR_FABRIC_RESIDENT = 8,          /* the pages of memory are allocated when it is registered */
    SR_FABRIC_GRH = 16,              /* ports want a global route header on InfiniBand */
    SR_FABRIC_NO_POST_IN_ERROR = 32, /* a queue pair in ERR refuses posts */
    SR_FABRIC_NO_RC = 64,            /* there are no RC queue pairs */
    SR_FABRIC_FLUSH_HEAD = 128,      /* unsignalled requests after the first failed one get no completion */
    SR_FABRIC_NO_EMPTY_WRITE = 256,  /* a write of nothing needs a key */
    SR_FABRIC_FOREIGN_GID = 512,     /* Ethernet: GID 0 belongs to another network namespace, GID 1 is the port's */
    SR_FABRIC_CROSSED = 1024,        /* GUIDs of every second process are in the opposite order of the names */
    SR_FABRIC_DEFAULT_PREFIX = 2048, /* all rails have the GID prefix fe80:: */
    SR_FABRIC_ONE_SM_LID = 8192,     /* the subnet managers of all rails have one LID */
    SR_FABRIC_CROSSED_WIRES = 4096,  /* every second process has its cables in the opposite order of the names */
    SR_FABRIC_IPV4_GIDS = 16384      /* Ethernet: GIDs are IPv4 addresses */
};

/* ---- in the arena ------------------------------------------------------------------------------- */

struct sr_mr_entry {
    _Atomic uint32_t key; /* index << 8 | generation, 0 = no region */
    uint32_t pd;
    uint32_t access;     /* IBV_ACCESS_* */
    uint32_t generation; /* last one used */
    uint64_t addr;       /* in the owner's address space */
    uint64_t length;
    uint64_t iova;
};

/* One request to the owner's copy service, used where process_vm_* is refused. */
enum { SR_SERVICE_IDLE = 0, SR_SERVICE_ASKED = 1, SR_SERVICE_DONE = 2 };
#define SR_SERVICE_BYTES 65536u

struct sr_service {
    struct sr_lock lock;    /* held by the process that asks */
    _Atomic uint32_t state; /* futex: SR_SERVICE_* */
    uint32_t write;         /* 1 = into the owner's memory */
    int32_t result;         /* 0 or errno */
    uint64_t addr;
    uint64_t length;
    _Atomic uint64_t data; /* offset of SR_SERVICE_BYTES, 0 = no service */
};

struct sr_arena_head {
    struct sr_lock atomics;                  /* remote atomics exclude each other per target process */
    _Atomic uint64_t mr_chunk[SR_MR_CHUNKS]; /* offsets of sr_mr_entry[SR_MR_CHUNK], 0 = none */
    alignas(64) struct sr_service service;
};

struct sr_wqe_shm { /* one posted receive */
    uint64_t wr_id;
    uint32_t num_sge;
    uint32_t length;
    _Atomic uint32_t taker; /* SRQ: lock word of the process that consumes it; 0 = none, or its completion was added */
    uint32_t reserved;
    struct {
        uint64_t addr;
        uint32_t length;
        uint32_t lkey;
    } sge[];
};

/* Receive queue: the owner posts at head, a process that delivers a message consumes at tail. */
struct sr_rq_shm {
    struct sr_lock lock; /* SRQ only: several queue pairs consume */
    _Atomic uint32_t tail;
    alignas(64) _Atomic uint32_t head;
    _Atomic uint32_t limit;    /* SRQ: raise SRQ_LIMIT_REACHED below it, then 0 */
    alignas(64) uint64_t wqes; /* offset of the entries */
    uint64_t order;            /* SRQ: offset of uint32_t[mask + 1], the order of the entries; 0 = ring order */
    uint32_t mask;             /* number of entries - 1 */
    uint32_t stride;
    uint32_t pd;
    uint32_t id;              /* owner's handle, for events */
    uint32_t fifo;            /* event FIFO of the owner's context */
    _Atomic uint32_t is_dead; /* after SRQ_ERR: no message gets a receive any more */
};

enum { SR_CQE_DEAD = 0, SR_CQE_EMPTY, SR_CQE_INLINE_DATA, SR_CQE_RING_DATA, SR_CQE_PLACED };

struct sr_cqe {           /* one receive completion, 64 bytes */
    _Atomic uint32_t seq; /* release: sr_cq_push; acquire: sr_cq_take. Position + 1 when valid */
    uint32_t qpn;
    uint32_t byte_len;
    uint32_t imm; /* network order */
    uint32_t wqe; /* index of the receive entry */
    uint32_t src_qp;
    uint32_t pay_start; /* ring data: its position, and the position after it */
    uint32_t pay_end;
    uint16_t slid;
    uint16_t epoch; /* of the queue pair; completions of earlier lives are dropped */
    uint8_t status;
    uint8_t opcode; /* IBV_WC_RECV or IBV_WC_RECV_RDMA_WITH_IMM, less IBV_WC_RECV */
    uint8_t wc_flags;
    uint8_t where; /* SR_CQE_* */
    uint32_t srq;  /* handle of the SRQ the entry came from, 0 = own queue */
    uint8_t data[SR_CQE_INLINE];
};
_Static_assert(64 == sizeof(struct sr_cqe), "a completion entry is one cache line");

struct sr_cq_shm {
    struct sr_lock lock;    /* taken by the process that adds an entry */
    uint32_t produced;      /* lock */
    uint32_t consumed_seen; /* lock; last value read from consumed */
    alignas(64) _Atomic uint32_t consumed;
    alignas(64) _Atomic uint32_t armed; /* 0, 1 = next completion, 2 = next solicited one */
    _Atomic uint32_t kick;              /* raised when a queue pair of this CQ was put in error from outside */
    uint64_t ring;                      /* lock; offset of sr_cqe[mask + 1] */
    uint32_t mask;                      /* lock */
    uint32_t id;
    uint32_t fifo;       /* of the completion channel, 0 = none */
    uint32_t event_fifo; /* of the context */
};

struct sr_qp_shm {
    /* the process that delivers writes these; lock */
    struct sr_lock lock;
    _Atomic uint32_t pay_produced;
    uint32_t head_seen;
    uint32_t pay_seen;
    _Atomic uint64_t rx_messages, rx_bytes;
    /* owner, hot */
    alignas(64) _Atomic uint32_t pay_consumed;
    _Atomic uint64_t tx_messages, tx_bytes;
    _Atomic uint64_t errors, retries, rnr_waits;
    /* owner, under lock */
    alignas(64) _Atomic uint32_t qpn;
    _Atomic uint32_t state; /* enum ibv_qp_state; a process that delivers may set ERR */
    uint32_t type;          /* enum ibv_qp_type */
    uint32_t rail;
    uint32_t pd;
    uint32_t access;
    uint32_t dest_qpn;
    uint32_t qkey;
    uint32_t event_fifo;
    uint32_t id;
    uint16_t epoch;
    uint16_t rnr_timer; /* encoded as in the attribute */
    uint16_t max_dest_rd_atomic;
    uint16_t has_srq;
    uint32_t pkey;
    uint64_t rq;               /* offset of the sr_rq_shm in use (own or shared) */
    uint64_t recv_cq, send_cq; /* offsets */
    uint64_t payload;          /* offset of the payload ring */
    char peer[8];
};

/* One entry of an event FIFO or a completion channel. It is small enough to be written atomically. */
struct sr_event {
    uint32_t type; /* enum ibv_event_type, or SR_EVENT_COMPLETION */
    uint32_t id;   /* handle of the object, or the port number */
};
#define SR_EVENT_COMPLETION 0x1000u

#endif /* SR_SHM_H */
