#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The man pages of the two scripts about ob1 are built from their POD, render, and name every option that the scripts take.
# They stay in the build directory, as the scripts stay with the sources.
. "$BFO_SRCDIR/tests/lib.sh"
unset LD_PRELOAD
need man man-db
need make make
make -C "$BFO_BUILDDIR/contrib" -n install DESTDIR="$TEST_TMP" >"$TEST_TMP/install" 2>&1 || { cat "$TEST_TMP/install"; fail "make -n install"; }
! grep -q 'check-ob1-.*[.]1' "$TEST_TMP/install" || fail "make install installs the page of a command that stays with the sources"
for script in check-ob1-revision check-ob1-pml-diffs; do
    podchecker "$BFO_SRCDIR/contrib/$script.pl" >"$TEST_TMP/pod" 2>&1 || { cat "$TEST_TMP/pod"; fail "$script: its POD is wrong"; }
    page=$BFO_BUILDDIR/contrib/$script.pl.1
    [ -f "$page" ] || fail "make built no $page"
    MANWIDTH=200 man --warnings -l "$page" >"$TEST_TMP/page" 2>"$TEST_TMP/warnings" </dev/null
    [ ! -s "$TEST_TMP/warnings" ] || { cat "$TEST_TMP/warnings"; fail "$script: its page does not render"; }
    options=$(sed -n '/^    GetOptionsFromArray(/,/)/p' "$BFO_SRCDIR/contrib/$script.pl" | grep -oE "'[a-z]+(=s)?'" | tr -d "'" | sed 's/=s//')
    [ "$(wc -w <<<"$options")" -gt 5 ] || fail "$script: found no options"
    for option in $options; do
        grep -q -- "--$option" "$TEST_TMP/page" || fail "$script: its page does not name --$option"
    done
done
