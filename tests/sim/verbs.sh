#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs sr_check, which tests behaviour of the verbs that no tool shows, in either link layer. safety.sh runs it without process_vm_*.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/sim/sim.sh"

export SOFTRAIL
for layer in ib eth; do
    rails -n 2 --retry-time 60ms --link-layer $layer -- ./sr_check > "$TEST_TMP/out" 2>&1 ||
        fail "sr_check over $layer: $(cat "$TEST_TMP/out")"
    note "$layer: $(grep -c ' OK ' "$TEST_TMP/out") cases"
done
rails -n 1 --retry-time 120s -- ./sr_check outage > "$TEST_TMP/out" 2>&1 || fail "sr_check outage: $(cat "$TEST_TMP/out")"
rails -n 1 -- ./sr_check timing > "$TEST_TMP/out" 2>&1 || fail "sr_check timing: $(cat "$TEST_TMP/out")"
