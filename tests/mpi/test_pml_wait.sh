#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# All rails between two processes are lost while a verified stream runs: the job waits, and continues when a rail is back, with one rail or
# two, with PUT, RGET and copies, and also if the very first message was lost. If no rail comes back in time, the requests fail. Nobody waits
# for a killed process: its own node finds out through /proc, and a process of that node tells the other nodes.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_time_wait 1 --mca pml_bfo_rejoin 1 --mca btl_openib_rejoin_after 50 --mca btl_openib_rejoin_half_life 0 --mca pml_bfo_verbose 1 --mca pml_bfo_warn_no_failover 0)
log=$TEST_TMP/log

# every VERB RAILS: VERB for each of the first RAILS rails of the fabric
every() {
    local rail
    for ((rail = 0; rail < $2; ++rail)); do
        "$SOFTRAIL" "$1" --fabric "$FABRIC" $rail || give_up "rail $rail: no $1"
    done
}

# away RAILS mpirun-arguments...: twice all rails are silent until a side waits; the other side may have nothing to send, and then notices
# only when a rail is back
away() {
    local rails=$1 time waits
    shift
    begin_stream "-n $rails --retry-time=300ms" 2 "$@" "$STREAM" -m 300000 -s 600
    await "$log" 'messages verified' || give_up 'no stream'
    for time in 1 2; do
        waits=$(grep -c 'no rail is left: this process waits' "$log")
        every silent "$rails"
        await "$log" 'no rail is left: this process waits' $((waits + 1)) || give_up "$rails rails, $*: nobody waits, time $time"
        every up "$rails"
        await "$log" 'is back; in use' $((2 * rails * time)) || give_up "$rails rails, $*: not all rails are back, time $time"
    done
    end_stream
    [ $rc = 0 ] || give_up "$rails rails, $*: the job ended with $rc"
    grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$log" || give_up "$rails rails, $*: the stream did not verify"
    ! grep -q 'cannot reach a process' "$log" || give_up "$rails rails, $*: a peer was given up"
    note "$rails rails, $*: $(grep ' 0 wrong$' "$log" | tail -n 1)"
}
away 1
away 2
away 2 --mca pml_bfo_use_put 0
away 2 --mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0
grep -q 'No rail is left to a process; the job waits for a rail: .* it waits 300 s' "$log" || give_up 'no message says that the job waits'

# The first message is lost with the only rail, so the receiver has sent and received nothing when the sender asks for the rail's return.
echo 'error status=retry rail=sr0 op=send payload=0:41 nth=1' >"$TEST_TMP/plan"
PML_PREFIX=("$SOFTRAIL" run -n 1 --plan "$TEST_TMP/plan" --report "$REPORT" --)
run_program mpi_sizes 2 "${BTL_ARGS[@]}"
grep -q '"done": 1' "$REPORT" && grep -q 'no rail is left: this process waits' "$TEST_TMP/mpi_sizes.log" || fail 'the first message was not lost'
! grep -q 'cannot reach a process' "$TEST_TMP/mpi_sizes.log" || fail 'a peer was given up after its first message was lost'

# no rail comes back
begin_stream "-n 2 --retry-time=300ms" 2 --mca pml_bfo_last_rail_timeout 2 "$STREAM" -m 300000 -s 600
await "$log" 'messages verified' || give_up 'no stream'
every silent 2
await "$log" 'no rail is left: this process waits' || give_up 'nobody waits'
wait $job && give_up 'the job ended well without rails'
grep -q 'cause: no rail came back in time' "$log" || give_up 'the wait did not end'

# Ranks 2 and 3 are on the other node; rank 3 is killed. Rank 2 tells the others, whether they have exchanged messages with it before or not.
# The jobs leave out the runtime's fence at the end: see test_pml_lost.sh. await gives up before the wait for a rail would end.
killed() {
    local node
    rm -f "$TEST_TMP/go"
    begin_stream "-n 2 --retry-time=100ms" 4 --enable-recovery "${TWO_NODES[@]}" --mca async_mpi_finalize 1 --mca btl_openib_keepalive 1 \
        "$PML_DIR/mpi_killed" "$1" "$TEST_TMP/go"
    await "$log" '^ready' || give_up "mpi_killed $1 did not begin"
    touch "$TEST_TMP/go"
    await "$log" '^PASSED [1-9]' 3 || give_up "$1: not all three survivors passed"
    kill $job # mpirun waits without limit for a process of another daemon that died
    wait $job
    for node in 1 2; do
        await "$log" 'cannot reach .* to rank 3 .*; cause: the process is dead, as its machine says' $node || give_up "$1: a node does not say that the process is dead"
    done
    note "killed, $1: $(grep -c 'no rail is left: this process waits' "$log") of 3 survivors waited, and learnt that the process is dead"
}
two_nodes
killed all
killed it
exit 0
