#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The variables of MPI_T for each port grow by the bytes sent and received, with every protocol: over two rails under bfo, with RDMA and
# without, without a file of figures, with two modules per port, and under ob1, where only the BTL counts.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca btl openib,self)

# job RAILS "ARGUMENTS" MPIRUN-ARGUMENTS...
job() {
    local rails=$1 arguments=$2
    shift 2
    # shellcheck disable=SC2086
    on_rails "-n $rails" 2 "$@" "$BFO_BUILDDIR/tests/mpi/mpi_ports" $arguments || { tail -n 40 "$LOG"; fail "$*"; }
    says '^PASSED [1-9][0-9]* checks'
}

grew() { says "^btl_openib_port_$1_bytes grew by $2\$"; }

job 2 "2 2" --mca pml bfo
grew written 0
grew read '[0-9]{8}'
job 2 "2 2" --mca pml bfo --mca pml_bfo_use_get 0
grew written '[0-9]{8}'
grew read 0
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
