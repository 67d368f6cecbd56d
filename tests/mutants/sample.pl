#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# sample.pl [--count K] [--seed N] [--worlds N] [--floor PERCENT] [--list] [FILE...]: makes mutants of the recovery files by simple rules, and asks
# the unit programs that are linked with the file, then N simulated jobs, then tests/fuzz, whether they notice. K mutants are drawn by the seed from those of all
# FILEs (default: tests/coverage/files.txt). Prints the mutants that survive: some mean the same as the code, each other one shows a hole in the
# tests. Fails if fewer than PERCENT of the mutants are caught. --list prints all mutants. Works in a copy below the current directory.
use strict;
use warnings;
use Getopt::Long;

my ($count, $seed, $worlds, $floor, $list) = (40, 1, 60, 0, 0);
GetOptions('count=i' => \$count, 'seed=i' => \$seed, 'worlds=i' => \$worlds, 'floor=i' => \$floor, 'list' => \$list) or die "sample.pl: see its head\n";
my $top = $ENV{BFO_SRCDIR} or die "source tests/env.sh of the build directory first\n";
my $build = $ENV{BFO_BUILDDIR};
my $work = "work-sample";
$| = 1;

sub lines_of { open my $in, '<', $_[0] or die "$_[0]: $!\n"; my @lines = <$in>; return @lines }

my @files = @ARGV ? @ARGV : map { /^(?!#)(\S+\.c) / } lines_of("$top/tests/coverage/files.txt");

# Each rule gets a line of a function and returns what stands in its place, or nothing.
my @rules = (
    ['condition negated', sub { $_[0] =~ s/^(\s+(?:\} else )?(?:if|while) \()(.*)(\) \{)$/$1!($2)$3/r }],
    ['call dropped',      sub { $_[0] =~ s/^(\s+)(?:\(void\) )?\w+\(.*\);$/$1;/r }],
    ['and becomes or',    sub { $_[0] =~ s/ && / || /r }],
    ['or becomes and',    sub { $_[0] =~ s/ \|\| / && /r }],
    ['bound moved',       sub { $_[0] =~ s/ (<|>)(=?) (?=[\w(])/ " $1" . ($2 ? '' : '=') . ' ' /er }],
    ['equal negated',     sub { $_[0] =~ s/ == / != /r }],
    ['off by one',        sub { $_[0] =~ s/ [+-] 1(?=[;)\]])//r }],
    ['other result',      sub { $_[0] =~ s/\breturn (true|false);/'return ' . ($1 eq 'true' ? 'false' : 'true') . ';'/er }],
    ['value dropped',     sub { $_[0] =~ s/^(\s+)[\w.>\[\]-]+ [|&+]?= [^;{]*;$/$1;/r }],
);

sub mutants_of {
    my ($file) = @_;
    my @lines = lines_of("$top/$file");
    my ($inside, $counts, @found) = (0, 0);
    for my $i (0 .. $#lines) {
        $counts = 1 if $lines[$i] =~ /^#if BFO_COUNT_ROWS/; # compiled for tests/sim/rows alone
        $counts = 0 if $lines[$i] =~ /^#(else|endif)/;
        $inside = 1 if $lines[$i] =~ /^\{/;
        $inside = 0 if $lines[$i] =~ /^\}/;
        chomp(my $line = $lines[$i]);
        $line =~ s/\s*\/\*.*//;
        next if !$inside || $counts || $line =~ /BFO_ASSERT|LOCK\(|_lock\(|_unlock\(|ofo_log\(|bfo_help_say|OBJ_|^#|^\s*for /;
        for my $rule (@rules) {
            my $other = $rule->[1]->($line);
            push @found, {file => $file, line => $i, rule => $rule->[0], is => $line, other => $other} if $other ne $line;
        }
    }
    return @found;
}

sub run {
    my ($log, @command) = @_;
    my $child = fork // die "fork: $!\n";
    if (!$child) {
        setpgrp;
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', $log or exit 127;
        open STDERR, '>&', \*STDOUT;
        exec @command or exit 127;
    }
    waitpid $child, 0;
    my $status = $?;
    kill -9, $child; # what a mutant has left running
    return $status;
}

sub shell { return run("$work/log", 'bash', '-c', ". '$work/build/tests/env.sh' && $_[0]") }

# The unit programs; a make of them rebuilds those that the file is linked with.
my @programs = map { s/.*\///r =~ s/\.c$//r } glob "$top/tests/unit/test_{bfo,ofo,fsm}_*.c";
sub make { return shell("make -s -k -C $work/build/btl_openib_failover libofo_pure.la && make -s -k -j2 -C $work/build/tests/unit @programs") }
# The PML in one process: kept inputs of the fuzzer, then step by step.
sub step { return shell("BFO_WORLD_CFLAGS=-w bash '$work/src/tests/fuzz/fuzz.sh' dispatch once || exit 1; for n in edges rejoin wait drain; do BFO_WORLD_CFLAGS=-w bash '$work/src/tests/fuzz/world.sh' world_\$n || exit 1; done") }
sub simulate { return shell("BFO_WORLD_CFLAGS='-O1 -w' timeout -k 5 300 bash '$work/src/tests/world/world.sh' --seeds $worlds --jobs 2") }

# By whom the mutant is caught, or nothing.
sub caught_by {
    my ($mutant) = @_;
    my $path = "$work/src/$mutant->{file}";
    my @lines = lines_of($path);
    my $caught;
    my $before = time;
    sleep 1; # what is built from now on is newer
    $lines[$mutant->{line}] = "$mutant->{other}\n";
    open my $out, '>', $path or die "$path: $!\n";
    print $out @lines;
    close $out;
    if (make()) {
        $caught = 'the compiler';
    } else {
        for my $program (grep { (stat "$work/build/tests/unit/$_")[9] > $before } @programs) {
            next if !run("$work/log", 'timeout', '-k', '5', '60', "$work/build/tests/unit/$program");
            $caught = $program;
            last;
        }
        $caught = 'the simulated jobs' if !defined $caught && simulate();
        $caught = 'a case of tests/fuzz' if !defined $caught && $mutant->{file} =~ /^pml_bfo/ && step();
    }
    $lines[$mutant->{line}] = "$mutant->{is}\n";
    open $out, '>', $path or die "$path: $!\n";
    print $out lines_of("$top/$mutant->{file}");
    close $out;
    return $caught;
}

my @all = map { mutants_of($_) } @files;
if ($list) {
    printf "%s:%d %s: %s\n", $_->{file}, $_->{line} + 1, $_->{rule}, $_->{other} =~ s/^\s+//r for @all;
    exit 0;
}
srand $seed;
my @drawn;
push @drawn, splice @all, int rand @all, 1 while @all && @drawn < $count;

system('rm', '-rf', "$work/src") == 0 && system('mkdir', '-p', "$work/src", "$work/build") == 0 or die "$work: no room\n";
$work = do { chomp(my $here = `pwd`); "$here/$work" };
system("cd '$top' && tar cf - --exclude=./.git --exclude=./build --exclude=autom4te.cache . | tar xf - -C '$work/src'") == 0 or die "no copy\n";
chomp(my $arguments = `'$build/config.status' --config` =~ s/'?--enable-werror'?//r); # a mutant may leave something unused
run("$work/log", 'bash', '-c', "cd '$work/build' && '$work/src/configure' -q $arguments && make -s -C include") && die "the copy does not build: $work/log\n";
(make() || simulate()) && die "the copy fails without a mutant: $work/log\n";
my $n_caught = 0;
for my $mutant (@drawn) {
    my $by = caught_by($mutant);
    my $text = sprintf '%s:%d %s: %s', $mutant->{file}, $mutant->{line} + 1, $mutant->{rule}, $mutant->{other} =~ s/^\s+//r;
    print defined $by ? "caught by $by: $text\n" : "SURVIVED $text\n";
    $n_caught += defined $by;
}
my $percent = @drawn ? 100 * $n_caught / @drawn : 100;
printf "%d mutants, seed %d: %d caught, %d survived\n", scalar @drawn, $seed, $n_caught, @drawn - $n_caught;
die sprintf "only %.0f %% were caught, fewer than %d %%\n", $percent, $floor if $percent < $floor;
