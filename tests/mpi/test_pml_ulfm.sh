#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Processes die, and the others go on (ULFM, Open MPI 5.0): revoke, shrink, agree, failure_ack and get_acked, and each error class, over
# shared memory, tcp and software rails. BFO_ULFM: which of "sm tcp rails" (all).
# Open MPI 5.0.7 itself may hang in the fence of MPI_Finalize once a process has died, with ob1 as well: it goes without that fence here.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml btl
FT=(--with-ft ulfm --mca pml bfo --mca async_mpi_finalize 1 --mca pml_bfo_warn_no_failover 0)
BTL_ARGS=("${FT[@]}" --mca btl openib,self)
log=$TEST_TMP/log
ulfm=$BFO_BUILDDIR/tests/mpi/mpi_ulfm

give_up() { tail -n 40 "$log"; fail "$1"; }

# ends WHAT: the survivors of the job have checked something. mpirun itself ends with an error if a process was killed.
ends() {
    grep -q '^PASSED [1-9][0-9]* checks' "$log" || give_up "$1: no result"
    note "$1: $(grep '^PASSED' "$log")"
}

# by_btl BTL RANKS DYING
by_btl() {
    timeout -k 5 "$MPI_TIMEOUT" "$MPIRUN" --oversubscribe --bind-to none -np "$2" "${FT[@]}" --mca btl "$1,self" "$ulfm" "$3" >"$log" 2>&1 </dev/null
    ends "$1, $2 ranks, $3 die"
}

for what in ${BFO_ULFM:-sm tcp}; do
    case $what in
    sm | tcp)
        by_btl $what 4 0
        by_btl $what 4 1
        by_btl $what 8 2
        ;;
    esac
done
exit 0
