/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The one instance of the PML: what all source files share. DESIGN.txt section 14.1.
 */
#ifndef PML_BFO_H
#define PML_BFO_H

#include "types/pml_bfo_types.h"

#include "ompi/runtime/params.h"

/* Version of the wire formats and rules; peers must agree. Travels in the modex. */
#define BFO_PROTOCOL_VERSION 7u

typedef struct {
    uint32_t version;  /* BFO_PROTOCOL_VERSION */
    uint32_t reserved; /* zero. Versions 2 to 4 look for these 8 bytes. The incarnation is in the record of the BTL */
    bfo_life_t life;   /* how processes of its machine find this process */
} bfo_modex_t;

/* What a room calls in a room further down, which sets it at start. All of it is rare: something has failed, or something waited. */
typedef struct {
    void (*rail_failed)(bfo_peer_t *peer, uint8_t rail, uint16_t gen, const char *cause);              /* bfo_failover_rail_failed() */
    void (*ctl_failed)(bfo_peer_t *peer, uint8_t rail, const void *header, size_t length, int status); /* bfo_failover_ctl_failed() */
    void (*wait)(bfo_peer_t *peer, const char *cause);                                                 /* bfo_failover_wait() */
    void (*declare)(bfo_peer_t *peer, const char *cause);                                              /* bfo_failover_declare() */
    void (*settle_all)(void);                          /* bfo_failover_settle_all(); NULL if failover is compiled out */
    void (*obey)(void);                                /* pml_bfo_drain.c: obeys what the user and the program have asked for by now */
    void (*release)(bfo_comm_t *bc, bfo_lane_t *lane); /* pml_bfo_recv_dispatch.c: a receive that held back later messages has completed */
    void (*fin_is_visible)(const bfo_fin_hdr_t *fin);  /* the same: the data of a FIN that waited for a fence is visible */
} bfo_upward_t;

/* Callbacks for the extension of each BTL with failover, set at start by the rooms that have them; NULL without failover. */
typedef struct {
    bfo_btl_failed_frag_fn_t failed_frag; /* pml_bfo_failover.c */
    bfo_btl_fence_done_fn_t fence_done;
    bfo_btl_rail_restored_fn_t rail_restored;
    bfo_btl_peer_dead_fn_t peer_dead;
    bfo_btl_rail_soft_fn_t rail_soft; /* pml_bfo_soft.c */
    bfo_btl_send_again_fn_t send_again;
    bfo_btl_rail_trusted_fn_t rail_trusted; /* pml_bfo_probation.c */
} bfo_callbacks_t;

typedef struct {
    bfo_ids_t sends; /* bfo_send_t.name */
    bfo_ids_t recvs; /* bfo_recv_t.name */
    bfo_ids_t frags; /* bfo_frag_t.name */

    opal_free_list_t frag_list; /* bfo_frag_t */
    opal_free_list_t regs_list; /* bfo_regs_t */
    opal_free_list_t got_list;  /* bfo_unexpected_frag_t */
    opal_free_list_t ctl_list;  /* bfo_ctl_t */

    bfo_peer_t *peers;       /* all peers, the newest first; read without a lock, because no peer is freed before the end. Lock: lock */
    bfo_comm_t *gone;        /* freed by MPI, but a thread may still read them (DESIGN.txt section 14.7). Lock: lock */
    bfo_comm_t **comms[256]; /* by context id, in chunks of 256; used because a lookup in Open MPI's table takes a lock. Lock: lock */
    opal_mutex_t lock;       /* protects comms, orphans, the creation of lanes, and every peer's set-up and kept counters */
    bfo_link_t held_fins;    /* bfo_ctl_t.work.link: FINs that wait for a fence. Lock: lock */
    bfo_link_t orphans;      /* bfo_unexpected_frag_t for communicators that do not exist here yet */

    opal_mutex_t pending_lock;
    bfo_link_t pending; /* bfo_peer_t.turn: peers with work that waits for a rail. Lock: pending_lock */
    uint32_t n_pending; /* waiting bfo_work_t of all peers; changed under pending_lock, read without a lock */
    bool progress_registered;

    /* On a lane with BFO_LANE_REVOKED: is the first fragment dropped because its communicator is revoked? Called under the communicator's lock.
     * If true, it has released the lock, and refused a rendezvous towards the sender (pml_bfo_revoke.c). NULL until a communicator is revoked. */
    bool (*refuses)(bfo_comm_t *bc, bfo_lane_t *lane, const bfo_hdr_t *h);
    /* Does Open MPI use this context id, or is it agreeing on the id? NULL in a job that does not survive failures (pml_bfo_revoke.c). */
    bool (*id_is_in_use)(uint16_t ctx);
    void (*carried_on_probation)(bfo_peer_t *peer, uint8_t rail, size_t bytes); /* pml_bfo_probation.c; NULL without failover */
    bfo_upward_t up;
    bfo_callbacks_t callbacks;

    int32_t n_waits;       /* peers without a rail left that this process waits for; atomic */
    bool waits_registered; /* Lock: lock */
    bool is_ending;        /* MPI_Finalize or MPI_Comm_disconnect waits for what was sent */

    opal_mutex_t unpack_lock[16]; /* protects the convertor of receive request slot % 16 */

    uint8_t modules;                              /* of all BTLs, BFO_MAX_RAILS at most, because no peer has more rails */
    mca_btl_base_component_t *failover_component; /* the component whose modules have the extension; NULL: there is none */
    bool enabled;
    bfo_modex_t modex;
} bfo_t;

extern BFO_OURS bfo_t bfo;

/* Walks over all peers. Open MPI's own list of processes has a lock that a PML cannot take. */
#define BFO_FOREACH_PEER(peer) for (bfo_peer_t *peer = __atomic_load_n(&bfo.peers, __ATOMIC_ACQUIRE); NULL != peer; peer = peer->next)

/* The one public symbol of the PML (pml_bfo_component.c). */
__attribute__((visibility("default"))) extern mca_pml_base_component_t mca_pml_bfo_component;

/* Is the packed message equal to the bytes in memory? If so, it starts at the true lower bound. */
static inline bool bfo_datatype_is_flat(const ompi_datatype_t *datatype, size_t count)
{
    return (datatype->super.flags & OPAL_DATATYPE_FLAG_NO_GAPS) || (1 >= count && (datatype->super.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS));
}

/* 1: buffers may be in device memory, which only the convertor can read and write. */
#ifndef BFO_DEVICE_MEMORY
#define BFO_DEVICE_MEMORY BFO_OMPI_DEVICE_MEMORY
#endif
bool bfo_buffer_is_on_device(const ompi_datatype_t *datatype, size_t count, const void *base); /* pml_bfo_device.c */

/* May the buffer be copied and registered without the convertor? */
static inline bool bfo_buffer_is_flat(const ompi_datatype_t *datatype, size_t count, const void *base)
{
    return bfo_datatype_is_flat(datatype, count) && !(BFO_DEVICE_MEMORY && bfo_buffer_is_on_device(datatype, count, base));
}

static inline bfo_comm_t *bfo_comm_of(const ompi_communicator_t *comm)
{
    return (bfo_comm_t *) comm->c_pml_comm;
}

/* The error with which requests of a declared peer complete. */
static inline int bfo_lost_error(void)
{
    return BFO_OMPI_ULFM_IS_ON ? BFO_OMPI_ERR_PROC_FAILED : MPI_ERR_OTHER;
}

extern BFO_OURS mca_pml_base_module_t bfo_module; /* the functions that MPI calls (pml_bfo_module.c) */

/* The communicator of a context id in this process, or NULL. */
static inline bfo_comm_t *bfo_comm_find(uint16_t ctx)
{
    bfo_comm_t **chunk = __atomic_load_n(&bfo.comms[ctx >> 8], __ATOMIC_ACQUIRE);

    return bfo_likely(NULL != chunk) ? __atomic_load_n(&chunk[ctx & 255], __ATOMIC_ACQUIRE) : NULL;
}

#endif /* PML_BFO_H */
