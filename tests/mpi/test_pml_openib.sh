#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Our PML over our BTL on two software rails: both must carry data. Then a rail is cut under load: short messages
# are all delivered, once each and in order, by the other rail.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
. "$BFO_SRCDIR/tests/mpi/real.sh"
use_components pml btl
REPORT=$TEST_TMP/rails.json
ARGS=(--mca pml bfo --mca btl openib,self)

PML_PREFIX=("$SOFTRAIL" run -n 2 --report "$REPORT" --)
for program in mpi_sizes mpi_match mpi_types mpi_comms mpi_threads; do
    run_program $program 2 "${ARGS[@]}"
    rails_moved "$REPORT" 0 1
done
run_program mpi_match 4 "${ARGS[@]}"
run_program mpi_comms 4 "${ARGS[@]}"

REAL_PREFIX=("$SOFTRAIL" run -n 2 --report "$REPORT" --)
run_netpipe "${ARGS[@]}"
rails_moved "$REPORT" 0 1
for n in 2 4; do
    run_hpcc $n "${ARGS[@]}"
    rails_moved "$REPORT" 0 1
done
run_scalapack 2 "${ARGS[@]}"

# cut_under_load RAIL: a stream of short messages outlives the rail
cut_under_load() {
    local rail=$1 fabric=bfo-cut-$$ log=$TEST_TMP/cut.log job
    timeout -k 5 60 "$SOFTRAIL" run -n 2 --name "$fabric" --retry-time=300ms --report "$REPORT" -- "$MPIRUN" --oversubscribe \
        --bind-to none -np 2 "${ARGS[@]}" "$BFO_BUILDDIR/contrib/bfo_stream" -s 4 -m 1500 >"$log" 2>&1 </dev/null &
    job=$!
    for _ in $(seq 100); do # the stream runs when it reports its first second
        grep -q 'messages verified' "$log" && break
        sleep 0.1
    done
    "$SOFTRAIL" down --fabric "$fabric" "$rail" || fail "rail $rail could not be cut"
    wait $job || { cat "$log"; fail "the job did not survive the cut of rail $rail"; }
    grep -q "rail $rail (openib) to .* lost" "$log" || { cat "$log"; fail "nothing was lost: the cut came too late"; }
    grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$log" || { cat "$log"; fail "the stream did not verify"; }
    note "rail $rail cut under load: $(tail -n 1 "$log")"
}
cut_under_load 0
cut_under_load 1
exit 0
