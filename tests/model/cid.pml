/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * Reuse of a context id, DESIGN.txt section 8: counters kept per (context id, peer process), and
 * the process check. No flush, no agreement, no poll pass.
 * Old communicator (context id c): process P sends NO messages to R. Rail 0 may fail, and a copy may stay
 * unpolled on it for any time. Then the communicator is freed and c is used again.
 *  -DPQ=0   new communicator: P again (same rank)                       (default)
 *  -DPQ=1   new communicator: process Q at the rank of P; P is no member
 *  R may create the new communicator late, after its first fragments have come.
 * The sender may free the old communicator as soon as its messages are posted (eager), R when
 * it has matched them. The new communicator is created after both have freed the old one (the id is unused at every member).
 *  -DLEFT  R may free the old communicator with messages left, after the last message has come, early or in sequence
 * Mutants: -DKEEPNEXT  with LEFT: the counter stays at the first message that is missing
 *          -DRESET  counters start at 0 in the new communicator
 *          -DNOPROC no process check, counters found by rank (has an effect with PQ=1)
 *          -DFLUSHPOLL with RESET: sender flush, agreement, one poll pass until empty at R */
#ifndef NO
#define NO 2
#endif
#ifndef NN
#define NN 2
#endif
#ifndef PQ
#define PQ 0
#endif
#define M 64
/* seq, identity, process (0=P, 1=Q). Identities: old 0..NO-1, new NO..NO+NN-1 */
chan r0=[8] of {byte,byte,bit}; chan r1=[12] of {byte,byte,bit}; chan q0=[8] of {byte,byte,bit}; chan q1=[12] of {byte,byte,bit};
chan pc=[16] of {byte,byte,bit};
bit pend[NO+NN]; bit pw[NO+NN];
bit bad[2],lostp[2]; bit up0[2]=1;
bit freedS, freedR, act=1, isnew; byte next, got, np;
byte exp[2];                     /* kept expected sequence per process */
bit cm[M]; byte cmi[M];
#define NEWP (PQ)
/* process at rank src (=0) of the communicator active at R */
#define MEMBER (isnew -> NEWP : 0)
#ifdef RESET
#define SEQOF(i) ((i)<NO -> (i) : (i)-NO)
#else
#if PQ==0
#define SEQOF(i) (i)
#else
#define SEQOF(i) ((i)<NO -> (i) : (i)-NO)
#endif
#endif
inline deliver(q,id,p) {         /* communicator active */
  if
#ifndef NOPROC
  :: p!=MEMBER -> assert(id<NO)                      /* not the process of rank src: dropped, and never a new message */
  :: p==MEMBER && q==exp[p] ->
#define XP p
#else
  :: q==exp[MEMBER] ->
#define XP MEMBER
#endif
       assert(id==got); got++; exp[XP]=exp[XP]+1;
       do :: cm[exp[XP]] -> assert(cmi[exp[XP]]==got); cm[exp[XP]]=0; cmi[exp[XP]]=0; got++; exp[XP]=exp[XP]+1 :: else -> break od
#ifndef NOPROC
  :: p==MEMBER && q!=exp[p] && (q<exp[p] || cm[q]) -> skip
  :: p==MEMBER && q>exp[p] && !cm[q] -> cm[q]=1; cmi[q]=id
#else
  :: q!=exp[MEMBER] && (q<exp[MEMBER] || cm[q]) -> skip
  :: q>exp[MEMBER] && !cm[q] -> cm[q]=1; cmi[q]=id
#endif
  fi
}
inline arrive(q,id,p) {
  if
  :: act -> deliver(q,id,p)
  :: !act ->
     if
#ifndef RESET
     :: q<exp[p] -> skip                              /* d<0 against the kept counters of (ctx,P) */
     :: else -> pc!q,id,p
#else
     :: pc!q,id,p
#endif
     fi
  fi;
  q=0; id=0; p=0
}
inline post(i,p) {               /* rail 0 of process p while it is up, or rail 1 */
  if
  :: up0[p] ->
     if :: !bad[p] -> if :: p==0 -> r0!SEQOF(i),i,0 :: else -> q0!SEQOF(i),i,1 fi
        :: !bad[p] -> if :: p==0 -> r0!SEQOF(i),i,0 :: else -> q0!SEQOF(i),i,1 fi; bad[p]=1
        :: bad[p] && !lostp[p] -> if :: p==0 -> r0!SEQOF(i),i,0 :: else -> q0!SEQOF(i),i,1 fi
        :: bad[p]=1; lostp[p]=1
     fi;
     pend[i]=1; pw[i]=p; np++
  :: 1 -> if :: p==0 -> r1!SEQOF(i),i,0 :: else -> q1!SEQOF(i),i,1 fi
  fi
}
active proctype S() { byte o;
  do
  :: atomic { next<NO -> post(next,0); next++ }
  :: atomic { np>0 -> o=0; do :: pend[o] -> break :: else -> o++ od;
       pend[o]=0; np--;
       if :: bad[pw[o]] -> up0[pw[o]]=0; if :: pw[o]==0 -> r1!SEQOF(o),o,0 :: else -> q1!SEQOF(o),o,1 fi
          :: !bad[pw[o]] fi; o=0 }
#ifdef FLUSHPOLL
  :: atomic { next==NO && !freedS && np==0 -> freedS=1 }
#else
  :: atomic { next==NO && !freedS -> freedS=1 }
#endif
  :: atomic { freedS && freedR && next>=NO && next<NO+NN -> post(next,NEWP); next++ }
  :: atomic { next==NO+NN && np==0 -> break }
  od
}
active proctype R() { byte q,id; bit p;
  do
  :: atomic { nempty(r0) -> r0?q,id,p; arrive(q,id,p) }
  :: atomic { nempty(r1) -> r1?q,id,p; arrive(q,id,p) }
  :: atomic { nempty(q0) -> q0?q,id,p; arrive(q,id,p) }
  :: atomic { nempty(q1) -> q1?q,id,p; arrive(q,id,p) }
  :: atomic { got==NO && act && !isnew && !freedR -> freedR=1; act=0 }
#ifdef LEFT
  :: atomic { act && !isnew && !freedR && cm[NO-1] ->
       q=0; do :: q<NO -> cm[q]=0; cmi[q]=0; q++ :: else -> break od; q=0;
#ifndef KEEPNEXT
       exp[0]=NO;
#endif
       got=NO; freedR=1; act=0 }
#endif
#ifdef FLUSHPOLL
  :: atomic { freedS && freedR && !act && empty(r0) && empty(r1) && empty(q0) && empty(q1) ->
#else
  :: atomic { freedS && freedR && !act ->
#endif
       act=1; isnew=1;
#ifdef RESET
       exp[0]=0; exp[1]=0;
#endif
       do :: nempty(pc) -> pc?q,id,p; deliver(q,id,p) :: empty(pc) -> break od; q=0; id=0; p=0 }
  :: atomic { got==NO+NN && empty(r0) && empty(r1) && empty(q0) && empty(q1) && next==NO+NN && np==0 ->
       assert(!cm[0]&&!cm[1]&&!cm[2]&&!cm[3]&&!cm[4]&&!cm[5]); break }
  od
}
