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
             get => '70000-260000', get1 => '140000-260000');
my %mca = (
    ring => [qw(btl_openib_use_eager_rdma 1 btl_openib_eager_rdma_threshold 1)],
    flood => ['btl_openib_receive_queues', 'P,2048,16,8,4:P,12544,12,6,4:P,65792,4,2,2', 'btl_openib_use_message_coalescing', 0],
    crowd => ['btl_openib_receive_queues', 'P,2048,8,4,2:P,12544,12,6,4:P,65792,4,2,2'],
    copy => [qw(pml_bfo_use_put 0 pml_bfo_use_get 0)], single => [qw(pml_bfo_use_put 0 pml_bfo_use_get 0)],
    put1 => [qw(pml_bfo_use_get 0 pml_bfo_rdma_min 50000)],
    put => [qw(pml_bfo_use_get 0 pml_bfo_rdma_min 30000 pml_bfo_frag_size 40000)],
    get => [qw(pml_bfo_use_put 0 pml_bfo_rdma_min 50000)],
    get1 => [qw(pml_bfo_use_put 0 pml_bfo_rdma_min 50000 pml_bfo_max_rdma_per_request 1)]); # one rail reads all messages
my %load = (idle => ['--window=1', '--rounds=8'], deep => ['--window=12', '--rounds=3'], peers => ['--window=3', '--rounds=4']);

# May a queue pair break after all messages have arrived? It may when the sender's clock of 0.1 s or a silence of 0.1 s ends that late,
# when the fault hits the very last fragment, or when nobody waits for the fragment that the fault hits.
sub ends_late {
    my ($c) = @_;
    return 1 if $c->{losses};
    return 0 if $c->{plan} || $c->{recheck} || ($c->{side} // 'nobody') eq 'nobody';
    return $c->{side} ne 'receiver' || $Cells::kind{ $c->{kind} }{datagram} || $c->{kind} eq 'CREDITS' || $c->{place} eq 'last';
}

# The messages after the rounds. In a coda of one message, proto put has one PUT and one FIN, copy has one FRAG, and put and get have one
# WRITE or READ. A cell that needs restarts in its coda has several data fragments in each message, so that each rail has such a fragment.
my %coda_bytes = (copy => '30000-60000', put => '30000-31000', get => '50000-51000');
sub coda {
    my ($c) = @_;
    my $kind = $Cells::kind{ $c->{kind} } // {};
    return () if $c->{plan} || $c->{place} eq 'first';
    return $c->{place} eq 'last' ? ('--contact', '--codas=1') : () if $kind->{contact};
    return ('--codas=' . ($kind->{datagram} && $c->{place} eq 'middle' ? 2 : 1), '--coda-window=' . (!$kind->{datagram} && $c->{place} eq 'middle' ? 12 : 1))
        if $kind->{base};
    return () if $c->{place} ne 'last' || $kind->{tail};
    return ('--codas=1', $coda_bytes{ $c->{proto} } ? "--coda-bytes=$coda_bytes{ $c->{proto} }" : ());
}

sub traffic {
    my ($c, $dir) = @_;
    my @args = ("--bytes=" . $bytes{ $c->{proto} }, "--mode=$c->{mode}", "--threads=$c->{threads}", @{ $load{ $c->{load} } });
    push @args, '--strided' if $c->{layout} eq 'strided';
    push @args, '--late' if $c->{receive} eq 'late';
    push @args, '--oneway', '--window=48', '--rounds=12' if $c->{proto} =~ /flood|crowd/;
    # Rings are set up beside the traffic, so the traffic goes on for a while.
    push @args, '--rounds=8', '--pause=30' if $c->{proto} eq 'ring' && !$c->{plan} && $c->{place} ne 'first';
    push @args, coda($c);
    my ($rounds) = reverse map { /^--rounds=(\d+)/ } @args;
    # The late completion comes before the job ends. After the last fragment a pause between rounds would not help.
    push @args, '--pause=' . int(300 / ($rounds - 1)) if $c->{fault} eq 'silent' && $c->{place} ne 'last';
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
        my $now = Job::status($fabric);
        return $waited >= 1 if scalar(() = misses($c, $now)); # only recovery still sends anything
        my ($least) = expected_rails($c, $now);
        my $j = { output => $said };
        return $waited >= $patience || (Job::lost_rails($j) >= $least && !unmended($c, $j));
    };
}

# Which rules of the cell have injected no fault? Only the last rule of a cell of the complete part counts: it waits for what it needs of
# the rules before it.
sub misses {
    my ($c, $j) = @_;
    return grep { !$j->{faults}[$_ - 1] || !$j->{faults}[$_ - 1]{done} } $c->{plan} ? 1 .. @{ $c->{plan} } : (scalar @{ $j->{faults} // [] } || 1);
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
    # Messages that wait for a connection are coalesced, and the pattern of a fragment does not match the later ones of them.
    push @pairs, ['btl_openib_use_message_coalescing', 0] if ($Cells::kind{ $c->{kind} } // {})->{base};
    push @pairs, ['btl_openib_receive_queues', $c->{queues} eq 'shared' ? 'S,2048,256,64,32:S,12544,64,16,8:S,65792,32,8,4' : 'P,2048,64,32,16:P,12544,12,6,4:P,65792,4,2,2']
        if $c->{proto} !~ /flood|crowd/; # these have queues of their own
    local $Job::enough = ends_late($c) ? watch($c) : undef;
    return Job::run($dir, $limit, ['-n', $c->{rails}, "--link-layer=$c->{link}", "--retry-time=$retry"],
                    [Job::mpirun($c->{load} eq 'peers' ? 3 : 2, @pairs), "$build/tests/sim/matrix/traffic", traffic($c, $dir)], @rules);
}

# The fault of a cell of the complete part. The sender of a connection notices a break through its retry clock.
sub main_rule {
    my ($c, $when) = @_;
    my $kind = $Cells::kind{ $c->{kind} };
    my $rule = "$Cells::fault{ $c->{fault} } $kind->{match} $when";
    my $by_clock = $c->{side} eq 'sender' && $c->{fault} ne 'silent' && !$kind->{datagram};
    return $c->{side} eq 'nobody' || $by_clock ? $rule : "$rule breaks=$c->{side}";
}

# If the receiver has to see the error, the sender's retry clock is long, and the job must end before this clock does. Base faults do not
# wait for the clock. The exception is a middle NACK, because several fragments have to arrive. The rest of such a job takes a second, or several
# seconds on a busy machine, which is short compared with the clock.
my %clock = (receiver => 120, NACK => 20); # s
sub clock { my ($c) = @_; return $c->{side} ne 'receiver' ? 0.1 : $clock{ $c->{kind} } // $clock{receiver} }
# The base fault of a cell, with these conditions.
sub base_rule {
    my ($c, $when) = @_;
    my $base = $Cells::kind{ $c->{kind} }{base}{ $c->{proto} };
    return "$base $when" if $c->{side} ne 'receiver';
    return "$base $when" =~ s/^lose/error/r if $base =~ /^lose/;
    return $c->{place} eq 'middle' && $when =~ /after|same/ ? "$base $when" : "$base $when breaks=sender";
}

# The rules of a cell whose fragments exist only after a base fault. The first rule counts the fragments. The first base fault hits the
# rounds. The others hit the codas, where nothing else is in flight:
#   middle, restarts    some of the 12 messages of the coda restart, and the fault hits the first fragment of their restarts
#   middle, datagrams   the fault hits the second datagram from the first coda on; the base fault of the second coda brings about later datagrams
#   last                the fault hits the first fragment that belongs to the only message of the coda
sub rules_with_base {
    my ($c) = @_;
    my $kind = $Cells::kind{ $c->{kind} };
    my @rules = ("mark $kind->{match}", base_rule($c, 'nth=' . ($kind->{datagram} ? 4 : 2)));
    return (@rules, main_rule($c, 'nth=1')) if $c->{place} eq 'first';
    push @rules, 'mark ' . Cells::phase('coda') . ' nth=1', base_rule($c, 'nth=1 after=3');
    if ($c->{place} eq 'middle' && $kind->{datagram}) {
        push @rules, 'mark ' . Cells::phase('second') . ' nth=1', base_rule($c, 'nth=1 after=5');
    } elsif ($c->{place} eq 'middle' && $c->{kind} eq 'NACK') {
        push @rules, base_rule($c, 'same=4'); # the receiver gets all messages of the coda that travel over this rail
    }
    # A bring-down may go on after its messages have arrived, so the first datagram after rule 4 may be of the first base fault.
    return (@rules, main_rule($c, 'nth=' . ($c->{place} eq 'middle' && $kind->{datagram} ? 2 : 1) . ' after=4'));
}

# The rules of a cell of the complete part. The first rule counts the fragments, the last rule is the fault of the cell.
sub rules {
    my ($c) = @_;
    my $kind = $Cells::kind{ $c->{kind} };
    my @rules = ("mark $kind->{match}");
    return rules_with_base($c) if $kind->{base};
    return (@rules, main_rule($c, 'nth=1')) if $c->{place} eq 'first';
    # Three ranks have three connections on each rail.
    return (@rules, main_rule($c, 'nth=' . int((3 * $c->{rails} + 1) / 2))) if $kind->{contact} && $c->{place} eq 'middle';
    push @rules, 'mark ' . Cells::phase($c->{place} eq 'middle' ? 'middle' : $kind->{tail} ? 'last' : 'coda', $kind->{header}) . ' nth=1';
    # The first round may have no such fragment: its messages are coalesced while connections are made, there is no ring yet, and credits are
    # not used up. Therefore the second fragment counts.
    return (@rules, main_rule($c, 'nth=' . ($c->{place} eq 'middle' || $kind->{tail} ? 2 : 1) . ' after=2'));
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
    my $clock = clock($c) * ($c->{kind} eq 'NACK' && $c->{place} eq 'middle' ? 2 : 1);
    return unmended($c, $j) if $c->{plan} || ($c->{side} // '') ne 'receiver' || $Cells::kind{ $c->{kind} }{datagram} || $j->{seconds} < $clock;
    return "the receiver did not report the error within the $clock s of the sender's clock";
}

# The least and the greatest number of rails that the job may lose. Both follow from the rails that faults have hit. Two faults may hit one
# rail, because NOTIFY and RACK may overtake the bring-down of the rail that the base fault took, and travel over this rail.
sub expected_rails {
    my ($c, $j) = @_;
    return (1, 1) if $c->{recheck};
    return @{ $c->{losses} } if $c->{losses};
    return (0, 1) if $c->{plan};
    my $kind = $Cells::kind{ $c->{kind} };
    my $base = !$kind->{base} ? 0 : $c->{place} eq 'first' ? 1 : $kind->{datagram} && $c->{place} eq 'middle' ? 3 : 2; # base faults
    return ($base ? 1 : 0, $base) if $kind->{datagram} || $c->{side} eq 'nobody'; # they may hit one rail again after it came back
    return (Job::hit_rails($j)) x 2;
}

# Runs the cell once. Returns (verdict, detail, job). The verdict is passed, failed, or nothing if no such fragment came.
sub try_once {
    my ($c, $dir) = @_;
    my @rules = $c->{plan} ? @{ $c->{plan} } : rules($c);
    my $j = job($c, $dir, clock($c) . 's', @rules);
    my $wrong = Job::wrong_with($j);
    my ($least, $most) = expected_rails($c, $j);
    my $lost = Job::lost_rails($j);
    return ('failed', $wrong, $j) if $wrong;
    my @misses = misses($c, $j);
    return ('nothing', "rules that hit nothing: @misses", $j) if @misses;
    return ('failed', "$lost rails lost, expected $least to $most", $j) if $lost < $least || $lost > $most;
    $wrong = unseen($c, $j);
    return ('failed', $wrong, $j) if $wrong;
    return ('nothing', $wrong, $j) if $wrong = misplaced($c, $j);
    return ('passed', '', $j);
}

# How many such fragments came before the one that the fault hit, and how many after it?
sub around {
    my ($j) = @_;
    return (0, 0) if !@{ $j->{faults} };
    my ($all, $due) = map { $_->{matched} // 0 } @{ $j->{faults} }[0, -1];
    my ($nth) = $j->{faults}[-1]{rule} =~ /nth=(\d+)/;
    return ($all - $due + $nth - 1, $due - $nth);
}

# How many such fragments may follow the last one? A timer repeats up to three datagrams, and the first and the last rank may connect their
# other rails after the coda. Recovery sends a fragment again for each error and for each restart, unless the pattern names only fragments
# of a first attempt. A FIN of a READ does not say that it is sent again.
sub resent {
    my ($c, $j) = @_;
    my $kind = $Cells::kind{ $c->{kind} };
    my $sum = 0;
    $sum += $1 while $j->{output} =~ /\b(?:errors|restarts) (\d+)/g;
    return $kind->{fresh} && $c->{kind} . $c->{proto} ne 'FINget' ? 0 : $kind->{contact} ? 3 + $c->{rails} - 1 : $sum;
}

# Says why the fault did not hit the place that the cell names, or returns nothing.
sub misplaced {
    my ($c, $j) = @_;
    return '' if $c->{plan} || $c->{place} eq 'first';
    my $kind = $Cells::kind{ $c->{kind} };
    my ($before, $after) = around($j);
    my $text = "$before before, $after after";
    return "not the $c->{place}: $text" if $before < 1;
    return $c->{place} eq 'middle' && $after < 1 ? "not the middle: $text" : '' if $c->{place} eq 'middle' || $kind->{tail};
    return '' if $kind->{base} && $kind->{datagram}; # both ends send them, and timers repeat them
    return $after <= resent($c, $j) ? '' : "not the last: $text";
}

# Runs a cell. Returns (verdict, nth, detail, job). A fault that missed its place is tried again, twice at most. matrix.pl bounds how many cells
# of a run may need that.
our $tries = 3;
sub run {
    my ($c, $dir) = @_;
    my ($verdict, $detail, $j, @before);
    for (1 .. $tries) {
        ($verdict, $detail, $j) = try_once($c, $dir);
        last if $verdict ne 'nothing';
        push @before, $detail;
    }
    my $before = @before ? ', tries: ' . (@before + ($verdict ne 'nothing')) . ' (' . join('; ', @before) . ')' : '';
    my ($n, $after) = $c->{plan} ? (0, 0) : around($j);
    return ('failed', 0, "no try hit the place$before", $j) if $verdict eq 'nothing';
    return ($verdict, $n + 1, $detail . $before, $j) if $verdict eq 'failed';
    return ('passed', $n + 1, 'of ' . ($n + 1 + $after) . ', rails lost: ' . Job::lost_rails($j) . $before, $j);
}
1;
