#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Random faults under a random mix of operations, job after job until the time is over. Operations and faults of a job follow
# from its seed, and jobs have consecutive seeds. In most jobs rails return; in some of these the last rail goes as well, and its peers
# wait. In some jobs the ranks drain ports. The script ends at the first failure and says how to repeat the job. With
# --keep-going it goes on after a failure. A minute or more without the loss of a rail is a failure, too. DESIGN.txt section 13.
#   soak.pl [--seconds N] [--seed N] [--summary FILE] [--keep-going]
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../sim/matrix";
use File::Path qw(make_path remove_tree);
use Getopt::Long;
use List::Util ();
use Time::HiRes qw(time);
use Job;

my %opt = (seconds => 120, seed => 1);
GetOptions(\%opt, 'seconds=f', 'seed=i', 'summary=s', 'keep-going') or exit 2;
my $build = $ENV{BFO_BUILDDIR} or die "source tests/env.sh of the build directory first\n";
my $dir = ($ENV{TMPDIR} // '/tmp') . "/bfo-soak.$$";
make_path($dir);
$SIG{INT} = $SIG{TERM} = sub { Job::end(); remove_tree($dir); exit 130 };

sub one_of { return $_[int rand @_] }
sub log_uniform { my ($most) = @_; return 1 + int exp(rand(log($most))) }

# The target of a rule: everything, an operation, or one kind of message of the PML or of the BTL.
my @targets = ('', '', 'op=send', 'op=write payload=4096:00/00', 'op=read', (map { sprintf 'op=send payload=0:%02x', 0x40 + $_ } 1, 2, 4, 6, 8, 9, 11 .. 14),
               'op=send payload=0:20', map { sprintf 'op=send payload=0:%02x000002/ff0000ff', $_ } 0x30 .. 0x34);

sub rule {
    my ($rail, $most) = @_;
    my $target = one_of(@targets);
    my $fate = one_of('lose', 'lose', 'unacked', 'unacked', 'lose breaks=receiver', 'lose breaks=both', 'unacked breaks=receiver',
                      'unacked breaks=both', 'silent breaks=both', 'late', 'error status=retry', 'down', 'down local', 'flap');
    my $time = int(1 + rand 120) . 'ms';
    $fate = $fate eq 'flap' ? "down time=$time" : $fate =~ /^(late|silent)/ ? "$fate time=$time" : $fate;
    my $when = $fate !~ /^down/ && rand() < 0.2 ? 'chance=0.4%' : 'nth=' . log_uniform($target =~ /:3/ ? 4 : $most);
    return join ' ', grep { length } $fate, "rail=sr$rail", $target, $when;
}

# Faults that break nothing may hit every rail, also the spared rail.
sub harmless { return one_of('silent', 'delay') . ' time=' . int(1 + rand 40) . 'ms ' . one_of('op=send', 'op=write', 'op=read') . ' chance=0.5%' }

# The end of the last rail. It returns, so the peers wait for it.
sub passing {
    my ($rail, $most) = @_;
    return one_of('down time=' . int(1 + rand 400) . 'ms', 'error status=retry op=send', 'lose op=send') . " rail=sr$rail nth=" . log_uniform($most);
}

sub job_of {
    my ($seed) = @_;
    srand $seed;
    my ($ranks, $rails) = (2 + int rand 7, 2 + int rand 3);
    my $spared = int rand $rails;
    my @rules = ("seed $seed");
    for my $rail (grep { $_ != $spared } 0 .. $rails - 1) {
        push @rules, map { rule($rail, $ranks * 120) } 1 .. 1 + int rand 6;
    }
    push @rules, harmless() if rand() < 0.4;
    my $returns = rand() < 0.7;
    push @rules, map { passing($spared, $ranks * 120) } 1 .. 1 + int rand 3 if $returns && rand() < 0.4;
    my @mca;
    push @mca, ['pml_bfo_use_put', 0] if rand() < 0.5;
    push @mca, ['pml_bfo_use_get', 0] if rand() < 0.3;
    push @mca, ['pml_bfo_rdma_min', one_of(20000, 50000, 100000)] if rand() < 0.7;
    push @mca, ['pml_bfo_frag_size', one_of(4096, 20000, 70000)] if rand() < 0.5;
    push @mca, ['btl_openib_use_eager_rdma', one_of(0, 1)] if rand() < 0.7;
    push @mca, ['btl_openib_eager_rdma_threshold', one_of(1, 16)] if rand() < 0.5;
    push @mca, ['pml_bfo_eager_limit', one_of(256, 1000, 4000)] if rand() < 0.3;
    push @mca, ['btl_openib_receive_queues', one_of('S,2048,256,64,32:S,12544,64,16,8:S,65792,32,8,4', 'P,2048,64,32,16:P,12544,12,6,4:P,65792,4,2,2')] if rand() < 0.5;
    push @mca, ['pml_bfo_rejoin', 1], ['btl_openib_rejoin_after', one_of(20, 200)], ['btl_openib_rejoin_half_life', one_of(0, 300)] if $returns;
    push @mca, ['pml_bfo_rejoin', 0] if !$returns;
    return { rules => \@rules, softrail => ['-n', $rails, '--link-layer=' . one_of('ib', 'eth'), '--retry-time=' . (50 + int rand 100) . 'ms'],
             program => [Job::mpirun($ranks, @mca), "$build/tests/soak/soak", $seed, 25 + int rand 30, rand() < 0.3 ? 'drains' : (), $ENV{OMPI_VERSION} =~ /^4\./ ? () : 'windowless'], ranks => $ranks, rails => $rails };
}

# $deaths counts each rail that dies in a job once. $pairs counts each loss once for each pair of ranks that the rail joined.
my ($begin, $seed, $jobs, $deaths, $pairs, $waits, $checks, $failed, $faults) = (time, $opt{seed}, 0, 0, 0, 0, 0, 0, 0);
my (%ways, %operations, %met);
my $limit = 300; # seconds until a job counts as hung; a job takes a second or two, or 20 on a busy machine
do {
    my $what = job_of($seed);
    my $j = Job::run($dir, $limit, $what->{softrail}, $what->{program}, @{ $what->{rules} });
    my $wrong = Job::wrong_with($j);
    ++$jobs;
    $deaths += Job::lost_rails($j);
    $pairs += Job::lost($j);
    $waits += () = $j->{output} =~ /^No rail is left to a process; the job waits/mg;
    $faults += $_->{done} for @{ $j->{faults} };
    $ways{ (split ' ', $_->{rule})[0] } += $_->{done} for @{ $j->{faults} };
    for my $fault (@{ $j->{faults} }) {
        my ($target) = grep { length && index($fault->{rule}, $_) >= 0 } sort { length $b <=> length $a } @targets;
        $met{$target} += $fault->{matched} // 0 if defined $target;
    }
    $checks += $1 if $j->{output} =~ /^VERIFIED (\d+)/m;
    my ($operations) = $j->{output} =~ /^DONE (.*)/m;
    $operations{$1} += $2 while ($operations // '') =~ /\G(.*?) (\d+)(?:, |$)/g;
    if ($wrong) {
        ++$failed;
        print "FAILED seed $seed, $what->{ranks} ranks on $what->{rails} rails: $wrong\n  plan: $j->{plan}\n  $j->{command}\n";
        print map { "  | $_\n" } grep { defined } (reverse((reverse split /\n/, $j->{output})[0 .. 199]));
        print "  to repeat the job: make soak SEED=$seed SECONDS=0\n";
    }
    ++$seed;
} while (time - $begin < $opt{seconds} && (!$failed || $opt{'keep-going'}));
remove_tree($dir);
my $seconds = time - $begin;
my $summary = sprintf "%d jobs (seeds %d to %d), %.0f s: %d faults, %d rails died (between %d pairs of ranks), %d waits for a last rail, %d checks, %d jobs failed\nfaults done: %s\n",
    $jobs, $opt{seed}, $seed - 1, $seconds, $faults, $deaths, $pairs, $waits, $checks, $failed, join ', ', map { "$_ $ways{$_}" } sort keys %ways;
my @never = grep { !$operations{$_} } sort keys %operations;
$summary .= sprintf "%d operations of rank 0, of %d kinds%s\n", List::Util::sum0(values %operations), keys(%operations) - @never,
    @never ? ', never ' . join ', ', @never : '';
my @unmet = grep { length && !$met{$_} } List::Util::uniq(@targets);
$summary .= 'patterns that no message matched: ' . join('; ', @unmet) . "\n" if @unmet;
print $summary;
if ($opt{summary} && open my $out, '>', $opt{summary}) { print $out $summary }
my $unharmed = !$deaths && $seconds >= 60;
print "FAILED: no rail died in this time\n" if $unharmed;
# After 300 jobs each operation must have run; otherwise the soak is wrong.
my $hollow = $jobs >= 300 && @never;
print "FAILED: some operations never ran\n" if $hollow;
exit($failed || !$checks || $unharmed || $hollow ? 1 : 0);
