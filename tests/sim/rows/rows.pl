#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# rows.pl DIR LIST: which rows of the state machines were taken by the processes that left their counts in DIR (a build
# with -DBFO_COUNT_ROWS=1), beside the rows of the .def files. Fails if a row was not taken and is not in LIST, which
# names the rows that no simulation takes yet, with the reason. DESIGN.txt section 13.
use strict;
use warnings;

my ($dir, $list) = @ARGV;
my $top = $ENV{BFO_SRCDIR} or die "source tests/env.sh of the build directory first\n";
my %file = (send => 'pml_bfo/pml_bfo_failover_send.def', recv => 'pml_bfo/pml_bfo_failover_recv.def',
            rail => 'btl_openib_failover/btl_openib_connect.def');
my (%taken, %excused, $missing, $processes);
for my $counts (glob "$dir/pml.* $dir/rail.*") {
    open my $in, '<', $counts or next;
    ++$processes;
    while (<$in>) { chomp; my ($machine, $state, $event, $n) = split /\|/; $taken{"$machine|$state|$event"} += $n }
}
die "no counts in $dir\n" unless $processes;
open my $in, '<', $list or die "$list: $!\n";
while (<$in>) { $excused{"$1 $2 $3"} = $4 if /^(\w+) (\w+) (\w+)\s+(\S.*)/ && !/^#/ }
for my $machine (sort keys %file) {
    my $text = do { local $/; open my $def, '<', "$top/$file{$machine}" or die "$file{$machine}: $!\n"; <$def> };
    my (%state, %event, $rows, $hit);
    $state{$1} = $2 while $text =~ /^STATE\((\w+),\s*"([^"]*)"/mg;
    $event{$1} = $2 while $text =~ /^EVENT\((\w+),\s*(?:\w+,\s*)?"([^"]*)"/mg;
    while ($text =~ /^ROW\w*\(([^)]*)\)/mg) {
        my @field = split /\s*,\s*/, $1;
        my ($from, $on) = $machine eq 'rail' ? @field[0, 1] : @field[1, 2];
        ++$rows;
        if ($taken{"$machine|$state{$from}|$event{$on}"}) { ++$hit; next }
        next if $excused{"$machine $from $on"};
        print "NOT TAKEN $machine $from $on\n";
        ++$missing;
    }
    printf "%s: %d of %d rows taken, %d in the list of those that no simulation takes yet\n", $file{$machine}, $hit, $rows,
        scalar grep { /^$machine / } keys %excused;
}
exit($missing ? 1 : 0);
