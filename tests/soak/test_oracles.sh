#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The programs that verify messages notice a wrong byte: softrail inverts one byte of a payload, which nothing below MPI
# notices, and each program has to end with an error and say why. Without the fault each program passes.
. "$BFO_SRCDIR/tests/lib.sh"
use_components pml btl
LOG=$TEST_TMP/log
REPORT=$TEST_TMP/report

# job RULE RANKS PROGRAM...: over one path for all bytes, eager messages and copies.
job() {
    local rule=$1 n=$2
    shift 2
    echo "$rule" >"$TEST_TMP/plan"
    rm -f "$REPORT"
    timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n 2 --plan "$TEST_TMP/plan" --report "$REPORT" -- "$MPIRUN" --oversubscribe --bind-to none \
        -np "$n" --mca pml bfo --mca btl openib,self --mca osc '^ucx,rdma' --mca btl_openib_use_eager_rdma 0 --mca pml_bfo_use_put 0 \
        --mca pml_bfo_use_get 0 "$@" >"$LOG" 2>&1 </dev/null
}

# notices NAME TEXT RULE RANKS PROGRAM...: the program says TEXT and fails because of the rule; without it the program passes.
notices() {
    local name=$1 text=$2 rule=$3 status
    shift 3
    job "$rule nth=1000000000" "$@" || { tail -n 20 "$LOG"; fail "$name fails without a fault"; }
    grep -qE "$text" "$LOG" && { tail -n 20 "$LOG"; fail "$name says '$text' without a fault"; }
    job "$rule nth=3-6" "$@"
    status=$?
    grep -q '"done": [1-9]' "$REPORT" || { cat "$REPORT"; fail "$name: no byte was inverted"; }
    [ $status != 0 ] && [ $status != 124 ] && [ $status != 137 ] || { tail -n 20 "$LOG"; fail "$name: status $status with wrong bytes"; }
    grep -qE "$text" "$LOG" || { tail -n 20 "$LOG"; fail "$name does not say that bytes were wrong"; }
    note "$name: $(grep -E -m 1 "$text" "$LOG")"
}
# A byte of the payload: of an eager message of the program (a tag of 0 or more; shorter ones would lose a byte of their header), or
# of a copied fragment (type 6).
EAGER='corrupt at=600 op=send payload=8:010000000000000000000000/ff00000000000000fcffffff'
COPY='corrupt at=200 op=send payload=8:06'
T=$BFO_BUILDDIR/tests
# The make that runs this test hands on which logs it wants.
for folder in sim/matrix vm mpi; do
    MAKEFLAGS= make -s -C "$T/$folder" check TESTS= >"$LOG" 2>&1 || { tail -n 20 "$LOG"; fail "$folder does not build"; }
done
notices 'traffic, eager' '^WRONG' "$EAGER" 2 "$T/sim/matrix/traffic" --bytes=1000-1500
notices 'traffic, copies' '^WRONG' "$COPY" 2 "$T/sim/matrix/traffic" --bytes=70000-80000
notices 'bfo_stream' '[1-9][0-9]* wrong' "$COPY" 2 "$BFO_BUILDDIR/contrib/bfo_stream" -s 1 -m 200000
notices 'vm_ring' 'WRONG DATA' "$EAGER" 2 "$T/vm/vm_ring" 50 1000
notices 'mpi_sizes' 'byte [0-9]+ of [0-9]+ is 0x| is false' "$COPY" 2 "$T/mpi/mpi_sizes"
notices 'mpi_types' 'byte [0-9]+ of [0-9]+ is 0x| is false' "$COPY" 2 "$T/mpi/mpi_types"
notices 'soak' '^WRONG' "$COPY" 2 "$T/soak/soak" 7 40
exit 0
