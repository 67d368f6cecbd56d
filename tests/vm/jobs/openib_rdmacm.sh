#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: our openib BTL with connections made by rdmacm, over two RoCE v2 rails to node2, under ob1 and bfo. Both rails must carry
# data, also with another MTU and traffic class. Both sides of a connection start at once; connections are made while the network loses
# packets; a rail is lost.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
log=$BFO_VM_OUT/openib_rdmacm.log

# job PML ROUNDS BYTES [MPIRUN-ARGUMENT...]: a verified ring between the machines.
job() {
    local pml=$1 rounds=$2 bytes=$3
    shift 3
    timeout 240 "$MPIRUN" --bind-to none -np 2 -H node1,node2 --mca pml "$pml" --mca btl openib,self \
        --mca btl_openib_cpc_include rdmacm --mca btl_openib_verbose 2 "$@" \
        --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR" "$VM_RING" "$rounds" "$bytes" >"$log" 2>&1 </dev/null
}

# rails_carry PML: each rail sends its part of the packets that the bytes need, and rdmacm made the connections.
rails_carry() {
    local before0 before1
    before0=$(packets node1 0) before1=$(packets node1 1)
    check "$1: a verified ring of 1,000,000 bytes" job "$1" 10 1000000
    note0=$(($(packets node1 0) - before0)) note1=$(($(packets node1 1) - before1))
    check "$1: rail 0 carried it ($note0 packets)" [ $note0 -gt 500 ]
    check "$1: rail 1 carried it ($note1 packets)" [ $note1 -gt 500 ]
    check "$1: requests came by rdmacm" grep -q 'REQ(0) of rail . from . by rdmacm' "$log"
    check "$1: replies came by rdmacm" grep -q 'REP(0) of rail . from . by rdmacm' "$log"
    [ "$bad" = 0 ] || tail -n 25 "$log"
}

# path_as_given: the user's MTU and traffic class override those of the connection manager, on both sides.
path_as_given() {
    check "a verified ring with another path" job ob1 3 100000 --mca btl_openib_ib_mtu 2 --mca btl_openib_ib_traffic_class 32
    check "all queue pairs have its MTU and class" [ "$(grep -c 'queue pair .* class 32, mtu 2,' "$log")" = "$(grep -c 'queue pair 0x' "$log")" ]
    check "there are queue pairs" grep -q 'queue pair 0x' "$log"
    [ "$bad" = 0 ] || tail -n 25 "$log"
}

# lossy: the kernel's connection manager repeats lost messages.
lossy() {
    check "a tenth of all packets lost" loss node2 0 in 10
    check "a verified ring of 8 bytes all the same" job ob1 3 8 --mca btl_openib_connect_timeout 60
    [ "$bad" = 0 ] || tail -n 25 "$log"
    check "no more loss" loss node2 0 in 0
}

# meet: both sides of a connection start at once, and their requests cross on a slow network. The lower rank's request holds, the other
# rank yields; nothing fails. With blocking progress ranks that wait leave the cores to ranks that work.
meet() {
    local n crossed=0 found args=(--bind-to none -np 4 -H node1:2,node2:2 --mca pml ob1 --mca btl openib,self
        --mca btl_openib_cpc_include rdmacm --mca btl_openib_verbose 1 --mca btl_openib_blocking_progress 5
        --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR")
    for n in 1 2; do
        node_run node$n "for r in 0 1; do tc qdisc replace dev eth\$r root netem limit 20000 delay 40ms || exit 1; done" || fail "no delay at node$n"
    done
    for n in 1 2 3; do
        timeout 240 "$MPIRUN" "${args[@]}" "$VM_MEET" >"$log" 2>&1 </dev/null
        check "four ranks meet, both sides at once" [ $? = 0 ]
        found=$(grep -c "requested -> ready on request, ours yields" "$log")
        crossed=$((crossed + found))
        [ "$bad" = 0 ] || { tail -n 25 "$log"; break; }
    done
    check "requests crossed ($crossed times)" [ "$crossed" -ge 3 ]
    for n in 1 2; do node_run node$n "for r in 0 1; do tc qdisc del dev eth\$r root; done"; done
}

# rail_lost: rdmacm carries the bring-down messages as well.
rail_lost() {
    local rounds mpirun
    timeout 500 "$MPIRUN" --bind-to none -np 2 -H node1,node2 --mca pml bfo --mca btl openib,self \
        --mca btl_openib_cpc_include rdmacm --mca btl_openib_verbose 2 --mca btl_openib_ib_timeout 18 \
        --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR" "$VM_RING" 100000000 1000 >"$log" 2>&1 </dev/null &
    mpirun=$!
    wait_for 240 grep -q ^round "$log" || fail "no round: $(tail -n 3 "$log")"
    check "rail_down node2 1" rail_down node2 1
    rounds=$(grep -c ^round "$log")
    check "pml bfo goes on over the other rail" wait_for 240 eval '[ "$(grep -c ^round "$log")" -gt '$((rounds + 8))' ]'
    check "DOWN came by rdmacm" wait_for 240 grep -q 'DOWN(0) of rail 1 from . by rdmacm' "$log"
    check "DACK came by rdmacm" wait_for 240 grep -q 'DACK(0) of rail 1 from . by rdmacm' "$log"
    [ "$bad" = 0 ] || grep -v ^round "$log" | tail -n 25
    # rank 0, which decides, runs on this machine; mpirun ends with an error if a byte was wrong
    pkill -USR2 -x vm_ring
    wait $mpirun
    check "the job ends in order" [ $? = 0 ]
    check "every byte was right" grep -q '^ok: [1-9][0-9]* rounds .* 0 wrong' "$log"
}

rails_carry ob1
[ "$bad" != 0 ] || rails_carry bfo
[ "$bad" != 0 ] || path_as_given
[ "$bad" != 0 ] || meet
[ "$bad" != 0 ] || lossy
[ "$bad" != 0 ] || rail_lost
finish
