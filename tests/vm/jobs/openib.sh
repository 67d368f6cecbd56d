#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: our openib BTL over RoCE v2 rails between all machines, first under stock ob1, then under pml bfo; then a rail
# is lost, also with two ranks on each of two machines, where the ranks of a machine use vader. The packet counters of both rails
# must grow: otherwise another transport carried the data, or one rail carried all of it.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
log=$BFO_VM_OUT/openib.log
hosts=node1,node2
[ "$BFO_VM_NODES" = 3 ] && hosts=$hosts,node3

# job PML ROUNDS BYTES: a verified ring between the machines, with timers that are longer than a stall of a machine.
job() {
    local pml=$1
    log=$BFO_VM_OUT/openib-$1-$3.log
    shift
    timeout 240 "$MPIRUN" --bind-to none -np "$BFO_VM_NODES" -H "$hosts" --mca pml "$pml" --mca btl openib,self --mca btl_openib_ib_timeout 19 \
        --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR" "$VM_RING" "$@" >"$log" 2>&1 </dev/null
}

# rails_carry PML: small and large messages; each rail sends its part of the packets that the bytes need.
rails_carry() {
    local before0 before1
    before0=$(packets node1 0) before1=$(packets node1 1)
    check "$1: a verified ring of 8 bytes" job "$1" 200 8
    check "$1: a verified ring of 1,000,000 bytes" job "$1" 10 1000000
    [ "$bad" = 0 ] || tail -n 12 "$log"
    note0=$(($(packets node1 0) - before0)) note1=$(($(packets node1 1) - before1))
    check "$1: rail 0 carried it ($note0 packets)" [ $note0 -gt 500 ]
    check "$1: rail 1 carried it ($note1 packets)" [ $note1 -gt 500 ]
}

# rail_lost RANKS HOSTS BTLS: messages in fragments continue when the peer's port of one rail goes down in the middle of the job, and a
# message names the rail.
rail_lost() {
    local rounds mpirun
    log=$BFO_VM_OUT/openib-lost-$1.log
    timeout 500 "$MPIRUN" --bind-to none --oversubscribe -np "$1" -H "$2" --mca pml bfo --mca btl "$3" --mca pml_bfo_verbose 2 \
        --mca btl_openib_verbose 2 \
        --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR" "$VM_RING" 100000000 100000 >"$log" 2>&1 </dev/null &
    mpirun=$!
    wait_for 240 grep -q ^round "$log" || fail "no round: $(tail -n 3 "$log")"
    check "rail_down node2 1" rail_down node2 1
    rounds=$(grep -c ^round "$log")
    check "pml bfo goes on over the other rail" wait_for 240 eval '[ "$(grep -c ^round "$log")" -gt '$((rounds + 8))' ]'
    check "and says which rail is lost" grep -q 'A rail was lost: .* rail 1 from rxe1:1 ' "$log"
    [ "$bad" = 0 ] || rail_counters
    # rank 0, which decides, runs on this machine; mpirun ends with an error if a byte was wrong
    pkill -USR2 -x vm_ring
    wait $mpirun
    check "the job ends in order" [ $? = 0 ]
    check "every byte was right" grep -q '^ok: [1-9][0-9]* rounds .* 0 wrong' "$log"
}

rails_carry ob1
[ "$bad" != 0 ] || rails_carry bfo
[ "$bad" != 0 ] || rail_lost "$BFO_VM_NODES" "$hosts" openib,self
if [ "$bad" = 0 ]; then
    check "rail_up node2 1" rail_up node2 1
    rail_lost 4 node1:2,node2:2 openib,vader,self
    check "ranks of one machine talk by vader" grep -q 'bfo: 0->1 rails 1: vader, no failover$' "$log"
    check "those of two by both rails" grep -q 'bfo: 1->2 rails 2: rxe0:1 rxe1:1$' "$log"
fi
finish
