#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# boot.pl FOLDER NODES LINK...: starts the machines. FOLDER/command.NODE has one word of the command per line; boot.pl
# replaces "@LINK@" by the number of an open socket, the end of node1 or of the other machine (LINK is NET.NODE).
# It uses socket pairs, because a socket that QEMU 7.2 itself has accepted blocks the whole QEMU when the peer does not
# read. Writes FOLDER/pid.NODE, and ends when all machines have ended. DESIGN.txt 17.
use strict;
use warnings;
use Fcntl;
use Socket;

my ($dir, $nodes, @links) = @ARGV;
my (%near, %far, %pid);

for my $link (@links) {
    socketpair($near{$link}, $far{$link}, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die "boot.pl: socketpair: $!\n";
}

# Returns this node's end of a link, if the node has one.
sub own_end {
    my ($node, $link) = @_;
    return $near{$link} if 1 == $node;
    return $link =~ /\.$node$/ ? $far{$link} : undef;
}

sub run_machine {
    my ($node) = @_;
    open(my $in, '<', "$dir/command.$node") or die "boot.pl: $dir/command.$node: $!\n";
    chomp(my @words = <$in>);
    close($in);
    for my $link (@links) {
        my $end = own_end($node, $link) or next;
        fcntl($end, F_SETFD, 0) or die "boot.pl: fcntl: $!\n";
        my $fd = fileno($end);
        s/\@\Q$link\E\@/$fd/ for @words;
    }
    exec('setpriv', '--pdeathsig', 'KILL', @words) or die "boot.pl: $words[0]: $!\n";
}

for my $node (1 .. $nodes) {
    $pid{$node} = fork() // die "boot.pl: fork: $!\n";
    run_machine($node) if 0 == $pid{$node};
}
close($_) for values %near, values %far;
for my $node (1 .. $nodes) {
    open(my $out, '>', "$dir/pid.$node.new") or die "boot.pl: $dir/pid.$node: $!\n";
    print $out "$pid{$node}\n";
    close($out);
    rename("$dir/pid.$node.new", "$dir/pid.$node");
}
$SIG{TERM} = sub { kill 'TERM', values %pid };
1 while wait() != -1 || $!{EINTR};
