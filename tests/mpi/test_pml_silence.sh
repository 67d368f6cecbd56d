#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A path that swallows everything while its ports stay up, and an adapter that would repeat for ten minutes: the deadline ends the rail
# under a verified stream, and the rail comes back when the path does. So does a rail whose port goes down 0.2 s after the path, while the rail
# is soft or just after its verdict: it is lost once. Then nobody is judged: while all paths swallow everything at once,
# and while the peer is stopped. A rail that is silent before the first contact costs the job no wait for btl_openib_connect_timeout. Ranks that
# sleep in MPI notice as well, and so do ranks whose file of paths is not to be had. With btl_openib_deadline 0 the adapter decides, as before. With rejoin and both deadlines off a rail that was
# cut stays lost, and nothing is asked about it.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1 --mca pml_bfo_verbose 1 --mca pml_bfo_status_dir "$TEST_TMP")
paths=$TEST_TMP/bfo-$(id -u)/.paths
BACK=(--mca btl_openib_rejoin_after 50 --mca btl_openib_rejoin_half_life 0)
log=$TEST_TMP/log
STREAM_LIMIT=400

both() { await "$log" "rail $1 generation [0-9]* (.*) $2" $((2 * $3)) || give_up "rail $1: not $3 times $2 at both sides"; }
act() { "$SOFTRAIL" "$1" --fabric "$FABRIC" "$2" || give_up "softrail $1 $2"; }
verdicts() { grep -c 'is silent: ' "$log"; }
goes_on() {
    local shown
    shown=$(grep -c 'messages verified' "$log")
    await "$log" 'messages verified' $((shown + 2)) || give_up "$1: the stream stands still"
}

# ranks: the pids of the job
ranks() { "$SOFTRAIL" status --json --fabric "$FABRIC" | sed -n 's/^ *"pid": \([0-9]*\).*/\1/p'; }
# at_once COMMAND RAIL...: for all rails, while the ranks do not run
at_once() {
    local rail pids
    pids=$(ranks)
    # shellcheck disable=SC2086
    kill -STOP $pids
    for rail in "${@:2}"; do
        act "$1" "$rail"
    done
    # shellcheck disable=SC2086
    kill -CONT $pids
}

begin_stream "-n 2 --retry-time=600s" 2 "${BACK[@]}" "$STREAM" -m 300000 -s $STREAM_LIMIT
await "$log" 'messages verified' || give_up 'no stream'
for rail in 1 0; do
    act silent $rail
    both $rail lost 1
    grep -q "rail $rail generation 0 (.*) lost: the path is silent" "$log" || give_up "rail $rail was not lost by its silence"
    goes_on "without rail $rail"
    act up $rail
    both $rail 'is back' 1
    goes_on "rail $rail is back"
done

# carries RAIL: waits until the rail has sent another megabyte
carries() {
    local before
    before=$("$SOFTRAIL" status --json --fabric "$FABRIC" >"$TEST_TMP/status" && rail_counter "$TEST_TMP/status" "$1" tx_bytes)
    wait_until "have_moved $((before + 1000000)) $(($1 + 1))"
    have_moved $((before + 1000000)) $(($1 + 1)) || give_up "rail $1 carries nothing after its return"
}
act silent 1
sleep 0.2
act down 1
both 1 lost 2
goes_on 'rail 1 was silent, and then its port went down'
act up 1
both 1 'is back' 2
carries 1

before=$(verdicts)
at_once silent 0 1
sleep 2 # eight times the deadline
at_once up 0 1
goes_on 'all rails were silent'
[ "$(verdicts)" = "$before" ] || give_up 'a rail was judged although no other one answered'

pid=$(ranks | tail -n 1)
kill -STOP "$pid"
sleep 2
kill -CONT "$pid"
goes_on 'a rank was stopped'
[ "$(verdicts)" = "$before" ] || give_up 'a rail was judged while its peer was stopped'
[ "$(grep -c 'generation [0-9]* (.*) lost: ' "$log")" = 6 ] || give_up 'a rail was lost without need'
end_stream
verified 'two silent rails, a late port event, both rails silent at once, a rank that is stopped'

[ "$(stat -c %a "$paths")" = 600 ] || fail "no file of paths: $(ls -la "$TEST_TMP/bfo-$(id -u)")"

cat >"$TEST_TMP/later.sh" <<EOF
"$SOFTRAIL" silent --fabric "$FABRIC" 1
exec "\$@"
EOF
begin_stream "-n 2 --retry-time=600s" 2 "${BACK[@]}" --mca btl_openib_connect_timeout 300 bash "$TEST_TMP/later.sh" "$STREAM" -m 300000 -s $STREAM_LIMIT
await "$log" 'messages verified' || give_up 'silent from the start: no stream'
await "$log" 'rail 1 to [01] is silent: ' || give_up 'silent from the start: the rail was not judged'
act up 1
both 1 'is back' 1
goes_on 'the rail connects later'
end_stream
verified 'a rail that is silent from the start'

# loses_rail_1 RETRY-TIME MPIRUN-ARGUMENTS...: rail 1 goes silent and is lost, and the stream goes on and verifies
loses_rail_1() {
    begin_stream "-n 2 --retry-time=$1" 2 "${@:2}" "$STREAM" -m 300000 -s $STREAM_LIMIT
    await "$log" 'messages verified' || give_up "${*:2}: no stream"
    act silent 1
    both 1 lost 1
    goes_on "${*:2}"
    end_stream
    verified "${*:2}"
}

loses_rail_1 600s --mca btl_openib_blocking_progress 50
echo other >"$paths"
loses_rail_1 600s
grep -q 'asks about silent rails alone: the file .paths: Protocol error' "$log" || give_up 'nothing is said about the file of paths'
loses_rail_1 3s --mca btl_openib_deadline 0
! grep -q silent: "$log" || give_up 'deadline 0: the rail was judged'

begin_stream "-n 2 --retry-time=300ms" 2 --mca pml_bfo_rejoin 0 --mca btl_openib_rejoin_after 10 --mca btl_openib_deadline 0 --mca btl_openib_soft_deadline 0 \
    "$STREAM" -m 300000 -s $STREAM_LIMIT
await "$log" 'messages verified' || give_up 'all off: no stream'
act down 1
both 1 lost 1
act up 1
await "$log" 'sr1:1: the port is back' 2 || give_up 'all off: the port is not back at both sides'
goes_on 'all off'
end_stream
verified 'rejoin and both deadlines off: a rail is cut'
says_not 'rail 1 (generation .* is back|.* on restored)'
says 'inquiries 0 \(questions 0, followed 0\), silent rails 0, soft rails 0, ' 4
exit 0
