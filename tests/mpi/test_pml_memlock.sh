#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Registrations are refused in the middle of a job over two software rails that count locked memory: messages are copied, and
# use RDMA again when registrations succeed again. With PUT and with GET, at the sender, at the receiver, at both.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml btl
REPORT=$TEST_TMP/rails.json

# memlock RAILS WHAT MPIRUN-ARGUMENTS... Uses small shared queues that do not grow: where 8 MiB may be locked for two rails, the
# default queues leave too little for new registrations.
memlock() {
    local rails=$1 what=$2
    shift 2
    PML_PREFIX=("$SOFTRAIL" run -n "$rails" --memlock --report "$REPORT" --)
    run_program "mpi_memlock" 2 --mca pml bfo --mca btl openib,self --mca mpi_leave_pinned 0 \
        --mca btl_openib_receive_queues P,256,12,6,6:S,12544,256,240,12,32:S,65792,64,60,4,8 --mca btl_openib_enable_srq_resize 0 \
        --mca pml_bfo_rdma_min 65536 "$@" -x "MEMLOCK_COUNTS=$what"
    rails_moved "$REPORT" $(seq 0 $((rails - 1)))
}
memlock 2 get
memlock 2 put --mca pml_bfo_use_get 0
memlock 1 put --mca pml_bfo_use_get 0
memlock 1 get

# Our BTL under ob1, which handles a refusal in its own way.
for pinned in 0 1; do
    PML_PREFIX=("$SOFTRAIL" run -n 2 --memlock --report "$REPORT" --)
    run_program mpi_memlock 2 --mca pml ob1 --mca btl openib,self --mca mpi_leave_pinned $pinned
    rails_moved "$REPORT" 0 1
done
exit 0
