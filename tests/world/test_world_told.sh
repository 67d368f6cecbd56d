#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A path falls silent, one process finds its rail soft, and the other process takes the verdict over: both give the rail no new work after one
# verdict. Seeds differ in the path and the moment, and the first seed in which this happens is enough. Time is virtual, so the machine's load
# changes nothing.
. "$BFO_SRCDIR/tests/lib.sh"
plan="nodes=2 per_node=1 rails=2 faults=6 silences=1 downs=0 losses=0 stops=0 deaths=0 kills=0 cqs=0 drains=0 breaks=0 fails=0 soft=20 deadline=250
      messages=300 horizon=6400 computes=0 blocking=0"
# Which rank tells, and which one is told? Both speak of the same rail.
told() {
    sed -nE 's/.* r([01]) says: .*: rail ([0-9]+) to ([01]) seems silent( there)?, .*/\1 \2 \3\4/p' "$TEST_TMP/trace" | awk '
        NF == 3 { own[$1, $2] = 1 }
        NF == 4 && own[$3, $2] { found = 1 }
        END { exit !found }'
}
for seed in {1..100}; do
    # shellcheck disable=SC2086
    bash "$BFO_SRCDIR/tests/world/world.sh" --seed "$seed" -v $plan >"$TEST_TMP/trace" 2>&1 || { tail -n 20 "$TEST_TMP/trace"; fail "seed $seed fails"; }
    told && exit 0
done
fail "no process took over the verdict of its peer"
