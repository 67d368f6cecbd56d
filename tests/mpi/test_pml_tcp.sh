#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# All of point-to-point over tcp,self on 1 to 8 ranks, with the BTL's limits and with small and odd limits.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml
ARGS=(--mca pml bfo --mca btl tcp,self --mca pml_bfo_warn_no_failover 0)

run_point_to_point "${ARGS[@]}"
# spawned processes (vader does not reach processes of another job)
run_program mpi_spawn 2 "${ARGS[@]}"
exit 0
