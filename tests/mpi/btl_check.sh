#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Our BTL under stock ob1: a rank computes while others connect, threads, first contact of all pairs at once,
# windows, fork, flush.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
use_components btl
PROGRAM=$BFO_BUILDDIR/tests/mpi/btl_check

# check NAME "softrail options" RANKS mpirun-arguments...
check() {
    local name=$1 options=$2 n=$3
    shift 3
    on_rails "$options" "$n" "$@" "$PROGRAM" "$name" "$TEST_TMP/$name" || { show_log; fail "$name on $n ranks ended with an error: $options $*"; }
    grep -q 'all right' "$TEST_TMP/log" || { show_log; fail "$name on $n ranks: $options $*"; }
    rails_carried 100 1
    note "$options $*: $(grep 'all right' "$TEST_TMP/log")"
}

# The peer answers although its program is not inside MPI, even for twice the timeout.
check late "-n 2" 2 --mca btl_openib_connect_timeout 2
check leaves "-n 2" 2
check threads "-n 2" 2
check threads "-n 2" 4 --mca btl_openib_receive_queues P,65792,4
check everybody "-n 2" 2
check everybody "-n 2" 8
case $OMPI_VERSION in
4.*) windows=pt2pt ;;
*) windows=rdma ;; # 5.0 has no osc/pt2pt; osc/rdma calls the BTL itself
esac
check onesided "-n 2" 2 --mca osc $windows
check fork "-n 2" 2

# The program calls puts and gets of the BTL's module itself: btl_flush waits for them.
MLX5_SINGLE_THREADED=1 on_rails "-n 1" 2 -x MLX5_SINGLE_THREADED "$BFO_BUILDDIR/tests/mpi/btl_flush" || { show_log; fail "flush ended with an error"; }
grep -q '^PASSED' "$TEST_TMP/log" || { show_log; fail "flush was not checked"; }
note "flush: $(grep '^PASSED' "$TEST_TMP/log")"

# Spawned processes: their start waits for messages whose sender has left MPI since.
on_rails "-n 2" 2 "$BFO_BUILDDIR/tests/mpi/mpi_spawn" || { show_log; fail "spawn ended with an error"; }
grep -q '^PASSED [1-9]' "$TEST_TMP/log" || { show_log; fail "spawn was not checked"; }
note "spawn: $(tail -n 1 "$TEST_TMP/log")"
