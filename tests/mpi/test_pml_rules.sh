#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The rules of MPI while rails are lost: buffered, synchronous, cancelled and probed messages, requests and communicators that are
# freed, many messages at a time, and MPI_Finalize with the last message lost. With each protocol; messages are lost, or delivered
# though reported as lost.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca pml_bfo_counters 1)
PROGRAM=mpi_rules

# rules "RULE;RULE..." MPIRUN-ARGUMENTS...: faults from the start. mpi_rules goes on until each rule has cost a rail, however slow the machine is, or
# (a fault of its last message) until each kind of message has been used. mpi_threads ends by itself.
rules() {
    local plan=$1 job rc until
    shift
    tr ';' '\n' <<<"$plan" >"$TEST_TMP/plan"
    until="has_said '^A rail was lost:' $(wc -l <"$TEST_TMP/plan")"
    [[ $plan != *deadbeef* ]] || until="has_said '^ready'"
    begin_stream "-n 3 --plan $TEST_TMP/plan --retry-time=100ms" 2 "$@" "$BFO_BUILDDIR/tests/mpi/$PROGRAM" 0.7
    if [ $PROGRAM = mpi_rules ]; then
        while kill -0 $job 2>/dev/null && ! eval "$until"; do sleep 0.1; done
        kill -USR1 "$(cat "$TEST_TMP/pid")" 2>/dev/null
    fi
    passes "$PROGRAM, $plan $*"
    [ $PROGRAM != mpi_rules ] || has_said '^last word received' || { show_log; fail "$PROGRAM, $plan $*: no last word"; }
    has_said '^A rail was lost:' || { show_log; fail "$plan $*: no rail was lost, so nothing was tested"; }
    note "$plan $*: $(grep -o '^PASSED [0-9]* checks' "$LOG"), $(grep -oE '(resends|restarts|duplicate) [0-9]+' "$LOG" | tr '\n' ' ')"
}
COPY=(--mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0)
PUT=(--mca pml_bfo_use_get 0)
for fault in lose unacked; do
    for n in 40 400; do
        rules "$fault rail=sr1 nth=$n $NO_DATAGRAM"
        rules "$fault rail=sr2 nth=$n $NO_DATAGRAM" "${COPY[@]}"
        rules "$fault rail=sr0 nth=$n $NO_DATAGRAM" "${PUT[@]}"
    done
    rules "$fault rail=sr1 op=read nth=3"
    rules "$fault rail=sr0 op=write nth=9" "${PUT[@]}" # after the six writes that prove the rail
    rules "$fault payload=24:deadbeef1a57 nth=1" # the last message, in flight when MPI_Finalize begins
    # by type of message, once each: MATCH, RNDV, ACK, FRAG; RGET and the FIN of a READ; PUT and the FIN of a WRITE
    for type in 41 42 44 46; do
        rules "$fault rail=sr1 payload=0:$type nth=5" "${COPY[@]}"
    done
    for type in 43 49; do
        rules "$fault rail=sr1 payload=0:$type nth=5"
    done
    for type in 48 49; do
        rules "$fault rail=sr1 payload=0:$type nth=5" "${PUT[@]}"
    done
done
# a message is torn, and then the first message of its restart handshake is lost on another rail: NOTIFY, RACK, NACK, RERR
# (the first FRAG of the job is the only FRAG of its message: the receiver has everything, and answers NACK)
for pair in "lose 46 5 4b" "lose 46 5 4c" "unacked 46 1 4d" "unacked 44 5 4e"; do
    read -r fault torn n handshake <<<"$pair"
    rules "$fault rail=sr1 payload=0:$torn nth=$n;lose payload=0:$handshake nth=1" "${COPY[@]}"
    [ "$(grep -c '^A rail was lost:' "$LOG")" = 2 ] || { tail -n 40 "$LOG"; fail "$pair: two rails were to be lost"; }
done
# all messages on one rail fail at once; each call of progress sends four of them again
rules "lose rail=sr1 nth=2500-" --mca pml_bfo_resend_burst 4
PROGRAM=mpi_threads # MPI_THREAD_MULTIPLE; some 1,000 messages on each rail, more or less, because short ones join
rules "lose rail=sr1 nth=600-"
rules "unacked rail=sr0 nth=500-"
exit 0
