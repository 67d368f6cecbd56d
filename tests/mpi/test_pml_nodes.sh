#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# --mca btl openib,vader,self on two nodes of two ranks: rails with failover between the nodes, vader without failover within
# each node. One rail is lost, or all rails.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml btl
two_nodes
ARGS=("${TWO_NODES[@]}" --mca pml bfo --mca btl "openib,$SHARED_MEMORY,self" --mca pml_bfo_verbose 1)

# both LOG: ranks 0 and 1 (or the ranks named) of one node use shared memory, ranks of different nodes use both rails
both() {
    local log=$1 near=${2:-1} far=${3:-2}
    grep -q "bfo: 0->$near rails 1: $SHARED_MEMORY, no failover\$" "$log" || { cat "$log"; fail "ranks 0 and $near do not talk by $SHARED_MEMORY"; }
    grep -q "bfo: 0->$far rails 2: sr0:1 sr1:1\$" "$log" || { cat "$log"; fail "ranks 0 and $far do not talk by the rails"; }
    ! grep -q 'will not be survived' "$log" || { cat "$log"; fail "$SHARED_MEMORY within a node is no lack of failover"; }
}
PML_PREFIX=("$SOFTRAIL" run -n 2 --report "$REPORT" --)
for program in mpi_match mpi_comms mpi_threads; do
    run_program $program 4 "${ARGS[@]}"
    both "$TEST_TMP/$program.log"
    rails_moved "$REPORT" 0 1
done
run_program mpi_sizes 4 "${ARGS[@]}" --map-by node # pairs of different nodes
both "$TEST_TMP/mpi_sizes.log" 2 1
run_program mpi_modes 4 "${ARGS[@]}"
both "$TEST_TMP/mpi_modes.log"

# cut PROGRAM "RAILS": cuts these rails in the middle of the job
BTL_ARGS=("${ARGS[@]}")
cut() {
    local program=$1 rail
    rm -f "$TEST_TMP/go"
    begin_stream "-n 2 --retry-time=100ms" 4 "$PML_DIR/$program" "$TEST_TMP/go"
    await "$LOG" '^ready'
    for rail in $2; do
        "$SOFTRAIL" down --fabric "$FABRIC" "$rail" || { cat "$LOG"; fail "rail $rail could not be cut"; }
    done
    sleep 1
    touch "$TEST_TMP/go" # mpi_counters ends
    passes "$program: rails $2 cut"
    both "$LOG"
}
for rail in 0 1; do
    cut mpi_counters $rail
    [ "$(grep -c "^A rail was lost: .* rail $rail from sr$rail:1 (GUID 0x[0-9a-f]*) to " "$LOG")" = 2 ] || { cat "$LOG"; fail "rail $rail was not lost once on each node"; }
    [ "$(grep -c '^A rail of this job has failed' "$LOG")" = 1 ] || { cat "$LOG"; fail "rail $rail: not explained once per job"; }
    [ "$(awk '$3 == "pml_bfo_errors" { n += $4 } END { print n + 0 }' "$LOG")" -gt 0 ] ||
        { cat "$LOG"; fail "rail $rail: nothing was in flight on it"; }
    grep -q "bfo: [01]->[23] rail $rail generation 0 (sr$rail:1) lost: .*; left 1: " "$LOG" ||
        { cat "$LOG"; fail "no rank of the left node lost rail $rail"; }
    note "rail $rail cut between nodes: $(grep '^PASSED' "$LOG")"
done
BTL_ARGS+=(--mca pml_bfo_last_rail_timeout 0)
cut mpi_apart "0 1"
[ "$(grep -c '^PASSED [1-9]' "$LOG")" = 4 ] || { tail -n 40 "$LOG"; fail "not all ranks passed without rails"; }
[ "$(grep -c 'The PML bfo cannot reach a process any more' "$LOG")" -ge 2 ] ||
    { cat "$LOG"; fail "a node does not say that it lost the other"; }
note "all rails cut: each node goes on by itself"
exit 0
