/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The hard verdict about a silent rail, DESIGN.txt section 10.2 "Silence" (btl_openib_inquiry.c, _probe.c). A asks the peer over the rail in
 * question (0) and over a witness (1), round after round. A round is longer than any answer takes between two processes that run: it ends
 * when nothing is left that can be read, or when somebody does not run. The product has ROUNDS=4, VAIN=8.
 *  -DSTOPS=n  n times in all a round ends while the peer is stopped, or just before A, which was stopped, reads what has arrived
 *  -DBREAK    at any moment rail 0 begins to swallow everything     -DALL  both rails begin at one moment     otherwise both are healthy
 *  -DFIRST    rail 0 swallows everything from the beginning, and everybody runs     -DINQ=n  n inquiries in a row
 * The peer computes, so its progress does not run, as often as it likes. A may be stopped for a whole round as often as it likes.
 * Properties: a rail that carries packets is never judged; nobody is judged if all rails end at one moment; a rail that is silent from the
 * first question on, while all processes run, is judged (-DFIRST)
 * Mutants: -DNO_WITNESS a round without any answer speaks against the rail; -DNO_LATE a round that ended late counts; -DONE_ROUND a single
 * round decides; -DRNR the question over the rail waits after a SEND that needs a buffer of the peer's progress */
#ifndef STOPS
#define STOPS 2
#endif
#ifndef INQ
#define INQ 1
#endif
#ifdef ONE_ROUND
#define ROUNDS 1
#else
#define ROUNDS 3
#endif
#define VAIN 4
#define MOST 8                                                   /* rounds of one inquiry */

chan ask0 = [MOST] of { byte };
chan ask1 = [MOST] of { byte };
chan ans0 = [MOST] of { byte };
chan ans1 = [MOST] of { byte };
#ifdef FIRST
bool cut[2] = { 1, 0 };
#else
bool cut[2];
#endif
bool runs = 1, computes, a_runs = 1, judged, is_open, witness;
byte number, missed, vain, stops, asked, rounds;

#ifdef RNR
#define READABLE0 (runs && !computes)
#else
#define READABLE0 (runs)
#endif
/* Has everything arrived that can arrive? Questions wait only for a peer that does not run. */
#define SETTLED (empty(ans0) && empty(ans1) && (!runs || empty(ask1)) && (!READABLE0 || empty(ask0)))

inline post(c, rail) { if :: cut[rail] :: else -> c!number fi }
inline ask() {
    number++; rounds++; witness = 0;
    post(ask0, 0); post(ask1, 1)                                 /* over the rail itself first */
}
inline close() { is_open = 0; missed = 0; vain = 0 }
inline turn(is_late) {
    if
#ifdef NO_LATE
    :: true ->
#else
    :: is_late -> missed = 0; vain = 0
    :: else ->
#endif
       if
#ifdef NO_WITNESS
       :: true -> missed++; vain = 0
#else
       :: witness -> missed++; vain = 0
       :: else -> vain++; missed = 0
#endif
       fi
    fi;
    if
    :: missed >= ROUNDS -> judged = 1; assert(cut[0] && !cut[1]); close()     /* not a healthy rail, nor one of two that ended together */
    :: missed < ROUNDS && (vain >= VAIN || rounds >= MOST) -> close()
    :: else -> ask()
    fi
}

active proctype asker() {
    byte n;
    do
    :: atomic { a_runs && !is_open && asked < INQ && empty(ask0) && empty(ask1) && empty(ans0) && empty(ans1) ->
           asked++; is_open = 1; rounds = 0; number = 0; ask() }
    :: atomic { a_runs && nempty(ans0) -> ans0?n; if :: is_open -> close() :: else fi }
    :: atomic { a_runs && nempty(ans1) -> ans1?n; if :: is_open && n==number -> witness = 1 :: else fi }
    :: atomic { a_runs && is_open && SETTLED && runs -> turn(0) }
    :: atomic { a_runs && is_open && SETTLED && !runs && stops < STOPS -> stops++; turn(0) }     /* a round ends while the peer is stopped, and counts */
    :: atomic { a_runs && is_open && SETTLED && !runs && empty(ans1) && !witness -> turn(0) }    /* nobody answers for as long as it likes */
    :: atomic { !a_runs && is_open && stops < STOPS -> stops++; a_runs = 1; turn(0) }            /* stopped for a moment: the timer comes first */
    :: atomic { !a_runs && is_open -> a_runs = 1; turn(1) }                                      /* stopped for longer: the round ends late */
    :: atomic { !a_runs && !is_open -> a_runs = 1 }
    :: a_runs && !is_open && asked == INQ -> break
    od;
#ifdef FIRST
    assert(judged)
#endif
}

active proctype peer() {
    byte n;
end:do
    :: atomic { READABLE0 && nempty(ask0) -> ask0?n; if :: cut[0] :: else -> ans0!n fi }
    :: atomic { runs && nempty(ask1) -> ask1?n; if :: cut[1] :: else -> ans1!n fi }
    od
}

active proctype world() {
end:do
#ifndef FIRST
    :: runs = !runs
    :: atomic { a_runs && is_open -> a_runs = 0 }
#endif
    :: computes = !computes
#ifdef BREAK
    :: cut[0] = 1
#endif
#ifdef ALL
    :: atomic { cut[0] = 1; cut[1] = 1 }
#endif
    od
}
