/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The shared structs of the BTL, nothing else: rails, peers, ports (modules), and the component. Two kinds of threads
 * use them. "Progress": the threads of the application inside MPI; they own the data path. "Service": one thread per
 * module, which mostly sleeps; it owns the rail machine, the creation of queue pairs and every verb that can block.
 * They exchange letters. DESIGN.txt 15.
 */
#ifndef BTL_OPENIB_TYPES_H
#define BTL_OPENIB_TYPES_H

#include "bfo_config.h"

#include "formats/btl_openib_counts.h"
#include "formats/btl_openib_inquiry.h"
#include "formats/btl_openib_qpmap.h"
#include "formats/btl_openib_rails.h"
#include "formats/btl_openib_rejoin.h"
#include "tables/btl_openib_rail_fsm.h"
#include "types/btl_openib_letter.h"
#include "types/btl_openib_paths.h"
#include "types/btl_openib_queue_pair.h"
#include "types/btl_openib_transport.h"
#include "types/btl_openib_work.h"

#include "bfo_btl_ext.h"

#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_list.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/rcache/base/base.h"
#include "opal/util/proc.h"

#include <pthread.h>

#define OFO_HELP_FILE "help-btl-openib-bfo.txt"
#define OFO_MAX_MODULES (OFO_MAX_PORTS * OFO_MAX_LANES)
#define OFO_MAX_CQS 16

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
    ofo_gate_t gate;       /* atomic. Written by _gate.c alone */
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
    int32_t lossy_gen;      /* last generation whose fence was given up or met a dead adapter, or OFO_GEN_NONE; atomic, progress reads it */
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
    uint64_t answered_at;           /* ms; the adapter has answered a query that began then; context: service */
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
    bool closing;          /* finalize has begun, so late errors of peers that left earlier do not matter; atomic */
    opal_process_name_t self;
    ofo_paths_t paths; /* what inquiries know of each other */
} ofo_component_t;

extern ofo_component_t mca_btl_openib_component;
#define OFO mca_btl_openib_component

#endif /* BTL_OPENIB_TYPES_H */
