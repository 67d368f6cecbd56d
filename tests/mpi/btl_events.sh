#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Events and errors under a verified stream on two rails: each takes away what it names and nothing else. Events of a port,
# of a device, of a queue pair; error completions that blame the rail, and error completions that blame the request.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1)

# strike LAYER RANKS "COMMANDS" UNTIL: starts the stream; runs these commands of softrail, separated by "/"; continues the stream until the
# job has printed UNTIL, and for a while longer. Sets rc. BYTES: length of the longest message.
strike() {
    local layer=$1 n=$2 until=$4 command commands job shown
    begin_stream "-n 2 --link-layer=$layer --retry-time=200ms" "$n" "$STREAM" -s 600 -m "${BYTES:-100000}"
    wait_until "have_moved 100000 2"
    IFS=/ read -ra commands <<<"$3"
    for command in "${commands[@]}"; do
        # shellcheck disable=SC2086
        "$SOFTRAIL" $command --fabric "$FABRIC" || { show_log; fail "softrail $command"; }
        sleep 0.2
    done
    wait_until "has_said '$until'"
    shown=$(grep -c 'messages verified' "$TEST_TMP/log")
    wait_until "has_said 'messages verified' $((shown + 2))"
    end_stream
}
# lost_rail RAIL CAUSE: this rail was lost, and no other
lost_rail() {
    says "^A rail was lost: .* rail $1 from .*; cause: .*$2"
    grep '^A rail was lost: ' "$TEST_TMP/log" | grep -vq " rail $1 from " && { show_log; fail "another rail was lost"; }
    return 0
}
LOST='A rail was lost: '
lost_nothing() { grep '^A rail was lost' "$TEST_TMP/log" && fail "a rail was lost"; return 0; }

strike ib 4 "down sr1" "$LOST"
verified "PORT_ERR, four ranks"
lost_rail 1 'the port is down'
strike ib 2 "port-error sr1" "$LOST"
verified "PORT_ERR of a port that goes on working"
lost_rail 1 'the port is down'
strike ib 2 "down sr1/up sr1" 'sr1:1: the port is back'
verified "PORT_ERR, PORT_ACTIVE"
says 'sr1:1: the port is back'
strike eth 2 "gid sr1" "$LOST"
verified "GID_CHANGE: the address of the port is gone, the port has another one"
lost_rail 1 'the port has another address'
strike ib 2 "gid sr1" 'sr1: GID table change'
verified "GID_CHANGE on InfiniBand, where LIDs count"
lost_nothing
says 'sr1: GID table change'
strike ib 2 "lid sr1" "$LOST"
verified "LID_CHANGE"
lost_rail 1 'the port has another address'
# A device goes away under long messages by WRITE, the default of every user. The data of an acknowledged WRITE may be missing in memory, and
# no process can know. Either the job continues with every byte right, or a process declares the peer and names it; the job never delivers
# wrong bytes, and never hangs.
BYTES=3000000 strike ib 2 "gone sr1" "A rail was lost: |cannot reach a process any more"
grep -qE 'wrong at byte| bytes, not |[1-9][0-9]* wrong$|Signal:' "$TEST_TMP/log" && { show_log; fail "DEVICE_FATAL under WRITEs: wrong data or a crash"; }
says 'sr1: local catastrophic error|sr1: .*fatal'
if grep -q 'The PML bfo cannot reach a process any more' "$TEST_TMP/log"; then
    [ $rc != 0 ] && [ $rc != 124 ] && [ $rc != 137 ] || { show_log; fail "DEVICE_FATAL under WRITEs: a peer is declared and the job ends with $rc"; }
    note "DEVICE_FATAL under WRITEs: the peer is declared"
else
    verified "DEVICE_FATAL under WRITEs"
fi
# Without WRITEs the job continues.
BTL_ARGS+=(--mca pml_bfo_use_put 0)
strike ib 2 "gone sr1" "$LOST"
verified "DEVICE_FATAL"
lost_rail 1 'the device failed'

# on_fault RULE UNTIL [STREAM-OPTIONS]: the fault happens under the stream, which continues until the job has printed UNTIL
on_fault() {
    printf '%b\n' "$1" >"$TEST_TMP/plan"
    stream_until "has_said 'messages verified' && has_said '$2'" "-n 2 --plan $TEST_TMP/plan --retry-time=200ms" 2 "$STREAM" -s 600 "${@:3}"
}
on_fault "fatal rail=sr1 op=send op=write nth=300 $NO_DATAGRAM" "$LOST"
verified "QP_FATAL"
says 'sr1: local work queue catastrophic error'
lost_rail 1 ''
# The queue pair of control messages fails with the first request to connect: the BTL makes it usable again and repeats the request.
# A failed send leaves its send queue in error (5, SQE), QP_FATAL the queue pair (6, ERR).
for fate in "error status=retry 5" "fatal 6"; do
    on_fault "${fate% *} rail=sr1 op=send payload=0:32 nth=1" "sr1:1: the queue pair of control messages was in state ${fate##* }"
    verified "${fate% *} of the first REQ"
    lost_nothing
    says "sr1:1: the queue pair of control messages was in state ${fate##* }"
    says 'sr1:1: .* mended [1-9]'
    rails_carried 100000 2
done
on_fault "migrated rail=sr1 op=send op=write nth=300 $NO_DATAGRAM" 'sr1: .*[Mm]igra'
verified "PATH_MIG"
says 'sr1: .*[Mm]igra'
lost_nothing

# A "local operation error" at a dead port is the fault of the rail. At a living port it is the fault of the request, as a protection error
# always is, unless another rail carries the request. (tests/unit/test_ofo_wc_error.c tests every case.)
# The port reports nothing: an event could be faster than the next message, and then no message would meet the dead port.
on_fault "down quiet rail=sr1 op=send op=write payload=0:41 nth=300\nerror rail=sr1 op=send op=write payload=0:41 status=local nth=300-" "$LOST" -m 1500
verified "LOC_QP_OP_ERR, port down"
grep -q "itself may be bad" "$TEST_TMP/log" && fail "a dead port was taken for a bad request"
grep -B2 "status=local" "$REPORT" | grep -q '"done": [1-9]' || fail "no message met the dead port"
for status in local protection; do
    on_fault "error rail=sr1 op=send op=write payload=0:41 status=$status nth=200" "$LOST" -m 1500
    verified "status=$status, port up"
    says 'the work request itself may be bad'
done
exit 0
