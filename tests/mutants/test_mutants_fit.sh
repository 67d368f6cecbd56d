#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Every mutant still fits: each of its texts is in the code exactly once, and the test that must notice exists. Therefore check-mutants
# does not lose a mutant unnoticed when code moves.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
cd "$BFO_SRCDIR" || exit 1
perl -I tests/mutants -MMutants -e '
    my ($bad, %seen) = 0;
    sub wrong { print "  @_\n"; ++$bad }
    for my $m (@Mutants::all) {
        wrong("$m->{name}: two mutants have this name") if $seen{ $m->{name} }++;
        wrong("$m->{name}: always, but no test") if $m->{always} && !$m->{unit} && !$m->{test};
        for (Mutants::edits($m)) {
            my ($file, $from, $to) = @$_;
            my $text = do { local $/; open my $in, "<", $file or die "$file: $!\n"; <$in> };
            my $fits = () = $text =~ /\Q$from\E/g;
            wrong("$m->{name}: $fits places in $file") if $fits != 1 || $from eq $to;
        }
        for (split(" ", $m->{test} // ""), map { "tests/unit/$_.c" } split " ", $m->{unit} // "") { wrong("$m->{name}: no $_") unless -f }
    }
    exit($bad || @Mutants::all < 25 ? 1 : 0)' || fail "mutants do not fit the code any more"
exit 0
