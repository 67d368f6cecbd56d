#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A rail is lost after MPI_Init and before two processes talk for the first time: long messages go by the other one.
. "$BFO_SRCDIR/tests/lib.sh"
use_components pml btl

for rail in 0 1; do
    fabric=bfo-late-$$ go=$TEST_TMP/go log=$TEST_TMP/log
    rm -f "$go"
    : > "$log"
    timeout -k 5 30 "$SOFTRAIL" run -n 2 --name "$fabric" --retry-time=300ms -- "$MPIRUN" --oversubscribe --bind-to none \
        -np 2 --mca pml bfo --mca btl openib,self "$BFO_BUILDDIR/tests/mpi/mpi_late" "$go" >"$log" 2>&1 </dev/null &
    job=$!
    for _ in $(seq 200); do
        grep -q ready "$log" && break
        sleep 0.1
    done
    "$SOFTRAIL" down --fabric "$fabric" $rail || { cat "$log"; fail "rail $rail could not be cut"; }
    sleep 0.3
    touch "$go"
    wait $job || { cat "$log"; fail "rail $rail was lost before the first contact, and the job ended with $?"; }
    grep -q 'all right' "$log" || { cat "$log"; fail "no message after the loss of rail $rail"; }
done
note "first contact without rail 0, without rail 1"
