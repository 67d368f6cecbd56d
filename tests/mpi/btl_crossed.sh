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
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca pml_bfo_verbose 1)

# processes: prints "NUMBER PID" of each process of the job
processes() { "$SOFTRAIL" status --fabric "$FABRIC" | sed -n 's/^process \([0-9]*\): pid \([0-9]*\).*/\1 \2/p'; }

# crossed RAILS SECONDS: rail 0 goes down at the first process, rail 1 at the second
crossed() {
    local rails=$1 seconds=$2 job shown first second pids
    begin_stream "-n $rails" 2 --mca btl_openib_verbose 1 "$STREAM" -m 100000 -s 600
    await "$LOG" 'messages verified' || { show_log; fail "no stream"; }
    read -r first second <<<"$(processes | cut -d' ' -f1 | tr '\n' ' ')"
    pids=$(processes | cut -d' ' -f2 | tr '\n' ' ')
    [ -n "$second" ] || { "$SOFTRAIL" status --fabric "$FABRIC"; fail "not two processes"; }
    # shellcheck disable=SC2086
    kill -STOP $pids
    "$SOFTRAIL" down --fabric "$FABRIC" 0 --process "$first" && "$SOFTRAIL" down --fabric "$FABRIC" 1 --process "$second" ||
        { show_log; fail "the ports could not be taken down"; }
    # shellcheck disable=SC2086
    kill -CONT $pids
    await "$LOG" 'sr0:1: the port is down' && await "$LOG" 'sr1:1: the port is down' || { show_log; fail "a port's loss was not seen"; }
    sleep "$seconds"
    "$SOFTRAIL" up --fabric "$FABRIC" 0 --process "$first" && "$SOFTRAIL" up --fabric "$FABRIC" 1 --process "$second" ||
        { show_log; fail "the job ended while the ports were down"; }
    shown=$(grep -c 'messages verified' "$LOG")
    await "$LOG" 'messages verified' $((shown + 2)) || { show_log; fail "the stream does not go on"; }
    end_stream
    verified "$rails rails, $seconds s"
    ! grep -q 'cannot reach a process' "$LOG" || { show_log; fail "$rails rails: a peer was declared"; }
    rails_carried 100000 "$rails"
}

# Three processes: each of the first two reaches the third over one rail, and says correctly to which peers its other rail is lost.
three() {
    local job pids numbers
    begin_stream "-n 2" 3 --mca pml_bfo_warnings_per_minute 100 "$BFO_BUILDDIR/tests/mpi/mpi_counters" "$TEST_TMP/go"
    await "$LOG" '^ready' || { show_log; fail "three: not ready"; }
    read -ra numbers <<<"$(processes | cut -d' ' -f1 | tr '\n' ' ')"
    pids=$(processes | cut -d' ' -f2 | tr '\n' ' ')
    # shellcheck disable=SC2086
    kill -STOP $pids
    "$SOFTRAIL" down --fabric "$FABRIC" 0 --process "${numbers[0]}" && "$SOFTRAIL" down --fabric "$FABRIC" 1 --process "${numbers[2]}" ||
        { show_log; fail "three: the ports could not be taken down"; }
    # shellcheck disable=SC2086
    kill -CONT $pids
    await "$LOG" '^A rail was lost: .* to all peers that another rail reaches; ' 2 || { show_log; fail "three: not said that some peers keep the rail"; }
    "$SOFTRAIL" up --fabric "$FABRIC" 0 --process "${numbers[0]}" && "$SOFTRAIL" up --fabric "$FABRIC" 1 --process "${numbers[2]}" ||
        { show_log; fail "three: the job ended while the ports were down"; }
    touch "$TEST_TMP/go"
    passes three
    rails_carried 100000 2
    note "three processes: $(grep '^PASSED' "$LOG")"
}
three
crossed 2 1
crossed 2 0.1
crossed 3 1
exit 0
