#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A job of four ranks on two rails, with point-to-point messages, collectives and windows, and another one with a second thread of each rank
# instead of windows, which Open MPI 4.1 does not have together; all is verified. The rails flap in turn. Each rail carries bytes before its cable is pulled, and comes back to all ranks. BFO_FLAPS: number of flaps (4). After more than
# twenty flaps the job has no more queue pairs, memory regions, descriptors (but for those of softrail) and memory than after ten, but for what operations under way hold.
# Then the same with the default damping, where the rails that fail too often stay out: BFO_DAMPED_FLAPS (2).
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca pml_bfo_verbose 1 --mca btl_openib_time_wait 1 --mca pml_bfo_last_rail_timeout -1 --mca osc '^ucx,rdma'
    --mca mpi_leave_pinned 0) # otherwise freed buffers stay registered
log=$TEST_TMP/log flaps=${BFO_FLAPS:-4} damped=${BFO_DAMPED_FLAPS:-2} RANKS=4
PAIRS=$((RANKS * (RANKS - 1))) # a line of each rank for each peer

look() { # RAIL KEY: sets value to a counter of the running job
    "$SOFTRAIL" status --json --fabric "$FABRIC" >"$TEST_TMP/status" 2>/dev/null || give_up 'the job is over'
    value=$(rail_counter "$TEST_TMP/status" "$1" "$2")
}
carries() { # RAIL: until it has sent more than it has now
    local least end=$((SECONDS + 180))
    look "$1" tx_bytes
    least=$((value + 100000))
    until [ "$value" -gt "$least" ]; do
        [ $SECONDS -lt $end ] || give_up "rail $1 carries nothing"
        sleep 0.05
        look "$1" tx_bytes
    done
}
cable() { "$SOFTRAIL" "$1" --fabric "$FABRIC" "$2" >/dev/null || give_up "softrail $1 $2"; }
all() { # RAIL WHAT TIMES: each rank has said that often of each peer what the rail is
    await "$log" "rail $1 generation [0-9]* (.*) $2" $((PAIRS * $3)) || give_up "rail $1: not $3 times $2 for all ranks"
}
holds() { # sets pairs, regs, files, memory (KiB) to what the job holds
    local pids pid rail
    pairs=0 regs=0 files=0
    for rail in 0 1; do
        look $rail queue_pairs
        pairs=$((pairs + value))
        look $rail memory_regions
        regs=$((regs + value))
    done
    pids=$(sed -n 's/^ *"pid": \([0-9]*\).*/\1/p' "$TEST_TMP/status")
    for pid in $pids; do
        files=$((files + $(find "/proc/$pid/fd" -mindepth 1 ! -lname "*/softrail*" 2>/dev/null | wc -l)))
    done
    memory=$(for pid in $pids; do cat "/proc/$pid/status"; done | awk '/^RssAnon:/ { n += $2 } END { print n }')
}
begin_job() { # WHAT MPIRUN-ARGUMENTS...
    rm -f "$TEST_TMP/end"
    STREAM_LIMIT=$((400 + 10 * (flaps + damped))) begin_stream "-n 2 --retry-time=500ms" $RANKS "${@:2}" "$BFO_BUILDDIR/tests/soak/soak" 11 1000000000 $1 "until=$TEST_TMP/end"
    wait_until 'have_moved 100000 2' # before, the fabric may not be there
    have_moved 100000 2 || give_up 'the job does not begin'
}
end_job() { # TEXT
    touch "$TEST_TMP/end"
    wait "$job" || give_up "$1: the job ended with $?"
    ! grep -q WRONG "$log" || give_up "$1: wrong bytes"
    grep -q '^VERIFIED [1-9]' "$log" || give_up "$1: nothing was verified"
    note "$1: $(sed -n 's/^VERIFIED //p' "$log"), $(sed -n 's/^THREADS //p' "$log")"
}

flap_in_turn() { # threads or nothing
    local i rail times pairs regs files memory ten
    begin_job "$1" --mca btl_openib_rejoin_after 50 --mca btl_openib_rejoin_half_life 0
    for ((i = 0; i < flaps; ++i)); do
        rail=$((i % 2)) times=$((i / 2 + 1))
        carries $rail
        cable down $rail
        all $rail lost $times
        cable up $rail
        all $rail 'is back' $times
        if [ $i = 9 ]; then
            sleep 3 # queue pairs of the last second still wait for late packets
            holds
            ten=($pairs $regs $files $memory)
        fi
    done
    carries 0
    carries 1
    if [ "$flaps" -gt 20 ]; then
        for ((i = 0; i < 90; ++i)); do
            sleep 1
            holds
            [ "$pairs" != "${ten[0]}" ] || [ "$files" -gt "${ten[2]}" ] || break
        done
        note "queue pairs, memory regions, descriptors, KiB: ${ten[*]} after ten flaps, $pairs $regs $files $memory after $flaps"
        [ "$pairs" = "${ten[0]}" ] && [ "$files" -le "${ten[2]}" ] || give_up 'queue pairs or descriptors leak'
        # what operations under way have registered, and free lists, which grow with the most messages in flight
        [ "$regs" -le $((ten[1] + 100)) ] && [ "$memory" -le $((ten[3] + 16384 * RANKS)) ] || give_up 'memory regions or memory leak'
    fi
    end_job "$flaps flaps${1:+ with $1}"
}
flap_in_turn ''
flap_in_turn threads

begin_job ''
for ((i = 0; i < damped; ++i)); do
    look 0 tx_bytes && a=$value
    look 1 tx_bytes && b=$value
    sleep 1
    look 0 tx_bytes && a=$((value - a))
    look 1 tx_bytes && b=$((value - b))
    rail=$((a >= b ? 0 : 1)) # the busier one
    carries $rail
    cable down $rail
    carries $((1 - rail))
    cable up $rail
    [ $((i % 2)) = 0 ] || sleep "$(awk "BEGIN { print 0.1 + $i % 7 }")" # some come back in the meantime, and some have not yet
done
end_job "$damped flaps with damping"
exit 0
