/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Bring-down and rejoin of one rail between two peers, DESIGN.txt section 10.2. States, events, effects and actions are
 * those of btl_openib_rail.def, which the run script copies next to this file. Fences are asynchronous. Control messages
 * use two FIFO paths per direction, and are reordered, duplicated, and delayed for any time.
 *  -DNF=n      local failures (default 1), in any state, on either side
 *  -DLOSS=n    up to n control messages are lost; the timers send messages again that are still due
 *  -DREFUSE=n  up to n requests are refused (REJ)
 *  -DDEADPEER  either side may declare the other once: PEERDEAD; the rail never comes back
 *  -DLAZY      both ends begin in CLOSED
 *  -DNODUP     no duplicated messages
 *  -DGIVER     from the second failure on only side B fails, in CREQ: it gives attempts up (T_conn)
 *  -DLIVE      all timers that are due fire at once when no other step is possible: for the search of infinite executions
 * Properties: I10; the check of each generation that carried data takes place before the rail is used again; when all is
 * quiet the rail is UP on both sides with one generation.
 * Mutants: SPEC (DACK and DOWNB before the fence has ended), NOACK (DOWNB without waiting for the peer), LASTG (no
 *  generation check on REQ), CKLAST (a newer check replaces an older check that is still due). */
#ifndef NF
#define NF 1
#endif
#define A 0
#define B 1
#define NOCK 255

#ifdef SWEEP                                                  /* rows.sh removes rows, by line */
c_decl { \#include <stdlib.h>
  static int gone;
  __attribute__((constructor)) static void set_gone(void) { char *s = getenv("SWEEP"); gone = s ? atoi(s) : 0; } }
#define KEPT && c_expr { gone != __LINE__ }
#else
#define KEPT
#endif

mtype = {
#define STATE(name, text) L_##name,
#include "btl_openib_rail.def"
#define EVENT(name, text) LE_##name,
#include "btl_openib_rail.def"
#define EFFECT(name) LF_##name,
#include "btl_openib_rail.def"
#define ACTION(name) LA_##name,
#include "btl_openib_rail.def"
  DOWN, DACK, REQ, REP, RTU, REJ };

#ifdef LAZY
#define USED0 0
mtype st[2] = L_CLOSED;
byte qp[2];                       /* generation (+1) of the queue pairs that can receive; 0: none */
#else
#define USED0 1
mtype st[2] = L_UP;
byte qp[2] = 1;
#endif
byte g[2], nf; bit fz[2], da[2]; byte ck[2] = NOCK;
byte fg[2];                       /* generation of the fence that runs */
bit first[2];                     /* REP or RTU of this generation taken */
byte wr[2];                       /* a zero-byte WRITE of this generation (+1) has arrived */
bit val[2];                       /* zero-byte WRITEs are in flight */
byte used[2] = USED0;             /* last generation that was UP here (+1): it may have carried data */
byte checked[2];                  /* the generation of used[], after its counts were compared here */
bit decl[2];
chan c[4] = [8] of { mtype, byte };   /* c[2*to+path] */
#ifdef LOSS
byte nl;
#endif
#ifdef REFUSE
byte nrej;
#endif
#ifdef DEADPEER
bit once;
#endif

inline SEND(mt, mx) {
  if
  :: c[2*(1-me)]!mt,mx
  :: c[2*(1-me)+1]!mt,mx
#ifndef NODUP
  :: c[2*(1-me)]!mt,mx; c[2*(1-me)+1]!mt,mx
#endif
#ifdef LOSS
  :: nl<LOSS -> nl++
#endif
  fi
}
#define ISUP(s) (st[s]==L_UP)
#define INV(s) \
  assert(!(ISUP(s) && g[1-(s)]>g[s])); \
  assert(!(ISUP(s) && st[1-(s)]==L_DOWNB && g[1-(s)]==g[s])); \
  assert(!(ISUP(s) && ISUP(1-(s)) && g[s]!=g[1-(s)])); \
  assert(!(st[s]==L_DOWNB && qp[1-(s)]==g[s]+1)); \
  assert(!(fz[s] && fg[s]<g[s])); \
  assert(!(st[s]==L_DOWNB && (fz[s] || (fz[1-(s)] && fg[1-(s)]<=g[s]))))

inline LOOKUP() {
  d_step { eff=0; act=0; if
#define ROW(id, state, event, next, effect, action) :: st[me]==L_##state && ev==LE_##event KEPT -> st[me]=L_##next; eff=LF_##effect; act=LA_##action
#include "btl_openib_rail.def"
  :: else -> assert(ev==0 || t!=0)                            /* drops a message; local events have rows */
  fi;
  if
  :: eff==LF_FENCE -> fz[me]=1; da[me]=0
  :: eff==LF_FENCE_ACKED -> fz[me]=1; da[me]=1
  :: eff==LF_FENCED -> fz[me]=0
  :: eff==LF_ACKED -> da[me]=1
  :: eff==LF_NEXT -> g[me]++; da[me]=0
  :: eff==LF_ADOPT -> g[me]=x; da[me]=0
  :: eff==LF_ADOPT_ACKED -> g[me]=x; da[me]=1
  :: eff==LF_OWE || eff==LF_OWE_ACKED ->
     if
#ifdef CKLAST
     :: true -> ck[me]=g[me]
#else
     :: ck[me]==NOCK -> ck[me]=g[me]
#endif
     :: else
     fi;
     g[me]=x; da[me]=(eff==LF_OWE_ACKED)
  :: eff==LF_CHECKED -> ck[me]=NOCK
  :: else
  fi;
#ifdef SPEC
  if :: eff==LF_FENCE || eff==LF_FENCE_ACKED -> st[me]=L_DOWNB :: else fi;
#endif
  if :: eff==LF_FENCE || eff==LF_FENCE_ACKED -> fg[me]=g[me]; qp[me]=0; val[me]=0 :: else fi }
}
inline NEWQP() { qp[me]=g[me]+1; first[me]=0; val[me]=0 }
inline CHECKED_NOW(cn) { if :: used[me]==(cn)+1 -> checked[me]=used[me] :: else fi }
inline ACT() {
  if
  :: act==LA_fence_send_down || act==LA_fence_back_off -> SEND(DOWN,g[me])
#ifdef SPEC
  :: act==LA_fence || act==LA_fence_keep_counts -> SEND(DACK,g[me])
#endif
#ifdef NOACK
  ; st[me]=L_DOWNB; fz[me]=0
#endif
  :: act==LA_send_dack || act==LA_send_dack_empty -> SEND(DACK,g[me])
  :: act==LA_send_dack_check -> SEND(DACK,g[me]); CHECKED_NOW(g[me])
  :: act==LA_keep_counts_check -> CHECKED_NOW(g[me])
  :: act==LA_send_dack_old -> SEND(DACK,x)
  :: act==LA_check_old -> CHECKED_NOW(x)
  :: act==LA_connect -> NEWQP()
  :: act==LA_request -> assert(used[me]<=checked[me]); NEWQP(); SEND(REQ,g[me])
  :: act==LA_reply -> assert(used[me]<=checked[me]); NEWQP(); SEND(REP,g[me])
  :: act==LA_turn_passive || act==LA_send_rep -> SEND(REP,g[me])
  :: act==LA_reject -> SEND(REJ,x)
  :: act==LA_ready_validate || act==LA_validate -> first[me]=1; val[me]=1
  :: act==LA_send_rtu_map -> used[me]=g[me]+1; SEND(RTU,g[me])
  :: act==LA_send_rtu -> SEND(RTU,g[me])
  :: act==LA_map -> used[me]=g[me]+1
  :: act==LA_report_impossible -> assert(false)
  :: act==LA_declare || act==LA_declare_fence -> decl[me]=1
  :: else
  fi;
  act=0; eff=0; ev=0; t=0; x=0; INV(A); INV(B)
}
/* The guards of messages, as ofo_rail_*_event() decide them. */
inline EVENT_OF() {
  d_step { ev=0; if
  :: t==DOWN && x<g[me] -> ev=LE_DOWN_OLD
  :: t==DOWN && x==g[me] && !fz[me] -> ev=LE_DOWN_NOW
  :: t==DOWN && x==g[me] && fz[me] -> ev=LE_DOWN_NOW_FENCING
  :: t==DOWN && x>g[me] && !fz[me] -> ev=LE_DOWN_NEW
  :: t==DOWN && x>g[me] && fz[me] -> ev=LE_DOWN_NEW_FENCING
  :: t==DACK && x<g[me] && x==ck[me] -> ev=LE_DACK_OLD_DUE
  :: t==DACK && x<g[me] && x!=ck[me] -> ev=LE_DACK_OLD
  :: t==DACK && x==g[me] && !fz[me] -> ev=LE_DACK_NOW
  :: t==DACK && x==g[me] && fz[me] -> ev=LE_DACK_NOW_FENCING
  :: t==DACK && x>g[me] && !fz[me] -> ev=LE_DACK_NEW
  :: t==DACK && x>g[me] && fz[me] -> ev=LE_DACK_NEW_FENCING
#ifdef LASTG
  :: t==REQ && (st[me]==L_DOWNB || st[me]==L_DOWNL) -> st[me]=L_DOWNB; g[me]=x-1; ev=LE_REQ_NEXT
#endif
  :: t==REQ && x<g[me] -> ev=0
  :: t==REQ && x==g[me] && me==B -> ev=LE_REQ_NOW_HIGHER
  :: t==REQ && x==g[me] && me==A -> ev=LE_REQ_NOW_LOWER
  :: t==REQ && x>g[me] && !((st[me]==L_DOWNL || st[me]==L_DOWNB) && x==g[me]+1) -> ev=LE_REQ_NEW
  :: t==REQ && x==g[me]+1 && (st[me]==L_DOWNL || st[me]==L_DOWNB) && ck[me]!=NOCK -> ev=LE_REQ_NEXT_BLOCKED
  :: t==REQ && x==g[me]+1 && (st[me]==L_DOWNL || st[me]==L_DOWNB) && ck[me]==NOCK -> ev=LE_REQ_NEXT
  :: t==REP && x==g[me] && !first[me] -> ev=LE_REP_NOW
  :: t==REP && x==g[me] && first[me] -> ev=LE_REP_AGAIN
  :: t==RTU && x==g[me] && !first[me] -> ev=LE_PEER_READY
  :: t==RTU && x==g[me] && first[me] -> ev=LE_PEER_READY_AGAIN
  :: t==REJ && x==g[me] -> ev=LE_REJ_NOW
  :: else
  fi }
}
inline TAKE() {
  if
  :: decl[me] -> skip                                  /* the answer is PEERDEAD, see decl[1-me] in Side() */
  :: else ->
     EVENT_OF();
#ifdef REFUSE
     if :: ev==LE_REQ_NEXT && nrej<REFUSE -> nrej++; ev=LE_REQ_NEXT_REFUSED :: true fi;
#endif
  fi
}
#define QUIETC (len(c[0])+len(c[1])+len(c[2])+len(c[3])==0)
#define EMPTYTO(s) (len(c[2*(s)])+len(c[2*(s)+1])==0)

#ifdef GIVER
#define MAYFAIL (nf==0 || (me==B && st[B]==L_CREQ))
#else
#define MAYFAIL (true)
#endif
/* A timer fires only when no message is on its way and no fence runs; otherwise the channel would only get copies. */
#ifdef LIVE
#define TICK(s) (false)
#else
#define TICK(s) (QUIETC && !fz[0] && !fz[1] && !decl[s])
#endif
#define GIVENUP(s) (QUIETC && g[1-(s)]>g[s])
proctype Side(bit me) {
  mtype t, ev, eff, act; byte x;
end:
  do
  :: atomic {
    if
    :: nf<NF && !decl[me] && MAYFAIL && (st[me]==L_UP || st[me]==L_CREQ || st[me]==L_RDY || st[me]==L_CONNECTING) ->
       nf++; ev=LE_LOCAL_ERROR
    :: fz[me] -> if :: da[me] -> ev=LE_FENCE_DONE_ACKED :: else -> ev=LE_FENCE_DONE fi
    :: st[me]==L_DOWNB && ck[me]==NOCK && (me==A || nf>0) && !decl[me] -> ev=LE_RESTORED
    /* zero-byte WRITEs arrive if the peer's queue pairs of this generation can receive; otherwise the attempt ends with an error */
    :: val[me] && qp[1-me]==g[me]+1 -> val[me]=0; wr[1-me]=g[me]+1; ev=LE_VALIDATED
    :: val[me] && qp[1-me]!=g[me]+1 -> val[me]=0; ev=LE_LOCAL_ERROR
    :: wr[me]==g[me]+1 && st[me]==L_RDY && !first[me] -> ev=LE_PEER_READY        /* before RTU */
#ifdef LAZY
    :: st[me]==L_CLOSED -> ev=LE_CONNECT
    :: st[me]==L_CONNECTING && qp[1-me]==1 -> ev=LE_CONNECTED
#endif
    /* T_conn: the peer has given the attempt up */
    :: (st[me]==L_CREQ || st[me]==L_RDY) && !val[me] && GIVENUP(me) -> ev=LE_LOCAL_ERROR
    /* timers: messages that are due are sent again when no message is on its way */
    :: st[me]==L_DOWNL && !da[me] && TICK(me) -> SEND(DOWN,g[me])
    :: ck[me]!=NOCK && TICK(me) -> SEND(DOWN,ck[me])
    :: st[me]==L_CREQ && !first[me] && TICK(me) -> SEND(REQ,g[me])
    :: st[me]==L_RDY && !first[me] && TICK(me) -> SEND(REP,g[me])
#ifdef DEADPEER
    :: !once && !decl[me] -> once=1; ev=LE_PEERDEAD                               /* a declaration by this side acts in the same way */
    :: decl[1-me] && !decl[me] -> ev=LE_PEERDEAD
#endif
    :: nempty(c[2*me]) -> c[2*me]?t,x; TAKE()
    :: nempty(c[2*me+1]) -> c[2*me+1]?t,x; TAKE()
    fi;
    LOOKUP(); ACT() }
  od
}
init { atomic { run Side(A); run Side(B) } }

/* nothing is due: no timer would fire, and no rejoin would start */
#define ATREST(s) (decl[s] || !((st[s]==L_DOWNL && !da[s]) || ck[s]!=NOCK || (st[s]==L_CREQ && !first[s]) || (st[s]==L_RDY && !first[s]) || st[s]==L_DOWNB || st[s]==L_CLOSED || st[s]==L_CONNECTING))
#define REST (ATREST(A) && ATREST(B))
active proctype Monitor() {     /* when all is quiet both ends are UP with the same generation, or both have declared */
end:
  atomic { QUIETC && !fz[0] && !fz[1] && !val[0] && !val[1] && nf==NF && REST ->
    assert(decl[A]==decl[B]); assert(decl[A] || (ISUP(A) && ISUP(B) && g[A]==g[B] && qp[A]==qp[B] && qp[A]==g[A]+1)) }
}
#ifdef LIVE
inline FIRE() {
  if :: st[me]==L_DOWNL && !da[me] && !decl[me] -> SEND(DOWN,g[me]) :: else fi;
  if :: ck[me]!=NOCK && !decl[me] -> SEND(DOWN,ck[me]) :: else fi;
  if :: st[me]==L_CREQ && !first[me] && !decl[me] -> SEND(REQ,g[me]) :: else fi;
  if :: st[me]==L_RDY && !first[me] && !decl[me] -> SEND(REP,g[me]) :: else fi
}
active proctype Timer() { bit me;
end:
  do
  :: atomic { timeout && !REST -> me=A; FIRE(); me=B; FIRE(); me=0 }
  od
}
#endif
