#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: one job over two machines; what the command bfo shows of it on both, asked for by ssh, at each step: up, a rail cut, back, a port
# drained, released. Tables, JSON, Prometheus and a terminal, beside what the kernel has counted.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
log=$BFO_VM_OUT/steer.log
out=$BFO_VM_OUT/steer.out
export BFO=$BFO_BUILDDIR/tools/bfo

# bfo_shows PATTERN ARGUMENTS...: a line of what it prints; the status stays in STATUS.
bfo_shows() {
    local pattern=$1
    shift
    "$BFO" "$@" >"$out" 2>&1
    STATUS=$?
    grep -Eq -- "$pattern" "$out"
}
# rails_are "NODE PORT STATE"...: of both machines, as status --json says; a space in a state is written _.
rails_are() {
    "$BFO" status --hosts node1,node2 --json >"$out" 2>&1
    STATUS=$?
    perl -MJSON::PP -e 'local $/; open my $in, "<", shift; my $j = decode_json(<$in>);
        my %is = map { my $job = $_; map { ("$job->{host} $_->{port}", $_->{state} =~ s/ /_/gr) } @{$job->{ports}} } @{$j->{jobs}};
        for (@ARGV) { my ($node, $port, $state) = split; exit 1 if ($is{"$node $port"} // "-") ne $state } exit(0 == keys %is)' "$out" "$@"
}
# carried NODE PORT: bytes sent, as bfo says; sent NODE RAIL: as the kernel's interface says, with the headers of the network.
carried() {
    "$BFO" status --hosts node1,node2 --json 2>/dev/null | perl -MJSON::PP -e 'local $/; my $j = decode_json(<STDIN>);
        print map { $_->{sent_bytes} } grep { $_->{port} eq $ARGV[1] } map { @{$_->{ports}} } grep { $_->{host} eq $ARGV[0] } @{$j->{jobs}}' "$1" "$2"
}
sent() { node_run "$1" "cat /sys/class/net/eth$2/statistics/tx_bytes"; }
# Between two looks both count the same bytes; packets of 1024 or 4096 bytes and acknowledgements make the kernel's sum larger, up to a fifth.
counts_agree() {
    local node=$1 rail=$2 before_bfo before_kernel bfo kernel
    before_kernel=$(sent "$node" "$rail") before_bfo=$(carried "$node" "rxe$rail:1")
    wait_for 60 grown "$node" "$rail" $((before_bfo + 30000000)) || return 1
    bfo=$(($(carried "$node" "rxe$rail:1") - before_bfo)) kernel=$(($(sent "$node" "$rail") - before_kernel))
    echo "  $node rxe$rail: bfo $bfo bytes, kernel $kernel"
    [ $((bfo * 10)) -le $((kernel * 11)) ] && [ $((kernel * 10)) -le $((bfo * 14)) ]
}
grown() { [ "$(carried "$1" "rxe$2:1")" -gt "$3" ]; }
rounds() { grep -c ^round "$log"; }
goes_on() { local before; before=$(rounds); wait_for 30 eval '[ "$(rounds)" -gt '$((before + 4))' ]'; }
# tmux_shows PATTERN: a line of "bfo top" in a terminal of 200 columns.
tmux_shows() { tmux capture-pane -p -t top | tee "$out" | grep -Eq -- "$1"; }

timeout 500 "$MPIRUN" --bind-to none -np 2 -H node1,node2 --mca pml bfo --mca btl openib,self --mca btl_openib_ib_timeout 19 --mca btl_openib_rejoin_after 200 \
    --mca mca_base_component_path "$VM_COMPONENTS:$BFO_OMPI_COMPONENTDIR" "$VM_RING" 100000000 1000000 >"$log" 2>&1 </dev/null &
mpirun=$!
wait_for 60 grep -q ^round "$log" || { fail "no round: $(tail -n 3 "$log")"; finish; }

check "both machines' ports are up" wait_for 30 rails_are 'node1 rxe0:1 up' 'node1 rxe1:1 up' 'node2 rxe0:1 up' 'node2 rxe1:1 up'
check "and all is well ($STATUS)" [ "$STATUS" = 0 ]
check "the table has a row for each" bfo_shows '^  node2 +rxe1:1 .* up ' status --hosts node1,node2
check "one job on 2 nodes" grep -Eq '^job .* 2 of 2 ranks on 2 nodes' "$out"
for node in node1 node2; do
    for rail in 0 1; do check "$node's rail $rail carries what the kernel has counted" counts_agree $node $rail; done
done
tmux new-session -d -s top -x 200 -y 30 "'$BFO' top --interval 0.5" || fail "no terminal"
check "top shows a flow in a terminal" wait_for 30 tmux_shows 'rxe0:1 .* up +[0-9.]+[kMG] +[0-9.]+[kMG] '

check "rail_down node2 1" rail_down node2 1
check "the rail is lost at both ends" wait_for 30 rails_are 'node1 rxe0:1 up' 'node1 rxe1:1 lost' 'node2 rxe1:1 lost'
check "and not all is well ($STATUS)" [ "$STATUS" = 1 ]
check "an event of both machines names both ports" bfo_shows ' rail-lost rxe1:1 \(GID .*\) to rxe1:1 ' events --hosts node1,node2
check "the device's word is an event of node2" grep -Eq 'host node2 .* port-down rxe1:1 ' "$out"
check "Prometheus on this node" bfo_shows '^bfo_port_up\{.*device="rxe1",port="1"\} 0$' status --prometheus
check "top shows the loss" wait_for 30 tmux_shows 'rxe1:1 .* lost '
check "the job goes on" goes_on
check "rail_up node2 1" rail_up node2 1
check "the rail is back at both ends" wait_for 60 rails_are 'node1 rxe1:1 up' 'node2 rxe1:1 up'
check "which is an event" bfo_shows ' rail-back rxe1:1 ' events --hosts node1,node2

check "node1's port is drained" bfo_shows '^rxe1:1 is drained in 1 process' drain rxe1:1 --wait 60
check "and node2 knows" wait_for 30 eval '"$BFO" events --hosts node1 | grep -q " port-drained rxe1:1 "'
before1=$(carried node1 rxe1:1) before2=$(carried node2 rxe1:1)
check "the job goes on" goes_on
after1=$(carried node1 rxe1:1) after2=$(carried node2 rxe1:1)
check "nothing is sent over the drained rail ($before1 $after1, $before2 $after2)" eval '[ $((after1 - before1)) -lt 100000 ] && [ $((after2 - before2)) -lt 100000 ]'
check "top shows the drained port" wait_for 30 tmux_shows 'rxe1:1 .* drained '
check "a drained port is no loss" bfo_shows ' drained ' status
check "($STATUS)" [ "$STATUS" = 0 ]
check "node1's port is given back" bfo_shows '^rxe1:1 is given back' release rxe1:1 --wait 60
check "and carries again" wait_for 60 grown node2 1 $((after2 + 5000000))
check "doctor: two rails join the machines" bfo_shows '2 rails join any two of the 2 nodes' doctor --hosts node1,node2

tmux kill-server
pkill -USR2 -x vm_ring
wait $mpirun
check "the job ends in order" [ $? = 0 ]
check "every byte was right" grep -q '^ok: [1-9][0-9]* rounds .* 0 wrong' "$log"
[ "$bad" = 0 ] || tail -n 20 "$log" "$out"
finish
