#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# messages-page.pl MESSAGES PAGE            tests whether the list of messages in a man page (docs/bfo.7) agrees with the table of docs/messages.md
#                                           (status 1 and the differing lines if not)
# messages-page.pl --update MESSAGES PAGE   writes the list
#
# The list is between the comments ".\" messages" and ".\" end" of the man page. Each row of the table has words of the message, its meaning,
# and what to do.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Bfo::Page qw(read_page finish_page);

my $update = @ARGV && $ARGV[0] eq '--update' && shift @ARGV;
die "usage: messages-page.pl [--update] docs/messages.md docs/bfo.7\n" if @ARGV != 2;
my ($messages, $page) = @ARGV;

# in_roff(TEXT, FONT): the text of a cell, in this font; text in backquotes is bold.
sub in_roff {
    my ($text, $font) = @_;
    $text =~ s/\\/\\e/g;
    $text =~ s/-/\\-/g;
    $text =~ s/`([^`]*)`/\\fB$1\\f$font/g;
    $text =~ s/^([.'])/\\&$1/;
    return $text;
}

open my $in, '<', $messages or die "messages-page.pl: cannot read $messages: $!\n";
my ($inside, $list, $rows) = (0, '', 0);
while (<$in>) {
    $inside = 1 if /^\| message \| meaning \| what to do \|$/;
    $inside = 0 unless /^\|/;
    next if !$inside || /^\|(?:---| message )/;
    my @cell = map { s/^\s+|\s+$//gr } split /\|/, $_, -1;
    die "messages-page.pl: $messages:$.: this row has not three cells\n" unless @cell == 5;
    my (undef, $words, $meaning, $remedy) = @cell;
    $list .= ".TP\n\\fB" . in_roff($words, 'B') . "\\fR\n" . in_roff($meaning =~ /^(?:bfo|hcoll)\b/ ? $meaning : ucfirst $meaning, 'R') . ".\n";
    $list .= ".br\nWhat to do: " . in_roff($remedy, 'R') . ".\n" if $remedy ne '';
    $rows++;
}
close $in;
die "messages-page.pl: $messages has no table of messages\n" unless $rows;

my $old = read_page($page);
my $new = $old;
$new =~ s{(\.\\" messages\n).*?(\.\\" end\n)}{$1$list$2}s or die "messages-page.pl: $page has no place for the messages\n";
finish_page($page, $old, $new, $update);
