#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# cut_softrail.pl KIND RAIL: breaks a rail of softrail(1), or mends it, for railfail(1). SOFTRAIL_FABRIC names the fabric; SOFTRAIL names the
# command softrail, which is otherwise that of PATH.
#   down     the cable is pulled, for all processes       peer     the cable is pulled, for one process
#   silent   everything is dropped, ports stay up         gone     the adapter is taken away for good
#   lossy    every 500th message is lost                  corrupt  every 500th message has a wrong byte
#   slow     1 ms more for each message                   up       mends all kinds except gone
use strict;
use warnings;
use JSON::PP;

my $softrail = $ENV{SOFTRAIL} // 'softrail';
my $fabric = $ENV{SOFTRAIL_FABRIC};
sub give_up { print STDERR "cut_softrail.pl: @_\n"; exit 1 }

@ARGV == 2 && $ARGV[1] =~ /^[A-Za-z0-9_:.]+$/ or do { print STDERR "usage: cut_softrail.pl down|peer|silent|gone|lossy|corrupt|slow|up RAIL\n"; exit 2 };
my ($kind, $rail) = @ARGV;
defined $fabric or give_up('SOFTRAIL_FABRIC names no fabric: it is for jobs that "softrail run" starts');

sub softrail
{
    my @words = ($softrail, @_, '--fabric', $fabric);
    0 == system(@words) or give_up("'@words' has failed");
}

# The number of a process that is not the first; the fabric counts the processes that have opened a device.
sub a_process
{
    open my $in, '-|', $softrail, 'status', '--json', '--fabric', $fabric or give_up("$softrail: $!");
    my $text = do { local $/; <$in> };
    my $processes = (eval { decode_json($text) } // {})->{processes} // [];
    @$processes or give_up("fabric $fabric has no process");
    return $processes->[-1]{process};
}

if ('peer' eq $kind) { softrail('down', $rail, '--process', a_process()) }
elsif ($kind =~ /^(down|silent|gone)$/) { softrail($kind, $rail) }
elsif ('lossy' eq $kind) { softrail('fault', "lose rail=$rail op=send chance=0.2%") }
elsif ('corrupt' eq $kind) { softrail('fault', "corrupt rail=$rail op=send at=600 chance=0.2%") }
elsif ('slow' eq $kind) { softrail('set', $rail, '--latency', '1ms') }
elsif ('up' eq $kind) { softrail('up', $rail); softrail('fault', '--clear'); softrail('set', $rail, '--latency', '0') }
else { give_up("no such kind: $kind; kinds: down peer silent gone lossy corrupt slow up") }
