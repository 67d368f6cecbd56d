#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Adapters whose queue pairs return their work in unusual ways: a rail dies under a verified stream of small messages,
# which continues over the other rail; no peer is declared, and no message is lost.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1)

# habit SWITCH...: runs four times, so that messages without a completion are in flight when the rail dies
habit() {
    local job turn
    for turn in 1 2 3 4; do
        begin_stream "-n 2 $* --retry-time=200ms --latency 20us" 2 "$STREAM" -s 600 -m 64
        wait_until "has_said 'messages verified'"
        "$SOFTRAIL" down sr1 --fabric "$FABRIC" || fail "softrail down"
        wait_until "has_said 'A rail was lost:'"
        end_stream
        verified "$*, turn $turn"
        has_said 'A rail was lost:' || { show_log; fail "$*, turn $turn: no rail was lost"; }
        ! has_said 'the fence did not end' || { show_log; fail "$*, turn $turn: the fence did not end"; }
    done
}
habit --flush-head-only
habit --no-post-in-error
