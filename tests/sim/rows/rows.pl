#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# rows.pl LIST met=DIR raised=DIR [jobs=DIR]: compares the rows of the .def files with the rows that simulations took. Builds with
# -DBFO_COUNT_ROWS=1 left the counts in the directories. The simulated world (met) or jobs over software rails (jobs) must take
# every row. LIST names the rows that nothing can bring about, each with its reason. Each of these rows must be raised alone
# (raised), and LIST must not name a row that was taken. DESIGN.txt section 13.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../matrix";
use Job;

my $list = shift;
my %dir = map { split /=/, $_, 2 } @ARGV;
my $top = $ENV{BFO_SRCDIR} or die "source tests/env.sh of the build directory first\n";
my %file = (send => 'pml_bfo/tables/pml_bfo_failover_send.def', recv => 'pml_bfo/tables/pml_bfo_failover_recv.def',
            rail => 'btl_openib_failover/tables/btl_openib_rail.def');
my (%taken, %excused, $bad);
for my $how (sort keys %dir) {
    my @counts = glob "$dir{$how}/pml.* $dir{$how}/rail.*" or die "no counts in $dir{$how}\n";
    for my $counts (@counts) {
        open my $in, '<', $counts or next;
        while (<$in>) { chomp; my ($machine, $state, $event, $n) = split /\|/; $taken{$how}{"$machine|$state|$event"} += $n }
    }
}
open my $in, '<', $list or die "$list: $!\n";
while (<$in>) { $excused{"$1 $2 $3"} = $4 if /^(\w+) (\w+) (\w+)\s+(\S.*)/ }
for my $machine (sort keys %file) {
    my $text = do { local $/; open my $def, '<', "$top/$file{$machine}" or die "$file{$machine}: $!\n"; <$def> };
    my (%state, %event, $rows, %n);
    $state{$1} = $2 while $text =~ /^STATE\((\w+),\s*"([^"]*)"/mg;
    $event{$1} = $2 while $text =~ /^EVENT\((\w+),\s*(?:\w+,\s*)?"([^"]*)"/mg;
    while ($text =~ /^ROW\w*\(([^)]*)\)/mg) {
        my @field = split /\s*,\s*/, $1;
        my ($from, $on) = @field[1, 2];
        my %by = map { $_ => $taken{$_}{"$machine|$state{$from}|$event{$on}"} ? 1 : 0 } qw(met raised jobs);
        my $why = delete $excused{"$machine $from $on"};
        ++$rows;
        $n{$_} += $by{$_} for keys %by;
        if ($by{met} || $by{jobs}) {
            ++$n{taken};
            if ($why) { print "TAKEN, but listed: $machine $from $on\n"; ++$bad }
        } elsif (!$why) { print "NOT TAKEN: $machine $from $on\n"; ++$bad }
        elsif ($by{raised}) { ++$n{alone} }
        else { print "NOT RAISED: $machine $from $on\n"; ++$bad }
    }
    printf "%-46s %3d rows: %3d taken (%d in the simulated world%s), %d that nothing brings about raised alone\n",
        $file{$machine}, $rows, $n{taken}, $n{met}, $dir{jobs} ? ", $n{jobs} by jobs" : '', $n{alone} // 0;
}
for my $row (sort keys %excused) { print "NO SUCH ROW, but listed: $row\n"; ++$bad }
exit($bad ? 1 : 0);
