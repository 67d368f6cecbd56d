#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# A window is not freed before its owner's last answers have completed: completions come later than their messages, as on a
# rail that has to give up first, and no byte of the heap may change where the window was.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca osc pt2pt --mca pml bfo --mca btl openib,self)

# late CHANCE: the completions of CHANCE of the sends come 300 ms after the messages have arrived.
late() {
    echo "silent op=send chance=$1 time=300ms" >"$TEST_TMP/plan"
    on_rails "-n 2 --plan $TEST_TMP/plan" 2 "$BFO_BUILDDIR/tests/mpi/mpi_answers" ||
        { show_log; fail "windows freed while answers are in flight, $1 of them late"; }
    says '^PASSED [1-9]'
    rails_moved "$REPORT" 0 1
    grep -qE '"done": *[1-9][0-9]+' "$REPORT" || fail "not ten sends were late: $(cat "$REPORT")"
    note "$1 of the sends reported late: $(grep '^PASSED' "$LOG")"
}
late 100%
late 30%
exit 0
