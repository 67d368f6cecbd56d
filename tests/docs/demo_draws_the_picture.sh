#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The README's first command, in this build: a cable is pulled and plugged in, the other rail falls silent, the job continues, and the
# pictures show both rails. If the build does not exist, the demo says so.
. "$BFO_SRCDIR/tests/lib.sh"
need gnuplot gnuplot-nox
BFO_DEMO_BUILD=$BFO_BUILDDIR timeout -k 5 300 "$BFO_SRCDIR/demo.sh" 8 >"$TEST_TMP/out" 2>&1 </dev/null ||
    { tail -n 40 "$TEST_TMP/out"; fail "demo.sh ended with $?"; }
for line in 'softrail down sr1' '^A rail was lost: .*sr1:1' '^A rail is back: .*sr1:1' '^A rail was lost: .*sr0:1' ' 0 wrong$' \
    "Longest pause of the stream after 'sr1 cut': [0-9]+ ms" "Longest pause of the stream after 'sr1 plugged in': [0-9]+ ms" \
    "Longest pause of the stream after 'sr0 silent': [0-9]+ ms"; do
    grep -Eq -- "$line" "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "the demo does not print: $line"; }
done
samples_are_real "$BFO_SRCDIR/README.md" 'messages verified' "$TEST_TMP/out" vm
for word in 'rail sr0' 'rail sr1' 'sr1 cut' 'sr1 plugged in' 'sr0 silent'; do
    grep -q "$word" "$BFO_BUILDDIR/demo.svg" || fail "the picture does not show: $word"
done
# words PICTURE: title, axes, legend and marks.
words() { grep -oE '>[^<]*[A-Za-z][^<]*<' "$1" | grep -v 'GNUPLOT' | sort -u; }
[ "$(words "$BFO_SRCDIR/docs/demo.svg")" = "$(words "$BFO_BUILDDIR/demo.svg")" ] || fail "docs/demo.svg is not the picture that demo.sh draws"
grep -q 'sr1:1' "$BFO_BUILDDIR/demo-rails.svg" || fail "the picture of the states does not show sr1"
BFO_DEMO_BUILD=$TEST_TMP "$BFO_SRCDIR/demo.sh" >"$TEST_TMP/out" 2>&1 && fail "a build that is not there was used"
grep -q "BFO_DEMO_BUILD names '$TEST_TMP', which is no build of bfo" "$TEST_TMP/out" || fail "not told: $(cat "$TEST_TMP/out")"
exit 0
