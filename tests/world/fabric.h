/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The fabric of the world: libibverbs in memory. Each node has one adapter of one port per rail, named w0, w1, ...; all ports of a rail
 * hang on one switch. Packets take time, and time is the host's (world.h). The functions below are the faults, and the figures that
 * the host checks. DESIGN.txt section 18.
 */
#ifndef FABRIC_H
#define FABRIC_H

#include "world.h"

typedef struct {
    unsigned nodes, rails;
    uint64_t latency;     /* ns of a packet from port to port */
    uint64_t jitter;      /* up to so many ns more for each packet; packets of one queue pair stay in order */
    uint64_t packet_ns;   /* time of one packet on the wire; later packets of the port wait */
    uint32_t mtu;         /* bytes of a packet: 256, 512, 1024, 2048 or 4096 */
    uint64_t event_delay; /* up to so many ns from a port's change to its event */
    bool has_srq;         /* adapters have shared receive queues */
    bool raises_last_wqe; /* LAST_WQE_REACHED is raised for queue pairs with a shared queue */
    bool flushes_late;    /* flushed work comes back one by one, with pauses, instead of at once */
    bool keeps_lids;      /* ports keep their LID and that of their subnet manager while they are down */
    bool cleans_cqs;      /* completions of a queue pair that is reset or destroyed leave its completion queues, as with mlx5 */
} fabric_habits_t;

/* Before the first process runs. Also after an earlier world: steps that the old one asked for by world_at() must not run any more. */
void fabric_begin(const fabric_habits_t *habits);
/* Frees all. */
void fabric_end(void);

/* ---- faults ------------------------------------------------------------------------------------------ */
/* The cable of the port is pulled (both its events and its packets) or plugged in again. */
void fabric_port(unsigned node, unsigned rail, bool is_up);
/* The switch loses every packet that the port sends (out) or should get (in); the port stays up and no event comes. */
void fabric_silence(unsigned node, unsigned rail, bool out, bool in);
/* So many of 1000 packets that the port sends are lost. */
void fabric_loss(unsigned node, unsigned rail, unsigned per_1000);
/* The switch holds the WRITEs that the port sends, and what follows them on their queue pair: they arrive after that time. */
void fabric_hold(unsigned node, unsigned rail, uint64_t until);
/* All datagrams that the machine sends are lost, over every rail; its queue pairs of data go on. */
void fabric_mute(unsigned node, bool is_mute);
/* The adapter dies: DEVICE_FATAL, its port goes down for good, all work comes back as flushed. May acknowledge WRITEs first that never
 * reach memory (forgets). */
void fabric_adapter_dies(unsigned node, unsigned rail, bool forgets);
/* One queue pair of this process, chosen by the seed, goes to the error state with IBV_EVENT_QP_FATAL. Returns false if there is none. */
bool fabric_breaks_a_queue_pair(unsigned rank, unsigned rail);
/* The completion queue of such a queue pair fails, with IBV_EVENT_CQ_ERR. Returns true if completions of data are lost. */
bool fabric_breaks_a_completion_queue(unsigned rank, unsigned rail);
/* The process is dead: the kernel takes all its objects back; what comes for its queue pairs is not answered. */
void fabric_process_gone(unsigned rank);

/* ---- figures ------------------------------------------------------------------------------------------ */
bool fabric_port_is_up(unsigned node, unsigned rail);
bool fabric_port_was_always_up(unsigned node, unsigned rail);
/* Objects of a process that exist: queue pairs, registrations, completion queues and so on. */
typedef struct {
    unsigned contexts, pds, mrs, cqs, srqs, qps, ahs, channels;
} fabric_objects_t;
fabric_objects_t fabric_objects(unsigned rank);
/* Bytes of packets that the port has sent, and packets that it has lost (fabric_loss()). */
uint64_t fabric_bytes(unsigned node, unsigned rail);
uint64_t fabric_lost(unsigned node, unsigned rail);
/* What a process has posted so far: datagrams, and other work; and datagrams for which it had no receive. */
enum { FABRIC_TYPES = 16 }; /* of datagrams, by the low bits of their first byte */
typedef struct {
    uint64_t datagrams[FABRIC_TYPES];
    uint64_t sends, writes, reads, unheard;
} fabric_posts_t;
fabric_posts_t fabric_posts(unsigned rank);
/* Bytes of memory that this fabric needs for destroyed objects, numbers and packets. */
uint64_t fabric_memory(void);

#endif /* FABRIC_H */
