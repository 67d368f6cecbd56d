#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The tables of results in docs/verification.md and docs/comparison.md agree with tests/RESULTS.md and tests/vm/results; each part has a row, and
# the page shows the newest comparison. contrib/results-page.pl finds a row that differs, and a part without a row. A part that never ran has a row that says so.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
page() { perl "$BFO_SRCDIR/contrib/results-page.pl" "$@"; }
for name in verification comparison; do
    page "$BFO_SRCDIR/docs/$name.md" || fail "docs/$name.md differs from the results: perl contrib/results-page.pl --update docs/$name.md"
done
tree=$TEST_TMP/tree
mkdir -p "$tree/docs" "$tree/contrib" "$tree/tests/vm/results"
mkdir -p "$tree/contrib/lib/Bfo"
cp "$BFO_SRCDIR/contrib/results-page.pl" "$tree/contrib"
cp "$BFO_SRCDIR/contrib/lib/Bfo/Page.pm" "$tree/contrib/lib/Bfo"
cp "$BFO_SRCDIR"/docs/{verification,comparison}.md "$tree/docs"
cp "$BFO_SRCDIR/tests/check_long.sh" "$tree/tests"
cp "$BFO_SRCDIR"/tests/vm/results/compare-*.txt "$tree/tests/vm/results"
sed 's/^\(| soak | \)passed/\1FAILED/' "$BFO_SRCDIR/tests/RESULTS.md" >"$tree/tests/RESULTS.md"
# differs PAGE PATTERN: the page of the made-up tree differs, and the script prints PATTERN
differs() {
    perl "$tree/contrib/results-page.pl" "$tree/docs/$1" >"$TEST_TMP/out" 2>&1 && fail "results-page.pl finds nothing in $1: $2"
    grep -q -- "$2" "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "not said: $2"; }
}
differs verification.md '^+ | `soak` | .* | FAILED'
perl "$tree/contrib/results-page.pl" --update "$tree/docs/verification.md" && grep -q '^| `soak` | .* | FAILED' "$tree/docs/verification.md" ||
    fail "--update does not write the row"
echo '| newpart | passed | 1 | 1 | 0 | 0 | 0000000, 2026-01-01 |' >>"$tree/tests/RESULTS.md"
differs verification.md "no row of the part 'newpart'"
sed -i '/^| soak |/d; /newpart/d' "$tree/tests/RESULTS.md"
differs verification.md '^+ | `soak` | .* | not run yet'
sed -i '/^all_parts=/s/ soak / soap /' "$tree/tests/check_long.sh"
differs verification.md "no part 'soak'"
sed -i '/^all_parts=/s/ soap / soak soap /' "$tree/tests/check_long.sh"
differs verification.md "no row of the part 'soap'"
sed -i 's/^\(pml bfo, our btl openib *| link down, peer *| \)survived/\1aborted /' "$tree"/tests/vm/results/compare-*.txt
differs comparison.md '^+ | link down, peer | aborted'
touch "$tree/tests/vm/results/compare-2999-01-01.txt"
differs comparison.md 'compare-2999-01-01.txt is newer'
exit 0
