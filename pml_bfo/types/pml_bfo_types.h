/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The shared structures of the PML, and nothing else. DESIGN.txt section 14.1.
 */
#ifndef PML_BFO_TYPES_H
#define PML_BFO_TYPES_H

#include "bfo_config.h"

#include "tables/pml_bfo_failover_se.h"
#include "formats/pml_bfo_hdr.h"
#include "formats/pml_bfo_ids.h"
#include "formats/pml_bfo_recv_match.h"
#include "formats/pml_bfo_seqmap.h"
#include "formats/pml_bfo_stripe.h"
#include "formats/pml_bfo_sync.h"

#include "ompi_config.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/message/message.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"
#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "ompi/mca/pml/base/pml_base_recvreq.h"
#include "ompi/mca/pml/base/pml_base_sendreq.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/proc/proc.h"
#include "opal/class/opal_free_list.h"
#include "opal/mca/btl/btl.h"

#include "bfo_btl_ext.h"
#include "bfo_ompi.h"

struct bfo_frag_t;
struct bfo_lane_t;
struct bfo_regs_t;

/* ---- peers and rails ----------------------------------------------------------------------------- */

/* One local BTL module and its endpoint to one peer. */
typedef struct {
    mca_btl_base_module_t *btl;
    struct mca_btl_base_endpoint_t *endpoint;
    bfo_btl_ext_t *ext; /* NULL: this rail has no failover */
    uint8_t name;       /* of the rail, the same on both sides (DESIGN.txt section 10); its index without failover. Read it with bfo_rail_name() */
    uint16_t gen;       /* generation in use, or the last one. Written by _generation.[ch] alone, like the members about fences */
    int32_t fenced;     /* highest generation that this side has fenced, -1: none. Lock: bfo.lock */
    uint32_t flags;     /* MCA_BTL_FLAGS_* that can be used with this peer */
    size_t frag_limit;  /* most bytes of one FRAG, header included */
    size_t get_limit;   /* most bytes of one READ */
    uint16_t awaited;   /* generation whose fence ends the rail's bit in `fencing`. Lock: bfo.lock */
    bool is_lossy;      /* the BTL gave up fences. Lock: bfo.lock */
    uint16_t lossy_first, lossy_last; /* the first and the last generation whose fence was given up. Lock: bfo.lock */
    size_t carried;                   /* bytes of long messages during its probation; atomic */
    uint64_t figures_since;           /* ns; when the rail was lost, or was used first or again. Lock: that of pml_bfo_figures.c */
    char cause[64];                   /* why the rail was lost, for the user */
} bfo_rail_t;

/* One process. Lives from the first contact to del_procs. */
typedef struct bfo_peer_t {
    ompi_proc_t *proc;
    struct bfo_peer_t *next;      /* in bfo.peers */
    uint8_t n_rails;              /* 0: bfo_peer_connect() was not called, or found no rail */
    uint8_t eager_mask;           /* rails for first fragments: UP and with the lowest latency */
    uint8_t up_mask;              /* rails that are UP: messages in flight go on over them */
    uint8_t send_mask;            /* rails for new work: UP and not standing out; if there is none, all UP rails that do not stand out by force */
    uint8_t put_mask;             /* rails that can PUT, of those */
    uint8_t pin_mask;             /* put_mask, or 0: then no send lets the peer ask for its bytes by PUT */
    uint8_t get_mask;             /* rails that can GET, of those */
    bool offers_reads;            /* long messages are offered for READs: see bfo_rails_offer_reads() */
    uint16_t eager_turn;          /* bfo_turn_next(); two threads may count as one message */
    bool foreign_puts;            /* it has asked for a PUT over a rail that this process does not use. Lock: bfo.lock */
    bool failover;                /* every rail has the extension: interrupted transfers are restarted */
    uint8_t closed;               /* rails without the extension whose connection is closed; atomic */
    uint8_t fencing;              /* rails whose fence on this side is running. Lock: bfo.lock; written by _generation.[ch] alone */
    uint8_t untold;               /* rails whose loss is not reported to the user yet; atomic */
    uint8_t figures_lost;         /* rails counted as lost in the file of figures. Lock: that of pml_bfo_figures.c, as of the next four */
    bool figures_last;            /* the peer has one rail left, and is counted so */
    bool figures_waits;           /* this process waits for the peer, and counts it so */
    uint64_t figures_waits_since; /* ns; when this wait began */
    uint8_t figures_rail;         /* the rail lost last: resends are counted for its port */
    bool declared;                /* declared unreachable: never used again (DESIGN.txt section 11) */
    bool may_wait;                /* rails can come back: without one this process may wait for the peer (pml_bfo_last_rail_timeout) */
    uint8_t soft;                 /* rails that seem silent: no new work begins there. Lock: bfo.lock */
    uint8_t probation;            /* rails that came back: short messages avoid them. Atomic; lock to write: bfo.lock */
    uint8_t out_own, out_theirs;  /* rails that stand out because this side's or the peer's port is out of service. Lock: bfo.lock */
    uint8_t forced_own, forced_theirs;            /* of those, the rails that stand out even if no other rail is left. Lock: bfo.lock */
    uint8_t names_out, names_forced, names_quiet; /* the peer's report, by names of rails: out, out by force, nothing in flight. Lock: bfo.lock */
    uint8_t quiet_before; /* rails without anything in flight here at the last look of pml_bfo_drain.c, the only user of this and the next four */
    uint8_t quiet;        /* rails without anything in flight here at the last two looks */
    uint32_t told;        /* last report to the peer: forced << 16 | out << 8 | quiet, or UNTOLD: a report is due; atomic */
    int32_t telling;      /* reports in flight to the peer; atomic */
    uint32_t rails_number, rails_heard; /* number of the last report to the peer, and from the peer. Lock: bfo.lock */
    uint64_t waits_since;               /* ms; when the wait for a rail to the peer began; 0: no wait. Lock: bfo.lock */
    bfo_life_t life;                    /* how processes of its machine find it; from the modex */
    uint64_t asked_at;  /* ms; of the last question about the peer's life. This and the next two belong to the thread that asks (pml_bfo_witness.c) */
    uint32_t witness;   /* questions so far, because the processes of the peer's machine are asked in turn */
    uint32_t looked;    /* ranks examined so far in the search for a process of the peer's machine */
    uint32_t question;  /* number of the wait in which other processes are asked; 0: none was asked. Atomic, like the next two */
    bool is_dead;       /* a process of the peer's machine reported the peer dead in this wait */
    bool life_out;      /* a message LIFE to the peer is in flight */
    uint32_t resends;   /* resends since progress last tried waiting work; benign race */
    bfo_link_t turn;    /* in bfo.pending while work waits. Lock: bfo.pending_lock */
    bfo_link_t waiting; /* bfo_work_t that wait for the peer's rails, the oldest first. Lock: bfo.pending_lock */
    uint32_t n_waiting; /* items in `waiting`; changed under bfo.pending_lock, read without */
    uint32_t n_bound;   /* those with is_bound; likewise */
    bool ready;         /* bfo_peer_connect() is done. release: bfo_peer_connect; acquire: bfo_peer_is_ready */
    uint32_t foreign_sent;              /* number of the last FOREIGN to the peer; atomic */
    uint32_t foreign_heard;             /* number of the last FOREIGN from the peer that was handed up. Lock: bfo.lock */
    struct bfo_foreign_t *foreign_held; /* FOREIGN messages that came out of order, by number (pml_bfo_ulfm_tags.c). Lock: bfo.lock */
    bool is_handing_up;                 /* a thread hands up FOREIGN messages of this peer. Lock: bfo.lock */
    size_t match_limit;                 /* most payload of a MATCH: from the smallest eager limit of all rails; does not change */
    size_t rndv_limit;                  /* most payload of an RNDV; likewise */
    size_t rdma_min;                    /* RDMA pays from this many bytes on */
    struct bfo_regs_t *no_regs;         /* registrations of the rails that need none, shared by all requests; or NULL */
    size_t handle_size;                 /* of a registration handle, equal on all rails that do RDMA */
    size_t get_align;                   /* addresses and length of a READ are multiples of get_align + 1, a power of two, on all rails */
    bfo_stripe_t stripe;
    bfo_seqmap_t kept;  /* counters of context ids that are not active now. Lock: bfo.lock */
    bfo_rail_t rails[]; /* room for bfo.modules */
} bfo_peer_t;

/* Does this process wait for the peer if no rail to it is left? If so, a rail may come back at any moment. */
static inline bool bfo_peer_may_wait(const bfo_peer_t *peer)
{
    return peer->may_wait && !peer->declared;
}

static inline size_t bfo_smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The message streams between this process and one rank of one communicator. Created at the first contact. */
typedef struct bfo_lane_t {
    bfo_lane_match_t match; /* Lock: the communicator's */
    uint32_t next_send;     /* number of the next message to that rank; atomic */
    bfo_peer_t *peer;
} bfo_lane_t;

/* One communicator (c_pml_comm). */
typedef struct bfo_comm_t {
    bfo_lock_t lock; /* of match and of every lane's match */
    bfo_match_t match;
    uint32_t size;      /* ranks that can send to us: the remote group */
    bfo_lane_t **lanes; /* [rank], NULL before the first contact. release: bfo_lane_create */
    ompi_communicator_t *comm;
    ompi_group_t *group; /* the remote one; holds a reference */
    int32_t n_watched;   /* sends in flight whose callbacks MPI_Comm_free waits for; atomic */
    bool is_watched;     /* a send was counted in n_watched, and MPI_Comm_free is set up to wait; atomic */
    bool is_window;      /* osc/pt2pt has sent since its error handler was last called for a lost process; atomic */
    bool gone;           /* MPI has freed the communicator, and only this memory remains. Lock: bfo.lock */
    bool is_deserted;    /* every other process of the communicator is declared: no message comes any more. Lock: lock */
    bool is_marked;      /* the communicator is revoked, for collectives at least: its lanes have BFO_LANE_REVOKED. Lock: bfo.lock */
    struct bfo_comm_t *next_gone;
} bfo_comm_t;

/* A first fragment that waits for a receive, for its turn, or for its communicator. */
typedef struct bfo_unexpected_frag_t {
    opal_free_list_item_t super;
    bfo_unexpected_t unexpected;
    bfo_link_t link;            /* in bfo.orphans */
    mca_btl_base_module_t *btl; /* the module over which the fragment arrived */
    bfo_peer_t *peer;           /* the process that sent the fragment according to the BTL, or NULL */
    size_t length;              /* header and payload */
    size_t offset;              /* in the message, of a part that came out of order (bfo_recv_t.ahead) */
    char *data;                 /* room, or malloc */
    char room[];                /* pml_bfo_unexpected_limit bytes */
} bfo_unexpected_frag_t;

/* ---- work that waits for resources --------------------------------------------------------------- */

/* An element of bfo_peer_t.waiting. Each element counts 1 in the events of its request. */
typedef struct bfo_work_t {
    bfo_link_t link;
    /* Tries again. OMPI_SUCCESS: done or discarded; OMPI_ERR_OUT_OF_RESOURCE: stays. */
    int (*retry)(struct bfo_work_t *work);
    bool queued;    /* Lock: bfo.pending_lock */
    bool is_resend; /* a copy after an error: in one call progress sends at most pml_bfo_resend_burst of them to a peer */
    bool is_bound;  /* ends what has begun on its rail, even if the rail stands out */
} bfo_work_t;

/* A control message that could not be sent yet. */
typedef struct bfo_ctl_t {
    opal_free_list_item_t super;
    bfo_work_t work;
    bfo_peer_t *peer;
    uint8_t rail; /* preferred; BFO_MAX_RAILS: any */
    bool bound;   /* only the preferred rail will do */
    uint32_t length;
    uint32_t flags;                    /* of its descriptor, besides those of every message */
    char *text;                        /* the message: room, or malloc */
    mca_btl_base_completion_fn_t done; /* NULL: nobody waits */
    void *context;
    char room[BFO_HDR_MAX];
} bfo_ctl_t;

/* ---- requests ------------------------------------------------------------------------------------ */

/* A short message uses, after Open MPI's part of its request, only the members that are asserted to be near: they touch two cache lines
 * at most beyond the line in which Open MPI's part ends, whatever the size of that part. DESIGN.txt section 14.7. */
#define BFO_IS_NEAR(type, part, member) \
    (offsetof(type, member) + sizeof(((type *) NULL)->member) <= offsetof(type, part) + sizeof(((type *) NULL)->part) + 2 * 64)

/* A buffer's registrations with the rails of one peer. */
typedef struct bfo_regs_t {
    opal_free_list_item_t super;
    bfo_peer_t *peer;
    uint8_t mask; /* rails registered (or that need none) */
    mca_btl_base_registration_handle_t *handle[BFO_MAX_RAILS];
} bfo_regs_t;

typedef struct bfo_send_t {
    mca_pml_base_send_request_t req_send;
    bfo_machine_t m;  /* state, epoch and events (DESIGN.txt section 7) */
    uint8_t life;     /* BFO_LIFE_* (pml_bfo_local.h); atomic */
    bool got_ack;     /* RACK of the next epoch came */
    bool got_nack;    /* NACK of the next epoch came */
    bool prepared;    /* the convertor is; Owner: the thread that posts the first copy of the first fragment, then the scheduling thread */
    bool flat;        /* the packed message is equal to the bytes in memory at `base` */
    uint8_t rts_type; /* MATCH, RNDV or RGET; does not change */
    bfo_lane_t *lane;
    uint32_t match_seq;
    int32_t scheduling; /* atomic: threads inside bfo_send_schedule; only the first one works */
    size_t rts_length;  /* payload of the RTS */
    char *base;
    /* The members from here up to `first` are zero when the message begins. */
    bool resp;  /* a response of this epoch was accepted */
    bool acked; /* an ACK of this epoch was accepted; atomic */
    bool rts_done;
    bool unposted;     /* no part of the message was ever given to a BTL */
    int32_t error;     /* to complete with: MPI_SUCCESS or an error class */
    int32_t in_flight; /* FRAGs posted and not completed; atomic */
    bfo_id_t dst_id;   /* receive request */
    size_t bytes;      /* delivered in this attempt; atomic */
    size_t next;       /* next byte to be sent by FRAG; Owner: the scheduling thread */
    size_t end;        /* of the range to be sent by FRAG */
    bfo_regs_t *regs;
    struct bfo_frag_t *rget;
    bfo_work_t first; /* the RTS or MATCH to be sent; queued only while no copy of it is posted. A short message uses nothing from here on */
    bfo_work_t work;  /* FRAGs to be sent */
    bfo_name_t name;
} bfo_send_t;
_Static_assert(BFO_IS_NEAR(bfo_send_t, req_send, m) && BFO_IS_NEAR(bfo_send_t, req_send, rts_type) && BFO_IS_NEAR(bfo_send_t, req_send, lane)
                   && BFO_IS_NEAR(bfo_send_t, req_send, match_seq) && BFO_IS_NEAR(bfo_send_t, req_send, rts_length)
                   && BFO_IS_NEAR(bfo_send_t, req_send, base) && BFO_IS_NEAR(bfo_send_t, req_send, resp) && BFO_IS_NEAR(bfo_send_t, req_send, rget),
               "a short send uses more than two cache lines of its own");

static inline size_t bfo_send_length(const bfo_send_t *req)
{
    return req->req_send.req_bytes_packed;
}

typedef struct bfo_recv_t {
    mca_pml_base_recv_request_t req_recv;
    bfo_machine_t m;
    uint8_t life;
    bool flat;     /* the packed message can be copied to the buffer at `base` without the convertor */
    bool extras;   /* something must be released at the end: see bfo_recv_drop_extras() */
    bool prepared; /* the convertor and `ahead` are */
    uint32_t match_seq;
    bfo_posted_t posted; /* Lock: the communicator's */
    bfo_lane_t *lane;    /* of the source; NULL while that is unknown */
    size_t capacity;     /* bytes the buffer takes */
    size_t length;       /* of the message */
    char *base;
    bfo_regs_t *regs;
    struct bfo_frag_t *rget; /* the READ side's copy of the sender's address and handles */
    bool holds;              /* counted in n_open of its lane; valid with `extras` */
    bool copies;        /* a BTL refused a PUT or READ: there are no more of them, and the missing bytes are copied; valid with `extras`; atomic */
    int32_t error;      /* to complete with. A short message into a flat buffer uses nothing from here on */
    size_t bytes;       /* received in this attempt; atomic */
    bfo_id_t src_id;    /* send request */
    int32_t scheduling; /* atomic: as in bfo_send_t */
    int32_t open;       /* PUTs without FIN, or READs without completion; atomic */
    size_t next;        /* next byte to be asked for by PUT or READ; Owner: the scheduling thread */
    size_t end;
    size_t copy_from; /* with `copies`: everything before it has been written or read. Lock: bfo.lock */
    size_t unpacked;  /* strided buffer: bytes unpacked so far, in order. Lock: unpack_lock */
    bfo_link_t ahead; /* strided buffer: bfo_unexpected_frag_t beyond `unpacked`, by offset. Lock: unpack_lock */
    bfo_work_t work;  /* PUTs or READs to be started */
    bfo_name_t name;
    uint8_t fence_mask; /* rails that NOTIFY named dead, by name; like fence_gen written before state QUIESCE */
    uint16_t fence_gen[BFO_MAX_RAILS];
} bfo_recv_t;
_Static_assert(BFO_IS_NEAR(bfo_recv_t, req_recv, m) && BFO_IS_NEAR(bfo_recv_t, req_recv, prepared) && BFO_IS_NEAR(bfo_recv_t, req_recv, match_seq)
                   && BFO_IS_NEAR(bfo_recv_t, req_recv, posted) && BFO_IS_NEAR(bfo_recv_t, req_recv, lane)
                   && BFO_IS_NEAR(bfo_recv_t, req_recv, capacity) && BFO_IS_NEAR(bfo_recv_t, req_recv, length)
                   && BFO_IS_NEAR(bfo_recv_t, req_recv, base) && BFO_IS_NEAR(bfo_recv_t, req_recv, rget) && BFO_IS_NEAR(bfo_recv_t, req_recv, holds),
               "a short receive uses more than two cache lines of its own");

enum { BFO_FRAG_NONE = 0, BFO_FRAG_PUT, BFO_FRAG_WRITE, BFO_FRAG_RGET, BFO_FRAG_READ };

/* One RDMA transfer: a PUT asked for (receiver), a WRITE (sender), an RGET offered (sender), a READ (receiver). */
typedef struct bfo_frag_t {
    opal_free_list_item_t super;
    bfo_name_t name;  /* for PUT and RGET: FIN names it */
    bfo_send_t *send; /* send or recv is set, not both */
    bfo_recv_t *recv;
    bfo_peer_t *peer;
    uint8_t kind; /* BFO_FRAG_* */
    uint8_t rail;
    uint8_t offered; /* READ side of an RGET: rails over which the sender's buffer may be read */
    bool named;      /* READ side of an RGET: the sender has named rails, because it has several */
    uint16_t epoch;
    uint16_t gen;    /* WRITE: of the rail, when its PUT arrived */
    uint64_t offset; /* in the packed message */
    uint64_t length;
    uint64_t remote;    /* address at the peer */
    bfo_id_t peer_frag; /* to be named in our FIN */
    mca_btl_base_registration_handle_t *local;
    bfo_work_t work;
    uint64_t carried[BFO_MAX_RAILS]; /* READ side of an RGET that is read in pieces: bytes that each rail has carried; atomic */
    char handle[BFO_HANDLE_MAX];     /* the peer's; of `offered` rails, one after the other */
} bfo_frag_t;

/* A fragment as it arrived, with the header in the first segment. */
typedef struct bfo_in_t {
    mca_btl_base_module_t *btl;
    const mca_btl_base_segment_t *segments;
    size_t n_segments;
    size_t length; /* of all segments */
} bfo_in_t;

#endif /* PML_BFO_TYPES_H */
