# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs one cell of the fault matrix: from its description to a fault plan and a job, and from what the job left behind
# to a verdict. A cell that hit no fragment fails. DESIGN.txt section 13.
package Cell;
use strict;
use warnings;
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
    return $c->{side} ne 'receiver' || $c->{kind} eq 'CREDITS' || $c->{place} eq 'last';
}

sub traffic {
    my ($c) = @_;
    my @args = ("--bytes=" . $bytes{ $c->{proto} }, "--mode=$c->{mode}", "--threads=$c->{threads}", @{ $load{ $c->{load} } });
    push @args, '--strided' if $c->{layout} eq 'strided';
    push @args, '--late' if $c->{receive} eq 'late';
    push @args, '--oneway', '--window=48', '--rounds=12' if $c->{proto} =~ /flood|crowd/;
    my ($rounds) = reverse map { /^--rounds=(\d+)/ } @args;
    push @args, '--pause=' . int(300 / ($rounds - 1)) if $c->{fault} eq 'silent'; # the late completion comes before the end
    push @args, "--linger=300" if ends_late($c);
    push @args, "--recheck=$c->{recheck}" if $c->{recheck};
    push @args, "--oneway" if $c->{oneway};
    return @args;
}

# Runs the traffic of a cell under these rules.
sub job {
    my ($c, $dir, $retry, @rules) = @_;
    my @mca = @{ $mca{ $c->{proto} } // [] };
    my @pairs = map { [@mca[2 * $_, 2 * $_ + 1]] } 0 .. @mca / 2 - 1;
    push @pairs, ["btl_openib_fence_timeout", 1] if $c->{recheck};
    push @pairs, ['pml_bfo_counters', 1], ['btl_openib_verbose', 1];
    push @pairs, ['btl_openib_use_eager_rdma', 0] if $c->{proto} ne 'ring'; # it would turn the sends into writes
    push @pairs, ['btl_openib_receive_queues', $c->{queues} eq 'shared' ? 'S,2048,256,64,32:S,12544,64,16,8:S,65792,32,8,4' : 'P,2048,64,32,16:P,12544,12,6,4:P,65792,4,2,2']
        if $c->{proto} ne 'crowd'; # which has its own
    return Job::run($dir, $limit, ['-n', $c->{rails}, "--link-layer=$c->{link}", "--retry-time=$retry"],
                    [Job::mpirun($c->{load} eq 'peers' ? 3 : 2, @pairs), "$build/tests/sim/matrix/traffic", traffic($c)], @rules);
}

# The fragments of a cell's kind; where base faults take a rail, those on the others: NOTIFY and RACK may overtake the bring-down of
# that rail, and go by it.
sub fragments {
    my ($c) = @_;
    my $kind = $Cells::kind{ $c->{kind} };
    my %taken = map { /rail=(sr\d+)/ ? ($1 => 1) : () } base_rules($c);
    return $kind->{match} if $kind->{datagram} || !%taken;
    return join ' ', $kind->{match}, grep { !$taken{s/rail=//r} } map { "rail=sr$_" } 0 .. $c->{rails} - 1;
}

# The fault of a cell of the complete part, at its n-th fragment. The sender of a connection finds out by its retry clock.
sub main_rule {
    my ($c, $nth) = @_;
    my $kind = $Cells::kind{ $c->{kind} };
    my $rule = join ' ', $Cells::fault{ $c->{fault} }, fragments($c), "nth=$nth";
    my $by_clock = $c->{side} eq 'sender' && $c->{fault} ne 'silent' && !$kind->{datagram};
    return $c->{side} eq 'nobody' || $by_clock ? $rule : "$rule breaks=$c->{side}";
}

# Where the receiver is to see the error, the sender's retry clock is long, and the job has to end before it. A base fault does not
# wait for it, but for that of NACK, whose fragments all have to arrive.
my %clock = (receiver => 20, NACK => 4); # s
sub clock { my ($c) = @_; return $c->{side} ne 'receiver' ? 0.1 : $clock{ $c->{kind} } // $clock{receiver} }
sub base_rules {
    my ($c) = @_;
    my $base = $Cells::kind{ $c->{kind} }{base} or return ();
    my @rules = map { $c->{side} eq 'receiver' ? s/^lose/error/r : $_ } @{ $base->{ $c->{proto} } };
    my $turn = ($c->{turn} // 0) % $c->{rails};
    return $Cells::kind{ $c->{kind} }{datagram} ? @rules : map { s/rail=sr0/rail=sr$turn/r } @rules;
}

# Did the side that was meant see the error? A queue pair of control messages is then in SQE (5) at the sender of a datagram, in ERR
# (6) at its receiver.
sub unseen {
    my ($c, $j) = @_;
    my $side = $c->{side} // '';
    return '' if $c->{plan} || $side eq 'nobody';
    if ($Cells::kind{ $c->{kind} }{datagram}) {
        return '' if $c->{fault} eq 'silent' && $c->{place} ne 'first'; # the job may be over by then
        my %state = map { $_ => 1 } $j->{output} =~ /control messages was in state (\d)/g;
        return 'the sender did not mend its queue pair' if $side ne 'receiver' && !$state{5};
        return 'the receiver did not mend its queue pair' if $side ne 'sender' && !$state{6};
        return '';
    }
    my $clock = clock($c) * ($c->{kind} eq 'NACK' ? 2 : 1);
    return "the receiver did not tell within the $clock s of the sender's clock" if $side eq 'receiver' && $j->{seconds} >= $clock;
    return '';
}

# How many such fragments the traffic has: the same job with a rule that never fires. Kept for cells with equal traffic.
sub count {
    my ($c, $dir) = @_;
    my @rules = (join(' ', 'lose', fragments($c), 'nth=1000000000'), base_rules($c));
    my $j = job($c, $dir, clock($c) . 's', @rules);
    my $wrong = Job::wrong_with($j);
    return (0, "without its fault: $wrong", $j) if $wrong;
    return ($j->{faults}[0]{matched} // 0, '', $j);
}

# How many rails may be lost, and must be.
sub expected_rails {
    my ($c) = @_;
    return (1, 1) if $c->{recheck};
    return @{ $c->{losses} } if $c->{losses};
    return (0, 1) if $c->{plan};
    my $base = Cells::base_rails($c);
    my $kind = $Cells::kind{ $c->{kind} };
    my $dies = !$kind->{datagram} && $c->{side} ne 'nobody';
    # the rail of a last fragment may be fenced for another reason before its silence is over
    my $sure = $dies && "$c->{fault} $c->{place}" ne 'silent last';
    return (($kind->{datagram} && $base ? 1 : $base) + ($sure ? 1 : 0), $base + ($dies ? 1 : 0));
}

# Runs the cell. Returns (verdict, nth, detail, job): passed, failed, nothing when no such fragment was met, or unseen when the
# job was over before the queue pair that sent or received the last datagram was mended.
sub try_at {
    my ($c, $dir, $nth) = @_;
    my @rules = $c->{plan} ? @{ $c->{plan} } : (main_rule($c, $nth), base_rules($c));
    my $j = job($c, $dir, clock($c) . 's', @rules);
    my $wrong = Job::wrong_with($j);
    my ($least, $most) = expected_rails($c);
    my $lost = Job::lost_rails($j);
    return ('failed', $wrong, $j) if $wrong;
    return ('nothing', 'no such fragment', $j) if grep { !$_ || !$_->{done} } $c->{plan} ? @{ $j->{faults} }[0 .. $#rules] : $j->{faults}[0];
    return ('failed', "$lost rails lost, expected $least to $most", $j) if $lost < $least || $lost > $most;
    $wrong = unseen($c, $j);
    return ($c->{place} eq 'last' && $Cells::kind{ $c->{kind} }{datagram} ? 'unseen' : 'failed', $wrong, $j) if $wrong;
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
    my ($n, $detail, $verdict, $why, $j, $counted) = (1, '');
    if (!$c->{plan} && $c->{place} ne 'first') {
        ($c, $n, $verdict, $why, $counted) = enough($c, $dir);
        return ($c, $verdict, 0, $why, $counted) if $verdict;
        $n = nth($c->{place}, $n);
    }
    for my $try (0 .. 7) {
        ($verdict, $detail, $j) = try_at($c, $dir, $n);
        return ($c, $verdict, $n, $detail, $j) if $verdict eq 'failed';
        next if $verdict eq 'unseen';
        my $matched = $j->{faults}[0]{matched} // 0;
        return ($c, 'passed', $n, "of $matched, rails lost: " . Job::lost_rails($j) . ($try ? ", tries: " . ($try + 1) : ''), $j) if $verdict eq 'passed' && is_at_place($c, $n, $j, $counted, $try);
        $detail = $verdict eq 'passed' ? "$n of $matched is not the $c->{place}" : "hit nothing: $matched such fragments";
        # rails take turns, fragments of a kind too: in step, one rail may have none of a base fault's for a whole run
        $c = { %$c, turn => $try + 1 } if $verdict eq 'nothing' && $matched == 0;
        next if $c->{plan} || $c->{place} eq 'first';
        my $again = $verdict eq 'passed' ? resent($c, $n, $j, $counted) : 0;
        my $of = $matched - $again > $n ? $matched - $again : $matched; # this run was a count, too
        $n = nth($c->{place}, $try < 2 ? $of : int($of * 0.9));
        $n = 2 if $n < 2;
    }
    return ($c, 'failed', $n, $detail, $j);
}
1;
