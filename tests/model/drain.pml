/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The end of one set of queue pairs, DESIGN.txt section 10.3. States, events, actions and rows are those of btl_openib_drain.def, which
 * the run script copies next to this file. A thread posts, progress polls, service reads and writes letters, and the device flushes at
 * any time. The time limit of the fence may pass whenever the completion queue is empty.
 *  -DNM=n     messages (default 2)
 *  -DND=n     destroying the queue pairs fails up to n times (default 1)
 *  -DSHARED   a shared receive queue: the marker waits for LAST_WQE_REACHED, a buffer may come back after the fence
 *  -DDEADCARD setting the error state fails, and the device may be gone
 *  -DPORT     the port may end the rail
 *  -DIWARP    the peer may close the connection
 * Properties: the set takes posts only in LIVE; the PML is told once, and the gate refuses by then; the fence ends once and is reported
 * once; each accepted message comes back once, and never while the device may still touch its buffer; no part touches a set that
 * was freed; no event meets an empty cell; when all is quiet a set that failed is fenced.
 * Mutants: NOGUARD (progress believes every answer of service), NOMARKER (the fence does not wait for the marker, and treats messages
 *  that were posted without a completion as returned). */
#ifndef NM
#define NM 2
#endif
#ifndef ND
#define ND 1
#endif

#ifdef SWEEP                                                  /* rows.sh removes rows, by line */
c_decl { \#include <stdlib.h>
  static int gone;
  __attribute__((constructor)) static void set_gone(void) { char *s = getenv("SWEEP"); gone = s ? atoi(s) : 0; } }
#define KEPT && c_expr { gone != __LINE__ }
#else
#define KEPT
#endif

mtype = {
#define STATE(name, text) D_##name,
#include "btl_openib_drain.def"
#define EVENT(name, lock, text) DE_##name,
#include "btl_openib_drain.def"
#define ACTION(name) DA_##name,
#include "btl_openib_drain.def"
  DG_KEEP, DG_REFUSE,
  WAITING, OPEN, REFUSING,                                    /* gate */
  RTS, ERR, GONE,                                             /* queue pairs */
  FREE, LISTED, POSTED, GOOD, BAD, BACK,                      /* states of a message; of the marker: FREE, POSTED, BAD, BACK */
  UP, ERROR, DRAIN, LAST_WQE, STUCK, ABANDON, OBSTINATE, FENCE_DONE };

mtype st = D_LIVE, gate = WAITING, qp = RTS, marker = FREE;
mtype d[NM] = FREE;
mtype ev, act, gcol;
byte ret[NM], posted, nd, i, j;
bit has_set, fencing, seen_last, told, ended, done, buried, freed, down, fatal, port_lost, closed, late, asked_again, hopeless;
chan svc = [6] of { mtype };
chan prg = [6] of { mtype };

#define OUT(k) (d[k]==POSTED || d[k]==GOOD || d[k]==BAD)
#if NM == 1
#define NONE_OUT (!OUT(0))
#define NONE_POSTED (d[0]!=POSTED)
#define CQ_EMPTY (d[0]!=GOOD && d[0]!=BAD && marker!=BAD)
#else
#define NONE_OUT (!OUT(0) && !OUT(1))
#define NONE_POSTED (d[0]!=POSTED && d[1]!=POSTED)
#define CQ_EMPTY (d[0]!=GOOD && d[0]!=BAD && d[1]!=GOOD && d[1]!=BAD && marker!=BAD)
#endif
#ifdef NOMARKER
#define DRAINED_NOW (true)
#else
#define DRAINED_NOW (NONE_OUT && marker==BACK)
#endif

inline RETURN(k) { assert(ret[k]==0); ret[k]++; d[k]=BACK }
inline LOOKUP(e) {
  assert(!freed);
  ev=e; act=0; gcol=0;
  if
#define ROW(id, state, event, next, gatecol, action) :: st==D_##state && ev==DE_##event KEPT -> st=D_##next; gcol=DG_##gatecol; act=DA_##action
#include "btl_openib_drain.def"
  :: else -> assert(false)                                    /* an empty cell */
  fi;
  if :: gcol==DG_REFUSE -> gate=REFUSING :: else fi;
  ev=0; gcol=0
}
inline TELL() { assert(gate==REFUSING && !told); told=1 }
inline MARK() {
  if
#ifdef SHARED
  :: marker==FREE && qp!=GONE && seen_last -> marker=POSTED
#else
  :: marker==FREE && qp!=GONE -> marker=POSTED
#endif
  :: else
  fi
}
inline END() {
  assert(!ended && gate==REFUSING); ended=1;
  j=0; do
  :: j<NM && d[j]==LISTED -> RETURN(j); j++
  :: j<NM && OUT(j) -> assert(qp==GONE); RETURN(j); j++       /* otherwise the device might still write or read its buffer */
  :: j<NM && !OUT(j) && d[j]!=LISTED -> j++
  :: j==NM -> break
  od; j=0;
  fencing=0; has_set=0;
  if :: st!=D_LOSSY -> assert(!done); done=1 :: else fi;
  svc!FENCE_DONE
}
/* A post; the lock is held and the state is LIVE. */
inline POST(k) {
  assert(st==D_LIVE);
  if
  :: d[k]=POSTED
  :: d[k]=LISTED; LOOKUP(DE_POST_REFUSED); assert(act==DA_tell_service); svc!ERROR
  fi
}
inline RAISE(e) {
  LOOKUP(e);
  if
  :: act==DA_tell_service -> svc!ERROR
  :: act==DA_open_gate ->
     j=0; do
     :: j<NM && d[j]==LISTED && st==D_LIVE -> POST(j); j++
     :: j<NM && !(d[j]==LISTED && st==D_LIVE) -> j++
     :: j==NM -> break
     od; j=0;
     gate=OPEN
  :: act==DA_tell_all -> TELL(); svc!ERROR
  :: act==DA_tell_pml_drain -> TELL(); fencing=1; MARK()
  :: act==DA_drain -> fencing=1; MARK()
  :: act==DA_post_markers -> MARK()
  :: act==DA_ask_service -> svc!STUCK
  :: act==DA_end_fence || act==DA_give_up -> END()
  :: act==DA_nothing -> skip
  fi;
  act=0
}

active proctype Poster() {
end:
  do
  :: atomic { posted<NM ->
       if
       :: gate==REFUSING -> skip                              /* the PML takes another rail */
       :: gate==OPEN && st==D_LIVE -> POST(posted); act=0
       :: else -> d[posted]=LISTED
       fi;
       posted++ }
  od
}

active proctype Device() {
end:
  do
  :: atomic { d[0]==POSTED && qp==RTS -> d[0]=GOOD }
  :: atomic { d[0]==POSTED && qp!=GONE -> d[0]=BAD }          /* the queue pair breaks, or flushes the message */
#if NM > 1
  :: atomic { d[1]==POSTED && qp==RTS && d[0]!=POSTED -> d[1]=GOOD }
  :: atomic { d[1]==POSTED && qp!=GONE && d[0]!=POSTED -> d[1]=BAD }
#endif
  :: atomic { marker==POSTED && qp==ERR && NONE_POSTED -> marker=BAD }
  od
}

inline REAP(k) {
  if
  :: d[k]==GOOD -> RETURN(k)
  :: d[k]==BAD -> RAISE(DE_ERROR); RETURN(k)
  :: else
  fi
}
/* Progress reads all of the completion queue before it believes an answer of service. */
inline ANSWERED(e) {
  i=0; do :: i<NM -> REAP(i); i++ :: i==NM -> break od; i=0;
  if :: marker==BAD -> marker=BACK :: else fi;
  if
#ifdef NOGUARD
  :: true -> RAISE(e)
#else
  :: fencing -> RAISE(e)
  :: else
#endif
  fi
}
active proctype Progress() {
end:
  do
  :: atomic { prg?UP -> has_set=1;
       if :: gate==REFUSING && st==D_LIVE -> RAISE(DE_UP_LATE) :: else -> RAISE(DE_UP) fi }
  :: atomic { prg?DRAIN -> gate=REFUSING; RAISE(DE_DRAIN) }
  :: atomic { prg?LAST_WQE -> if :: fencing -> RAISE(DE_LAST_WQE) :: else fi }
  :: atomic { prg?ABANDON -> ANSWERED(DE_DESTROYED) }
  :: atomic { prg?OBSTINATE -> ANSWERED(DE_NOT_DESTROYED) }
  :: atomic { d[0]==GOOD || d[0]==BAD -> REAP(0) }
#if NM > 1
  :: atomic { d[1]==GOOD || d[1]==BAD -> REAP(1) }
#endif
  :: atomic { marker==BAD -> marker=BACK }
  :: atomic { fencing && DRAINED_NOW -> RAISE(DE_DRAINED) }
  :: atomic { fencing && CQ_EMPTY && (st==D_DRAINING || st==D_OBSTINATE) -> RAISE(DE_OVERDUE) }
  :: atomic { fencing && st==D_STUCK && !asked_again -> asked_again=1; RAISE(DE_OVERDUE) }
#ifdef DEADCARD
  :: atomic { !fatal -> fatal=1 }
  :: atomic { fatal && fencing && CQ_EMPTY && (st==D_DRAINING || !hopeless) -> hopeless=(st!=D_DRAINING); RAISE(DE_HOPELESS) }
#endif
#ifdef PORT
  :: atomic { !port_lost -> port_lost=1;
       if :: has_set -> RAISE(DE_PORT_LOST) :: else -> if :: ended -> skip :: else -> gate=REFUSING; svc!ERROR fi fi }
#endif
#ifdef SHARED
  :: atomic { ended && !late && !freed -> late=1; RAISE(DE_ERROR) }   /* a buffer of the shared queue comes back */
#endif
#ifdef IWARP
  :: atomic { st==D_LIVE && !closed -> closed=1;
       if
       :: has_set && (d[0]==LISTED || OUT(0) || d[NM-1]==LISTED || OUT(NM-1)) -> RAISE(DE_ERROR)
       :: has_set && !(d[0]==LISTED || OUT(0) || d[NM-1]==LISTED || OUT(NM-1)) -> RAISE(DE_CLOSE)
       :: !has_set -> RAISE(DE_CLOSE_EARLY)
       fi }
  :: atomic { st==D_CLOSED && has_set && !down && empty(svc) -> RAISE(DE_TURN) }
#endif
  od
}

inline BRING_DOWN() {
  down=1;
  if
  :: qp=ERR
#ifdef DEADCARD
  :: skip
#endif
  fi;
  prg!DRAIN
}
active proctype Service() {
  prg!UP;
end:
  do
  :: atomic { svc?ERROR -> if :: !down -> BRING_DOWN() :: else fi }
  :: atomic { !down -> BRING_DOWN() }                         /* the peer brings the rail down */
  :: atomic { svc?STUCK -> if :: qp=GONE; prg!ABANDON :: nd<ND -> nd++; prg!OBSTINATE fi }
#ifdef SHARED
  :: atomic { down && !seen_last -> seen_last=1; prg!LAST_WQE }
#endif
  :: atomic { svc?FENCE_DONE -> assert(!buried); buried=1 }
  :: atomic { buried && !freed -> freed=1; qp=GONE }          /* the time-wait is over */
  od
}

active proctype Monitor() {
end:
  atomic { timeout ->
    assert(ended && buried && told <= 1 && st==(done -> D_FENCED : D_LOSSY));
    assert(gate==REFUSING && NONE_OUT && d[0]!=LISTED && d[NM-1]!=LISTED) }
}
