#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Instructions per message of the MPI library, the PML and everything below, counted by callgrind: bfo must not need more than
# ob1, whether the message is eager or a rendezvous (over self a message of 1,024 bytes is a rendezvous). On a busy machine times
# vary, but these counts do not.
# over self: everything from the MPI library down; self delivers a message in two segments. over vader, between two ranks: only the PML's
# own instructions, with one segment, without its function that polls and without everything below, because the number of polls varies.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/lib.sh"
without_assertions
need valgrind valgrind
use_components pml
MPI_TIMEOUT=600
file=$TEST_TMP/cg
callgrind="valgrind --tool=callgrind --compress-strings=no --compress-pos=no"

# run_self PML ROUNDS BYTES LATE: one run of the loop over self, counted into $file.ROUNDS
run_self() {
    # shellcheck disable=SC2086
    mpi 1 --mca pml "$1" --mca btl self $callgrind --toggle-collect=perf_ping_loop --callgrind-out-file="$file.$2" \
        "$BFO_BUILDDIR/tests/perf/perf_ping" "$2" "$3" "$4" >"$TEST_TMP/log.$2" 2>&1 </dev/null
}
total() { sed -n 's/^\(totals\|summary\): //p' "$file.$1" | tail -n 1; }

# over_self PML BYTES LATE: the difference between two lengths of the loop, so that its first rounds do not count. Both run at the same time.
over_self() {
    local other failed=0
    rm -f "$file"*
    run_self "$1" 200 "$2" "$3" &
    other=$!
    run_self "$1" 1200 "$2" "$3" || failed=1
    wait $other && [ $failed = 0 ] || { tail -n 20 "$TEST_TMP"/log.*; fail "callgrind under $1"; }
    echo $((($(total 1200) - $(total 200)) / 1000))
}
# over_vader PML BYTES: a loop of 1,200 messages with its barrier. A message that comes before its receive costs more, and a busy machine makes
# such messages; therefore the result is the least count on which two runs agree.
over_vader() {
    local here least= next= n=1200
    for _ in 1 2 3 4 5 6 7 8; do
        rm -f "$file"*
        # shellcheck disable=SC2086
        mpi 2 --mca pml "$1" --mca btl "$SHARED_MEMORY,self" $callgrind --toggle-collect=perf_failover_loop \
            --callgrind-out-file="$file.%q{OMPI_COMM_WORLD_RANK}" "$BFO_BUILDDIR/tests/perf/perf_failover" "$2" 0 $n \
            >"$TEST_TMP/log" 2>&1 </dev/null || { tail -n 20 "$TEST_TMP/log"; fail "callgrind under $1 over vader"; }
        here=$(awk -v pml="mca_pml_$1[.]so" '/^ob=/ { ours = $0 ~ pml } /^fn=/ { polls = /_progress/ } /^calls=/ { getline; next }
            ours && !polls && /^[0-9+*-]/ { n += $2 } END { print n + 0 }' "$file.0")
        if [ -z "$least" ] || [ "$here" -lt "$least" ]; then
            next=$least least=$here
        elif [ -z "$next" ] || [ "$here" -lt "$next" ]; then
            next=$here
        fi
        [ -z "$next" ] || [ $((200 * (next - least))) -gt "$least" ] || break
    done
    echo $((least / n))
}

bad=0
# row BYTES RECEIVE OVER OB1 BFO
row() {
    [ "$4" -gt 100 ] && [ "$5" -gt 100 ] || fail "counted nothing"
    printf '%8d %-10s %-6s %8d %8d %8s\n' "$@" "$(awk -v a="$4" -v b="$5" 'BEGIN { printf "%.2f", b / a }')"
    [ "$5" -le "$4" ] || bad=1
}
printf '%8s %-10s %-6s %8s %8s %8s\n' bytes receive over ob1 bfo ratio
for late in 0 1; do
    for bytes in 8 512 1024; do
        ob1=$(over_self ob1 $bytes $late) || exit 1
        bfo=$(over_self bfo $bytes $late) || exit 1
        what=posted
        [ $late = 1 ] && what=unexpected
        row $bytes $what self "$ob1" "$bfo"
    done
done
for bytes in 8 512; do
    ob1=$(over_vader ob1 $bytes) || exit 1
    bfo=$(over_vader bfo $bytes) || exit 1
    row $bytes posted vader "$ob1" "$bfo"
done
[ $bad = 0 ] || fail "bfo needs more instructions than ob1 for a message"
exit 0
