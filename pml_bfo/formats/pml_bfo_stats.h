/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Counters, readable through MPI_T. DESIGN.txt section 14.9.
 */
#ifndef PML_BFO_STATS_H
#define PML_BFO_STATS_H

#include <stdint.h>

typedef enum {
    BFO_STAT_DROPPED,      /* sum of the next four */
    BFO_STAT_BAD_HEADER,   /* dropped: unknown type, bad length, contradictory fields */
    BFO_STAT_STALE,        /* dropped: identifier or epoch out of date */
    BFO_STAT_DUPLICATE,    /* dropped: message number already seen */
    BFO_STAT_WRONG_SOURCE, /* dropped: rank out of range, or another process than the BTL says */
    BFO_STAT_EARLY,        /* out of order: overtook another message of its source */
    BFO_STAT_UNEXPECTED,   /* unexpected: came before its receive was posted */
    BFO_STAT_ORPHAN,       /* came before its communicator existed */
    BFO_STAT_EAGER,        /* messages sent as MATCH */
    BFO_STAT_RENDEZVOUS,   /* messages sent as RNDV */
    BFO_STAT_RGET,         /* messages sent as RGET */
    BFO_STAT_FRAG_BYTES,   /* bytes sent by FRAG */
    BFO_STAT_PUT_BYTES,    /* bytes written to the peer */
    BFO_STAT_GET_BYTES,    /* bytes read from the peer */
    BFO_STAT_PENDED,       /* posts that had to wait for resources */
    BFO_STAT_ERRORS,       /* fragments that completed with an error */
    BFO_STAT_RESENDS,
    BFO_STAT_RESTARTS,
    BFO_STAT_RAILS_LOST,
    BFO_STAT_RAILS_BACK,
    BFO_STAT_PEERS_WAITED,
    BFO_STAT_PEERS_LOST,
    BFO_STAT_ERROR_AT,   /* ns of the monotonic clock: first error of the rail lost last */
    BFO_STAT_RESUMED_AT, /* the same clock, when the first message that this interrupted went on */
    BFO_STAT_COUNT
} bfo_stat_t;

/* Name of a counter in MPI_T, without the prefix. */
const char *bfo_stat_name(bfo_stat_t s);
/* What the counter counts, in one line. */
const char *bfo_stat_text(bfo_stat_t s);

#endif /* PML_BFO_STATS_H */
