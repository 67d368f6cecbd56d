#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# sanitized.sh DIR: builds both components, the software rails and the programs with AddressSanitizer and
# UndefinedBehaviorSanitizer in DIR, and runs MPI programs and jobs that lose rails on them. softrail loads the run-time library first.
# A finding ends a rank. Two checks are off. A call that copies zero bytes from or to NULL is harmless: the next version of C allows it. The
# check of the value of a bool makes gcc 12 read a volatile bool only once for a whole loop; then WAIT_SYNC_RELEASE, inlined from Open MPI's
# header, never sees that another thread has finished.
build=${1:?usage: sanitized.sh DIR}
mkdir -p "$build" && build=$(cd "$build" && pwd) || exit 1
(cd "$build" && { [ -f Makefile ] || "$BFO_SRCDIR/configure" -q --enable-sanitizers --enable-assertions CFLAGS='-g -O1 -fno-sanitize=nonnull-attribute,bool'; } &&
    for part in include softrail pml_bfo btl_openib_failover contrib; do make -s -j2 -C $part || exit 1; done &&
    make -s -j2 -C tests/mpi check TESTS=) >"$build/build.log" 2>&1 ||
    { tail -n 20 "$build/build.log"; echo "the sanitized build failed, see $build/build.log"; exit 1; }
unset LD_PRELOAD # check_long.sh preloads a library of another build, and the run-time library must come first
. "$build/tests/env.sh"
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
has_asan || fail "the software rails of $build have no AddressSanitizer"
for part in pml_bfo/.libs/mca_pml_bfo btl_openib_failover/.libs/mca_btl_openib; do
    grep -q __asan_init "$build/$part.so" && grep -q __ubsan "$build/$part.so" || fail "$part.so is not sanitized"
done
use_components pml btl
export UBSAN_OPTIONS=print_stacktrace=1
BFO=(--mca pml bfo --mca btl openib,self)
PML_PREFIX=("$SOFTRAIL" run -n 2 --)
for program in mpi_sizes mpi_match mpi_modes mpi_types mpi_comms mpi_life mpi_threads; do
    run_program $program 2 "${BFO[@]}"
done
run_program mpi_onesided 4 "${BFO[@]}" --mca osc pt2pt
for fault in lose unacked; do
    fault_stream "$fault rail=sr1 op=send nth=60" 200000
    fault_stream "$fault rail=sr1 op=send nth=60" 200000 --mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0
    fault_stream "$fault rail=sr1 op=write nth=30" 1000000 --mca pml_bfo_use_get 0
    fault_stream "$fault rail=sr1 op=read nth=20" 1000000
done
cut_stream "1 0" 3 3 100000
exit 0
