#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The receiver's port goes down and returns before its rail is connected; the sender's port stays up. After one side has given
# the rail up, the other side must not continue to use it: otherwise a long message that arrives over it is torn and restarted
# without end. Both sides give up the first generation of the rail; the second generation comes back.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1 --mca pml_bfo_verbose 1 --mca pml_bfo_use_put 0)

# wait_for PATTERN COUNT: waits until COUNT lines of the job match PATTERN
wait_for() { await "$LOG" "$1" "$2" || { cat "$LOG"; fail "$1 was not said"; }; }

# flap WHEN RAILS: rail 1 of the receiver goes down and returns; WHEN is "first", before the two meet, or "met", after
flap() {
    local when=$1 rails=$2 go=$TEST_TMP/go pid process
    rm -f "$go" "$go.2"
    begin_stream "-n $rails --retry-time=300ms" 2 "$BFO_BUILDDIR/tests/mpi/mpi_late" "$go" "$when" $([ "$when" = first ] && echo "$go.2")
    wait_for '^ready\|^receiver' 2
    pid=$(sed -n 's/^receiver //p' "$LOG")
    process=$("$SOFTRAIL" status --fabric "$FABRIC" | sed -n "s/^process \([0-9]*\): pid $pid.*/\1/p")
    "$SOFTRAIL" down --fabric "$FABRIC" 1 --process "$process" || { cat "$LOG"; fail "rail 1 could not be cut"; }
    wait_for 'sr1:1: the port is down' 1
    if [ "$when" = met ]; then # the rail is in doubt until another rail has answered
        wait_for 'rail 1 .* -> down on' 2
    fi
    if [ "$when" = first ]; then
        touch "$go"
        wait_for '^met' 1
    fi
    "$SOFTRAIL" up --fabric "$FABRIC" 1 --process "$process" || { cat "$LOG"; fail "rail 1 did not return"; }
    wait_for 'sr1:1: the port is back' 1
    touch "$go" "$go.2"
    passes "$when, $rails rails" 'all right'
    ! grep -q 'rail 1 .* gen 0: .* -> up on' "$LOG" || { cat "$LOG"; fail "$when, $rails rails: one side gave rail 1 up, and it was connected"; }
    [ "$(grep -c 'rail 1 .* gen 0: .* -> down on' "$LOG")" = 2 ] || { cat "$LOG"; fail "$when, $rails rails: rail 1 is not down at both sides"; }
    [ "$when" != met ] || [ "$(grep -c 'rail 1 generation 0 (sr1:1) lost: the peer reports: the port is down;' "$LOG")" = 1 ] ||
        { cat "$LOG"; fail "$when, $rails rails: the side whose port was up does not name the cause that its peer reported"; }
    note "$when, $rails rails: both sides gave up rail 1"
}
for rails in 2 4; do
    flap first $rails
done
flap met 4 # the second rail was not used yet
exit 0
