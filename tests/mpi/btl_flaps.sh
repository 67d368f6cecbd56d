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

# flap_each RAILS SECONDS FABRIC LOG: one port after the other goes down and returns.
flap_each() {
    local rail
    for ((rail = 0; rail < $1; ++rail)); do
        "$SOFTRAIL" down --fabric "$3" $rail && sleep "$2" && "$SOFTRAIL" up --fabric "$3" $rail ||
            { tail -n 30 "$4"; fail "$3: the job ended before rail $rail had flapped"; }
        await "$4" "sr$rail:1: the port is back" 2 || { tail -n 30 "$4"; fail "$3: the flap of rail $rail was not seen"; }
    done
}

# silence_all RAILS SECONDS FABRIC LOG: all paths are silent at once.
silence_all() {
    local rail
    for ((rail = 0; rail < $1; ++rail)); do
        "$SOFTRAIL" silent --fabric "$3" $rail || { tail -n 30 "$4"; fail "$3: the job ended before rail $rail was silent"; }
    done
    sleep "$2"
    for ((rail = 0; rail < $1; ++rail)); do
        "$SOFTRAIL" up --fabric "$3" $rail || { tail -n 30 "$4"; fail "$3: the job ended while its rails were silent"; }
    done
}

# await_rails LOG: the last step that LOG shows of each rail leads to "up", or the log shows no step.
await_rails() {
    local try
    for ((try = 0; try < 1200; ++try)); do
        sed -nE 's/.*bfo: ([0-9]+->[0-9]+ rail [0-9]+) .*: .* -> (.*) on .*/\1:\2/p' "$1" |
            awk -F: '{ state[$1] = $2 } END { for (rail in state) if (state[rail] != "up") exit 1 }' && return 0
        sleep 0.05
    done
    return 1
}

# cell PML RAILS SECONDS FAULT RUN
cell() {
    local pml=$1 rails=$2 down=$3 name=bfo-flaps-$$-$1-$2-$3-$4-$5 log=$TEST_TMP/$1-$2-$3-$4-$5 job rail bytes shown retries=0
    : >"$log"
    timeout -k 5 300 "$SOFTRAIL" run -n "$rails" --name "$name" --report "$log.report" -- "$MPIRUN" --report-pid "$log.pid" --oversubscribe --bind-to none -np 2 \
        --mca pml "$pml" --mca btl openib,self --mca btl_openib_verbose 1 "$STREAM" -m 300000 -s 600 \
        >"$log" 2>&1 </dev/null &
    job=$!
    await "$log" 'messages verified' || { tail "$log"; fail "$*: no stream"; }
    if [ "$4" = silent ]; then
        silence_all "$rails" "$down" "$name" "$log"
    else
        flap_each "$rails" "$down" "$name" "$log"
    fi
    shown=$(grep -c 'messages verified' "$log")
    await "$log" 'messages verified' $((shown + 2)) || { tail -n 30 "$log"; fail "$*: the stream does not go on after the flaps"; }
    await_rails "$log" || { tail -n 30 "$log"; fail "$*: a lost rail does not return"; }
    kill -USR1 "$(cat "$log.pid")"
    wait $job || { tail -n 30 "$log"; fail "$*: the job ended with an error"; }
    grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$log" || { tail -n 30 "$log"; fail "$*: the stream did not verify"; }
    for ((rail = 0; rail < rails; ++rail)); do
        bytes=$(rail_counter "$log.report" $rail tx_bytes)
        [ "${bytes:-0}" -gt 100000 ] || fail "$*: rail $rail carried ${bytes:-no} bytes"
        retries=$((retries + $(rail_counter "$log.report" $rail retries)))
    done
    if [ "$4" = silent ]; then
        [ $retries -gt 0 ] || fail "$*: nothing had to be sent again" # on at least one rail, because the others may have nothing in flight
        [ "$pml" = bfo ] || ! grep -q 'A rail was lost' "$log" || fail "$*: a silence of $down s was the end of a rail"
    else
        grep -q 'is spared' "$log" || [ "$pml" = ob1 ] || fail "$*: no rail was the last one"
    fi
    note "$*: $(grep ' 0 wrong$' "$log" | tail -n 1)"
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
