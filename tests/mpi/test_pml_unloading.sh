#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Jobs without the preload of all other tests (stock_stays.c), as users run them: pml bfo over software rails, and ob1 over
# vader for comparison, end without an error although Open MPI unloads its components. With any PML, Open MPI's own threads then crash about
# one job in some hundred, after all its work: such a job runs again, at most two of UNLOADING_JOBS (8). A crash in our code, or before the
# program has passed, is never excused.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
use_components pml btl
export LD_PRELOAD=${LD_PRELOAD/"$BFO_BUILDDIR/tests/.libs/stock_stays.so"/}
jobs=${UNLOADING_JOBS:-8} crashed=0

# ends PROGRAM MPIRUN-ARGUMENTS...: the job ends without an error, or crashes after its work for the first or second time.
ends() {
    local program=$1 status
    timeout -k 5 "$MPI_TIMEOUT" ${PML_PREFIX[@]+"${PML_PREFIX[@]}"} "$MPIRUN" --oversubscribe --bind-to none -np 2 "${@:2}" "$PML_DIR/$program" >"$LOG" 2>&1 </dev/null
    status=$?
    grep -q '^PASSED [1-9]' "$LOG" || { tail -n 30 "$LOG"; fail "$program, ${*:2}: status $status, and it did not pass"; }
    [ $status != 0 ] || return 0
    tail -n 30 "$LOG"
    [ $status != 124 ] && [ $status != 137 ] || fail "$program, ${*:2}: hangs after its work"
    ! grep -qE 'mca_pml_bfo|mca_btl_openib' <(grep '^\[.*\] \[ *[0-9]*\] ' "$LOG") || fail "$program, ${*:2}: crashes in our code"
    crashed=$((crashed + 1))
    [ $crashed -le 2 ] || fail "$crashed jobs crashed after their work"
    retry "status $status after its work, ${*:2}"
    ends "$@"
}

for ((i = 0; i < jobs; i++)); do
    program=mpi_comms
    [ $((i % 2)) = 0 ] || program=mpi_match
    PML_PREFIX=("$SOFTRAIL" run -n 2 --)
    ends $program --mca pml bfo --mca btl openib,self --mca osc '^ucx,rdma'
    [ $((i % 4)) = 0 ] || continue
    PML_PREFIX=()
    ends $program --mca pml ob1 --mca btl "$SHARED_MEMORY,self" --mca osc '^ucx,rdma'
done
note "$jobs jobs of pml bfo without the preload, $crashed crashed after their work"
exit 0
