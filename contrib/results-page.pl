#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# results-page.pl PAGE            tests whether the tables of results in docs/verification.md or docs/comparison.md agree with the files that
#                                 tests have written (status 1 and the differing lines if not)
# results-page.pl --update PAGE   writes the tables
#
# A table is between a marker and "<!-- end -->". "<!-- results FILE -->": the first cell of a row is a part of tests/check_long.sh, the second is
# text; the other cells come from FILE (tests/RESULTS.md). Each part has a row, also before its first run. "<!-- compare FILE -->": the results of
# tests/vm/compare.sh, with a column for each stack; FILE must be the newest. Paths of files start at the parent of this script's folder.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Bfo::Page qw(read_page finish_page);

my $update = @ARGV && $ARGV[0] eq '--update' && shift @ARGV;
my $page = shift @ARGV;
die "usage: results-page.pl [--update] docs/verification.md|docs/comparison.md\n" if !defined $page || @ARGV;

# cells(LINE): returns the cells of a row of a table.
sub cells { my ($line) = @_; return map { s/^\s+|\s+$//gr } (split /\|/, $line, -1)[1 .. ($line =~ tr/|//) - 1] }

# results(FILE, OLD): returns the new table; its first two columns are those of OLD.
sub results {
    my ($file, $old) = @_;
    my (%row, %meaning, @order);
    my ($parts) = read_page("$FindBin::Bin/../tests/check_long.sh") =~ /^all_parts="([^"]*)"/m or die "results-page.pl: check_long.sh has no list of parts\n";
    my %part = map { $_ => 1 } split ' ', $parts;
    for (grep { /^\| [a-z]/ } split /\n/, read_page("$FindBin::Bin/../$file")) {
        my ($part, $verdict, $seconds, $passed, $failed, undef, $commit) = cells($_);
        next if $part eq 'part';
        $row{$part} = "$verdict | $passed | $failed | $seconds s | $commit";
    }
    die "results-page.pl: $file has no rows\n" unless %row;
    for (grep { /^\| `/ } split /\n/, $old) {
        my ($part, $meaning) = cells($_);
        $part =~ tr/`//d;
        die "results-page.pl: $page: check_long.sh has no part '$part'\n" unless $part{$part};
        $row{$part} //= '- | - | - | - | not run yet';
        push @order, $part;
        $meaning{$part} = $meaning;
    }
    for (sort keys %part, keys %row) { die "results-page.pl: $page has no row of the part '$_'\n" unless defined $meaning{$_} }
    return "| part | what it shows | verdict | passed | failed | took | commit, date |\n|---|---|---|---|---|---|---|\n"
        . join('', map { "| `$_` | $meaning{$_} | $row{$_} |\n" } @order);
}

my %column = (
    'pml bfo, our btl openib' => 'bfo', 'ob1, our btl openib' => 'ob1, our BTL', 'ob1, btl tcp' => 'ob1, tcp', 'cm, mtl ofi tcp;ofi_rxm' => 'libfabric tcp',
    'cm, mtl ofi verbs;ofi_rxm' => 'libfabric verbs', 'pml ucx' => 'UCX', 'pml ucx, retry count 6' => 'UCX, retry count 6',
);

# compare(FILE): the outcome of each fault with each stack; seconds only for runs that had the machine to themselves.
sub compare {
    my ($file) = @_;
    my ($newest) = reverse sort glob "$FindBin::Bin/../tests/vm/results/compare-*.txt";
    die "results-page.pl: $page shows $file, and $newest is newer\n" if $newest !~ m{/\Q@{[$file =~ s{.*/}{}r]}\E$};
    my (@stacks, @faults, %cell);
    for (split /\n/, read_page("$FindBin::Bin/../$file")) {
        my ($stack, $fault, $outcome, $seconds, $rails, $note) = map { s/^\s+|\s+$//gr } split /\|/, $_, -1;
        next unless defined $note && $stack ne 'stack';
        die "results-page.pl: $file: a stack without a column: $stack\n" unless $column{$stack};
        push @stacks, $stack unless grep { $_ eq $stack } @stacks;
        push @faults, $fault unless grep { $_ eq $fault } @faults;
        my $time = $seconds =~ /^[0-9.]+$/ && $note =~ /^[fi]?$/ ? sprintf(' %.1f s', $seconds) : '';
        my $in_use = $rails =~ /^\d$/ ? ", $rails " . ($rails == 1 ? 'rail' : 'rails') : '';
        $cell{$fault}{$stack} = $outcome . $time . $in_use;
    }
    die "results-page.pl: $file has no rows\n" unless @faults;
    return '| fault | ' . join(' | ', map { $column{$_} } @stacks) . " |\n|---|" . '---|' x @stacks . "\n"
        . join '', map { my $fault = $_; "| $fault | " . join(' | ', map { $cell{$fault}{$_} // '-' } @stacks) . " |\n" } @faults;
}

my $old = read_page($page);
my $new = $old;
my $count = 0;
$new =~ s{(<!-- results (\S+) -->\n)(.*?)(<!-- end -->\n)}{$count++; $1 . results($2, $3) . $4}gse;
$new =~ s{(<!-- compare (\S+) -->\n).*?(<!-- end -->\n)}{$count++; $1 . compare($2) . $3}gse;
die "results-page.pl: $page has no marker of results\n" unless $count;
finish_page($page, $old, $new, $update);
