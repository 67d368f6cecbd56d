#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# pml_bfo_max_rails: fewer rails than there are, and another number of them on the other side. What a receiver asks for by a
# rail that the sender does not use is copied instead; every message arrives.
. "$BFO_SRCDIR/tests/lib.sh"
use_components pml btl
LOG=$TEST_TMP/log

# job MOST0 MOST1: of three rails rank 0 uses so many, rank 1 so many
job() {
    # shellcheck disable=SC2016
    timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n 3 -- "$MPIRUN" --oversubscribe --bind-to none -np 2 --mca pml bfo \
        --mca btl openib,self --mca pml_bfo_counters 1 --mca pml_bfo_verbose 1 sh -c 'most=$1
            [ "$OMPI_COMM_WORLD_RANK" = 0 ] || most=$2
            OMPI_MCA_pml_bfo_max_rails=$most exec "$3"' sh "$1" "$2" "$BFO_BUILDDIR/tests/mpi/mpi_sizes" \
        >"$LOG" 2>&1 </dev/null || { tail -n 30 "$LOG"; fail "$1 rails with $2"; }
    grep -q '^PASSED [1-9][0-9]* checks' "$LOG" || { tail -n 30 "$LOG"; fail "$1 rails with $2: no result"; }
}
says() { grep -Eq -- "$1" "$LOG" || { cat "$LOG"; fail "nobody says: $1"; }; }
says_not() { ! grep -Eq -- "$1" "$LOG" || { cat "$LOG"; fail "somebody says: $1"; }; }

job 2 2
says 'bfo: 0->1 rails 2: sr0:1 sr1:1$'
says 'bfo: 1->0 rails 2: sr0:1 sr1:1$'
says_not 'restarts|not used here'
note "two of three rails, the same on both sides"

job 2 3
says 'bfo: 0<-1 asks for data by a rail that is not used here'
says 'bfo: rank 0 counters: .*restarts [1-9]'
says_not 'rank 1 counters: .*restarts'
note "two rails with three: what was asked for by the third is copied"
exit 0
