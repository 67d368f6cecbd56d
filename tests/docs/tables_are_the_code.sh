#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The actions and events that the tables of the request machines, of the drain and of a rail name are in the code, and each state has one writer, as
# tables_are_the_code.pl says. A fault that is planted into a copy of the sources is found.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
script="$BFO_SRCDIR"/tests/docs/tables_are_the_code.pl
perl "$script" "$BFO_SRCDIR" || fail "the tables are not the code"

# planted COMMAND WORDS: after COMMAND has changed the copy, the check fails and prints WORDS.
planted() {
    rm -rf "$TEST_TMP/copy"
    mkdir "$TEST_TMP/copy"
    cp -r "$BFO_SRCDIR"/{include,pml_bfo,btl_openib_failover} "$TEST_TMP/copy"
    chmod -R u+w "$TEST_TMP/copy"
    (cd "$TEST_TMP/copy/pml_bfo" && eval "$1") || fail "cannot plant: $1"
    if perl "$script" "$TEST_TMP/copy" >"$TEST_TMP/out" 2>&1; then
        fail "not found: $1"
    fi
    grep -qF -- "$2" "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "$1: not \"$2\""; }
}
planted "sed -i 's/bfo_send_act_restart(/bfo_send_act_other(/' */*.[ch]" "send: restart is an action without a function"
planted "sed -i 's/BFO_REV_NOTIFY_COPY/BFO_REV_NOTIFY/' */*.c" "recv: NOTIFY_COPY is an event that nothing raises"
planted "echo 'ACTION(invented)' >>tables/pml_bfo_failover_recv.def" "recv: invented is an action without a function"
planted "sed -i 's/^ACTION(resend_rack)/ACTION_IN_PLACE(resend_rack)/' tables/pml_bfo_failover_recv.def" \
    "recv: the engine gets RACK_ERR in WAITRTS, whose action resend_rack it does not have"
planted "sed -i 's/bfo_send_fire(&req->m, BFO_SEV_FRAG_OK, bfo_threads, req, &length)/bfo_failover_send_raise(req, BFO_SEV_FRAG_OK, 0)/' send/*.c" \
    "send: the engine gets FRAG_OK in STREAM, whose action count_frag it does not have"
planted "sed -i 's/BFO_SEND_ROW(req->m.se, ACK);//' send/*.c" "send: ACK is an event that nothing raises"
planted "echo 'void x(bfo_send_t *r) { r->m.own.se = 0; }' >>door/pml_bfo_send_api.c" "pml_bfo_send_api.c: only pml_bfo_failover_se.h"
planted "echo '/* BFO_SEV_NOTIFY_OK */' >>show/pml_bfo_tell.c; sed -i 's/BFO_SEV_NOTIFY_OK,/0,/' handshake/pml_bfo_failover_actions.c" \
    "send: NOTIFY_OK is an event that nothing raises"
planted "echo 'bool x(bfo_rail_t *r) { return r->ext->port_is_up(r->btl); }' >>failover/pml_bfo_witness.c" "pml_bfo_witness.c: only pml_bfo_extension.h"
planted "echo 'void x(bfo_btl_ext_t *e) { e->declare(0, 0); }' >>failover/pml_bfo_witness.c" "pml_bfo_witness.c: only pml_bfo_extension.h"
planted "echo 'void x(bfo_peer_t *p) { p->fencing |= 1; }' >>failover/pml_bfo_failover.c" "pml_bfo_failover.c: only pml_bfo_generation"
planted "echo 'void x(bfo_peer_t *p) { ++p->rails[0].gen; }' >>failover/pml_bfo_failover_peer.c" "pml_bfo_failover_peer.c: only pml_bfo_generation"
planted "echo 'void x(bfo_rail_t *r) { f(&r->fenced); }' >>rails/pml_bfo_adopt.c" "pml_bfo_adopt.c: only pml_bfo_generation"
planted "echo 'void x(bfo_peer_t *p) { p->send_mask &= 1; }' >>rails/pml_bfo_probation.c" "pml_bfo_probation.c: only pml_bfo_rails.c"
cd_btl='cd ../btl_openib_failover'
planted "$cd_btl && sed -i 's/OFO_DEV_TURN/0/' out/btl_openib_keepalive.c" "drain: TURN is an event that nothing raises"
planted "$cd_btl && sed -i 's/^void ofo_drain_act_give_up(/void ofo_give_up(/' fault/btl_openib_fence.c" "drain: give_up is an action without a function"
planted "$cd_btl && echo 'void x(ofo_qp_t *qp) { qp->marker_state = 0; }' >>fault/btl_openib_fence.c" "btl_openib_fence.c: only btl_openib_marker"
planted "$cd_btl && echo 'void x(ofo_qpset_t *qps) { qps->drain.own = 0; }' >>rail/btl_openib_rail.c" "btl_openib_rail.c: only btl_openib_drain_fsm"
planted "$cd_btl && sed -i 's/OFO_EV_REP : OFO_EV_REP_REFUSED/OFO_EV_REP : OFO_EV_NONE/' tables/btl_openib_rail_fsm.c" "rail: REP_REFUSED is an event that nothing raises"
planted "$cd_btl && sed -i 's/OFO_EV_RESTORED,/0,/' rail/*.c" "rail: RESTORED is an event that nothing raises"
planted "$cd_btl && echo 'void x(ofo_endpoint_t *ep) { ep->gate = OFO_GATE_UP; }' >>rail/btl_openib_peer.c" "btl_openib_peer.c: only btl_openib_gate"
planted "$cd_btl && echo 'void x(ofo_endpoint_t *ep) { OFO_STORE(ep->gate, OFO_GATE_UP); }' >>rail/btl_openib_peer.c" "btl_openib_peer.c: only btl_openib_gate"
planted "$cd_btl && echo 'void x(ofo_endpoint_t *ep) { f(&ep->gate); }' >>rail/btl_openib_peer.c" "btl_openib_peer.c: only btl_openib_gate"
planted "$cd_btl && echo 'void x(ofo_endpoint_t *ep) { ep->fsm.state = OFO_ST_UP; }' >>rail/btl_openib_rail.c" "btl_openib_rail.c: only btl_openib_rail_fsm"
planted "$cd_btl && echo 'void x(ofo_fsm_t *fsm) { fsm->state = OFO_ST_UP; }' >>rail/btl_openib_rail.c" "btl_openib_rail.c: only btl_openib_rail_fsm"
