#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The bring-down of a rail: control messages that get lost, fences that do not end, devices that go away, messages that
# were reported as delivered and never arrived, and the peer that is declared because of them.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 2)

# under PLAN UNTIL COUNT mpirun-arguments... [STREAM-OPTIONS]: a stream between two ranks on two rails with these faults, until the job has
# printed UNTIL COUNT times; a rail that is silent for $retry_time is given up; sets rc
retry_time=100ms
under() {
    printf '%b\n' "$1" >"$TEST_TMP/plan"
    stream_until "has_said '$2' $3" "-n 2 --plan $TEST_TMP/plan --retry-time=$retry_time" 2 "${@:4}"
}
# Each kind of bring-down message is lost four times: timers repeat it, and both ends come to rest. First byte: 0x30 DOWN, 0x31 DACK.
# (The BTL sends each copy over the rail itself and over another rail.)
cut='lose rail=sr1 op=send op=write payload=0:41 nth=300'
DOWN='rail 1 .*-> down on' GIVEN_UP='the fence did not end, its queue pairs were destroyed'
under "lose op=send payload=0:30 nth=1-4\n$cut" "$DOWN" 2 "$STREAM" -s 600 -m 1500
verified "DOWN lost four times"
says "$DOWN" 2
under "lose op=send payload=0:31 nth=1-4\n$cut" "$DOWN" 2 "$STREAM" -s 600 -m 1500
verified "DACK lost four times"
says "$DOWN" 2

# Queue pairs that cannot be put into the error state return nothing: the BTL destroys them after the timeout, and compares the counts. (With
# WRITEs the peer would be declared if a FIN had to be sent again, because their data may be missing.)
under "enomem op=qp_error rail=sr1\n$cut" "$DOWN" 2 --mca btl_openib_fence_timeout 1 --mca pml_bfo_use_put 0 \
    "$STREAM" -s 600 -m 300000
verified "a fence that does not end"
says "$GIVEN_UP"
grep -q 'declared unreachable' "$TEST_TMP/log" && fail "nothing was lost, and the peer was declared"
# With shared queues alone, a queue pair that still runs never reports its last receive: the fence of neither side ends. retry_time is so long
# that the timeout of the second side comes before its queue pairs find the other side's queue pairs gone; otherwise its fence would end after
# 100 ms.
retry_time=1s
under "enomem op=qp_error rail=sr1\n$cut" "$DOWN" 2 --mca btl_openib_fence_timeout 1 --mca pml_bfo_use_put 0 \
    --mca btl_openib_receive_queues S,256,256,240,12,64:S,12544,256,240,12,64:S,65792,64,60,4,16 "$STREAM" -s 600 -m 300000
verified "a fence of shared queues that does not end"
says "$GIVEN_UP" 2
grep -q 'declared unreachable' "$TEST_TMP/log" && fail "nothing was lost, and the peer was declared"

# The event of the last receive of queue pairs with shared queues. last_wqe OPTION MISSED FROM TO: at least MISSED fences ended without
# the event (none for 0), and the longest fence took FROM to TO ms.
# A machine that stalls makes a fence longer: the bounds are tried three times.
last_wqe() {
    local longest missed try
    printf '%b\n' "$cut" >"$TEST_TMP/plan"
    for try in 1 2 3; do
        stream_until "has_said '$DOWN' 2" "-n 2 --plan $TEST_TMP/plan --retry-time=100ms $1" 2 "$STREAM" -s 600 -m 300000
        verified "last receive's event: ${1:-raised}"
        longest=$(grep -oE 'fences [1-9][0-9]* \(longest [0-9]+' "$TEST_TMP/log" | awk '{ if ($NF > n) n = $NF } END { print n + 0 }')
        missed=$(grep -oE "without the last receive's event [0-9]+" "$TEST_TMP/log" | awk '{ n += $NF } END { print n + 0 }')
        says 'fences [1-9]' 2
        grep -q 'the fence did not end' "$TEST_TMP/log" && { show_log; fail "a fence was given up"; }
        grep -qE 'received late [1-9]|declared unreachable' "$TEST_TMP/log" && { show_log; fail "a fence ended too early"; }
        note "fences of $longest ms, $missed without the event"
        if [ "$missed" -ge "$2" ] && [ "$2$missed" = 00 -o "$2" != 0 ] && [ "$longest" -ge "$3" ] && [ "$longest" -le "$4" ]; then
            return
        fi
        [ $try = 3 ] || retry "fences of $longest ms, $missed without the event: ${1:-raised}"
    done
    show_log
    fail "${1:-raised}: fences of $3 to $4 ms were expected, at least $2 without the event"
}
last_wqe "" 0 0 900
last_wqe --last-wqe=0 2 100 900    # as soft-RoCE: the event is never raised, therefore the fence does not wait long
last_wqe --last-wqe=1 2 1000 9000  # for one of two queue pairs: the device does raise the event, therefore the other may still come
last_wqe --no-post-in-error 0 100 900 # no marker can be posted: the queue pair's state, 100 ms and empty completion queues end the fence

# A device goes away: only the verbs that destroy still work on it. (No WRITEs, as above.)
begin_stream "-n 2 --retry-time=100ms" 2 --mca pml_bfo_use_put 0 "$STREAM" -s 600 -m 100000
wait_until "has_said 'messages verified'"
"$SOFTRAIL" gone --fabric "$FABRIC" sr1 || fail "the device did not go"
wait_until "has_said '$DOWN' 2"
end_stream
verified "a device is gone"
says 'sr1: local catastrophic error|sr1: .*fatal' 2

# The peer's HCA acknowledged a message and died before the peer saw it: after the loss of the rail no process may wait for this message.
# The process declares the peer, tells it so, and does not contact it again.
fabric=bfo-swallow-$$
(
    for _ in $(seq 600); do
        "$SOFTRAIL" fault --fabric $fabric 2>/dev/null | grep -q ' 1  swallow' && break
        sleep 0.1
    done
    sleep 0.3
    "$SOFTRAIL" down --fabric $fabric sr1
) &
printf 'swallow rail=sr1 op=send op=write payload=0:41 nth=200\n' >"$TEST_TMP/plan"
on_rails "-n 2 --name $fabric --plan $TEST_TMP/plan --retry-time=100ms" 2 "$BFO_BUILDDIR/tests/mpi/btl_declared"
rc=$?
wait
[ $rc = 0 ] && [ "$(grep -c '^rank . declared\|^rank .: declared' "$TEST_TMP/log")" = 2 ] || { show_log; fail "a lost message: exit $rc"; }
says 'declared unreachable: messages that were reported as delivered are lost'
says 'declared unreachable: the process declared us unreachable'
# after a process has printed this line, it sends only PEERDEAD
awk '{ pid = $1 } / declared unreachable: / { gone[pid] = 1 }
    gone[pid] && / [A-Z]+\([0-9]+\) of rail [0-9]+ to / && !/PEERDEAD/ { print; bad = 1 } END { exit bad }' "$TEST_TMP/log" ||
    fail "a declared peer was contacted"
note "a swallowed message: $(grep -c 'PEERDEAD.* to ' "$TEST_TMP/log") PEERDEAD sent, $(grep 'declared after' "$TEST_TMP/log" | head -n 1)"
exit 0
