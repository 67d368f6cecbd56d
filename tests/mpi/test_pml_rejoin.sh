#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A lost rail comes back into the running job: its cable is pulled and plugged in again, then the cable of the other rail, under a verified
# stream. After each return the rail carries bytes again, therefore the job survives although each rail is lost many times. After many flaps
# the number of queue pairs is the same as before. The BTL asks a rail that drops everything again and again, and opens no new generation
# until the rail answers. BFO_FLAPS: number of flaps (4). After more than twenty flaps both ranks have no more descriptors and memory than
# after the first ten, except buffers that the peak of traffic has left in free lists. With the default half-life of its penalty a rail that
# was lost four times stays out although it works, until it is the last rail.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1 --mca btl_openib_time_wait 1)
BACK=(--mca pml_bfo_rejoin 1 --mca btl_openib_rejoin_after 50 --mca btl_openib_rejoin_half_life 0)
log=$TEST_TMP/log
flaps=${BFO_FLAPS:-4}
STREAM_LIMIT=$((300 + 5 * flaps))

# both RAIL WHAT TIMES: both sides have printed TIMES times that the rail is WHAT (lost, or back)
both() { await "$log" "rail $1 generation [0-9]* (.*) $2" $((2 * $3)) || give_up "rail $1: not $3 times $2 at both sides"; }

# shows RAIL KEY: prints a counter of the running job
shows() {
    "$SOFTRAIL" status --json --fabric "$FABRIC" >"$TEST_TMP/status" 2>/dev/null || give_up "the job is over"
    rail_counter "$TEST_TMP/status" "$1" "$2"
}

# until_it_is TEXT COMMAND: waits up to 90 s until COMMAND succeeds
until_it_is() {
    local end=$((SECONDS + 90))
    until eval "$2"; do
        [ $SECONDS -lt $end ] || give_up "$1"
        sleep 0.1
    done
}

# carries RAIL: waits until the rail has sent more bytes than at this moment
carries() {
    local before
    before=$(shows "$1" tx_bytes)
    until_it_is "rail $1 does not carry anything after its return" "[ \$(shows $1 tx_bytes) -gt $((before + 1000000)) ]"
}

# flap RAIL TIMES: the rail is lost for the TIMES-th time, and comes back
flap() {
    "$SOFTRAIL" down --fabric "$FABRIC" "$1" || give_up "rail $1 could not be cut"
    both "$1" lost "$2"
    "$SOFTRAIL" up --fabric "$FABRIC" "$1" || give_up "rail $1 did not return"
    both "$1" 'is back' "$2"
    carries "$1"
    both "$1" 'carries short messages again' "$2" # its probation is over
}

# open_files: descriptors of both ranks; resident: their memory in KiB, without shared memory.
ranks() { shows 0 queue_pairs >/dev/null; sed -n 's/^ *"pid": \([0-9]*\).*/\1/p' "$TEST_TMP/status"; }
open_files() {
    local n=0 pid
    for pid in $(ranks); do
        n=$((n + $(find "/proc/$pid/fd" -mindepth 1 2>/dev/null | wc -l)))
    done
    echo $n
}
resident() {
    local pid
    for pid in $(ranks); do
        cat "/proc/$pid/status"
    done | awk '/^RssAnon:/ { n += $2 } END { print n }'
}

begin_stream "-n 2 --retry-time=300ms" 2 "${BACK[@]}" --mca pml_bfo_verbose 1 "$STREAM" -m 300000 -s $STREAM_LIMIT
await "$log" 'messages verified' || give_up 'no stream'
pairs=$(shows 0 queue_pairs)
for ((i = 0; i < flaps; ++i)); do
    flap $(((i + 1) % 2)) $((i / 2 + 1))
    if [ $i = 9 ] && [ $flaps -gt 20 ]; then
        sleep 3 # queue pairs of the last second still wait for late packets
        files=$(open_files) resident=$(resident)
    fi
done
# opened: generations that were opened on rail 1
opened() { grep -c 'rail 1 .* -> requested on restored' "$log"; }

last=$(((i + 1) / 2 + 1)) # how often rail 1 will have been lost
spent=$(opened)
"$SOFTRAIL" silent --fabric "$FABRIC" 1 || give_up 'rail 1 could not be silenced'
both 1 lost $last
sleep 1 # a longer sleep only gives more requests
[ "$(opened)" = "$spent" ] || give_up 'a rail that answers nothing spends generations'
"$SOFTRAIL" up --fabric "$FABRIC" 1 || give_up 'rail 1 did not return'
both 1 'is back' $last
carries 1
for rail in 0 1; do
    until_it_is "rail $rail has not $pairs queue pairs as at the beginning" "[ \$(shows $rail queue_pairs) = $pairs ]"
done
if [ $flaps -gt 20 ]; then
    until_it_is "the ranks have $(open_files) descriptors, $files after ten flaps" '[ $(open_files) -le $files ]'
    [ $(($(resident) - resident)) -le 16384 ] || give_up "the ranks have $(resident) KiB, $resident after ten flaps"
    note "$flaps flaps: $(open_files) descriptors ($files after ten), $(resident) KiB ($resident after ten)"
fi
end_stream
[ $rc = 0 ] || give_up "the job ended with $rc"
grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$log" || give_up 'the stream did not verify'
grep -q 'A rail is back: .* rail 1 from sr1:1' "$log" || give_up 'no message says that rail 1 is back'
note "$(grep ' 0 wrong$' "$log" | tail -n 1)"

export BFO_STATUS_DIR=$TEST_TMP
begin_stream "-n 2 --retry-time=300ms" 2 --mca pml_bfo_status_dir "$TEST_TMP" --mca btl_openib_rejoin_after 50 --mca pml_bfo_verbose 1 "$STREAM" -m 300000 -s $STREAM_LIMIT
await "$log" 'messages verified' || give_up 'no second stream'
for times in 1 2 3; do
    flap 1 $times
done
"$SOFTRAIL" down --fabric "$FABRIC" 1 || give_up 'rail 1 could not be cut'
both 1 lost 4
"$SOFTRAIL" up --fabric "$FABRIC" 1 || give_up 'rail 1 did not return'
await "$log" 'sr1:1: the port is back' 8 || give_up 'the port is not back at both sides'
until_it_is 'bfo status does not show that rail 1 is held' '"$BFO_BUILDDIR/tools/bfo" status | grep -Eq " sr1:1 .* lost .* 0/2 .* [34][0-9]{3}! "'
sent=$(shows 1 tx_messages)
shown=$(grep -c 'messages verified' "$log")
await "$log" 'messages verified' $((shown + 3)) || give_up 'the stream stands still while rail 1 is held'
[ "$(shows 1 tx_messages)" = "$sent" ] || give_up 'a rail that is held carries something'
"$SOFTRAIL" down --fabric "$FABRIC" 0 || give_up 'rail 0 could not be cut'
both 1 'is back' 4
carries 1
"$SOFTRAIL" up --fabric "$FABRIC" 0 || give_up 'rail 0 did not return'
carries 0
carries 1 # a rail that was taken because it was the last one stays
end_stream
[ $rc = 0 ] || give_up "the job whose rail was held ended with $rc"
grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$log" || give_up 'the second stream did not verify'
note "held after four losses, and back as the last rail: $(grep ' 0 wrong$' "$log" | tail -n 1)"
exit 0
