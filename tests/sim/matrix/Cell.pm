# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs one cell of the fault matrix: from its description to a fault plan and a job, and from what the job left behind
# to a verdict. A cell that hit no fragment fails. DESIGN.txt section 13.
package Cell;
use strict;
use warnings;
use JSON::PP;
use POSIX qw(:sys_wait_h setpgid);
use Time::HiRes qw(time sleep);
use Cells;

our $limit = 30; # seconds until a cell counts as hung
my ($build, $mpirun) = ($ENV{BFO_BUILDDIR}, $ENV{MPIRUN});

my %bytes = (eager => '1-4000', flood => '1-600', copy => '70000-260000', single => '30000-60000', put => '70000-260000',
             get => '70000-260000');
my %mca = (
    copy => [qw(pml_bfo_use_put 0 pml_bfo_use_get 0)], single => [qw(pml_bfo_use_put 0 pml_bfo_use_get 0)],
    put => [qw(pml_bfo_use_get 0 pml_bfo_rdma_min 50000 pml_bfo_frag_size 40000)],
    get => [qw(pml_bfo_use_put 0 pml_bfo_rdma_min 50000)]);
my %load = (idle => ['--window=1', '--rounds=8'], deep => ['--window=12', '--rounds=3'], peers => ['--window=3', '--rounds=4']);

sub traffic {
    my ($c) = @_;
    my @args = ("--bytes=$bytes{$c->{proto}}", "--mode=$c->{mode}", "--threads=$c->{threads}", @{ $load{ $c->{load} } });
    push @args, '--strided' if $c->{layout} eq 'strided';
    push @args, '--late' if $c->{receive} eq 'late';
    push @args, '--oneway', '--window=48', '--rounds=12' if $c->{proto} eq 'flood';
    return @args;
}

# The whole command but for plan and report.
sub command {
    my ($c, @softrail) = @_;
    my @mca = ([qw(pml bfo)], ['btl', 'openib,self'], ['osc', '^ucx,rdma'], [qw(orte_abort_print_stack 0)]);
    my @own = @{ $mca{ $c->{proto} } // [] };
    push @mca, [splice @own, 0, 2] while @own;
    push @mca, ['btl_openib_receive_queues', 'S,2048,256,64,32:S,12544,64,16,8:S,65792,32,8,4'] if $c->{queues} eq 'shared';
    return ("$build/softrail/softrail", 'run', '-n', $c->{rails}, "--link-layer=$c->{link}", @softrail, '--', $mpirun,
            qw(--oversubscribe --bind-to none -np), $c->{load} eq 'peers' ? 3 : 2, (map { ('--mca', @$_) } @mca),
            "$build/tests/sim/matrix/traffic", traffic($c));
}

# The fault of a cell of the complete part, at its n-th fragment.
sub main_rule {
    my ($c, $nth) = @_;
    my $rule = "$Cells::fault{$c->{fault}} $Cells::kind{$c->{kind}}{match} nth=$nth";
    return $c->{side} eq 'sender' ? $rule : "$rule breaks=$c->{side}";
}

sub base_rules { my ($c) = @_; my $base = $Cells::kind{ $c->{kind} }{base}; return $base ? @{ $base->{ $c->{proto} } } : () }

sub slurp { my ($file) = @_; local $/; open my $in, '<', $file or return ''; my $text = <$in>; return $text // '' }

# Runs the job below softrail in a process group of its own. Returns { status, output, faults }.
sub job {
    my ($c, $dir, $retry, @rules) = @_;
    my $deadline = time + $limit;
    open my $plan, '>', "$dir/plan" or die "$dir/plan: $!\n";
    print $plan map { "$_\n" } @rules;
    close $plan;
    unlink "$dir/report";
    my @command = command($c, "--plan=$dir/plan", "--report=$dir/report", "--retry-time=$retry");
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        setpgid(0, 0);
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$dir/log";
        open STDERR, '>&', \*STDOUT;
        exec @command or POSIX::_exit(127);
    }
    my $status = 'hung';
    while (time < $deadline) {
        if (waitpid($pid, WNOHANG) == $pid) { $status = $?; last }
        sleep 0.01;
    }
    if ($status eq 'hung') {
        kill 'TERM', $pid; # softrail ends the program, then the fabric
        my $grace = time + 5;
        sleep 0.05 until waitpid($pid, WNOHANG) == $pid || time > $grace;
        kill 'KILL', -$pid;
        waitpid $pid, WNOHANG;
    }
    my $report = eval { decode_json(slurp("$dir/report")) } // {};
    return { status => $status, output => slurp("$dir/log"), faults => $report->{faults} // [], command => "@command" };
}

# What a job must be whatever the faults were: ended, verified, no peer given up. Returns the complaint, or ''.
sub wrong_with {
    my ($j) = @_;
    return 'hung' if $j->{status} eq 'hung';
    return 'wrong data' if $j->{output} =~ /^WRONG/m;
    return 'ended with status ' . ($j->{status} >> 8) . ($j->{status} & 127 ? " and signal " . ($j->{status} & 127) : '')
        if $j->{status} != 0;
    return 'verified nothing' if $j->{output} !~ /^VERIFIED [1-9]/m;
    return '';
}

# Names of rails that any process lost.
sub lost_rails { my ($j) = @_; my %lost = map { $_ => 1 } $j->{output} =~ /bfo: rail (\d+) \(openib\) to \S+ lost/g; return scalar keys %lost }

# How many such fragments the traffic has: the same job with a rule that never fires. Kept for cells with equal traffic.
sub count {
    my ($c, $dir) = @_;
    my @rules = (join(' ', 'lose', $Cells::kind{ $c->{kind} }{match}, 'nth=1000000000'), base_rules($c));
    my $j = job($c, $dir, '100ms', @rules);
    my $wrong = wrong_with($j);
    return (0, "without its fault: $wrong", $j) if $wrong;
    return ($j->{faults}[0]{matched} // 0, '', $j);
}

# How many rails may be lost, and must be.
sub expected_rails {
    my ($c) = @_;
    return (1, 2) if $c->{plan} && $c->{id} =~ /^double/;
    return (0, 1) if $c->{plan};
    my $base = Cells::base_rails($c);
    my $kind = $Cells::kind{ $c->{kind} };
    my $dies = !$kind->{datagram} && !($c->{fault} eq 'silent' && $c->{side} eq 'sender');
    # a queue pair that breaks after a time, or at the last message of all, may do so after the job
    my $sure = $dies && $c->{fault} ne "silent" && "$c->{kind}$c->{place}" ne "CREDITSlast";
    return ($base ? 1 : $sure ? 1 : 0, $base + ($dies ? 1 : 0));
}

# Runs the cell. Returns (verdict, nth, detail, job): passed, failed, or nothing when no such fragment was met.
sub try_at {
    my ($c, $dir, $nth) = @_;
    my @rules = $c->{plan} ? @{ $c->{plan} } : (main_rule($c, $nth), base_rules($c));
    my $j = job($c, $dir, $c->{side} eq 'receiver' ? '3s' : '100ms', @rules);
    my $wrong = wrong_with($j);
    my ($least, $most) = expected_rails($c);
    my $lost = lost_rails($j);
    $j->{plan} = join '; ', @rules;
    return ('failed', $wrong, $j) if $wrong;
    return ('nothing', 'no such fragment', $j) if !$j->{faults}[0] || !$j->{faults}[0]{done};
    return ('failed', "$lost rails lost, expected $least to $most", $j) if $lost < $least || $lost > $most;
    return ('passed', '', $j);
}

sub run {
    my ($c, $dir) = @_;
    my ($n, $why, $j) = (1, '', undef);
    if (!$c->{plan} && $c->{place} ne 'first') {
        ($n, $why, $j) = count($c, $dir);
        return ('failed', 0, $why, $j) if $why;
        return ('na', 0, "this traffic has only $n of them", $j) if $n < ($c->{place} eq 'last' ? 2 : 3);
        $n = int(($n + 1) / 2) if $c->{place} eq 'middle';
    }
    for my $attempt (1 .. 4) {
        my ($verdict, $detail, $job) = try_at($c, $dir, $n);
        return ($verdict, $n, $detail, $job) if $verdict ne 'nothing';
        return ('failed', $n, 'hit nothing', $job) if $attempt == 4;
        $n = int($n * 0.8) || 1; # their number depends on time: an earlier one then
    }
}
1;
