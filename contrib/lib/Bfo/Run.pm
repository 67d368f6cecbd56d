# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What both scripts share: exit statuses, the tree named on the command line, texts. DESIGN.txt 18.1.
package Bfo::Run;
use strict;
use warnings;
use Exporter 'import';
use File::Basename qw(basename dirname);
use Bfo::Tree;
our @EXPORT_OK = qw(run_main check_options read_tree places_text to_json lines_must_name_something);

# run_main(MAIN, ARGUMENTS): ends with the status that MAIN returns, or with one message and status 2. A signal ends the script in
# the same way, so that temporary files are removed.
sub run_main {
    my ($main, @arguments) = @_;
    binmode STDOUT, ':encoding(UTF-8)';
    my $name = basename($0);
    for my $signal (grep { ($SIG{$_} // '') ne 'IGNORE' } qw(INT TERM HUP PIPE)) {
        $SIG{$signal} = sub { print STDERR "$name: ended by SIG$signal\n"; exit 2 };
    }
    my $warned = '';
    local $SIG{__WARN__} = sub { $warned .= "$_[0]" };
    my $status = eval { $main->(@arguments) };
    if (!defined $status) {
        my ($first) = split /\n/, $@ || 'it failed';
        $warned =~ s/\n(?=.)/, /g;
        chomp $warned;
        print STDERR "$name: " . ($warned ne '' && $first =~ /^see / ? "$warned: " : '') . "$first\n";
        exit 2;
    }
    print STDERR $warned if $warned ne '';
    exit $status;
}

# check_options(OPTIONS): the rules of the options that name trees and files.
sub check_options {
    my ($option) = @_;
    for my $name (grep { $_ ne 'json' } sort keys %$option) {
        die "--$name: an empty name\n" if $option->{$name} eq '';
    }
    die "--tree and --git exclude each other\n" if defined $option->{tree} && defined $option->{git};
    for my $name (grep { defined $option->{$_} } qw(from to)) { die "--$name needs --git\n" if !defined $option->{git} }
}

sub read_tree {
    my ($option, $map) = @_;
    return defined $option->{git} ? Bfo::Tree->from_git($option->{git}, $option->{to} // 'HEAD', $map->{watch})
                          : Bfo::Tree->from_dir($option->{tree});
}

# A line that was never compared must name a thing of the tree. A thing that was compared may be gone, because a release dropped it.
sub lines_must_name_something {
    my ($map, $facts, $tree) = @_;
    for my $place (grep { !$tree->has($_) } @{$map->{watch}{every}}, @{$map->{watch}{folders}}) {
        next if grep { defined $_->{record} && is_in($_, $place) } $map->entries;
        die "$map->{path}:$map->{line_of}{$place}: it names nothing: Open MPI $tree->{release} has no $place\n";
    }
    for my $pair ($map->pair(@$facts)) {
        my ($fact, $line) = @$pair;
        next if $fact || defined $line->{record};
        die "$map->{path}:$line->{number}: it names nothing: Open MPI $tree->{release} has no $line->{kind} $line->{name} in $line->{file}\n";
    }
}

# Does the line of the map belong to a thing of this file or folder?
sub is_in {
    my ($line, $place) = @_;
    return grep { "/$place" =~ m{/\Q$_\E\z} } $line->{file}, dirname($line->{file});
}

sub places_text {
    return map { my $name = $_->{piece}; $_->{file} ? "$_->{file}:$_->{line} $name" : "$name (bfo has no such piece)" } @_;
}

sub to_json {
    require JSON::PP;
    return JSON::PP->new->canonical->pretty->encode($_[0]);
}

1;
