#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# parameters-page.pl PAGE            says whether the parameter tables in docs/parameters.md are what the components
#                                    register (status 1 and the differing lines if not)
# parameters-page.pl --update PAGE   writes them
#
# The components are asked through ompi_info (environment OMPI_INFO, else PATH), which must find them:
# OMPI_MCA_mca_base_component_path. The tables stand between the markers "<!-- parameters FRAMEWORK COMPONENT -->" and
# "<!-- end -->".
use strict;
use warnings;

my $update = @ARGV && $ARGV[0] eq '--update' && shift @ARGV;
my $file = shift @ARGV;
die "usage: parameters-page.pl [--update] docs/parameters.md\n" if !defined $file || @ARGV;

sub table {
    my ($framework, $component) = @_;
    my $info = $ENV{OMPI_INFO} || 'ompi_info';
    open my $in, '-|', $info, '--parsable', '--param', $framework, $component, '--level', 9
        or die "parameters-page.pl: cannot run $info: $!\n";
    my (%value, %help, @order);
    while (<$in>) {
        next unless /^mca:$framework:$component:param:([a-z0-9_]+):(value|help):(.*)$/;
        my ($name, $what, $text) = ($1, $2, $3);
        $text =~ s/^"(.*)"$/$1/;
        $text =~ s/\|/\\|/g;
        if ($what eq 'value') { $value{$name} = $text; push @order, $name } else { $help{$name} = $text }
    }
    close $in;
    die "parameters-page.pl: $info lists no parameter of $framework $component: set "
        . "OMPI_MCA_mca_base_component_path\n" unless @order;
    my $table = "| parameter | default | meaning |\n|---|---|---|\n";
    $table .= "| `$_` | $value{$_} | " . ($help{$_} // '') . " |\n" for @order;
    return $table;
}

# Defaults, not what the environment of this moment says.
delete @ENV{grep { /^OMPI_MCA_(?:pml_bfo|btl_openib)_/ } keys %ENV};

open my $in, '<', $file or die "parameters-page.pl: cannot read $file: $!\n";
my $old = do { local $/; <$in> };
close $in;
my $count = 0;
(my $new = $old) =~ s{(<!-- parameters (\w+) (\w+) -->\n).*?(<!-- end -->\n)}{$count++; $1 . table($2, $3) . $4}gse;
die "parameters-page.pl: $file has no marker \"<!-- parameters FRAMEWORK COMPONENT -->\"\n" unless $count;
exit 0 if $new eq $old;
if ($update) {
    open my $out, '>', $file or die "parameters-page.pl: cannot write $file: $!\n";
    print $out $new;
    close $out or die "parameters-page.pl: cannot write $file: $!\n";
    exit 0;
}
my %is = map { $_ => 1 } split /\n/, $old;
my %be = map { $_ => 1 } split /\n/, $new;
print "- $_\n" for grep { !$be{$_} } split /\n/, $old;
print "+ $_\n" for grep { !$is{$_} } split /\n/, $new;
exit 1;
