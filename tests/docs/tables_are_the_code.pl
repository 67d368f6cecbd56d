#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# tables_are_the_code.pl DIR: every action that pml_bfo_failover_send.def and _recv.def name is a C function of that name
# (bfo_send_act_NAME, bfo_recv_act_NAME). The code fires every event, gives it to the engine, or does its rows in place, by name, and
# no event of a row with an ACTION_IN_PLACE reaches the engine. The state word has one writer. The list of exceptions below only
# tightens: an entry that is no longer needed is an error as well. DESIGN.txt section 7.6.
# The same holds for btl_openib_drain.def (ofo_drain_act_NAME), which has no exceptions, and for the events of btl_openib_rail.def, whose
# actions are elements of an array that the compiler makes from the table. The states of a set of queue pairs, of a marker, of a rail and of its
# gate have one writer each, and one header of the PML calls the BTL's extension. DESIGN.txt sections 2.4, 10.2 and 10.3.
# What the PML keeps of a rail has one writer each: the masks of a peer, and the generations and fences. DESIGN.txt section 14.1.
use strict;
use warnings;

my %not_raised = (send => [], recv => [qw(DISCARDED)]);    # code that GUARD() generates raises a GUARD
my %prefix = (send => 'BFO_SEV_', recv => 'BFO_REV_');

my ($dir) = @ARGV;
my $bad = 0;
sub complain { print "  $_[0]\n"; ++$bad }

sub slurp
{
    my ($path) = @_;
    open my $in, '<', $path or die "$path: $!\n";
    local $/;
    return scalar <$in>;
}

# assigns CODE MEMBER: does CODE assign to the member, or count it up or down?
sub assigns
{
    my ($code, $member) = @_;

    return $code =~ /$member\s*(?:[-+|&^]|<<|>>)?=[^=]/ || $code =~ /$member\s*(?:\+\+|--)/ || $code =~ /(?:\+\+|--)[\w.>[\]-]*$member\b/;
}

# writes CODE MEMBER: does CODE assign to the member, store into it, or take its address?
sub writes
{
    my ($code, $member) = @_;

    return assigns($code, $member) || $code =~ /\bOFO_STORE\([^,;]*$member\b/ || $code =~ /&[\w.>[\]-]*$member\b/;
}

# same MACHINE WHAT LIST MISSING: complains unless MISSING has the same names as LIST.
sub same
{
    my ($machine, $what, $list, $missing) = @_;
    my %listed = map { $_ => 1 } @$list;
    my %missing = map { $_ => 1 } @$missing;

    complain("$machine: $_ $what") for grep { !$listed{$_} } @$missing;
    complain("$machine: $_ is listed in tables_are_the_code.pl (\"$what\"), and need not be") for grep { !$missing{$_} } @$list;
}

# The functions that a BTL with failover sets: those after "set by the BTL" in the structure of its extension.
my ($set_by_btl) = slurp("$dir/include/bfo_btl_ext.h") =~ m{/\* set by the BTL \*/\n(.*?)^\} bfo_btl_ext_t;}ms;
my $functions = join '|', my @functions = ($set_by_btl || '') =~ /\bbfo_btl_\w+_fn_t (\w+);/g;
die "few functions in the extension\n" if 8 > @functions;

my $of_rails = '(?:\.|->)(?:fencing|fenced|awaited|is_lossy|lossy_first|lossy_last)|(?<!\bfrag)(?<!\bname)(?:\.|->)gen';
my $masks = '(?:\.|->)(?:(?:up|send|eager|put|pin|get)_mask|offers_reads)';
my $text = '';
for my $path (sort glob "$dir/pml_bfo/*/*.[ch]") {
    my $code = slurp($path) =~ s{/\*.*?\*/}{}gsr;
    complain("$path: only pml_bfo_generation.[ch] write the generations and fences of a rail")
        if $path !~ m{/pml_bfo_generation\.[ch]$} && writes($code, "(?:$of_rails)");
    complain("$path: only pml_bfo_rails.c writes the masks of a peer") if $path !~ m{/pml_bfo_rails\.c$} && assigns($code, $masks);
    complain("$path: only pml_bfo_failover_se.h names the state word that can be written")
        if $path !~ m{/pml_bfo_failover_se\.h$} && $code =~ /(?:\.|->)own\b/;
    complain("$path: only pml_bfo_extension.h calls the BTL's extension")
        if $path !~ m{/pml_bfo_extension\.h$} && $code =~ /->ext->|->(?:$functions)\(/;
    $text .= $code if $path !~ m{/pml_bfo_failover_(?:se\.h|fire\.h|fsm\.[ch])$};
}
for my $machine (qw(send recv)) {
    my $def = slurp("$dir/pml_bfo/tables/pml_bfo_failover_$machine.def");
    my @actions = $def =~ /^ACTION(?:_IN_PLACE)?\((\w+)\)/mg;
    my %in_place = map { $_ => 1 } $def =~ /^ACTION_IN_PLACE\((\w+)\)/mg;
    my %kind = $def =~ /^EVENT\((\w+),\s*(\w+),/mg;
    my %by_hand = map { $_ => 1 } $text =~ /\bBFO_\U$machine\E_ROW\([^;]*\b(\w+)\);/g;
    my %is_fired;
    my $raises = $text =~ s/\bbfo_${machine}_fire(?:_at)?(\((?:[^()]++|(?1))*\))/$is_fired{$_} = 1 for $1 =~ m{\b$prefix{$machine}(\w+)}g; ''/ger;
    # what is left of the code gives its events to the engine

    die "$machine: few actions or events\n" if 20 > @actions || 20 > keys %kind || 2 > keys %by_hand;
    same($machine, 'is an action without a function', [],
        [grep { $text !~ /^[a-z][^\n;]*\bbfo_${machine}_act_$_\([^;{]*\)\s*\{/m } @actions]);
    same($machine, 'is an event that nothing raises', $not_raised{$machine},
        [grep { 'GUARD' ne $kind{$_} && !$by_hand{$_} && $text !~ /\b$prefix{$machine}$_\b/ } sort keys %kind]);
    my %is_err = map { $_ => 1 } $def =~ /^STATE\((\w+),\s*"[^"]*",\s*1\)/mg;
    while ($def =~ /^ROW\w*\(\w+,\s*(\w+),\s*(\w+),\s*\w+,\s*(\w+)\)/mg) {
        my ($from, $on, $act) = ($1, $2, $3);
        complain("$machine: the engine gets $on in $from, whose action $act it does not have")
            if $in_place{$act} && ('GUARD' eq $kind{$on} || $raises =~ /\b$prefix{$machine}$on\b/) && ($is_err{$from} || !$is_fired{$on});
    }
}

# the_names TABLE WHAT: the actions or events of a table of the BTL.
sub the_names
{
    my ($table, $what) = @_;
    my @names = slurp("$dir/btl_openib_failover/tables/btl_openib_$table.def") =~ /^$what\((\w+)[,)]/mg;

    die "$table: few of $what\n" if 8 > @names;
    return @names;
}
$text = '';
for my $path (sort glob "$dir/btl_openib_failover/*/*.[ch]") {
    my $code = slurp($path) =~ s{/\*.*?\*/}{}gsr;
    next if $path =~ m{/btl_openib_drain_fsm\.[ch]$};
    complain("$path: only btl_openib_drain_fsm.[ch] name the state of a set of queue pairs") if $code =~ /(?:\.|->)own\b/;
    complain("$path: only btl_openib_marker.[ch] write the state of a marker") if $path !~ m{/btl_openib_marker\.[ch]$} && $code =~ /\bmarker_state\s*=[^=]/;
    complain("$path: only btl_openib_gate.[ch] write the gate of a rail") if $path !~ m{/btl_openib_gate\.[ch]$} && writes($code, '(?:\.|->)gate');
    complain("$path: only btl_openib_rail_fsm.c writes the state of a rail") if $path !~ m{/btl_openib_rail_fsm\.c$} && writes($code, '\bfsm(?:\.|->)state');
    $text .= $code;
}
same('drain', 'is an action without a function', [],
    [grep { $text !~ /^void ofo_drain_act_$_\([^;{]*\)\s*\{/m } the_names('drain', 'ACTION')]);
same('drain', 'is an event that nothing raises', [], [grep { $text !~ /\bOFO_DEV_$_\b/ } the_names('drain', 'EVENT')]);
# The engine itself raises the events that are messages, and compares others.
same('rail', 'is an event that nothing raises', [], [grep { $text !~ /\bOFO_EV_$_\b(?!\s*[!=]=)/ } the_names('rail', 'EVENT')]);
exit($bad ? 1 : 0);
