#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# failover_cost.sh [-t] PLAIN: what failover costs while nothing fails: compares this build with PLAIN, a build directory
# configured with --disable-pml-failover.
# instructions: per eager message, sent and received. callgrind counts them, therefore load does not matter; bound: 20 more.
#   over self: everything from MPI down. over openib, on software rails: the PML, and its calls of the BTL for failover. The rest of the
#   BTL does not count, because the number of its polls varies. A message that comes before its receive is posted costs more, therefore the
#   least of up to three counts is taken; counts after the first are retries.
# -t: also time, per message of 8 bytes, on a quiet machine; the two builds in turns; bound: 1 % or 5 ns more, within the spread
#   that this build shows against itself (A/A).
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/lib.sh"
without_assertions
times=
[ "${1:-}" != -t ] || { times=yes; shift; }
plain=${1:?usage: failover_cost.sh [-t] BUILD-DIRECTORY-WITHOUT-FAILOVER}
without_assertions "$plain"
need valgrind valgrind
[ -f "$plain/pml_bfo/.libs/mca_pml_bfo.so" ] || fail "$plain has no PML"
grep -q '^#define PML_BFO 0' "$plain/include/bfo_config.h" || fail "$plain was not configured with --disable-pml-failover"
make -s -C "$BFO_BUILDDIR/tests/perf" perf_ping perf_failover >"$TEST_TMP/log" 2>&1 || { cat "$TEST_TMP/log"; fail "its programs do not build"; }
MPI_TIMEOUT=600
file=$TEST_TMP/cg
program=$BFO_BUILDDIR/tests/perf/perf_failover
callgrind="valgrind --tool=callgrind --compress-strings=no --compress-pos=no"
bad=0

# use BUILD: the PML of BUILD, the BTL of this build
use() { export OMPI_MCA_mca_base_component_path=$1/pml_bfo/.libs:$BFO_BUILDDIR/btl_openib_failover/.libs:$BFO_OMPI_COMPONENTDIR; }
rails() {
    timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n 2 -- "$MPIRUN" --oversubscribe -np 2 --mca pml bfo --mca btl openib,self \
        --mca pml_bfo_warn_no_failover 0 "$@"
}

# self ROUNDS BYTES: prints the instructions of the loop; openib ROUNDS BYTES: prints the instructions in the PML
self() {
    # shellcheck disable=SC2086
    mpi 1 --mca pml bfo --mca btl self $callgrind --toggle-collect=perf_ping_loop --callgrind-out-file="$file.0" \
        "$BFO_BUILDDIR/tests/perf/perf_ping" "$1" "$2" 0 >"$TEST_TMP/log" 2>&1 </dev/null || return 1
    sed -n 's/^\(totals\|summary\): //p' "$file.0" | tail -n 1
}
openib() {
    # shellcheck disable=SC2086
    rails --bind-to none $callgrind --toggle-collect=perf_failover_loop --callgrind-out-file="$file.%q{OMPI_COMM_WORLD_RANK}" \
        "$program" "$2" 0 "$1" >"$TEST_TMP/log" 2>&1 </dev/null || return 1
    # A timer of the PML runs a fixed number of times a second, not once per message: functions that only the timer calls do not count.
    awk '/^ob=/ { pml = /mca_pml_bfo\.so/ } /^fn=/ { fn = substr($0, 4); asked = /des_peer/ }
         /^cfn=/ { call[fn, substr($0, 5)] } /^calls=/ { getline; next }
         (pml || asked) && /^[0-9+*-]/ { n[fn] += $2 }
         END {
             timer["timer_rings"]
             do {
                 more = 0
                 for (c in call) { split(c, f, SUBSEP); if (f[1] in timer && !(f[2] in timer)) { timer[f[2]]; more = 1 } }
             } while (more)
             do {
                 more = 0
                 for (c in call) {
                     split(c, f, SUBSEP)
                     if (f[2] in timer && !(f[1] in timer) && f[2] != "timer_rings") { delete timer[f[2]]; more = 1 }
                 }
             } while (more)
             for (name in n) all += name in timer ? 0 : n[name]
             print all + 0
         }' "$file.0"
}
# count BUILD HOW BYTES: per message, from two lengths of the loop
count() {
    local n total=()
    use "$1"
    for n in 200 1200; do
        rm -f "$file"*
        total+=("$($2 $n "$3")") || { tail -n 20 "$TEST_TMP/log" >&2; exit 1; }
    done
    awk -v n=$((total[1] - total[0])) 'BEGIN { printf "%.2f", n / 1000 }'
}
printf '%8s %-8s %12s %12s %8s  instructions\n' bytes over compiled-in left-out more
# least A B: the smaller of two counts; B may be missing
least() { awk -v a="$1" -v b="${2:-$1}" 'BEGIN { print a + 0 < b + 0 ? a : b }'; }
retried=0
for how in self openib; do
    for bytes in ${BYTES:-8 512}; do
        with='' without=''
        for try in 1 2 3; do
            now=$(count "$BFO_BUILDDIR" $how "$bytes") || fail "callgrind, this build"
            with=$(least "$now" "$with")
            now=$(count "$plain" $how "$bytes") || fail "callgrind, $plain"
            without=$(least "$now" "$without")
            awk -v a="$with" -v b="$without" 'BEGIN { exit a - b > 20 }' && break
            [ $try = 3 ] || retried=$((retried + 1))
        done
        awk -v bytes="$bytes" -v how=$how -v a="$with" -v b="$without" 'BEGIN {
            printf "%8d %-8s %12.1f %12.1f %8.1f\n", bytes, how, a, b, a - b
            exit a < 50 || b < 50 || a - b > 20 }' || bad=1
    done
done
[ $retried = 0 ] || note "retried: $retried"
[ $bad = 0 ] || fail "failover costs more than 20 instructions per eager message, or nothing was counted"
[ -n "$times" ] || exit 0

# one BUILD OVER: nanoseconds per message
in_memory() { timeout -k 5 "$MPI_TIMEOUT" "$MPIRUN" --bind-to core -np 2 --mca pml bfo --mca btl "$SHARED_MEMORY,self" "$@"; }
on_rails() { rails --bind-to core "$@"; }
one() {
    use "$1"
    $2 "$program" 8 0 "$3" 25 2>"$TEST_TMP/log" </dev/null | sed -n 's/^ns_per_message //p'
}
printf '\n%8s %-9s %12s %12s %8s %12s  nanoseconds, medians of %d\n' bytes over compiled-in left-out more "A/A spread" "${RUNS:=9}"
while read -r over rounds; do
    : >"$TEST_TMP/times"
    for ((i = 0; i < RUNS; ++i)); do
        a=$(one "$BFO_BUILDDIR" $over "$rounds") b=$(one "$plain" $over "$rounds") c=$(one "$BFO_BUILDDIR" $over "$rounds")
        [ -n "$a" ] && [ -n "$b" ] && [ -n "$c" ] || { cat "$TEST_TMP/log"; fail "$over"; }
        echo "$a $b $c" >>"$TEST_TMP/times"
    done
    # in turns: a comparison within a turn removes the effect of other load on the machine
    awk -v over=$over '
        function median(v, n,    i, j, t) {
            for (i = 2; i <= n; i++)
                for (j = i; j > 1 && v[j - 1] > v[j]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
            return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
        }
        { with[NR] = ($1 + $3) / 2; without[NR] = $2; more[NR] = ($1 + $3) / 2 - $2; off[NR] = $1 < $3 ? $3 - $1 : $1 - $3 }
        END {
            a = median(with, NR); b = median(without, NR); m = median(more, NR); spread = median(off, NR)
            bound = b / 100 > 5 ? b / 100 : 5
            printf "%8d %-9s %12.1f %12.1f %8.1f %12.1f  bound %.1f: %s\n", 8, over, a, b, m, spread, bound,
                (bad = m > bound + spread) ? "BROKEN" : "holds"
            exit bad
        }' "$TEST_TMP/times" || bad=1
done <<END
in_memory 40000
on_rails 20000
END
[ $bad = 0 ] || fail "failover costs more than 1 % or 5 ns per message of 8 bytes"
exit 0
