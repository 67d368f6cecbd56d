/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * First connection, bring-down and rejoin of one rail between two peers, DESIGN.txt section 10.2. States, events, actions and rows
 * are those of btl_openib_rail.def, on which the BTL runs; the run script copies the table next to this file. What surrounds the table
 * in the BTL is written again here: the event of a message (ofo_fsm_classify()), the generation (move_generation()), and the actions.
 * Fences are asynchronous. Control messages use two FIFO paths per direction, and are reordered, duplicated, and delayed for any time.
 *  -DNF=n      local failures (default 1), in any state, on either side
 *  -DLOSS=n    up to n control messages are lost; the timers send messages again that are still due
 *  -DREFUSE=n  up to n requests are refused (REJ)
 *  -DDEADPEER  either side may declare the other once: PEERDEAD; the rail never comes back
 *  -DLAZY      both ends begin in CLOSED
 *  -DNODUP     no duplicated messages
 *  -DGIVER     from the second failure on only side B fails, while its REQ is under way: it gives attempts up (T_conn)
 *  -DLIVE      all timers that are due fire at once when no other step is possible: for the search of infinite executions
 * Properties: I10; the check of each generation that carried data takes place before the rail is used again; when all is
 * quiet the rail is UP on both sides with one generation; no message names a generation that its receiver cannot expect.
 * Mutants: SPEC (DACK and DOWN before the fence has ended), NOACK (DOWN without waiting for the peer), LASTG (no
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
byte g[2], nf; byte ck[2] = NOCK; /* ck: older generation whose check is due */
byte fg[2];                       /* generation of the last fence */
byte wr[2];                       /* a proof of this generation (+1) has arrived */
bit val[2];                       /* proofs are in flight */
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
#define FENCING(s) (st[s]==L_DRAINING || st[s]==L_DRAINING_ACKED)
#define CONNECTING(s) (st[s]==L_REQUESTED || st[s]==L_PROVING || st[s]==L_READY || st[s]==L_CHECKING)
#define INV(s) \
  assert(!(ISUP(s) && g[1-(s)]>g[s])); \
  assert(!(ISUP(s) && st[1-(s)]==L_DOWN && g[1-(s)]==g[s])); \
  assert(!(ISUP(s) && ISUP(1-(s)) && g[s]!=g[1-(s)])); \
  assert(!(st[s]==L_DOWN && qp[1-(s)]==g[s]+1)); \
  assert(!(FENCING(s) && fg[s]<g[s])); \
  assert(!(st[s]==L_DOWN && FENCING(1-(s)) && fg[1-(s)]<=g[s]))

inline NEWQP() { assert(used[me]<=checked[me]); qp[me]=g[me]+1; val[me]=0 }
inline FENCE() { fg[me]=g[me]; qp[me]=0; val[me]=0 }
inline CHECK(cn) { if :: used[me]==(cn)+1 -> checked[me]=used[me] :: else fi }

inline LOOKUP() {
  d_step { act=0; was=st[me]; if
#define ROW(id, state, event, next, action) :: st[me]==L_##state && ev==LE_##event KEPT -> st[me]=L_##next; act=LA_##action
#include "btl_openib_rail.def"
  :: else ->                                                  /* drops a message; local events have rows */
     assert(ev==0 || t!=0);
     assert(ev!=LE_DOWN_NEWER && ev!=LE_DACK_NEWER)           /* the peer needs our DACK(g) first */
  fi;
  if
  :: act!=0 && was==L_DOWN && (ev==LE_RESTORED || ev==LE_REQ_NEXT) -> g[me]++
  :: act!=0 && (ev==LE_DOWN_NEWER || ev==LE_DACK_NEWER) ->
     if
#ifdef CKLAST
     :: was==L_ASKING -> ck[me]=g[me]
#else
     :: was==L_ASKING && ck[me]==NOCK -> ck[me]=g[me]
#endif
     :: else
     fi;
     g[me]=x
  :: ev==LE_PEERDEAD -> decl[me]=1
  :: else
  fi;
  was=0 }
}
inline ACT() {
  if
  :: act==LA_open_active -> NEWQP(); SEND(REQ,g[me])
  :: act==LA_open_passive -> NEWQP(); SEND(REP,g[me])
  :: act==LA_send_req -> SEND(REQ,g[me])
  :: act==LA_become_passive || act==LA_send_rep -> SEND(REP,g[me])
  :: act==LA_send_rej -> SEND(REJ,x)
  :: act==LA_prove_active || act==LA_prove_passive -> val[me]=1
  :: act==LA_map_and_tell -> used[me]=g[me]+1; SEND(RTU,g[me])
  :: act==LA_map -> used[me]=g[me]+1
  :: act==LA_send_rtu -> SEND(RTU,g[me])
  :: act==LA_fence_and_tell -> FENCE(); SEND(DOWN,g[me])
#ifdef NOACK
  ; st[me]=L_DOWN
#endif
  :: act==LA_fence || act==LA_fence_and_keep -> FENCE()
#ifdef SPEC
  ; st[me]=L_DOWN; SEND(DACK,g[me])
#endif
  :: act==LA_send_down -> SEND(DOWN,g[me])
  :: act==LA_down_and_dack -> SEND(DOWN,g[me]); SEND(DACK,g[me])
  :: act==LA_send_dack -> if :: t!=0 -> SEND(DACK,x) :: else -> SEND(DACK,g[me]) fi
  :: act==LA_dack_and_check -> SEND(DACK,g[me]); CHECK(g[me])
  :: act==LA_keep_and_check -> CHECK(g[me])
  :: act==LA_check_older -> if :: ck[me]==x -> ck[me]=NOCK; CHECK(x) :: else fi
  :: else
  fi;
  act=0; ev=0; t=0; x=0; INV(A); INV(B)
}
/* The event of a message. B's name is the higher. */
inline EVENT_OF() {
  d_step { ev=0; if
  :: t==DOWN && x==g[me] -> ev=LE_DOWN_SAME
  :: t==DOWN && x<g[me] -> ev=LE_DOWN_OLDER
  :: t==DOWN && x>g[me] -> ev=LE_DOWN_NEWER
  :: t==DACK && x==g[me] -> ev=LE_DACK_SAME
  :: t==DACK && x<g[me] -> ev=LE_DACK_OLDER
  :: t==DACK && x>g[me] -> ev=LE_DACK_NEWER
#ifdef LASTG
  :: t==REQ && (FENCING(me) || st[me]==L_ASKING || st[me]==L_DOWN) -> st[me]=L_DOWN; g[me]=x-1; ev=LE_REQ_NEXT
#endif
  :: t==REQ && x==g[me] -> if :: me==B -> ev=LE_REQ_YIELD :: else -> ev=LE_REQ_HOLD fi
  :: t==REQ && x>g[me] ->
     assert(FENCING(me) || st[me]==L_ASKING || st[me]==L_DOWN);
     if :: x==g[me]+1 && ck[me]==NOCK -> ev=LE_REQ_NEXT :: else fi
  :: t==REP && x==g[me] -> ev=LE_REP
  :: t==RTU && x==g[me] -> ev=LE_PEER_PROVED
  :: t==REJ && x==g[me] -> ev=LE_REJ
  :: else
  fi }
}
inline TAKE() {
  if
  :: decl[me] -> skip                                  /* the answer is PEERDEAD, see decl[1-me] in Side() */
  :: else ->
     EVENT_OF();
#ifdef REFUSE
     if
     :: ev==LE_REQ_NEXT && nrej<REFUSE -> nrej++; ev=LE_REQ_NEXT_REFUSED
     :: (ev==LE_REQ_YIELD || ev==LE_REQ_HOLD) && nrej<REFUSE -> nrej++; ev=LE_REQ_REFUSED
     :: true
     fi;
#endif
  fi
}
#define QUIETC (len(c[0])+len(c[1])+len(c[2])+len(c[3])==0)

#ifdef GIVER
#define MAYFAIL (nf==0 || (me==B && (st[B]==L_REQUESTED || st[B]==L_PROVING)))
#else
#define MAYFAIL (true)
#endif
/* A timer fires only when no message is on its way and no fence runs; otherwise the channel would only get copies. */
#ifdef LIVE
#define TICK(s) (false)
#else
#define TICK(s) (QUIETC && !FENCING(A) && !FENCING(B) && !decl[s])
#endif
#define RETRANSMITS(s) (st[s]==L_REQUESTED || st[s]==L_READY || st[s]==L_ASKING)
#define GIVENUP(s) (QUIETC && g[1-(s)]>g[s])
proctype Side(bit me) {
  mtype t, ev, act, was; byte x;
end:
  do
  :: atomic {
    if
    :: nf<NF && !decl[me] && MAYFAIL && (ISUP(me) || CONNECTING(me)) -> nf++; ev=LE_LOCAL_ERROR
    :: FENCING(me) -> ev=LE_FENCE_DONE
    :: st[me]==L_DOWN && ck[me]==NOCK && (me==A || nf>0) && !decl[me] -> ev=LE_RESTORED
    /* proofs arrive if the peer's queue pairs of this generation can receive; otherwise the attempt ends with an error */
    :: val[me] && qp[1-me]==g[me]+1 -> val[me]=0; wr[1-me]=g[me]+1; ev=LE_PROVED
    :: val[me] && qp[1-me]!=g[me]+1 -> val[me]=0; ev=LE_LOCAL_ERROR
    :: wr[me]==g[me]+1 && st[me]==L_READY -> ev=LE_PEER_PROVED                   /* before RTU */
#ifdef LAZY
    :: st[me]==L_CLOSED && !decl[me] -> ev=LE_POST
#endif
    /* T_conn: the peer has given the attempt up */
    :: CONNECTING(me) && !val[me] && GIVENUP(me) -> ev=LE_LOCAL_ERROR
    /* timers: messages that are due are sent again when no message is on its way */
    :: RETRANSMITS(me) && TICK(me) -> ev=LE_RETRANSMIT
    :: ck[me]!=NOCK && TICK(me) -> SEND(DOWN,ck[me])
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
#define ATREST(s) (decl[s] || !(RETRANSMITS(s) || FENCING(s) || ck[s]!=NOCK || st[s]==L_DOWN || st[s]==L_CLOSED))
#define REST (ATREST(A) && ATREST(B))
active proctype Monitor() {     /* when all is quiet both ends are UP with the same generation, or both have declared */
end:
  atomic { QUIETC && !FENCING(A) && !FENCING(B) && !val[0] && !val[1] && nf==NF && REST ->
    assert(decl[A]==decl[B]); assert(decl[A] || (ISUP(A) && ISUP(B) && g[A]==g[B] && qp[A]==qp[B] && qp[A]==g[A]+1)) }
}
#ifdef LIVE
inline FIRE() {
  if :: st[me]==L_ASKING && !decl[me] -> SEND(DOWN,g[me]) :: else fi;
  if :: ck[me]!=NOCK && !decl[me] -> SEND(DOWN,ck[me]) :: else fi;
  if :: st[me]==L_REQUESTED && !decl[me] -> SEND(REQ,g[me]) :: else fi;
  if :: st[me]==L_READY && !decl[me] -> SEND(REP,g[me]) :: else fi
}
active proctype Timer() { bit me;
end:
  do
  :: atomic { timeout && !REST -> me=A; FIRE(); me=B; FIRE(); me=0 }
  od
}
#endif
