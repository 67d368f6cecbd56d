#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Fault events: a rail of a running job is cut and comes back, and a subscriber gets the events; the monitor of docs/ftb.md takes a port out
# of the job by an event and gives it back, as the rails' own counters show; questions get the answers that the figures give, and no others;
# the death of the job is an event.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
use_components pml btl
need perl perl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_time_wait 1 --mca btl_openib_rejoin_after 50)
HEARD=$TEST_TMP/heard
HERE=$(uname -n)
PATH=$BFO_BUILDDIR/tools:$PATH

hears() { until_so "nobody hears: $1" grep -Eq -- "$1" "$HEARD"; }
# forget: empties the file of received events. The subscriber appends, therefore the file may be truncated.
forget() { : >"$HEARD"; }
publish() { "$BFO" ftb publish "$@" >"$TEST_TMP/out" 2>&1 || { cat "$TEST_TMP/out"; fail "the server does not take: $*"; }; }
refuses() {
    local expected=$1 pattern=$2 status
    shift 2
    timeout 60 "$BFO" ftb "$@" >"$TEST_TMP/out" 2>&1 </dev/null
    status=$?
    [ $status = "$expected" ] && grep -Eq -- "$pattern" "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "bfo ftb $*: status $status, not $expected and '$pattern'"; }
}
stands_out() { [ "$("$BFO" drain 2>&1)" = "$1" ]; }

refuses 3 "no server runs; start 'bfo ftb serve'" publish HELLO
"$BFO" ftb serve >"$TEST_TMP/ready" 2>"$TEST_TMP/serve" &
server=$!
trap 'kill $server $subscriber $monitor 2>/dev/null; rm -rf "$TEST_TMP"' EXIT
subscriber= monitor=
await "$TEST_TMP/ready" "^bfo ftb: ready at $FIGURES/.ftb$" || { cat "$TEST_TMP/serve"; fail "no server"; }
[ "$(stat -c '%a %F' "$FIGURES/.ftb")" = '600 socket' ] || { ls -la "$FIGURES"; fail "the socket is not private"; }
refuses 3 'another server runs already' serve
forget
"$BFO" ftb subscribe >>"$HEARD" 2>"$TEST_TMP/subscribed" &
subscriber=$!
await "$TEST_TMP/subscribed" 'subscribed' || fail "no subscriber"

# A rail is cut, and comes back.
begin_stream "-n 2 --retry-time=500ms" 2 --mca pml_bfo_last_rail_timeout 0 "$STREAM" -m 300000 -s 600
await "$LOG" 'messages verified' || { cat "$LOG"; fail 'no stream'; }
hears "^20[0-9-]+T[0-9:.]+[+-][0-9]{4} ftb\.mpi\.bfo info MPI_INIT node: $HERE, job: [0-9]+\.1.*, ranks: \{[01]"
job_name=$(sed -n 's/.* MPI_INIT .*, job: \([0-9.]*\),* .*/\1/p' "$HEARD" | head -n 1)
# Its path is silent: the processes notice. Then its cable is pulled: the device reports it.
"$SOFTRAIL" silent --fabric "$FABRIC" 1 || fail "rail 1 could not be silenced"
hears " ftb\.mpi\.bfo error COMM_FAILURE iface: sr1:1, node: $HERE, job: $job_name.*, ranks: \{[01].*, peers: \{[01].*, peer_node: $HERE, peer_iface: sr1:1, cause: "
hears " ftb\.mpi\.bfo error MPI_IFACE_DEAD iface: sr1:1, node: $HERE, job: $job_name.*, state: lost, rails: 2, rails_lost: 2, cause: \""
! grep -q ' MPI_IFACE_DEAD iface: sr0:1' "$HEARD" || fail "the other port is called dead"
forget
"$SOFTRAIL" up --fabric "$FABRIC" 1 || fail "rail 1 did not return"
hears " ftb\.mpi\.bfo info MPI_IFACE_RESTORED iface: sr1:1, node: $HERE, job: $job_name.*, state: up, rails: 2, rails_lost: 0$"
"$SOFTRAIL" down --fabric "$FABRIC" 1 || fail "rail 1 could not be cut"
hears " ftb\.mpi\.bfo warning CHECK_INTERFACE iface: sr1:1, node: $HERE, job: $job_name.*, ranks: \{[01].*\}, cause: "
hears " ftb\.mpi\.bfo error MPI_IFACE_DEAD iface: sr1:1, node: $HERE, job: $job_name.*, state: lost, rails: 2, rails_lost: 2, cause: \""
publish CHECK_INTERFACE "iface: {sr0:1, sr1:1}, node: $HERE"
hears ' error CONFIRM_INTERFACE_DEAD iface: sr1:1, .* state: lost, rails: 2, rails_lost: 2'
hears ' info CONFIRM_INTERFACE_ALIVE iface: sr0:1, .* state: up, rails: 2, rails_lost: 0'
forget
"$SOFTRAIL" up --fabric "$FABRIC" 1 || fail "rail 1 did not return"
hears " ftb\.mpi\.bfo info MPI_IFACE_RESTORED iface: sr1:1, node: $HERE, job: $job_name.*, state: up, rails: 2, rails_lost: 0$"
moves 1
note "a rail that is cut is heard, and its return"

# The monitor of the document, of at most 20 lines, with a file in place of the kernel's file.
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$BFO_SRCDIR/docs/ftb.md" >"$TEST_TMP/watch-port"
lines=$(wc -l <"$TEST_TMP/watch-port")
[ "$lines" -gt 5 ] && [ "$lines" -le 20 ] || fail "the monitor of docs/ftb.md has $lines lines"
echo '4: ACTIVE' >"$TEST_TMP/state"
watch() {
    STATE_FILE=$TEST_TMP/state sh "$TEST_TMP/watch-port" sr0 1 >"$TEST_TMP/monitor" 2>&1 &
    monitor=$!
}
watch
forget
echo '1: DOWN' >"$TEST_TMP/state"
hears " ftb\.monitor\.bfo error IFACE_DEAD iface: sr0:1, node: $HERE$"
hears " ftb\.mpi\.bfo error MPI_IFACE_DEAD iface: sr0:1, node: $HERE, job: $job_name.*, state: drained"
stands_out sr0:1 || fail "the port does not stand out"
rests 0 1
forget
publish IFACE_DEAD "iface: sr0:1, node: $HERE" # the port is out already: the event is answered all the same
hears ' MPI_IFACE_DEAD iface: sr0:1, .* state: drained'
# The port recovers while no monitor runs. The next monitor gives it back (tests/vm/jobs/steer.sh: the same monitor does).
kill $monitor
wait $monitor 2>/dev/null
forget
echo '4: ACTIVE' >"$TEST_TMP/state"
watch
hears " ftb\.monitor\.bfo info IFACE_RESTORED iface: sr0:1, node: $HERE$"
hears " ftb\.mpi\.bfo info MPI_IFACE_RESTORED iface: sr0:1, node: $HERE, job: $job_name.*, state: up"
stands_out '' || fail "the port stands out still"
moves 0
moves 1
kill $monitor
note "a monitor of $lines lines takes a port out, and gives it back"

# Questions. When the last question is answered, the earlier questions have had no answer.
forget
publish IFACE_DEAD "iface: sr0:1, node: another-node"
stands_out '' || fail "an event for another node is obeyed"
publish CHECK_INTERFACE "iface: sr0:1, node: another-node"
publish CHECK_INTERFACE "iface: sr9:1, node: $HERE"
publish CHECK_JOBS_DEAD "jobs: {1.1, nobody}"
publish CHECK_RANKS_DEAD "nodes: {another-node}, ranks: {0, 1}"
publish CHECK_NODES_DEAD "nodes: {another-node}"
publish CHECK_RANKS_DEAD "ranks: {7}"
publish CHECK_JOBS_DEAD "jobs: {${job_name%.*}, nobody}"
hears " info CONFIRM_JOBS_RUNNING (user: [0-9]+, )?jobs: \{$job_name\}, node: $HERE$"
[ "$(grep -Ec ' ftb\.mpi\.bfo [a-z]+ (CONFIRM|MPI_RANKS)_' "$HEARD")" = 1 ] || { cat "$HEARD"; fail "the server answers what it cannot know"; }
publish CHECK_RANKS_DEAD "jobs: {$job_name}, ranks: {0, 1, 2}"
hears " info CONFIRM_RANKS_ALIVE (user: [0-9]+, )?nodes: \{$HERE\}, jobs: \{$job_name\}, ranks: \{0, 1\}$"
publish CHECK_NODES_DEAD "nodes: {another-node, ${HERE%%.*}}"
hears " info CONFIRM_NODES_ALIVE nodes: \{$HERE\}$"
hears " info MPI_RANKS_ALIVE (user: [0-9]+, )?nodes: \{$HERE\}, jobs: \{$job_name\}, ranks: \{0, 1\}$"
refuses 1 "the payload of IFACE_DEAD needs 'iface: ...' and the node" publish IFACE_DEAD "iface: sr0:1"
refuses 1 'is the name of a port' publish IFACE_DEAD "iface: $(printf 'x%.0s' $(seq 64)), node: $HERE"
refuses 2 'after a key comes :' publish IFACE_DEAD "iface sr0:1"
refuses 2 '--space is a-z' publish X --space ftb.mpi.bfo
refuses 2 'an EVENT is missing' publish
refuses 2 "one word too many: b" publish X 'a: 1' b
refuses 2 "'iface_dead' is no name of an event" subscribe iface_dead
note "questions are answered from the figures, and only from them"

# JSON, and the words of a set in a payload.
timeout 60 "$BFO" ftb subscribe --json --count 1 HELLO >"$TEST_TMP/json" 2>"$TEST_TMP/subscribed" &
one=$!
await "$TEST_TMP/subscribed" 'subscribed' || fail "no subscriber"
publish OTHER
publish HELLO 'who: {a, "b c"}, why: "a \"b\""' --space ftb.test --severity fatal --json
[ "$(json "$TEST_TMP/out" '$j->{taken}')" = 1 ] || { cat "$TEST_TMP/out"; fail "publish --json"; }
wait $one || fail "subscribe --count ended with $?"
[ "$(json "$TEST_TMP/json" 'join "|", @$j{qw(space severity event)}, @{$j->{payload}{who}}, $j->{payload}{why}')" = 'ftb.test|fatal|HELLO|a|b c|a "b"' ] ||
    { cat "$TEST_TMP/json"; fail "subscribe --json"; }

# Both rails are lost: the job declares its peers and ends; all its processes are on this node.
forget
for rail in 0 1; do "$SOFTRAIL" down --fabric "$FABRIC" $rail || fail "rail $rail could not be cut"; done
hears " error UNREACHABLE node: $HERE, job: $job_name.*, ranks: \{[01].*, peers: \{[01].*\}, state: \"given up\", peer_node: $HERE, cause: "
hears " error COMMUNICATION node: $HERE, job: $job_name"
hears " error MPI_RANKS_DEAD (user: [0-9]+, )?nodes: \{$HERE\}, jobs: \{$job_name\}, ranks: \{[01].*\}, state: \"given up\"$"
wait $job && fail "a job without rails ended with 0"
hears " error MPI_RANKS_DEAD .*jobs: \{$job_name\}, ranks: \{.*\}, state: dead$"
forget
until_so "the job is not called dead" eval 'publish CHECK_JOBS_DEAD "jobs: $job_name"; grep -Eq " error CONFIRM_JOBS_DEAD (user: [0-9]+, )?jobs: \{$job_name\}, node: $HERE" "$HEARD"'
publish CHECK_RANKS_DEAD "ranks: {0, 1}"
hears " error CONFIRM_RANKS_DEAD (user: [0-9]+, )?nodes: \{$HERE\}, jobs: \{$job_name\}, ranks: \{0, 1\}$"
note "the death of the job is an event"

kill $server
wait $server || fail "the server ended with $?"
wait $subscriber
[ $? = 3 ] || fail "the end of the server is no trouble for a subscriber"
[ ! -e "$FIGURES/.ftb" ] || fail "the socket stays"
exit 0
