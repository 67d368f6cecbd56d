#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# ulfm_list.sh: processes die, and a rail is cut before, while and after they die: 4 and 16 ranks; one, two and a quarter of them die; each
# BFO_ULFM_RUNS (10) times over two software rails, rail 0 and rail 1 in turns. Every survivor must end with the right results: mpi_ulfm checks them,
# and rank 0 prints the sum of all checks only after all survivors have come so far. A job whose survivors have their results, but that does not end
# within BFO_ULFM_END (60) seconds, hangs in MPI_Finalize. These jobs are counted apart, beside those of the same program over ob1 and shared memory
# without a cut, which runs in turns with them. By hand: "make check-tree RELEASE=ompi5 PART=ulfm" in the folder tests of a build (in_tree.sh).
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
FT=(--with-ft ulfm --mca pml_bfo_warn_no_failover 0)
BTL_ARGS=("${FT[@]}" --mca pml bfo --mca btl openib,self)
runs=${BFO_ULFM_RUNS:-10} patience=${BFO_ULFM_END:-60}
ulfm=$BFO_BUILDDIR/tests/mpi/mpi_ulfm
done_runs=0 wrong=0 hung=0 ob1_runs=0 ob1_wrong=0 ob1_hung=0

has_result() { grep -q '^PASSED [1-9][0-9]* checks' "$LOG"; }

# quick PATTERN: waits until the job says PATTERN, or has ended.
quick() {
    local end=$((SECONDS + MPI_TIMEOUT))
    until grep -q -- "$1" "$LOG"; do
        kill -0 $job 2>/dev/null && [ $SECONDS -lt $end ] || return 1
        sleep 0.005
    done
}

# job_ends: waits for the job, which has $patience seconds from its result on. Prints good, hung or wrong.
ending() {
    local end
    quick '^PASSED [1-9][0-9]* checks'
    end=$((SECONDS + patience))
    while kill -0 $job 2>/dev/null && [ $SECONDS -lt $end ]; do sleep 0.05; done
    if kill -0 $job 2>/dev/null; then
        kill $job # mpirun's parent, which passes the signal on
        if has_result; then verdict=hung; else verdict=wrong; fi
    elif has_result; then
        verdict=good
    else
        verdict=wrong
    fi
    wait $job 2>/dev/null
}

# cut RAIL: the rail goes down.
cut() { "$SOFTRAIL" down --fabric "$FABRIC" "$1" && is_cut=1 || give_up "rail $1 cannot be cut"; }

# one MOMENT RANKS DYING RAIL
one() {
    local job verdict is_cut=0
    rm -f "$TEST_TMP/go" "$TEST_TMP/after"
    begin_stream "-n 2 --retry-time=300ms" "$2" "$ulfm" "$3" "$TEST_TMP/go" "$TEST_TMP/after"
    quick 'mpi_ulfm: exchanging' && [ "$1" = before ] && cut "$4"
    : >"$TEST_TMP/go"
    quick 'mpi_ulfm: dying' && [ "$1" = while ] && cut "$4"
    quick 'mpi_ulfm: survivors are exchanging' && [ "$1" = after ] && cut "$4"
    : >"$TEST_TMP/after"
    ending
    [ $is_cut = 1 ] || verdict=wrong
    done_runs=$((done_runs + 1))
    case $verdict in
    hung) hung=$((hung + 1)) ;;
    wrong)
        wrong=$((wrong + 1))
        show_log
        echo "WRONG: $2 ranks, $3 die, rail $4 cut $1$([ $is_cut = 1 ] || echo ', but the moment was missed')"
        ;;
    esac
}

# ob1 RANKS DYING: the same program, without rails.
ob1() {
    local job verdict
    : >"$LOG"
    : >"$TEST_TMP/go"
    : >"$TEST_TMP/after"
    timeout -k 5 "$MPI_TIMEOUT" "$MPIRUN" --oversubscribe --bind-to none -np "$1" "${FT[@]}" --mca pml ob1 --mca btl sm,self "$ulfm" "$2" "$TEST_TMP/go" \
        "$TEST_TMP/after" >"$LOG" 2>&1 </dev/null &
    job=$!
    ending
    ob1_runs=$((ob1_runs + 1))
    case $verdict in
    hung) ob1_hung=$((ob1_hung + 1)) ;;
    wrong) ob1_wrong=$((ob1_wrong + 1)) ;;
    esac
}

for job_size in 4:1 4:2 16:1 16:2 16:4; do
    ranks=${job_size%:*} dying=${job_size#*:}
    for moment in before while after; do
        for ((i = 0; i < runs; ++i)); do
            one $moment "$ranks" "$dying" $((i % 2))
            ob1 "$ranks" "$dying"
        done
        note "$ranks ranks, $dying die, a rail is cut $moment: so far $done_runs runs, $wrong wrong, $hung hang in MPI_Finalize; ob1 $ob1_runs, $ob1_wrong, $ob1_hung"
    done
done
echo "runs: $done_runs, not as expected: $wrong"
echo "with all results, but hanging in MPI_Finalize: $hung; over ob1 without a cut: $ob1_hung of $ob1_runs, and $ob1_wrong without results"
[ $wrong = 0 ]
