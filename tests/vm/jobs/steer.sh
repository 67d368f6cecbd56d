#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: one job over two machines. The script compares the output of the command bfo for both machines (through ssh) with the kernel's
# counters at each step: rails up, a rail cut, back, a port drained, released. As tables, JSON, Prometheus text and on a terminal.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
log=$BFO_VM_OUT/steer.log
out=$BFO_VM_OUT/steer.out
export BFO=$BFO_BUILDDIR/tools/bfo

# bfo_shows PATTERN ARGUMENTS...: a line of the output of bfo matches PATTERN; its status is in STATUS.
bfo_shows() {
    local pattern=$1
    shift
    "$BFO" "$@" >"$out" 2>&1
    STATUS=$?
    grep -Eq -- "$pattern" "$out"
}
# rails_are "NODE PORT STATE"...: status --json shows these states, on both machines; "_" stands for a space in a state.
rails_are() {
    "$BFO" status --hosts node1,node2 --json >"$out" 2>&1
    STATUS=$?
    perl -MJSON::PP -e 'local $/; open my $in, "<", shift; my $j = decode_json(<$in>);
        my %is = map { my $job = $_; map { ("$job->{host} $_->{port}", $_->{state} =~ s/ /_/gr) } @{$job->{ports}} } @{$j->{jobs}};
        for (@ARGV) { my ($node, $port, $state) = split; exit 1 if ($is{"$node $port"} // "-") ne $state } exit(0 == keys %is)' "$out" "$@"
}
# carried NODE PORT: bytes sent, according to bfo; sent NODE RAIL: according to the kernel's interface, with the network headers.
carried() {
    "$BFO" status --hosts node1,node2 --json 2>/dev/null | perl -MJSON::PP -e 'local $/; my $j = decode_json(<STDIN>);
        print map { $_->{sent_bytes} } grep { $_->{port} eq $ARGV[1] } map { @{$_->{ports}} } grep { $_->{host} eq $ARGV[0] } @{$j->{jobs}}' "$1" "$2"
}
sent() { node_run "$1" "cat /sys/class/net/eth$2/statistics/tx_bytes"; }
# look: while the ranks are stopped and nothing is in flight, prints both counts of each rail as words NODE:RAIL:BFO:KERNEL.
quiet() { local before; before=$(sent node1 0)$(sent node1 1)$(sent node2 0)$(sent node2 1); sleep 0.5; [ "$before" = "$(sent node1 0)$(sent node1 1)$(sent node2 0)$(sent node2 1)" ]; }
look() {
    local node rail
    for node in node1 node2; do node_run $node "pkill -STOP -x vm_ring"; done
    wait_for 240 quiet || echo "never quiet"
    for node in node1 node2; do
        for rail in 0 1; do echo "$node:$rail:$(carried $node rxe$rail:1):$(sent $node $rail)"; done
    done
    for node in node1 node2; do node_run $node "pkill -CONT -x vm_ring"; done
}
# The kernel counts the same bytes, and headers and acknowledgements: at most a fifth more.
counts_agree() {
    awk -F : -v bfo0="$3" -v kernel0="$4" -v bfo1="$5" -v kernel1="$6" -v name="$1 rxe$2" 'BEGIN {
        bfo = bfo1 - bfo0; kernel = kernel1 - kernel0; printf "  %s: bfo %d bytes, kernel %d\n", name, bfo, kernel
        exit !(bfo > 2e7 && bfo <= kernel && kernel <= 1.2 * bfo) }'
}
grown() { [ "$(carried "$1" "rxe$2:1")" -gt "$3" ]; }
rounds() { grep -c ^round "$log"; }
goes_on() { local before; before=$(rounds); wait_for 240 eval '[ "$(rounds)" -gt '$((before + 4))' ]'; }
# tmux_shows PATTERN: a line of "bfo top" in a terminal of 200 columns matches PATTERN.
tmux_shows() { tmux capture-pane -p -t top | tee "$out" | grep -Eq -- "$1"; }

timeout 800 "$MPIRUN" --bind-to none -np 2 -H node1,node2 --mca pml bfo --mca btl openib,self --mca btl_openib_ib_timeout 19 --mca btl_openib_rejoin_after 200 \
    --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR" "$VM_RING" 100000000 1000000 >"$log" 2>&1 </dev/null &
mpirun=$!
wait_for 240 grep -q ^round "$log" || { fail "no round: $(tail -n 3 "$log")"; finish; }

check "both machines' ports are up" wait_for 240 rails_are 'node1 rxe0:1 up' 'node1 rxe1:1 up' 'node2 rxe0:1 up' 'node2 rxe1:1 up'
check "and all is well ($STATUS)" [ "$STATUS" = 0 ]
check "the table has a row for each" bfo_shows '^  node2 +rxe1:1 .* up ' status --hosts node1,node2
check "one job on 2 nodes" grep -Eq '^job .* 2 of 2 ranks on 2 nodes' "$out"
look >"$BFO_VM_OUT/before"
carried_so_far=$(carried node2 rxe1:1)
check "the rails carry" wait_for 240 grown node2 1 $((carried_so_far + 30000000))
look >"$BFO_VM_OUT/after"
while IFS=: read -r node rail bfo0 kernel0 _ _ bfo1 kernel1; do
    check "$node's rail $rail carried what the kernel has counted" counts_agree "$node" "$rail" "$bfo0" "$kernel0" "$bfo1" "$kernel1"
done < <(paste -d : "$BFO_VM_OUT/before" "$BFO_VM_OUT/after")
tmux new-session -d -s top -x 200 -y 30 "'$BFO' top --interval 0.5" || fail "no terminal"
check "top shows a flow in a terminal" wait_for 240 tmux_shows 'rxe0:1 .* up +[0-9.]+[kMG] +[0-9.]+[kMG] '

check "rail_down node2 1" rail_down node2 1
check "the rail is lost at both ends" wait_for 240 rails_are 'node1 rxe0:1 up' 'node1 rxe1:1 lost' 'node2 rxe1:1 lost'
check "and not all is well ($STATUS)" [ "$STATUS" = 1 ]
check "an event of both machines names both ports" bfo_shows ' rail-lost rxe1:1 \(GID .*\) to rxe1:1 ' events --hosts node1,node2
check "the device's word is an event of node2" grep -Eq 'host node2 .* port-down rxe1:1 ' "$out"
check "Prometheus on this node" bfo_shows '^bfo_port_up\{.*device="rxe1",port="1"\} 0$' status --prometheus
check "top shows the loss" wait_for 240 tmux_shows 'rxe1:1 .* lost '
check "the job goes on" goes_on
check "rail_up node2 1" rail_up node2 1
check "the rail is back at both ends" wait_for 240 rails_are 'node1 rxe1:1 up' 'node2 rxe1:1 up'
check "which is an event" bfo_shows ' rail-back rxe1:1 ' events --hosts node1,node2

check "node1's port is drained" bfo_shows '^rxe1:1 is drained in 1 process' drain rxe1:1 --wait 60
check "and node2 knows" wait_for 240 eval '"$BFO" events --hosts node1 | grep -q " port-drained rxe1:1 "'
before1=$(carried node1 rxe1:1) before2=$(carried node2 rxe1:1)
check "the job goes on" goes_on
after1=$(carried node1 rxe1:1) after2=$(carried node2 rxe1:1)
check "nothing is sent over the drained rail ($before1 $after1, $before2 $after2)" eval '[ $((after1 - before1)) -lt 100000 ] && [ $((after2 - before2)) -lt 100000 ]'
check "top shows the drained port" wait_for 240 tmux_shows 'rxe1:1 .* drained '
check "a drained port is no loss" bfo_shows ' drained ' status
check "($STATUS)" [ "$STATUS" = 0 ]
check "node1's port is given back" bfo_shows '^rxe1:1 is given back' release rxe1:1 --wait 60
check "and carries again" wait_for 240 grown node2 1 $((after2 + 5000000))
check "doctor: two rails join the machines" bfo_shows '2 rails join any two of the 2 nodes' doctor --hosts node1,node2

# A monitor of the site takes the port out of service by an event, and gives it back.
sed -n '/^# watch-port DEVICE PORT/,/^```/{/^```/!p}' "$BFO_SRCDIR/docs/ftb.md" >"$BFO_VM_OUT/watch-port"
check "the monitor has 20 lines at most" eval '[ "$(wc -l <"$BFO_VM_OUT/watch-port")" -le 20 ] && [ -s "$BFO_VM_OUT/watch-port" ]'
mkdir -p /run/bin && ln -sf "$BFO" /run/bin/bfo
echo "4: ACTIVE" >/run/state
"$BFO" ftb serve >"$BFO_VM_OUT/ftb" 2>&1 &
server=$!
check "the server of fault events is there" wait_for 240 grep -q . "$BFO_VM_OUT/ftb"
PATH=/run/bin:$PATH STATE_FILE=/run/state sh "$BFO_VM_OUT/watch-port" rxe1 1 >"$BFO_VM_OUT/watch.log" 2>&1 &
monitor=$!
timeout 400 "$BFO" ftb subscribe MPI_IFACE_DEAD MPI_IFACE_RESTORED >>"$BFO_VM_OUT/events" 2>&1 &
subscriber=$!
check "a subscriber hears" wait_for 240 grep -q subscribed "$BFO_VM_OUT/events"
echo "1: DOWN" >/run/state
check "the monitor's event takes the port out of the job" wait_for 240 rails_are 'node1 rxe1:1 drained'
check "and the job's answer is an event" wait_for 240 grep -q 'MPI_IFACE_DEAD .*rxe1:1.* state: drained' "$BFO_VM_OUT/events"
check "the job goes on" goes_on
: >"$BFO_VM_OUT/events" # without the events of the monitor's first look
echo "4: ACTIVE" >/run/state
check "the monitor gives it back" wait_for 240 rails_are 'node1 rxe1:1 up'
check "which is an event" wait_for 240 grep -q 'MPI_IFACE_RESTORED .*rxe1:1' "$BFO_VM_OUT/events"
kill $monitor $subscriber $server

tmux kill-server
pkill -USR2 -x vm_ring
wait $mpirun
check "the job ends in order" [ $? = 0 ]
check "every byte was right" grep -q '^ok: [1-9][0-9]* rounds .* 0 wrong' "$log"
[ "$bad" = 0 ] || tail -n 20 "$log" "$out"
finish
