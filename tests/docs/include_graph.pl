#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# include_graph.pl DIR: looks for circles in the include graph of each component folder in DIR, which is an error; with INCLUDE_GRAPH_SHOW=1 it
# prints the graph as well. A unit is X.c with X.h; X knows Y if X.c or X.h includes Y.h (an X.def includes nothing). Units that reach each
# other form a circle: a reader of one of them must read all.
# Where a component has rooms, each room is a folder, and no unit includes a unit of a room further down.
# The list of declarations that stand elsewhere (%elsewhere) only tightens: an entry that is no longer needed is an error as well.
use strict;
use warnings;

my @folders = qw(btl_openib_failover pml_bfo softrail tools);

# Rooms: the table in the component's README.md names the units of each room; a unit may include units of its own room and of rooms above it.
my %has_rooms = (btl_openib_failover => 'btl_openib_', pml_bfo => 'pml_bfo_');

# Leaves, in folders without rooms: units that know only leaves.
my %leaves = (softrail => [qw(sr_faultplan sr_shm)]);

my ($dir) = @ARGV;
my $bad = 0;
sub complain { print "  $_[0]\n"; ++$bad }

sub slurp
{
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!\n";
    local $/;
    return scalar <$in>;
}

# The sources of a component, and the path of each of its files.
my %path_of;
sub sources
{
    my ($folder) = @_;
    my @paths = glob "$dir/$folder/" . ($has_rooms{$folder} ? '*/' : '') . '*.[ch]';

    $path_of{$folder} = { map { m{([^/]+)$} => $_ } @paths };
    return @paths;
}

# The units of a component, each with the units that it knows.
sub read_graph
{
    my ($folder) = @_;
    my (%knows, %text);

    for my $path (sources($folder)) {
        my ($file) = $path =~ m{([^/]+)$};
        $text{$file} = slurp($path);
        $knows{$file =~ s/\.[ch]$//r} ||= {};
    }
    for my $file (sort keys %text) {
        my $unit = $file =~ s/\.[ch]$//r;
        my %times;
        for my $included ($text{$file} =~ /^[ \t]*#[ \t]*include[ \t]+["<](?:[a-z]+\/)?([^">\/]+)[">]/mg) {
            complain("$folder/$file includes $included twice") if 2 == ++$times{$included} && $included !~ /\.def$/;
            next if !exists $text{$included} || $included eq "$unit.h";
            $knows{$unit}{$included =~ s/\.h$//r} ||= $file;
        }
    }
    return \%knows;
}

# The units that a unit reaches, each with the unit before it on a shortest path.
sub reached
{
    my ($knows, $from) = @_;
    my (%before, @queue);

    @queue = ($from);
    while (defined(my $unit = shift @queue)) {
        for my $next (sort keys %{ $knows->{$unit} }) {
            next if exists $before{$next};
            $before{$next} = $unit;
            push @queue, $next;
        }
    }
    return \%before;
}

# Circles: lists of units that reach each other.
sub circles
{
    my ($knows) = @_;
    my (@circles, %done);
    my %reached = map { $_ => reached($knows, $_) } keys %$knows;

    for my $unit (sort keys %$knows) {
        next if $done{$unit} || !exists $reached{$unit}{$unit};
        my @circle = grep { exists $reached{$unit}{$_} && exists $reached{$_}{$unit} } sort keys %$knows;
        $done{$_} = 1 for @circle;
        push @circles, \@circle;
    }
    return sort { @$b <=> @$a } @circles;
}

# The shortest paths from each unit of a circle back to itself, the shortest first.
sub shortest_chains
{
    my ($knows, $circle) = @_;
    my (@chains, %seen);

    for my $unit (@$circle) {
        my $before = reached($knows, $unit);
        my @chain = ($unit);
        for (my $at = $before->{$unit}; $at ne $unit; $at = $before->{$at}) {
            unshift @chain, $at;
        }
        push @chains, [$unit, @chain] if !$seen{join ' ', sort @chain}++;
    }
    return map { join ' -> ', @$_ } sort { @$a <=> @$b || "@$a" cmp "@$b" } @chains;
}

# A header declares only what the .c file of its own unit defines: otherwise one header that all units include would hide which unit knows which.
my %elsewhere = (
    btl_openib_wire          => ['btl_openib_record'],
    pml_bfo                  => ['pml_bfo_device'],          # bfo_buffer_is_on_device(), which an inline function calls
    pml_bfo_failover_fire    => ['pml_bfo_tell'],            # what a fired row calls, beside the actions, to trace its step
    pml_bfo_local            => ['pml_bfo_tell'],            # bfo_stat_drop() counts and reports
    pml_bfo_sync             => ['pml_bfo_local'],           # bfo_lock_wait(): _sync.h has no .c file
    sr_cm                    => [map { "sr_cm_$_" } qw(address event qp sync)],    # the rooms of librdmacm's calls, and the rooms
    sr_command               => ['softrail', map { "sr_cmd_$_" } qw(run status rail fault)],    # of the command
    sr_fabric                => ['sr_sysfs'],
    sr_process               => ['sr_arena'],
);
# Each header of the command bfo serves several .c files, one for each subcommand or concern, and any .c file of the folder may define what it declares.
my %serves_all = (tools => 1);
sub check_offers
{
    my ($folder) = @_;
    my %code = map { m{([^/]+)\.c$} => slurp($_) } grep { /\.c$/ } sources($folder);

    for my $path (grep { /\.h$/ } sources($folder)) {
        my ($unit) = $path =~ m{([^/]+)\.h$};
        my @others = $serves_all{$folder} ? sort keys %code : @{ $elsewhere{$unit} || [] };
        my $text = slurp($path) =~ s{/\*.*?\*/}{}gsr;
        my %needed;
        while ($text =~ /^(?!static|typedef|extern)[a-z][^;{}#]*?\b(\w+)\([^;{}]*\)[^;{}]*;/mg) {
            my $function = $1;
            my ($in) = grep { exists $code{$_} && $code{$_} =~ /^[a-z][^\n;]*\b$function\(/m } $unit, @others;
            my $which = $serves_all{$folder} ? 'no .c file defines' : "$unit.c does not define";
            complain("$folder/$unit.h declares $function(), which $which") if !defined $in;
            ++$needed{$in} if defined $in;
        }
        for my $other (@{ $elsewhere{$unit} || [] }) {
            complain("$folder/$unit.h declares nothing of $other.c: its entry in %elsewhere need not be there") if !$needed{$other};
        }
    }
}

# The place of each unit in the table of rooms, and the name of its room.
sub read_rooms
{
    my ($folder, $prefix) = @_;
    my (%place, %room, $row);

    for (split /\n/, slurp("$dir/$folder/README.md")) {
        my ($name, $files) = /^\| ([a-z ]+) \| (`[^|]*) \|/ or next;
        ++$row;
        for my $unit (map { (-e "$dir/$folder/$name/$_" ? '' : $prefix) . s/\.\w+$//r } $files =~ /`([^`]+\.[ch])`/g) {
            complain("$folder: $unit is in two rooms, $room{$unit} and $name") if exists $room{$unit} && $room{$unit} ne $name;
            ($place{$unit}, $room{$unit}) = ($row, $name);
        }
    }
    complain("$folder/README.md has no table of rooms") if 3 > ($row || 0);
    return (\%place, \%room);
}
sub check_rooms
{
    my ($folder, $knows) = @_;
    my ($place, $room) = read_rooms($folder, $has_rooms{$folder});

    for my $unit (sort keys %$knows) {
        my ($in) = map { m{([^/]+)/[^/]+$} } grep { defined } @{ $path_of{$folder} }{"$unit.c", "$unit.h"};
        complain("$folder: $unit is in no room of README.md") if !exists $place->{$unit};
        complain("$folder/$in: README.md says that $unit is in $room->{$unit}") if exists $place->{$unit} && $in ne $room->{$unit};
        for my $known (sort keys %{ $knows->{$unit} }) {
            next if ($place->{$known} || 0) <= ($place->{$unit} || 0);
            complain("$folder/$knows->{$unit}{$known}, room $room->{$unit}, includes $known.h of the room $room->{$known}, further down");
        }
    }
}

my %is_seen;
for my $folder (@folders) {
    my $knows = read_graph($folder);
    my %is_leaf = map { $_ => 1 } @{ $leaves{$folder} };

    printf "%s: %d units\n", $folder, scalar keys %$knows;
    die "found few units in $dir/$folder\n" if 20 > keys %$knows;
    for my $circle (circles($knows)) {
        complain("$folder: a circle of " . @$circle . ": @$circle");
        print "    $_\n" for shortest_chains($knows, $circle);
    }
    check_offers($folder);
    ++$is_seen{$_} for keys %$knows;
    check_rooms($folder, $knows) if $has_rooms{$folder};
    for my $leaf (sort keys %is_leaf) {
        complain("$folder has no unit $leaf") if !exists $knows->{$leaf};
        complain("$folder: the leaf $leaf includes $_.h, in $knows->{$leaf}{$_}") for grep { !$is_leaf{$_} } sort keys %{ $knows->{$leaf} };
    }
    if ($ENV{INCLUDE_GRAPH_SHOW}) {
        print "  $_: @{[sort keys %{ $knows->{$_} }]}\n" for sort keys %$knows;
    }
}
complain("no folder has the unit $_ of %elsewhere") for grep { !$is_seen{$_} } sort keys %elsewhere;
exit($bad ? 1 : 0);
