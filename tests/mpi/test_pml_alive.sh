#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Rank 0 only waits for rank 1, and sends nothing to it. Rank 1 is killed under mpirun --enable-recovery: the keepalive
# finds the dead process, and every call ends with MPI_ERR_OTHER; without a keepalive the job hangs, which shows that
# nothing else finds it. When rank 1 is only stopped for 4 s, its rails answer, nothing is lost and no rail is given up.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_verbose 1)

# begin NAME HOW MPIRUN-ARGUMENTS...: returns when rank 1 has left MPI. Sets job, pid (of rank 1), go.
begin() {
    local name=$1 how=$2
    shift 2
    go=$TEST_TMP/$name.go
    begin_stream "-n 2 --retry-time=100ms" 2 "$@" "$BFO_BUILDDIR/tests/mpi/mpi_alive" "$how" "$go"
    await "$LOG" '^ready ' || { tail -n 40 "$LOG"; fail "$name: rank 1 did not get ready"; }
    pid=$(sed -n 's/^ready //p' "$LOG")
    sleep 0.5 # for acknowledgements and completions
}

# ended NAME STATUS
ended() {
    local status
    wait $job
    status=$?
    [ $status = "$2" ] || { tail -n 40 "$LOG"; fail "$1: ended with status $status, not $2"; }
}

# keepalives: their number on all rails of ranks 0 and 1
keepalives() { grep -o 'keepalives [0-9]*' "$LOG" | awk '{ n += $2 } END { print n + 0 }'; }

# async_mpi_finalize leaves out the runtime's fence at the end, which may wait for the dead process: see test_pml_lost.sh
begin dies kill --enable-recovery --mca async_mpi_finalize 1 --mca btl_openib_keepalive 1
sleep 2.5 # a round of the keepalive that finds changed counts, and a round that does not
touch "$go"
from=$SECONDS
await "$LOG" PASSED
grep -q 'PASSED [1-9][0-9]* checks on rank 0' "$LOG" || { tail -n 40 "$LOG"; fail "dies: rank 0 did not pass"; }
grep -q 'The PML bfo cannot reach a process any more' "$LOG" || { tail -n 40 "$LOG"; fail "dies: no warning"; }
note "killed: rank 0 knows within $((SECONDS - from)) s"
ended dies 0

begin hangs kill --enable-recovery --mca btl_openib_keepalive 0
touch "$go"
sleep 5 # several rounds of a keepalive
kill $job 2>/dev/null || { tail -n 40 "$LOG"; fail "hangs: the job ended by itself"; }
wait $job
! grep -q 'PASSED' "$LOG" || { tail -n 40 "$LOG"; fail "hangs: something else than the keepalive found the dead process"; }

begin stops stop --mca btl_openib_keepalive 1
kill -STOP "$pid"
sleep 4
touch "$go"
kill -CONT "$pid"
ended stops 0
[ "$(grep -c 'PASSED [1-9]' "$LOG")" = 2 ] || { tail -n 40 "$LOG"; fail "stops: not both ranks passed"; }
! grep -q 'A rail was lost\|cannot reach' "$LOG" || { tail -n 40 "$LOG"; fail "stops: a rail was given up"; }
[ "$(keepalives)" -ge 4 ] || { tail -n 40 "$LOG"; fail "stops: only $(keepalives) keepalives"; }
note "stopped for 4 s: $(keepalives) keepalives, nothing lost"
exit 0
