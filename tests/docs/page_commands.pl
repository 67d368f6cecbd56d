#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# page_commands.pl LIST PAGE... -- PAGE...: checks that the commands on pages exist. Each `bfo ...` and `softrail ...`, in backticks or in a block,
# names a subcommand that the command's --help lists, with options that the subcommand's --help lists. Each command in a block of the pages before
# -- is in LIST, and each line of LIST is on one of these pages. LIST: "HOW | COMMAND", where HOW is
#   run [WORDS]  the caller runs the command, after WORDS, which give the command what it needs here
#   test SCRIPT  the script runs the command: it exists, and contains the words in "..." after its name
#   nodes, hardware, batch   the command cannot be run here
# Prints one line for each command to be run. The status is 1 after any complaint.
use strict;
use warnings;

my ($list, @pages) = @ARGV;
die "usage: page_commands.pl LIST PAGE... -- PAGE...\n" unless 2 < @ARGV && grep { $_ eq '--' } @pages;
my $must_be_listed = 1;
my $wrong = 0;
sub complain { print STDERR "  @_\n"; $wrong = 1; }

my (%help, %how, %seen, @run);
sub help_of {
    my @words = @_;
    return $help{"@words"} //= do {
        my $text = qx(@words --help 2>&1 </dev/null);
        $? == 0 ? $text : '';
    };
}

open my $in, '<', $list or die "$list: $!\n";
while (<$in>) {
    next if /^#/ || !/\S/;
    chomp;
    my ($how, $command) = /^(\S.*?) \| (.*)$/ or die "$list:$.: not HOW | COMMAND\n";
    $how{$command} = $how;
}
close $in;

# Checks the options and the subcommand of one of our commands.
sub check_words {
    my ($where, $text) = @_;
    $text =~ s/'[^']*'|"[^"]*"/QUOTED/g;
    $text =~ s/ -- .*//;    # the rest is for another command
    my ($name, @words) = split ' ', $text;
    $name =~ s{.*/}{};
    my $sub = @words && $words[0] =~ /^[a-z]+$/ ? shift @words : undef;
    return unless defined $sub;
    help_of($name) =~ /^  \Q$sub\E\s/m or return complain("$where: '$text': $name has no '$sub'");
    return if "$name $sub" eq 'bfo run';    # what follows is mpirun's
    my @command = ($name, $sub);
    if ("$name $sub" eq 'bfo ftb' && @words && $words[0] =~ /^[a-z]+$/) {
        $sub = shift @words;
        help_of(@command) =~ /\b\Q$sub\E\b/ or return complain("$where: '$text': @command has no '$sub'");
        push @command, $sub;
    }
    for my $word (@words) {
        my ($option) = $word =~ /^(--?[a-z][a-z-]*)/ or next;
        help_of(@command) =~ /(^|[\s,])\Q$option\E([=,\s\[]|$)/m or complain("$where: '$text': @command has no option $option");
    }
}

for my $page (@pages) {
    if ($page eq '--') { $must_be_listed = 0; next }
    open my $text, '<', $page or die "$page: $!\n";
    while (my $line = <$text>) {
        chomp $line;
        my $where = "$page:$.";
        while ($line =~ /`((?:bfo|softrail) [^`]*)`/g) {
            check_words($where, $1);
        }
        next unless $must_be_listed && $line =~ /^    (\$ )?(\S.*)$/;
        my ($prompt, $command) = ($1, $2);
        $command =~ s/\s{2,}#.*//;
        $command =~ s/\s+#.*// if $command =~ m{^\./};
        $command =~ s/ \\$//;
        next unless $prompt || exists $how{$command}
            || $command =~ m{^(?:\S*/)?(?:bfo|softrail|mpirun|module|make|gdb|timeout|dpkg-buildpackage|apt|bash|\./\w+\.sh)(?: |$)} && $command !~ /^bfo \d/;
        my $how = $how{$command};
        defined $how or complain("$where: '$command' is not in the list") and next;
        $seen{$command} = 1;
        check_words($where, $1) if $command =~ m{((?:^|\S*/)(?:bfo|softrail) .*)};
        if ($how =~ /^run(?: (.+))?$/) {
            push @run, (defined $1 ? "$1 " : '') . $command;
        } elsif ($how =~ /^test (\S+)((?: "[^"]+")+)$/) {
            my ($script, $words) = ($1, $2);
            open my $code, '<', $script or complain("$where: '$command': no test $script") and next;
            my $all = do { local $/; <$code> };
            while ($words =~ /"([^"]+)"/g) {
                index($all, $1) >= 0 or complain("$where: '$command': $script does not have: $1");
            }
        } elsif ($how !~ /^(?:nodes|hardware|batch)$/) {
            complain("$list: '$how' is no way to see a command");
        }
    }
    close $text;
}
$seen{$_} or complain("$list: no page shows '$_'") for sort keys %how;
print "$_\n" for @run;
exit $wrong;
