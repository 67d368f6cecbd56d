/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The engine of pml_bfo_failover_fsm.c under threads, DESIGN.txt section 7.3: every load, store and decrement is a separate
 * step; sequential consistency is assumed. One of
 *  -DDRAIN     the last completions of ERRD come in two threads: NOTIFY is posted exactly once
 *  -DRESTART   the last event and the event of a late handler return in NOTIFIED; one thread restarts and resets the bits: the request
 *              must not be completed with the bits of the previous attempt
 *  -DFINISH    the last WRITE completes while another thread tests the guards: the request completes exactly once, and after the FIN
 *  -DHANDLER   receiver: FRAG handlers count while the restart is claimed; no handler counts bytes into the next attempt
 *  -DREUSE     a request is completed and used for the next message, in the same state and epoch, while one thread is about to claim with
 *              an older look, and another handles a restart message that names the first use: neither touches the second use
 * Mutants: LOADFIRST (state loaded before the decrement), NOCAS, NOACTHOLD (no event held during the action of a claim),
 *  NOLOSTTEST (the loser of a claim does not test again), ONEREAD (events read only before the facts), LATEREAD (only
 *  after the facts), NOHOLD and NOSEAL (HANDLER: no event held during test and count, no SEALED), OLDLOOK and NOLOOK (REUSE: a claim
 *  compares the state only; a thread that only looks does not count its look). */
mtype = { STREAM, ERRD, NOTIFIED, RTS1, QUIESCE, SEALED, WAITRTS, DONE };
/* se and looks are one word: read and swapped in one step */
mtype se; byte looks, ev, gen=1; bit resp, all, fin; byte notified, granted, completed, over; bit posted;

inline UP() { ev++ }
/* v: the value after the decrement */
inline DOWN() { atomic { ev--; v=ev } }
inline CAS(from, to, same) {
#ifdef NOCAS
  if :: se==from -> won=1 :: else -> won=0 fi;
  if :: won -> se=to :: else fi
#else
  atomic { if :: se==from && (same) -> se=to; looks++; won=1 :: else -> won=0 fi }
#endif
}
#ifdef OLDLOOK
#define SAME true
#else
#define SAME looks==lk
#endif
/* a claim: target state, then its action; again=1: test the guards again */
inline CLAIM(from, to) {
#ifndef NOACTHOLD
  if :: to!=DONE -> UP() :: else fi;
#endif
  CAS(from,to,SAME);
  if
  :: won && to==NOTIFIED -> notified++; UP(); posted=1                       /* NOTIFY is posted */
  :: won && to==RTS1 -> resp=0; all=0; UP(); posted=1                        /* resets the bits of the attempt; RTS is posted */
  :: won && to==WAITRTS -> granted++
  :: won && to==DONE -> assert(fin); gen++; completed++
  :: else
  fi;
#ifdef NOACTHOLD
  again=(won && to!=DONE)
#else
  if
#ifdef NOLOSTTEST
  :: to!=DONE -> DOWN(); again=(v==0 && won)
#else
  :: to!=DONE -> DOWN(); again=(v==0)
#endif
  :: else -> again=0
  fi
#endif
}
inline SETTLE() {
  again=1;
  do
  :: again -> again=0; atomic { s=se; lk=looks };
#ifndef LATEREAD
     if :: ev!=0 || s==DONE -> break :: else fi;
#endif
     fr=resp; fa=all;                                                          /* facts */
#ifndef ONEREAD
     if :: ev!=0 || s==DONE -> break :: else fi;
#endif
     if
     :: s==ERRD -> CLAIM(ERRD,NOTIFIED)
     :: s==NOTIFIED && granted -> CLAIM(NOTIFIED,RTS1)
     :: (s==STREAM || s==RTS1) && fr && fa -> CLAIM(s,DONE)
#ifdef NOSEAL
     :: s==QUIESCE -> CLAIM(QUIESCE,WAITRTS)
#else
     :: s==QUIESCE -> CLAIM(QUIESCE,SEALED)
#endif
     :: s==SEALED -> CLAIM(SEALED,WAITRTS)
     :: else
     fi
  :: else -> break
  od;
  again=0; won=0; fr=0; fa=0; s=0; lk=0
}
#define LOCALS bit again, won, fr, fa; byte v, lk; mtype s

#ifdef DRAIN
#define NT 2
/* a completion with an error: claims or finds ERRD, gives its event back, tests the guards */
proctype Completion() { LOCALS;
#ifdef LOADFIRST
  mtype old = se; CAS(STREAM,ERRD,true); DOWN();
  if :: old==ERRD && v==0 -> SETTLE() :: else fi;
#else
  CAS(STREAM,ERRD,true); DOWN(); SETTLE();
#endif
  over++ }
init { atomic { se=STREAM; ev=2; fin=1; run Completion(); run Completion() } over==NT; assert(notified==1 && ev==1 && se==NOTIFIED) }
#endif
#ifdef RESTART
#define NT 3
proctype Release() { LOCALS; DOWN(); if :: v==0 -> SETTLE() :: else fi; over++ }
proctype RtsCompletes() { LOCALS; posted; DOWN(); SETTLE(); over++ }
proctype Late() { LOCALS; UP(); DOWN(); if :: v==0 -> SETTLE() :: else fi; over++ }
init { atomic { se=NOTIFIED; ev=1; granted=1; resp=1; all=1; run Release(); run Late(); run RtsCompletes() }
  over==NT; assert(se==RTS1 && completed==0 && ev==0) }
#endif
#ifdef FINISH
#define NT 3
/* a PUT handler posts the last WRITE and gives its own event back; the WRITE completes: bytes, FIN, then the event */
proctype Handler() { LOCALS; UP(); UP(); posted=1; DOWN(); if :: v==0 -> SETTLE() :: else fi; over++ }
proctype WriteCompletes() { LOCALS; posted; all=1; fin=1; DOWN(); SETTLE(); over++ }
proctype Late() { LOCALS; UP(); DOWN(); if :: v==0 -> SETTLE() :: else fi; over++ }
init { atomic { se=STREAM; resp=1; run Handler(); run WriteCompletes(); run Late() }
  over==NT; assert(completed==1 && se==DONE && ev==0) }
#endif
#ifdef HANDLER
#define NT 3
bit counting;
/* a FRAG handler: hold, test, count, release */
proctype Frag() { LOCALS; bit ok;
#ifndef NOHOLD
  UP();
#endif
  ok=(se==QUIESCE);
  if :: ok -> assert(se==QUIESCE || se==SEALED) :: else fi;                   /* counts into the attempt that it has tested */
#ifndef NOHOLD
  DOWN(); if :: v==0 -> SETTLE() :: else fi;
#endif
  over++ }
proctype Last() { LOCALS; DOWN(); SETTLE(); over++ }
init { atomic { se=QUIESCE; ev=1; fin=1; run Frag(); run Frag(); run Last() } over==NT; assert(granted==1 && se==WAITRTS && ev==0) }
#endif
#ifdef REUSE
#define NT 3
/* gives the last event of the first use back; may complete the request */
proctype Last() { LOCALS; DOWN(); if :: v==0 -> SETTLE() :: else fi; over++ }
/* a restart message that names the first use: raise, look, verify, act, release */
proctype Handshake() { LOCALS; bit mine;
  UP();
#ifndef NOLOOK
  looks++;
#endif
  s=se; mine=(gen==1 && s==STREAM);
  if :: mine -> assert(gen==1 && se==STREAM) :: else fi;                      /* acts on the use it has verified */
  mine=0; DOWN(); if :: v==0 -> SETTLE() :: else fi; over++ }
/* after the completion the user sends the next message with the same request; its answer has come, its data has not */
proctype User() { LOCALS; completed==1; resp=0; all=0; fin=0; UP(); se=STREAM; DOWN(); if :: v==0 -> SETTLE() :: else fi; over++ }
init { atomic { se=STREAM; ev=1; resp=1; all=1; fin=1; run Last(); run Handshake(); run User() }
  over==NT; assert(completed==1 && se==STREAM && ev==0 && gen==2) }
#endif
