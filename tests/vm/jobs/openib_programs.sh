#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: the MPI programs of tests/mpi that move least data, over two RoCE v2 rails to node2, under bfo and ob1, with both
# connection managers, both kinds of receive queues, with eager rings and without: every pair of these three occurs. Both rails
# must carry data; connection manager, queues and rings must be as configured.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
peer=P,2048,64,32,16:P,12544,12,6,4:P,65792,4,2,2
shared=S,2048,64,32,16:S,12544,32,16,8:S,65792,16,8,4

# program NAME PML MPIRUN-ARGUMENT...: runs the program; appends its output to the log of its configuration
program() {
    local name=$1 pml=$2 status
    shift 2
    timeout 120 "$MPIRUN" --bind-to none -np 2 -H node1,node2 --mca pml "$pml" --mca btl openib,self --mca btl_openib_ib_timeout 19 \
        --mca btl_openib_verbose 2 --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR" "$@" \
        "$BFO_BUILDDIR/tests/mpi/$name" >"$log.one" 2>&1 </dev/null
    status=$?
    cat "$log.one" >>"$log"
    [ $status = 0 ] && grep -q '^PASSED [1-9][0-9]* checks' "$log.one"
}

# configuration MANAGER QUEUES RING PML:PROGRAM...
configuration() {
    local manager=$1 queues=$2 ring=$3 name="$1, queues $2, ring $3" before=() rail job sent received receives
    log=$BFO_VM_OUT/openib_programs-$1-$2-$3.log
    shift 3
    : >"$log"
    for rail in 0 1; do before+=("$(packets node1 $rail)"); done
    for job in "$@"; do
        check "$name: ${job#*:} under ${job%:*}" program "${job#*:}" "${job%:*}" --mca btl_openib_cpc_include "$manager" \
            --mca btl_openib_receive_queues "${!queues}" --mca btl_openib_use_eager_rdma "$ring" --mca btl_openib_eager_rdma_threshold 1
        [ "$bad" = 0 ] || { tail -n 25 "$log.one"; return; }
    done
    for rail in 0 1; do
        sent=$(($(packets node1 $rail) - before[rail]))
        check "$name: rail $rail carried it ($sent packets)" [ $sent -gt 1000 ]
        case $ring in
        0) check "$name: rail $rail used no ring" eval "grep -q 'bfo: rxe$rail:1: .*ring 0 out 0 in' '$log' && ! grep -qE 'bfo: rxe$rail:1: .*ring [1-9]' '$log'" ;;
        1) check "$name: rail $rail used a ring" grep -qE "bfo: rxe$rail:1: .*ring [1-9][0-9]* out [1-9]" "$log" ;;
        esac
        received="REQ(0) of rail $rail from [01]"
        [ "$manager" = udcm ] || received="$received by rdmacm"
        check "$name: requests of rail $rail came by it" grep -q "$received\$" "$log"
    done
    receives=$(grep -aoE 'queue pair 0x[0-9a-f]+: .*receives [0-9]+' "$log" | grep -oE '[0-9]+$' | sort -un | tr '\n' ' ')
    case $queues in
    peer) check "$name: queue pairs have receives of their own ($receives)" [ "${receives%% *}" -gt 0 ] ;; # rxe rounds them up
    shared) check "$name: no queue pair has receives of its own ($receives)" [ "$receives" = "0 " ] ;;
    esac
}

configuration udcm peer 0 bfo:mpi_comms bfo:mpi_life
[ "$bad" != 0 ] || configuration udcm shared 1 bfo:mpi_modes ob1:mpi_comms
[ "$bad" != 0 ] || configuration rdmacm peer 1 bfo:mpi_types ob1:mpi_comms
[ "$bad" != 0 ] || configuration rdmacm shared 0 bfo:mpi_match ob1:mpi_life
finish
