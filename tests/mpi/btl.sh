# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Helpers of the BTL's scripts. Source after lib.sh.

STREAM=$BFO_BUILDDIR/contrib/bfo_stream
REPORT=$TEST_TMP/report.json
BTL_ARGS=(--mca pml "${BTL_PML:-ob1}" --mca btl openib,self)

# on_rails "softrail options" RANKS mpirun-arguments...: output in $TEST_TMP/log, counters in $REPORT.
on_rails() {
    local options=$1 n=$2
    shift 2
    # shellcheck disable=SC2086
    timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run $options --report="$REPORT" -- \
        "$MPIRUN" --oversubscribe --bind-to none -np "$n" "${BTL_ARGS[@]}" "$@" >"$TEST_TMP/log" 2>&1 </dev/null
}

show_log() { tail -n 30 "$TEST_TMP/log"; }

# Every one of the first N rails moved at least that many bytes: nothing else carried them.
rails_carried() {
    local least=$1 rails=$2 rail bytes
    for ((rail = 0; rail < rails; ++rail)); do
        bytes=$(rail_counter "$REPORT" $rail tx_bytes)
        [ "${bytes:-0}" -ge "$least" ] || { show_log; fail "rail $rail moved ${bytes:-no} bytes, expected $least"; }
    done
}

# run_stream RAILS "more softrail options" RANKS SECONDS mpirun-arguments...: the verified stream.
run_stream() {
    local rails=$1 options="-n $1 $2" n=$3 seconds=$4
    shift 4
    on_rails "$options" "$n" "$@" "$STREAM" -s "$seconds" || { show_log; fail "the stream on $n ranks ended with an error: $options $*"; }
    grep -qE 'messages.* 0 wrong' "$TEST_TMP/log" || { show_log; fail "the stream on $n ranks did not verify: $options $*"; }
    rails_carried 1000000 "$rails"
    note "$n ranks, $options $*: $(tail -n 1 "$TEST_TMP/log")"
}

# cut_stream "RAILS TO CUT" RAILS RANKS MAX mpirun-arguments...: under pml bfo a verified stream outlives rails that are
# cut while it runs.
cut_stream() {
    local cut=$1 rails=$2 n=$3 max=$4 fabric=bfo-btl-$$ log=$TEST_TMP/log rail job
    shift 4
    : >"$log"
    timeout -k 5 60 "$SOFTRAIL" run -n "$rails" --name "$fabric" --retry-time=200ms --report "$REPORT" -- "$MPIRUN" \
        --oversubscribe --bind-to none -np "$n" --mca pml bfo --mca btl openib,self "$@" "$STREAM" -s 3 -m "$max" \
        >"$log" 2>&1 </dev/null &
    job=$!
    await "$log" 'messages verified' # the stream runs when it reports its first second
    for rail in $cut; do
        "$SOFTRAIL" down --fabric "$fabric" "$rail" || { show_log; fail "rail $rail could not be cut"; }
        sleep 0.1
    done
    wait $job || { show_log; fail "$n ranks did not survive the cut of rail $cut: $max $*"; }
    for rail in $cut; do
        grep -q "^A rail was lost: .* rail $rail from sr$rail:1 " "$log" || { show_log; fail "rail $rail was not lost: cut too late"; }
    done
    grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$log" || { show_log; fail "the stream did not verify"; }
    rails_carried 100000 "$rails"
    note "rail $cut of $rails cut, $n ranks, to $max bytes $*: $(tail -n 1 "$log")"
}

# fault_stream RULE MAX mpirun-arguments...: under pml bfo on two rails a verified stream outlives one fault of softrail.
fault_stream() {
    local rule=$1 max=$2
    shift 2
    echo "$rule" >"$TEST_TMP/plan"
    BTL_ARGS=(--mca pml bfo --mca btl openib,self)
    on_rails "-n 2 --plan $TEST_TMP/plan --retry-time=100ms" 2 "$@" "$STREAM" -s 1 -m "$max" || { show_log; fail "$rule, to $max bytes, $*"; }
    grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$TEST_TMP/log" || { show_log; fail "$rule: the stream did not verify"; }
    grep -q '^A rail was lost:' "$TEST_TMP/log" || { show_log; fail "$rule: no rail was lost, so nothing was tested"; }
    note "$rule, to $max bytes $*: $(grep ' 0 wrong$' "$TEST_TMP/log" | tail -n 1)"
}

# counted "PATTERN": a counter line of the BTL (btl_openib_verbose 1) has it, in some rank on some rail.
counted() { grep -qE "bfo: sr[0-9]+:1: .*$1" "$TEST_TMP/log" || { show_log; fail "no rank counted '$1'"; }; }

# The receives that each queue pair has (btl_openib_verbose 2), each number once: 0 is that of a shared queue.
receives() { grep -aoE 'queue pair 0x[0-9a-f]+: .*receives [0-9]+' "$TEST_TMP/log" | grep -oE '[0-9]+$' | sort -un | tr '\n' ' '; }
