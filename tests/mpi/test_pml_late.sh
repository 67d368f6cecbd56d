#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A rail is lost after MPI_Init and before the first contact of two processes: long messages use the other rail. A rail is lost while
# processes wait for each other in the runtime.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self)

# late PROGRAM RAIL: the rail is cut when all ranks are ready; then the program continues
late() {
    local program=$1 rail=$2 go=$TEST_TMP/go
    rm -f "$go"
    begin_stream "-n 2 --retry-time=300ms" 2 "$BFO_BUILDDIR/tests/mpi/$program" "$go"
    await "$LOG" ready
    "$SOFTRAIL" down --fabric "$FABRIC" "$rail" || { cat "$LOG"; fail "rail $rail could not be cut"; }
    sleep 0.3
    touch "$go"
    passes "$program: rail $rail was lost before the first contact" 'all right|^PASSED [1-9]'
}
for rail in 0 1; do
    late mpi_late $rail
    late mpi_spawn $rail
done
note "first contact without rail 0, without rail 1: add_procs, spawn, connect and accept"

# From 5.0 on MPI_Comm_disconnect waits in the runtime, where no code of bfo can run (DESIGN.txt 18.2): such a job would hang.
case $OMPI_VERSION in
4.*) ;;
*) note "not tested on $OMPI_VERSION: the last message before MPI_Comm_disconnect is lost"; exit 0 ;;
esac
# The last message before MPI_Comm_disconnect is lost (lose); in the second run it arrives, and its sender gets an error (unacked).
for fault in lose unacked; do
    echo "$fault payload=24:deadbeef1a57 nth=1" >"$TEST_TMP/plan"
    on_rails "-n 2 --retry-time=100ms --plan $TEST_TMP/plan" 2 "$BFO_BUILDDIR/tests/mpi/mpi_spawn" ||
        { show_log; fail "$fault of the last message before MPI_Comm_disconnect"; }
    says '^PASSED [1-9]'
    says '^A rail was lost:'
    note "$fault of the last message before MPI_Comm_disconnect"
done
# A rail is silent from the beginning of MPI_Comm_spawn. Rank 0 sends two messages to rank 1 before it waits for all others in the runtime;
# one of them goes over that rail, and must be sent again meanwhile.
for rail in 0 1; do
    rm -f "$TEST_TMP/go"
    begin_stream "-n 2 --retry-time=300ms" 2 "$BFO_BUILDDIR/tests/mpi/mpi_spawn" "$TEST_TMP/go" warm
    await "$LOG" ready || { show_log; fail "mpi_spawn did not begin"; }
    "$SOFTRAIL" silent --fabric "$FABRIC" $rail || { show_log; fail "rail $rail could not be silenced"; }
    touch "$TEST_TMP/go"
    await "$LOG" '^A rail was lost:' && "$SOFTRAIL" up --fabric "$FABRIC" $rail || { show_log; fail "rail $rail was not lost"; }
    passes "rail $rail was lost during MPI_Comm_spawn"
    note "rail $rail lost during MPI_Comm_spawn"
done
exit 0
