# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Helpers of the tests of the command bfo. Source after lib.sh. Each test has a directory of figures of its own.
. "$BFO_SRCDIR/tests/mpi/btl.sh"
BFO=$BFO_BUILDDIR/tools/bfo
export BFO_STATUS_DIR=$TEST_TMP/figures OMPI_MCA_pml_bfo_status_dir=$TEST_TMP/figures
mkdir -p "$BFO_STATUS_DIR"
FIGURES=$BFO_STATUS_DIR/bfo-$(id -u)
SAID=$TEST_TMP/out

# start_job RANKS RAILS MPIRUN-ARGUMENTS...: starts a verified job that exchanges messages until finish_job; returns after the first contacts.
start_job() {
    local n=$1 rails=$2 BTL_ARGS=(--mca pml bfo --mca btl openib,self)
    shift 2
    rm -f "$TEST_TMP/go"
    begin_stream "-n $rails --retry-time=100ms" "$n" "$@" "$BFO_BUILDDIR/tests/tools/mpi_counters" "$TEST_TMP/go"
    await "$LOG" '^ready' || { cat "$LOG"; fail "the job does not begin"; }
}
finish_job() {
    touch "$TEST_TMP/go"
    passes "the verified job"
}

# until_so WORDS COMMAND...: repeats COMMAND until it succeeds, for 60 s at most; WORDS say what failed.
until_so() {
    local words=$1
    shift
    for _ in $(seq 600); do
        "$@" && return
        sleep 0.1
    done
    [ ! -f "$TEST_TMP/out" ] || cat "$TEST_TMP/out"
    cat "$LOG"
    fail "$words"
}

# status_has PATTERN ARGUMENTS...: a line of "bfo status" matches PATTERN. The output is in `out`, the exit status in STATUS.
status_has() {
    local pattern=$1
    shift
    "$BFO" status "$@" >"$TEST_TMP/out" 2>&1
    STATUS=$?
    grep -Eq -- "$pattern" "$TEST_TMP/out"
}

# json FILE EXPRESSION: prints the value of a Perl expression over the JSON document $j of the file.
json() { perl -MJSON::PP -e 'local $/; open my $in, "<", $ARGV[0] or die; my $j = decode_json(<$in>); print eval $ARGV[1], "\n"; die $@ if $@' "$1" "$2"; }

# ends_with STATUS COMMAND...: COMMAND ends with STATUS; its output is in `out`
ends_with() {
    local expected=$1 status
    shift
    "$@" >"$TEST_TMP/out" 2>&1
    status=$?
    [ $status = "$expected" ] || { cat "$TEST_TMP/out"; "$BFO" status; fail "$*: status $status, not $expected"; }
}

# bytes RAIL: prints the bytes that both ends have sent so far
bytes() { "$SOFTRAIL" status --json --fabric "$FABRIC" >"$TEST_TMP/rails" && rail_counter "$TEST_TMP/rails" "$1" tx_bytes; }

# moves RAIL: waits until the rail has carried another megabyte
moves() {
    local before
    before=$(bytes "$1") || fail "the job is over"
    until_so "rail $1 carries nothing" eval "[ \$(bytes $1) -gt $((before + 1000000)) ]"
}
# rests RAIL WHILE: the rail carries almost nothing while rail WHILE carries data (keepalives are few bytes)
rests() {
    local before after
    before=$(bytes "$1")
    moves "$2"
    moves "$2"
    after=$(bytes "$1")
    [ $((after - before)) -lt 10000 ] || fail "rail $1 carries $((after - before)) bytes although its port stands out"
}
