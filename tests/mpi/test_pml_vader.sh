#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# All of point-to-point over vader,self on 2 and 4 ranks, with the BTL's limits and with small and odd ones.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml
ARGS=(--mca pml bfo --mca btl vader,self --mca pml_bfo_warn_no_failover 0)

for program in mpi_sizes mpi_match mpi_types mpi_comms mpi_threads; do
    run_program $program 2 "${ARGS[@]}"
done
for program in mpi_match mpi_comms mpi_threads; do
    run_program $program 4 "${ARGS[@]}"
done
# copies only, with a short eager limit
run_program mpi_sizes 2 "${ARGS[@]}" --mca pml_bfo_use_get 0 --mca pml_bfo_use_put 0 --mca pml_bfo_eager_limit 256
run_program mpi_types 2 "${ARGS[@]}" --mca pml_bfo_use_get 0 --mca pml_bfo_use_put 0 --mca pml_bfo_eager_limit 1000
# RDMA write in small pieces; many transfers of one message at a time
run_program mpi_sizes 2 "${ARGS[@]}" --mca pml_bfo_use_get 0 --mca pml_bfo_frag_size 5000 \
    --mca pml_bfo_recv_pipeline_depth 7
# few requests, and more messages than that which wait for their receive
run_program mpi_match 2 "${ARGS[@]}" --mca pml_bfo_free_list_max 64
exit 0
