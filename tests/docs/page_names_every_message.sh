#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The table in docs/messages.md: each topic of the help texts has one row; its first cell quotes words of that text. bfo(7) has the same rows.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
perl - "$BFO_SRCDIR"/docs/messages.md "$BFO_SRCDIR"/*/help-*.txt <<'PERL' || fail "docs/messages.md and the help texts disagree"
use strict;
use warnings;
sub words { my $text = shift; $text =~ s/\s+/ /g; return lc $text }

my ($page, @texts) = @ARGV;
open my $in, '<', $page or die "$page: $!\n";
my @rows;
my $inside = 0;
while (<$in>) {
    $inside = 1 if /^\| message \| meaning \|/;
    $inside = 0 unless /^\|/;
    push @rows, words($1) if $inside && /^\| (.*?) \|/ && $1 ne 'message';
}
close $in;
my (%text, $topic);
for my $file (@texts) {
    open $in, '<', $file or die "$file: $!\n";
    while (<$in>) {
        next if /^#/;
        if (/^\[(.*)\]$/) { $topic = "$file [$1]"; $text{$topic} = ''; next }
        $text{$topic} .= $_ if defined $topic;
    }
    close $in;
}
die "found no rows or no topics\n" unless @rows > 5 && keys %text > 5;
my ($bad, %row) = (0);
for my $topic (sort keys %text) {
    my @found = grep { index(words($text{$topic}), $_) >= 0 } @rows;
    push @{$row{$_}}, $topic for @found;
    next if @found == 1;
    print "$topic: ", @found ? "rows: @found" : 'no row', "\n";
    $bad = 1;
}
for (@rows) {
    next if 1 == @{$row{$_} || []};
    print "row \"$_\": ", $row{$_} ? "topics: @{$row{$_}}" : 'no such words', "\n";
    $bad = 1;
}
exit $bad;
PERL
cd "$BFO_SRCDIR" || exit 1
perl contrib/messages-page.pl docs/messages.md docs/bfo.7 ||
    fail "docs/bfo.7 differs from docs/messages.md: perl contrib/messages-page.pl --update docs/messages.md docs/bfo.7"
# Each row is in the formatted page.
need groff groff-base
groff -man -Tutf8 -P-cbou -rLL=1000n docs/bfo.7 | sed -n '/^DIAGNOSTICS/,/^FILES/p' | tr -s ' \n' ' ' | sed 's/‐/-/g' >"$TEST_TMP/seen"
while IFS='|' read -r _ words _; do
    words=$(tr -d '`' <<<"$words" | sed 's/^ *//; s/ *$//')
    [ "$words" = message ] || [[ $words = ---* ]] || grep -qF -- "$words" "$TEST_TMP/seen" || fail "man bfo does not show: $words"
done < <(grep '^|' docs/messages.md)
exit 0
