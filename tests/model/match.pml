/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * MATCH numbering, wrap, order over 2 rails, late communicator: DESIGN.txt section 8.
 * The sender posts NM eager messages (complete for MPI at once); rail 0 may fail.
 * A completion may be arbitrarily late (RC retry timeout): the sender may see the ERR of message k
 * after any number of later messages has gone over rail 1.
 *  Wire sequence = k % MOD, duplicate window MOD/2.
 *  -DMOD=4          16-bit style wire sequence (wraps during the run)
 *  -DMOD=16         wide sequence (spec: 32 bit), never wraps within a stall
 *  -DTHROTTLE       16-bit alternative: sender keeps (next - oldest uncompleted) <= MOD/2-1
 *  -DPROMPT         the receiver polls delivered fragments before the next message is sent (no poll skew)
 *  -DLATECOMM       the receiver creates the communicator after the first fragments have arrived
 *  -DNODUP_ADDCOMM  add_comm without a duplicate check when it drains the pending list
 *  Reuse of a context id: cid.pml. Mutants: default MOD=4, PROMPT, THROTTLE, LATECOMM+NODUP_ADDCOMM. */
#ifndef NM
#define NM 6
#endif
#ifndef MOD
#define MOD 4
#endif
#define WIN (MOD/2)
chan rx0 = [NM] of { byte, byte };      /* wire seq, identity */
chan rx1 = [2*NM] of { byte, byte };
byte next;                              /* next message identity */
bit pend[NM];                           /* completion of rail-0 message k outstanding */
bit bad, lostp, up0 = 1;
byte exp;                               /* expected sequence, modulo MOD */
byte got;                               /* messages matched: must be 0,1,2,... */
bit cm[MOD]; byte cmi[MOD];             /* frags_cant_match, by sequence */
chan pc = [2*NM] of { byte, byte };     /* non_existing_communicator_pending */
bit comm = 1; byte npend; byte base;
byte k;
#define D(a,b) (((a)+MOD-(b))%MOD)
inline deliver(q, id) {                 /* a MATCH reaches the matching engine */
  if
  :: q==exp && !cm[q] ->
       assert(id==got); got++; exp=(exp+1)%MOD;
       do :: cm[exp] -> assert(cmi[exp]==got); cm[exp]=0; cmi[exp]=0; got++; exp=(exp+1)%MOD
          :: else -> break od
  :: q!=exp && (D(exp,q)<WIN || cm[q]) -> skip        /* judged duplicate: dropped */
  :: q!=exp && !(D(exp,q)<WIN || cm[q]) -> cm[q]=1; cmi[q]=id
  :: q==exp && cm[q] -> assert(false)
  fi
}
inline deliver_nodup(q, id) {           /* the drain of NODUP_ADDCOMM */
  if :: q==exp -> assert(id==got); got++; exp=(exp+1)%MOD
     :: else -> if :: !cm[q] -> cm[q]=1; cmi[q]=id :: else fi
  fi;
  do :: cm[exp] -> assert(cmi[exp]==got); cm[exp]=0; cmi[exp]=0; got++; exp=(exp+1)%MOD
     :: else -> break od
}
#define SEQ(id) ((id)%MOD)
#ifdef THROTTLE
#define TGUARD (npend==0 || next-base<WIN)
#else
#define TGUARD (1)
#endif
#define CGUARD (1)
#ifdef PROMPT
#define PGUARD (len(rx0)==0 && len(rx1)==0)   /* see PROMPT above */
#else
#define PGUARD (1)
#endif
active proctype Sender() {
  byte q, o;
  do
  :: atomic { next<NM && TGUARD && CGUARD && PGUARD
       -> q=SEQ(next);
       if
       :: up0 -> if :: !bad -> rx0!q,next; pend[next]=1
                    :: !bad -> rx0!q,next; pend[next]=1; bad=1
                    :: bad && !lostp -> rx0!q,next; pend[next]=1
                    :: bad=1; lostp=1; pend[next]=1
                 fi;
                 if :: npend==0 -> base=next :: else fi; npend++
       :: rx1!q,next
       fi; next++; q=0 }
  :: atomic { npend>0 -> o=base;                  /* oldest completion of rail 0 */
       pend[o]=0; npend--;
       if :: bad -> up0=0; q=SEQ(o); rx1!q,o      /* ERR (lost or delivered): resend */
          :: !bad -> skip
       fi;
       if :: npend>0 -> do :: pend[base] -> break :: else -> base++ od :: else -> base=0 fi; q=0; o=0 }
  :: atomic { next==NM && npend==0 -> break }
  od
}
active proctype Receiver() {
  byte q, id;
#ifdef LATECOMM
  comm=0;
#endif
  do
  :: atomic { nempty(rx0) -> rx0?q,id; if :: comm -> deliver(q,id) :: else -> pc!q,id fi; q=0; id=0 }
  :: atomic { nempty(rx1) -> rx1?q,id; if :: comm -> deliver(q,id) :: else -> pc!q,id fi; q=0; id=0 }
#ifdef LATECOMM
  :: atomic { !comm -> comm=1;
       do :: nempty(pc) -> pc?q,id;
#ifdef NODUP_ADDCOMM
            deliver_nodup(q,id)
#else
            deliver(q,id)
#endif
          :: empty(pc) -> break od; q=0; id=0 }
#endif
  :: atomic { got==NM && next==NM && npend==0 && empty(rx0) && empty(rx1) -> 
        k=0; do :: k<MOD -> assert(!cm[k]); k++ :: else -> break od; break }
  od
}
