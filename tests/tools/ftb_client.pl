#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# ftb_client.pl SOCKET KIND ...: badly behaved clients of the server of fault events.
#   slow GO OUT       subscribes to FLOOD, reads nothing until the file GO exists, then writes what it reads to OUT
#   flood N OUT       publishes N events FLOOD, reads the answers, and writes to OUT how many were "ok"
#   deaf OUT          publishes without reading an answer until the server takes nothing more, makes OUT, and stays
#   silent N OUT      makes N connections and sends nothing; writes to OUT a line for each: the server's answer, or "closed"
#   send OUT          sends its stdin, and writes the answer to OUT
use strict;
use warnings;
use IO::Select;
use IO::Socket::UNIX;
$SIG{PIPE} = 'IGNORE';

my ($path, $kind, @rest) = @ARGV;
sub connection { return IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $path) || die "$path: $!\n" }

sub append
{
    my ($file, $text) = @_;
    open my $out, '>>', $file or die "$file: $!\n";
    print $out $text;
    close $out;
}

my $fill = 'x' x 500;
if ($kind eq 'slow') {
    my ($go, $out) = @rest;
    my $server = connection();
    print $server "subscribe FLOOD\n";
    my $ok = <$server>;
    append($out, $ok);
    select undef, undef, undef, 0.05 while !-e $go;
    append($out, $_) while <$server>;
} elsif ($kind eq 'flood') {
    my ($n, $out) = @rest;
    my $server = connection();
    my ($sent, $ok) = (0, 0);
    while ($ok < $n) {
        my $end = $sent + 20 < $n ? $sent + 20 : $n;
        print $server "publish a.test info FLOOD n: $_, fill: $fill\n" for $sent + 1 .. $end;
        $server->flush;
        for ($sent + 1 .. $end) {
            my $answer = <$server> // die "the server has gone\n";
            $answer eq "ok\n" or die "the server says $answer";
            ++$ok;
        }
        $sent = $end;
    }
    append($out, "$ok\n");
} elsif ($kind eq 'deaf') {
    my $server = connection();
    my $line = "publish a.test info DEAF fill: $fill\n";
    $server->blocking(0);
    my $may_write = IO::Select->new($server);
    while ($may_write->can_write(2)) {
        my $n = syswrite $server, $line;
        last if !defined $n && !$!{EAGAIN};
        $line = substr($line, $n) . $line if defined $n && $n < length $line;
    }
    append($rest[0], "full\n");
    sleep 1000;
} elsif ($kind eq 'silent') {
    my ($n, $out) = @rest;
    my @server = map { connection() } 1 .. $n;
    append("$out.all", "$n\n");
    my $all = IO::Select->new(@server);
    while ($all->count) {
        for my $server ($all->can_read) {
            my $line = <$server>;
            append($out, $line // "closed\n");
            $all->remove($server) if !defined $line;
        }
    }
} else {
    my $server = connection();
    local $/;
    my $text = <STDIN>;
    syswrite $server, $text;
    shutdown $server, 1;
    my $answer = <$server>;
    append($rest[0], $answer // '');
}
