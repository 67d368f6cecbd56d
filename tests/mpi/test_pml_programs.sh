#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The MPI programs under faults: types, communicators, matching, modes, sizes and the life of objects, while rails are
# lost at the n-th fragment. Each program must pass, each fault must hit, and each run must lose a rail.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml btl
REPORT=$TEST_TMP/report

# under RULE PROGRAM RANKS MPIRUN-ARGUMENTS...: the program passes although the rule takes a rail.
under() {
    local rule=$1 program=$2 done
    shift 2
    echo "$rule" >"$TEST_TMP/plan"
    rm -f "$REPORT"
    PML_PREFIX=("$SOFTRAIL" run -n 3 --plan "$TEST_TMP/plan" --retry-time=100ms --report "$REPORT" --)
    run_program "$program" "$@" --mca pml bfo --mca btl openib,self --mca osc '^ucx,rdma'
    done=$(sed -n 's/.*"done": *\([0-9]*\).*/\1/p' "$REPORT" | head -n 1)
    [ "${done:-0}" -ge 1 ] || { cat "$REPORT"; fail "$program: the fault hit nothing: $rule"; }
    grep -q '^A rail was lost:' "$TEST_TMP/$program.log" || { tail -n 30 "$TEST_TMP/$program.log"; fail "$program: no rail was lost: $rule"; }
    note "$program: $rule"
}

# Eager messages that a receive waits for.
for program in mpi_types mpi_comms mpi_match mpi_modes mpi_sizes; do
    under "lose rail=sr1 op=send payload=0:41 nth=4" $program 2
    under "unacked rail=sr1 op=send payload=0:41 nth=45" $program 2
done
# mpi_life sends few messages, and may end before the retry time does: the error comes at once, for the first message on a rail.
for rail in sr1 sr2; do
    under "error status=retry rail=$rail op=send payload=0:41 nth=1" mpi_life 2
done
for program in mpi_comms mpi_match mpi_modes; do
    under 'lose rail=sr1 op=send payload=0:41 nth=8 breaks=both' $program 4
done
exit 0
