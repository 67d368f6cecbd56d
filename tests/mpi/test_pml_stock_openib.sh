#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The PML over the distribution's own openib BTL on two software rails: both must carry data. (The stock PML ob1
# is not run for comparison: on two rails it crashes on strided types and writes past the end of truncated receives.)
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
. "$BFO_SRCDIR/tests/mpi/real.sh"
[ -f "$BFO_OMPI_COMPONENTDIR/mca_btl_openib.so" ] || skip_missing "the openib BTL of Open MPI" libopenmpi3
use_components pml
REPORT=$TEST_TMP/rails.json
ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_allow_ib 1 --mca btl_openib_warn_no_device_params_found 0)
export OMPI_MCA_pml_bfo_warn_no_failover=0

# over_stock COMMAND...: runs a job. The distribution's openib sometimes (1 job of 100) never sends a message that waits in the queue of a connection
# that both sides started at once: the PML has handed the message over, and no rail has carried it. So a job that hangs is repeated; a job that
# fails in any other way is not.
over_stock() {
    local try start
    for try in 1 2 3; do
        start=$SECONDS
        (MPI_TIMEOUT=240 && "$@") && return
        [ $((SECONDS - start)) -ge 240 ] && [ $try -lt 3 ] || fail "try $try: $1 $2 $3"
        retry "$1 $2 $3 over the stock BTL hung"
    done
}

PML_PREFIX=("$SOFTRAIL" run -n 2 --report "$REPORT" --)
for program in mpi_sizes mpi_match mpi_types mpi_comms mpi_threads; do
    over_stock run_program $program 2 "${ARGS[@]}"
    rails_moved "$REPORT" 0 1
done
over_stock run_program mpi_match 4 "${ARGS[@]}"
over_stock run_program mpi_comms 4 "${ARGS[@]}"
over_stock run_program mpi_spawn 2 "${ARGS[@]}"
over_stock run_program mpi_sizes 2 "${ARGS[@]}" --mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0
rails_moved "$REPORT" 0 1
# a long message is shared evenly
share=$(($(rail_counter "$REPORT" 0 tx_bytes) * 100 / ($(rail_counter "$REPORT" 0 tx_bytes) + $(rail_counter "$REPORT" 1 tx_bytes))))
[ "$share" -ge 40 ] && [ "$share" -le 60 ] || fail "rail 0 carried $share % of the bytes"
# the PML says once that the job would not survive a lost rail
PML_PREFIX=("$SOFTRAIL" run -n 2 --)
OMPI_MCA_pml_bfo_warn_no_failover=1 over_stock run_program mpi_match 2 "${ARGS[@]}"
said=$(grep -c 'will not be survived' "$TEST_TMP/mpi_match.log")
[ "$said" = 1 ] || fail "the missing failover was announced $said times"

REAL_PREFIX=("$SOFTRAIL" run -n 2 --report "$REPORT" --)
over_stock run_netpipe "${ARGS[@]}"
rails_moved "$REPORT" 0 1
for n in 2 4; do
    over_stock run_hpcc $n "${ARGS[@]}"
    rails_moved "$REPORT" 0 1
done
over_stock run_scalapack 2 "${ARGS[@]}"
exit 0
