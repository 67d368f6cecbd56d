# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The differences between two states of Open MPI, each with the piece of our code that it concerns; and the facts of one state
# that the map does not explain. A state is a list of facts (Bfo::Tree) or the records of the map. DESIGN.txt 18.1.
package Bfo::Compare;
use strict;
use warnings;
use Exporter 'import';
use Bfo::Map 'short_file';
our @EXPORT_OK = qw(changes unexplained places topics_of);

my @kinds = qw(component header typedef field struct variable macro constant function param error);
my %weight = map { $kinds[$_] => $_ } 0 .. $#kinds;

# places(OURS, PIECES): { piece, file, line } for each piece; without file if we have no such thing.
sub places {
    my ($ours, @pieces) = @_;
    return map {
        my $piece = $_;
        my @at = map { { piece => $piece, file => $_->{file}, line => $_->{line}, end => $_->{end} } } $ours->find($piece);
        @at ? @at : { piece => $piece };
    } @pieces;
}

# changes(MAP, OURS, FACTS, BEFORE): list of changes since the map's records, or since the facts BEFORE; worst first.
sub changes {
    my ($map, $ours, $facts, $before) = @_;
    my $old = $before ? pairs_of_trees($facts, $before, $map) : [map { [$_->[0], $_->[1], $_->[1]] } $map->pair(@$facts)];
    my @changes;
    for my $triple (@$old) {
        my ($is, $was, $line) = @$triple;
        next if !$was && !$before && $is->{used}; # needs no line until a person compares again
        my $what = what_happened($is, $was) or next;
        my $any = $is // $was;
        push @changes, { what => $what, kind => $any->{kind}, name => $any->{name}, file => $any->{file},
                         line => $is ? $is->{line} : 0, $line ? (entry => $line) : (), fact => $is,
                         $was && defined $was->{record} ? (was => $was->{record}, was_file => short_file($was->{file})) : (),
                         $is ? (is => $is->{record}) : (), text => $is ? $is->{text} : undef };
    }
    fold(\@changes);
    find_pieces($_, $map, $ours, $facts) for @changes;
    $_->{rank} = rank($_) for @changes;
    return sort { $a->{rank} <=> $b->{rank} || $weight{$a->{kind}} <=> $weight{$b->{kind}} || $a->{concept} cmp $b->{concept}
                  || $a->{name} cmp $b->{name} } @changes;
}

sub pairs_of_trees {
    my ($facts, $before, $map) = @_;
    my %line = map { $_->[0] ? ($_->[0] => $_->[1]) : () } $map->pair(@$facts), $map->pair(@$before);
    my (%old, @triples);
    push @{$old{"$_->{kind} $_->{name}"}}, $_ for @$before;
    for my $fact (@$facts) {
        my $same = $old{"$fact->{kind} $fact->{name}"} // [];
        my ($at) = grep { $same->[$_]{file} eq $fact->{file} } 0 .. $#$same;
        my $was = @$same ? splice(@$same, $at // 0, 1) : undef;
        push @triples, [$fact, $was, $line{$fact} // ($was && $line{$was})];
    }
    push @triples, map { [undef, $_, $line{$_}] } map { @$_ } values %old;
    return \@triples;
}

sub what_happened {
    my ($is, $was) = @_;
    return 'added' if !$was;
    return defined $was->{record} ? 'gone' : '' if !$is;
    return 'added' if !defined $was->{record};
    return 'changed' if $is->{record} ne $was->{record};
    return short_file($is->{file}) ne short_file($was->{file}) ? 'moved' : '';
}

# A consequence of another change in the list is no change of its own: the error codes of a function that is new or gone, the
# fields of such a structure.
sub fold {
    my ($changes) = @_;
    my %whole = map { $_->{what} =~ /^(?:added|gone)$/ && $_->{kind} =~ /^(?:function|struct)$/ ? ("$_->{what} $_->{name}" => $_) : () }
        @$changes;
    @$changes = grep {
        my ($owner) = $_->{name} =~ /^(\w+)[ .]/;
        my $by = $_->{kind} =~ /^(?:error|field)$/ ? $whole{"$_->{what} $owner"} : undef;
        push @{$by->{codes}}, $_->{name} =~ s/.* //r if $by && $_->{kind} eq 'error';
        !$by;
    } @$changes;
}

# Where to look in our code: the line's pieces; our files that name the thing; the topic's pieces; the pieces of the functions
# that call a new function; the pieces of other things in the same file.
sub find_pieces {
    my ($change, $map, $ours, $facts) = @_;
    my $entry = $change->{entry};
    $change->{topics} = [map { $_->{name} } topics_of($change, $map)];
    $change->{users} = [$ours->users($change)];
    $change->{concept} = $entry ? $entry->{concept} : '';
    $change->{why} = $entry ? $entry->{why} : '';
    if ($entry && @{$entry->{pieces}}) {
        $change->{pieces} = [places($ours, @{$entry->{pieces}})];
        return;
    }
    $change->{pieces} = [];
    return if $entry && $entry->{ours} eq '=' && @{$change->{users}};
    my ($topic) = topics_of($change, $map);
    my @near = $topic ? ($topic) : $entry ? () : (callers($change, $map, $facts), file_mates($change, $map));
    if (@near) {
        $change->{concept} ||= $near[0]{concept};
        $change->{pieces} = [places($ours, @{$near[0]{pieces}})];
    }
    $change->{concept} ||= 'interface';
}

sub topics_of {
    my ($change, $map) = @_;
    my $text = "$change->{kind} $change->{name} " . ($change->{is} // '');
    return grep { $text =~ $_->{pattern} } @{$map->{topics}};
}

sub callers {
    my ($change, $map, $facts) = @_;
    return () if $change->{kind} ne 'function' && $change->{kind} ne 'macro';
    my @callers = grep { $_->{tokens} && $_->{name} ne $change->{name} && grep { $_ eq $change->{name} } @{$_->{tokens}} } @$facts;
    return grep { @{$_->{pieces}} } map { @{$map->{by_name}{"$_->{kind} $_->{name}"} // []} } @callers;
}

# The line whose piece is the most frequent among the lines of the file.
sub file_mates {
    my ($change, $map) = @_;
    my (%n, %line);
    for my $entry ($map->entries) {
        next if short_file($entry->{file}) ne short_file($change->{file}) || !@{$entry->{pieces}};
        $n{$entry->{pieces}[0]}++;
        $line{$entry->{pieces}[0]} //= $entry;
    }
    my ($most) = sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n;
    return defined $most ? $line{$most} : ();
}

# 1: our code names the thing, and the thing is gone or changed. 2: a component or header is gone or new. 3: a person must compare our
# piece that does the same. 4: new. 5: we have no counterpart. 6: only moved.
sub rank {
    my ($change) = @_;
    return 6 if $change->{what} eq 'moved';
    return 1 if $change->{what} ne 'added' && @{$change->{users}};
    return 2 if $change->{kind} eq 'component' || $change->{kind} eq 'header';
    return 4 if $change->{what} eq 'added';
    return @{$change->{pieces}} ? 3 : 5;
}

# The pieces of topics that are gone.
sub lost_topics {
    my ($map, $ours) = @_;
    return map {
        my $topic = $_;
        my @places = places($ours, @{$topic->{pieces}});
        map { { kind => 'topic', name => $topic->{name}, file => short_file($map->{path}), line => $topic->{number}, concept => $topic->{concept},
                problem => "its piece of ours is gone: $_->{piece}", pieces => \@places } } grep { !$_->{file} } @places;
    } @{$map->{topics}};
}

# unexplained(MAP, OURS, FACTS): list of { problem, kind, name, file, line, concept, entry, pieces }. If FACTS is undef, only the
# map is tested against our code.
sub unexplained {
    my ($map, $ours, $facts) = @_;
    my @list = lost_topics($map, $ours);
    for my $pair ($facts ? $map->pair(@$facts) : map { [$_, $_] } $map->entries) {
        my ($fact, $line) = @$pair;
        next if !$fact || (!$line && $fact->{used});
        my %at = (kind => $fact->{kind}, name => $fact->{name}, file => $fact->{file}, line => $fact->{line} // 0,
                  concept => $line ? $line->{concept} : '', $line ? (entry => $line) : ());
        if (!$line) {
            find_pieces(\%at, $map, $ours, $facts);
            push @list, { %at, problem => 'has no line in the map' };
            next;
        }
        my @places = places($ours, @{$line->{pieces}});
        push @list, map { { %at, problem => "its piece of ours is gone: $_->{piece}", pieces => \@places } } grep { !$_->{file} } @places;
        push @list, { %at, problem => 'its line does not say yet which piece of ours does this', pieces => [] } if $line->{ours} eq '?';
        if ($fact->{kind} eq 'error' && $line->{why} eq '' && $line->{ours} ne '?') {
            my ($code) = $fact->{name} =~ / (\S+)$/;
            push @list, { %at, problem => "$code is handled there and not here", pieces => \@places }
                if !grep { $ours->names_code($_, $code) } @{$line->{pieces}};
        }
    }
    return @list;
}

1;
