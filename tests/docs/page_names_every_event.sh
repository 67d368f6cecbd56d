#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# bfo(1) describes every fault event that the command throws, obeys or gives a severity to, with that severity; and no other event.
. "$BFO_SRCDIR/tests/lib.sh"
cd "$BFO_SRCDIR" || exit 1
sed -n '/^\.SS ftb/,/^\.SS report/p' tools/bfo.1 | sed 's/\\-/-/g; s/^\.[A-Z]* //; s/"//g' >"$TEST_TMP/page"
grep -ohE '"[A-Z]+_[A-Z_]*[A-Z]"|"(COMMUNICATION|UNREACHABLE)"' tools/bt_ftb_throw.c tools/bt_ftb_rails.c tools/bt_ftb_obey.c tools/bt_ftb_text.c | tr -d '"' | sort -u >"$TEST_TMP/thrown"
[ "$(wc -l <"$TEST_TMP/thrown")" -gt 15 ] || fail "only $(wc -l <"$TEST_TMP/thrown") events in the code"
while read -r name; do
    # CONFIRM_NODES_DEAD is the answer of monitors of nodes: the command only knows its severity.
    [ "$name" != CONFIRM_NODES_DEAD ] || continue
    grep -qw -- "$name" "$TEST_TMP/page" || fail "bfo(1) does not name the event $name"
    severity=$(grep -oE "\"$name\", +BT_FTB_[A-Z]+" tools/bt_ftb_text.c | sed 's/.*BT_FTB_//' | tr A-Z a-z)
    grep -Eq -- "\b$name( *, *[A-Z_]+)* *\(${severity:-info}\b" "$TEST_TMP/page" || fail "bfo(1) does not call $name ${severity:-info}"
done <"$TEST_TMP/thrown"
for name in $(grep -oE '\b[A-Z]+_[A-Z_]*[A-Z]\b' "$TEST_TMP/page" | sort -u); do
    grep -qx -- "$name" "$TEST_TMP/thrown" || [ "$name" = IFACE_RESTORED ] || fail "bfo(1) names the event $name, which the code does not have"
done
