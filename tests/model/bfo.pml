/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Recovery of rendezvous messages, DESIGN.txt section 7: one sender, one receiver, NR rails, NMSG messages one after the
 * other in the same request slots. States, rows and guards are those of pml_bfo_failover_{send,recv}.def, which the
 * run script copies next to this file. This file adds only the actions, the rails and the properties.
 *
 * Protocol, one of: -DP_FRAG -DP_PUT -DP_GET.  -DNR=n rails; the last rail never fails by itself, the others may at any moment.
 *  -DQUEUE     one WRITE or FRAG of the sender may wait on a software list (counted, checked again when popped)
 *  -DTWOQP     several QPs per rail: successes may follow errors on the same rail
 *  -DDOWNMSG   DOWN at any time: the side without an error maps the rail out too
 *  -DPOISON    one data descriptor may complete with poison: the FAILED rows
 *  -DDECLARE   either side may declare the other at any moment: the DEAD rows; no list survives
 *  -DALLFLAKY  the last rail may fail too: posts are suspended until a declaration (needs DECLARE) or a rejoin. With REJOIN and without
 *              DECLARE the last generation of rail 0 does not fail, and everything must arrive over it (needs DOWNMSG)
 *  -DREJOIN=n  a rail fenced on both sides comes back with a new generation, n times in all
 *  -DSOFT      once per message and side, the RTS, the ACK or the FIN of a READ, posted on a rail whose completion is still to come, is posted
 *              on another rail too: the new descriptor takes over the request, the completion of the old one concerns nobody
 *  -DHWLOSS    once, a success is false, because the receiver's HCA died between acknowledgement and completion
 * A WRITE is visible at the receiver after the FIN that follows it on its QP, or after the fence of its rail.
 * Mutants (each run must end with an error): NO_EPOCH NO_FRAGGEN NO_COUNT NO_COUNT_R NO_FENCE EARLY_RACK NO_OWNFENCE RGET_NEWFRAG
 *  NO_COUNT_READ RAIL_ABORT RTS_NORESEND NO_QCOUNT NO_HELD FIN_ANYRAIL NO_DRAIN NO_CHECK NO_DEADFENCE NO_DISCARD; with SOFT also SOFT_PUT
 *  SOFT_FIN SOFT_BOTH (the old completion counts as well); with REJOIN also NO_DEADGEN (NOTIFY names dead rails, not their generations); with
 *  ALLFLAKY and REJOIN also SU_LOST (what is suspended is dropped when a rail is back); others edit the tables.
 *
 * BTL contract: one completion per posted descriptor; OK => delivered; ERR => lost or delivered; on each QP the delivered
 * descriptors are a prefix. Delivered messages wait per rail; rails are polled in any order. A WRITE that failed may linger in the
 * fabric and execute at any later time until the fence of its target QP. */
#ifndef NR
#define NR 2
#endif
#ifndef NMSG
#define NMSG 2
#endif
#ifndef CAP
#define CAP 7
#endif
#define NX 2              /* ranges per message */
#ifndef REJOIN                          /* a generation of a rail can cause two restarts, one for the error of each side */
#define EPOCHS 6                        /* more epochs: the run has no end */
#else
#define EPOCHS (6 + 2*REJOIN)
#endif
#define S 0
#define R 1
#define Q(s,r) ((s)*NR+(r))

#ifdef SWEEP                                                  /* rows.sh removes rows, by table and line */
c_decl { \#include <stdlib.h>
  static int gone;                                          /* 1000 * table + line */
  __attribute__((constructor)) static void set_gone(void) { char *s = getenv("SWEEP"); gone = s ? atoi(s) : 0; } }
#define KEPT(table) && c_expr { gone != 1000 * table + __LINE__ }
#else
#define KEPT(table)
#endif

mtype = {
#define STATE(name, text, is_err) S_##name,
#include "pml_bfo_failover_send.def"
#define EVENT(name, kind, text) SE_##name,
#include "pml_bfo_failover_send.def"
#define ACTION(name) SA_##name,
#include "pml_bfo_failover_send.def"
#define STATE(name, text, is_err) R_##name,
#include "pml_bfo_failover_recv.def"
#define EVENT(name, kind, text) RE_##name,
#include "pml_bfo_failover_recv.def"
#define ACTION(name) RA_##name,
#include "pml_bfo_failover_recv.def"
  RTS, ACK, PUT, FRAG, FIN, NOTIFY, RACK, RNACK, RERR, WRITE, READ, DISOWNED };

/* ---- rails -------------------------------------------------------------------------------------------------- */
/* type, message (identity, for the properties), target id, originator id, epoch, x, y */
chan rx[2*NR] = [CAP] of { mtype, byte, byte, byte, byte, byte, byte };
chan cq[2*NR] = [CAP] of { mtype, byte, byte, byte, byte, byte, byte, byte };   /* + 0 error, 1 success, 2 poison */
bit up[2*NR] = 1;         /* mapped in */
bit fen[2*NR];            /* own fence done: queue pairs silent */
bit fz[NR];               /* receiver: its own fence runs */
bit bad[2*NR], lost[2*NR];
byte gen[NR];             /* generation of the rail */
bit lgv[NR]; byte lgm[NR];            /* a WRITE lingers in the fabric; its message */
byte wv[NX], wvr[NX];                 /* WRITE accepted, not yet visible: message+1, rail */
bit pd[2], decl[2];                   /* declaration due, made */
#ifdef DECLARE
bit declared_once;
#endif
#ifdef POISON
bit poisoned;
#endif
#ifdef HWLOSS
bit hwlost; byte hwrail;
#endif
#ifdef REJOIN
byte rejoins;
#endif
#ifdef SOFT
bit soft[2];              /* a second copy was made in this message */
#endif
#if defined(ALLFLAKY) || defined(DECLARE) || defined(HWLOSS)
#define SUSPEND                                               /* a side may have no rail at all */
chan su[2] = [4] of { mtype, byte, byte, byte, byte, byte, byte };              /* suspended */
#endif
#if defined(ALLFLAKY) && defined(REJOIN) && !defined(DECLARE)
#define flaky(r) ((r) != 0 || gen[0] < REJOIN)
#elif defined(ALLFLAKY)
#define flaky(r) (1)
#else
#define flaky(r) ((r) < NR-1)
#endif
#ifdef TWOQP
#define SETBAD(q) skip
#define SETLOST(q) skip
#else
#define SETBAD(q) bad[q]=1
#define SETLOST(q) lost[q]=1
#endif
#define silent(q1,q2) (fen[q1] || fen[q2])

#if NR==2
#define ANYUP(s) (up[Q(s,0)] || up[Q(s,1)])
#define ALLFEN(s) (fen[Q(s,0)] && fen[Q(s,1)])
#define quiet (len(rx[0])==0 && len(rx[1])==0 && len(rx[2])==0 && len(rx[3])==0 && len(cq[0])==0 && len(cq[1])==0 && len(cq[2])==0 && len(cq[3])==0)
#else
#define ANYUP(s) (up[Q(s,0)] || up[Q(s,1)] || up[Q(s,2)])
#define ALLFEN(s) (fen[Q(s,0)] && fen[Q(s,1)] && fen[Q(s,2)])
#define quiet (len(rx[0])==0 && len(rx[1])==0 && len(rx[2])==0 && len(rx[3])==0 && len(rx[4])==0 && len(rx[5])==0 && len(cq[0])==0 && len(cq[1])==0 && len(cq[2])==0 && len(cq[3])==0 && len(cq[4])==0 && len(cq[5])==0)
#endif

/* ---- sender ---------------------------------------------------------------------------------------------------- */
mtype ss = S_IDLE; byte sg=1, sep, sev, did, sbytes, sfg; bit sresp, sacked, srdone, sgack, sgnack, sfail;
byte nm;                  /* messages finished */
#ifdef QUEUE
bit qv; mtype qt; byte qe, qx, qy, qr, qn, qm, qd, qg;   /* one item on a software list */
#endif
/* ---- receiver -------------------------------------------------------------------------------------------------- */
mtype rs = R_NONE; byte rg=1, rep, rev, rsg, rgot, rsfg, fgen, fset; bit fout, rfail;
byte nr;                  /* messages finished */
bit sok[NMSG], good[NMSG];  /* message finished with success: at the sender, at the receiver */
byte exp;                 /* next sequence number to match */
bit uqv; byte uqg, uqrail, uqfg;                          /* unexpected RTS */
byte buf[NX];             /* visible content: message+1 */
chan held[NR] = [3] of { byte, byte, byte, byte, byte, byte };   /* FINs that wait for the fence of the rail */
byte pr;

#if NR==2
#define NOHELD (len(held[0])==0 && len(held[1])==0)
#else
#define NOHELD (len(held[0])==0 && len(held[1])==0 && len(held[2])==0)
#endif
#if defined(ALLFLAKY) && !defined(DECLARE)
#define NOSU (empty(su[S]) && empty(su[R]))
#else
#define NOSU 1
#endif
#define OVER(n,s) ((n)==NMSG || decl[s])
#define alldone (OVER(nm,S) && OVER(nr,R) && (ss==S_IDLE || ss==S_DONE) && (rs==R_NONE || rs==R_DONE) && quiet && NOHELD && NOSU && pd[S]==decl[S] && pd[R]==decl[R] && decl[S]==decl[R])

/* ---- posting ------------------------------------------------------------------------------------------------------ */
inline POSTR(ps, pl, pt, pm, pg, ph, pe, px, py) {
  if
  :: !lost[Q(ps,pl)] && !bad[Q(ps,pl)] && !silent(Q(1-(ps),pl),Q(ps,pl)) ->
       rx[Q(1-(ps),pl)]!pt,pm,pg,ph,pe,px,py; cq[Q(ps,pl)]!pt,pm,pg,ph,pe,px,py,1
  :: flaky(pl) && !lost[Q(ps,pl)] && !silent(Q(1-(ps),pl),Q(ps,pl)) ->
       rx[Q(1-(ps),pl)]!pt,pm,pg,ph,pe,px,py; cq[Q(ps,pl)]!pt,pm,pg,ph,pe,px,py,0; SETBAD(Q(ps,pl))
  :: flaky(pl) || silent(Q(1-(ps),pl),Q(ps,pl)) ->
       cq[Q(ps,pl)]!pt,pm,pg,ph,pe,px,py,0; SETBAD(Q(ps,pl)); SETLOST(Q(ps,pl))
#ifdef POISON
  :: flaky(pl) && !poisoned && (pt==FRAG || pt==ACK || pt==PUT) -> poisoned=1;      /* its QP is in error; it was not sent */
       cq[Q(ps,pl)]!pt,pm,pg,ph,pe,px,py,2; SETBAD(Q(ps,pl)); SETLOST(Q(ps,pl))
#endif
#ifdef HWLOSS
  :: flaky(pl) && !hwlost && ps==S && !lost[Q(ps,pl)] && !bad[Q(ps,pl)] && !silent(Q(1-(ps),pl),Q(ps,pl)) ->
       hwlost=1; hwrail=pl; cq[Q(ps,pl)]!pt,pm,pg,ph,pe,px,py,1; lost[Q(ps,pl)]=1; bad[Q(ps,pl)]=1;
       lost[Q(1-(ps),pl)]=1; bad[Q(1-(ps),pl)]=1
#endif
  fi
}
inline PICK(ks) {
  if
  :: up[Q(ks,0)] -> pr=0
  :: up[Q(ks,1)] -> pr=1
#if NR>2
  :: up[Q(ks,2)] -> pr=2
#endif
  fi
}
inline POST(zs, zt, zm, zg, zh, ze, zx, zy) {
  if
  :: ANYUP(zs) -> PICK(zs); POSTR(zs, pr, zt, zm, zg, zh, ze, zx, zy)
#ifdef SUSPEND
  :: !ANYUP(zs) && zt!=FRAG -> su[zs]!zt,zm,zg,zh,ze,zx,zy
  :: !ANYUP(zs) && zt==FRAG -> cq[Q(zs,0)]!zt,zm,zg,zh,ze,zx,zy,0               /* refused */
#endif
  fi;
  pr=0
}
inline MAPOUT(ms, mr) {
  up[Q(ms,mr)]=0;
  if
  :: ms==S -> fen[Q(ms,mr)]=1
  :: ms==R && !fen[Q(ms,mr)] -> fz[mr]=1
  :: else
  fi
}
inline DECLARED(ds) {
  decl[ds]=1; pd[ds]=1; pd[1-(ds)]=1; MAPOUT(ds,0); MAPOUT(ds,1);
#if NR>2
  MAPOUT(ds,2);
#endif
}
/* NOTIFY: per rail the number of its dead generations, 2 bits each; bit 6 FAILED */
#ifdef NO_DEADGEN
#define DEADG(s,r) (1-up[Q(s,r)])
#else
#define DEADG(s,r) (gen[r]+(1-up[Q(s,r)]))
#endif
#if NR==2
#define DEADSET(s) (DEADG(s,0) + 4*DEADG(s,1))
#else
#define DEADSET(s) (DEADG(s,0) + 4*DEADG(s,1) + 16*DEADG(s,2))
#endif
#define ENTRY(v,r) (((v) >> (2*(r))) & 3)
#define GFENCED(r,n) (gen[r]>=(n) || (gen[r]==(n)-1 && fen[Q(R,r)]))              /* the first n generations are fenced */
#define DOWNED(mask,r) if :: ENTRY(mask,r)==gen[r]+1 && up[Q(R,r)] -> MAPOUT(R,r) :: else fi
#if NR==2
#define FSET (GFENCED(0,ENTRY(fset,0)) && GFENCED(1,ENTRY(fset,1)))
#define NOFZ (!fz[0] && !fz[1])
#else
#define FSET (GFENCED(0,ENTRY(fset,0)) && GFENCED(1,ENTRY(fset,1)) && GFENCED(2,ENTRY(fset,2)))
#define NOFZ (!fz[0] && !fz[1] && !fz[2])
#endif
inline DOWNSET(mask) {
#ifdef NO_FENCE
  skip
#else
  DOWNED(mask,0); DOWNED(mask,1)
#if NR>2
  ; DOWNED(mask,2)
#endif
#endif
}
/* FIN of a WRITE: x = range + 4*rail + 16*generation + 64*RESENT */
#define FRANGE(x) ((x) & 3)
#define FRAIL(x) (((x) >> 2) & 3)
#define FGEN(x) (((x) >> 4) & 3)
#define FRESENT(x) ((x) >> 6)
#define RESENTX(x) (((x) & 63) + 64)
inline POSTFIN(fr, fm, fg, fh, fe, fx, fy) {
  if
#ifdef FIN_ANYRAIL
  :: ANYUP(S) -> POST(S, FIN, fm, fg, fh, fe, fx, fy)
#else
  :: up[Q(S,fr)] && gen[fr]==FGEN(fx) -> POSTR(S, fr, FIN, fm, fg, fh, fe, fx, fy)
#endif
  :: !up[Q(S,fr)] || gen[fr]!=FGEN(fx) -> POST(S, FIN, fm, fg, fh, fe, RESENTX(fx), fy)
  fi
}
inline WRITEOP(wr, wx, wy) {
  if
  :: !lost[Q(S,wr)] && !bad[Q(S,wr)] && !silent(Q(R,wr),Q(S,wr)) ->
       assert(nr==nm && rs!=R_NONE && rs!=R_UNMATCHED && rs!=R_DONE);              /* I6 */
       wv[wx]=nm+1; wvr[wx]=wr; cq[Q(S,wr)]!WRITE,nm,did,sg,sep,wx,wy,1
  :: flaky(wr) && !lost[Q(S,wr)] && !silent(Q(R,wr),Q(S,wr)) ->
       assert(nr==nm && rs!=R_NONE && rs!=R_UNMATCHED && rs!=R_DONE);
       wv[wx]=nm+1; wvr[wx]=wr; cq[Q(S,wr)]!WRITE,nm,did,sg,sep,wx,wy,0; SETBAD(Q(S,wr))
  :: flaky(wr) && !lost[Q(S,wr)] && !silent(Q(R,wr),Q(S,wr)) && !lgv[wr] ->
       lgv[wr]=1; lgm[wr]=nm; cq[Q(S,wr)]!WRITE,nm,did,sg,sep,wx,wy,0; SETBAD(Q(S,wr))
  :: flaky(wr) || silent(Q(R,wr),Q(S,wr)) ->
       cq[Q(S,wr)]!WRITE,nm,did,sg,sep,wx,wy,0; SETBAD(Q(S,wr)); SETLOST(Q(S,wr))
#ifdef POISON
  :: flaky(wr) && !poisoned -> poisoned=1; cq[Q(S,wr)]!WRITE,nm,did,sg,sep,wx,wy,2; SETBAD(Q(S,wr)); SETLOST(Q(S,wr))
#endif
  fi
}

/* ---- second copies: no work of rail kr ends at side ks, and another rail is UP. Posted there as it was, without a look at the request -- */
#ifdef SOFT_BOTH
#define OLD_TYPE(kt) kt                                          /* it keeps its callback */
#else
#define OLD_TYPE(kt) DISOWNED
#endif
#ifdef SOFT
#define SOFTEN(ks, kr, kt) \
    :: !soft[ks] && up[Q(ks,kr)] && cq[Q(ks,kr)]??[kt,_,_,_,_,_,_,_] && OTHERUP(ks,kr) -> soft[ks]=1; \
       cq[Q(ks,kr)]??kt,m,g,h,e,x,y,ok; cq[Q(ks,kr)]!OLD_TYPE(kt),m,g,h,e,x,y,ok; \
       if \
       :: kr!=0 && up[Q(ks,0)] -> POSTR(ks,0,kt,m,g,h,e,x,y) \
       :: kr!=1 && up[Q(ks,1)] -> POSTR(ks,1,kt,m,g,h,e,x,y) \
       fi
#define OTHERUP(s,r) ((r!=0 && up[Q(s,0)]) || (r!=1 && up[Q(s,1)]))
#endif

/* ==== sender: table ================================================================================================ */
inline S_LOOKUP() {
  d_step { if
#define ROW(id, state, event, next, act) :: ss==S_##state && ev==SE_##event KEPT(0) -> ss=S_##next; ac=SA_##act
#define ROW_ZERO(id, state, event, next, act) :: ss==S_##state && ev==SE_##event KEPT(0) -> ss=S_##next; sep=0; ac=SA_##act
#define ROW_NEXT(id, state, event, next, act) :: ss==S_##state && ev==SE_##event KEPT(0) -> ss=S_##next; sep++; ac=SA_##act
#include "pml_bfo_failover_send.def"
  :: else -> ac=0; assert(!done && !gd && ev!=SE_START)       /* drops a message; completions and guards have rows */
  fi }
}
#ifdef SOFT
#define SOFT_RESET(s) soft[s]=0
#else
#define SOFT_RESET(s) skip
#endif
#define events sev
#define rts_done srdone
#define resp sresp
#define all_bytes (sbytes==NX)
#define got_ack sgack
#define got_nack sgnack
#define epochs_left 1
#ifdef NO_DEADFENCE
#define peer_fenced 1
#else
#define peer_fenced ALLFEN(S)
#endif
inline S_GUARDS() {
  d_step { if
#define GUARD(id, state, event, condition) :: ss==S_##state && (condition) KEPT(0) -> ev=SE_##event
#include "pml_bfo_failover_send.def"
  :: else -> ev=0
  fi; gd=(ev!=0) }
}
#undef events
#undef rts_done
#undef resp
#undef all_bytes
#undef got_ack
#undef got_nack
#undef epochs_left
#undef peer_fenced

inline S_RESET() { SOFT_RESET(S); sep=0; did=0; sbytes=0; sresp=0; sacked=0; srdone=0; sgack=0; sgnack=0; sfail=0 }
inline S_FINISH() { sg++; sfg++; nm++; S_RESET() }
#ifdef NO_COUNT
#define NCOUNT skip
#else
#define NCOUNT sev++
#endif

/* ---- sender: actions; t m g h e x y ok belong to the message or completion, rr is its rail -------------------------- */
inline S_ACT() {
  if
  :: ac==SA_post_rts -> POST(S,RTS,nm,0,sg,sep,0,sfg); sev++
  :: ac==SA_count_rts -> srdone=1
  :: ac==SA_resend_rts ->
#ifdef RTS_NORESEND
     if :: sep>0 -> srdone=1 :: else ->
#endif
#ifdef RGET_NEWFRAG
     sfg++;
#endif
     POST(S,RTS,m,g,h,e,x,sfg); sev++
#ifdef RTS_NORESEND
     fi
#endif
  :: ac==SA_take_ack -> assert(m==nm && e==sep); did=h; sresp=1; sacked=1;                 /* I5 */
     POST(S,FRAG,nm,did,sg,sep,0,0); sev++;
     if
#ifdef QUEUE
     :: !qv -> QPUT(FRAG,1,0,0)                                                             /* out of resource */
#endif
     :: POST(S,FRAG,nm,did,sg,sep,1,0); sev++
     fi
  :: ac==SA_take_put -> assert(m==nm && e==sep); did=h; sresp=1;
     if
#ifdef QUEUE
     :: !qv -> QPUT(WRITE,x,y,rr)
#endif
     :: WRITEOP(rr,x,y); sev++
     fi
  :: ac==SA_take_dst -> assert(m==nm && e==sep); did=h; sresp=1
  :: ac==SA_count_frag -> sbytes++
  :: ac==SA_count_write_post_fin -> sbytes++; POSTFIN(rr,m,g,h,e,x+4*rr+16*gen[rr],y)
  :: ac==SA_set_fail -> sfail=1
  :: ac==SA_take_fin -> assert(m==nm); sresp=1; sbytes=NX
  :: ac==SA_take_rerr -> assert(m==nm && e==sep); did=h; sresp=1; sfail=(sfail || x)
  :: ac==SA_post_notify -> assert(did!=0); sgack=0; sgnack=0;                               /* I8 */
     POST(S,NOTIFY,nm,did,sg,sep+1,DEADSET(S)+64*sfail,0); NCOUNT
  :: ac==SA_resend_notify -> POST(S,NOTIFY,nm,did,sg,sep+1,DEADSET(S)+64*sfail,0); NCOUNT
  :: ac==SA_note_rack -> assert(m==nm); sgack=1
  :: ac==SA_note_nack -> assert(m==nm && nr>m); sgnack=1; sfail=(sfail || x)                /* I7 */
  :: ac==SA_restart -> assert(sep<EPOCHS); sfg++; sbytes=0; sresp=0; sacked=0; srdone=0; sgack=0; sgnack=0;   /* I9 */
     POST(S,RTS,nm,did,sg,sep,1,sfg); sev++
  :: ac==SA_die -> skip;
#ifdef QUEUE
     if :: qv -> QCLEAR();
#ifndef NO_DISCARD
     sev--
#endif
     :: else fi;
#endif
#ifdef SUSPEND
     SUCLEAR(S,sev)
#else
     skip
#endif
  :: ac==SA_declare_peer -> pd[S]=1
  :: ac==SA_complete -> sok[nm]=1-sfail; S_FINISH()
  :: ac==SA_complete_dead -> S_FINISH()
  :: else                                                                                   /* none, drop_stale */
  fi
}
#ifdef SUSPEND
inline SUCLEAR(us, counter) {
  do
  :: nempty(su[us]) -> su[us]?t,_,_,_,_,_,_;
     if :: t!=FIN && t!=RNACK -> counter-- :: else fi
  :: empty(su[us]) -> break
  od
}
#endif
#ifdef QUEUE
inline QPUT(a, b, c, d) {
  qv=1; qt=a; qe=sep; qx=b; qy=c; qr=d; qn=gen[d]; qm=nm; qd=did; qg=sg;
#ifndef NO_QCOUNT
  sev++
#endif
}
inline QCLEAR() { qv=0; qt=0; qe=0; qx=0; qy=0; qr=0; qn=0; qm=0; qd=0; qg=0 }
/* DESIGN.txt section 9 rule 2: an item is posted only in STREAM of its epoch, a WRITE only on its rail of its generation */
inline QPOP() {
#ifdef NO_QCOUNT
  if
  :: qt==WRITE && up[Q(S,qr)] && !fen[Q(R,qr)] -> assert(nr==qm && rs!=R_NONE && rs!=R_UNMATCHED && rs!=R_DONE);
       wv[qx]=qm+1; wvr[qx]=qr; cq[Q(S,qr)]!WRITE,qm,qd,qg,qe,qx,qy,1; sev++
  :: qt==FRAG -> POST(S,FRAG,qm,qd,qg,qe,qx,qy); sev++
  :: else
  fi;
#else
  assert(qg==sg);
  if
  :: ss==S_STREAM && qe==sep && qt==FRAG -> POST(S,FRAG,nm,did,sg,sep,qx,qy)
  :: ss==S_STREAM && qe==sep && qt==WRITE && up[Q(S,qr)] && gen[qr]==qn -> WRITEOP(qr,qx,qy)
  :: ss==S_STREAM && qe==sep && qt==WRITE && !(up[Q(S,qr)] && gen[qr]==qn) -> ev=SE_DATA_ERR; done=1
  :: else -> ev=SE_DISCARDED; done=1
  fi;
#endif
  QCLEAR()
}
#endif

/* ---- sender: messages and completions, as events ------------------------------------------------------------------- */
inline S_MESSAGE() {
  if
  :: decl[S] -> ev=0                                          /* messages of a declared peer are dropped */
  :: else ->
  if
#ifdef NO_EPOCH
  :: t==ACK -> ev=SE_ACK
  :: t==PUT -> if :: up[Q(S,rr)] -> ev=SE_PUT :: else -> ev=SE_PUT_RAIL_DOWN fi
#else
  :: (t==ACK || t==PUT || t==RERR) && g==sg && e!=sep -> ev=SE_STALE
  :: t==ACK && g==sg && e==sep -> if :: !sacked -> ev=SE_ACK :: else -> ev=SE_STALE fi
  :: t==PUT && g==sg && e==sep -> if :: up[Q(S,rr)] -> ev=SE_PUT :: else -> ev=SE_PUT_RAIL_DOWN fi
#endif
  :: t==RERR && g==sg && e==sep -> ev=SE_RERR
  :: t==FIN && y==sfg -> ev=SE_FIN
  :: t==RACK && g==sg && e==sep+1 -> ev=SE_RACK
  :: t==RNACK && g==sg && e==sep+1 -> ev=SE_NACK
  :: (t==RACK || t==RNACK) && g==sg && e!=sep+1 -> ev=SE_STALE
  :: else -> ev=0                                             /* stale id */
  fi
  fi
}
inline S_COMPLETION() {
  if :: ok!=1 && up[Q(S,rr)] -> MAPOUT(S,rr) :: else fi;      /* error_cb: the rail is mapped out before the callback */
  done=1;
  if
  :: t==DISOWNED -> done=0; ev=0
  :: t==FIN -> done=0; ev=0;                                  /* belongs to no request */
     if :: !ok && !decl[S] -> POST(S,FIN,m,g,h,e,RESENTX(x),y) :: else fi
  :: t==NOTIFY -> assert(h==sg && e==sep+1 && (ss==S_NOTIFIED || ss==S_DEAD));              /* I4 */
#ifdef NO_COUNT
     done=0;
#endif
     if
     :: ok==1 -> ev=SE_NOTIFY_OK
     :: ok!=1 && !sgack && !sgnack -> ev=SE_NOTIFY_ERR_UNANSWERED
     :: ok!=1 && (sgack || sgnack) -> ev=SE_NOTIFY_ERR_ANSWERED
     fi
  :: t==RTS -> assert(h==sg && e==sep);
     if
     :: ok==1 -> ev=SE_RTS_OK
     :: ok!=1 && !sresp -> ev=SE_RTS_ERR_UNANSWERED
     :: ok!=1 && sresp -> ev=SE_RTS_ERR_ANSWERED
     fi
  :: t==FRAG || t==WRITE -> assert(h==sg && e==sep);
     if
     :: ok==1 && t==FRAG -> ev=SE_FRAG_OK
     :: ok==1 && t==WRITE -> ev=SE_WRITE_OK
     :: ok==0 -> ev=SE_DATA_ERR
     :: ok==2 -> ev=SE_DATA_POISON
     fi
  fi
}
inline CLEAR() { t=0; m=0; g=0; h=0; e=0; x=0; y=0; ok=0; rr=0; ev=0; ac=0; done=0; gd=0; pr=0 }
#define S_IN(r) \
    :: nempty(rx[Q(S,r)]) -> rx[Q(S,r)]?t,m,g,h,e,x,y; rr=r; S_MESSAGE() \
    :: nempty(cq[Q(S,r)]) -> cq[Q(S,r)]?t,m,g,h,e,x,y,ok; rr=r; S_COMPLETION()

active proctype Sender() {
  mtype t, ev, ac; byte m, g, h, e, x, y, ok, rr; bit done, gd;    /* done: the event is a completion; gd: a guard raised it */
  do
  :: atomic {
    if
    :: (ss==S_IDLE || ss==S_DONE) && nm<NMSG && !decl[S] -> ev=SE_START
#if defined(SOFT) && !defined(P_GET)
    SOFTEN(S,0,RTS)
    SOFTEN(S,1,RTS)
#endif
#ifdef SOFT_FIN
    SOFTEN(S,0,FIN)
#endif
    S_IN(0)
    S_IN(1)
#if NR>2
    S_IN(2)
#endif
#ifdef QUEUE
    :: qv -> QPOP()
#endif
#ifdef SUSPEND
    :: nempty(su[S]) && ANYUP(S) -> su[S]?t,m,g,h,e,x,y;      /* popped: checked again */
       if
#ifdef SU_LOST
       :: t!=FIN -> sev--
#endif
       :: t==FIN -> POST(S,FIN,m,g,h,e,x,y)
       :: t==RTS && ss==S_RTS && e==sep -> POST(S,RTS,m,g,h,e,x,y)
       :: t==NOTIFY && ss==S_NOTIFIED && e==sep+1 -> POST(S,NOTIFY,m,g,h,e,DEADSET(S)+64*sfail,0)
       :: else -> ev=SE_DISCARDED; done=1
       fi
#endif
    :: pd[S] && !decl[S] -> DECLARED(S);
       if :: ss!=S_IDLE && ss!=S_DONE -> ev=SE_PEER_DECLARED :: else fi
#ifdef DECLARE
    :: !declared_once && !(alldone) && !decl[S] -> declared_once=1; pd[S]=1
#endif
    fi;
    do
    :: ev!=0 -> S_LOOKUP(); S_ACT(); if :: done -> sev--; done=0 :: else fi; S_GUARDS()
    :: else -> break
    od;
    CLEAR() }
  :: atomic { alldone -> break }
  od
}

/* ==== receiver: table ================================================================================================ */
inline R_LOOKUP() {
  d_step { if
#define ROW(id, state, event, next, act) :: rs==R_##state && ev==RE_##event KEPT(1) -> rs=R_##next; ac=RA_##act
#define ROW_ZERO(id, state, event, next, act) :: rs==R_##state && ev==RE_##event KEPT(1) -> rs=R_##next; rep=0; ac=RA_##act
#define ROW_NEXT(id, state, event, next, act) :: rs==R_##state && ev==RE_##event KEPT(1) -> rs=R_##next; rep++; ac=RA_##act
#include "pml_bfo_failover_recv.def"
  :: else -> ac=0; assert(!done && !gd && ev!=RE_POST && ev!=RE_MATCHED)
  fi }
}
#define events rev
#define all_bytes (rgot==NX)
#define fail rfail
#ifdef THREADS
#define threads 1
#else
#define threads 0
#endif
#ifdef EARLY_RACK
#define fences_done 1
#elif defined(NO_OWNFENCE)
#define fences_done FSET
#else
#define fences_done (FSET && NOFZ)
#endif
#ifdef NO_DEADFENCE
#define peer_fenced 1
#else
#define peer_fenced ALLFEN(R)
#endif
inline R_GUARDS() {
  d_step { if
#define GUARD(id, state, event, condition) :: rs==R_##state && (condition) KEPT(1) -> ev=RE_##event
#include "pml_bfo_failover_recv.def"
  :: else -> ev=0
  fi; gd=(ev!=0) }
}
#undef events
#undef all_bytes
#undef fail
#undef threads
#undef fences_done
#undef peer_fenced
#ifdef NO_COUNT_R
#define RCOUNT skip
#else
#define RCOUNT rev++
#endif

/* ---- receiver: actions -------------------------------------------------------------------------------------------------- */
inline R_FREEFRAG() { fout=0; fgen++ }
inline R_PUT() { fout=1; fgen++;
  if
  :: ANYUP(R) -> PICK(R); POSTR(R,pr,PUT,nr,rsg,rg,rep,rgot,fgen); pr=0
#ifdef SUSPEND
  :: !ANYUP(R) -> su[R]!PUT,nr,rsg,rg,rep,rgot,fgen
#endif
  fi; rev++ }
inline R_READ(r, i) {
  if
  :: !lost[Q(R,r)] && !bad[Q(R,r)] && !silent(Q(S,r),Q(R,r)) ->
       assert(nm==nr && ss!=S_IDLE && ss!=S_DONE); cq[Q(R,r)]!READ,nr,rsg,rg,rep,i,rsfg,1
  :: flaky(r) || silent(Q(S,r),Q(R,r)) -> cq[Q(R,r)]!READ,nr,rsg,rg,rep,i,rsfg,0; SETBAD(Q(R,r))
#ifdef POISON
  :: flaky(r) && !poisoned -> poisoned=1; cq[Q(R,r)]!READ,nr,rsg,rg,rep,i,rsfg,2; SETBAD(Q(R,r)); SETLOST(Q(R,r))
#endif
  fi;
#ifndef NO_COUNT_READ
  rev++
#endif
}
/* The adapter may read the sender's buffer until the READ completes, and the sender may change the buffer when it is done. A sender that has
 * declared the receiver is done after its fences; no READ is answered from then on. */
inline R_READ_OK(i) { if :: decl[S] || (nm==nr && ss!=S_IDLE && ss!=S_DONE) -> buf[i]=nr+1 :: else -> buf[i]=0 fi }
inline R_FINISH() { SOFT_RESET(R); rg++; nr++; rgot=0; rep=0; rsfg=0; rsg=0; fset=0; rfail=0; R_FREEFRAG(); buf[0]=0; buf[1]=0;
  wv[0]=0; wv[1]=0; wvr[0]=0; wvr[1]=0 }
#define R_WHOLE (buf[0]==nr+1 && buf[1]==nr+1)                                               /* I1 */
inline R_ACT() {
  if
  :: ac==RA_accept ->
     if :: t==RTS -> rsfg=y; rgot=0 :: else -> rsg=uqg; rsfg=uqfg; rr=uqrail; rgot=0; uqv=0; uqg=0; uqrail=0; uqfg=0 fi;
#ifdef P_FRAG
     POST(R,ACK,nr,rsg,rg,rep,0,0); rev++
#endif
#ifdef P_PUT
     R_PUT()
#endif
#ifdef P_GET
     if
     :: ANYUP(R) -> PICK(R); R_READ(pr,0); PICK(R); R_READ(pr,1); pr=0            /* the RGET names all rails: a READ of each range */
     :: !up[Q(R,rr)] ->                                                           /* it names the rail that it came by */
#ifdef RAIL_ABORT
        skip
#else
        nev=RE_RAIL_DOWN
#endif
     fi
#endif
  :: ac==RA_take_frag -> assert(m==nr); buf[x]=m+1; rgot++
  :: ac==RA_take_fin_more || ac==RA_take_fin ->
#ifndef NO_FRAGGEN
     assert(m==nr && FRANGE(x)==rgot);
#endif
     if
     :: wv[FRANGE(x)]!=0 && rr==wvr[FRANGE(x)] && !FRESENT(x) -> buf[FRANGE(x)]=wv[FRANGE(x)]   /* after its WRITE */
     :: else
     fi;
     rgot++; R_FREEFRAG();
     if :: ac==RA_take_fin_more && rgot<NX -> R_PUT() :: else fi
  :: ac==RA_hold_fin -> if :: gen[FRAIL(x)]==FGEN(x) && up[Q(R,FRAIL(x))] -> MAPOUT(R,FRAIL(x)) :: else fi;
     held[FRAIL(x)]!m,g,h,e,x,y
  :: ac==RA_count_read -> rgot++
  :: ac==RA_count_read_post_fin -> rgot=NX; POST(R,FIN,m,g,h,e,0,y)
  :: ac==RA_post_rerr || ac==RA_resend_rerr -> POST(R,RERR,nr,rsg,rg,rep,rfail,0); RCOUNT
  :: ac==RA_fail_post_rerr -> rfail=1; POST(R,RERR,nr,rsg,rg,rep,rfail,0); RCOUNT
  :: ac==RA_set_fail -> rfail=1
  :: ac==RA_enter_quiesce -> assert(m==nr); rfail=(rfail || (x & 64));
#ifndef NO_FENCE
     fset=(x & 63);
#endif
     DOWNSET(x)
  :: ac==RA_repeat_down -> DOWNSET(x)
  :: ac==RA_complete -> assert(R_WHOLE); good[nr]=1; R_FINISH()
  :: ac==RA_post_nack_complete -> assert(R_WHOLE); POST(R,RNACK,nr,rsg,rg,rep+1,0,0); good[nr]=1; R_FINISH()
  :: ac==RA_grant_restart -> assert(rep<EPOCHS+1); fset=0; rgot=0; R_FREEFRAG(); POST(R,RACK,nr,rsg,rg,rep,0,0); RCOUNT
  :: ac==RA_post_nack_failed -> POST(R,RNACK,nr,rsg,rg,rep+1,1,0); R_FINISH()
  :: ac==RA_resend_rack -> POST(R,RACK,nr,rsg,rg,rep,0,0); RCOUNT
  :: ac==RA_answer_gone -> assert(m<nr); POST(R,RNACK,m,h,g,e,0,0)
  :: ac==RA_die -> skip;
#ifdef SUSPEND
     SUCLEAR(R,rev)
#else
     skip
#endif
  :: ac==RA_declare_peer -> pd[R]=1
  :: ac==RA_complete_dead -> R_FINISH()
  :: else                                                                                    /* none, reset, drop_stale */
  fi
}

/* ---- receiver: messages and completions, as events ------------------------------------------------------------------------- */
#define R_OPEN (rs!=R_NONE && rs!=R_DONE)
inline R_FIN() {
  if
#ifdef NO_FRAGGEN
  :: R_OPEN && e==rep && fout && FRANGE(x)<=rgot ->
#else
  :: R_OPEN && fout && y==fgen ->
#endif
#ifdef NO_HELD
     ev=RE_FIN
#else
     if
     :: FRESENT(x) && !GFENCED(FRAIL(x),FGEN(x)+1) -> ev=RE_FIN_UNFENCED
     :: else -> ev=RE_FIN
     fi
#endif
  :: else -> ev=0                                              /* stale frag id */
  fi
}
inline R_MESSAGE() {
  if
  :: decl[R] -> ev=0
  :: else ->
  if
  :: t==RTS && x==0 -> ev=0;                                   /* R1: sequence number, unexpected queue */
     if :: m<exp :: m==exp -> exp++; assert(!uqv); uqv=1; uqg=h; uqrail=rr; uqfg=y fi
  :: t==RTS && x==1 && g==rg -> if :: e==rep -> ev=RE_RTS_RESTART :: else -> ev=RE_STALE fi
  :: t==FRAG && g==rg ->
#ifdef NO_EPOCH
     ev=RE_FRAG
#else
     if :: e==rep -> ev=RE_FRAG :: else -> ev=RE_STALE fi
#endif
  :: t==FIN -> R_FIN()
  :: t==NOTIFY && g==rg -> if :: e==rep+1 -> ev=RE_NOTIFY :: e==rep -> ev=RE_NOTIFY_COPY :: else -> ev=RE_STALE fi
  :: t==NOTIFY && g!=rg -> ev=0; assert(m<nr); POST(R,RNACK,m,h,g,e,0,0)   /* R15: its request is gone */
  :: else -> ev=0
  fi
  fi
}
inline R_COMPLETION() {
  if :: ok!=1 && up[Q(R,rr)] -> MAPOUT(R,rr) :: else fi;
  done=1;
  if
  :: t==DISOWNED -> done=0; ev=0
#ifdef NO_COUNT_READ
  :: t==READ && (h!=rg || e!=rep) -> done=0; ev=0; assert(ok!=1)                /* it was written into a buffer that the request has given back */
#endif
  :: t==FIN || t==RNACK -> done=0; ev=0; if :: !ok && !decl[R] -> POST(R,t,m,g,h,e,x,y) :: else fi
  :: t==RACK -> 
#ifdef NO_COUNT_R
     done=0; if :: !ok -> assert(h==rg) :: else fi;
     if :: !ok && rs==R_WAITRTS && e==rep -> ev=RE_RACK_ERR :: else -> ev=0 fi
#else
     assert(h==rg); if :: ok -> ev=RE_RACK_OK :: else -> ev=RE_RACK_ERR fi
#endif
  :: t==RERR ->
#ifdef NO_COUNT_R
     done=0; if :: !ok -> assert(h==rg) :: else fi;
     if :: !ok && rs==R_ERRL && e==rep -> ev=RE_RERR_ERR :: else -> ev=0 fi
#else
     assert(h==rg && e==rep); if :: ok -> ev=RE_RERR_OK :: else -> ev=RE_RERR_ERR fi
#endif
  :: (t==ACK || t==PUT || t==READ) && h==rg && e==rep ->
#ifdef NO_COUNT_READ
     if :: t==READ -> done=0 :: else fi;
#endif
     if
     :: ok==1 && t==READ -> R_READ_OK(x); if :: rgot+1<NX -> ev=RE_READ_OK :: else -> ev=RE_READ_ALL_OK fi
     :: ok==1 && t!=READ -> ev=RE_RESPONSE_OK
     :: ok==0 -> ev=RE_RESPONSE_ERR
     :: ok==2 -> ev=RE_RESPONSE_POISON
     fi
  fi
}
#define VISIBLE(i,r) if :: wv[i]!=0 && wvr[i]==r -> buf[i]=wv[i] :: else fi
#ifdef NO_DRAIN
#define LOSE(r) do :: nempty(rx[Q(R,r)]) -> rx[Q(R,r)]?_,_,_,_,_,_,_ :: else -> break od
#else
#define LOSE(r) skip
#endif
#define HELD(r) \
    :: nempty(held[r]) && fen[Q(R,r)] -> held[r]?m,g,h,e,x,y; rr=NR; if :: !decl[R] -> t=FIN; R_FIN() :: else fi
#define R_IN(r) \
    :: nempty(rx[Q(R,r)]) -> rx[Q(R,r)]?t,m,g,h,e,x,y; rr=r; R_MESSAGE() \
    :: nempty(cq[Q(R,r)]) -> cq[Q(R,r)]?t,m,g,h,e,x,y,ok; rr=r; R_COMPLETION() \
    :: fz[r] -> fz[r]=0; fen[Q(R,r)]=1; LOSE(r); VISIBLE(0,r); VISIBLE(1,r); R_GUARDS()      /* fence_done */

#ifdef STRICT_FAIL
#define KNOWN(i) (!sok[i] || good[i] || decl[R])               /* success at the sender implies success at the receiver */
#else
#define KNOWN(i) (!sok[i] || nr>i || decl[R])                  /* I3 */
#endif
active proctype Receiver() {
  mtype t, ev, nev, ac; byte m, g, h, e, x, y, ok, rr; bit done, gd;
  do
  :: atomic {
    if
    :: (rs==R_NONE || rs==R_DONE) && nr<NMSG && !decl[R] -> ev=RE_POST
#if defined(SOFT) && defined(P_FRAG)
    SOFTEN(R,0,ACK)
    SOFTEN(R,1,ACK)
#endif
#if defined(SOFT) && defined(P_GET)
    SOFTEN(R,0,FIN)
    SOFTEN(R,1,FIN)
#endif
#ifdef SOFT_PUT
    SOFTEN(R,0,PUT)
#endif
    :: rs==R_UNMATCHED && uqv -> ev=RE_MATCHED
    R_IN(0)
    R_IN(1)
#if NR>2
    R_IN(2)
#endif
    HELD(0)
    HELD(1)
#if NR>2
    HELD(2)
#endif
#ifdef SUSPEND
    :: nempty(su[R]) && ANYUP(R) -> su[R]?t,m,g,h,e,x,y;
       if
       :: t==FIN || t==RNACK -> POST(R,t,m,g,h,e,x,y)
       :: (t==ACK || t==PUT) && rs==R_ACTIVE && e==rep -> POST(R,t,m,g,h,e,x,y)
       :: t==RERR && rs==R_ERRL && e==rep -> POST(R,t,m,g,h,e,rfail,y)
       :: t==RACK && rs==R_WAITRTS && e==rep -> POST(R,t,m,g,h,e,x,y)
       :: else -> ev=RE_DISCARDED; done=1
       fi
#endif
    :: pd[R] && !decl[R] -> DECLARED(R); if :: R_OPEN -> ev=RE_PEER_DECLARED :: else fi
#ifdef DECLARE
    :: !declared_once && !(alldone) && !decl[R] -> declared_once=1; pd[R]=1
#endif
#ifdef DOWNMSG
    :: !up[Q(S,0)] && up[Q(R,0)] -> MAPOUT(R,0)
    :: up[Q(S,0)] && !up[Q(R,0)] -> MAPOUT(S,0)
#endif
#ifdef HWLOSS
    :: hwlost && !(alldone) && up[Q(R,hwrail)] -> MAPOUT(R,hwrail)           /* the receiver's own port event */
#ifndef NO_CHECK
    :: hwlost && !(alldone) && fen[Q(R,hwrail)] && !pd[R] && !pd[S] -> pd[R]=1     /* counts compared: a loss */
#endif
#endif
#ifdef REJOIN
    :: rejoins<REJOIN && empty(held[0]) && !decl[S] && !decl[R] && fen[Q(S,0)] && fen[Q(R,0)] && empty(rx[Q(S,0)]) && empty(rx[Q(R,0)]) && empty(cq[Q(S,0)]) && empty(cq[Q(R,0)]) ->
       rejoins++; gen[0]++; up[Q(S,0)]=1; up[Q(R,0)]=1; fen[Q(S,0)]=0; fen[Q(R,0)]=0;
       bad[Q(S,0)]=0; bad[Q(R,0)]=0; lost[Q(S,0)]=0; lost[Q(R,0)]=0; lgv[0]=0; lgm[0]=0
#endif
    fi;
    do
    :: ev!=0 -> R_LOOKUP(); nev=0; R_ACT(); if :: done -> rev--; done=0 :: else fi;
       if :: nev!=0 -> ev=nev; gd=0 :: else -> R_GUARDS() fi
    :: else -> break
    od;
    nev=0; CLEAR() }
  :: atomic { alldone -> m=0; do :: m<NMSG -> assert(KNOWN(m)); m++ :: else -> break od; m=0; break }
  od
}

/* ---- the fabric: a lingering WRITE executes late, unless its target QP is fenced --------------------------------------------- */
#define LINGER(r) :: atomic { lgv[r] -> lgv[r]=0; if :: !fen[Q(R,r)] -> assert(nr==lgm[r]) :: else fi; lgm[r]=0 }   /* I6 */
active proctype Fabric() {
end:
  do
  LINGER(0)
#if NR>2 || defined(ALLFLAKY)
  LINGER(1)
#endif
  od
}
