#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: stock Open MPI over tcp on the rails, with ranks on all machines. Then a machine pauses and the ring
# continues afterwards; a rank is killed and mpirun names it.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
hosts=node1,node2
[ "$BFO_VM_NODES" = 3 ] && hosts=$hosts,node3
stock=(timeout 240 "$MPIRUN" --bind-to none -np "$BFO_VM_NODES" -H "$hosts" --mca pml ob1 --mca btl tcp,self
    --mca btl_tcp_if_include 10.77.0.0/24,10.77.1.0/24)
log=$BFO_VM_OUT/mpi_tcp.log

bytes() { cat "/sys/class/net/eth$1/statistics/tx_bytes"; }

whole_job() {
    local before0 before1
    before0=$(bytes 0)
    before1=$(bytes 1)
    check "a verified ring over tcp" "${stock[@]}" "$VM_RING" 20 100000
    check "rail 0 carried it" [ $(($(bytes 0) - before0)) -gt 200000 ]
    check "rail 1 carried it" [ $(($(bytes 1) - before1)) -gt 200000 ]
}

# start_endless: a ring that runs until something ends it.
start_endless() {
    "${stock[@]}" "$VM_RING" 1000000 1000 >"$log" 2>&1 </dev/null &
    job=$!
    wait_for 240 grep -q '^round' "$log" || fail "no round: $(tail -n 3 "$log")"
}

machine_paused() {
    local rounds
    start_endless
    check "pause node2 2" pause node2 2
    rounds=$(grep -c '^round' "$log")
    check "the ring goes on afterwards" wait_for 240 more_rounds "$rounds"
}
more_rounds() { [ "$(grep -c '^round' "$log")" -gt "$1" ]; }

rank_killed() {
    check "kill_rank 1" kill_rank 1
    wait $job
    local status=$?
    check "mpirun ends with an error ($status)" [ $status -ne 0 -a $status -ne 124 ]
    check "and says who died" grep -q 'rank 1 .*node2.* exited on signal 9' "$log"
}

whole_job
machine_paused
rank_killed
finish
