#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The fields of every kind of request; pml_dump shows which requests are stuck, and why; nothing in the PML ends the job.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml btl
LOG=$TEST_TMP/mpi_look.log

# dumped TEXT: a line of the dump of rank 0 matches TEXT
dumped() {
    sed -n '/^dump begins/,/^dump ends/p' "$LOG" | grep -qE -- "$1" || { cat "$LOG"; fail "the dump does not say: $1"; }
}

look() {
    run_program mpi_look 2 --mca pml bfo "$@" --mca pml_bfo_warn_no_failover 0
    dumped 'recv req 0x[0-9a-f]+\.[0-9a-f]+ from 1 tag 11: unmatched, buffer of 4321 bytes, waits for a message'
    dumped 'recv req .* from any tag 14: unmatched, buffer of 8765 bytes, waits for a message'
    dumped 'send req .* to 1 tag 12 seq [0-9]+: rts epoch 0, rndv, .* of 777 bytes .* waits for the receiver to match it'
    dumped 'send req .* to 1 tag 13 seq [0-9]+: rts epoch 0, r(get|ndv), .* of 3000000 bytes .* waits for the receiver'
    dumped 'message from 1 tag 20 seq [0-9]+ waits for a receive: match, 500 bytes'
    dumped 'message from 1 tag 21 seq [0-9]+ waits for a receive: r(get|ndv), 200000 bytes'
    dumped 'rank 1 is .*: next to send [0-9]+, next expected [0-9]+, 2 waiting, 0 early, rails up 0x[13]$'
    dumped '0 pieces of work wait for resources, 0 messages for their communicator'
}
look --mca btl "$SHARED_MEMORY,self"
dumped "rail 0 \\($SHARED_MEMORY\\) generation 0 up"
look --mca btl tcp,self
PML_PREFIX=("$SOFTRAIL" run -n 2 --)
look --mca btl openib,self
dumped 'rail 1 \(openib\) generation 0 up'

# The PML never ends the process (DESIGN.txt section 14.6), and the module that Open MPI calls names each of its fields.
cd "$BFO_SRCDIR/pml_bfo" || fail "no sources"
if grep -nE '\b(abort|_?exit|_Exit|raise|assert|ompi_mpi_abort|MPI_Abort|ompi_rte_abort|orte_errmgr[a-z_.]*)[[:space:]]*\(' ./*/*.[ch] |
    grep -v '_Static_assert'; then
    fail "the PML can end the process (above)"
fi
grep -A30 '^mca_pml_base_module_t bfo_module' door/pml_bfo_module.c | sed '1d;/^};/,$d' | grep -vE '^( *\.pml_|#(if|endif))' &&
    fail "a field of the module is not named"
exit 0
