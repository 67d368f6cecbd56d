#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# thread_sanitized.sh DIR: builds both components and the programs with ThreadSanitizer in DIR, and runs MPI programs and jobs that
# lose rails on them: the application's threads, and the service threads of the BTL. Its findings are printed and fail the test. Open MPI,
# verbs and the software rails (of the calling build) are not instrumented: thread_sanitizer.h tells which events are ordered,
# thread_sanitizer.supp which reports are dropped. Open MPI's memory hooks are off, because they use mutexes in threads that, for
# ThreadSanitizer, have already ended.
build=${1:?usage: thread_sanitized.sh DIR}
[[ $OMPI_VERSION == 4.1.* ]] || { echo "only with Open MPI 4.1, whose headers thread_sanitizer.h knows"; exit 77; }
rails=$BFO_BUILDDIR/softrail
mkdir -p "$build" && build=$(cd "$build" && pwd) || exit 1
(cd "$build" && { [ -f Makefile ] || "$BFO_SRCDIR/configure" -q --enable-assertions CFLAGS="-g -O1 -fsanitize=thread -Wno-tsan -fno-omit-frame-pointer -include $BFO_SRCDIR/tests/mpi/thread_sanitizer.h"; } &&
    for part in include softrail pml_bfo btl_openib_failover contrib; do make -s -j2 -C $part || exit 1; done &&
    make -s -j2 -C tests/mpi check TESTS=) >"$build/build.log" 2>&1 ||
    { tail -n 20 "$build/build.log"; echo "the build with ThreadSanitizer failed, see $build/build.log"; exit 1; }
. "$build/tests/env.sh"
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/pml.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
unset LD_PRELOAD # the programs load ThreadSanitizer's library themselves, and it must come first
for part in pml_bfo/.libs/mca_pml_bfo btl_openib_failover/.libs/mca_btl_openib; do
    grep -q __tsan_init "$build/$part.so" || fail "$part.so is not sanitized"
done
use_components pml btl
SOFTRAIL=$rails/softrail
export TSAN_OPTIONS="log_path=$TEST_TMP/tsan history_size=4 exitcode=0 detect_deadlocks=0 ignore_noninstrumented_modules=1 suppressions=$BFO_SRCDIR/tests/mpi/thread_sanitizer.supp"
export OMPI_MCA_memory=^patcher
BFO=(--mca pml bfo --mca btl openib,self)
PML_PREFIX=("$SOFTRAIL" run -n 2 --)
for program in mpi_sizes mpi_match mpi_modes mpi_types mpi_comms mpi_life mpi_threads; do
    run_program $program 2 "${BFO[@]}"
done
for fault in lose unacked; do
    fault_stream "$fault rail=sr1 op=send nth=60" 200000
    fault_stream "$fault rail=sr1 op=send nth=60" 200000 --mca pml_bfo_use_put 0 --mca pml_bfo_use_get 0
    fault_stream "$fault rail=sr1 op=write nth=30" 1000000 --mca pml_bfo_use_get 0
    fault_stream "$fault rail=sr1 op=read nth=20" 1000000
done
cut_stream "1 0" 3 3 100000
if ls "$TEST_TMP"/tsan.* >/dev/null 2>&1; then
    cat "$TEST_TMP"/tsan.*
    fail "ThreadSanitizer has found something"
fi
exit 0
