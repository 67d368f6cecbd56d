#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The programs that verify messages notice a wrong byte, a lost message, a message that comes twice and a message that another overtook.
# Programs whose receive buffers are those of payload.h also notice a write before or after a buffer, and a late write to a buffer that they
# have back. softrail inverts a byte of a payload, and no layer below MPI notices it. A preloaded wrong_mpi.c makes the other faults, as a
# wrong PML would. Each program must report the fault and end with an error, or not end. Without the fault each program passes.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components pml btl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca osc '^ucx,rdma' --mca btl_openib_use_eager_rdma 0 --mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0)
T=$BFO_BUILDDIR/tests

# job RULE RANKS PROGRAM...: runs PROGRAM with one path for all bytes: eager messages and copies.
job() {
    local rule=$1 n=$2
    shift 2
    echo "$rule" >"$TEST_TMP/plan"
    rm -f "$REPORT"
    on_rails "-n 2 --plan $TEST_TMP/plan" "$n" "$@"
}

# notices NAME TEXT RULE RANKS PROGRAM...: the program prints TEXT and fails because of the rule; without the rule it passes.
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
# The rule inverts a byte of the payload of an eager message of the program (tag 0 to 31; in a shorter message it would be a byte of the
# header), or of a copied fragment (type 6).
EAGER='corrupt at=600 op=send payload=8:010000000000000000000000/ff00000000000000e0ffffff'
COPY='corrupt at=200 op=send payload=0:46'
# Without MAKEFLAGS, because the make that runs this test passes on the list of logs that it wants.
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

# launch WAY PROGRAM...: starts two ranks over shared memory in the background ($job); WAY is the fault of a message (BFO_WRONG).
launch() {
    local way=$1
    shift
    "$MPIRUN" --oversubscribe --bind-to none -np 2 --mca pml bfo --mca btl "$SHARED_MEMORY,self" --mca osc '^ucx,rdma' -x BFO_WRONG="$way" \
        -x LD_PRELOAD="$T/soak/.libs/wrong_mpi.so${LD_PRELOAD:+:$LD_PRELOAD}" "$@" >"$LOG" 2>&1 </dev/null &
    job=$!
}

# ended SECONDS: does the job end within SECONDS ($status)? until_said SECONDS TEXT: does it print TEXT within SECONDS, or before its end?
ended() {
    for _ in $(seq $(($1 * 10))); do
        kill -0 $job 2>/dev/null || { wait $job; status=$?; return; }
        sleep 0.1
    done
    return 1
}
until_said() {
    for _ in $(seq $(($1 * 10))); do
        ! grep -qE "$2" "$LOG" || return 0
        kill -0 $job 2>/dev/null || break
        sleep 0.1
    done
    grep -qE "$2" "$LOG"
}

end_job() {
    kill -TERM $job 2>/dev/null
    ended 20 || { kill -KILL $job; wait $job; }
} 2>/dev/null

# sound NAME TEXT PROGRAM...: without a fault the program passes and does not print TEXT. $took: its time in seconds. vm_traffic runs
# until this function asks it to end.
sound() {
    local name=$1 text=$2 begin=$SECONDS
    shift 2
    launch 'none 1' "$@"
    [ "$name" != vm_traffic ] || { until_said "$MPI_TIMEOUT" '^round' && kill -USR2 $job; }
    ended "$MPI_TIMEOUT" || { end_job; tail -n 20 "$LOG"; fail "$name does not end, although nothing is wrong"; }
    [ $status = 0 ] || { tail -n 20 "$LOG"; fail "$name ends with status $status, although nothing is wrong"; }
    ! grep -qE "$text" "$LOG" || { tail -n 20 "$LOG"; fail "$name says '$text', although nothing is wrong"; }
    took=$((SECONDS - begin))
}

# misled WAY NAME TEXT PROGRAM...: the program prints TEXT and ends with an error; vm_traffic, and a program that waits for a lost message,
# need not end. TEXT "hangs": the program waits without end.
misled() {
    local way=$1 name=$2 text=$3
    shift 3
    launch "$way" "$@"
    until_said "$MPI_TIMEOUT" '^wrong_mpi: message' || { end_job; tail -n 20 "$LOG"; fail "$name: no message is $way"; }
    if [ "$text" = hangs ]; then
        ! ended $((3 * took + 3)) || { tail -n 20 "$LOG"; fail "$name ends, although a message was $way"; }
        end_job
    else
        until_said "$MPI_TIMEOUT" "$text" || { end_job; tail -n 20 "$LOG"; fail "$name does not say that a message was $way"; }
        [[ $way != lost* && $name != vm_traffic ]] || end_job
        ended "$MPI_TIMEOUT" || { end_job; fail "$name does not end, although a message was $way"; }
        [ $status != 0 ] || { tail -n 20 "$LOG"; fail "$name ends without an error, although a message was $way"; }
    fi
    note "$name, $way: $([ "$text" = hangs ] && echo hangs || grep -E -m 1 "$text" "$LOG")"
}

# noticed NAME TEXT WAYS PROGRAM...: tries each of the WAYS, as in "lost 5:doubled 5"; "lost 5=": the program then waits without end.
noticed() {
    local name=$1 text=$2 way took=0
    local -a ways
    IFS=: read -r -a ways <<<"$3"
    shift 3
    sound "$name" "$text" "$@"
    for way in "${ways[@]}"; do
        case $way in
        *=) misled "${way%=}" "$name" hangs "$@" ;;
        *) misled "$way" "$name" "$text" "$@" ;;
        esac
    done
}
# Writes that payload.h must show. The last late writes of traffic and mpi_sizes show only in the recheck that ends the program.
BESIDE='before 2:after 2:late 2'
CHECKED='byte [0-9]+ of [0-9]+ is 0x| is false|MPI says'
WRITTEN='byte -?[0-9]+ of a buffer of [0-9]+ bytes was written'
noticed traffic '^WRONG' "lost 5:doubled 5:doubled 16:swapped 5:$BESIDE:late 10" "$T/sim/matrix/traffic" --bytes=1000-1500
noticed bfo_stream ' is wrong at | bytes, not |[1-9] wrong' 'lost 5:doubled 5:swapped 5' "$BFO_BUILDDIR/contrib/bfo_stream" -s 1 -m 200000
noticed vm_traffic WRONG 'before 2:after 2:flipped 5:lost 5:doubled 5:swapped 5' "$T/vm/vm_traffic" 20000
noticed vm_ring 'WRONG DATA' 'before 2:after 2:lost 5=:doubled 5' "$T/vm/vm_ring" 50 1000
noticed soak '^WRONG' "lost 2:doubled 2:doubled 9:swapped 2:$BESIDE" "$T/soak/soak" 8 40
noticed mpi_sizes "$WRITTEN" "$BESIDE:late 384" "$T/mpi/mpi_sizes"
noticed mpi_match "$CHECKED" 'lost 5=:doubled 30:swapped 1' "$T/mpi/mpi_match"
noticed mpi_types "$CHECKED" 'lost 5:doubled 5:swapped 5' "$T/mpi/mpi_types"
noticed mpi_comms "$CHECKED" 'doubled 2' "$T/mpi/mpi_comms"
noticed mpi_modes "$CHECKED" 'doubled 2' "$T/mpi/mpi_modes"
exit 0
