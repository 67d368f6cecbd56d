/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The letters that progress and service exchange, and the mailbox of each. The structs alone; btl_openib_mail.c sends
 * the letters. DESIGN.txt 15.1.
 */
#ifndef BTL_OPENIB_LETTER_H
#define BTL_OPENIB_LETTER_H

#include "bfo_config.h"

#include "formats/btl_openib_wire.h"
#include "types/btl_openib_work.h"

#include <pthread.h>

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

#endif /* BTL_OPENIB_LETTER_H */
