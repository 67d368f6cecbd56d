#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# libfabric: fi_info lists the rails together with the devices of other providers. fi_pingpong runs over the verbs provider, with
# connections of librdmacm, on the rail that -d names (the two ends find each other over TCP at the given address).
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/sim/sim.sh"
need fi_info libfabric-bin

# Server and client; they find each other over TCP.
cat > "$TEST_TMP/pingpong" <<'PINGPONG'
log=$1 port=$2 address=$3
shift 3
fi_pingpong -p verbs -e msg -d sr1 -I 20 -c "$@" -B $port > "$log.server" 2>&1 & server=$!
deadline=$((SECONDS + 60))
until grep -q ":$(printf %04X $port) 0*:0000 0A" /proc/net/tcp /proc/net/tcp6; do # until the server listens
    [ $SECONDS -lt $deadline ] && kill -0 $server || break
    sleep 0.05
done
fi_pingpong -p verbs -e msg -d sr1 -I 20 -c "$@" -P $port $address > "$log.client" 2>&1; client=$?
wait $server; server=$?
[ "$client $server" = "0 0" ] || { echo "client $client, server $server" >> "$log.client"; exit 1; }
PINGPONG

for layer in ib eth; do
    rails -n 2 --link-layer $layer -- fi_info > "$TEST_TMP/out" 2>&1 || fail "fi_info over $layer ended with $?: $(tail -5 "$TEST_TMP/out")"
    grep -q 'provider: tcp' "$TEST_TMP/out" || fail "fi_info over $layer lists nothing: $(tail -5 "$TEST_TMP/out")"
    for rail in sr0 sr1; do
        grep -A 4 'provider: verbs$' "$TEST_TMP/out" | tr -d '\n' | grep -q "domain: $rail  *version: [^ ]*  *type: FI_EP_MSG" ||
            fail "fi_info over $layer does not list $rail: $(cat "$TEST_TMP/out")"
    done
    for size in 64 100000; do
        rails -n 2 --link-layer $layer -- bash "$TEST_TMP/pingpong" "$TEST_TMP/fi" $((20000 + $$ % 12000)) 127.42.1.1 -S $size ||
            fail "fi_pingpong of $size bytes over $layer: $(cat "$TEST_TMP"/fi.*)"
        [ "$(rail_counter "$REPORT" 1 tx_bytes)" -ge $((40 * size)) ] || fail "fi_pingpong over $layer: rail 1 carried $(rail_counter "$REPORT" 1 tx_bytes) bytes: $(cat "$TEST_TMP"/fi.*)"
        [ "$(rail_counter "$REPORT" 0 tx_messages)" = 0 ] || fail "fi_pingpong over $layer: rail 0 carried messages"
        note "fi_pingpong of $size bytes over $layer: $(rail_counter "$REPORT" 1 tx_bytes) bytes on rail 1"
    done
done
