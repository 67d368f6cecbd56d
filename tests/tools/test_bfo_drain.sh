#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# `bfo drain` takes a port out of a running job: softrail's counters show that its rail carries nothing more at either end; its cable is
# pulled, and nothing is lost or sent again. `bfo release` gives the port back, and it carries as before. A port that is out stays out of
# later jobs. The last rail is kept. The command waits for a stopped process, and names it.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
use_components pml btl
need perl perl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_time_wait 1 --mca btl_openib_rejoin_after 50)

# refuses PORT PATTERN: the port is not drained, and the command says why; processes may notice late
refuses() {
    "$BFO" drain "$1" --wait 0.2 >"$TEST_TMP/out" 2>&1
    [ $? = 1 ] && grep -Eq -- "$2" "$TEST_TMP/out"
}

begin_stream "-n 2 --retry-time=500ms" 2 "$STREAM" -m 300000 -s 600
await "$LOG" 'messages verified' || { cat "$LOG"; fail 'no stream'; }
ends_with 0 "$BFO" drain sr0:1 --wait 60
says '^sr0:1 is drained in 2 processes$'
rests 0 1
until_so "the port is not shown as drained" status_has '^  [^ ]+ +sr0:1 +[0-9]+[GM] +drained '
[ "$STATUS" = 0 ] || { cat "$TEST_TMP/out"; fail "a drained port is no loss, and the status is $STATUS"; }
grep -q ' 0 messages sent again$' "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "messages were sent again"; }
ends_with 0 "$BFO" drain
says '^sr0:1$'

"$SOFTRAIL" down --fabric "$FABRIC" 0 || fail "rail 0 could not be cut"
until_so "the loss is not counted" status_has '^  [^ ]+ +sr0:1 +[0-9]+[GM] +drained .* 0/2 +2 '
"$SOFTRAIL" up --fabric "$FABRIC" 0 || fail "rail 0 did not return"
until_so "the rail is not back" status_has '^  [^ ]+ +sr0:1 +[0-9]+[GM] +drained .* 2/2 +2 '
grep -q ' 0 messages sent again$' "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "the cut of a drained port cost messages"; }
ends_with 0 "$BFO" drain sr0:1 --wait 60 --json
[ "$(json "$TEST_TMP/out" '$j->{done} && 2 == grep { $_->{done} } @{$j->{processes}}')" = 1 ] || { cat "$TEST_TMP/out"; fail "--json"; }
rests 0 1
ends_with 0 "$BFO" release sr0:1 --wait 60
moves 0
moves 1
ends_with 0 "$BFO" events
for what in 'port-out sr0:1 .*: up -> draining' 'port-drained sr0:1 .*: draining -> drained' 'port-released sr0:1 .*: drained -> up'; do says "$what"; done
note "drained, cut, back and released"

ends_with 1 "$BFO" release sr0:1
says "the port 'sr0:1' is not out of service"
ends_with 2 "$BFO" release
ends_with 2 "$BFO" drain "$(printf 'x%.0s' $(seq 64))"
says 'is no name of a port'
ends_with 2 "$BFO" drain sr0:1 --wait soon
ends_with 4 "$BFO" drain sr9:1
says '^no job on this node uses sr9:1; '
ends_with 4 "$BFO" release sr9:1

ends_with 0 "$BFO" drain sr0:1 --wait 60
until_so "the last rail is not kept" refuses sr1:1 '1 rail goes on, because no other rail reaches'
moves 1
ends_with 0 "$BFO" release sr1:1 --wait 60
ends_with 0 "$BFO" release sr0:1 --wait 60
note "the last rail is kept"

stopped=$(sed -n 's/^[0-9.]*\.1\.\([0-9]*\)$/\1/p' < <(ls "$FIGURES"))
# rank_0_waits: rank 1 is stopped, and rank 0 waits for it. If rank 1 is stopped while it holds a lock of softrail in shared memory, rank 0 stops as
# well and notices nothing; then rank 1 is stopped again at another moment.
rank_0_waits() {
    local i j
    for ((i = 0; i < 20; ++i)); do
        [ $i = 0 ] || { retry "rank 1 stood still within a lock of softrail"; "$BFO" release sr0:1 --wait 60 >/dev/null 2>&1; moves 0; }
        kill -STOP "$stopped" || fail "rank 1 cannot be stopped"
        for ((j = 0; j < 15; ++j)); do
            refuses sr0:1 'rank 0 .*: on 1 rail messages are in flight, or the process at the other end has not answered' && return
        done
        kill -CONT "$stopped"
    done
    cat "$TEST_TMP/out"
    fail "rank 0 does not wait for rank 1"
}
rank_0_waits
says "rank 1 \(pid $stopped\): it has not noticed yet"
kill -CONT "$stopped"
ends_with 0 "$BFO" drain sr0:1 --wait 60
note "a stopped process is waited for"
end_stream
[ "$rc" = 0 ] || { tail -n 40 "$LOG"; fail "the job ended with $rc"; }
grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$LOG" || { tail -n 40 "$LOG"; fail 'the stream did not verify'; }

# Lists that are not trusted, or missing.
other=$TEST_TMP/other
mkdir -p "$other/bfo-$(id -u)"
chmod 700 "$other/bfo-$(id -u)"
printf short >"$other/bfo-$(id -u)/.steer"
ends_with 3 "$BFO" drain sr0:1 --dir "$other"
says 'another release of bfo made it'
ln -sf "$TEST_TMP/out" "$other/bfo-$(id -u)/.steer"
ends_with 3 "$BFO" drain sr0:1 --dir "$other"
says 'it is not a private file of its user'
rm -r "$other/bfo-$(id -u)"
if [ "$(id -u)" = 0 ]; then # root writes the lists of all users, and makes no directory
    ends_with 4 "$BFO" drain sr0:1 --dir "$other"
    says 'no user has run a job'
    mkdir -m 700 "$other/bfo-12345"
    chown 12345 "$other/bfo-12345"
    ends_with 4 "$BFO" drain sr0:1 --dir "$other"
    [ "$(stat -c '%u %a' "$other/bfo-12345/.steer")" = '12345 600' ] || { ls -lan "$other/bfo-12345"; fail "another user's list is not his"; }
    ends_with 0 "$BFO" drain --dir "$other"
    says '^sr0:1$'
fi
for i in $(seq 16); do "$BFO" drain "p$i:1" --wait 0 >/dev/null 2>&1; done # sr0:1 is out as well
ends_with 3 "$BFO" drain p17:1
says '16 ports are out of service already'
for i in $(seq 15); do "$BFO" release "p$i:1" --wait 0 >/dev/null 2>&1; done
ends_with 0 "$BFO" drain
[ "$(cat "$TEST_TMP/out")" = sr0:1 ] || { cat "$TEST_TMP/out"; fail "not only sr0:1 stands out"; }
note "lists: broken, of others, full"

begin_stream "-n 2 --retry-time=500ms" 2 "$STREAM" -m 300000 -s 600
await "$LOG" 'messages verified' 2 || { cat "$LOG"; fail 'no stream'; }
[ "$(bytes 0)" -lt 10000 ] || fail "a port that stood out before the job began carried $(bytes 0) bytes"
ends_with 0 "$BFO" release sr0:1 --wait 60
moves 0
end_stream
[ "$rc" = 0 ] || { tail -n 40 "$LOG"; fail "the job ended with $rc"; }
note "out of later jobs, until it is given back"
exit 0
