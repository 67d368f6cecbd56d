# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs our MPI programs. Source after lib.sh. A prefix command (softrail run ... --) goes into PML_PREFIX.
PML_DIR=$BFO_BUILDDIR/tests/mpi
PML_PREFIX=()

# run_program PROGRAM RANKS MPIRUN-ARGUMENTS...: it must end with success and say that it checked something.
run_program() {
    local program=$1 n=$2 log=$TEST_TMP/$1.log
    shift 2
    timeout -k 5 "$MPI_TIMEOUT" ${PML_PREFIX[@]+"${PML_PREFIX[@]}"} \
        "$MPIRUN" --oversubscribe --bind-to none -np "$n" "$@" "$PML_DIR/$program" >"$log" 2>&1 </dev/null ||
        { tail -n 30 "$log"; fail "$program, $n ranks, $*"; }
    grep -q '^PASSED [1-9][0-9]* checks' "$log" || { tail -n 30 "$log"; fail "$program, $n ranks, $*: no result"; }
    note "$program, $n ranks: $(grep '^PASSED' "$log")"
}
