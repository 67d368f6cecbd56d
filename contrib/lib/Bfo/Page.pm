# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What the scripts *-page.pl share: a page of documentation has marked places whose text a script generates.
package Bfo::Page;
use strict;
use warnings;
use Exporter 'import';
use File::Basename qw(basename);
our @EXPORT_OK = qw(read_page finish_page);

sub read_page {
    my ($page) = @_;
    open my $in, '<', $page or die basename($0) . ": cannot read $page: $!\n";
    local $/;
    return scalar <$in>;
}

# finish_page(PAGE, OLD, NEW, UPDATE): with UPDATE writes the page; otherwise prints the lines that differ, and ends with status 1 if there are any.
sub finish_page {
    my ($page, $old, $new, $update) = @_;
    exit 0 if $new eq $old;
    if ($update) {
        open my $out, '>', $page or die basename($0) . ": cannot write $page: $!\n";
        print $out $new;
        close $out or die basename($0) . ": cannot write $page: $!\n";
        exit 0;
    }
    my %is = map { $_ => 1 } split /\n/, $old;
    my %be = map { $_ => 1 } split /\n/, $new;
    print "- $_\n" for grep { !$be{$_} } split /\n/, $old;
    print "+ $_\n" for grep { !$is{$_} } split /\n/, $new;
    exit 1;
}

1;
