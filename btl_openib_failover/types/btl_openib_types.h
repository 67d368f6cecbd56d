/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The shared structs of the BTL, nothing else. Two kinds of threads use them. "Progress": the threads of the
 * application inside MPI; they own the data path. "Service": one thread per module, which mostly sleeps; it owns the
 * rail machine, the creation of queue pairs and every verb that can block. They exchange letters. DESIGN.txt 15.
 */
#ifndef BTL_OPENIB_TYPES_H
#define BTL_OPENIB_TYPES_H

#include "bfo_config.h"

#include "tables/btl_openib_rail_fsm.h"
#include "formats/btl_openib_counts.h"
#include "formats/btl_openib_credits.h"
#include "tables/btl_openib_drain_fsm.h"
#include "formats/btl_openib_inquiry.h"
#include "types/btl_openib_paths.h"
#include "formats/btl_openib_qpmap.h"
#include "formats/btl_openib_queues.h"
#include "formats/btl_openib_rails.h"
#include "formats/btl_openib_rejoin.h"
#include "types/btl_openib_transport.h"

#include "bfo_btl_ext.h"
#include "bfo_ompi.h"

#include "opal_config.h"
#include "opal/class/opal_free_list.h"
#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/mca/rcache/base/base.h"
#include "opal/mca/rcache/rcache.h"
#include "opal/util/proc.h"

#include <infiniband/verbs.h>
#include <pthread.h>

#define OFO_HELP_FILE "help-btl-openib-bfo.txt"
#define OFO_MAX_MODULES (OFO_MAX_PORTS * OFO_MAX_LANES)
#define OFO_MAX_CQS 16

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

/* ---- mail --------------------------------------------------------------------------------------- */

typedef enum {
    /* to service */
    OFO_MAIL_POST,       /* a post wants the rail connected */
    OFO_MAIL_ERROR,      /* generation `gen` failed; ctl.cause says why */
    OFO_MAIL_PROVED,     /* proofs of `gen` completed */
    OFO_MAIL_FIRST_RECV, /* first message of `gen` */
    OFO_MAIL_FENCE_DONE, /* all work of `qps` has come back, and service owns it again */
    OFO_MAIL_STUCK,      /* the fence of `qps` does not end: destroy its queue pairs */
    OFO_MAIL_DECLARE,    /* the peer was declared unreachable: end this rail */
    OFO_MAIL_FENCE,      /* the PML learnt that `gen` is dead at the peer */
    OFO_MAIL_CTL,        /* control message for this endpoint that came in on another module */
    OFO_MAIL_AGAIN,      /* control message that came to this endpoint's module before its sender was known */
    OFO_MAIL_RING,       /* make an eager ring; the same kind goes back to progress when it is made or cannot be made */
    OFO_MAIL_SEND,       /* send `ctl` to the endpoint's peer by this module */
    OFO_MAIL_STALLED,    /* work of `gen` is out and none of it has ended for some time */
    OFO_MAIL_SOFTENED,   /* progress acts upon OFO_MAIL_SOFT: tell the peer */
    OFO_MAIL_TOLD,       /* the peer says that `gen` is soft there */
    /* to progress */
    OFO_MAIL_UP,        /* `qps` carries data */
    OFO_MAIL_FENCED,    /* `gen` is fenced: call the PML's fence_done (again) */
    OFO_MAIL_DRAIN,     /* queue pairs of `qps` are in ERR (or there are none): drain. `ctl`: the peer's message, if the peer began */
    OFO_MAIL_LAST_WQE,  /* a queue pair of `gen` takes no more buffers from its shared queue */
    OFO_MAIL_ABANDON,   /* queue pairs of `qps` were destroyed */
    OFO_MAIL_OBSTINATE, /* queue pairs of `qps` could not be destroyed */
    OFO_MAIL_PEER_LOST, /* the BTL has declared the endpoint's peer: notify the PML */
    OFO_MAIL_KEEPALIVE, /* the next turn of the keepalive is due; no endpoint */
    OFO_MAIL_UNKNOWN,   /* `ctl` came from a process that is no peer yet */
    OFO_MAIL_MET,       /* service has made the sender of `ctl` a peer: look up Open MPI's entry for it */
    OFO_MAIL_ANSWERED,  /* another rail to the endpoint's peer answered; `gen`: module->downs when the question was sent */
    OFO_MAIL_SILENT,    /* generation `gen` carries nothing, although another rail to its peer does */
    OFO_MAIL_SOFT,      /* generation `gen` seems silent */
    OFO_MAIL_SOFT_TOO,  /* the peer found that `gen` seems silent */
    OFO_MAIL_CALM,      /* generation `gen` does not seem silent any more */
    OFO_MAIL_TRUSTED,   /* the probation of generation `gen` is over */
    OFO_MAIL_OVERDUE,   /* a message of `gen` that was sent again over another rail has been out for long */
    OFO_MAIL_PORT_DOWN,
    OFO_MAIL_PORT_UP
} ofo_mail_kind_t;

typedef struct ofo_mail {
    struct ofo_mail *next;
    ofo_mail_kind_t kind;
    ofo_endpoint_t *ep;
    ofo_qpset_t *qps;
    uint16_t gen;
    uint64_t posted_at; /* ms */
    ofo_ctl_t ctl;
} ofo_mail_t;

typedef struct {
    pthread_mutex_t lock;
    ofo_mail_t *first, **last;
    int32_t count;     /* atomic; written under the lock */
    ofo_mail_t *spare; /* empty letters, used when memory is short */
    unsigned spares;
} ofo_mailbox_t;

/* Rails that wait to be opened, in their order. */
typedef struct {
    ofo_endpoint_t *first, *last; /* `last` is valid if `first` is not NULL */
} ofo_open_queue_t;

/* ---- rails, peers, modules ---------------------------------------------------------------------- */

/* Whether a rail takes posts. Context: progress; lock: ep->lock. */
typedef enum {
    OFO_GATE_CLOSED,  /* a new rail: the first post starts the connection */
    OFO_GATE_WAITING, /* posts wait for the connection */
    OFO_GATE_UP,
    OFO_GATE_REFUSING /* OPAL_ERR_UNREACH */
} ofo_gate_t;

typedef enum {
    OFO_ANSWER_NONE,   /* no rail in doubt waits for an answer */
    OFO_ANSWER_WANTED, /* a WRITE will be posted when the one in flight has come back */
    OFO_ANSWER_ASKED   /* that WRITE is in flight */
} ofo_answer_t;

/* What is known of one generation once its fence is done, for DACK and the loss check. */
typedef struct {
    int32_t gen;  /* OFO_GEN_NONE: nothing */
    bool carried; /* at least one message was delivered, in either direction */
    ofo_counts_t sent, received;
} ofo_kept_t;

/* Work of a rail that is out while none of it ends. Context: progress; lock: that of the endpoint. Times in ms. */
typedef struct {
    uint64_t since;  /* since when; 0: nothing is out, or this was not looked at yet */
    uint64_t seen;   /* completions until then */
    uint64_t ask_at; /* when service is asked for an inquiry next */
    unsigned wait;   /* the time until the one after that */
    uint16_t gen;
} ofo_stall_t;

/* The questions that a rail is asked when it has come back (_probation.c). Context: service. Times in ms. */
typedef struct {
    uint64_t at;       /* when the next question is due; 0: none is */
    uint32_t wait;     /* from the next question to the one after that */
    uint16_t number;   /* of the last question */
    uint8_t answered;  /* questions in a row that were answered */
    uint8_t missed;    /* questions that were not answered before the next one was due */
    bool is_out;       /* the last question has no answer yet */
    bool was_answered; /* at least one question was */
} ofo_probation_t;

/* One rail to one peer. */
struct mca_btl_base_endpoint_t {
    ofo_module_t *module;
    ofo_peer_t *peer;
    uint8_t rail;     /* its name; OFO_RAIL_NONE until the peer's request names it: _partner.c. Atomic, written once by service */
    uint16_t choices; /* ports of the peer that may be at the other end, one bit for each; 0: there is no choice. Constant */
    ofo_port_t remote;
    uint32_t remote_contact;
    uint8_t alike; /* number of ports in our port's subnet, on the side that has more of them */

    /* progress; lock: `lock`, and `gate_lock` before it unless the gate is UP */
    pthread_mutex_t gate_lock; /* always a real lock, because service opens the gate if the process does not call MPI */
    opal_mutex_t lock;
    ofo_gate_t gate;       /* release: ofo_gate_open; acquire: posts. Written by _gate.c alone */
    ofo_qpset_t *qps;      /* current set; NULL unless UP or draining */
    ofo_qpset_t *draining; /* set whose fence runs, whether it was UP before or not; context: progress */
    uint16_t up_gen;
    int32_t refused_gen;                 /* the gate refuses because of this generation, or OFO_GEN_NONE */
    bool dead_port;                      /* the gate refuses because of a port alone, ours or the peer's */
    bool doubted;                        /* in doubt: its port is down; it ends if another rail to the peer answers. Atomic; lock to write */
    ofo_answer_t answer;                 /* state of the WRITE that asks for the sake of rails in doubt */
    uint16_t asked_downs[OFO_MAX_RAILS]; /* `downs` of the modules of the peer's rails, read before that WRITE was posted */
    uint32_t pending_count;              /* entries of all pending lists */
    opal_list_t pending[OFO_MAX_QPS];
    opal_list_t pending_rdma;
    uint32_t sends_out; /* accepted, callback not run */
    uint32_t rdma_out;
    bool stands_out; /* takes no new work, even if no other rail is left, so it replaces no other; atomic, the PML sets it */
    ofo_stall_t stall;
    uint64_t copies_due; /* ms; when the oldest first copy that may be out has been out for too long; 0: there is none */

    /* service */
    uint8_t partner; /* index of `remote` among the peer's ports */
    bool is_settled; /* `partner` is known to be the right one of several choices; constant from then on */
    unsigned tries;  /* requests sent while there are several choices; the first ones go to one of them only */
    ofo_fsm_t fsm;
    int32_t published; /* fsm.state << 16 | gen, atomic, for rail_state() */
    ofo_qpset_t *building;
    struct ibv_ah *ah;
    uint8_t ah_gid_index; /* index of our GID that it was made with */
    bool ah_failed;       /* the last attempt found no address */
    bool is_told;         /* the peer has answered since DOWN gave it told_lid and told_gid */
    uint16_t told_lid;    /* LID of our port in the last DOWN */
    uint8_t told_gid[16]; /* GID of our port in the last DOWN */
    uint32_t flow_label;  /* of `ah` and of the queue pairs that are connected next; 0: not drawn yet */
    bool label_is_used;   /* queue pairs of a generation have had it */
    ofo_kept_t kept[2];   /* the last fenced generation, and the last one before it that carried messages */
    ofo_counts_t dack;    /* the peer's counts of fsm.gen, valid if dack_known */
    bool dack_known;
    uint8_t cause;          /* why this side has ended fsm.gen, for the peer; OFO_CAUSE_UNKNOWN if the peer began */
    int32_t lossy_gen;      /* last generation whose fence was given up, or OFO_GEN_NONE; atomic, progress reads it */
    bool check_open;        /* the fence of lossy_gen is done, but fence_done waits for the loss check */
    uint64_t unknown_until; /* ms; how long to wait for the peer's counts; 0: we do not wait */
    unsigned backoff_ms;
    uint64_t retransmit_at;    /* ms, 0: no timer */
    uint64_t give_up_at;       /* ms, 0: no timer */
    unsigned patience;         /* how often give_up_at may still be put off */
    uint64_t error_at;         /* ms; when the queue pairs of the last fence were put into the error state */
    uint64_t last_wqe_at;      /* ms, 0: no timer; when the wait for LAST_WQE_REACHED ends */
    ofo_qpset_t *fenced_set;   /* the set that `last_wqe_at` belongs to */
    ofo_rejoin_t rejoin;       /* used while the rail is down */
    ofo_probation_t probation; /* used while the rail is up again */
    ofo_inquiry_t inquiry;     /* used while the rail connects or is up */
    uint64_t path;             /* key of the path, while an inquiry runs; 0: the inquiry shares no path */
    bool is_soft;              /* the rail seems silent, and does not testify against other rails; atomic, other services read it */
    bool is_active;            /* on the module's list of endpoints that service must look at */
    ofo_endpoint_t *next_active;
    bool proves;              /* counted in the module's `proving` */
    uint64_t due;             /* ms; nothing of the endpoint is due before this time; valid in the heap */
    uint32_t heap_at;         /* place in the module's heap, counted from 1; 0: not there */
    bool is_wanted, is_asked; /* in the module's queues of rails to open */
    ofo_endpoint_t *next_wanted, *next_asked;
    ofo_ctl_t request; /* is_asked: the peer's last REQ */
};

struct ofo_peer {
    opal_process_name_t name;
    opal_proc_t *proc;
    uint32_t incarnation;
    bool own_is_higher;
    bool closing;    /* del_procs was called; atomic */
    bool declared;   /* unreachable, for good: nothing but PEERDEAD is sent to it; atomic */
    const char *why; /* why it was declared; constant text. release: declared */
    uint64_t rail_hash;
    ofo_pair_t pair[OFO_MAX_RAILS]; /* the list of rails, by their names */
    ofo_port_t *port;               /* its ports; NULL if no rail has a choice */
    uint8_t ended;                  /* names that the peer gave up before our ports had them, one bit each. lock: peers_lock */
    const ofo_queues_t *queues;     /* the queues that both sides have */
    unsigned rail_count;
    ofo_endpoint_t *rail[OFO_MAX_RAILS];
};

typedef struct {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
    char name[IBV_SYSFS_NAME_MAX];
    mca_rcache_base_module_t *rcache;
    unsigned users; /* modules */
    uint8_t *proof; /* OFO_PROOF_SIZE bytes, source and target of the writes that prove a path; nobody reads them */
    struct ibv_mr *proof_mr;
    uint32_t inline_max;              /* bytes that a queue pair takes inline; constant */
    const ofo_transport_t *transport; /* constant */
    bool fatal;                       /* DEVICE_FATAL was reported; atomic */
    bool raises_last_wqe;             /* it has raised LAST_WQE_REACHED at least once; atomic */
    uint64_t deaf_until;              /* ms; service did not answer in time, and progress does not wait for it again until then; atomic */
    uint64_t look_at;                 /* ms; when lost GIDs are looked for again, or 0; context: the service that reads events */
    bool reading;                     /* service takes events out of the device and has not noted the last one yet; atomic */
} ofo_device_t;

#define OFO_UD_RECVS 1024
#define OFO_KEEPALIVE_TURNS 16 /* of one round, because a process with thousands of idle peers must not ask them all at once */

/* The UD queue pair for control messages. Context: service, after its creation. */
typedef struct {
    struct ibv_comp_channel *channel;
    struct ibv_cq *recv_cq, *send_cq;
    struct ibv_qp *qp;
    uint8_t *memory;
    struct ibv_mr *mr;
    unsigned sent, reaped;     /* counts of messages sent and completed; the send slots are a ring */
    uint64_t full_since;       /* ms; when the ring was found full, or 0 */
    bool posted[OFO_UD_RECVS]; /* which receive slots are posted */
    bool is_doubtful;          /* a completion or a post of it went wrong; atomic, the service that reads events sets it too */
    uint64_t mend_at;          /* ms; it is not repaired before this time */
    bool is_reading;           /* its datagrams are being handled, so it must not be repaired now */
    bool is_behind;            /* more datagrams may wait */
    bool is_slow;              /* an address took long to resolve in this round of service */
    uint32_t qkey;
} ofo_ud_t;

/* What rdmacm keeps for a module. Context: service, after its creation. */
typedef struct {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener;
    struct ofo_cm_call *calls;    /* outgoing connects */
    unsigned messages;            /* how many of these only carry a message */
    struct ofo_cm_parked *parked; /* incoming connects that are not decided yet */
} ofo_cm_t;

/* A connection manager sends control messages and connects queue pairs. Context: service, except for create, destroy
 * and fd. */
typedef struct {
    const char *name;
    ofo_cpc_type_t type;
    /* Makes the module reachable and sets its `contact`. */
    int (*create)(ofo_module_t *module);
    void (*destroy)(ofo_module_t *module); /* also after a creation that stopped half way */
    int (*fd)(const ofo_module_t *module); /* becomes readable when receive() has something to do */
    void (*receive)(ofo_module_t *module);
    /* Sends a message whose common header is filled in. A message that cannot be sent is lost. */
    void (*send)(ofo_endpoint_t *ep, ofo_ctl_t *ctl);
    /* Is there room for one more message? NULL: always. */
    bool (*has_room)(ofo_module_t *module);
    /* Moves the queue pairs to RTS, after the peer's REQ or REP. */
    int (*join)(ofo_qpset_t *qps, const ofo_ctl_t *remote);
    void (*leave)(ofo_qpset_t *qps);                        /* before queue pairs are destroyed; may be NULL */
    void (*refuse)(ofo_endpoint_t *ep, uint16_t gen);       /* a REQ was dealt with; may be NULL */
    uint64_t (*expire)(ofo_module_t *module, uint64_t now); /* ends what waits too long; returns when to call again, ms, 0: never; may be NULL */
} ofo_cpc_t;

/* Counters of one module. Mostly one thread writes each of them; the dump and MPI_T read them. */
typedef struct {
    uint64_t sends, sendis, puts, gets, receives;
    uint64_t put_bytes, get_bytes;
    uint64_t queued_sends, queued_rdma, credit_messages;
    uint64_t bad_messages; /* data messages refused */
    uint64_t ctl_in, ctl_out, ctl_dropped, ctl_refused, ctl_mended;
    uint64_t connects, errors, lossy_fences;
    uint64_t fences, fence_ms; /* fences of sets that had queue pairs, and the longest one */
    uint64_t last_wqe_missed;  /* fences that stopped waiting for LAST_WQE_REACHED */
    uint64_t drain_refused;    /* events of sets of queue pairs for which there is no row: our own errors */
    uint64_t late_receives;    /* messages that came after the fence of their queue pair, dropped */
    uint64_t srq_growths;
    uint64_t coalesced, carriers; /* messages that travelled in carriers, and these carriers */
    uint64_t ring_sends, ring_receives;
    uint64_t silent; /* messages that asked for no completion */
    uint64_t keepalives;
    uint64_t inquiries, silent_rails; /* whether a rail is silent, and rails that were */
    uint64_t questions;               /* sent for these inquiries */
    uint64_t followed;                /* inquiries that ended by what other rails of the path found out */
    uint64_t soft_rails, copies;      /* rails that seemed silent, and messages of them that other rails carried as well */
    uint64_t polls_skipped;
    uint64_t sleeps; /* of the process; atomic, counted on its first module */
} ofo_counters_t;

/* Fragments of one size. */
typedef struct {
    opal_free_list_t free;
    ofo_module_t *module;
    uint32_t size; /* header included */
    uint8_t queue; /* the first receive queue whose buffers hold such a fragment */
} ofo_frag_list_t;

#define OFO_MAX_FRAG_LISTS (2 * OFO_MAX_QPS)

/* Work that progress does for a module after a poll. */
enum {
    OFO_WANTS_REPORTS = 1, /* no fragment was left, but some may be silent messages that have arrived */
    OFO_WANTS_LOOK = 2,    /* is there a rail whose work does not end? */
    OFO_WANTS_BUFFERS = 4  /* a shared queue refused buffers, which are posted again */
};

/* Endpoints with timers of which nothing is due, a heap (_timers.c). */
typedef struct {
    ofo_endpoint_t **heap;
    uint32_t count, room;
} ofo_timers_t;

struct ofo_module {
    mca_btl_base_module_t super;
    bfo_btl_ext_t ext; /* must follow super directly; all zero without failover */
    ofo_device_t *device;
    char name[OFO_PORT_NAME_LEN];
    uint8_t port_num;
    uint8_t port_index; /* in our own record */
    uint8_t lane;
    uint8_t gid_index;
    uint16_t pkey_index;
    uint8_t traffic_class;
    struct ibv_port_attr port_attr;
    const ofo_transport_t *transport; /* of the device; constant */
    bool use_grh;
    bool on_interface; /* when the port was opened, an interface of this host that was up had its IP address; false if the port was down */
    bool port_up;      /* atomic; written under the lock of _async.c */
    uint32_t port_asked, port_told; /* how many questions about the port progress has asked, and how many of them are answered; atomic */
    bool port_answer;               /* the last answer: is the port up? release: port_told */
    uint32_t downs;                 /* how often the port went down; atomic, written before port_up under the same lock */
    uint64_t up_since;              /* ms; when the port came up; 0: before the start. Atomic, written before port_up under the same lock */
    const char *down_why;           /* constant text. release: port_up */
    bool tells_late;                /* the user named the port, which was down at the start, and is to be told; atomic */
    bool gone_told;                 /* progress got a letter that the port is down for good; lock: that of _async.c */
    char no_calls[96];              /* why the connection manager cannot start on this port; empty if it can. Context: set-up */
    bool cq_failed;       /* a completion queue overran or a shared receive queue failed: nothing of this module can be trusted any more; atomic */
    bool port_ends_rails; /* the port's event ended a rail; context: progress */
    bool owes_news;       /* and the PML must still hear of rails without queue pairs that ended; context: progress */
    uint64_t lost_since;  /* ms; since when the port's GID is missing, or 0; context: the service that reads events */
    bool owns_async;      /* its service thread reads the device's asynchronous events */
    mca_btl_base_module_error_cb_fn_t error_cb;

    /* progress */
    int32_t poll_lock; /* atomic: 1 while a thread polls or delivers */
    struct ibv_cq *cq[OFO_MAX_CQS];
    int32_t cq_count;                 /* atomic; release: new cq; acquire: poll */
    struct ibv_comp_channel *channel; /* of these queues; NULL without blocking progress */
    int cq_room[OFO_MAX_CQS];         /* free entries; context: service */
    int cq_size;                      /* entries of the last one */
    struct ibv_wc *stash;             /* completions that service took from a CQ; lock: poll_lock */
    unsigned stash_count, stash_size;
    ofo_frag_list_t frags[OFO_MAX_FRAG_LISTS]; /* ascending size */
    unsigned frag_lists;
    ofo_frag_list_t *whole[OFO_MAX_QPS]; /* fragments as large as the buffers of a queue */
    int32_t carriers_over;               /* carriers in flight that went over to a queue with larger buffers; context: progress */
    opal_free_list_t rdmas;
    ofo_got_t got;
    ofo_srq_t *srq[OFO_MAX_QPS]; /* NULL: a queue per peer */
    ofo_qpmap_t qpmap;           /* number -> ofo_qp_t, of queue pairs with a shared queue */
    bool use_eager_rdma;
    ofo_qpset_t **ring; /* sets whose eager rings are polled; max_eager_rdma places */
    unsigned ring_count, rings_asked;
    ofo_frag_t *all_frags; /* every one ever made; atomic, only grows */
    ofo_rdma_t *all_rdmas;
    ofo_qpset_t *fencing; /* sets whose fence runs */
    uint64_t fence_seen;  /* ms; the last look at them. Context: progress */
    uint32_t max_message; /* bytes of one RDMA part */
    unsigned idle_polls;
    unsigned keepalive_turn; /* the current turn of the keepalive's round */
    uint32_t wants;          /* OFO_WANTS_..., done after the next poll; atomic */
    ofo_mailbox_t inbox;
    ofo_counters_t count;
    bfo_traffic_t traffic; /* ext.traffic points here until the PML has a better place */

    /* service */
    pthread_t thread;
    bool has_thread;
    bool stop; /* atomic */
    int wake_fd;
    ofo_mailbox_t service_inbox;
    uint64_t ctl_turn;     /* us; when the next DOWN may be sent (btl_openib_ctl_rate) */
    uint64_t keepalive_at; /* ms, 0: no keepalive */
    uint64_t expire_at;    /* ms, 0: the connection manager has no timer */
    uint32_t contact;      /* where the peers find us; published in the record */
    ofo_cm_t cm;
    unsigned mail_polls; /* times service has found progress's mail unread */
    ofo_ud_t ud;
    ofo_endpoint_t *active; /* endpoints that service must look at */
    ofo_timers_t timers;
    bool port_was_up;               /* when the timers were last run */
    unsigned proving;               /* rails whose proof needs service to poll */
    ofo_open_queue_t wanted, asked; /* rails to open, for our posts and for requests of peers */
    unsigned inquiries;             /* that run and ask */
    unsigned opening;               /* rails whose request waits for the answer, or that prove themselves after it */
    uint64_t timers_at;             /* ms; when the timers were last run */
    uint64_t resolve_at;            /* ms; addresses that could not be resolved are not tried again before this time */
    ofo_qpset_t *graveyard;
    uint32_t random;
};

_Static_assert(offsetof(ofo_module_t, ext) == sizeof(mca_btl_base_module_t), "the PML finds ext behind super");

typedef struct {
    char *if_include, *if_exclude;
    char *receive_queues;
    char *rail_map;
    char *cpc_include, *cpc_exclude;
    char *ipaddr_include, *ipaddr_exclude, *device_type, *test_far_devices;
    bool ignore_locality, enable_srq_resize;
    unsigned pkey, max_hw_msg_size, free_list_num, free_list_inc;
    int free_list_max, max_inline_data;
    char *fabrics;
    int gid_index; /* -1: chosen */
    unsigned max_btls;
    unsigned lanes;
    unsigned ib_timeout, ib_retry_count, ib_rnr_retry, ib_min_rnr_timer;
    unsigned ib_service_level, ib_pkey_index, ib_mtu;
    int ib_traffic_class; /* -1: the port's */
    unsigned ib_max_inline_data;
    unsigned max_rd_atomic;
    unsigned send_queue_depth; /* rdma slots of the first queue pair */
    unsigned cq_size;
    unsigned connect_timeout;   /* s */
    unsigned time_wait;         /* s */
    unsigned fence_timeout;     /* s */
    unsigned keepalive;         /* s, 0: none */
    unsigned deadline;          /* ms, 0: none */
    unsigned soft_deadline;     /* ms, 0: none */
    unsigned blocking_progress; /* ms, 0: progress never sleeps */
    unsigned rejoin_after;      /* ms */
    unsigned rejoin_half_life;  /* s, 0: no damping */
    unsigned ctl_rate;          /* 1/s */
    unsigned gid_prefix_len;
    int want_fork_support;
    int use_eager_rdma; /* 1: yes */
    unsigned eager_rdma_num, eager_rdma_threshold, max_eager_rdma;
    bool use_message_coalescing;
    unsigned completion_interval;
    bool warn_no_device;
    bool allow_ib;
    unsigned verbose;
    unsigned test_record_version; /* tests: publish another version */
} ofo_params_t;

typedef struct {
    mca_btl_base_component_t super;
    ofo_params_t params;
    ofo_queues_t queues; /* as the user asked for */
    ofo_queues_t plain;  /* the same without shared ones */
    bool no_srq;         /* one of our devices has no shared queues; constant once the ports are open */
    const ofo_cpc_t *cpc;
    ofo_record_t record; /* ours */
    unsigned device_count;
    ofo_device_t *device[OFO_MAX_PORTS];
    unsigned module_count;
    ofo_module_t *module[OFO_MAX_MODULES];
    pthread_mutex_t peers_lock;
    opal_hash_table_t peers; /* process name -> ofo_peer_t; lock: peers_lock */
    bool peers_ready;
    int wake_fd;           /* ends a sleep of progress; -1 without blocking progress */
    int32_t asleep;        /* threads that sleep, or are about to; atomic */
    unsigned idle_passes;  /* progress calls in a row that found nothing; atomic */
    uint64_t idle_since;   /* ms; when the time of these calls began to be measured; atomic */
    unsigned passes;       /* calls of progress; a count of another thread may get lost */
    unsigned look_mask;    /* the clock is read in the calls whose number has none of these bits */
    uint64_t look_at;      /* ms; when rails are looked at next; atomic */
    uint64_t copied_bytes; /* of messages that were sent a second time over another rail; atomic */
    bool closing;          /* finalize has begun, so late errors of peers that left earlier do not matter */
    opal_process_name_t self;
    ofo_paths_t paths; /* what inquiries know of each other */
} ofo_component_t;

extern ofo_component_t mca_btl_openib_component;
#define OFO mca_btl_openib_component

#endif /* BTL_OPENIB_TYPES_H */
