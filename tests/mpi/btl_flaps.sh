#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Ports go down for a moment and return, one rail after the other, under a verified stream: no job ends because of it, with one rail or
# two, under ob1 or bfo. Nor does a job end when all paths drop everything for 6 s at once, without an event: under ob1 the adapters repeat
# for longer than that, under bfo a rail may be lost and then returns.
# BFO_FLAP_RUNS: runs of each cell (1). Arguments: cells PML:RAILS:SECONDS:FAULT instead of all.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
cells=("$@")
[ $# -gt 0 ] || cells=({ob1,bfo}:{1,2}:{0.1,1,3}:down {ob1,bfo}:{1,2}:6:silent)

# flap_each RAILS SECONDS: one port after the other goes down and returns.
flap_each() {
    local rail
    for ((rail = 0; rail < $1; ++rail)); do
        "$SOFTRAIL" down --fabric "$FABRIC" $rail && sleep "$2" && "$SOFTRAIL" up --fabric "$FABRIC" $rail ||
            { show_log; fail "$FABRIC: the job ended before rail $rail had flapped"; }
        await "$LOG" "sr$rail:1: the port is back" 2 || { show_log; fail "$FABRIC: the flap of rail $rail was not seen"; }
    done
}

# silence_all RAILS SECONDS: all paths are silent at once.
silence_all() {
    local rail
    for ((rail = 0; rail < $1; ++rail)); do
        "$SOFTRAIL" silent --fabric "$FABRIC" $rail || { show_log; fail "$FABRIC: the job ended before rail $rail was silent"; }
    done
    sleep "$2"
    for ((rail = 0; rail < $1; ++rail)); do
        "$SOFTRAIL" up --fabric "$FABRIC" $rail || { show_log; fail "$FABRIC: the job ended while its rails were silent"; }
    done
}

# await_rails: the last step that the log shows of each rail leads to "up", or the log shows no step.
await_rails() {
    local try
    for ((try = 0; try < 1200; ++try)); do
        sed -nE 's/.*bfo: ([0-9]+->[0-9]+ rail [0-9]+) .*: .* -> (.*) on .*/\1:\2/p' "$LOG" |
            awk -F: '{ state[$1] = $2 } END { for (rail in state) if (state[rail] != "up") exit 1 }' && return 0
        sleep 0.05
    done
    return 1
}

# cell PML RAILS SECONDS FAULT RUN: runs in a subshell, with a directory and a fabric of its own.
cell() {
    local pml=$1 rails=$2 down=$3 job rail shown retries=0
    TEST_TMP=$TEST_TMP/$1-$2-$3-$4-$5 FABRIC=$FABRIC-$1-$2-$3-$4-$5
    LOG=$TEST_TMP/log REPORT=$TEST_TMP/report.json
    BTL_ARGS=(--mca pml "$pml" --mca btl openib,self --mca btl_openib_verbose 1)
    mkdir "$TEST_TMP"
    begin_stream "-n $rails" 2 "$STREAM" -m 300000 -s 600
    await "$LOG" 'messages verified' || { show_log; fail "$*: no stream"; }
    if [ "$4" = silent ]; then
        silence_all "$rails" "$down"
    else
        flap_each "$rails" "$down"
    fi
    shown=$(grep -c 'messages verified' "$LOG")
    await "$LOG" 'messages verified' $((shown + 2)) || { show_log; fail "$*: the stream does not go on after the flaps"; }
    await_rails || { show_log; fail "$*: a lost rail does not return"; }
    end_stream
    verified "$*"
    rails_carried 100001 "$rails"
    for ((rail = 0; rail < rails; ++rail)); do
        retries=$((retries + $(rail_counter "$REPORT" $rail retries)))
    done
    if [ "$4" = silent ]; then
        [ $retries -gt 0 ] || fail "$*: nothing had to be sent again" # on at least one rail, because the others may have nothing in flight
        [ "$pml" = bfo ] || ! has_said 'A rail was lost' || fail "$*: a silence of $down s was the end of a rail"
    else
        has_said 'is spared' || [ "$pml" = ob1 ] || fail "$*: no rail was the last one"
    fi
}

for run in $(seq "${BFO_FLAP_RUNS:-1}"); do
    jobs=()
    for each in "${cells[@]}"; do
        IFS=: read -r pml rails down fault <<<"$each"
        (trap - EXIT; cell "$pml" "$rails" "$down" "$fault" "$run") &
        jobs+=($!)
        [ ${#jobs[@]} -lt 4 ] || { wait "${jobs[0]}" || exit 1; jobs=("${jobs[@]:1}"); }
    done
    for job in "${jobs[@]}"; do
        wait "$job" || exit 1
    done
done
exit 0
