#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The commands and options that README and the guides show exist, and are run: here, or by the test that page_commands.list names. A command
# or an option that does not exist, and a command that no test runs, are found.
. "$BFO_SRCDIR/tests/lib.sh"
use_components pml btl
export PATH=$BFO_BUILDDIR/tools:$BFO_BUILDDIR/softrail:$PATH BFO_STATUS_DIR=$TEST_TMP OMPI_MCA_rmaps_base_oversubscribe=1
cd "$BFO_SRCDIR" || exit 1
look() { perl tests/docs/page_commands.pl tests/docs/page_commands.list "$@" >"$TEST_TMP/run" 2>"$TEST_TMP/complaints"; }
look README.md docs/site-guide.md docs/install.md -- docs/*.md CONTRIBUTING.md */README.md || { cat "$TEST_TMP/complaints"; fail "commands on pages"; }
n=0
while read -r command; do
    n=$((n + 1))
    timeout -k 5 120 bash -c "$command" >"$TEST_TMP/out" 2>&1 </dev/null
    rc=$?
    # bfo status: 4, because no job runs here; bfo doctor: 1, because it may find a problem of this machine
    { [ $rc = 0 ] || { [[ $command == *"bfo status" ]] && [ $rc = 4 ]; } || { [[ $command == *doctor ]] && [ $rc = 1 ]; }; } ||
        { cat "$TEST_TMP/out"; fail "'$command' ended with $rc"; }
    [ -s "$TEST_TMP/out" ] || fail "'$command' says nothing"
    note "$command (exit $rc)"
done <"$TEST_TMP/run"
[ $n -ge 3 ] || fail "only $n commands were run"
for wrong in 'Call `bfo repair`.|has no .repair' 'Call `bfo status --colour`.|has no option --colour' '    $ bfo events --since 1h|is not in the list' \
    '    ./test.sh|no page shows'; do
    echo "${wrong%%|*}" >"$TEST_TMP/page.md"
    look "$TEST_TMP/page.md" -- "$TEST_TMP/page.md" && fail "not found: ${wrong%%|*}"
    grep -q "${wrong##*|}" "$TEST_TMP/complaints" || { cat "$TEST_TMP/complaints"; fail "not said: ${wrong##*|}"; }
done
exit 0
