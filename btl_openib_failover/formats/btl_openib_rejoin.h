/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Computes when to ask over a rail that is down whether it works again. Only arithmetic, no Open MPI header. See DESIGN.txt 10.2.
 */
#ifndef BTL_OPENIB_REJOIN_H
#define BTL_OPENIB_REJOIN_H

#include <stdbool.h>
#include <stdint.h>

#define OFO_REJOIN_WITH_PORT UINT64_MAX /* value of `at`: when our own port is up again */

enum {
    OFO_REJOIN_FALL = 1000,     /* penalty of one fall from UP */
    OFO_REJOIN_SUPPRESS = 3000, /* a rail with a higher penalty stays out, */
    OFO_REJOIN_REUSE = 750,     /* until it has no more than this, */
    OFO_REJOIN_MOST_MS = 900000 /* but no longer than this after its last fall */
};

/* All zero: never lost. Times in ms. */
typedef struct {
    uint64_t at;       /* when the rail is looked at next; 0: it does not wait to come back */
    uint64_t asked_at; /* when the question was sent that has no answer yet, or 0 */
    uint32_t wait;     /* time until the next question if this one gets no answer */
    bool is_answered;  /* the rail waits for its turn to be opened */
    bool is_refused;   /* the peer takes no rail back */
    bool is_held;      /* it fell too often. Other threads read this and the next two, to show them to the user; atomic */
    uint32_t penalty;  /* at fell_at */
    uint64_t fell_at;
} ofo_rejoin_t;

/* The rail was UP and fell. `half_life` is that of the penalty; 0 means no damping. */
void ofo_rejoin_fall(ofo_rejoin_t *r, uint64_t now, uint64_t half_life);
/* Does the rail have to stay out because it fell too often? */
bool ofo_rejoin_is_held(ofo_rejoin_t *r, uint64_t now, uint64_t half_life);
/* The penalty that is left. */
uint32_t ofo_rejoin_penalty(const ofo_rejoin_t *r, uint64_t now, uint64_t half_life);
/* The ms to wait until the next question after one had no answer, or after an attempt failed. They double up to OFO_REJOIN_MOST_MS. */
uint32_t ofo_rejoin_back_off(ofo_rejoin_t *r, uint32_t first);
/* The rail is up. */
void ofo_rejoin_end(ofo_rejoin_t *r);

#endif /* BTL_OPENIB_REJOIN_H */
