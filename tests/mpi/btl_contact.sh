#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# First contact with many peers while queue pairs take long to make: a process works longer than
# btl_openib_connect_timeout, and no healthy peer is taken for silent. CONTACT_FULL=N: only the long runs, N times each.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1 --mca mpi_yield_when_idle 1)

# contact MS RANKS mode mpirun-arguments...: each queue pair takes MS to make.
contact() {
    local ms=$1 n=$2 mode=$3
    shift 3
    echo "slow op=create_qp time=${ms}ms" >"$TEST_TMP/plan"
    on_rails "-n 1 --plan $TEST_TMP/plan" "$n" "$@" "$BFO_BUILDDIR/tests/mpi/btl_contact" "$mode" || { show_log; fail "$ms ms, $n ranks, $mode: $*"; }
    grep -q 'first contact: all right, 0 failed' "$TEST_TMP/log" || { show_log; fail "$ms ms, $n ranks, $mode: no result"; }
    if grep -E 'declared unreachable|did not connect' "$TEST_TMP/log"; then fail "$ms ms, $n ranks, $mode: a healthy peer was given up"; fi
    note "$ms ms, $mode: $(grep 'first contact' "$TEST_TMP/log")"
}

for ((run = 0; run < ${CONTACT_FULL:-0}; ++run)); do
    contact 300 9 fan --mca btl_openib_connect_timeout 5
    MPI_TIMEOUT=180 contact 100 64 fan
done
[ -z "${CONTACT_FULL:-}" ] || exit 0
contact 150 9 fan --mca btl_openib_connect_timeout 2
contact 100 6 all --mca btl_openib_connect_timeout 1
exit 0
