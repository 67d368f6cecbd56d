#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: jobs of pml bfo that start while rail 1 is down at one machine. If the port keeps its IP address, the rail is used when the
# port comes up. What the kernel does with the address is checked first: it stays without a cable, and with the interface set down.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"

# begin NAME: a verified ring over both machines starts.
begin() {
    log=$BFO_VM_OUT/late-$1.log
    timeout 500 "$MPIRUN" --bind-to none -np 2 -H node1,node2 --mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1 \
        --mca btl_openib_ib_timeout 19 --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR" \
        "$VM_RING" 100000000 100000 >"$log" 2>&1 </dev/null &
    mpirun=$!
    check "$1: the job starts" wait_for 240 grep -q ^round "$log"
}
end() {
    pkill -USR2 -x vm_ring # rank 0, which decides, runs on this machine
    wait $mpirun
    check "$1: the job ends in order" [ $? = 0 ]
    check "$1: every byte was right" grep -q '^ok: [1-9][0-9]* rounds .* 0 wrong' "$log"
}
has_said() { grep -Eq -- "$1" "$log"; }
refuses() { ! "$@"; }

# joins DOWN UP NODE: rail 1 is down at NODE when the job starts.
joins() {
    local name=$1 before
    check "$1 $3 1" "$1" "$3" 1
    check "$name: the port is down" node_run "$3" "$(port_is 1 DOWN)"
    check "$name: and keeps the GID of its address" [ -n "$(gid_index "$3" 1)" ]
    begin "$name"
    check "$name: the port belongs to the job" has_said "bfo: [01]->[01] rail 1: rxe1:1 - rxe1:1"
    check "$name: nobody is told to repair a port that may be out of use" refuses has_said 'The job starts without it'
    before=$(packets node1 1)
    check "$2 $3 1" "$2" "$3" 1
    check "$name: the rail carries its part now" wait_for 240 eval '[ "$(packets node1 1)" -gt '$((before + 500))' ]'
    check "$name: and bfo says so" wait_for 60 has_said 'A rail is back: .*rail 1 from rxe1:1'
    end "$name"
}
joins carrier_pull carrier_push node2
joins rail_down rail_up node1

check "address_del node2 1" address_del node2 1
check "rail_down node2 1" rail_down node2 1
begin stranger
check "stranger: a port that is down and has no address stays out" refuses has_said ' rail 1: '
end stranger
heal || echo "(the rails did not heal)"
finish
