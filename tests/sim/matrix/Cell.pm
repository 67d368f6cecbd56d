# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs one cell of the fault matrix. Makes a fault plan and a job from the description of the cell, and a verdict from the output and
# the report of the job. A cell that hit no fragment fails. DESIGN.txt section 13.
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

# May a queue pair break after all messages have arrived? It may when the sender's clock of 0.1 s or a silence of 0.1 s ends that late,
# when the fault hits the very last fragment, or when nobody waits for the fragment that the fault hits.
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
    push @args, '--pause=' . int(300 / ($rounds - 1)) if $c->{fault} eq 'silent'; # the late completion comes before the job ends
    push @args, "--linger=$dir/enough" if ends_late($c);
    push @args, "--recheck=$c->{recheck}" if $c->{recheck};
    push @args, "--oneway" if $c->{oneway};
    return @args;
}

# A job that lingers waits until all messages are verified, the rails that the faults have broken are lost, and the queue pairs that the
# faults have broken are repaired. $patience is enough on a busy machine. After this time the verdict says what is missing.
our $patience = 30; # s
sub watch {
    my ($c) = @_;
    my $since;
    return sub {
        my ($said, $fabric) = @_;
        return 0 if $said !~ /^(?:VERIFIED|FAILED) /m;
        $since //= time;
        my $waited = time - $since;
        return $waited >= 0.3 if $c->{counts}; # a counting run injects no main fault
        my $now = Job::status($fabric);
        return $waited >= 1 if misses($c, $now); # only recovery still sends anything
        my ($least) = expected_rails($c, $now);
        my $j = { output => $said };
        return $waited >= $patience || (Job::lost_rails($j) >= $least && !unmended($c, $j));
    };
}

# How many rules of the cell have injected no fault? (Without its base fault a fragment may not exist.)
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
    # Rails come back within the job, after 50 ms. With a long clock they do not, because the rules could break a rail a second time,
    # and each break would last as long as the clock.
    push @pairs, 1 > clock($c) ? (['pml_bfo_rejoin', 1], ['btl_openib_rejoin_after', 50]) : ['pml_bfo_rejoin', 0];
    push @pairs, ['btl_openib_use_eager_rdma', 0] if $c->{proto} ne 'ring'; # the ring would turn the sends into writes
    push @pairs, ['btl_openib_receive_queues', $c->{queues} eq 'shared' ? 'S,2048,256,64,32:S,12544,64,16,8:S,65792,32,8,4' : 'P,2048,64,32,16:P,12544,12,6,4:P,65792,4,2,2']
        if $c->{proto} ne 'crowd'; # crowd has queues of its own
    local $Job::enough = ends_late($c) ? watch($c) : undef;
    return Job::run($dir, $limit, ['-n', $c->{rails}, "--link-layer=$c->{link}", "--retry-time=$retry"],
                    [Job::mpirun($c->{load} eq 'peers' ? 3 : 2, @pairs), "$build/tests/sim/matrix/traffic", traffic($c, $dir)], @rules);
}

# The fault of a cell of the complete part, at its n-th fragment. The sender of a connection notices a break through its retry clock.
sub main_rule {
    my ($c, $nth) = @_;
    my $kind = $Cells::kind{ $c->{kind} };
    my $rule = "$Cells::fault{ $c->{fault} } $kind->{match} nth=$nth";
    my $by_clock = $c->{side} eq 'sender' && $c->{fault} ne 'silent' && !$kind->{datagram};
    return $c->{side} eq 'nobody' || $by_clock ? $rule : "$rule breaks=$c->{side}";
}

# If the receiver has to see the error, the sender's retry clock is long, and the job must end before this clock does. Base faults do not
# wait for the clock. The exception is NACK, because all its fragments have to arrive. The rest of such a job takes a second, or several
# seconds on a busy machine, which is short compared with the clock.
my %clock = (receiver => 120, NACK => 20); # s
sub clock { my ($c) = @_; return $c->{side} ne 'receiver' ? 0.1 : $clock{ $c->{kind} } // $clock{receiver} }
sub base_rules {
    my ($c) = @_;
    my $base = $Cells::kind{ $c->{kind} }{base} or return ();
    my @rules = map { $c->{side} eq 'receiver' ? s/^lose/error/r : $_ } @{ $base->{ $c->{proto} } };
    my $turn = ($c->{turn} // 0) % $c->{rails};
    return $Cells::kind{ $c->{kind} }{datagram} ? @rules : map { s/rail=sr0/rail=sr$turn/r } @rules;
}

# Did the side that the cell names repair its queue pair of control messages? Before the repair this queue pair is in SQE (5) at the sender
# of a datagram, and in ERR (6) at the receiver.
sub unmended {
    my ($c, $j) = @_;
    my $side = $c->{side} // 'nobody';
    return '' if $c->{plan} || $side eq 'nobody' || !$Cells::kind{ $c->{kind} }{datagram};
    my %state = map { $_ => 1 } $j->{output} =~ /control messages was in state (\d)/g;
    return 'the sender did not mend its queue pair' if $side ne 'receiver' && !$state{5};
    return 'the receiver did not mend its queue pair' if $side ne 'sender' && !$state{6};
    return '';
}

# Did the receiver report the error of a queue pair before the sender's clock would have ended?
sub unseen {
    my ($c, $j) = @_;
    my $clock = clock($c) * ($c->{kind} eq 'NACK' ? 2 : 1);
    return unmended($c, $j) if $c->{plan} || ($c->{side} // '') ne 'receiver' || $Cells::kind{ $c->{kind} }{datagram} || $j->{seconds} < $clock;
    return "the receiver did not report the error within the $clock s of the sender's clock";
}

# How many such fragments does the traffic have? Runs the same job with a rule that never fires.
sub count {
    my ($c, $dir) = @_;
    my @rules = ("lose $Cells::kind{ $c->{kind} }{match} nth=1000000000", base_rules($c));
    my $j = job({ %$c, counts => 1 }, $dir, clock($c) . 's', @rules);
    my $wrong = Job::wrong_with($j);
    return (0, "without its fault: $wrong", $j) if $wrong;
    return ($j->{faults}[0]{matched} // 0, '', $j);
}

# The least and the greatest number of rails that the job may lose. Both follow from the rails that faults have hit. Two faults may hit one
# rail, because NOTIFY and RACK may overtake the bring-down of the rail that the base fault took, and travel over this rail.
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

# Runs the cell once, with its fault at the nth fragment. Returns (verdict, detail, job). The verdict is passed, failed, or nothing if no
# such fragment came.
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

# How many such fragments a place needs, and which of n fragments stands at the place. A middle fragment has at least one before it and
# one after it.
my %needs = (first => 1, middle => 3, last => 2);
sub nth { my ($place, $n) = @_; return $place eq 'first' ? 1 : $place eq 'middle' ? int(($n + 1) / 2) : $n }

# Finds enough fragments for the place of the cell, in the cell itself or in a similar cell with more traffic. Returns (cell, number,
# verdict, reason, counting run). The verdict is empty if there are enough fragments.
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

# How many fragments recovery may have sent again: one for each fragment that came back with an error, and all fragments of a message
# that was restarted.
sub recovery {
    my ($n, $j) = @_;
    my ($messages) = $j->{output} =~ /^VERIFIED (\d+)/m;
    my %sum = (errors => 0, restarts => 0);
    $sum{$1} += $2 while $j->{output} =~ /\b(errors|restarts) (\d+)/g;
    return $sum{errors} + $sum{restarts} * ($n <= $messages ? 1 : int(2 * $n / $messages)); # twice the mean, because lengths differ
}

# How many such fragments may follow the last one because of its fault: as many as recovery sent more than in the counting run. There are
# none if the pattern names only fragments of a first attempt. A timer repeats up to three datagrams.
sub resent {
    my ($c, $n, $j, $counted) = @_;
    my $kind = $Cells::kind{ $c->{kind} };
    my $more = $kind->{fresh} ? 0 : $kind->{datagram} ? 3 : recovery($n, $j) - recovery($n, $counted);
    return $more < 0 ? 0 : $more;
}

# Did the fault hit the place that the cell names? The number of some fragments differs from run to run. After a try has shown that, every
# fragment of the last third counts as the last.
sub is_at_place {
    my ($c, $n, $j, $counted, $varies) = @_;
    my $behind = $j->{faults}[0]{matched} - $n;
    return 1 if $c->{plan} || $c->{place} eq 'first';
    return 1 < $n && 0 < $behind if $c->{place} eq 'middle';
    return 1 < $n && $behind <= resent($c, $n, $j, $counted) + ($varies ? int($n / 2) : 0);
}

# Runs a cell, or a similar cell. Returns (verdict, nth, detail, job). The detail names the axes on which the similar cell differs.
sub run {
    my ($planned, $dir) = @_;
    my ($c, $verdict, $n, $detail, $j) = run_like($planned, $dir);
    my @other = $c->{plan} ? () : grep { $c->{$_} ne $planned->{$_} } @Cells::axes;
    $detail .= ', ran as: ' . join(' ', map { "$_=$c->{$_}" } @other) if @other;
    return ($verdict, $n, $detail, $j);
}

# The same, with the cell that ran as the first value returned.
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
        # Rails take turns, and fragments of a kind take turns. If both keep in step, a rail may carry no fragment of a base fault for a
        # whole run, so the next try puts the base fault on the next rail.
        $c = { %$c, turn => $try + 1 } if $verdict eq 'nothing' && $matched == 0;
        next if $c->{plan} || $c->{place} eq 'first';
        my $again = $verdict eq 'passed' ? resent($c, $n, $j, $counted) : 0;
        my $of = $matched - $again > $n ? $matched - $again : $matched; # this run has counted, too
        $n = nth($c->{place}, $try < 2 ? $of : int($of * 0.9));
        $n = 2 if $n < 2;
    }
    return ($c, 'failed', $n, 'no try hit the place: ' . join('; ', @before), $j);
}
1;
