#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Single faults at the rail under a verified stream: a message lost, one delivered although its sender gets an error,
# one that arrives late; for sends, writes and reads, with each protocol. Faults are softrail's, at the n-th message.
. "$BFO_SRCDIR/tests/lib.sh"
use_components pml btl
REPORT=$TEST_TMP/rails.json

# survive RULE MAX MPIRUN-ARGUMENTS...: the stream verifies, and the fault was done
survive() {
    local rule=$1 max=$2 log=$TEST_TMP/log
    shift 2
    echo "$rule" >"$TEST_TMP/plan"
    timeout -k 5 240 "$SOFTRAIL" run -n 2 --plan "$TEST_TMP/plan" --retry-time=100ms --report "$REPORT" -- "$MPIRUN" --oversubscribe \
        --bind-to none -np 2 --mca pml bfo --mca btl openib,self "$@" "$BFO_BUILDDIR/contrib/bfo_stream" -s 1 -m "$max" \
        >"$log" 2>&1 </dev/null || { cat "$log"; fail "$rule, messages to $max bytes, $*"; }
    grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$log" || { cat "$log"; fail "$rule: the stream did not verify"; }
    grep -q '^A rail was lost:' "$log" || { cat "$log"; fail "$rule: no rail was lost, so nothing was tested"; }
    note "$rule, to $max bytes $*: $(grep ' 0 wrong$' "$log" | tail -n 1)"
}
COPY=(--mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0)
GET=(--mca pml_bfo_use_put 0)
for fault in lose unacked; do
    for n in 7 60 211 450; do
        survive "$fault rail=sr1 op=send nth=$n" 200000
        survive "$fault rail=sr0 op=send nth=$n" 200000 "${COPY[@]}"
    done
    survive "$fault rail=sr1 op=send nth=300" 200000 "${GET[@]}"
    survive "$fault rail=sr1 op=write nth=30" 1000000
    survive "$fault rail=sr0 op=write nth=31" 1000000
    survive "$fault rail=sr1 op=read nth=20" 1000000 "${GET[@]}"
done
survive "late rail=sr1 op=write nth=30 time=200ms" 1000000
survive "late rail=sr1 op=send nth=300 time=200ms" 300000
exit 0
