#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Our PML over our BTL on two software rails: both must carry data. Then rails are cut under load: the remaining rails deliver
# every message exactly once, in order and byte for byte, with each of the protocols.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
. "$BFO_SRCDIR/tests/mpi/real.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
ARGS=(--mca pml bfo --mca btl openib,self)

PML_PREFIX=("$SOFTRAIL" run -n 2 --report "$REPORT" --)
for program in mpi_sizes mpi_match mpi_modes mpi_types mpi_comms mpi_threads mpi_life mpi_huge; do
    run_program $program 2 "${ARGS[@]}"
    rails_moved "$REPORT" 0 1
done
run_program mpi_match 4 "${ARGS[@]}"
run_program mpi_comms 4 "${ARGS[@]}"
run_program mpi_modes 1 "${ARGS[@]}"
run_wide "${ARGS[@]}"
rails_moved "$REPORT" 0 1
for program in mpi_sizes mpi_modes; do # FRAG, RGET
    run_program $program 2 "${ARGS[@]}" --mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0
    run_program $program 2 "${ARGS[@]}" --mca pml_bfo_use_put 0
    rails_moved "$REPORT" 0 1
done
run_program mpi_spawn 2 "${ARGS[@]}"

# The adapter is patient where only its patience carries a job over an outage of all rails.
has_timeout() { # TIMEOUT MPIRUN-ARGUMENTS...
    on_rails "-n 2" 2 --mca btl_openib_verbose 2 "${@:2}" "$BFO_BUILDDIR/tests/mpi/mpi_modes" || { show_log; fail "mpi_modes ${*:2}"; }
    has_said "queue pair .* timeout $1," || { show_log; fail "${*:2}: the timeout is not $1"; }
}
BTL_ARGS=("${ARGS[@]}")
has_timeout 17
has_timeout 20 --mca pml_bfo_rejoin 0
has_timeout 20 --mca pml_bfo_last_rail_timeout 0
has_timeout 14 --mca btl_openib_ib_timeout 14

REAL_PREFIX=("$SOFTRAIL" run -n 2 --report "$REPORT" --)
run_netpipe "${ARGS[@]}"
rails_moved "$REPORT" 0 1
for n in 2 4; do
    run_hpcc $n "${ARGS[@]}"
    rails_moved "$REPORT" 0 1
    run_scalapack $n "${ARGS[@]}"
    rails_moved "$REPORT" 0 1
done

cut_stream 0 2 2 1500
cut_stream 1 2 2 1500
for rail in 0 1; do
    cut_stream $rail 2 2 1000000                                                 # PUT, then RGET on the last rail
    cut_stream $rail 2 2 1000000 --mca pml_bfo_use_put 0                         # RGET
    cut_stream $rail 2 2 1000000 --mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0 # FRAG
done
cut_stream "0 2 3" 4 2 4000000
# The same programs while four of five rails are lost: their own verification decides. NTH sets the message of a rail at which its fault
# begins: a port goes down at either end, acknowledgements do not come, and one direction loses everything.
# The stream goes on until all four are lost, six progress lines at least.
run_verified_stream() {
    local LOG=$TEST_TMP/stream.log BTL_ARGS=("$@")
    stream_until "four_are_lost && has_said 'messages verified' 6" "-n 5 --plan $TEST_TMP/plan --retry-time=100ms" 2 "$STREAM" -s 600 -m 200000
    verified "four of five rails lost"
}
four_are_lost() {
    local rail
    for rail in 1 2 3 4; do
        grep -hq "A rail was lost: .* rail $rail from sr$rail:1 " "$TEST_TMP"/*.log || return
    done
}
survived() { # NTH FUNCTION...
    cat >"$TEST_TMP/plan" <<END
down local rail=sr1 process=0 nth=$1
down local rail=sr2 process=1 nth=$(($1 * 3 / 2))
unacked rail=sr3 nth=$(($1 * 2))-
lose rail=sr4 process=1 nth=$(($1 * 5 / 2))-
END
    REAL_PREFIX=("$SOFTRAIL" run -n 5 --plan "$TEST_TMP/plan" --retry-time=100ms --report "$REPORT" --)
    shift
    "$@" "${ARGS[@]}" --mca pml_bfo_counters 1
    four_are_lost || { tail -n 40 "$TEST_TMP"/*.log; fail "$*: not all four rails were lost"; }
    rm -f "$TEST_TMP"/*.log
}
survived 200 run_verified_stream
survived 10 run_netpipe
survived 200 run_hpcc 4
if has_scalapack; then survived 40 run_scalapack 4; fi
exit 0
