#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Every mutant still fits: its text is in the code exactly once, and the patches of recovery/ apply. Therefore check-mutants does not
# lose a mutant unnoticed when code moves.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
need patch patch
cd "$BFO_SRCDIR" || exit 1
perl -I tests/mutants -MMutants -e '
    for my $m (@Mutants::all) {
        my $text = do { local $/; open my $in, "<", $m->{file} or die "$m->{file}: $!\n"; <$in> };
        my $fits = () = $text =~ /\Q$m->{from}\E/g;
        if ($fits != 1 || $m->{from} eq $m->{to}) { print "  $m->{name}: $fits places in $m->{file}\n"; ++$bad }
    }
    exit($bad || @Mutants::all < 25 ? 1 : 0)' || fail "mutants do not fit the code any more"
patches=0
for each in tests/mutants/recovery/*.patch; do
    patch --dry-run -s -f -p1 <"$each" || fail "$each does not apply any more"
    patches=$((patches + 1))
done
[ $patches -ge 12 ] || fail "$patches patches in tests/mutants/recovery, not 12"
exit 0
