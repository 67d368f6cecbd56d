# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What the job scripts about a lost rail share: the stacks, the faults, and one job of vm_traffic through one fault.
# Sourced inside a machine, after rails.sh. DESIGN.txt 17.
seconds=${VM_TRAFFIC_SECONDS:-40} # a job without progress for so long hangs
ours=(--mca btl openib,self --mca mca_base_component_path "${VM_COMPONENTS:-/none}:$BFO_OMPI_COMPONENTDIR")
# UCX: when the provider is not mlx5, its UD wire-up reads the destination of a RoCE v2 datagram over IPv4 at the wrong place, and drops
# the datagram; GID 0, of the link-local IPv6 address, works. libfabric makes its completion queue for 256 peers by default, and rxe has
# fewer entries; the provider is bound to one network, because otherwise it may listen on one network and connect over another.
ucx=(--mca pml ucx -x UCX_TLS=rc_verbs,ud_verbs:aux,self -x UCX_NET_DEVICES=rxe0:1,rxe1:1 -x UCX_IB_GID_INDEX=0)
ofi=(--mca pml cm --mca mtl ofi -x FI_UNIVERSE_SIZE=8)

# stack NAME: sets $args to the stack's arguments of mpirun.
stack() {
    case $1 in
    'pml bfo, our btl openib') args=(--mca pml bfo "${ours[@]}") ;;
    'ob1, our btl openib') args=(--mca pml ob1 "${ours[@]}") ;;
    'ob1, btl tcp') args=(--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24,10.77.1.0/24) ;;
    'cm, mtl ofi tcp;ofi_rxm') args=("${ofi[@]}" --mca mtl_ofi_provider_include 'tcp;ofi_rxm' -x FI_TCP_IFACE=eth0) ;;
    'cm, mtl ofi verbs;ofi_rxm') args=("${ofi[@]}" --mca mtl_ofi_provider_include 'verbs;ofi_rxm' -x FI_VERBS_IFACE=eth0) ;;
    'pml ucx') args=("${ucx[@]}") ;;
    'pml ucx, retry count 6') args=("${ucx[@]}" -x UCX_RC_RETRY_COUNT=6) ;;
    esac
}

# inject FAULT RAIL: injects the fault on the rail, at node2 (the peer) unless the fault says otherwise.
inject() {
    case $1 in
    'link down, peer') rail_down node2 "$2" ;;
    'link down, own') rail_down node1 "$2" ;;
    'carrier pulled') carrier_pull node2 "$2" ;;
    'loss 100 %, one way') loss node2 "$2" in 100 ;;
    'loss 100 %, both ways' | 'silent to the end, one rail of two: longest gap') loss node2 "$2" both 100 ;;
    'lost acknowledgements') drop_acks node1 "$2" ;;
    'loss 1 %') loss node2 "$2" both 1 ;;
    'address gone for 2 s') address_del node2 "$2" && sleep 2 && address_add node2 "$2" ;;
    'link flap 0.4 s') flap node2 "$2" 0.4 link ;;
    'link flap 3 s') flap node2 "$2" 3 link ;;
    'path flap 0.4 s') flap node2 "$2" 0.4 path ;;
    'path flap 3 s'*) flap node2 "$2" 3 path ;;
    'flap of each rail in turn') flap node2 "$2" 3 link && sleep 5 && flap node2 $((1 - $2)) 3 link ;;
    'all rails away for 3 s') flap node2 all 3 link ;;
    'machine paused 3 s') pause node2 3 ;;
    'no fault') : ;;
    *) echo "no such fault: $1" >&2; return 1 ;;
    esac
}

# filtered FAULT: does the fault drop packets and count them? If it then drops none, it hit nothing.
filtered() { case $1 in loss* | lost* | path* | silent*) ;; *) false ;; esac; }
swallowed_all() { echo $(($(swallowed node1) + $(swallowed node2))); }

# carried RAIL FAULT: bytes that the rail has sent so far, or, where acknowledgements will be lost, its sends (data answer a read).
carried() {
    case $2 in
    lost*) cat /sys/class/infiniband/rxe"$1"/ports/1/hw_counters/rdma_sends ;;
    *) echo $(($(cat /sys/class/net/eth"$1"/statistics/tx_bytes) + $(packets node1 "$1") * 1000)) ;;
    esac
}

# busy_rail FAULT: the rail that carries more at this moment, so that the fault hits a rail that the job uses.
busy_rail() {
    local a b
    a=$(carried 0 "$1") b=$(carried 1 "$1")
    sleep 1
    a=$(($(carried 0 "$1") - a)) b=$(($(carried 1 "$1") - b))
    if [ $b -gt $a ]; then echo 1; else echo 0; fi
}

# rails_in_use: how many rails carry at least a tenth of what node1 sends in 3 s.
rails_in_use() {
    local before=("$(carried 0 x)" "$(carried 1 x)") a b
    sleep 3
    a=$(($(carried 0 x) - before[0])) b=$(($(carried 1 x) - before[1]))
    echo $(((10 * a >= a + b && a > 0) + (10 * b >= a + b && b > 0)))
}

running() { kill -0 $job 2>/dev/null; }
rounds() { grep -c '^round.*of rank 0' "$log"; }

# start_job LOG COMMAND...: starts mpirun in the background ($job, $log); returns 1 unless traffic flows.
start_job() {
    log=$1
    shift
    timeout 500 "$@" >"$log" 2>&1 </dev/null &
    job=$!
    wait_for 240 eval 'grep -q ^round "$log" || ! running'
    grep -q ^round "$log" && sleep 2
}

# watch: waits until the job ends, makes progress for 6 s without a break, or makes no progress for $seconds. Sets $outcome, $took.
watch() {
    local last now resumed= moved=$SECONDS
    last=$(rounds)
    while running; do
        sleep 0.5
        now=$(rounds)
        if [ "$now" -gt "$last" ]; then
            last=$now moved=$SECONDS resumed=${resumed:-$SECONDS}
            if [ $((SECONDS - resumed)) -ge 6 ]; then
                outcome=survived took=$(sed -n 's/^round.*of rank 0, stall \([0-9.]*\) s$/\1/p' "$log" | tail -n 1)
                return
            fi
        elif [ $((SECONDS - moved)) -ge 2 ]; then
            resumed= # the job only emptied its queues
        fi
        [ $((SECONDS - moved)) -lt "$seconds" ] || { outcome=hung took=-; return; }
    done
    outcome=aborted took=$((SECONDS - begun))
}

# end_job: asks a job that survived to end, which it must do without an error; kills any other job on all nodes.
end_job() {
    local node status
    if [ "$outcome" = survived ]; then
        pkill -USR2 -x vm_traffic
        wait_for 30 eval '! running'
        running && outcome='hung at its end'
    fi
    kill -TERM $job 2>/dev/null
    wait_for 5 eval '! running'
    kill -KILL $job 2>/dev/null
    wait $job
    status=$?
    grep -q 'WRONG' "$log" && outcome='WRONG DATA'
    [ "$outcome" = survived ] && { [ $status != 0 ] || ! grep -q '^ok: .* 0 wrong' "$log"; } && outcome="bad end ($status)"
    for node in node1 node2; do
        node_run $node "pkill -KILL -x vm_traffic; pkill -KILL -x orted; true"
    done
}

# through FAULT LOG MPIRUN-ARGUMENTS...: runs a job of vm_traffic through the fault. Sets $outcome and $took (s), $log, $dropped, the number of
# packets that the fault has dropped, and with $count_rails $in_use, the rails that a job that survived uses afterwards. They are counted
# until there are $count_rails of them, at most 20 times.
through() {
    local fault=$1 rail begun looks
    shift
    outcome='no start' took=- dropped=0 in_use=-
    if start_job "$1" "${MPIRUN:-mpirun}" --bind-to none -np 2 -H node1,node2 "${@:2}" "$VM_TRAFFIC"; then
        rail=$(busy_rail "$fault")
        pkill -USR1 -x vm_traffic
        outcome=
        begun=$SECONDS
        inject "$fault" "$rail" || { echo "(the fault '$fault' was not injected)"; outcome='no fault'; }
        [ -n "$outcome" ] || watch
        for ((looks = 0; looks < 20; looks++)); do
            [ "$outcome" = survived ] && [ -n "${count_rails:-}" ] && running || break
            in_use=$(rails_in_use)
            [ "$in_use" -lt "$count_rails" ] || break
        done
        dropped=$(swallowed_all)
        filtered "$fault" && [ "$dropped" = 0 ] && outcome='hit nothing'
    fi
    end_job
    heal || echo "(the rails did not heal)"
}
