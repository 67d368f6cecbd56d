#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The connection manager rdmacm over software rails: librdmacm connects every queue pair, the job survives a rail that is cut,
# and does without a rail that is silent or down while the others connect.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
export OMPI_MCA_btl_openib_cpc_include=rdmacm OMPI_MCA_btl_openib_verbose=2
rails="--link-layer=eth --ipv4-gids"

run_stream 2 "$rails" 3
for rail in 0 1; do
    grep -q "sr$rail:1: REQ(0) of rail $rail from [0-9] by rdmacm" "$TEST_TMP/log" || { show_log; fail "rail $rail did not connect by rdmacm"; }
done

# lost COMMAND RAILS-LEFT: COMMAND happens to sr1 before the job begins; under pml bfo the job uses sr0.
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_connect_timeout 3)
lost() {
    first "$1" sr1
    on_rails "-n 2 $rails --retry-time=300ms" 2 "$STREAM" -s 1 || { show_log; fail "a rail that is $1 at the start"; }
    grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$TEST_TMP/log" || { show_log; fail "$1: the stream did not verify"; }
    rails_carried 100000 1
    [ "$(rail_counter "$REPORT" 1 tx_bytes)" = 0 ] || fail "$1: sr1 carried something"
    note "sr1 $1 at the start: $(grep ' 0 wrong$' "$TEST_TMP/log" | tail -n 1)"
}
lost silent
lost down
FIRST=()

# A cable is pulled in the middle of a job that always does the same work.
echo "down rail=sr1 nth=40" >"$TEST_TMP/plan"
on_rails "-n 2 $rails --retry-time=300ms --plan $TEST_TMP/plan" 2 "$BFO_BUILDDIR/tests/mpi/mpi_sizes" || { show_log; fail "the job did not survive the cut of sr1"; }
grep -q "^A rail was lost: .* rail 1 from sr1:1" "$TEST_TMP/log" || { show_log; fail "sr1 was not lost"; }
grep -q '^PASSED [1-9][0-9]* checks' "$TEST_TMP/log" || { show_log; fail "cut: no result"; }
rails_carried 1 2
note "sr1 cut: $(grep '^PASSED' "$TEST_TMP/log"), $(rail_counter "$REPORT" 1 tx_messages) messages on sr1 before"
