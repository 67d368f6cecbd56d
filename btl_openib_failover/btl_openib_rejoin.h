/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * When a rail that is down is asked whether it works again. Arithmetic alone, no Open MPI header. See DESIGN.txt 10.2.
 */
#ifndef BTL_OPENIB_REJOIN_H
#define BTL_OPENIB_REJOIN_H

#include <stdbool.h>
#include <stdint.h>

#define OFO_REJOIN_WITH_PORT UINT64_MAX /* `at`: when the own port is up again */

enum {
    OFO_REJOIN_FALL = 1000,     /* penalty of one fall from UP */
    OFO_REJOIN_SUPPRESS = 3000, /* a rail with more of it stays out, */
    OFO_REJOIN_REUSE = 750,     /* until it has no more than this, */
    OFO_REJOIN_MOST_MS = 900000 /* but no longer than this after its last fall */
};

/* All zero: never lost. Times in ms. */
typedef struct {
    uint64_t at;       /* when the rail is looked at next; 0: it does not wait to come back */
    uint64_t asked_at; /* a question is out, or 0 */
    uint32_t wait;     /* until the next question, when one is not answered */
    bool is_answered;  /* the rail waits for its turn to be opened */
    bool is_refused;   /* the peer takes no rail back */
    bool is_held;      /* it fell too often. This and the next two are read by other threads, for the user; atomic */
    uint32_t penalty;  /* at fell_at */
    uint64_t fell_at;
} ofo_rejoin_t;

/* The rail was UP and fell. `half_life`: of the penalty; 0: no fall is held against the rail. */
void ofo_rejoin_fall(ofo_rejoin_t *r, uint64_t now, uint64_t half_life);
/* Does the rail have to stay out because it fell too often? */
bool ofo_rejoin_is_held(ofo_rejoin_t *r, uint64_t now, uint64_t half_life);
/* What is left of the penalty. */
uint32_t ofo_rejoin_penalty(const ofo_rejoin_t *r, uint64_t now, uint64_t half_life);
/* ms until the next question when one had no answer, or an attempt failed: doubled each time up to OFO_REJOIN_MOST_MS. */
uint32_t ofo_rejoin_back_off(ofo_rejoin_t *r, uint32_t first);
/* The rail is up. */
void ofo_rejoin_end(ofo_rejoin_t *r);

#endif /* BTL_OPENIB_REJOIN_H */
