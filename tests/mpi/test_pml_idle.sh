#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The receiver's port of a rail that no message has used yet goes down. That rail was never connected, therefore it has no
# fence to wait for: a message that is torn on another rail is restarted all the same.
. "$BFO_SRCDIR/tests/lib.sh"
use_components pml btl

# torn RULE MPIRUN-ARGUMENTS...: of four rails rail 3 is idle, and RULE tears a message on rail 1
torn() {
    local rule=$1 fabric=bfo-idle-$$ go=$TEST_TMP/go log=$TEST_TMP/log job pid process
    shift
    rm -f "$go"
    : >"$log"
    echo "$rule" >"$TEST_TMP/plan"
    timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n 4 --plan "$TEST_TMP/plan" --name "$fabric" --retry-time=300ms -- "$MPIRUN" \
        --oversubscribe --bind-to none -np 2 --mca pml bfo --mca btl openib,self "$@" \
        "$BFO_BUILDDIR/tests/mpi/mpi_late" "$go" met >"$log" 2>&1 </dev/null &
    job=$!
    await "$log" '^ready\|^receiver' 2
    pid=$(sed -n 's/^receiver //p' "$log")
    process=$("$SOFTRAIL" status --fabric "$fabric" | sed -n "s/^process \([0-9]*\): pid $pid.*/\1/p")
    "$SOFTRAIL" down --fabric "$fabric" 3 --process "$process" || { cat "$log"; fail "rail 3 could not be cut"; }
    sleep 0.3
    touch "$go"
    wait $job
    job=$?
    [ $job = 0 ] || { cat "$log"; fail "$rule $*: the job ended with $job"; }
    grep -q 'all right' "$log" || { cat "$log"; fail "$rule $*: no message arrived"; }
    [ "$(grep -c '^A rail was lost:' "$log")" -ge 2 ] || { cat "$log"; fail "$rule $*: not two rails were lost"; }
    note "$rule $*"
}
torn "lose rail=sr1 op=write nth=7" # after the six writes that prove the rail
torn "lose rail=sr1 op=send payload=0:46 nth=3" --mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0
exit 0
