#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The fault matrix over software rails. Runs the cells of a set, a few at a time, writes one line for each cell into a file, and
# prints the table. Called again with the same file, it runs only the cells that are missing or failed. DESIGN.txt section 13.
#   matrix.pl [--set fast|all] [--only REGEX] [--jobs N] [--seed N] [--results FILE] [--limit SECONDS] [--fresh] [--stop] [--cell-limit SECONDS] [--list]
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Digest::MD5;
use File::Path qw(make_path remove_tree);
use Getopt::Long;
use POSIX ();
use Time::HiRes qw(time);
use Cell;
use Cells;
use Job;

# A cell counts the rails that its own fault takes. Therefore the deadline is long here, so that it does not end a rail whose peer had no
# processor for a quarter of a second. tests/mpi/test_pml_silence.sh tests the deadline.
$ENV{OMPI_MCA_btl_openib_deadline} //= 10000;

my %opt = (set => 'fast', jobs => 2, seed => 1, only => '.', results => '', limit => 0);
GetOptions(\%opt, 'set=s', 'only=s', 'jobs=i', 'seed=i', 'results=s', 'limit=i', 'list', 'fresh', 'stop', 'cell-limit=i') or exit 2;
my @cells = grep { $_->{id} =~ /$opt{only}/ } $opt{set} eq 'all' ? Cells::all($opt{seed}) : Cells::fast($opt{seed});
die "no cell matches --only $opt{only}\n" unless @cells;
sub describe { my ($c) = @_; return $c->{why} ? "n/a: $c->{why}" : join ' ', map { "$_=$c->{$_}" } @Cells::axes }
if ($opt{list}) {
    print map { "$_->{id}\t" . describe($_) . "\n" } @cells;
    exit 0;
}
$Cell::limit = $opt{'cell-limit'} if $opt{'cell-limit'};
my $build = $ENV{BFO_BUILDDIR} or die "source tests/env.sh of the build directory first\n";
my $work = ($ENV{TMPDIR} // '/tmp') . "/bfo-matrix.$$";
my $results = $opt{results} || "$work.tsv";
my $begin = time;

# A result is valid only for this seed, these binaries and these files of the test.
sub stamp {
    my $md5 = Digest::MD5->new;
    for my $file ("$build/pml_bfo/.libs/mca_pml_bfo.so", "$build/btl_openib_failover/.libs/mca_btl_openib.so",
                  "$build/softrail/.libs/libsoftrail.so", "$build/softrail/softrail", "$build/tests/sim/matrix/traffic",
                  map { "$FindBin::Bin/$_" } qw(Cells.pm Cell.pm Job.pm)) {
        open my $in, '<', $file or die "$file: $! (make check builds it)\n";
        binmode $in;
        $md5->addfile($in);
    }
    return "# seed $opt{seed} build " . $md5->hexdigest . "\n";
}

# id => [verdict, n, seconds, detail] of an earlier run with the same stamp.
# A cell that failed runs again, and its line says how often it failed before.
my (%done, %before);
my $stamp = stamp();
if (!$opt{fresh} && open my $in, '<', $results) {
    if ((my $line = <$in> // '') eq $stamp) {
        while (<$in>) {
            chomp;
            my ($id, @rest) = split /\t/, $_, 5;
            next if @rest < 3;
            if ($rest[0] eq 'failed') { $before{$id} = [@rest]; delete $done{$id} }
            else { $done{$id} = \@rest }
        }
    }
}
open my $out, '>', $results or die "$results: $!\n";
$out->autoflush(1);
print $out $stamp, map { join("\t", $_, @{ $done{$_} }) . "\n" } sort keys %done;
print $out map { join("\t", $_, @{ $before{$_} }) . "\n" } grep { !$done{$_} } sort keys %before;

my $failures = 0;
sub keep {
    my ($c, $verdict, $n, $seconds, $detail, $job) = @_;
    if (my $last = $before{ $c->{id} }) {
        my ($times) = ($last->[3] // '') =~ /failed before: (\d+)/;
        $detail .= ', failed before: ' . (1 + ($times // 0));
    }
    $done{ $c->{id} } = [$verdict, $n, sprintf('%.2f', $seconds), $detail];
    print $out join("\t", $c->{id}, @{ $done{ $c->{id} } }), "\n";
    return if $verdict ne 'failed';
    ++$failures;
    print "FAILED $c->{id}, fragment $n: $detail\n  ", describe($c), "\n";
    print "  plan: $job->{plan}\n" if $job && $job->{plan};
    print "  $job->{command}\n" if $job;
    print map { "  | $_\n" } (split /\n/, $job->{output})[-12 .. -1] if $job && 12 < (() = $job->{output} =~ /\n/g);
    print map { "  | $_\n" } split /\n/, $job->{output} if $job && 12 >= (() = $job->{output} =~ /\n/g);
}

# Runs a cell in a child process. The child writes the file "answer" into its directory: a line with verdict, n, seconds and detail, then
# plan, command and output of the job.
sub start {
    my ($index, $slot) = @_;
    my $dir = "$work/$slot";
    make_path($dir);
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    $SIG{INT} = $SIG{TERM} = sub { Job::end(); POSIX::_exit(130) };
    my $c = $cells[$index];
    my $from = time;
    my ($verdict, $n, $detail, $job) = Cell::run($c, $dir);
    open my $answer, '>', "$dir/answer" or POSIX::_exit(1);
    print $answer join("\t", $verdict, $n, time - $from, $detail), "\n", $job ? (($job->{plan} // ""), "\n", $job->{command}, "\n", $job->{output}) : "\n\n";
    close $answer;
    POSIX::_exit(0);
}

sub finish {
    my ($index, $slot) = @_;
    my @lines = split /\n/, Job::slurp("$work/$slot/answer"), 4;
    my ($verdict, $n, $seconds, $detail) = split /\t/, $lines[0] // "failed\t0\t0\tthe runner died", 4;
    keep($cells[$index], $verdict, $n, $seconds, $detail // '', { plan => $lines[1], command => $lines[2] // '', output => $lines[3] // '' });
    unlink "$work/$slot/answer";
}

my (%running, @free);
@free = 1 .. $opt{jobs};
$SIG{INT} = $SIG{TERM} = sub {
    kill 'TERM', keys %running;
    1 while wait > 0;
    remove_tree($work);
    exit 130;
};
sub reap {
    my $pid = wait;
    return if $pid < 0 || !$running{$pid};
    my ($index, $slot) = @{ delete $running{$pid} };
    finish($index, $slot);
    push @free, $slot;
}
my $stopped = 0;
for my $index (0 .. $#cells) {
    my $c = $cells[$index];
    next if $done{ $c->{id} };
    if ($c->{why}) { keep($c, 'na', 0, 0, $c->{why}); next }
    if ($opt{stop} && $failures) { $stopped = 1; last }
    if ($opt{limit} && time - $begin > $opt{limit}) { $stopped = 1; last }
    reap() until @free;
    my $slot = shift @free;
    $running{ start($index, $slot) } = [$index, $slot];
}
reap() while %running;
remove_tree($work);

# The cells that passed. Cells with a plan of their own are left out, because they have no place among the axes.
sub ran { return grep { !$_->{plan} && ($done{ $_->{id} } // [''])->[0] eq 'passed' } @cells }

# ---- the table -------------------------------------------------------------------------------------
my (%sum, %reason, %kinds);
my @order;
for my $c (@cells) {
    my $r = $done{ $c->{id} } or next;
    push @order, $c->{kind} unless $kinds{ $c->{kind} }++;
    my $column = $c->{id} =~ /^(double|port|fence)/ ? $1 : $c->{fault};
    $sum{ $c->{kind} }{$column}{ $r->[0] }++;
    $sum{all}{all}{ $r->[0] }++;
    $reason{ $r->[3] }++ if $r->[0] eq 'na';
}
my @columns = (@Cells::faults, qw(double port fence));
my $table = sprintf "%-18s" . ' %14s' x @columns . "\n", 'passed/run (n/a)', @columns;
for my $kind (@order) {
    $table .= sprintf '%-18s', $kind;
    for my $column (@columns) {
        my %n = (passed => 0, failed => 0, na => 0, %{ $sum{$kind}{$column} // {} });
        my $run = $n{passed} + $n{failed};
        $table .= sprintf ' %14s', $run + $n{na} ? "$n{passed}/$run" . ($n{na} ? " ($n{na})" : '') : '-';
    }
    $table .= "\n";
}
my %n = (passed => 0, failed => 0, na => 0, %{ $sum{all}{all} // {} });
my $missing = grep { !$done{ $_->{id} } } @cells;
$table .= $Cells::pair_table . sprintf "pairs of values in what passed: %d\n", scalar keys %{ { map { $_ => 1 } map { Cells::pairs_of($_) } ran() } };
$table .= "not applicable: $reason{$_} x $_\n" for sort keys %reason;
my ($retries, @retried) = (0);
for my $id (grep { $done{$_} } map { $_->{id} } @cells) {
    my $r = $done{$id};
    my ($tries, $times) = (($r->[3] // '') =~ /tries: (\d+)/ ? $1 - 1 : 0, ($r->[3] // '') =~ /failed before: (\d+)/ ? $1 : 0);
    $retries += $tries + $times;
    push @retried, $id if $tries;
    $table .= sprintf "%s passed at run %d\n", $id, $times + 1 if $times && $r->[0] eq 'passed';
    $table .= "$id was tried $1\n" if ($r->[3] // '') =~ /tries: (\d+ \([^)]*\))/;
}
$table .= "FAILED $_->{id}: $done{$_->{id}}[3]\n" for grep { ($done{ $_->{id} } // [''])->[0] eq 'failed' } @cells;
# A fault enters at an event that comes in every run. Therefore few cells may need a second try: 0.5 % of the cells that ran, at least one.
my $most = POSIX::floor(0.005 * ($n{passed} + $n{failed}));
$most = 1 if $most < 1;
my $too_many = @retried > $most;
$table .= sprintf "FAILED: %d cells were tried again, at most %d may be: %s\n", scalar @retried, $most, "@retried" if $too_many;
$table .= "retried: $retries\n";
$table .= sprintf "%d cells, seed %d: %d passed, %d failed, %d not applicable, %d not run; %.0f s\n", scalar @cells, $opt{seed},
    $n{passed}, $n{failed}, $n{na}, $missing, time - $begin;
print $table;
(my $file = $results) =~ s/(\.tsv)?$/.txt/;
if ($opt{results} && open my $keep, '>', $file) { print $keep $table }
exit($n{failed} || $missing || $stopped || $too_many ? 1 : 0);
