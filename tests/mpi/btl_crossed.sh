#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Two processes lose different ports at the same moment; each loses the port of the rail that the other process still uses. Neither rail
# may be given up because one side alone says so: when the ports return, the verified stream continues. The script stops the processes
# while the ports go down, so that neither can report its loss before the other process has lost its own port.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl

# processes FABRIC: prints "NUMBER PID" of each process of the job
processes() { "$SOFTRAIL" status --fabric "$1" | sed -n 's/^process \([0-9]*\): pid \([0-9]*\).*/\1 \2/p'; }

# crossed RAILS SECONDS: rail 0 goes down at the first process, rail 1 at the second
crossed() {
    local rails=$1 seconds=$2 fabric=bfo-crossed-$$-$1 log=$TEST_TMP/log job shown first second pids
    : >"$log"
    timeout -k 5 240 "$SOFTRAIL" run -n "$rails" --name "$fabric" --report "$REPORT" -- "$MPIRUN" --report-pid "$log.pid" --oversubscribe \
        --bind-to none -np 2 --mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1 --mca pml_bfo_verbose 1 "$STREAM" -m 100000 \
        -s 600 >"$log" 2>&1 </dev/null &
    job=$!
    await "$log" 'messages verified' || { show_log; fail "no stream"; }
    read -r first second <<<"$(processes "$fabric" | cut -d' ' -f1 | tr '\n' ' ')"
    pids=$(processes "$fabric" | cut -d' ' -f2 | tr '\n' ' ')
    [ -n "$second" ] || { "$SOFTRAIL" status --fabric "$fabric"; fail "not two processes"; }
    # shellcheck disable=SC2086
    kill -STOP $pids
    "$SOFTRAIL" down --fabric "$fabric" 0 --process "$first" && "$SOFTRAIL" down --fabric "$fabric" 1 --process "$second" ||
        { show_log; fail "the ports could not be taken down"; }
    # shellcheck disable=SC2086
    kill -CONT $pids
    await "$log" 'sr0:1: the port is down' && await "$log" 'sr1:1: the port is down' || { show_log; fail "a port's loss was not seen"; }
    sleep "$seconds"
    "$SOFTRAIL" up --fabric "$fabric" 0 --process "$first" && "$SOFTRAIL" up --fabric "$fabric" 1 --process "$second" ||
        { show_log; fail "the job ended while the ports were down"; }
    shown=$(grep -c 'messages verified' "$log")
    await "$log" 'messages verified' $((shown + 2)) || { show_log; fail "the stream does not go on"; }
    kill -USR1 "$(cat "$log.pid")"
    wait $job || { show_log; fail "$rails rails: the job ended with an error"; }
    grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$log" || { show_log; fail "$rails rails: the stream did not verify"; }
    ! grep -q 'cannot reach a process' "$log" || { show_log; fail "$rails rails: a peer was declared"; }
    rails_carried 100000 "$rails"
    note "$rails rails, $seconds s: $(grep ' 0 wrong$' "$log" | tail -n 1)"
}

# Three processes: each of the first two reaches the third over one rail, and says correctly to which peers its other rail is lost.
three() {
    local fabric=bfo-crossed-$$-three log=$TEST_TMP/log job pids numbers
    : >"$log"
    timeout -k 5 240 "$SOFTRAIL" run -n 2 --name "$fabric" --report "$REPORT" -- "$MPIRUN" --oversubscribe --bind-to none -np 3 --mca pml bfo \
        --mca btl openib,self --mca pml_bfo_verbose 1 --mca pml_bfo_warnings_per_minute 100 "$BFO_BUILDDIR/tests/mpi/mpi_counters" "$TEST_TMP/go" \
        >"$log" 2>&1 </dev/null &
    job=$!
    await "$log" '^ready' || { show_log; fail "three: not ready"; }
    read -ra numbers <<<"$(processes "$fabric" | cut -d' ' -f1 | tr '\n' ' ')"
    pids=$(processes "$fabric" | cut -d' ' -f2 | tr '\n' ' ')
    # shellcheck disable=SC2086
    kill -STOP $pids
    "$SOFTRAIL" down --fabric "$fabric" 0 --process "${numbers[0]}" && "$SOFTRAIL" down --fabric "$fabric" 1 --process "${numbers[2]}" ||
        { show_log; fail "three: the ports could not be taken down"; }
    # shellcheck disable=SC2086
    kill -CONT $pids
    await "$log" '^A rail was lost: .* to all peers that another rail reaches; ' 2 || { show_log; fail "three: not said that some peers keep the rail"; }
    "$SOFTRAIL" up --fabric "$fabric" 0 --process "${numbers[0]}" && "$SOFTRAIL" up --fabric "$fabric" 1 --process "${numbers[2]}" ||
        { show_log; fail "three: the job ended while the ports were down"; }
    touch "$TEST_TMP/go"
    wait $job || { show_log; fail "three: the job ended with an error"; }
    grep -q '^PASSED [1-9]' "$log" || { show_log; fail "three: no result"; }
    rails_carried 100000 2
    note "three processes: $(grep '^PASSED' "$log")"
}
three
crossed 2 1
crossed 2 0.1
crossed 3 1
exit 0
