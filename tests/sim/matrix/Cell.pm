# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs one cell of the fault matrix: from its description to a fault plan and a job, and from what the job left behind
# to a verdict. A cell that hit no fragment fails. DESIGN.txt section 13.
package Cell;
use strict;
use warnings;
use Time::HiRes qw(time);
use Cells;
use Job;

our $limit = 240; # seconds until a cell counts as hung
my $build = $ENV{BFO_BUILDDIR};

my %bytes = (eager => '1-4000', ring => '1-1500', flood => '1-600', crowd => '1-300', copy => '70000-260000', single => '30000-60000', put => '70000-260000', put1 => '50000-70000',
             get => '70000-260000');
my %mca = (
    ring => [qw(btl_openib_use_eager_rdma 1 btl_openib_eager_rdma_threshold 1)],
    crowd => ['btl_openib_receive_queues', 'P,2048,8,4,2:P,12544,12,6,4:P,65792,4,2,2'],
    copy => [qw(pml_bfo_use_put 0 pml_bfo_use_get 0)], single => [qw(pml_bfo_use_put 0 pml_bfo_use_get 0)],
    put1 => [qw(pml_bfo_use_get 0 pml_bfo_rdma_min 50000)],
    put => [qw(pml_bfo_use_get 0 pml_bfo_rdma_min 50000 pml_bfo_frag_size 40000)],
    get => [qw(pml_bfo_use_put 0 pml_bfo_rdma_min 50000)]);
my %load = (idle => ['--window=1', '--rounds=8'], deep => ['--window=12', '--rounds=3'], peers => ['--window=3', '--rounds=4']);

# May a queue pair break when the messages are all there? When the sender's clock of 0.1 s, or the silence of as long, is over;
# or at the last fragment of all, or at one that nobody waits for.
sub ends_late {
    my ($c) = @_;
    return 1 if $c->{losses};
    return 0 if $c->{plan} || $c->{recheck} || ($c->{side} // 'nobody') eq 'nobody';
    return $c->{side} ne 'receiver' || $Cells::kind{ $c->{kind} }{datagram} || $c->{kind} eq 'CREDITS' || $c->{place} eq 'last';
}

sub traffic {
    my ($c, $dir) = @_;
    my @args = ("--bytes=" . $bytes{ $c->{proto} }, "--mode=$c->{mode}", "--threads=$c->{threads}", @{ $load{ $c->{load} } });
    push @args, '--strided' if $c->{layout} eq 'strided';
    push @args, '--late' if $c->{receive} eq 'late';
    push @args, '--oneway', '--window=48', '--rounds=12' if $c->{proto} =~ /flood|crowd/;
    my ($rounds) = reverse map { /^--rounds=(\d+)/ } @args;
    push @args, '--pause=' . int(300 / ($rounds - 1)) if $c->{fault} eq 'silent'; # the late completion comes before the end
    push @args, "--linger=$dir/enough" if ends_late($c);
    push @args, "--recheck=$c->{recheck}" if $c->{recheck};
    push @args, "--oneway" if $c->{oneway};
    return @args;
}

# What a job that lingers waits for: all messages were verified, and the rails are lost and the queue pairs mended that the faults
# have broken. That is not waited for longer than it takes on a machine that does much else: then the verdict says what is missing.
our $patience = 30; # s
sub watch {
    my ($c) = @_;
    my $since;
    return sub {
        my ($said, $fabric) = @_;
        return 0 if $said !~ /^(?:VERIFIED|FAILED) /m;
        $since //= time;
        my $waited = time - $since;
        return $waited >= 0.3 if $c->{counts}; # the last fault is not done
        my $now = Job::status($fabric);
        return $waited >= 1 if misses($c, $now); # nothing is sent any more but what recovery sends
        my ($least) = expected_rails($c, $now);
        my $j = { output => $said };
        return $waited >= $patience || (Job::lost_rails($j) >= $least && !unmended($c, $j));
    };
}

# Is there a rule of the cell whose fault was not done? (Without its base fault a fragment may not exist.)
sub misses {
    my ($c, $j) = @_;
    return scalar grep { !$_ || !$_->{done} } map { $j->{faults}[$_] } 0 .. ($c->{plan} ? $#{ $c->{plan} } : 0);
}

# Runs the traffic of a cell under these rules.
sub job {
    my ($c, $dir, $retry, @rules) = @_;
    my @mca = @{ $mca{ $c->{proto} } // [] };
    my @pairs = map { [@mca[2 * $_, 2 * $_ + 1]] } 0 .. @mca / 2 - 1;
    push @pairs, ["btl_openib_fence_timeout", 1] if $c->{recheck};
    push @pairs, ['pml_bfo_counters', 1], ['btl_openib_verbose', 1];
    # Rails come back within the job (ms); but not where the rules would break them a second time, each time for as long as the clock.
    push @pairs, 1 > clock($c) ? (['pml_bfo_rejoin', 1], ['btl_openib_rejoin_after', 50]) : ['pml_bfo_rejoin', 0];
    push @pairs, ['btl_openib_use_eager_rdma', 0] if $c->{proto} ne 'ring'; # it would turn the sends into writes
    push @pairs, ['btl_openib_receive_queues', $c->{queues} eq 'shared' ? 'S,2048,256,64,32:S,12544,64,16,8:S,65792,32,8,4' : 'P,2048,64,32,16:P,12544,12,6,4:P,65792,4,2,2']
        if $c->{proto} ne 'crowd'; # which has its own
    local $Job::enough = ends_late($c) ? watch($c) : undef;
    return Job::run($dir, $limit, ['-n', $c->{rails}, "--link-layer=$c->{link}", "--retry-time=$retry"],
                    [Job::mpirun($c->{load} eq 'peers' ? 3 : 2, @pairs), "$build/tests/sim/matrix/traffic", traffic($c, $dir)], @rules);
}

# The fault of a cell of the complete part, at its n-th fragment. The sender of a connection finds out by its retry clock.
sub main_rule {
    my ($c, $nth) = @_;
    my $kind = $Cells::kind{ $c->{kind} };
    my $rule = "$Cells::fault{ $c->{fault} } $kind->{match} nth=$nth";
    my $by_clock = $c->{side} eq 'sender' && $c->{fault} ne 'silent' && !$kind->{datagram};
    return $c->{side} eq 'nobody' || $by_clock ? $rule : "$rule breaks=$c->{side}";
}

# Where the receiver is to see the error, the sender's retry clock is long, and the job has to end before it. A base fault does not
# wait for it, but for that of NACK, whose fragments all have to arrive. The rest of such a job takes a second, and on a busy machine
# several: the clock is long beside them.
my %clock = (receiver => 120, NACK => 20); # s
sub clock { my ($c) = @_; return $c->{side} ne 'receiver' ? 0.1 : $clock{ $c->{kind} } // $clock{receiver} }
sub base_rules {
    my ($c) = @_;
    my $base = $Cells::kind{ $c->{kind} }{base} or return ();
    my @rules = map { $c->{side} eq 'receiver' ? s/^lose/error/r : $_ } @{ $base->{ $c->{proto} } };
    my $turn = ($c->{turn} // 0) % $c->{rails};
    return $Cells::kind{ $c->{kind} }{datagram} ? @rules : map { s/rail=sr0/rail=sr$turn/r } @rules;
}

# Did the side that was meant mend its queue pair of control messages? It is then in SQE (5) at the sender of a datagram, in ERR (6) at
# its receiver.
sub unmended {
    my ($c, $j) = @_;
    my $side = $c->{side} // 'nobody';
    return '' if $c->{plan} || $side eq 'nobody' || !$Cells::kind{ $c->{kind} }{datagram};
    my %state = map { $_ => 1 } $j->{output} =~ /control messages was in state (\d)/g;
    return 'the sender did not mend its queue pair' if $side ne 'receiver' && !$state{5};
    return 'the receiver did not mend its queue pair' if $side ne 'sender' && !$state{6};
    return '';
}

# Did the receiver see the error of a queue pair before the sender's clock would have told?
sub unseen {
    my ($c, $j) = @_;
    my $clock = clock($c) * ($c->{kind} eq 'NACK' ? 2 : 1);
    return unmended($c, $j) if $c->{plan} || ($c->{side} // '') ne 'receiver' || $Cells::kind{ $c->{kind} }{datagram} || $j->{seconds} < $clock;
    return "the receiver did not tell within the $clock s of the sender's clock";
}

# How many such fragments the traffic has: the same job with a rule that never fires. Kept for cells with equal traffic.
sub count {
    my ($c, $dir) = @_;
    my @rules = ("lose $Cells::kind{ $c->{kind} }{match} nth=1000000000", base_rules($c));
    my $j = job({ %$c, counts => 1 }, $dir, clock($c) . 's', @rules);
    my $wrong = Job::wrong_with($j);
    return (0, "without its fault: $wrong", $j) if $wrong;
    return ($j->{faults}[0]{matched} // 0, '', $j);
}

# How many rails must be lost, and may be: those that faults have hit. Two may hit one rail: NOTIFY and RACK may overtake the bring-down of
# the rail that the base fault took, and go by it.
sub expected_rails {
    my ($c, $j) = @_;
    return (1, 1) if $c->{recheck};
    return @{ $c->{losses} } if $c->{losses};
    return (0, 1) if $c->{plan};
    my $base = Cells::base_rails($c);
    return ($base ? 1 : 0, $base) if $Cells::kind{ $c->{kind} }{datagram};
    return ($base, $base) if $c->{side} eq 'nobody';
    return (Job::hit_rails($j)) x 2;
}

# Runs the cell. Returns (verdict, nth, detail, job): passed, failed, or nothing when no such fragment was met.
sub try_at {
    my ($c, $dir, $nth) = @_;
    my @rules = $c->{plan} ? @{ $c->{plan} } : (main_rule($c, $nth), base_rules($c));
    my $j = job($c, $dir, clock($c) . 's', @rules);
    my $wrong = Job::wrong_with($j);
    my ($least, $most) = expected_rails($c, $j);
    my $lost = Job::lost_rails($j);
    return ('failed', $wrong, $j) if $wrong;
    return ('nothing', 'no such fragment', $j) if misses($c, $j);
    return ('failed', "$lost rails lost, expected $least to $most", $j) if $lost < $least || $lost > $most;
    $wrong = unseen($c, $j);
    return ('failed', $wrong, $j) if $wrong;
    return ('passed', '', $j);
}

# How many such fragments a place needs, and which of n it is. Those of the middle have one before and one behind them.
my %needs = (first => 1, middle => 3, last => 2);
sub nth { my ($place, $n) = @_; return $place eq 'first' ? 1 : $place eq 'middle' ? int(($n + 1) / 2) : $n }

# The cell, or its like with more traffic, that has enough fragments for its place, and the counting run; or why there is none.
sub enough {
    my ($c, $dir) = @_;
    my ($kind, $most) = ($Cells::kind{ $c->{kind} }, 0);
    my @likes = grep { Cells::is_possible($kind, $_) } map { { %$c, load => $_ } } qw(deep peers);
    my %core = map { $_ => $c->{$_} } qw(id kind fault place side);
    push @likes, grep { $_ } map { Cells::choose($kind, { %core, load => $_ }) } qw(deep peers) x 3;
    for my $like ($c, @likes) {
        my ($n, $why, $j) = count($like, $dir);
        return ($like, 0, 'failed', $why, $j) if $why;
        return ($like, $n, '', '', $j) if $n >= $needs{ $c->{place} };
        $most = $n if $n > $most;
    }
    return ($c, 0, 'failed', 'no traffic has such a fragment') if !$most;
    return ($c, 0, 'na', "no traffic has more than $most of them");
}

# What recovery may have sent again: a fragment for each that came back with an error, all of a message that was restarted.
sub recovery {
    my ($n, $j) = @_;
    my ($messages) = $j->{output} =~ /^VERIFIED (\d+)/m;
    my %sum = (errors => 0, restarts => 0);
    $sum{$1} += $2 while $j->{output} =~ /\b(errors|restarts) (\d+)/g;
    return $sum{errors} + $sum{restarts} * ($n <= $messages ? 1 : int(2 * $n / $messages)); # lengths differ
}

# How many such fragments may be behind the last one because of its fault: what there was more of recovery than in the counting
# run. None where the pattern names those of a first attempt alone; three datagrams that time repeats.
sub resent {
    my ($c, $n, $j, $counted) = @_;
    my $kind = $Cells::kind{ $c->{kind} };
    my $more = $kind->{fresh} ? 0 : $kind->{datagram} ? 3 : recovery($n, $j) - recovery($n, $counted);
    return $more < 0 ? 0 : $more;
}

# Was it the place that was meant? The number of some kinds differs from run to run: once that was seen, the last third is last.
sub is_at_place {
    my ($c, $n, $j, $counted, $varies) = @_;
    my $behind = $j->{faults}[0]{matched} - $n;
    return 1 if $c->{plan} || $c->{place} eq 'first';
    return 1 < $n && 0 < $behind if $c->{place} eq 'middle';
    return 1 < $n && $behind <= resent($c, $n, $j, $counted) + ($varies ? int($n / 2) : 0);
}

# Runs a cell, or its like: (verdict, nth, detail, job). The detail names the axes on which its like differs.
sub run {
    my ($planned, $dir) = @_;
    my ($c, $verdict, $n, $detail, $j) = run_like($planned, $dir);
    my @other = $c->{plan} ? () : grep { $c->{$_} ne $planned->{$_} } @Cells::axes;
    $detail .= ', ran as: ' . join(' ', map { "$_=$c->{$_}" } @other) if @other;
    return ($verdict, $n, $detail, $j);
}

# The same with the cell that ran in front.
sub run_like {
    my ($c, $dir) = @_;
    my ($n, $detail, $verdict, $why, $j, $counted, @before) = (1, '');
    if (!$c->{plan} && $c->{place} ne 'first') {
        ($c, $n, $verdict, $why, $counted) = enough($c, $dir);
        return ($c, $verdict, 0, $why, $counted) if $verdict;
        $n = nth($c->{place}, $n);
    }
    for my $try (0 .. 7) {
        ($verdict, $detail, $j) = try_at($c, $dir, $n);
        my $tries = @before ? ', tries: ' . (1 + @before) . ' (' . join('; ', @before) . ')' : '';
        return ($c, $verdict, $n, $detail . $tries, $j) if $verdict eq 'failed';
        my $matched = $j->{faults}[0]{matched} // 0;
        return ($c, 'passed', $n, "of $matched, rails lost: " . Job::lost_rails($j) . $tries, $j) if $verdict eq 'passed' && is_at_place($c, $n, $j, $counted, $try);
        $detail = $verdict eq 'passed' ? "$n of $matched is not the $c->{place}" : "hit nothing: $matched such fragments";
        push @before, $detail;
        # rails take turns, fragments of a kind too: in step, one rail may have none of a base fault's for a whole run
        $c = { %$c, turn => $try + 1 } if $verdict eq 'nothing' && $matched == 0;
        next if $c->{plan} || $c->{place} eq 'first';
        my $again = $verdict eq 'passed' ? resent($c, $n, $j, $counted) : 0;
        my $of = $matched - $again > $n ? $matched - $again : $matched; # this run was a count, too
        $n = nth($c->{place}, $try < 2 ? $of : int($of * 0.9));
        $n = 2 if $n < 2;
    }
    return ($c, 'failed', $n, 'no try was one: ' . join('; ', @before), $j);
}
1;
