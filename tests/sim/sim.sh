# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Helpers of the softrail tests; source it after tests/lib.sh.

REPORT=$TEST_TMP/report.json

# rails ARGUMENTS... -- PROGRAM...: softrail run with a time limit and a report.
rails() { timeout -k 5 "${SIM_TIMEOUT:-240}" "$SOFTRAIL" run --report "$REPORT" "$@"; }

# pair.sh: the body of pair(), run under softrail run. It starts the server, and the client when the server listens.
cat > "$TEST_TMP/pair.sh" <<'PAIR'
log=$1; shift
is_listening() { grep -qE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6; }
port=$((20000 + $$ % 12000)) # below the ports that the kernel hands out
while is_listening $port; do
    port=$((20000 + (port - 19999) % 12000))
done
"$@" -p $port > "$log.server" 2>&1 & server=$!
for i in $(seq 600); do
    is_listening $port && break
    sleep 0.1
done
"$@" -p $port localhost > "$log.client" 2>&1; client=$?
wait $server; server=$?
[ $client = 0 ] && [ $server = 0 ]
PAIR

# has_no_clock: perftest compares the processor's counter with the time of day before it prints. If it was interrupted in between, as on a busy
# machine, it ends with an error, although all messages were carried.
has_no_clock() { grep -q 'Correlation coefficient r^2: .* < 0.9' "$TEST_TMP/pair".*; }

# pair RAIL TOOL ARGUMENTS...: server and client of a verbs tool on one rail; only this rail must have carried messages.
pair() {
    local rail=$1 log=$TEST_TMP/pair least
    shift
    least=$(sed -n 's/.* -n \([0-9]*\).*/\1/p' <<<"$* ")
    least=${least:-1}
    rm -f "$log".client "$log".server "$REPORT" # an earlier tool must not speak for this one
    rails -n 2 ${SIM_OPTIONS:-} -- bash "$TEST_TMP/pair.sh" "$log" "$@" -d "sr$rail" || has_no_clock || {
        cat "$log".client "$log".server
        fail "$* on sr$rail ended with an error"
    }
    [ "$(rail_counter "$REPORT" "$rail" tx_messages)" -ge "$least" ] || fail "$*: sr$rail carried fewer than $least messages"
    [ "$(rail_counter "$REPORT" $((1 - rail)) tx_messages)" = 0 ] || fail "$*: the other rail carried messages"
    note "$* ${SIM_OPTIONS:-}: $(rail_counter "$REPORT" "$rail" tx_messages) messages on sr$rail"
}
