#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The server of fault events and its clients: a slow client loses events, learns how many, and delays no other client; floods, garbage, silent
# clients and clients that do not read harm nobody; another user is refused, even with access to the directory; a dead server's socket is replaced.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
need perl perl
CLIENT=$BFO_SRCDIR/tests/tools/ftb_client.pl
SOCKET=$FIGURES/.ftb
OUT=$TEST_TMP/out
server=
others=()
trap 'kill -9 $server "${others[@]}" 2>/dev/null; rm -rf "$TEST_TMP"' EXIT

begin_server() {
    : >"$TEST_TMP/ready"
    "$BFO" ftb serve >"$TEST_TMP/ready" 2>"$TEST_TMP/serve" &
    server=$!
    await "$TEST_TMP/ready" '^bfo ftb: ready at ' || { cat "$TEST_TMP/serve"; fail "no server"; }
}
end_server() {
    kill "$server"
    wait "$server" || { cat "$TEST_TMP/serve"; fail "the server ended with $?"; }
}
takes() { "$BFO" ftb publish "${1:-HELLO}" >"$OUT" 2>&1; }
goes_on() { takes || { cat "$OUT" "$TEST_TMP/serve"; fail "after $1 the server takes nothing"; }; }
# answers PATTERN: the server's answer to the lines on stdin matches PATTERN
answers() {
    rm -f "$TEST_TMP/answer"
    timeout 60 perl "$CLIENT" "$SOCKET" send "$TEST_TMP/answer" || fail "no connection"
    grep -Eq -- "$1" "$TEST_TMP/answer" || { cat "$TEST_TMP/answer"; fail "the server does not say: $1"; }
}

begin_server
# Bytes that are no text.
answers '^no a line begins with publish or subscribe' < <(printf 'reboot now\n')
answers '^no ' < <(printf 'publish a.b info X\0Y\n')
answers '^no an event is printable ASCII, not .\?\[2J.$' < <(printf 'publish a.b info X c: \033[2J\n')
answers '^no only the server throws events into the space ftb.mpi.bfo$' < <(printf 'publish ftb.mpi.bfo info MPI_INIT\n')
answers '^no a set goes on' < <(printf 'publish a.b info X c: {a, b\n')
answers '^no the name of an event' < <(printf 'subscribe lower\n')
answers '^no a subscription names at most 32 events$' < <({ printf 'subscribe'; printf ' X%s' $(seq 33); echo; })
answers '^no the name of an event' < <(printf 'publish a.b info X\npublish a.b info\npublish a.b info Y')
[ "$(sed 's/ .*//' "$TEST_TMP/answer" | tr '\n' ' ')" = 'ok no ' ] || { cat "$TEST_TMP/answer"; fail "not two answers to two lines and a half"; }
answers '^no a line has at most 2047 characters$' < <(head -c 5000 /dev/zero | tr '\0' x)
for _ in $(seq 20); do
    head -c 20000 /dev/urandom >"$TEST_TMP/garbage"
    timeout 60 perl "$CLIENT" "$SOCKET" send "$TEST_TMP/answer" <"$TEST_TMP/garbage" || fail "no connection for garbage"
done
goes_on "garbage"
note "garbage is answered with the reason"

# A flood, and a subscriber that does not read.
perl "$CLIENT" "$SOCKET" slow "$TEST_TMP/go" "$TEST_TMP/slow" &
others+=($!)
await "$TEST_TMP/slow" '^ok$' || fail "no slow subscriber"
timeout 240 "$BFO" ftb subscribe --count 1 AFTER >"$TEST_TMP/after" 2>"$TEST_TMP/subscribed" &
reader=$!
await "$TEST_TMP/subscribed" 'subscribed' || fail "no subscriber"
timeout 200 perl "$CLIENT" "$SOCKET" flood 5000 "$TEST_TMP/flooded" || fail "the flood was not taken"
[ "$(cat "$TEST_TMP/flooded")" = 5000 ] || fail "not all of the flood was taken"
goes_on "the flood"
takes AFTER || fail "after the flood the server takes nothing"
wait $reader || fail "the other subscriber ended with $?"
grep -q ' AFTER$' "$TEST_TMP/after" || fail "the other subscriber did not hear"
touch "$TEST_TMP/go"
until_so "the slow subscriber is not told what it lost" grep -q '^lost ' "$TEST_TMP/slow"
got=$(grep -c '^event .* FLOOD n: [0-9]*, fill: x*$' "$TEST_TMP/slow")
lost=$(sed -n 's/^lost //p' "$TEST_TMP/slow" | awk '{ n += $1 } END { print n }')
[ "$got" -gt 0 ] && [ $((got + lost)) = 5000 ] || fail "$got events and $lost lost of 5000"
takes FLOOD || fail "no event after the loss"
until_so "the slow subscriber hears no more" grep -q '^event .* FLOOD$' "$TEST_TMP/slow"
note "of 5000 events a slow subscriber read $got and learnt that it lost $lost"

# A client that publishes without reading the answers: the server stops reading from it.
perl "$CLIENT" "$SOCKET" deaf "$TEST_TMP/deaf" &
deaf=$!
others+=($deaf)
await "$TEST_TMP/deaf" full || fail "the server reads on and on from a client that does not read"
goes_on "a deaf client"
kill $deaf

# Silent clients take all places; the next client is told so. The server closes the silent connections after a while, though their process lives.
perl "$CLIENT" "$SOCKET" silent 70 "$TEST_TMP/silent" &
others+=($!)
await "$TEST_TMP/silent.all" 70 || fail "no silent clients"
until_so "no client is told that the places are taken" grep -q '^no the server has 64 clients already' "$TEST_TMP/silent"
until_so "silent clients keep their places" takes
until_so "silent clients are not closed" eval "[ \$(grep -c closed '$TEST_TMP/silent') = 70 ]"
note "silent clients lose their places"

# Other users.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$TEST_TMP" "$BFO_STATUS_DIR"
    cp "$BFO" "$TEST_TMP/bfo"
    setpriv --reuid=12345 --regid=12345 --clear-groups "$TEST_TMP/bfo" ftb publish X --user 0 >"$OUT" 2>&1
    [ $? = 3 ] && grep -q 'Permission denied' "$OUT" || { cat "$OUT"; fail "another user comes through the directory"; }
    setpriv --reuid=12345 --regid=12345 --clear-groups --inh-caps=+dac_override --ambient-caps=+dac_override "$TEST_TMP/bfo" ftb publish X --user 0 >"$OUT" 2>&1
    [ $? = 1 ] && grep -q 'the server refuses: this server serves its own user and root only' "$OUT" || { cat "$OUT"; fail "another user is not refused"; }
    mkdir -m 700 "$BFO_STATUS_DIR/bfo-12345"
    chown 12345:12345 "$BFO_STATUS_DIR/bfo-12345"
    setpriv --reuid=12345 --regid=12345 --clear-groups "$TEST_TMP/bfo" ftb serve >"$TEST_TMP/ready2" 2>&1 &
    others+=($!)
    await "$TEST_TMP/ready2" 'ready at' || { cat "$TEST_TMP/ready2"; fail "no server of another user"; }
    "$BFO" ftb publish X --user 12345 || fail "root is not served"
    setpriv --reuid=12345 --regid=12345 --clear-groups "$TEST_TMP/bfo" ftb publish X || fail "its own user is not served"
    # A broken list of ports concerns only its user: the lists of other users are written.
    printf short >"$BFO_STATUS_DIR/bfo-12345/.steer"
    chown 12345 "$BFO_STATUS_DIR/bfo-12345/.steer"
    "$BFO" ftb publish IFACE_DEAD "iface: sr0:1, node: $(uname -n)" || fail "another user's broken list keeps a port in service"
    grep -q 'what user 12345 asks of his jobs, .*: another release of bfo made it' "$TEST_TMP/serve" || { cat "$TEST_TMP/serve"; fail "the server does not say whose list is broken"; }
    "$BFO" drain 2>/dev/null | grep -qx sr0:1 || fail "the port does not stand out"
    "$BFO" ftb publish IFACE_RESTORED "iface: sr0:1, node: $(uname -n)" || fail "another user's broken list keeps a port out of service"
    note "another user is refused, root is not"
else
    note "not root: other users are not tried"
fi

# A server that is stopped: no client waits for it without limit.
kill -STOP "$server"
for command in "publish X" subscribe; do
    timeout 60 "$BFO" ftb $command >"$OUT" 2>&1
    [ $? = 3 ] && grep -q 'the server does not answer' "$OUT" || { cat "$OUT"; fail "$command: a server that is stopped"; }
done
kill -CONT "$server"
# A server finds another server, the socket of a dead server, a broken list of ports, or a file or a link in place of its socket.
goes_on "all that"
timeout 60 "$BFO" ftb serve >"$OUT" 2>&1
[ $? = 3 ] && grep -q 'another server runs already' "$OUT" || { cat "$OUT"; fail "two servers"; }
kill -9 "$server"
wait "$server" 2>/dev/null
[ -S "$SOCKET" ] || fail "a killed server leaves no socket: nothing is tested"
takes
[ $? = 3 ] && grep -q "no server runs; start 'bfo ftb serve'" "$OUT" || { cat "$OUT"; fail "a dead server's socket"; }
begin_server
goes_on "a dead server"
printf short >"$FIGURES/.steer"
"$BFO" ftb publish IFACE_DEAD "iface: sr0:1, node: $(uname -n)" --dir "$BFO_STATUS_DIR" >"$OUT" 2>&1
[ $? = 1 ] && grep -q 'the server refuses: what user .*: another release of bfo made it' "$OUT" || { cat "$OUT"; fail "a list that is broken"; }
end_server
[ ! -e "$SOCKET" ] || fail "the socket stays"
echo precious >"$SOCKET"
timeout 60 "$BFO" ftb serve >"$OUT" 2>&1
[ $? = 3 ] && grep -q 'it is no socket; remove it' "$OUT" && grep -q precious "$SOCKET" || { cat "$OUT"; fail "a file in place of the socket"; }
rm -r "$FIGURES"
mkdir -m 700 "$TEST_TMP/elsewhere"
ln -s "$TEST_TMP/elsewhere" "$FIGURES"
for command in serve "publish X" subscribe; do
    timeout 60 "$BFO" ftb $command >"$OUT" 2>&1
    [ $? = 3 ] && grep -q 'the directory is no private directory of its user' "$OUT" || { cat "$OUT"; fail "$command: a link in place of the directory"; }
done
[ -z "$(ls -A "$TEST_TMP/elsewhere")" ] || fail "a file was made in the target of a link"
timeout 60 "$BFO" ftb serve --dir "$TEST_TMP/none" >"$OUT" 2>&1
[ $? = 3 ] && grep -q "none/bfo-.*: No such file or directory" "$OUT" || { cat "$OUT"; fail "a directory that is not there"; }
note "sockets of the dead, files and links"
exit 0
