#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# coverage.pl [-l] [-f | -u | -a] FOLDER FILE.json: prints how many branches of each file of FOLDER/files.txt were taken, as gcovr counted in
# FILE.json; coverage.sh has the options.
use strict;
use warnings;
use JSON::PP;

use constant ROOM => 4; # branches of a file that a run may miss, although the run that set the floor took them: threads of unit programs
my %option;
$option{$1} = shift while @ARGV && $ARGV[0] =~ /^-(\w)$/;
my ($folder, $trace) = @ARGV;
my ($bad, %why, @floors, %branches) = (0);

sub lines_of { open my $in, '<', $_[0] or die "$_[0]: $!\n"; chomp(my @lines = <$in>); @lines }

# The branches of a file that no level took: function, text of the line, number of the branch.
sub unreached {
    my ($file) = @_;
    my @source = lines_of("$folder/../../$file->{file}");
    my @functions = sort { $a->{lineno} <=> $b->{lineno} } @{$file->{functions}};
    my @found;
    for my $line (@{$file->{lines}}) {
        my $name = 'none';
        for (@functions) { $name = $_->{name} if $_->{lineno} <= $line->{line_number} }
        my $text = $source[$line->{line_number} - 1] =~ s/^\s+|\s*(?:\/\*.*)?$//gr;
        my $n = 0;
        for (@{$line->{branches} // []}) {
            push @found, {line => $line->{line_number}, key => "$name $n: $text"} if !$_->{count};
            ++$n;
        }
    }
    return @found;
}

my %file = map { $_->{file} => $_ } @{decode_json(join '', lines_of($trace))->{files}};
if ($option{a}) {
    my $reason;
    for (lines_of("$folder/unreached.txt")) {
        if (/^= (.*)/) { $reason = $1 } elsif (/^(?!#)(\S+) (.*)/) { $why{$1}{$2} = $reason // die "$_: no reason\n" }
    }
}
my ($all, $all_taken) = (0, 0);
printf "%-46s %8s %8s %8s%s\n", 'file', 'branches', 'reached', 'percent', $option{f} ? '    floor' : '';
for my $entry (lines_of("$folder/files.txt")) {
    push @floors, $entry;
    my ($name, $floor) = $entry =~ /^(?!#)(\S+) (\d+)$/ or next;
    my $file = $file{$name};
    if (!$file) { print "NO RESULT: $name\n"; ++$bad; next }
    my $n = map { @{$_->{branches} // []} } @{$file->{lines}};
    my @unreached = unreached($file);
    my $taken = $n - @unreached;
    my $percent = $n ? 100 * $taken / $n : 100;
    $all += $n;
    $all_taken += $taken;
    printf "%-46s %8d %8d %8.1f%s\n", $name, $n, $taken, $percent, $option{f} ? sprintf('%9d', $floor) : '';
    if ($option{f} && $percent < $floor) { print "UNDER ITS FLOOR: $name\n"; ++$bad }
    if ($option{u}) {
        my $now = $n ? int(100 * ($taken - ROOM) / $n) : 100;
        $floors[-1] = "$name $now" if $now > $floor;
    }
    $branches{$name} = \@unreached;
}
printf "%-46s %8d %8d %8.1f\n", 'all', $all, $all_taken, 100 * $all_taken / ($all || 1);

for my $name (sort keys %branches) {
    my $short = $name =~ s/.*\///r;
    my %seen;
    for (@{$branches{$name}}) {
        $seen{$_->{key}} = 1;
        if ($option{l}) { print "$name:$_->{line}: $_->{key}\n" }
        if ($option{a} && !$why{$short}{$_->{key}}) { print "NOT REACHED: $short $_->{key}\n"; ++$bad }
    }
    for (sort keys %{$why{$short} // {}}) {
        if (!$seen{$_} && $why{$short}{$_} !~ /^by chance: /) { print "REACHED, but listed: $short $_\n"; ++$bad }
    }
}
if ($option{u}) {
    open my $out, '>', "$folder/files.txt" or die "files.txt: $!\n";
    print $out map { "$_\n" } @floors;
    close $out or die "files.txt: $!\n";
}
exit($bad ? 1 : 0);
