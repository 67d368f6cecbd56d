#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Jobs with several processes on a machine, and paths that swallow packets: some rails are found silent by the questions of others.
# Then a process of one machine each dies, and the others look in vain for another process of that machine to ask about it.
. "$BFO_SRCDIR/tests/lib.sh"
plan="nodes=2 per_node=1 crowd=3 rails=2 faults=4 silences=60 hush=0 deadline=100 window=24 messages=60 rejoin=1"
# shellcheck disable=SC2086
bash "$BFO_SRCDIR/tests/world/world.sh" --seeds "${BFO_WORLD_PATHS:-60}" --jobs 2 -v $plan >"$TEST_TMP/log" 2>&1 || { tail -n 20 "$TEST_TMP/log"; fail 'a job fails'; }
followed=$(grep -c 'is silent: two others to the same port are' "$TEST_TMP/log") asked=$(grep -c 'is silent: [0-9]* questions' "$TEST_TMP/log")
[ "$followed" -ge 3 ] || fail "only $followed rails were found silent by the questions of others"
note "$asked rails were found silent by questions of their own, $followed by those of others"
bash "$BFO_SRCDIR/tests/world/world.sh" --seeds 2 --jobs 2 nodes=16 per_node=1 crowd=0 rails=1 messages=3 biggest=64 wildcards=0 threads=0 preempt=0 \
    faults=6 kills=9 downs=9 silences=9 rejoin=1 fails=0 || fail 'a job of 16 machines fails'
exit 0
