#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# failover_cost.sh PLAIN: what failover costs while nothing fails, in instructions per eager message, sent and received: this
# build against PLAIN, a build directory configured with --disable-pml-failover. Counted by callgrind, so load does not matter.
# over self: everything from MPI down, the same in every run; bound: 20.
# over openib: the PML alone, on software rails; messages that come before or behind their receives take different paths, and
# how many do varies by some 50 instructions from run to run: shown, not judged.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/lib.sh"
plain=${1:?usage: failover_cost.sh BUILD-DIRECTORY-WITHOUT-FAILOVER}
need valgrind valgrind
[ -f "$plain/pml_bfo/.libs/mca_pml_bfo.so" ] || fail "$plain has no PML"
grep -q '^#define PML_BFO 0' "$plain/include/bfo_config.h" || fail "$plain was not configured with --disable-pml-failover"
MPI_TIMEOUT=200
file=$TEST_TMP/cg
callgrind="valgrind --tool=callgrind --compress-strings=no --compress-pos=no"

# self ROUNDS BYTES: instructions of the loop; openib ROUNDS BYTES: those in the PML
self() {
    # shellcheck disable=SC2086
    mpi 1 --mca pml bfo --mca btl self $callgrind --toggle-collect=perf_ping_loop --callgrind-out-file="$file.0" \
        "$BFO_BUILDDIR/tests/perf/perf_ping" "$1" "$2" 0 >"$TEST_TMP/log" 2>&1 </dev/null || return 1
    sed -n 's/^\(totals\|summary\): //p' "$file.0" | tail -n 1
}
openib() {
    # shellcheck disable=SC2086
    timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n 2 -- "$MPIRUN" --oversubscribe --bind-to none -np 2 --mca pml bfo \
        --mca btl openib,self --mca pml_bfo_warn_no_failover 0 $callgrind --toggle-collect=perf_failover_loop \
        --callgrind-out-file="$file.%q{OMPI_COMM_WORLD_RANK}" "$BFO_BUILDDIR/tests/perf/perf_failover" "$2" 1 "$1" \
        >"$TEST_TMP/log" 2>&1 </dev/null || return 1
    awk '/^ob=/ { ours = /mca_pml_bfo\.so/ } /^calls=/ { getline; next } ours && /^[0-9+*-]/ { n += $2 } END { print n + 0 }' "$file.0"
}
# count BUILD HOW BYTES: per message, from two lengths of the loop
count() {
    local n total=()
    export OMPI_MCA_mca_base_component_path=$1/pml_bfo/.libs:$BFO_BUILDDIR/btl_openib_failover/.libs:$BFO_OMPI_COMPONENTDIR
    for n in 200 1200; do
        rm -f "$file"*
        total+=("$($2 $n "$3")") || { tail -n 20 "$TEST_TMP/log" >&2; exit 1; }
    done
    echo $(((total[1] - total[0]) / 1000))
}
bad=0
printf '%8s %-8s %12s %12s %8s\n' bytes over compiled-in left-out more
for how in self openib; do
    for bytes in 8 512; do
        with=$(count "$BFO_BUILDDIR" $how $bytes) || fail "callgrind, this build"
        without=$(count "$plain" $how $bytes) || fail "callgrind, $plain"
        [ "$with" -gt 50 ] && [ "$without" -gt 50 ] || fail "counted nothing: $with, $without"
        printf '%8d %-8s %12d %12d %8d\n' $bytes $how "$with" "$without" $((with - without))
        [ $how = openib ] || [ $((with - without)) -le 20 ] || bad=1
    done
done
[ $bad = 0 ] || fail "failover costs more than 20 instructions per eager message"
exit 0
