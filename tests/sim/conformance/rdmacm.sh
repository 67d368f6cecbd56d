#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# librdmacm over software rails: rping, perftest -R, calls that wait by themselves (rdma_client) and datagrams (udaddy),
# both ends, over the rail that the address names; a call without a listener; calls that are not offered, which fail at
# once; and sr_connect, for behaviour that no tool shows.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/sim/sim.sh"
need ib_send_lat perftest
need rping rdmacm-utils

fabric=rdmacm-$$
export SOFTRAIL FABRIC_PATH=${SOFTRAIL_DIR:-/dev/shm}/softrail-$(id -u)/$fabric

# ends LOG SERVER... -- CLIENT...: the client starts when the server listens; the exit status of each end counts.
cat > "$TEST_TMP/ends" <<'ENDS'
log=$1 server=()
shift
while [ "$1" != -- ]; do server+=("$1"); shift; done
shift
"${server[@]}" > "$log.server" 2>&1 & pid=$!
deadline=$((SECONDS + 60))
until compgen -G "$FABRIC_PATH/cm-*" > /dev/null; do
    [ $SECONDS -lt $deadline ] && kill -0 $pid || { echo "the server does not listen" >> "$log.server"; break; }
    sleep 0.05
done
"$@" > "$log.client" 2>&1
echo "client $?" > "$log.status"
wait $pid
echo "server $?" >> "$log.status"
[ "$(tr '\n' ' ' < "$log.status")" = "client 0 server 0 " ]
ENDS

# both LAYER SERVER... -- CLIENT...: over 127.42.1.1, that is rail 1; rail 0 must not carry messages.
both() {
    local layer=$1 log=$TEST_TMP/both
    shift
    rails --name "$fabric" -n 2 --link-layer "$layer" -- bash "$TEST_TMP/ends" "$log" "$@" ||
        fail "$* over $layer: $(cat "$log".*)"
    [ "$(rail_counter "$REPORT" 1 tx_bytes)" -gt 0 ] || fail "$*: rail 1 carried nothing"
    [ "$(rail_counter "$REPORT" 0 tx_messages)" = 0 ] || fail "$*: rail 0 carried messages"
    note "$1 over $layer: $(rail_counter "$REPORT" 1 tx_bytes) bytes on rail 1"
}
for layer in ib eth; do
    both $layer rping -s -a 127.42.1.1 -V -C 5 -- rping -c -a 127.42.1.1 -V -C 5
    both $layer rdma_server -- rdma_client -s 127.42.1.1
    both $layer udaddy -b 127.42.1.1 -c 2 -C 3 -- udaddy -s 127.42.1.1 -c 2 -C 3
    both $layer ib_send_lat -R -n 100 -- ib_send_lat -R -n 100 127.42.1.1
    both $layer ib_write_bw -R -n 200 -- ib_write_bw -R -n 200 127.42.1.1
done

rails -n 2 -- rping -c -a 127.42.1.1 -C 1 > "$TEST_TMP/nobody" 2>&1 && fail "rping connected without a listener"
grep -q 'RDMA_CM_EVENT_REJECTED, error 8' "$TEST_TMP/nobody" || fail "a call without a listener: $(cat "$TEST_TMP/nobody")"

for refused in "mckey -m 239.1.1.1" "rstream -s 127.42.1.1"; do
    # shellcheck disable=SC2086
    rails -n 2 -- $refused > "$TEST_TMP/refused" 2>&1 && fail "$refused ran"
    grep -q '^softrail: .* is not offered' "$TEST_TMP/refused" || fail "$refused: $(cat "$TEST_TMP/refused")"
done

rails --name "$fabric" -n 2 --retry-time 500ms -- ./sr_connect impatient > "$TEST_TMP/out" 2>&1 ||
    fail "sr_connect impatient: $(cat "$TEST_TMP/out")"
rails --name "$fabric" -n 2 -- ./sr_connect > "$TEST_TMP/out" 2>&1 || fail "sr_connect: $(cat "$TEST_TMP/out")"
note "sr_connect: $(grep -c ' OK ' "$TEST_TMP/out") cases"
