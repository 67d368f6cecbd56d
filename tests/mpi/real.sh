# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs programs of other authors to their end and checks their own verification. Source after lib.sh.
# Each function takes the number of ranks and the mpirun arguments; a prefix command (softrail run ... --) goes into
# the array REAL_PREFIX. They work in $TEST_TMP.

REAL_PREFIX=()
SCALAPACK_TESTS=$(dirname "$(dpkg -L scalapack-mpi-test 2>/dev/null | grep 'openmpi-tests/xdlu$')" 2>/dev/null)

real_mpi() {
    local log=$1 n=$2
    shift 2
    timeout -k 5 "$MPI_TIMEOUT" ${REAL_PREFIX[@]+"${REAL_PREFIX[@]}"} \
        "$MPIRUN" --oversubscribe --bind-to none -np "$n" "$@" >"$log" 2>&1 </dev/null
}

# NetPIPE in integrity mode, 1 B to 4 MiB with perturbed sizes; it takes two ranks.
run_netpipe() {
    need NPopenmpi netpipe-openmpi
    local log=$TEST_TMP/netpipe.log
    (cd "$TEST_TMP" && real_mpi "$log" 2 "$@" NPopenmpi -i -n 3 -u 4194304 -o netpipe.out) ||
        { tail -n 20 "$log"; fail "NetPIPE $* ended with an error"; }
    local passed
    passed=$(grep -c 'Integrity check passed' "$log")
    if [ "$passed" -lt 40 ] || grep -qi 'check failed' "$log"; then
        tail -n 20 "$log"
        fail "NetPIPE $*: $passed sizes passed, 40 were expected"
    fi
    note "NetPIPE $*: integrity of $passed sizes"
}

# HPC Challenge: HPL, PTRANS, RandomAccess, FFT, STREAM, latency and bandwidth, at a size that takes seconds.
run_hpcc() {
    need hpcc hpcc
    local n=$1 p=1 log=$TEST_TMP/hpcc.log out=$TEST_TMP/hpccoutf.txt
    shift
    [ "$n" = 4 ] && p=2
    rm -f "$out"
    sed "s/^2            Ps/$p            Ps/; s/^2            Qs/$((n / p))            Qs/; s/^1000         Ns/300          Ns/" \
        /usr/share/doc/hpcc/examples/_hpccinf.txt >"$TEST_TMP/hpccinf.txt"
    (cd "$TEST_TMP" && real_mpi "$log" "$n" "$@" hpcc) || { tail -n 20 "$log"; fail "hpcc $n $* ended with an error"; }
    grep -q '^Success=1' "$out" || { tail -n 20 "$log" "$out"; fail "hpcc $n $*: no success"; }
    if grep -E 'Errors=[1-9]|[1-9][0-9]* tests completed and failed|\.\.\. FAILED|Found [1-9][0-9]* errors' "$out"; then
        fail "hpcc $n $*: its verification failed (above)"
    fi
    [ "$(grep -c 'PASSED' "$out")" -ge 5 ] || fail "hpcc $n $*: fewer checks than expected"
    note "hpcc $n ranks $*: verified"
}

# The Debian with Open MPI 6.0 does not have ScaLAPACK's test programs.
has_scalapack() { [[ $OMPI_VERSION != 6.* ]]; }

# ScaLAPACK's own tests: LU and QR factorization, level-3 PBLAS residual checks.
run_scalapack() {
    has_scalapack || { note "ScaLAPACK is not tested with Open MPI $OMPI_VERSION"; return 0; }
    [ -x "$SCALAPACK_TESTS/xdlu" ] || skip_missing "ScaLAPACK's test programs" scalapack-mpi-test
    local n=$1 program log
    shift
    for program in xdlu xdqr; do
        local file=LU.dat
        [ $program = xdqr ] && file=QR.dat
        # One grid of n processes.
        awk -v n="$n" '
            /number of process grids/ { print "1 number of process grids"; grids = 1; next }
            /values of P/ && grids { print (n == 2 ? 1 : 2) " values of P"; next }
            /values of Q/ && grids { print 2 " values of Q"; next }
            { print }' "$SCALAPACK_TESTS/$file" >"$TEST_TMP/$file"
        log=$TEST_TMP/$program.log
        (cd "$TEST_TMP" && real_mpi "$log" "$n" "$@" "$SCALAPACK_TESTS/$program") ||
            { tail -n 20 "$log"; fail "ScaLAPACK $program $n $* ended with an error"; }
        grep -q 'END OF TESTS' "$log" || { tail -n 20 "$log"; fail "ScaLAPACK $program $n $*: did not reach its end"; }
        local passed failed
        passed=$(sed -n 's/^ *\([0-9]*\) tests completed and passed residual checks.*/\1/p' "$log")
        failed=$(sed -n 's/^ *\([0-9]*\) tests completed and failed residual checks.*/\1/p' "$log")
        if [ "${passed:-0}" -lt 30 ] || [ "${failed:-1}" != 0 ]; then
            tail -n 20 "$log"
            fail "ScaLAPACK $program $n $*: ${passed:-no} tests passed, ${failed:-?} failed"
        fi
        note "ScaLAPACK $program $n ranks $*: $passed residual checks passed"
    done
}

# All of them, on 2 ranks and on 4.
run_real_programs() {
    local n
    run_netpipe "$@"
    for n in 2 4; do
        run_hpcc $n "$@"
        run_scalapack $n "$@"
    done
}
