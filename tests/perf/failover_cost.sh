#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# failover_cost.sh PLAIN: what failover costs while nothing fails, in instructions of the PML itself per eager message, sent
# and received: this build against PLAIN, a build directory configured with --disable-pml-failover. Over our openib BTL
# on software rails, so that the process check is in it; bound: 20. Counted by callgrind, so load does not matter.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/lib.sh"
plain=${1:?usage: failover_cost.sh BUILD-DIRECTORY-WITHOUT-FAILOVER}
need valgrind valgrind
[ -f "$plain/pml_bfo/.libs/mca_pml_bfo.so" ] || fail "$plain has no PML"
grep -q '^#define PML_BFO 0' "$plain/include/bfo_config.h" || fail "$plain was not configured with --disable-pml-failover"
MPI_TIMEOUT=200

# count PML-DIRECTORY BYTES: instructions in mca_pml_bfo.so per message there and back, from two lengths of the loop
count() {
    local n total=() file=$TEST_TMP/cg
    export OMPI_MCA_mca_base_component_path=$1/pml_bfo/.libs:$BFO_BUILDDIR/btl_openib_failover/.libs:$BFO_OMPI_COMPONENTDIR
    for n in 200 1200; do
        rm -f "$file"*
        timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n 2 -- "$MPIRUN" --oversubscribe --bind-to none -np 2 --mca pml bfo \
            --mca btl openib,self --mca pml_bfo_warn_no_failover 0 valgrind --tool=callgrind --toggle-collect=perf_failover_loop \
            --callgrind-out-file="$file.%q{OMPI_COMM_WORLD_RANK}" "$BFO_BUILDDIR/tests/perf/perf_failover" "$2" 1 $n \
            >"$TEST_TMP/log" 2>&1 </dev/null || { tail -n 20 "$TEST_TMP/log" >&2; exit 1; }
        total+=("$(callgrind_annotate --auto=no --show-percs=no --threshold=100 "$file.0" 2>/dev/null | awk '/mca_pml_bfo\.so/ { gsub(/,/, "", $1); n += $1 } END { print n + 0 }')")
    done
    echo $(((total[1] - total[0]) / 1000))
}
bad=0
printf '%8s %12s %12s %8s\n' bytes compiled-in left-out more
for bytes in 8 512; do
    with=$(count "$BFO_BUILDDIR" $bytes) || fail "callgrind, this build"
    without=$(count "$plain" $bytes) || fail "callgrind, $plain"
    [ "$with" -gt 50 ] && [ "$without" -gt 50 ] || fail "counted nothing: $with, $without"
    printf '%8d %12d %12d %8d\n' $bytes "$with" "$without" $((with - without))
    [ $((with - without)) -le 20 ] || bad=1
done
[ $bad = 0 ] || fail "failover costs more than 20 instructions per eager message"
exit 0
