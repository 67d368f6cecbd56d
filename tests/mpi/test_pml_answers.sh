#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A window is not freed before its owner's last answers have completed: completions come later than their messages, as on a
# rail that has to give up first, and no byte of the heap may change where the window was.
. "$BFO_SRCDIR/tests/lib.sh"
use_components pml btl
report=$TEST_TMP/report.json log=$TEST_TMP/log

# late CHANCE: the completions of CHANCE of the sends come 300 ms after the messages have arrived.
late() {
    echo "silent op=send chance=$1 time=300ms" >"$TEST_TMP/plan"
    timeout -k 5 240 "$SOFTRAIL" run -n 2 --plan "$TEST_TMP/plan" --report "$report" -- "$MPIRUN" --oversubscribe --bind-to none \
        -np 2 --mca osc pt2pt --mca pml bfo --mca btl openib,self "$BFO_BUILDDIR/tests/mpi/mpi_answers" >"$log" 2>&1 </dev/null ||
        { cat "$log"; fail "windows freed while answers are in flight, $1 of them late"; }
    grep -q '^PASSED [1-9]' "$log" || { cat "$log"; fail "windows freed while answers are in flight: no result"; }
    rails_moved "$report" 0 1
    grep -qE '"done": *[1-9][0-9]+' "$report" || fail "not ten sends were late: $(cat "$report")"
    note "$1 of the sends reported late: $(grep '^PASSED' "$log")"
}
late 100%
late 30%
exit 0
