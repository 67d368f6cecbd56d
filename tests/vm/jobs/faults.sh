#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: each fault under a stream of sends (vm_stream; its retry count is 3, because 7 means without limit on rxe).
# The sender gets the expected status, the other rail is not affected, and all rails work afterwards.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
port=18700

# start_traffic RAIL: starts a stream from node1 to node2, and returns when it flows; its log is $log.
start_traffic() {
    port=$((port + 1))
    log=$BFO_VM_OUT/traffic-$port.log
    start_on node2 "$log.server" "timeout 40 $VM_STREAM -d rxe$1 -p $port -s 30"
    timeout 40 "$VM_STREAM" -d "rxe$1" -p $port -s 30 node2 >"$log" 2>&1 </dev/null &
    client=$!
    wait_for 15 grep -q flowing "$log"
}

# breaks STATUS FAULT...: the stream on rail 1, which would run for 30 s, ends with this completion status after the fault.
breaks() {
    local want=$1 begin
    shift
    start_traffic 1 || { fail "no traffic before $*: $(cat "$log" "$log.server")"; kill $client; return; }
    check "$*" "$@"
    begin=$SECONDS
    if wait_for 25 grep -Eq "^status ($want) " "$log"; then
        pass "sender sees $(grep ^status "$log") at most $((SECONDS - begin)) s later"
    else
        fail "sender does not see status $want: $(tail -n 3 "$log" | tr '\n' '|')"
        kill $client
    fi
    wait $client
    note=$(grep ^sent "$log")
}

# works RAIL: a verified stream passes over the rail.
works() {
    port=$((port + 1))
    start_on node2 /dev/null "timeout 40 $VM_STREAM -d rxe$1 -p $port -s 30"
    check "rail $1 works" quiet timeout 30 "$VM_STREAM" -d "rxe$1" -p $port -n 200 -r 6 -s 20 node2
}

# speed RAIL MESSAGES: sets $speed to the MiB/s of ib_write_bw with this number of messages, its start included. This shell's clock measures
# it, because perftest prints 0.00 where it cannot measure the processor's clock. Its output is in $log.
speed() {
    port=$((port + 1))
    log=$BFO_VM_OUT/speed-$port.log
    start_on node2 "$log.server" "timeout 120 ib_write_bw -d rxe$1 -x $(gid_index node2 "$1") -p $port -n $2 -s 65536 -t 8 -F"
    wait_for 30 node_run node2 "ss -Hltn 'sport = $port' | grep -q ." || fail "no server: $(cat "$log.server")"
    local begin=${EPOCHREALTIME/[.,]/}
    speed=
    timeout 120 ib_write_bw -d "rxe$1" -x "$(gid_index node1 "$1")" -p $port -n "$2" -s 65536 -t 8 -F node2 >"$log" 2>&1 </dev/null &&
        speed=$(awk -v n="$2" -v us=$((${EPOCHREALTIME/[.,]/} - begin)) 'BEGIN { printf "%.4f", n / 16 / us * 1e6 }')
}
is_between() { awk -v low="$1" -v x="$2" -v high="$3" 'BEGIN { exit !(x + 0 > low && x + 0 <= high) }'; }

quiet() { "$@" >/dev/null 2>&1; }
refuses() { ! quiet "$@"; }

links() {
    breaks '2|5' rail_down node1 1
    works 0
    check "rail_up" rail_up node1 1
    breaks 12 rail_down node2 1
    check "rail_up" rail_up node2 1
    breaks 12 carrier_pull node2 1
    check "carrier_push" carrier_push node2 1
    works 1
}

packets_lost() {
    local sent acknowledged received x
    breaks 12 loss node2 1 in 100
    check "loss ends" loss node2 1 in 0
    breaks 12 loss node1 1 out 100
    check "loss ends" loss node1 1 out 0
    check "loss of a share" loss node2 1 both 10
    works 1
    check "loss ends" loss node2 1 both 0
    breaks 12 drop_acks node1 1
    read -r x sent x acknowledged x received x <<<"$note"
    check "delivered, but unacknowledged: $note" [ "${received:-0}" -gt "${acknowledged:-0}" ]
    check "pass_acks" pass_acks node1 1
}

slow() {
    check "rate 20" rate 1 20
    speed 1 200
    check "a rail of 20 Mbit/s carries ${speed:-nothing: $(tail -n 5 "$log" "$log.server" | tr '\n' '|')} MiB/s" is_between 0 "${speed:-0}" 2.63
    check "rate 0" rate 1 0
}

rest() {
    local begin paused
    check "address_del" address_del node2 1
    check "no GID there now" refuses gid_index node2 1
    check "address_add" address_add node2 1
    works 1
    begin=$SECONDS
    pause node2 6 &
    paused=$!
    check "a paused machine does not answer" wait_for 30 refuses busybox ping -q -c 1 -W 1 node2
    wait $paused && pass "pause" || fail "pause"
    check "and answers afterwards, $((SECONDS - begin)) s later" wait_for 30 quiet busybox ping -q -c 1 -W 1 node2
    check "unknown machine refused" refuses rail_down node9 0
    check "unknown rail refused" refuses rail_down node1 7
    check "absurd loss refused" refuses loss node1 0 in 101
    check "absent rank refused" refuses kill_rank 5
    rail_down node1 0
    carrier_pull node2 0
    loss node1 1 out 100
    check "heal" heal
    works 0
    works 1
}

links
packets_lost
slow
rest
finish
