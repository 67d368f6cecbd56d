#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Instructions per message, MPI library, PML and everything below, counted by callgrind: bfo must not need more than
# ob1, whether the message is eager or a rendezvous (over self 1,024 bytes are one). Time is a coin toss on a busy
# machine; this is not.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/lib.sh"
need valgrind valgrind
use_components pml
MPI_TIMEOUT=120

# count PML BYTES LATE: the difference of two lengths of the loop, so that its first rounds do not count
count() {
    local n total=() file=$TEST_TMP/cg
    for n in 200 1200; do
        rm -f "$file"*
        mpi 1 --mca pml "$1" --mca btl self valgrind --tool=callgrind --toggle-collect=perf_ping_loop \
            --callgrind-out-file="$file" "$BFO_BUILDDIR/tests/perf/perf_ping" $n "$2" "$3" >"$TEST_TMP/log" 2>&1 </dev/null ||
            { tail -n 20 "$TEST_TMP/log"; fail "callgrind under $1"; }
        total+=("$(sed -n 's/^\(totals\|summary\): //p' "$file" | tail -n 1)")
    done
    echo $(((total[1] - total[0]) / 1000))
}
bad=0
printf '%8s %-10s %8s %8s %8s\n' bytes receive ob1 bfo ratio
for late in 0 1; do
    for bytes in 8 512 1024; do
        ob1=$(count ob1 $bytes $late) || exit 1
        bfo=$(count bfo $bytes $late) || exit 1
        [ "$ob1" -gt 100 ] && [ "$bfo" -gt 100 ] || fail "counted nothing"
        what=posted
        [ $late = 1 ] && what=unexpected
        printf '%8d %-10s %8d %8d %8s\n' $bytes $what "$ob1" "$bfo" "$(awk -v a="$ob1" -v b="$bfo" 'BEGIN { printf "%.2f", b / a }')"
        [ "$bfo" -le "$ob1" ] || bad=1
    done
done
[ $bad = 0 ] || fail "bfo needs more instructions than ob1 for a message"
exit 0
