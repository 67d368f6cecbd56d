#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# NetPIPE, HPC Challenge and ScaLAPACK over our BTL and stock ob1 on two rails.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
. "$BFO_SRCDIR/tests/mpi/real.sh"
use_components btl
REAL_PREFIX=("$SOFTRAIL" run -n 2 --report="$REPORT" --)

run_netpipe "${BTL_ARGS[@]}"
rails_carried 10000000 2
run_hpcc 2 "${BTL_ARGS[@]}"
rails_carried 1000000 2
run_hpcc 4 "${BTL_ARGS[@]}"
run_scalapack 2 "${BTL_ARGS[@]}"
run_scalapack 4 "${BTL_ARGS[@]}"
rails_carried 100000 2
