/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The rounds of an inquiry into a silent rail. See DESIGN.txt 10.2, "Silence".
 */
#include "btl_openib_inquiry.h"

static void next_round(ofo_inquiry_t *in, uint64_t now, unsigned round_ms)
{
    ++in->number;
    in->witness_answered = false;
    in->until = now + round_ms;
}

static void end(ofo_inquiry_t *in)
{
    in->until = 0;
    in->missed = in->vain = 0;
}

void ofo_inquiry_begin(ofo_inquiry_t *in, uint64_t now, unsigned round_ms)
{
    end(in);
    next_round(in, now, round_ms);
    in->first = in->number;
}

/* Is the number one of this inquiry's rounds? They may wrap. */
static bool is_mine(const ofo_inquiry_t *in, uint16_t number)
{
    return 0 != in->until && (uint16_t) (number - in->first) <= (uint16_t) (in->number - in->first);
}

void ofo_inquiry_answer(ofo_inquiry_t *in, uint16_t number, bool over_itself)
{
    if (!is_mine(in, number)) {
        return;
    }
    if (over_itself) {
        end(in);
    } else if (number == in->number) { /* an older answer is no proof that the peer runs now */
        in->witness_answered = true;
    }
}

ofo_inquiry_result_t ofo_inquiry_turn(ofo_inquiry_t *in, uint64_t now, unsigned round_ms)
{
    const bool is_late = now >= in->until + round_ms;

    in->vain = in->witness_answered || is_late ? 0 : (uint8_t) (in->vain + 1);
    in->missed = in->witness_answered && !is_late ? (uint8_t) (in->missed + 1) : 0;
    if (OFO_INQUIRY_ROUNDS <= in->missed || OFO_INQUIRY_VAIN <= in->vain) {
        const bool is_silent = OFO_INQUIRY_ROUNDS <= in->missed;
        end(in);
        return is_silent ? OFO_INQUIRY_SILENT : OFO_INQUIRY_ENDS;
    }
    next_round(in, now, round_ms);
    return OFO_INQUIRY_GOES_ON;
}
