#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# `bfo drain --force` drains the last rail between two processes: softrail's counters show that no rail carries messages any more, and both
# processes wait. The cables of all rails are pulled and plugged in again, and the job still waits. After `bfo release` it goes on; no message
# was lost, wrong or sent again. A job that does not wait for rails keeps its last rail.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
use_components pml btl
need perl perl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_time_wait 1 --mca btl_openib_rejoin_after 50)

# keeps WORDS...: `bfo drain WORDS` does not drain sr1:1, and says that a rail goes on; processes may notice late
keeps() {
    "$BFO" drain "$@" sr1:1 --wait 0.2 >"$TEST_TMP/out" 2>&1
    [ $? = 1 ] && grep -q -- '1 rail goes on, because ' "$TEST_TMP/out"
}
# at_rest: since `before` was taken the rails have carried almost nothing (questions of the BTL, and reports)
at_rest() {
    local more=$(($(bytes 0) + $(bytes 1) - before))
    [ $more -lt 20000 ] || fail "the rails carry $more bytes although the last one is drained"
}

begin_stream "-n 2 --retry-time=500ms" 2 "$STREAM" -m 300000 -s 600
await "$LOG" 'messages verified' || { cat "$LOG"; fail 'no stream'; }
ends_with 0 "$BFO" drain sr0:1 --wait 60
until_so "the last rail is not kept without --force" keeps
ends_with 0 "$BFO" drain --force sr1:1 --wait 60
says '^sr1:1 is drained in 2 processes$'
says '^2 processes use a port again that was drained without --force'
rests 1 0
ends_with 0 "$BFO" drain
says '^sr0:1$'
says '^sr1:1 by force$'
ends_with 0 "$BFO" drain --json
[ "$(json "$TEST_TMP/out" '"@{$j->{forced}}"')" = sr1:1 ] || { cat "$TEST_TMP/out"; fail "--json does not say which port is drained by force"; }
note "a port that is drained without --force serves when another port is drained by force"

ends_with 0 "$BFO" drain --force sr0:1 --wait 60
says '^sr0:1 is drained in 2 processes$'
says "^2 processes wait for a process that no other rail reaches, until 'bfo release sr0:1'"
before=$(($(bytes 0) + $(bytes 1)))
ends_with 0 "$BFO" drain sr1:1 --wait 60 # without --force the drain by force stays as it is
until_so "the processes are not waited for" status_has ' 2 waited for, .* 0 messages sent again$'
[ "$STATUS" = 1 ] || fail "processes wait, and the status is $STATUS"
at_rest
note "the last rail is drained"

for rail in 0 1; do "$SOFTRAIL" down --fabric "$FABRIC" $rail || fail "rail $rail could not be cut"; done
for rail in 0 1; do until_so "the loss of rail $rail is not counted" status_has "^  [^ ]+ +sr$rail:1 +[0-9]+[GM] +drained .* 0/2 +2 "; done
for rail in 0 1; do "$SOFTRAIL" up --fabric "$FABRIC" $rail || fail "rail $rail did not return"; done
for rail in 0 1; do until_so "rail $rail is not back" status_has "^  [^ ]+ +sr$rail:1 +[0-9]+[GM] +drained .* 2/2 +2 "; done
before=$(($(bytes 0) + $(bytes 1))) # the proof of a new rail has sent full packets
until_so "a rail that came back is not drained" eval "\"\$BFO\" drain --force sr1:1 --wait 1 >\"\$TEST_TMP/out\" 2>&1"
until_so "the wait ended although both ports are drained" status_has ' 2 waited for, .* 0 messages sent again$'
at_rest
note "the cables were pulled and plugged in"

ends_with 0 "$BFO" release sr1:1 --wait 60
moves 1
until_so "the processes are still waited for" status_has ' 0 waited for, .* 0 messages sent again$'
ends_with 0 "$BFO" events
for what in 'peer-waits .*its last rail is drained by force' 'peer-back '; do says "$what"; done
ends_with 0 "$BFO" drain --force sr1:1 --wait 60
says "^2 processes wait "
ends_with 0 "$BFO" release sr0:1 --wait 60
moves 0
note "another port that is given back ends the wait, too"
ends_with 0 "$BFO" release sr1:1 --wait 60
moves 1
end_stream
verified "released"

for rail in 0 1; do ends_with 4 "$BFO" drain --force sr$rail:1; done
begin_stream "-n 2 --retry-time=500ms" 2 "$STREAM" -m 300000 -s 600
until_so "a job that begins while its ports are drained by force does not wait" status_has ' 2 waited for, '
ends_with 0 "$BFO" drain --force sr0:1 --wait 60
! has_said 'messages verified' || fail "a job that begins while its ports are drained by force exchanges messages"
ends_with 0 "$BFO" release sr1:1 --wait 60
moves 1
ends_with 0 "$BFO" release sr0:1 --wait 60
moves 0
end_stream
verified "a job that began later"

ends_with 2 "$BFO" drain --force
ends_with 2 "$BFO" release --force sr1:1

begin_stream "-n 2 --retry-time=500ms" 2 --mca pml_bfo_last_rail_timeout 0 "$STREAM" -m 300000 -s 600
await "$LOG" 'messages verified' || { cat "$LOG"; fail 'no stream'; }
ends_with 0 "$BFO" drain sr0:1 --wait 60
until_so "the last rail of a job that does not wait is not kept" keeps --force
says 'the process does not wait for rails \(pml_bfo_last_rail_timeout 0\)'
moves 1
for rail in 0 1; do ends_with 0 "$BFO" release sr$rail:1 --wait 60; done
moves 0
end_stream
verified "without patience"
exit 0
