#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# parameters-page.pl PAGE            tests whether docs/parameters.md or docs/bfo-params.7 agrees with the parameters that the
#                                    components register (status 1 and the differing lines if not)
# parameters-page.pl --update PAGE   writes the parameters
#
# The script asks the components through ompi_info (environment OMPI_INFO, otherwise PATH), which must find them:
# OMPI_MCA_mca_base_component_path. A table of a .md is between the markers "<!-- parameters FRAMEWORK COMPONENT -->" and
# "<!-- end -->", a list of a man page between the comments ".\" parameters FRAMEWORK COMPONENT" and ".\" end".
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Bfo::Page qw(read_page finish_page);

my $update = @ARGV && $ARGV[0] eq '--update' && shift @ARGV;
my $file = shift @ARGV;
die "usage: parameters-page.pl [--update] docs/parameters.md|docs/bfo-params.7\n" if !defined $file || @ARGV;
my $is_man = $file =~ /\.[1-8]$/;

# in_roff(TEXT): TEXT as a line of a man page.
sub in_roff {
    my ($text) = @_;
    $text =~ s/\\/\\e/g;
    $text =~ s/-/\\-/g;
    $text =~ s/^([.'])/\\&$1/;
    return $text;
}

# parameters(FRAMEWORK, COMPONENT): returns the names in order, and two hashes with the defaults and the meanings.
sub parameters {
    my ($framework, $component) = @_;
    my $info = $ENV{OMPI_INFO} || 'ompi_info';
    open my $in, '-|', $info, '--parsable', '--param', $framework, $component, '--level', 9
        or die "parameters-page.pl: cannot run $info: $!\n";
    my (%value, %help, @order);
    while (<$in>) {
        next unless /^mca:$framework:$component:param:([a-z0-9_]+):(value|help):(.*)$/;
        my ($name, $what, $text) = ($1, $2, $3);
        $text =~ s/^"(.*)"$/$1/;
        if ($what eq 'value') { $value{$name} = $text; push @order, $name } else { $help{$name} = $text }
    }
    close $in;
    die "parameters-page.pl: $info lists no parameter of $framework $component: set "
        . "OMPI_MCA_mca_base_component_path\n" unless @order;
    return \@order, \%value, \%help;
}

sub table {
    my ($order, $value, $help) = parameters(@_);
    my $table = "| parameter | default | meaning |\n|---|---|---|\n";
    for my $name (@$order) {
        my $meaning = ($help->{$name} // '') =~ s/\|/\\|/gr;
        $table .= "| `$name` | $value->{$name} | $meaning |\n";
    }
    return $table;
}

sub list {
    my ($order, $value, $help) = parameters(@_);
    my $list = '';
    for my $name (@$order) {
        my $default = $value->{$name} eq '' ? '' : ' (' . in_roff($value->{$name}) . ')';
        $list .= ".TP\n\\fB$name\\fR$default\n" . in_roff($help->{$name} // '') . "\n";
    }
    return $list;
}

# The page shows defaults, not values of the present environment.
delete @ENV{grep { /^OMPI_MCA_(?:pml_bfo|btl_openib)_/ } keys %ENV};

my $old = read_page($file);
my $count = 0;
my $new = $old;
if ($is_man) {
    $new =~ s{(\.\\" parameters (\w+) (\w+)\n).*?(\.\\" end\n)}{$count++; $1 . list($2, $3) . $4}gse;
} else {
    $new =~ s{(<!-- parameters (\w+) (\w+) -->\n).*?(<!-- end -->\n)}{$count++; $1 . table($2, $3) . $4}gse;
}
die "parameters-page.pl: $file has no marker of parameters\n" unless $count;
finish_page($file, $old, $new, $update);
