#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Faults: every kind of rule as either end sees it (sr_faults, sr_breaks), plan files, mistakes in plan files, and the report.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/sim/sim.sh"
need ibv_rc_pingpong ibverbs-utils

export SOFTRAIL
for layer in ib eth; do
    for program in sr_faults sr_breaks; do
        rails -n 2 --retry-time 60ms --link-layer $layer -- ./$program > "$TEST_TMP/out" 2>&1 ||
            fail "$program over $layer: $(cat "$TEST_TMP/out")"
        note "$program over $layer: $(grep -c ' OK ' "$TEST_TMP/out") cases"
    done
done

# The same seed gives the same faults, another seed gives other faults. Of the waits, those for a receive (RNR) have a counter of their own.
plan() {
    printf 'seed %s\n# every tenth message is late\ndelay chance=10%% time=1ms process=0 op=send\nrnr nth=7 time=1ms process=1 op=send\n' "$1" > "$TEST_TMP/plan"
    rails -n 1 --plan "$TEST_TMP/plan" -- bash "$TEST_TMP/pair.sh" "$TEST_TMP/pp" ibv_rc_pingpong -n 300 -s 100 -e ||
        fail "pingpong under a plan: $(cat "$TEST_TMP"/pp.*)"
    sed -n 's/.*"done": \([0-9]*\).*/\1/p' "$REPORT" | head -n 1
}
first=$(plan 1) again=$(plan 1)
[ "$first" -gt 10 ] && [ "$first" -lt 60 ] || fail "10 % of 300 messages were $first"
[ "$first" = "$again" ] || fail "seed 1 gave $first, then $again faults"
[ "$(rail_counter "$REPORT" 0 faults)" = $((again + 1)) ] || fail "the rail does not count the faults"
[ "$(rail_counter "$REPORT" 0 rnr_waits)" = 1 ] || fail "the rail does not count the message that found no receive posted"
grep -q '"rule": "delay chance=10%' "$REPORT" || fail "the report does not name the rule"

# A silent path: the port stays active. A message that is sent meanwhile arrives when the path works again.
cat > "$TEST_TMP/silent.sh" <<'END'
"$SOFTRAIL" silent sr0 && "$SOFTRAIL" status | grep -q silent && ibv_devinfo -d sr0 | grep -q PORT_ACTIVE || exit 1
bash "$1" "$2" ibv_rc_pingpong -n 10 &
for i in $(seq 600); do
    [ "$("$SOFTRAIL" status --json | sed -n 's/.*"retries": \([0-9]*\).*/\1/p' | head -n 1)" -gt 0 ] && break
    sleep 0.1
done
"$SOFTRAIL" up sr0 && wait $!
END
rails -n 1 --retry-time 120s -- bash "$TEST_TMP/silent.sh" "$TEST_TMP/pair.sh" "$TEST_TMP/pp" ||
    fail "pingpong over a path that was silent: $(cat "$TEST_TMP"/pp.*)"
[ "$(rail_counter "$REPORT" 0 rnr_waits)" = 0 ] || fail "a lost message was counted as RNR"
[ "$(rail_counter "$REPORT" 0 retries)" -gt 0 ] || fail "the silent path carried everything"

# The error text of a mistake names the line and the remedy.
mistake() {
    printf 'lose\n%s\n' "$1" > "$TEST_TMP/plan"
    if "$SOFTRAIL" run --name "mistake-$$" --plan "$TEST_TMP/plan" -- true 2> "$TEST_TMP/err"; then fail "'$1' was accepted"; fi
    grep -q "line 2: .*$2" "$TEST_TMP/err" || fail "'$1' gave: $(cat "$TEST_TMP/err")"
}
mistake 'explode' 'is no fault; there are lose'
mistake 'lose rail=sr9' 'a rail such as sr1'
mistake 'lose rail=sr5' 'this fabric has sr0 to sr1'
mistake 'lose nth=0' 'from 1 on'
mistake 'lose after=2' '1 rules come before it'
mistake 'delay' 'wants time='
mistake 'lose payload=3:abc' 'OFFSET:HEX'
mistake 'lose op' 'is not KEY=VALUE'
mistake 'error status=none' 'retry, rnr'
[ ! -e "/dev/shm/softrail-$(id -u)/mistake-$$" ] || fail "a fabric was left behind"
