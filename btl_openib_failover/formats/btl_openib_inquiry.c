/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The rounds of an inquiry into a silent rail. See DESIGN.txt 10.2, "Silence".
 */
#include "formats/btl_openib_inquiry.h"

static void next_round(ofo_inquiry_t *in, uint64_t now, uint64_t round_ms)
{
    ++in->number;
    in->witness_answered = in->is_short = false;
    in->asked = now;
    in->until = now + round_ms;
}

static void end(ofo_inquiry_t *in)
{
    in->until = 0;
    in->missed = in->vain = 0;
}

void ofo_inquiry_begin(ofo_inquiry_t *in, uint64_t now, unsigned short_ms, unsigned round_ms)
{
    const uint64_t usual = (uint64_t) OFO_INQUIRY_USUAL * in->usual, first = usual > short_ms ? usual : short_ms;
    const bool is_short = 0 != short_ms && first <= round_ms;

    end(in);
    in->follows = false;
    next_round(in, now, is_short ? first : round_ms);
    in->is_short = is_short;
    in->first = in->number;
    in->began = now;
}

void ofo_inquiry_follow(ofo_inquiry_t *in, uint64_t now, unsigned pause_ms)
{
    end(in);
    in->follows = true;
    in->witness_answered = false;
    in->began = now;
    in->asked = 0;
    in->until = now + pause_ms;
}

void ofo_inquiry_ask_witness(ofo_inquiry_t *in, uint64_t now)
{
    in->first = ++in->number;
    in->asked = now;
}

/* Is the number one of this inquiry's rounds? They may wrap. */
static bool is_mine(const ofo_inquiry_t *in, uint16_t number)
{
    return 0 != in->until && 0 != in->asked && (uint16_t) (number - in->first) <= (uint16_t) (in->number - in->first);
}

/* When the rounds between the first and this one began is not kept. */
static void learn_usual(ofo_inquiry_t *in, uint64_t now, uint16_t number)
{
    if (number == in->first || number == in->number) {
        in->usual = (uint32_t) ((3 * (uint64_t) in->usual + (now - (number == in->first ? in->began : in->asked)) + 1) / 4);
    }
}

/* If the witness is slow too, the peer or this process is, and the rail gets more time to answer. */
void ofo_inquiry_answer(ofo_inquiry_t *in, uint64_t now, uint16_t number, bool over_itself)
{
    uint64_t most;

    if (!is_mine(in, number)) {
        return;
    }
    if (in->follows) { /* it has asked over no other rail than its witnesses */
        in->witness_answered |= !over_itself;
    } else if (over_itself) {
        learn_usual(in, now, number);
        end(in);
    } else if (number == in->number) { /* an older answer is no proof that the peer runs now */
        most = in->asked + OFO_INQUIRY_USUAL * (now - in->asked);
        in->until = in->is_short && !in->witness_answered && most > in->until ? most : in->until;
        in->witness_answered = true;
    }
}

/* The short round says nothing about the hard verdict. If it ended late there is one more, because the next inquiry is far away. */
static ofo_inquiry_result_t end_short(ofo_inquiry_t *in, uint64_t now, unsigned round_ms)
{
    const uint64_t length = in->until - in->asked;
    const bool is_late = now >= in->until + length, is_soft = in->witness_answered && !is_late;
    const bool again = is_late && in->number == in->first && length <= round_ms;

    in->vain = in->witness_answered || is_late ? 0 : 1;
    next_round(in, now, again ? length : round_ms);
    in->is_short = again;
    return is_soft ? OFO_INQUIRY_SOFT : OFO_INQUIRY_GOES_ON;
}

ofo_inquiry_result_t ofo_inquiry_turn(ofo_inquiry_t *in, uint64_t now, unsigned round_ms)
{
    const bool is_late = now >= in->until + round_ms;

    if (in->is_short) {
        return end_short(in, now, round_ms);
    }
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
