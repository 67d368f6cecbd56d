# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What both scripts share: exit statuses, the tree named on the command line, texts. DESIGN.txt 18.1.
package Bfo::Run;
use strict;
use warnings;
use Exporter 'import';
use File::Basename 'basename';
use Bfo::Tree;
our @EXPORT_OK = qw(run_main check_options read_tree places_text to_json new_lines_that_name_nothing);

# run_main(MAIN, ARGUMENTS): ends with what MAIN returns, or with one message and status 2.
sub run_main {
    my ($main, @arguments) = @_;
    binmode STDOUT, ':encoding(UTF-8)';
    my $warned = '';
    local $SIG{__WARN__} = sub { $warned .= "$_[0]" };
    my $status = eval { $main->(@arguments) };
    if (!defined $status) {
        my ($first) = split /\n/, $@ || 'it failed';
        $warned =~ s/\n(?=.)/, /g;
        chomp $warned;
        print STDERR basename($0) . ': ' . ($warned ne '' && $first =~ /^see / ? "$warned: " : '') . "$first\n";
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

# A line that was never compared must name a thing of the tree.
sub new_lines_that_name_nothing {
    my ($map, $facts, $release) = @_;
    for my $pair ($map->pair(@$facts)) {
        my ($fact, $line) = @$pair;
        next if $fact || defined $line->{record};
        die "$map->{path}:$line->{number}: it names nothing: Open MPI $release has no $line->{kind} $line->{name} in $line->{file}\n";
    }
}

sub places_text {
    return map { my $name = $_->{piece}; $_->{file} ? "$_->{file}:$_->{line} $name" : "$name (ours has none any more)" } @_;
}

sub to_json {
    require JSON::PP;
    return JSON::PP->new->canonical->pretty->encode($_[0]);
}

1;
