#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Processes die, and the others continue (ULFM, Open MPI 5.0 and 6.0): revoke, shrink, agree, failure_ack and get_acked, and each error class, over
# shared memory, tcp and two software rails. One rail is cut, or drops everything from some moment on, ULFM's own messages as well.
# BFO_ULFM: which of "sm tcp rails down silent" (all). BFO_ULFM_RANKS, BFO_ULFM_DYING: size of the large job, and its dying ranks (8, 2).
# Open MPI 5.0.7 itself may hang in the fence of MPI_Finalize after a process has died, with ob1 as well: these jobs leave out that fence.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
FT=(--with-ft ulfm --mca pml bfo --mca async_mpi_finalize 1 --mca pml_bfo_warn_no_failover 0)
BTL_ARGS=("${FT[@]}" --mca btl openib,self)
log=$TEST_TMP/log
ulfm=$BFO_BUILDDIR/tests/mpi/mpi_ulfm
many=${BFO_ULFM_RANKS:-8} dying=${BFO_ULFM_DYING:-2}

# ends WHAT: the survivors of the job have checked something. (mpirun itself ends with an error if a process was killed.)
ends() {
    grep -q '^PASSED [1-9][0-9]* checks' "$log" || give_up "$1: no result"
    note "$1: $(grep '^PASSED' "$log")"
}

# by_btl BTL RANKS DYING
by_btl() {
    timeout -k 5 "$MPI_TIMEOUT" "$MPIRUN" --oversubscribe --bind-to none -np "$2" "${FT[@]}" --mca btl "$1,self" "$ulfm" "$3" >"$log" 2>&1 </dev/null
    ends "$1, $2 ranks, $3 die"
}

# by_rails RANKS DYING
by_rails() {
    on_rails "-n 2" "$1" "$ulfm" "$2"
    ends "two rails, $1 ranks, $2 die"
}

# struck VERB RAIL RANKS DYING: VERB happens to the rail while all ranks exchange messages. mpi_ulfm checks that only ranks that died count as dead.
struck() {
    rm -f "$TEST_TMP/go"
    begin_stream "-n 2 --retry-time=300ms" "$3" "$ulfm" "$4" "$TEST_TMP/go"
    await "$log" 'mpi_ulfm: exchanging' || give_up "rail $2 $1: no exchange"
    "$SOFTRAIL" "$1" --fabric "$FABRIC" "$2" || give_up "rail $2: no $1"
    : >"$TEST_TMP/go"
    wait $job
    ends "two rails, rail $2 $1, $3 ranks, $4 die"
}

for what in ${BFO_ULFM:-sm tcp rails down silent}; do
    case $what in
    sm | tcp)
        by_btl $what 4 0
        by_btl $what 4 1
        by_btl $what "$many" "$dying"
        ;;
    rails) by_rails "$many" "$dying" ;;
    *)
        struck $what 0 4 1
        struck $what 1 4 1
        ;;
    esac
done
exit 0
