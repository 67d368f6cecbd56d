/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * A rail that the user takes out of service, DESIGN.txt section 10.5 (pml_bfo_drain.c, _rails_out.c). Side 1 receives a long message: it asks
 * for a WRITE by a PUT over the rail, and side 0 writes and sends FIN there. Threads of both sides send short messages: they read the mask
 * of rails first and post later. Side 0 or 1 is told first that the rail stands out. The other rail carries RAILS, which may overtake each
 * other or get lost. Work on the wire ends before the second of two looks, and so does a post whose mask was read before the first look.
 * A process that computes handles no message and looks at nothing, for as long as it likes.
 *  -DMSGS=n  long messages and short messages of each side, n of each
 * Properties: whoever says that the rail is drained is right: nothing is on the wire, no PUT is open or unread, and nothing is posted
 * afterwards; both sides say so in the end
 * Mutants: -DONE_LOOK a rail is quiet at the first look; -DNO_PUT a PUT that was asked for does not make the rail busy; -DNO_NUMBER RAILS that
 * was overtaken is obeyed; -DOWN_QUIET the own side alone decides */
#ifndef MSGS
#define MSGS 1
#endif
#define SAYS 6                                                   /* RAILS of one side; numbers do not wrap */
#define OUT(me) (told[me] || other_told[me])
#define FLYING(me) (me==0 && (shorts[0] || writes) || me==1 && (shorts[1] || puts))
#define ON_WIRE (shorts[0] || shorts[1] || puts || writes)
#ifdef NO_PUT
#define BUSY(me) (FLYING(me))
#else
#define BUSY(me) (FLYING(me) || (me==1 && open))
#endif
#ifdef OWN_QUIET
#define OTHER_QUIET(me) true
#else
#define OTHER_QUIET(me) (other_quiet[me])
#endif

chan air[2] = [2] of { byte, bool, bool };                       /* RAILS to that side: number, out, quiet */
byte shorts[2], puts, writes;                                    /* on the wire */
byte asked, open;                                                /* PUTs that have arrived and are not served; PUTs without their FIN */
byte left[2] = MSGS, longs = MSGS, number[2], heard[2], thread[2]; /* thread: 1 has read the mask, 2 the same, before the last look */
bool told[2], other_told[2], looked[2], quiet[2], other_quiet[2], due[2], drained[2];

#define NOBODY_SAYS assert(!drained[0] && !drained[1])
inline say(me) {                                                 /* a state: the next look makes one that was lost again */
    if
    :: number[me] < SAYS -> number[me]++; due[me] = 0;
       if
       :: nfull(air[1-me]) -> air[1-me]!number[me], told[me], quiet[me]
       :: number[me] < SAYS - 2 -> due[me] = 1                   /* lost, and its sender knows */
       fi
    :: else
    fi
}
inline hear(me) {
    air[me]?n, o, q;
    if
#ifdef NO_NUMBER
    :: true ->
#else
    :: n > heard[me] ->
#endif
       heard[me] = n; other_told[me] = o; other_quiet[me] = q
    :: n < heard[me]
    fi
}

proctype side(byte me) {
    byte n; bool o, q;
end:do
    :: atomic { thread[me]==0 && left[me] && !OUT(me) -> left[me]--; thread[me] = 1 }
    :: atomic { thread[me] -> thread[me] = 0; shorts[me]++; NOBODY_SAYS }
    :: atomic { me==1 && longs && !OUT(me) -> longs--; open++; puts++; NOBODY_SAYS }
    :: atomic { me==0 && asked -> asked--; writes++; NOBODY_SAYS }
    :: atomic { nempty(air[me]) -> hear(me) }
    :: atomic { len(air[me]) > 1 -> air[me]?n, o, q; air[me]!n, o, q }
    :: atomic { OUT(me) && !BUSY(me) && !quiet[me] && !looked[me] ->
           looked[me] = 1; if :: thread[me] -> thread[me] = 2 :: else fi;
#ifdef ONE_LOOK
           looked[me] = 0; quiet[me] = 1; say(me)
#endif
       }
    :: atomic { looked[me] && !BUSY(me) && thread[me] != 2 && !ON_WIRE -> looked[me] = 0; quiet[me] = 1; say(me) }
    :: atomic { looked[me] && BUSY(me) -> looked[me] = 0 }
    :: atomic { quiet[me] && BUSY(me) -> quiet[me] = 0; drained[me] = 0; say(me) }
    :: atomic { due[me] -> say(me) }
    :: atomic { OUT(me) && quiet[me] && !BUSY(me) && OTHER_QUIET(me) && !drained[me] ->
           drained[me] = 1; assert(!ON_WIRE && !asked && !open) }
    od
}

active proctype wire() {
end:do
    :: shorts[0] -> shorts[0]--
    :: shorts[1] -> shorts[1]--
    :: atomic { puts -> puts--; asked++ }
    :: atomic { writes -> writes--; open-- }
    od
}

init {
    run side(0); run side(1);
    if
    :: told[0] = 1; due[0] = 1
    :: told[1] = 1; due[1] = 1
    fi;
    /* nothing is left to do, unless the numbers of the model ran out */
    timeout -> assert((drained[0] && drained[1]) || number[0] == SAYS || number[1] == SAYS)
}
