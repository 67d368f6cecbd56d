#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The variables of MPI_T for each port grow by the bytes sent and received, with every protocol: over two rails under bfo, with RDMA and
# without, without a file of figures, with two modules per port, and under ob1, where only the BTL counts.
. "$BFO_SRCDIR/tests/lib.sh"
use_components pml btl
LOG=$TEST_TMP/log

# job RAILS "ARGUMENTS" MPIRUN-ARGUMENTS...
job() {
    local rails=$1 arguments=$2
    shift 2
    # shellcheck disable=SC2086
    timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n "$rails" -- "$MPIRUN" --oversubscribe --bind-to none -np 2 --mca btl openib,self "$@" \
        "$BFO_BUILDDIR/tests/mpi/mpi_ports" $arguments >"$LOG" 2>&1 </dev/null || { tail -n 40 "$LOG"; fail "$*"; }
    grep -q '^PASSED [1-9][0-9]* checks' "$LOG" || { tail -n 40 "$LOG"; fail "$*: no result"; }
}

grew() { grep -Eq "^btl_openib_port_$1_bytes grew by $2\$" "$LOG" || { cat "$LOG"; fail "not $1 by $2 bytes"; }; }

job 2 "2 2" --mca pml bfo
grew written '[0-9]{8}'
job 1 "1 1" --mca pml bfo --mca pml_bfo_use_put 0
grew written 0
grew read '[0-9]{8}'
job 2 "2 2" --mca pml bfo --mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0
grew written 0
grew read 0
job 2 "2 2" --mca pml bfo --mca pml_bfo_status_dir none
job 2 "4 2" --mca pml bfo --mca btl_openib_lanes 2
job 2 "2" --mca pml ob1
note "MPI_T: each port's bytes are those that were exchanged"
exit 0
