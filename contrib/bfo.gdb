# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Commands of gdb that show the objects of bfo with the names of their states:  gdb -x contrib/bfo.gdb PROGRAM CORE
# They read memory and call no function, therefore a core file is enough. They need the debugging information of mca_pml_bfo.so
# (bfo-requests, bfo-send, bfo-recv, bfo-peers, bfo-peer) and of mca_btl_openib.so (bfo-rail, bfo-queues). "help user-defined" lists them.
# DESIGN.txt 14.9.

define bfo-word
  # The text stays in gdb: for a string in an expression gdb would call malloc() of the process.
  if $arg0
    printf $arg1
  end
end
document bfo-word
bfo-word CONDITION "TEXT": prints the text if the condition holds. Neither has blanks outside of quotes.
end

define bfo-mask
  # The rails of a mask of bits.
  set $bfo_bit = 0
  if ($arg0) == 0
    printf " none"
  end
  while $bfo_bit < 8
    if (($arg0) >> $bfo_bit) & 1
      printf " %d", $bfo_bit
    end
    set $bfo_bit = $bfo_bit + 1
  end
end
document bfo-mask
bfo-mask MASK: the numbers of the rails whose bits are set.
end

define bfo-send
  set $bfo_s = (bfo_send_t *) ($arg0)
  printf "send %p, 0x%x.%x: ", $bfo_s, $bfo_s->name.gen, $bfo_s->name.slot
  output (enum bfo_send_state) ($bfo_s->m.se >> 16)
  printf ", epoch %u, %d events\n", $bfo_s->m.se & 0xffff, $bfo_s->m.events
  printf "  to rank %d, tag %d, message %u, %lu of %lu bytes delivered, first fragment of type %d", $bfo_s->req_send.req_base.req_peer, \
    $bfo_s->req_send.req_base.req_tag, $bfo_s->match_seq, $bfo_s->bytes, $bfo_s->req_send.req_bytes_packed, $bfo_s->rts_type
  bfo-word $bfo_s->rts_done ", which has left"
  printf "\n"
  printf "  next byte %lu of %lu, %d FRAGs in flight, acknowledged %d, answered %d, agreed to a restart %d, refused %d, error %d\n", $bfo_s->next, $bfo_s->end, \
    $bfo_s->in_flight, $bfo_s->acked, $bfo_s->resp, $bfo_s->got_ack, $bfo_s->got_nack, $bfo_s->error
  printf "  waits for room: first fragment %d, further ones %d", $bfo_s->first.queued, $bfo_s->work.queued
  if $bfo_s->lane != 0
    printf "; peer %p", $bfo_s->lane->peer
  end
  printf "\n"
end
document bfo-send
bfo-send REQUEST: a send request of the PML bfo (bfo_send_t *, or the MPI_Request of it).
end

define bfo-recv
  set $bfo_r = (bfo_recv_t *) ($arg0)
  printf "receive %p, 0x%x.%x: ", $bfo_r, $bfo_r->name.gen, $bfo_r->name.slot
  output (enum bfo_recv_state) ($bfo_r->m.se >> 16)
  printf ", epoch %u, %d events\n", $bfo_r->m.se & 0xffff, $bfo_r->m.events
  printf "  posted for rank %d, tag %d (below 0: any), buffer of %lu bytes\n", $bfo_r->req_recv.req_base.req_peer, $bfo_r->req_recv.req_base.req_tag, $bfo_r->capacity
  printf "  message %u, %lu of %lu bytes here, next byte %lu of %lu, %d transfers open, error %d\n", $bfo_r->match_seq, $bfo_r->bytes, $bfo_r->length, \
    $bfo_r->next, $bfo_r->end, $bfo_r->open, $bfo_r->error
  printf "  waits for room %d, rails named dead by the sender:", $bfo_r->work.queued
  bfo-mask $bfo_r->fence_mask
  if $bfo_r->lane != 0
    printf "; peer %p", $bfo_r->lane->peer
  end
  printf "\n"
end
document bfo-recv
bfo-recv REQUEST: a receive request of the PML bfo (bfo_recv_t *, or the MPI_Request of it).
end

define bfo-requests
  # The identifiers name all requests that were ever made; idle requests are left out.
  set $bfo_i = 0
  while $bfo_i < bfo.sends.size
    set $bfo_o = (bfo_send_t *) ((char *) bfo.sends.chunks[$bfo_i >> 10][$bfo_i & 1023] - (unsigned long) &((bfo_send_t *) 0)->name)
    set $bfo_state = $bfo_o->m.se >> 16
    if $bfo_state != BFO_SEND_IDLE && $bfo_state != BFO_SEND_DONE
      bfo-send $bfo_o
    end
    set $bfo_i = $bfo_i + 1
  end
  set $bfo_i = 0
  while $bfo_i < bfo.recvs.size
    set $bfo_o = (bfo_recv_t *) ((char *) bfo.recvs.chunks[$bfo_i >> 10][$bfo_i & 1023] - (unsigned long) &((bfo_recv_t *) 0)->name)
    set $bfo_state = $bfo_o->m.se >> 16
    if $bfo_state != BFO_RECV_NONE && $bfo_state != BFO_RECV_DONE
      bfo-recv $bfo_o
    end
    set $bfo_i = $bfo_i + 1
  end
end
document bfo-requests
bfo-requests: all requests of this process that are not at rest.
end

define bfo-peer
  set $bfo_p = (bfo_peer_t *) ($arg0)
  printf "peer %p, process %u.%u: ", $bfo_p, $bfo_p->proc->super.proc_name.jobid, $bfo_p->proc->super.proc_name.vpid
  bfo-word $bfo_p->ready "met"
  bfo-word !$bfo_p->ready "not met"
  bfo-word $bfo_p->failover ", failover"
  bfo-word !$bfo_p->failover ", no failover"
  bfo-word $bfo_p->declared ", given up"
  printf ", %u wait for its rails\n", $bfo_p->n_waiting
  printf "  up:"
  bfo-mask $bfo_p->up_mask
  printf "; for new work:"
  bfo-mask $bfo_p->send_mask
  printf "; being fenced:"
  bfo-mask $bfo_p->fencing
  printf "; out by this side:"
  bfo-mask $bfo_p->out_own
  printf "; out by the other:"
  bfo-mask $bfo_p->out_theirs
  printf "; by force:"
  bfo-mask $bfo_p->forced_own|$bfo_p->forced_theirs
  printf "\n"
  set $bfo_n = 0
  while $bfo_n < $bfo_p->n_rails
    printf "  rail %d: name %d, BTL %s, generation %u, ", $bfo_n, $bfo_p->rails[$bfo_n].name, \
      $bfo_p->rails[$bfo_n].btl->btl_component->btl_version.mca_component_name, $bfo_p->rails[$bfo_n].gen
    bfo-word ($bfo_p->up_mask>>$bfo_n)&1 "up"
    bfo-word !(($bfo_p->up_mask>>$bfo_n)&1) "down"
    printf ", fenced up to %d, endpoint %p", $bfo_p->rails[$bfo_n].fenced, $bfo_p->rails[$bfo_n].endpoint
    bfo-word $bfo_p->rails[$bfo_n].cause[0] ", lost: "
    printf "%s\n", $bfo_p->rails[$bfo_n].cause
    set $bfo_n = $bfo_n + 1
  end
end
document bfo-peer
bfo-peer PEER: a peer of the PML bfo (bfo_peer_t *) with its rails. The endpoint of a rail of BTL openib is for bfo-rail.
end

define bfo-peers
  set $bfo_each = bfo.peers
  while $bfo_each != 0
    bfo-peer $bfo_each
    set $bfo_each = $bfo_each->next
  end
end
document bfo-peers
bfo-peers: all peers of this process.
end

define bfo-queues
  set $bfo_q = (ofo_qpset_t *) ($arg0)
  printf "queue pairs %p, generation %u: ", $bfo_q, $bfo_q->gen
  output (ofo_drain_state_t) $bfo_q->drain.own
  printf ", %lu sent, %lu received, proofs out %d\n", $bfo_q->n_ok, $bfo_q->n_received, $bfo_q->proving
  set $bfo_n = 0
  while $bfo_n < $bfo_q->nqp
    printf "  %d: number 0x%x, ", $bfo_n, $bfo_q->qp[$bfo_n].qp == 0 ? 0 : $bfo_q->qp[$bfo_n].qp->qp_num
    if $bfo_q->qp[$bfo_n].qp != 0
      output $bfo_q->qp[$bfo_n].qp->state
      printf ", "
    end
    printf "%d of %d slots free, %d receives posted", $bfo_q->qp[$bfo_n].sq_free, $bfo_q->qp[$bfo_n].sq_slots, $bfo_q->qp[$bfo_n].recv_posted
    bfo-word $bfo_q->qp[$bfo_n].shared ", shared receives"
    bfo-word $bfo_q->qp[$bfo_n].is_failed ", failed"
    bfo-word $bfo_q->qp[$bfo_n].marker_state>0 ", marker posted"
    bfo-word $bfo_q->qp[$bfo_n].last_wqe_seen ", last receive taken"
    printf "\n"
    set $bfo_n = $bfo_n + 1
  end
end
document bfo-queues
bfo-queues SET: the queue pairs of one generation of a rail of the BTL openib (ofo_qpset_t *).
end

define bfo-rail
  set $bfo_e = (struct mca_btl_base_endpoint_t *) ($arg0)
  printf "rail %p, name %d: gate ", $bfo_e, $bfo_e->rail
  output $bfo_e->gate
  printf ", connection "
  output $bfo_e->fsm.state
  printf " of generation %u, up %u, %u wait, %u sends and %u RDMA out", $bfo_e->fsm.gen, $bfo_e->up_gen, $bfo_e->pending_count, $bfo_e->sends_out, $bfo_e->rdma_out
  bfo-word $bfo_e->dead_port ", port down"
  bfo-word $bfo_e->doubted ", in doubt"
  printf "\n"
  if $bfo_e->qps != 0
    bfo-queues $bfo_e->qps
  end
  if $bfo_e->draining != 0 && $bfo_e->draining != $bfo_e->qps
    bfo-queues $bfo_e->draining
  end
end
document bfo-rail
bfo-rail ENDPOINT: a rail of the BTL openib to one peer (an endpoint, as bfo-peer shows it), and its queue pairs.
end
