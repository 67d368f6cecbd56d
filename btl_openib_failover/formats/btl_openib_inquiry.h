/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Decides whether a rail whose work does not end is soft or silent: rounds of questions over this rail and over the other rails to the
 * same peer. Only arithmetic, no Open MPI header. See DESIGN.txt 10.2, "Silence".
 */
#ifndef BTL_OPENIB_INQUIRY_H
#define BTL_OPENIB_INQUIRY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    OFO_INQUIRY_ROUNDS = 4, /* so many rounds in a row must speak against the rail */
    OFO_INQUIRY_VAIN = 8,   /* after so many rounds in a row without any answer the inquiry ends without a result */
    OFO_INQUIRY_USUAL = 8   /* the short round lasts at least so many times the usual time of an answer */
};

/* All zero: no inquiry. Times in ms. */
typedef struct {
    uint64_t until;         /* end of the round; 0: no inquiry */
    uint64_t began, asked;  /* when the inquiry began, and this round */
    uint32_t usual;         /* how long the rail's answers took lately; kept from one inquiry to the next */
    uint16_t first, number; /* of its first round, and of this one */
    uint8_t missed;         /* rounds in a row in which another rail answered and this one did not */
    uint8_t vain;           /* rounds in a row in which no rail answered */
    bool witness_answered;  /* in this round */
    bool is_short;          /* this round is a short one, which comes first and counts for the soft verdict alone */
    bool follows;           /* other rails of its path ask (_path.c). `until`: when it looks at them next; `asked`: when it asked its witness */
} ofo_inquiry_t;

typedef enum {
    OFO_INQUIRY_GOES_ON, /* ask again, with the number of the new round */
    OFO_INQUIRY_SOFT,    /* the same, and the rail gets no new work meanwhile */
    OFO_INQUIRY_ENDS,    /* no rail answers, so nothing is known of this one */
    OFO_INQUIRY_SILENT   /* the rail carries nothing although another one does */
} ofo_inquiry_result_t;

/* Begins an inquiry: ask, with in->number. `short_ms`: length of the short round, 0: there is none. A rail that usually answers so slowly
 * that this round would be longer than the others has none either. */
void ofo_inquiry_begin(ofo_inquiry_t *in, uint64_t now, unsigned short_ms, unsigned round_ms);
/* Begins an inquiry that follows. */
void ofo_inquiry_follow(ofo_inquiry_t *in, uint64_t now, unsigned pause_ms);
/* An inquiry that follows asks its witness, with in->number. */
void ofo_inquiry_ask_witness(ofo_inquiry_t *in, uint64_t now);
/* An answer with that number came over the rail itself, which ends the inquiry, or over another rail. Numbers of other inquiries count
 * for nothing. */
void ofo_inquiry_answer(ofo_inquiry_t *in, uint64_t now, uint16_t number, bool over_itself);
/* The round is over: now >= in->until. A round that ended late by its own length says nothing, because the caller had no processor and
 * may not have seen the answers. */
ofo_inquiry_result_t ofo_inquiry_turn(ofo_inquiry_t *in, uint64_t now, unsigned round_ms);

#endif /* BTL_OPENIB_INQUIRY_H */
