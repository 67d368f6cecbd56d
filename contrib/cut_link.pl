#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# cut_link.pl down|up PORT: takes the network interface of an RDMA port (mlx5_0:1; RoCE, also soft-RoCE) down, or up again, for `bfo check --cut`.
# NEVER CUT A PORT THAT CARRIES STORAGE, or the network over which you reach the node. The script refuses the interface of a default route.
# It needs root:  bfo check --cut 'sudo -n .../cut_link.pl' -- -np 2 -H node1,node2
# An interface that goes down loses its IPv6 addresses, and routes that were added by hand; sysctl net.ipv6.conf.INTERFACE.keep_addr_on_down=1
# keeps the addresses. An InfiniBand port has no such interface: disable its switch port (ibportstate(8)) instead.
use strict;
use warnings;

my $root = $ENV{SYSFS_PATH} || '/sys';    # as in libibverbs

sub give_up { print STDERR "cut_link.pl: @_\n"; exit 1 }

# Returns the first line of a file; undef if it cannot be read.
sub line_of
{
    my ($path) = @_;
    open my $in, '<', $path or return undef;
    my $line = <$in>;
    chomp $line if defined $line;
    return $line;
}

# Returns the interface of the first GID of the port that has an interface; otherwise the only interface of the device.
sub interface_of
{
    my ($device, $port) = @_;
    my $base = "$root/class/infiniband/$device";
    -d "$base/ports/$port" or give_up("there is no port $device:$port in $root/class/infiniband");
    'Ethernet' eq (line_of("$base/ports/$port/link_layer") // '') or give_up("$device:$port is no port of RoCE: disable its switch port instead");
    for my $path (sort { ($a =~ /(\d+)$/)[0] <=> ($b =~ /(\d+)$/)[0] } glob "$base/ports/$port/gid_attrs/ndevs/*") {
        my $name = line_of($path);
        return $name if defined $name && '' ne $name;
    }
    my @names = map { m{([^/]+)$} } glob "$base/device/net/*";
    1 == @names or give_up("the interface of $device:$port is not known");
    return $names[0];
}

@ARGV == 2 && $ARGV[0] =~ /^(down|up)$/ && $ARGV[1] =~ /^([A-Za-z0-9_.-]+):([0-9]+)$/ && $ARGV[1] !~ /^[-.]/
    or do { print STDERR "usage: cut_link.pl down|up PORT   (mlx5_0:1)\n"; exit 2 };
my $interface = interface_of($ARGV[1] =~ /^(.*):(.*)$/);
if ('down' eq $ARGV[0]) {
    for my $words (['-4'], ['-6']) {
        open my $in, '-|', 'ip', @$words, 'route', 'show', 'default' or give_up("ip: $!");
        my @routes = <$in>;
        close $in or give_up("ip @$words route show default has failed");
        grep { / dev \Q$interface\E / } map { s/$/ /r } @routes and give_up("$interface has a default route: it is not cut");
    }
}
print "ip link set dev $interface $ARGV[0]\n";
exec 'ip', 'link', 'set', 'dev', $interface, $ARGV[0] or give_up("ip: $!");
