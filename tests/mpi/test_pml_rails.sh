#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# pml_bfo_max_rails: fewer rails than exist, and another number of rails on the other side. When a receiver asks for data to be
# written over a rail that the sender does not use, the data are copied instead; every message arrives. pml_bfo_max_rdma_per_request and
# pml_bfo_max_send_per_range: one of three rails carries all long messages. Rails of 1 and 0.25 Gbit/s carry 4 : 1, except that a
# rail with nothing in flight takes the next piece of a short message. Long messages follow the rates that rails deliver; therefore the
# tests of shares use rates so low that the rails decide, not the cores.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self)

# job MOST0 MOST1 MPIRUN-ARGUMENTS...: of three rails rank 0 uses at most MOST0, rank 1 at most MOST1
job() {
    # shellcheck disable=SC2016
    on_rails "-n 3" 2 --mca pml_bfo_counters 1 --mca pml_bfo_verbose 1 "${@:3}" sh -c 'most=$1
            [ "$OMPI_COMM_WORLD_RANK" = 0 ] || most=$2
            OMPI_MCA_pml_bfo_max_rails=$most exec "$3"' sh "$1" "$2" "$BFO_BUILDDIR/tests/mpi/mpi_sizes" ||
        { show_log; fail "$1 rails with $2"; }
    says '^PASSED [1-9][0-9]* checks'
}

job 2 2
says 'bfo: 0->1 rails 2: sr0:1 sr1:1$'
says 'bfo: 1->0 rails 2: sr0:1 sr1:1$'
says_not 'restarts|this process does not use'
note "two of three rails, the same on both sides"

job 2 3
says 'rank 0 counters: .*get_bytes [1-9]'
says 'rank 1 counters: .*get_bytes [1-9]'
says_not 'restarts|this process does not use'
note "two rails with three: messages are read by the rails of both"

job 2 3 --mca pml_bfo_use_get 0
says 'bfo: 0<-1 asks for data over a rail that this process does not use'
says 'bfo: rank 0 counters: .*restarts [1-9]'
says_not 'rank 1 counters: .*restarts'
note "two rails with three: what was asked for by the third is copied"

bytes() { rail_counter "$REPORT" "$1" tx_bytes; }
# sizes_over "SOFTRAIL-OPTIONS" MPIRUN-ARGUMENTS...: sends messages of all size classes over these rails
sizes_over() {
    # shellcheck disable=SC2206
    PML_PREFIX=("$SOFTRAIL" run $1 --report "$REPORT" --)
    shift
    run_program mpi_sizes 2 --mca pml bfo --mca btl openib,self "$@"
}
# evenly: each of three rails carries about a third; one: sr0 carries ten times as much as each other rail; small messages use all rails
evenly() {
    local all rail
    all=$(($(bytes 0) + $(bytes 1) + $(bytes 2)))
    for rail in 0 1 2; do
        [ $(($(bytes $rail) * 100 / all)) -ge 25 ] || fail "rail $rail carried $(bytes $rail) of $all bytes: $*"
    done
    note "three rails carried $(bytes 0), $(bytes 1), $(bytes 2) bytes: $*"
}
one() {
    local rail
    for rail in 1 2; do
        [ "$(bytes 0)" -ge $(($(bytes $rail) * 10)) ] || fail "rail 0 carried $(bytes 0) bytes, rail $rail $(bytes $rail): $*"
    done
    rails_moved "$REPORT" 0 1 2
    note "three rails carried $(bytes 0), $(bytes 1), $(bytes 2) bytes: $*"
}
WRITE=(--mca pml_bfo_use_get 0)
COPY=("${WRITE[@]}" --mca pml_bfo_use_put 0)
sizes_over "-n 3 --rate 400M"
evenly "read"
sizes_over "-n 3" --mca pml_bfo_max_rdma_per_request 1
one "read, max_rdma_per_request 1"
sizes_over "-n 3 --rate 400M" "${WRITE[@]}"
evenly "written"
sizes_over "-n 3" "${WRITE[@]}" --mca pml_bfo_max_rdma_per_request 1
one "written, max_rdma_per_request 1"
sizes_over "-n 3 --rate 400M" "${COPY[@]}"
evenly "copied"
sizes_over "-n 3" "${COPY[@]}" --mca pml_bfo_max_send_per_range 1
one "copied, max_send_per_range 1"

# share RAIL MPIRUN-ARGUMENTS...: this one of two rails has four times the rate of the other one, and carries 60 to 90 per cent of all bytes. The cores of
# a busy machine may be slower than the rails and decide in their place; then the rails become slower.
share() {
    local part all slower
    for slower in 1 8 64; do
        sizes_over "-n 2 --rate sr$1=$((1000000 / slower))K --rate sr$((1 - $1))=$((250000 / slower))K" "${@:2}"
        all=$(($(bytes 0) + $(bytes 1)))
        part=$(($(bytes "$1") * 100 / all))
        [ $part -lt 60 ] || [ $part -gt 90 ] || break
        [ $slower != 64 ] || fail "rail $1 carried $part % of $all bytes, not 60 to 90 %"
        retry "rail $1 carried $part % of $all bytes"
    done
    note "rail $1 carried $part % of $all bytes"
}
share 0 "${WRITE[@]}"
share 1 "${COPY[@]}"
exit 0
