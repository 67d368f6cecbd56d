/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Work requests of the BTL: fragments, receives, puts and gets; and registered memory. The structs alone. DESIGN.txt
 * 15.4.
 */
#ifndef BTL_OPENIB_WORK_H
#define BTL_OPENIB_WORK_H

#include "bfo_config.h"

#include "formats/btl_openib_queues.h"

#include "bfo_ompi.h"

#include "opal_config.h"
#include "opal/class/opal_free_list.h"
#include "opal/mca/btl/btl.h"
#include "opal/mca/rcache/rcache.h"

#include <infiniband/verbs.h>

typedef struct ofo_module ofo_module_t;
typedef struct ofo_peer ofo_peer_t;
typedef struct ofo_qpset ofo_qpset_t;
typedef struct mca_btl_base_endpoint_t ofo_endpoint_t;

/* ---- work requests ------------------------------------------------------------------------------ */

typedef enum {
    OFO_WORK_SEND,   /* ofo_frag_t */
    OFO_WORK_RECV,   /* ofo_recv_t */
    OFO_WORK_RDMA,   /* ofo_rdma_t; several parts share one */
    OFO_WORK_RETURN, /* ofo_qp_t.returns: a message that only returns credits or slots */
    OFO_WORK_PROVE,  /* ofo_qp_t.prove: a WRITE of one full packet, the proof of the handshake */
    OFO_WORK_ALIVE,  /* ofo_qpset_t.alive: a WRITE of one byte that asks whether the peer lives */
    OFO_WORK_MARKER  /* ofo_qp_t.marker: the last work request of a fenced send queue */
} ofo_work_kind_t;

/* wr_id points to one of these; it must live until its completion was polled. */
typedef struct {
    uint8_t kind;     /* ofo_work_kind_t */
    uint8_t qp;       /* index of the queue pair it was posted on */
    ofo_qpset_t *qps; /* the set it was posted on; NULL for a receive on a shared queue */
} ofo_work_t;

/* The header of every message on a queue pair. */
typedef struct {
    uint8_t tag;       /* BTL tag; OFO_TAG_RETURN carries nothing else */
    uint8_t flags;     /* zero */
    uint8_t credit_qp; /* index of the queue pair that the credits belong to */
    uint8_t pad;
    uint16_t credits; /* returned receive buffers, network byte order */
    uint16_t slots;   /* returned slots of the eager ring, network byte order */
} ofo_data_hdr_t;

/* Tags of the BTL's own messages; no callback is ever registered for them. */
enum {
    OFO_TAG_RETURN = MCA_BTL_TAG_BTL, /* nothing but the header */
    OFO_TAG_RING,                     /* where an eager ring is */
    OFO_TAG_MANY                      /* coalesced messages */
};

/* A message to send. The descriptor is first, because the PML holds the fragment by it. base.super links it into a pending
 * list. work.qps is set from the post to the completion, and only then. */
typedef struct ofo_frag {
    mca_btl_base_descriptor_t base;
    mca_btl_base_segment_t segment; /* after the header */
    ofo_work_t work;
    ofo_data_hdr_t *hdr; /* start of the registered buffer */
    uint32_t lkey;
    opal_free_list_t *list; /* the list that it returns to; constant */
    uint8_t queue;          /* the first receive queue whose buffers hold it; constant */
    bool is_sendi;          /* the PML has no descriptor; errors go to failed_frag */
    bool in_ring;           /* posted as a write into the eager ring */
    uint8_t joined;         /* messages of sendi that it holds as parts; 0: it holds one message, not as a part */
    bool goes_over;         /* a carrier for messages of the queue before; counted in module->carriers_over */
    ofo_endpoint_t *ep;
    bool is_silent;               /* posted without asking for a completion */
    uint32_t place;               /* sequence number among the messages posted on its queue pair */
    struct ofo_frag *next_silent; /* on its queue pair; lock: ep->lock */
    struct ofo_frag *parts;       /* in a carrier: the messages it holds; else NULL */
    struct ofo_frag *next_part;   /* in its carrier */
    struct ofo_frag *next_of_all; /* module->all_frags; constant */
    uint64_t copied;              /* joined messages that a second copy has (_soft.c), one bit for each */
    uint64_t copied_at;           /* ms; only of a message without an owner, because a second copy has it, or of the first of `copied` */
} ofo_frag_t;
OBJ_CLASS_DECLARATION(ofo_frag_t);

/* A posted receive buffer. */
typedef struct {
    ofo_work_t work;
    struct ibv_sge sge; /* whole buffer */
    struct ibv_recv_wr wr;
} ofo_recv_t;

/* What a receive callback gets. One per module is enough, because callbacks do not nest. */
typedef struct {
    bfo_arrival_t base;
    mca_btl_base_segment_t segment;
    ofo_endpoint_t *from; /* sender */
} ofo_got_t;

/* Receive buffers that will be posted together. */
typedef struct {
    ofo_recv_t *first, *last;
    uint32_t count;
} ofo_recv_chain_t;

/* A put or a get. It is posted in parts that are no longer than the port's largest message. */
typedef struct ofo_rdma {
    opal_free_list_item_t super;
    ofo_work_t work;
    ofo_endpoint_t *ep;
    enum ibv_wr_opcode opcode;
    uint8_t *local;
    uint64_t remote;
    uint32_t lkey, rkey;
    size_t size;
    size_t posted;     /* bytes handed to the queue pair */
    uint32_t inflight; /* parts not completed */
    bool started;      /* at least one part was posted (a put of zero bytes has one part) */
    int status;        /* of the first failed part */
    mca_btl_base_registration_handle_t *local_handle;
    mca_btl_base_rdma_completion_fn_t cbfunc;
    void *cbcontext;
    void *cbdata;
    struct ofo_rdma *next_of_all; /* module->all_rdmas; constant */
} ofo_rdma_t;
OBJ_CLASS_DECLARATION(ofo_rdma_t);

/* ---- registration ------------------------------------------------------------------------------- */

struct mca_btl_base_registration_handle_t {
    uint32_t lkey;
    uint32_t rkey;
};

typedef struct {
    mca_rcache_base_registration_t base;
    struct ibv_mr *mr;
    mca_btl_base_registration_handle_t handle;
} ofo_reg_t;

#endif /* BTL_OPENIB_WORK_H */
