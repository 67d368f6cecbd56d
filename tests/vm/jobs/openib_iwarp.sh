#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: our openib BTL over the kernel's software iWARP (siw) instead of soft-RoCE, on the same two networks: under ob1 and
# bfo, by send, put and get, over one rail and two, whose counters must grow. Which settings refuse iWARP, and what happens when a rail is lost.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
log=$BFO_VM_OUT/openib_iwarp.log
sizes="0 1 300 20000 100000 3000001"

# job PML [MPIRUN-ARGUMENT...]: a verified ring of all sizes between the machines.
job() {
    local pml=$1
    shift
    timeout 240 "$MPIRUN" --bind-to none -np 2 -H node1,node2 --mca pml "$pml" --mca btl openib,self --mca btl_openib_verbose 2 \
        --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR" "$@" "$VM_RING" 3 $sizes >"$log" 2>&1 </dev/null
}

# bytes RAIL: how many bytes node1 has sent on that network so far.
bytes() { cat "/sys/class/net/eth$1/statistics/tx_bytes"; }

# carries RAILS PML [MPIRUN-ARGUMENT...]: three rounds of 3.1 MB; each rail carries its part, and a network that is no rail carries nothing.
carries() {
    local rails=$1 r before=()
    shift
    for r in 0 1; do before[r]=$(bytes $r); done
    check "$*, rails $rails: a verified ring" job "$@"
    for r in 0 1; do
        if [ $r -lt "$rails" ]; then
            check "rail $r carried it ($(($(bytes $r) - before[r])) bytes)" [ $(($(bytes $r) - before[r])) -gt 1000000 ]
        else
            check "network $r did not ($(($(bytes $r) - before[r])) bytes)" [ $(($(bytes $r) - before[r])) -lt 10000 ]
        fi
    done
    [ "$bad" = 0 ] || tail -n 40 "$log"
}

# counted WHAT: do the counters of this name add up to three or more?
counted() { [ "$(sed -n "s/.*bfo: siw.*[ ,]$1 \([0-9]*\).*/\1/p" "$log" | awk '{ n += $1 } END { print n + 0 }')" -ge 3 ]; }

# meet: both sides of a connection start at once, on a slow network, and between ranks of one machine as well. The higher rank discards the
# connection that it started, and takes new queue pairs.
meet() {
    local n
    for n in 1 2; do
        node_run node$n "for r in 0 1; do tc qdisc replace dev eth\$r root netem limit 20000 delay 40ms || exit 1; done" || fail "no delay at node$n"
    done
    timeout 240 "$MPIRUN" --bind-to none -np 4 -H node1:2,node2:2 --mca pml ob1 --mca btl openib,self --mca btl_openib_verbose 1 \
        --mca btl_openib_blocking_progress 5 --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR" "$VM_MEET" >"$log" 2>&1 </dev/null
    check "four ranks meet, both sides at once" [ $? = 0 ]
    n=$(grep -c "requested -> ready on request, ours yields" "$log")
    check "requests crossed ($n times)" [ "$n" -ge 1 ]
    [ "$bad" = 0 ] || tail -n 40 "$log"
    for n in 1 2; do node_run node$n "for r in 0 1; do tc qdisc del dev eth\$r root; done"; done
}

# rail_lost: without failover the job ends with an error that names the peer; it does not hang.
rail_lost() {
    local mpirun status
    timeout 500 "$MPIRUN" --bind-to none -np 2 -H node1,node2 --mca pml bfo --mca btl openib,self \
        --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR" "$VM_RING" 100000000 100000 >"$log" 2>&1 </dev/null &
    mpirun=$!
    wait_for 240 grep -q ^round "$log" || fail "no round: $(tail -n 3 "$log")"
    node_run node2 "ip link set eth1 down" || fail "eth1 of node2 does not go down"
    wait $mpirun
    status=$?
    check "without failover a lost rail ends the job ($status)" [ $status != 0 ] && check "and it is no hang" [ $status != 124 ]
    check "the peer is declared" grep -q 'cannot reach a process any more' "$log"
    [ "$bad" = 0 ] || grep -v ^round "$log" | tail -n 40
}

# peer_dies: the peer is stopped first, therefore rank 0 only waits when the peer's connections are closed: the keepalive notices.
peer_dies() {
    timeout 500 "$MPIRUN" --enable-recovery --bind-to none -np 2 -H node1,node2 --mca pml bfo --mca btl openib,self --mca btl_openib_keepalive 3 \
        --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR" "$VM_RING" 100000000 1000 >"$log" 2>&1 </dev/null &
    wait_for 240 grep -q ^round "$log" || fail "no round: $(tail -n 3 "$log")"
    check "the peer is stopped" kill_rank 1 STOP
    sleep 1
    check "and killed" kill_rank 1 KILL
    check "who waits for a process that died is told" wait_for 240 grep -q 'cannot reach a process any more' "$log"
    wait $!
    check "and it is no hang" [ $? != 124 ]
    [ "$bad" = 0 ] || grep -v ^round "$log" | tail -n 40
}

# A process that ssh starts may lock little memory, and siw, unlike other drivers, makes no exception for root.
for n in 1 2; do
    node_run node$n "for p in \$(pidof dropbear); do prlimit --pid \$p --memlock=unlimited; done; for r in 0 1; do rdma link del rxe\$r && rdma link add siw\$r type siw netdev eth\$r || exit 1; done" ||
        fail "node$n has no siw"
done
[ "$bad" != 0 ] || carries 1 ob1 --mca btl_openib_if_include siw0
check "it is iwarp" grep -q 'siw0:1: iwarp' "$log"
check "by get" counted gets
[ "$bad" != 0 ] || carries 2 ob1 --mca btl_openib_flags send,put
check "by put" counted puts
[ "$bad" != 0 ] || carries 1 bfo --mca btl_openib_if_include siw0 --mca btl_openib_flags send
[ "$bad" != 0 ] || carries 2 bfo
check "and says that it has no failover" grep -q 'or its rails are iWARP' "$log"
if [ "$bad" = 0 ]; then
    check "without rdmacm: refused" eval '! job ob1 --mca btl_openib_cpc_include udcm'
    check "and why" grep -q 'iWARP adapters. They need the connection manager rdmacm' "$log"
fi
[ "$bad" != 0 ] || meet
[ "$bad" != 0 ] || peer_dies
[ "$bad" != 0 ] || rail_lost
dmesg | grep -E 'WARNING|BUG|Oops' && fail "the kernel complains"
finish
