# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The cells of the fault matrix: the pattern of each kind of fragment on a rail, the traffic that sends such fragments, the
# combinations that exist, and a seeded covering array over the other axes. This file runs nothing. DESIGN.txt section 13.
package Cells;
use strict;
use warnings;

# Patterns of fragments. pml() matches the BTL's tag, which is the first byte: 0x40 + type. first() matches the type byte after the 8 bytes of
# the BTL, and the tag of the program, so that it does not match first fragments of collectives. ctl() matches control messages of the BTL by
# type, and by version 2 at offset 3. At the offset of the PML's type byte a control message has a byte of the job's number, which differs from
# job to job. Therefore the type byte alone is not enough.
sub pml   { sprintf 'op=send payload=0:%02x', 0x40 + shift }
sub first { sprintf 'op=send payload=8:%02x%s/ff%se0ffffff', shift, '00' x 11, '00' x 7 }
# Matches a first fragment of any type of this phase of the traffic: traffic.c puts the phase into the tags. The header of a message that
# travels alone begins at byte 8, the header of the first of several coalesced messages at byte 16.
our %phase = (middle => 1, last => 2, coda => 3, second => 4); # second: the second coda
sub phase { my ($phase, $at) = @_; return sprintf 'payload=%d:%s%02x000000/fc%sfcffffff', $at // 8, '00' x 8, 4 * $phase{$phase}, '00' x 7 }
# Matches only fragments of the first attempt that are not sent again: epoch 0, and for a FIN no flag RESENT.
sub fresh { my ($type) = @_; return sprintf 'op=send payload=8:%02x000000%s/ff00ffff%s', $type, $type == 9 ? ('0000', '0001') : ('', '') }
sub ctl   { sprintf 'op=send payload=0:%02x000002/ff0000ff', shift }
# Matches a fragment of an attempt after a restart: flag RESTART in a first fragment, epoch 1 in the others.
sub again { my ($type) = @_; $type < 4 ? sprintf('op=send payload=0:%02x%s40/ff%s40', 0x40 + $type, ('00' x 8) x 2)
                                       : sprintf('op=send payload=8:%02x000100/ff00ffff', $type) }

my $WRITE = 'op=write payload=4096:00/00'; # longer than a packet, because a handshake writes at most one packet
my $READ = 'op=read';
my $FRAG = fresh(6);

# proto: the traffic that has such fragments. base: the fault that must come before such a fragment exists. rails: the least number of
# rails. tail: no traffic has exactly one such fragment at its end, so the first such fragment of the last round counts as the last.
my %restart = (copy => "lose $FRAG", put => "lose $WRITE", get => "lose $READ");
my %answer = (copy => 'lose ' . pml(4), put => 'lose ' . pml(8), get => "lose $READ");

our @kinds = (
    { name => 'MATCH', match => first(1), proto => ['eager'], mode => ['persistent'] },
    { name => 'SENDI', match => first(1), proto => ['eager'], mode => [qw(standard blocking buffered ready)] },
    { name => 'COALESCED', match => 'op=send payload=0:22', proto => ['crowd'], tail => 1, header => 16 },
    { name => 'EAGER_RDMA', match => first(1) =~ s{op=send}{op=write}r, proto => ['ring'], tail => 1 },
    { name => 'RNDV', match => first(2), proto => [qw(copy put)] },
    { name => 'RGET', match => first(3), proto => ['get'] },
    { name => 'ACK', match => fresh(4), fresh => 1, proto => ['copy'] },
    { name => 'PUT', match => fresh(8), fresh => 1, proto => ['put'] },
    { name => 'FRAG', match => $FRAG, fresh => 1, proto => ['copy'] },
    { name => 'WRITE', match => $WRITE, proto => ['put'] },
    { name => 'READ', match => $READ, proto => ['get'] },
    { name => 'FIN', match => fresh(9), fresh => 1, proto => [qw(put get)] },
    { name => 'NOTIFY', match => pml(11), proto => [qw(copy put get)], base => \%restart, rails => 3 },
    { name => 'RACK', match => pml(12), proto => [qw(copy put get)], base => \%restart, rails => 3 },
    { name => 'NACK', match => pml(13), proto => ['single'], rails => 3,
      base => { single => "unacked $FRAG" } },
    { name => 'RERR', match => pml(14), proto => [qw(copy put get)], base => \%answer, rails => 3 },
    { name => 'DOWN', match => ctl(0x30), proto => ['eager'], base => { eager => 'lose ' . pml(1) }, rails => 4, datagram => 1 },
    { name => 'DACK', match => ctl(0x31), proto => ['eager'], base => { eager => 'lose ' . pml(1) }, rails => 4, datagram => 1 },
    { name => 'CREDITS', match => 'op=send payload=0:20', proto => ['flood'], tail => 1 },
    { name => 'REQ', match => ctl(0x32), proto => [qw(eager copy)], datagram => 1, contact => 1 },
    { name => 'REP', match => ctl(0x33), proto => [qw(eager copy)], datagram => 1, contact => 1 },
    { name => 'RTU', match => ctl(0x34), proto => [qw(eager copy)], datagram => 1, contact => 1 },
);
our %kind = map { $_->{name} => $_ } @kinds;

# What the fault does to the fragment. The side that sees the error becomes "breaks=" in the rule.
our %fault = (lost => 'lose', unacked => 'unacked', silent => 'silent time=100ms');
our @faults = qw(lost unacked silent);
our @places = qw(first middle last);
our @sides = qw(sender receiver both nobody); # the side that sees an error

our %axis = (
    rails => [2, 3, 4],
    mode => [qw(standard sync buffered ready persistent blocking)],
    proto => [qw(eager ring flood crowd copy single put get)],
    layout => [qw(contiguous strided)],
    load => [qw(idle deep peers)],
    queues => [qw(peer shared)],
    threads => [1, 2],
    link => [qw(ib eth)],
    receive => [qw(early late)],
);
our @axes = sort keys %axis;
our $shared_queues = 1;

# Is this combination a fault? An error that nobody sees is no fault, except a completion that comes late and a datagram that is lost.
sub is_fault { my ($kind, $fault, $side) = @_; return $side ne 'nobody' || $fault eq 'silent' || ($fault eq 'lost' && $kind->{datagram}) }

# Does this choice of the other axes make sense for the kind?
sub is_possible {
    my ($kind, $c) = @_;
    return 0 if ($kind->{rails} // 2) > $c->{rails};
    return 0 unless grep { $_ eq $c->{proto} } @{ $kind->{proto} };
    return 0 if $kind->{mode} && !grep { $_ eq $c->{mode} } @{ $kind->{mode} };
    return 0 if $c->{mode} eq 'sync' && $c->{proto} =~ /eager|ring|flood|crowd/; # a synchronous send is a rendezvous, and its ACKs return credits
    return 0 if $c->{layout} eq 'strided' && $c->{proto} =~ /put|get/; # strided memory is copied
    return 0 if $c->{receive} eq 'late' && $c->{mode} =~ /ready|blocking/;
    return 0 if $c->{threads} > 1 && $c->{mode} eq 'ready';
    return 0 if $c->{queues} eq 'shared' && !$shared_queues;
    return 0 if $c->{queues} eq 'shared' && $c->{proto} =~ /flood|crowd/; # a shared queue has no credits
    return 0 if $c->{load} ne 'deep' && $c->{proto} =~ /flood|crowd/;
    return 0 if $c->{mode} =~ /sync|blocking/ && $c->{proto} eq 'crowd'; # no message waits for another one
    return 1 if ($c->{place} // 'first') eq 'first';
    # The cell needs several such fragments, before and after the place.
    return 0 if $kind->{base} && ($c->{rails} < 4 || !$kind->{datagram} && ($c->{load} ne 'deep' || $c->{mode} eq 'blocking'));
    return 0 if $kind->{contact} && ($c->{load} ne 'peers' || $c->{mode} eq 'ready'); # a ready round has a barrier, which connects all ranks
    return 0 if $kind->{tail} && $c->{load} ne 'deep';
    return 1;
}

# xorshift: the same seed gives the same cells with every perl.
my $state;
sub seed { $state = (shift() * 2654435761 + 88172645) & 0xffffffff || 1 }
sub draw { my ($n) = @_; $state ^= ($state << 13) & 0xffffffff; $state ^= $state >> 17;
           $state ^= ($state << 5) & 0xffffffff; return $state % $n }
sub one_of { my ($list) = @_; return $list->[draw(scalar @$list)] }

sub choose {
    my ($kind, $fixed) = @_;
    for (1 .. 200) {
        my %c = (%$fixed);
        $c{$_} //= one_of($_ eq 'proto' ? $kind->{proto} : $_ eq 'mode' && $kind->{mode} ? $kind->{mode} : $axis{$_}) for @axes;
        return \%c if is_possible($kind, \%c);
    }
    return undef;
}

# ---- pairs ----------------------------------------------------------------------------------------------------
# Each value of an axis meets each value of every other axis. Kind, fault, place and side are axes, too.
my @all_axes = (@axes, qw(kind fault place side));
my %values = (%axis, kind => [map { $_->{name} } @kinds], fault => \@faults, place => \@places, side => \@sides);

# Pairs that cannot exist, each with its reason. A row is wrong if no missing pair needs it, or if a cell covers it.
my @no_pairs = (
    ['layout=strided', 'proto=(put|get)', 'strided memory is copied'],
    ['layout=strided', 'kind=(RGET|PUT|WRITE|READ|FIN)', 'strided memory is copied'],
    ['load=(idle|peers)', 'proto=(flood|crowd)', 'with few messages in flight no message waits'],
    ['load=(idle|peers)', 'kind=(COALESCED|CREDITS)', 'with few messages in flight no message waits'],
    ['mode=sync', 'proto=(eager|ring|flood|crowd)', 'a synchronous send is a rendezvous'],
    ['mode=sync', 'kind=(MATCH|SENDI|COALESCED|EAGER_RDMA|CREDITS)', 'a synchronous send is a rendezvous'],
    ['mode=sync', 'kind=(DOWN|DACK)', 'the base faults of DOWN and DACK count eager messages'],
    ['mode=persistent', 'kind=SENDI', 'a persistent send does not use sendi'],
    ['mode=(standard|buffered|ready|blocking)', 'kind=MATCH', 'these modes try sendi first'],
    ['mode=blocking', 'proto=crowd', 'with one message at a time no message waits'],
    ['mode=blocking', 'kind=COALESCED', 'with one message at a time no message waits'],
    ['mode=ready', 'receive=late', 'a ready send needs a receive that is already posted'],
    ['mode=blocking', 'receive=late', 'both ranks would wait in their sends'],
    ['mode=ready', 'threads=2', 'the barrier that makes receives ready is for one thread of a rank'],
    ['proto=(flood|crowd)', 'queues=shared', 'shared queues have no credits'],
    ['queues=shared', 'kind=(COALESCED|CREDITS)', 'shared queues have no credits'],
    ['proto=single', 'rails=2', 'the base fault takes one rail, the main fault takes another'],
    ['rails=2', 'kind=(NOTIFY|RACK|NACK|RERR)', 'the base fault takes one rail, the main fault takes another'],
    ['rails=[23]', 'kind=(DOWN|DACK)', 'the base faults take three rails'],
    ['fault=unacked', 'side=nobody', 'a fragment that arrives is no fault if nobody sees an error'],
    (map { my $kind = $_; my $other = join '|', grep { my $p = $_; !grep { $p eq $_ } @{ $kind->{proto} } } @{ $axis{proto} };
           ["proto=($other)", "kind=$kind->{name}", 'such traffic has no such fragment'] } @kinds),
);
sub row_of { my ($pair) = @_; return grep { $pair =~ /^$_->[0] $_->[1]$/ } @no_pairs }

sub pairs_of {
    my ($c) = @_;
    return map { my $i = $_; map { "$all_axes[$i]=$c->{$all_axes[$i]} $all_axes[$_]=$c->{$all_axes[$_]}" } $i + 1 .. $#all_axes } 0 .. $#all_axes;
}

sub all_pairs {
    my @pairs;
    for my $i (0 .. $#all_axes) {
        for my $j ($i + 1 .. $#all_axes) {
            for my $u (@{ $values{ $all_axes[$i] } }) { push @pairs, map { "$all_axes[$i]=$u $all_axes[$j]=$_" } @{ $values{ $all_axes[$j] } } }
        }
    }
    return @pairs;
}

# Makes the table of pairs, which is printed with the results. Dies if a pair is neither covered nor named above.
our $pair_table;
sub check_pairs {
    my ($covered) = @_;
    my (%rows, %reasons, @wrong);
    for my $pair (all_pairs()) {
        my @rows = row_of($pair);
        push @wrong, "$pair is covered, although \@no_pairs names it" if $covered->{$pair} && @rows;
        push @wrong, "$pair is covered by no cell" if !$covered->{$pair} && !@rows;
        next if $covered->{$pair} || !@rows;
        $rows{$_}++ for @rows;
        $reasons{ $rows[0][2] }++;
    }
    push @wrong, map { "no pair is missing because of $_->[0] $_->[1]" } grep { !$rows{$_} } @no_pairs;
    die map { "pairs: $_\n" } @wrong if @wrong;
    $pair_table = sprintf "pairs of values: %d, %d covered\n", scalar all_pairs(), scalar keys %$covered;
    $pair_table .= "no such pair: $reasons{$_} x $_\n" for sort keys %reasons;
}

sub id { my ($c) = @_; return join '.', map { $c->{$_} } qw(kind fault place side) }

# The complete part: every kind, fault, place and side. The other axes of a cell are chosen so that the cell covers many new pairs.
sub complete {
    my (%covered, @cells);
    for my $kind (@kinds) {
        for my $fault (@faults) {
            for my $place (@places) {
                for my $side (@sides) {
                    my %core = (kind => $kind->{name}, fault => $fault, place => $place, side => $side);
                    next unless is_fault($kind, $fault, $side);
                    my $why = $kind->{missing};
                    my ($best, $most) = (undef, -1);
                    if (!$why) {
                        for (1 .. 30) {
                            my $c = choose($kind, \%core) or next;
                            my $new = grep { !$covered{$_} } pairs_of($c);
                            ($best, $most) = ($c, $new) if $new > $most;
                        }
                        $why = 'no traffic brings it about' unless $best;
                    }
                    $best //= {%core};
                    $best->{why} = $why;
                    $best->{id} = id($best);
                    push @cells, $best;
                    $covered{$_} = 1 for $why ? () : pairs_of($best);
                }
            }
        }
    }
    push @cells, extra(\%covered);
    check_pairs(\%covered);
    return @cells;
}

# Cells for the pairs that are still missing and can exist.
sub extra {
    my ($covered) = @_;
    my @cells;
    for my $pair (grep { !row_of($_) } all_pairs()) {
        next if $covered->{$pair};
        my %fixed = (fault => 'lost', place => 'first', side => 'sender', map { split /=/ } split / /, $pair);
        for my $kind (grep { !$fixed{kind} || $fixed{kind} eq $_->{name} } @kinds) {
            next unless is_fault($kind, $fixed{fault}, $fixed{side});
            my $c = choose($kind, { %fixed, kind => $kind->{name} }) or next;
            $c->{id} = sprintf 'pair%d.%s', scalar @cells, id($c);
            push @cells, $c;
            $covered->{$_} = 1 for pairs_of($c);
            last;
        }
    }
    return @cells;
}

# A second rail dies in each state of a restart, at a fragment that belongs to the state. The fragment travels over a rail other than
# the rail that the base fault has taken. The base fault of errd is an error at once, so the sender is draining when the second fault comes.
my @states = (
    ['errd', 'sender drains: second data fragment', { copy => $FRAG, put => $WRITE }],
    ['notified', 'NOTIFY in flight', { map { $_ => pml(11) } qw(copy put get) }],
    ['errl', 'RERR in flight', { map { $_ => pml(14) } qw(copy put get) }],
    ['waitrts', 'RACK in flight', { map { $_ => pml(12) } qw(copy put get) }],
    ['rts1', 'restarted first fragment', { copy => again(2), put => again(2), get => again(3) }],
    ['active1', 'answer of the second attempt', { copy => again(4), put => again(8) }],
    ['stream1', 'data of the second attempt', { copy => again(6) }],
    ['fin1', 'FIN of the second attempt', { put => again(9), get => again(9) }],
    ['nack', 'NACK in flight', { single => pml(13) }],
    ['fence', 'DOWN in flight', { map { $_ => ctl(0x30) } qw(copy put get) }],
    ['fenced', 'DACK in flight', { map { $_ => ctl(0x31) } qw(copy put get) }],
);

sub doubles {
    my @cells;
    for my $state (@states) {
        my ($name, $text, $match) = @$state;
        for my $proto (sort keys %$match) {
            my $base = ($name eq 'errl' ? \%answer : $name eq 'nack' ? $kind{NACK}{base} : \%restart)->{$proto} . ' nth=2';
            $base =~ s/^lose/error/ if $name eq 'errd';
            my %by = (cable => 'down', port => 'down local');
            %by = (%by, lost => 'lose', unacked => 'unacked', silent => 'silent time=100ms breaks=both')
                if $name !~ /^fence/;
            for my $how (sort keys %by) {
                my $c = choose({ name => "double", proto => [$proto], rails => 3 },
                               { fault => $how, place => "first", side => "sender", proto => $proto, load => "deep" }) or next;
                $c->{id} = "double.$name.$proto.$how";
                $c->{kind} = "double $name";
                $c->{plan} = [$base, "$by{$how} $match->{$proto} nth=1 after=1 other=1"];
                $c->{losses} = [2, 2];
                $c->{text} = $text;
                push @cells, $c;
            }
        }
    }
    return @cells;
}

# Ports that die, of all processes or only of the sender, during the first contact or later.
sub ports {
    my @cells;
    my %when = (contact => ctl(0x32), reply => ctl(0x33), told => ctl(0x34), early => first(1), late => first(1));
    for my $name (sort keys %when) {
        for my $how ('down', 'down local') {
            for my $rails (2, 3) {
                my $nth = $name eq 'late' ? 9 : 1;
                my $c = choose({ name => 'port', proto => ['eager'] },
                               { kind => 'SENDI', fault => 'down', place => 'first', side => 'both', rails => $rails,
                                 mode => 'standard', load => 'peers', threads => 1, proto => 'eager' }) or next;
                $c->{id} = join '.', 'port', $name, $how =~ /local/ ? 'one' : 'all', $rails;
                $c->{kind} = "port $name";
                $c->{plan} = ["$how $when{$name} nth=$nth"];
                $c->{losses} = [1, 1];
                push @cells, $c;
            }
        }
    }
    return @cells;
}

# A WRITE that failed lands late, and the fence of the receiver takes long, because its queue pairs cannot be moved to ERR before they are
# destroyed. Each message is one WRITE, and messages go one way, so that no FIN of a good WRITE waits for this fence. Nothing may land in a
# buffer that was returned to the program.
sub fences {
    my @cells;
    for my $rails (2, 3, 4) {
        for my $load ("idle") {
            my $c = choose({ name => "fence", proto => ["put1"] },
                           { fault => "late", place => "first", side => "sender", rails => $rails, load => $load, proto => "put1",
                             threads => 1, mode => "standard", recheck => 1200, oneway => 1 }) or next;
            $c->{id} = "fence.$rails.$load";
            $c->{kind} = "fence";
            $c->{plan} = ["late rail=sr0 $WRITE nth=2 time=500ms", "enomem op=qp_error nth=1-32"];
            push @cells, $c;
        }
    }
    return @cells;
}

# The message of a restart is lost on the very rail that dies. The receiver has given the rail up when it matches messages that came over
# this rail, and reports for each of them that it cannot read the message. The sender has not noticed the loss, because DOWN is lost, and
# sends its NOTIFYs over all rails in turn. One rail is lost. No event makes a NOTIFY take this rail: on a busy machine few messages may be in
# flight, and all their NOTIFYs may take the other rails. Then the cell is tried again.
sub overtaken {
    my @cells;
    for my $rails (2, 3) {
        my $c = choose({ name => 'overtaken', proto => ['get'] },
                       { kind => 'overtaken', fault => 'lost', place => 'first', side => 'sender', rails => $rails, load => 'deep',
                         mode => 'standard', proto => 'get', receive => 'late' }) or next;
        $c->{id} = "overtaken.$rails";
        $c->{proto} = 'get1'; # many READs fail, so a NOTIFY goes over their rail
        $c->{plan} = ["error rail=sr0 $READ nth=12", 'lose ' . ctl(0x30) . ' nth=1-2', 'lose rail=sr0 ' . pml(11) . ' nth=1 after=1'];
        $c->{losses} = [1, 1];
        push @cells, $c;
    }
    return @cells;
}

sub all { my ($seed) = @_; seed($seed); return (complete(), doubles(), ports(), fences(), overtaken()) }

# The part that runs with every change. It has each kind, fault and side that sees an error once, with the places in turn. For datagrams
# it has each fault seen by one combination of sides, and the loss that nobody sees. It has each state of a restart with two second faults,
# some ports and one late WRITE. It has no overtaken bring-down, which on a busy machine may be missed in all tries:
# tests/world/test_world_overtakes.sh has them.
our $fast_most = 200;
sub fast {
    my ($seed) = @_;
    my (@cells, %seen);
    my %datagram = map { $_ => 1 } qw(lost.nobody lost.sender unacked.receiver silent.both);
    my %port = map { $_ => 1 } qw(contact.all reply.one told.all early.one late.all);
    for my $c (all($seed)) {
        if (my ($state, $how) = $c->{id} =~ /^double\.(\w+)\.\w+\.(\w+)/) {
            push @cells, $c if $how =~ /lost|cable/ && !$seen{"$state $how"}++;
        } elsif ($c->{id} =~ /^(fence)/) {
            push @cells, $c unless $seen{$1}++;
        } elsif ($c->{kind} eq 'overtaken') {
            next;
        } elsif ($c->{id} =~ /^port\.(\w+\.\w+)/) {
            push @cells, $c if $port{$1} && !$seen{$1}++;
        } elsif ($c->{id} !~ /^pair/ && !$c->{why}) {
            next unless $kind{ $c->{kind} }{datagram} ? $datagram{"$c->{fault}.$c->{side}"} : $c->{side} ne 'nobody';
            my $n = $seen{ join '.', $c->{kind}, $c->{fault}, $c->{side} }++;
            push @cells, $c if $n == (($c->{kind} =~ tr/A-M//) + length("$c->{fault}$c->{side}")) % 3;
        }
    }
    die scalar @cells . " cells are too many for every change: $fast_most at most\n" if @cells > $fast_most;
    return @cells;
}
1;
