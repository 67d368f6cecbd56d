# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Helpers of the test scripts. Source it first:  . "$BFO_SRCDIR/tests/lib.sh"
# A test ends with status 0 (passed), 77 (skipped: it prints what is missing; a failure when CI=true) or any other (failed).

set -u
: "${BFO_BUILDDIR:?run this under make check, or source tests/env.sh of the build directory first}"

# Scratch directory of this test, removed at its end.
TEST_NAME=$(basename "$0" .sh)
TEST_TMP=$(mktemp -d "${TMPDIR:-/tmp}/bfo-$TEST_NAME.XXXXXX")
# What a test that fails has left running ends with it.
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$TEST_TMP"' EXIT

fail() { echo "FAIL $TEST_NAME: $*"; exit 1; }
note() { echo "  $TEST_NAME: $*"; }

# What the job or the command under test has printed is in $LOG, or in $SAID if a script sets it. A script may have its own show_said.
LOG=$TEST_TMP/log SAID=
show_said() { tail -n 100 "${SAID:-$LOG}"; }
# times_said PATTERN: prints the number of lines that match PATTERN, an extended regular expression (a text, if SAID_AS is -F).
times_said() { grep -c "${SAID_AS:--E}" -- "$1" "${SAID:-$LOG}"; }
# give_up WORDS: prints what was said, and fails.
give_up() { show_said; fail "$*"; }
# says PATTERN [COUNT]: at least COUNT (1) lines match PATTERN. says_not PATTERN: no line does.
says() { [ "$(times_said "$1")" -ge "${2:-1}" ] || give_up "nobody says${2:+ $2 times}: $1"; }
says_not() { [ "$(times_said "$1")" = 0 ] || give_up "somebody says: $1"; }

# retry WHY: this test repeats a step. test.sh adds these lines up and shows their number with each run.
retry() { echo "retried: 1 ($TEST_NAME: $*)"; }

# ends_refused TEXT LOG COMMAND...: runs COMMAND, whose job is refused and says TEXT in LOG, and returns its status. The mpirun of Open MPI 4.1 itself
# sometimes hangs, or crashes in PMIx_server_finalize(), while it ends a job that failed in MPI_Init, with any PML: such a run is repeated, twice at
# most. A run that ends so before the job has said TEXT is a failure, and so is the crash of another process.
ends_refused() {
    local text=$1 log=$2 rc try
    shift 2
    for try in 1 2 3; do
        rc=0
        "$@" || rc=$?
        [ $rc = 124 ] || [ $rc = 137 ] || { grep -q 'PMIx_server_finalize+' "$log" && [ "$(grep -c '\] Signal: ' "$log")" = 1 ]; } || break
        grep -qE -- "$text" "$log" || tr '\n' ' ' <"$log" | grep -qE -- "$text" || { tail -n 20 "$log"; fail "ended with $rc before it said '$text': $*"; }
        [ $try = 3 ] || retry "try $try was refused, and mpirun itself ended with $rc: $*"
    done
    return $rc
}

# skip_missing WHAT PACKAGE: this test cannot run here. In CI that is a failure.
skip_missing() {
    echo "SKIP $TEST_NAME: $1 is missing (Debian package: $2)"
    [ "${CI:-}" = true ] && exit 1
    exit 77
}
need() { command -v "$1" >/dev/null 2>&1 || skip_missing "$1" "$2"; }

# mpirun refuses root without these variables.
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
MPI_TIMEOUT=${MPI_TIMEOUT:-480} # a job that takes longer hangs; the limit is long because loaded machines are slow

# The BTL for processes of one node. From 5.0 on mpirun passes our component path to PMIx as well, which complains of every component in it;
# therefore PMIx gets a path of its own. btl tcp does not connect a machine's address with itself; therefore it uses the loopback interface.
# And mpirun ends its texts with a zero byte, which makes grep take a log for a binary file.
case $OMPI_VERSION in
4.*) export SHARED_MEMORY=vader ;;
*)
    export SHARED_MEMORY=sm
    export PMIX_MCA_mca_base_component_path=$PMIX_COMPONENTDIR OMPI_MCA_btl_tcp_if_include=lo
    grep() { command grep -a "$@"; }
    ;;
esac

# Is this a build with AddressSanitizer?
has_asan() { grep -q __asan_init "$BFO_BUILDDIR/softrail/.libs/libsoftrail.so"; }

# Installed components stay mapped until a rank has ended: see stock_stays.c. (Not with AddressSanitizer, whose library must come first.)
has_asan ||
    export LD_PRELOAD="$BFO_BUILDDIR/tests/.libs/stock_stays.so${LD_PRELOAD:+:$LD_PRELOAD}"

# without_assertions [BUILD]: fails unless the build is as users run it, because the test counts or measures time.
without_assertions() {
    ! grep -q '^#define BFO_ASSERTIONS 1' "${1:-$BFO_BUILDDIR}/include/bfo_config.h" ||
        fail "${1:-$BFO_BUILDDIR} has assertions: measure a build that was configured with --disable-assertions"
}

# use_components pml btl | pml | btl | none: puts the directories of these components of this build before the stock directory.
use_components() {
    local path= part
    for part in "$@"; do
        case $part in
        pml) path=$path$BFO_BUILDDIR/pml_bfo/.libs: ;;
        btl) path=$path$BFO_BUILDDIR/btl_openib_failover/.libs: ;;
        none) ;;
        *) fail "use_components: unknown part $part" ;;
        esac
    done
    export OMPI_MCA_mca_base_component_path=$path$BFO_OMPI_COMPONENTDIR
}

# mpi N ARGUMENTS...: mpirun with a time limit and without binding.
mpi() {
    local n=$1
    shift
    timeout -k 5 "$MPI_TIMEOUT" "$MPIRUN" --oversubscribe --bind-to none -np "$n" "$@"
}

# await FILE PATTERN [COUNT]: waits until FILE has COUNT (1) lines that match PATTERN; returns 1 after 60 s.
await() {
    local lines
    for _ in $(seq 600); do
        lines=$(grep -c -- "$2" "$1" 2>/dev/null)
        [ "${lines:-0}" -ge "${3:-1}" ] && return
        sleep 0.1
    done
    return 1
}

SOFTRAIL=$BFO_BUILDDIR/softrail/softrail

# rail_counter FILE RAIL KEY: prints a number of the report of "softrail run --report FILE" (or status --json), such as
# rail_counter "$TEST_TMP/report" 0 tx_bytes
rail_counter() {
    awk -v rail="$2" -v key="\"$3\":" '
        /{/ { found = 0; value = "" }
        $1 == "\"rail\":" { found = ($2 + 0 == rail) }
        $1 == key { value = $2; sub(/,/, "", value) } # kept as text: awk would round a large number
        /}/ { if (found && value != "") { print value; exit } }' "$1"
}

# rails_moved FILE RAIL...: each of these rails carried payload both ways.
rails_moved() {
    local file=$1 rail
    shift
    for rail in "$@"; do
        [ "$(rail_counter "$file" "$rail" tx_bytes)" -gt 0 ] && [ "$(rail_counter "$file" "$rail" rx_messages)" -gt 0 ] ||
            fail "rail $rail carried nothing: $(cat "$file")"
    done
}

# samples_are_real PAGE PATTERN OUTPUT [NAME...]: looks for the block of PAGE in which a line matches PATTERN. Fails unless the file OUTPUT has
# each line of this block. A word with a digit stands for any word, and so does each NAME. The function skips "..." and commands after a prompt.
samples_are_real() {
    local page=$1 sample lines=0
    perl -e 'my ($page, $pattern, @names) = @ARGV;
        open my $in, "<", $page or die "$page: $!\n";
        my $text = do { local $/; <$in> };
        for my $block (grep { /$pattern/m } $text =~ /((?:^ {4}.*\n)+)/mg) {
            for (grep { !/^\s*(\$ .*|\.\.\.)$/ } split /\n/, $block) {
                print join("\\s+", map { my $word = $_; /\d/ || grep({ $word eq $_ } @names) ? "\\S+" : quotemeta } split), "\n";
            }
        }' "$page" "$2" "${@:4}" >"$TEST_TMP/samples" || fail "samples of $page"
    while IFS= read -r sample; do
        lines=$((lines + 1))
        grep -qP -- "^\s*$sample\s*\$" "$3" || { cat "$3"; fail "${page##*/} shows a line that is not printed: $sample"; }
    done <"$TEST_TMP/samples"
    [ $lines -gt 0 ] || fail "${page##*/} has no block with $2"
}
