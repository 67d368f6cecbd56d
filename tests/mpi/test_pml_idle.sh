#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The receiver's port of a rail that no message has used yet goes down. That rail was never connected, therefore it has no
# fence to wait for: a message that is torn on another rail is restarted all the same.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self)

# torn RULE MPIRUN-ARGUMENTS...: of four rails rail 3 is idle, and RULE tears a message on rail 1
torn() {
    local rule=$1 go=$TEST_TMP/go pid process
    shift
    rm -f "$go"
    echo "$rule" >"$TEST_TMP/plan"
    begin_stream "-n 4 --plan $TEST_TMP/plan --retry-time=300ms" 2 "$@" "$BFO_BUILDDIR/tests/mpi/mpi_late" "$go" met
    await "$LOG" '^ready\|^receiver' 2
    pid=$(sed -n 's/^receiver //p' "$LOG")
    process=$("$SOFTRAIL" status --fabric "$FABRIC" | sed -n "s/^process \([0-9]*\): pid $pid.*/\1/p")
    "$SOFTRAIL" down --fabric "$FABRIC" 3 --process "$process" || { cat "$LOG"; fail "rail 3 could not be cut"; }
    sleep 0.3
    touch "$go"
    passes "$rule $*" 'all right'
    [ "$(grep -c '^A rail was lost:' "$LOG")" -ge 2 ] || { cat "$LOG"; fail "$rule $*: not two rails were lost"; }
    note "$rule $*"
}
torn "lose rail=sr1 op=write nth=7" --mca pml_bfo_use_get 0 # after the six writes that prove the rail
torn "lose rail=sr1 op=read nth=1"
torn "lose rail=sr1 op=send payload=0:46 nth=3" --mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0
exit 0
