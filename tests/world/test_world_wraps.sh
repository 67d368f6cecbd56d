#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Numbers begin shortly before they wrap: sequence numbers and generations of identifiers go on after their wrap, a rail whose generations are used
# up stays away, and a message whose epochs are used up ends with its peer. Reports (RAILS), waits for a rail, probations and inquiries go on after
# the wrap of their numbers. The trace must show each of these.
. "$BFO_SRCDIR/tests/lib.sh"
# run PLAN...: seeds with this plan
run() { bash "$BFO_SRCDIR/tests/world/world.sh" --from 1 --seeds 40 --jobs 2 -v rails=2 rejoin=1 stable=10 faults=8 downs=9 fails=0 kills=0 deaths=0 cqs=0 horizon=400 "$@" >"$TEST_TMP/trace" 2>&1 || { tail -n 20 "$TEST_TMP/trace"; fail "a job fails: $*"; }; }
# shows PATTERN: a line of the trace matches
shows() { grep -aqE -- "$1" "$TEST_TMP/trace" || fail "no job of this plan came so far: $1"; }
run sequence=3 names=1 generation=0 epochs=0 biggest=65536
shows ' seq 4294967295 epoch 0: '
shows ' seq [0-9] epoch 0: '
shows 'req 0xffffffff\.'
shows 'req 0x[1-9]\.'
run generation=65534 sequence=0 names=0 epochs=0
shows ' gen 65535: proving -> up '
shows ' gen 65535: .* -> down '
run epochs=1 sequence=0 names=0 generation=0 biggest=131072 faults=60 breaks=9 downs=0 silences=0 losses=0 stops=0 drains=0 horizon=3000 messages=20
shows '\(S13e\)'
run numbers=2 sequence=0 names=0 generation=0 epochs=0 per_node=2 crowd=0 drains=6 forced=0 silences=6 losses=0 breaks=0 stops=0 horizon=1600
shows ' RAILS number [0-9]+, heard [0-9]$'
shows ' wait number 1$'
shows ' answer ([0-9]) to question \1 of a probation$'
shows ' answer [0-9] to an inquiry whose rounds are 65535 to [0-9], which counts$'
exit 0
