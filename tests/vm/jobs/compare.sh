#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: one row per stack and fault. The fault hits the rail that carries most at that moment, so the
# question is always: what becomes of the job when a rail it uses is lost while another one is well?
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
seconds=${VM_COMPARE_SECONDS:-60} # without progress for so long: hung
mpirun=("${MPIRUN:-mpirun}" --bind-to none -np 2 -H node1,node2 --mca btl_tcp_if_include 10.77.0.0/24,10.77.1.0/24)

# stack NAME: its arguments of mpirun in $args; 1 if there is no such stack here.
stack() {
    case $1 in
    'pml ucx') args=(--mca pml ucx -x UCX_TLS=rc_verbs,ud_verbs:aux,self -x UCX_IB_ROCE_LOCAL_SUBNET=y -x UCX_NET_DEVICES=rxe0:1,rxe1:1) ;;
    'pml ucx, retry count 6') args=(--mca pml ucx -x UCX_TLS=rc_verbs,ud_verbs:aux,self -x UCX_IB_ROCE_LOCAL_SUBNET=y -x UCX_NET_DEVICES=rxe0:1,rxe1:1 -x UCX_RC_RETRY_COUNT=6) ;;
    'ob1, btl tcp') args=(--mca pml ob1 --mca btl tcp,self) ;;
    'cm, mtl ofi verbs;ofi_rxm') args=(--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm') ;;
    'cm, mtl ofi tcp;ofi_rxm') args=(--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'tcp;ofi_rxm' -x FI_TCP_IFACE=eth0) ;;
    'ob1, our btl openib') args=(--mca pml ob1 --mca btl openib,self --mca mca_base_component_path "${VM_COMPONENTS:-/none}:$BFO_OMPI_COMPONENTDIR") ;;
    'pml bfo, our btl openib') args=(--mca pml bfo --mca btl openib,self --mca mca_base_component_path "${VM_COMPONENTS:-/none}:$BFO_OMPI_COMPONENTDIR") ;;
    esac
    case $1 in *our*) [ -n "${VM_COMPONENTS:-}" ] ;; esac
}

carried() { echo $(($(cat /sys/class/net/eth"$1"/statistics/tx_bytes) + $(packets node1 "$1") * 1000)); }

# busy_rail: the rail that carries more now.
busy_rail() {
    local a b
    a=$(carried 0) b=$(carried 1)
    sleep 1
    a=$(($(carried 0) - a)) b=$(($(carried 1) - b))
    if [ $b -gt $a ]; then echo 1; else echo 0; fi
}

inject() {
    case $1 in
    'link down') rail_down node2 "$2" ;;
    'loss of 100 %') loss node2 "$2" both 100 ;;
    'flap of 3 s') rail_down node2 "$2" && sleep 3 && rail_up node2 "$2" ;;
    'lost acknowledgements') drop_acks node1 "$2" ;;
    esac
}

rounds() { grep -c '^round' "$log"; }

# The last thing said that looks like a reason, in one line.
reason() {
    grep -iE 'error|fail|abort|unreach|signal|retry|lost' "$log" | grep -vE '^round|^---|mpirun noticed' | head -n 1 |
        sed 's/^\[[^]]*\] *//; s/[[:space:]]\+/ /g' | cut -c1-110
}

# watch ROUNDS: from $begin on, until the job ends, or goes on for 5 s together, or does neither for $seconds.
watch() {
    local last=$1 moved= now
    while kill -0 $job 2>/dev/null; do
        now=$(rounds)
        if [ "$now" -gt "$last" ]; then
            [ -n "$moved" ] || { moved=$SECONDS; stall=$((SECONDS - begin)); }
            [ $((SECONDS - moved)) -ge 5 ] && { outcome=survived; took=$stall; return; }
            last=$now lastmove=$SECONDS
        elif [ -n "$moved" ] && [ $((SECONDS - lastmove)) -ge 3 ]; then
            moved= # it only emptied its queues
        fi
        [ $((SECONDS - begin)) -ge "$seconds" ] && { outcome=hung took=-; return; }
        sleep 0.2
    done
    outcome=aborted took=$((SECONDS - begin))
}

row() {
    local args job log stall lastmove outcome took rail before begin reason=
    stack "$1" || return
    log=$BFO_VM_OUT/$(echo "$1-$2" | tr -c 'a-z0-9\n' _).log
    timeout 300 "${mpirun[@]}" "${args[@]}" "$VM_RING" 100000000 200000 >"$log" 2>&1 </dev/null &
    job=$!
    if ! wait_for 60 grep -q '^round' "$log"; then
        printf '%-28s| %-22s| %-9s| %4s | %s\n' "$1" "$2" "no start" - "$(reason)"
    else
        sleep 2
        rail=$(busy_rail)
        begin=$SECONDS
        inject "$2" "$rail" || echo "(the fault was not injected)"
        before=$(rounds)
        watch "$before"
        [ $outcome = survived ] || reason="$(reason)"
        [ $outcome = survived ] && reason="goes on after a stall of ${stall} s"
        [ $outcome = hung ] && reason=${reason:-says nothing}
        [ $outcome = aborted ] && grep -q 'signal 6' "$log" && reason="SIGABRT: $reason"
        printf '%-28s| %-22s| %-9s| %4s | %s\n' "$1" "$2" "$outcome" "$took" "$reason"
    fi
    kill -TERM $job 2>/dev/null
    wait_for 5 eval "! kill -0 $job 2>/dev/null"
    kill -KILL $job 2>/dev/null
    for node in node1 node2; do
        node_run $node "pkill -KILL -x vm_ring; pkill -KILL -x orted; true"
    done
    wait $job 2>/dev/null
    heal || echo "(the rails did not heal)"
}

printf '%-28s| %-22s| %-9s| %4s | %s\n' stack fault outcome s 'what it says'
for f in 'link down' 'flap of 3 s' 'loss of 100 %'; do
    for s in 'ob1, btl tcp' 'ob1, our btl openib' 'pml bfo, our btl openib' 'cm, mtl ofi tcp;ofi_rxm' 'cm, mtl ofi verbs;ofi_rxm' \
        'pml ucx' 'pml ucx, retry count 6'; do
        row "$s" "$f"
    done
done
