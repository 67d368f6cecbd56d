#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Adapters whose queue pairs end otherwise than the friendliest do: a rail dies under a verified stream of small messages,
# which goes on over the other rail; nobody is declared, nothing is lost.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1)
MPI_TIMEOUT=60
FABRIC=bfo-habits-$$

# habit SWITCH...: four times, so that messages without a completion are on their way when the rail dies
habit() {
    local job rc turn
    for turn in 1 2 3 4; do
        : >"$TEST_TMP/log"
        timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n 2 "$@" --name $FABRIC --retry-time=200ms --latency 20us -- \
            "$MPIRUN" --oversubscribe --bind-to none -np 2 "${BTL_ARGS[@]}" "$STREAM" -s 3 -m 64 >"$TEST_TMP/log" 2>&1 </dev/null &
        job=$!
        await "$TEST_TMP/log" 'messages verified'
        "$SOFTRAIL" down sr1 --fabric $FABRIC || fail "softrail down"
        wait $job
        rc=$?
        [ $rc = 0 ] && grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$TEST_TMP/log" || { show_log; fail "$*, turn $turn: exit $rc"; }
        grep -q 'the fence did not end' "$TEST_TMP/log" && { show_log; fail "$*, turn $turn: the fence did not end"; }
    done
    note "$*: $(grep ' 0 wrong$' "$TEST_TMP/log" | tail -n 1)"
}
habit --flush-head-only
