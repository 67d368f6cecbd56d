#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1, by hand: small messages between node1 and node2 over one soft-RoCE rail, in turns through eager RDMA rings and by sends.
# The device default of btl_openib_use_eager_rdma follows from the result (DESIGN.txt 15.6). Needs the environment of a build, and
# VM_COMPONENTS with the folder of the BTL (lib.sh): run.sh -- tests/vm/jobs/eager_ring.sh [TURNS]
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
turns=${1:-5}

# figure RING perf_btl-arguments...
figure() {
    local ring=$1
    shift
    timeout 240 "$MPIRUN" --bind-to none -np 2 -H node1,node2 --mca pml ob1 --mca btl openib,self --mca btl_openib_if_include rxe0 \
        --mca btl_openib_use_eager_rdma "$ring" --mca btl_openib_ib_timeout 19 --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR" \
        "$BFO_BUILDDIR/tests/perf/perf_btl" "$@" 2>"$BFO_VM_OUT/eager_ring.err" </dev/null | tail -n 1
}

for ((i = 0; i < turns; ++i)); do
    for ring in 0 1 0; do
        echo "ring $ring: 8 bytes, half round trip $(figure $ring latency 8 2000) us; 64 bytes, $(figure $ring rate 64 40) messages/s"
    done
done
