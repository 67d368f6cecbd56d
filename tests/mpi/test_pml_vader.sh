#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# All of point-to-point over vader,self on 1 to 8 ranks, with the BTL's limits and with small and odd limits.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml
ARGS=(--mca pml bfo --mca btl "$SHARED_MEMORY,self" --mca pml_bfo_warn_no_failover 0)

run_point_to_point "${ARGS[@]}"
# few requests, and more messages than requests wait for their receive
run_program mpi_match 2 "${ARGS[@]}" --mca pml_bfo_free_list_max 64
exit 0
