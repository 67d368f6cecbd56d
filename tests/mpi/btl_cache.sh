#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The registration cache under both PMLs, with leave_pinned and without. Memory that is unmapped (munmap of all or a part, mremap,
# free) and mapped again at the same address carries right bytes and is registered again each time; memory that stays
# is registered once with leave_pinned. The test compares the number of registrations, because on software rails the bytes
# are right even if new pages have an old registration.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
ROUNDS=24 # of btl_check
RANKS=2

# registrations PROGRAM mpirun-arguments...: their number on all rails and ranks
registrations() {
    local name=$1
    shift
    on_rails "-n 1" $RANKS "$@" "$BFO_BUILDDIR/tests/mpi/btl_check" "$name" || { show_log; fail "$name ended with an error: $*"; }
    grep -q 'all right' "$TEST_TMP/log" || { show_log; fail "$name: $*"; }
    [ "$name" = everybody ] || rails_carried $((ROUNDS * 512 * 1024)) 1
    rail_counter "$REPORT" 0 registrations
}

for pml in ob1 bfo; do
    if [ $pml = bfo ]; then use_components pml btl; else use_components btl; fi
    BTL_ARGS=(--mca pml $pml --mca btl openib,self --mca pml_bfo_warn_no_failover 0 --mca pml_bfo_rdma_min 50000)
    none=$(registrations everybody --mca mpi_leave_pinned 1) || { echo "$none"; exit 1; } # the registrations of a job without long messages
    for pinned in 1 0; do
        steady=$(registrations steady --mca mpi_leave_pinned $pinned) || { echo "$steady"; exit 1; }
        changing=$(registrations cache --mca mpi_leave_pinned $pinned) || { echo "$changing"; exit 1; }
        note "$pml, leave_pinned $pinned: $((steady - none)) registrations for $ROUNDS messages of the same memory each way, $((changing - none)) for $((4 * ROUNDS)) of changing memory"
        if [ $pinned = 1 ]; then
            [ $((steady - none)) -le $((ROUNDS)) ] || fail "memory that stays is registered again and again"
        else
            [ $((steady - none)) -ge $((ROUNDS * RANKS)) ] || fail "without leave_pinned registrations were kept"
        fi
        [ $((changing - none)) -ge $((3 * ROUNDS * RANKS)) ] || fail "memory that went away kept its registration"
    done
done
