# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Helpers of the BTL's scripts. Source after lib.sh.

STREAM=$BFO_BUILDDIR/contrib/bfo_stream
REPORT=$TEST_TMP/report.json
FABRIC=bfo-${TEST_NAME:-btl}-$$
BTL_ARGS=(--mca pml "${BTL_PML:-ob1}" --mca btl openib,self)

# first VERB PORT...: in the jobs that follow, this happens to the ports before mpirun starts.
FIRST=()
first() {
    # shellcheck disable=SC2016
    FIRST=(bash -c 'for port in $2; do "$0" "$1" "$port" || exit 99; done; exec "${@:3}"' "$SOFTRAIL" "$1" "${*:2}")
}

# on_rails "softrail options" RANKS mpirun-arguments...: output in $LOG, counters in $REPORT.
on_rails() {
    local options=$1 n=$2
    shift 2
    # shellcheck disable=SC2086
    timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run $options --report="$REPORT" -- \
        "${FIRST[@]}" "$MPIRUN" --oversubscribe --bind-to none -np "$n" "${BTL_ARGS[@]}" "$@" >"$LOG" 2>&1 </dev/null
}

show_log() { tail -n 30 "$LOG"; }

# rails_carried BYTES RAILS: each of the first RAILS rails sent at least BYTES bytes; other ways did not carry them.
rails_carried() {
    local least=$1 rails=$2 rail bytes
    for ((rail = 0; rail < rails; ++rail)); do
        bytes=$(rail_counter "$REPORT" $rail tx_bytes)
        [ "${bytes:-0}" -ge "$least" ] || { show_log; fail "rail $rail moved ${bytes:-no} bytes, expected $least"; }
    done
}

# has_said PATTERN [COUNT]: at least COUNT (1) lines of the job match PATTERN.
has_said() { [ "$(grep -cE -- "$1" "$LOG")" -ge "${2:-1}" ]; }

# have_moved BYTES RAILS: each of the first RAILS rails of the running job sent at least BYTES bytes.
have_moved() {
    local rail bytes
    "$SOFTRAIL" status --json --fabric "$FABRIC" >"$TEST_TMP/status" 2>/dev/null || return
    for ((rail = 0; rail < $2; ++rail)); do
        bytes=$(rail_counter "$TEST_TMP/status" $rail tx_bytes)
        [ "${bytes:-0}" -ge "$1" ] || return
    done
}

# wait_until COMMAND: waits until COMMAND succeeds, the job has ended, or 90 s have passed; the caller checks the result afterwards.
wait_until() {
    local end=$((SECONDS + 90))
    while [ $SECONDS -lt $end ] && kill -0 $job 2>/dev/null; do
        ! eval "$1" || return
        sleep 0.1
    done
}

# begin_stream "softrail options" RANKS mpirun-arguments... [STREAM-OPTIONS]: the verified stream runs in the background as $job on
# the fabric $FABRIC, until end_stream, which sets rc. A fixed duration would be too short on a busy machine. Another program ends by itself.
begin_stream() {
    local options=$1 n=$2
    shift 2
    rm -f "$TEST_TMP/pid"
    : >"$LOG"
    # shellcheck disable=SC2086
    timeout -k 5 "${STREAM_LIMIT:-$MPI_TIMEOUT}" "$SOFTRAIL" run $options --name "$FABRIC" --report="$REPORT" -- \
        "${FIRST[@]}" "$MPIRUN" --report-pid "$TEST_TMP/pid" --oversubscribe --bind-to none -np "$n" "${BTL_ARGS[@]}" "$@" >"$LOG" 2>&1 </dev/null &
    job=$!
}
end_stream() {
    kill -USR1 "$(cat "$TEST_TMP/pid")" 2>/dev/null
    wait $job
    rc=$?
}

# passes WHAT [PATTERN]: the job of begin_stream ends without an error, and says PATTERN: its program has checked something.
passes() {
    wait $job
    rc=$?
    [ $rc = 0 ] || { show_log; fail "$1: the job ended with $rc"; }
    has_said "${2:-^PASSED [1-9]}" || { show_log; fail "$1: no result"; }
}

# stream_until COMMAND "softrail options" RANKS mpirun-arguments... [STREAM-OPTIONS]: sets rc
stream_until() {
    local job until=$1
    begin_stream "${@:2}"
    wait_until "$until"
    end_stream
}

# verified WHAT: the stream ended without an error, and every byte was right.
verified() {
    [ $rc = 0 ] && grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$LOG" || { show_log; fail "$1: exit $rc"; }
    note "$1: $(grep ' 0 wrong$' "$LOG" | tail -n 1)"
}

# run_stream RAILS "more softrail options" RANKS mpirun-arguments...: runs the verified stream until all rails have carried a part of it.
run_stream() {
    local rails=$1 options="-n $1 $2" n=$3
    shift 3
    stream_until "have_moved 1000000 $rails && has_said 'messages verified'" "$options" "$n" "$@" "$STREAM" -s 600
    verified "$n ranks, $options $*"
    rails_carried 1000000 "$rails"
}

# cut_stream "RAILS TO CUT" RAILS RANKS MAX mpirun-arguments...: under pml bfo a verified stream outlives rails that are
# cut while it runs, and continues.
cut_stream() {
    local cut=$1 rails=$2 n=$3 max=$4 rail job shown BTL_ARGS=(--mca pml bfo --mca btl openib,self)
    shift 4
    begin_stream "-n $rails --retry-time=200ms" "$n" "$@" "$STREAM" -s 600 -m "$max"
    wait_until "have_moved 100000 $rails && has_said 'messages verified'"
    for rail in $cut; do
        "$SOFTRAIL" down --fabric "$FABRIC" "$rail" || { show_log; fail "rail $rail could not be cut"; }
        sleep 0.1
    done
    for rail in $cut; do
        wait_until "has_said 'A rail was lost: .* rail $rail from sr$rail:1 '"
    done
    shown=$(grep -c 'messages verified' "$LOG")
    wait_until "has_said 'messages verified' $((shown + 1))"
    end_stream
    for rail in $cut; do
        has_said "A rail was lost: .* rail $rail from sr$rail:1 " || { show_log; fail "rail $rail was not lost"; }
    done
    verified "rail $cut of $rails cut, $n ranks, to $max bytes $*"
    rails_carried 100000 "$rails"
}

# A rule with this pattern leaves out the BTL's datagrams (their first byte is 0x30 to 0x39), because a lost datagram costs no rail.
NO_DATAGRAM=payload=0:00/10
# fault_stream RULE MAX mpirun-arguments...: under pml bfo on two rails a verified stream outlives one fault of softrail.
fault_stream() {
    local rule=$1 max=$2
    shift 2
    [[ $rule != *op=send* ]] || rule="$rule $NO_DATAGRAM"
    echo "$rule" >"$TEST_TMP/plan"
    BTL_ARGS=(--mca pml bfo --mca btl openib,self)
    stream_until "has_said 'A rail was lost:' && has_said 'messages verified'" "-n 2 --plan $TEST_TMP/plan --retry-time=100ms" 2 "$@" "$STREAM" -s 600 -m "$max"
    verified "$rule, to $max bytes $*"
    has_said 'A rail was lost:' || { show_log; fail "$rule: no rail was lost, so nothing was tested"; }
}

# counted "PATTERN": a counter line of the BTL (btl_openib_verbose 1) matches PATTERN, in some rank on some rail.
counted() { SAID=$LOG says "bfo: sr[0-9]+:1: .*$1"; }

# Prints the numbers of receives that queue pairs have (btl_openib_verbose 2), each number once; 0 means a shared queue.
receives() { grep -aoE 'queue pair 0x[0-9a-f]+: .*receives [0-9]+' "$LOG" | grep -oE '[0-9]+$' | sort -un | tr '\n' ' '; }
