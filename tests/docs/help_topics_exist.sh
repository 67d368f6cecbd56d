#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Every help topic that the code names is in a help text, and the code names every topic of a help text.
. "$BFO_SRCDIR/tests/lib.sh"
cd "$BFO_SRCDIR" || exit 1
for dir in pml_bfo btl_openib_failover; do
    text=$(ls "$dir"/help-*.txt) || fail "$dir has no help text"
    sed -n 's/^\[\(.*\)\]$/\1/p' "$text" | sort >"$TEST_TMP/written"
    # Finds both topics of a call that chooses between two, and calls of several lines.
    cat "$dir"/*/*.c | tr '\n' ' ' | grep -oE 'bfo_help_(say\(|line\(|say_once\([^"]*)("help-[^"]*"|[A-Z_]*), *[^,]*,?' | sed 's/^[^,]*,//; s/^ *"help-[^,]*,//' |
        grep -oE '"[^"]+"' | tr -d '"' | sort -u >"$TEST_TMP/named"
    [ -s "$TEST_TMP/named" ] || fail "found no call of bfo_help_say in $dir"
    diff -u "$TEST_TMP/written" "$TEST_TMP/named" || fail "$text (-) and the code (+) disagree"
    ! grep -nE 'opal_show_help[a-z_]* *\(' "$dir"/*/*.c include/*.h || fail "$dir: Open MPI may lose the message, or crash in it beside another thread; use bfo_help_say"
done
