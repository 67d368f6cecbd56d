#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Every mutant still fits: its text is in the code exactly once. So check-mutants does not quietly lose one when code moves.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
cd "$BFO_SRCDIR" || exit 1
perl -I tests/mutants -MMutants -e '
    for my $m (@Mutants::all) {
        my $text = do { local $/; open my $in, "<", $m->{file} or die "$m->{file}: $!\n"; <$in> };
        my $fits = () = $text =~ /\Q$m->{from}\E/g;
        if ($fits != 1 || $m->{from} eq $m->{to}) { print "  $m->{name}: $fits places in $m->{file}\n"; ++$bad }
    }
    exit($bad || @Mutants::all < 25 ? 1 : 0)' || fail "mutants do not fit the code any more"
exit 0
