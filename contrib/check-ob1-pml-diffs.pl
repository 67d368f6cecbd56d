#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Compares ob1's functions with ours, by concept: shows intended differences, and differences that nobody has explained.
# The manual is at the end: --help prints it.
use strict;
use warnings;
use FindBin '$RealBin';
use lib "$RealBin/lib";
use Getopt::Long qw(GetOptionsFromArray :config no_ignore_case);
use Bfo::C 'file_text';
use Bfo::Compare qw(places unexplained);
use Bfo::Map qw(short_file write_file);
use Bfo::Ours;
use Bfo::Run qw(run_main check_options read_tree places_text to_json lines_must_name_something);
use Bfo::Tree;

run_main(\&main, @ARGV);

sub main {
    my %option = (map => "$RealBin/ob1-map.txt", ours => "$RealBin/..");
    GetOptionsFromArray(\@_, \%option, 'tree=s', 'git=s', 'to=s', 'html=s', 'map=s', 'ours=s', 'json', 'help')
        or die "see check-ob1-pml-diffs.pl --help\n";
    if ($option{help}) { require Pod::Usage; Pod::Usage::pod2usage(-verbose => 2, -noperldoc => 1, -exitval => 0) }
    my $concept = lc(shift // '');
    die "'$_[0]' is one word too many: see check-ob1-pml-diffs.pl --help\n" if @_;
    check_options(\%option);
    my $map = Bfo::Map->read($option{map});
    die "there is no concept '$concept'; concepts: @{$map->{order}}\n" if $concept ne '' && !$map->{concepts}{$concept};
    my $ours = Bfo::Ours->new($option{ours});
    my ($tree, $facts);
    if (defined $option{tree} || defined $option{git}) {
        $map->{watch}{headers}{$_} = 1 for keys %{$ours->{headers}}, map { $_->{name} } grep { $_->{kind} eq 'header' } $map->entries;
        $tree = read_tree(\%option, $map);
        $facts = [$tree->facts($map->{watch}, $ours)];
        lines_must_name_something($map, $facts, $tree);
    }
    my $view = view_of($map, $ours, $tree, $facts, $concept);
    write_file($option{html}, html_text($view)) if defined $option{html};
    print $option{json} ? to_json(json_of($view)) : text_of($view) if $option{json} || !defined $option{html};
    return $view->{n_unexplained} ? 1 : 0;
}

# For each concept: rows (a thing of Open MPI, its place, our piece, the reason), and unexplained things.
sub view_of {
    my ($map, $ours, $tree, $facts, $only) = @_;
    my %view = (release => $tree ? $tree->{release} : ($map->releases)[0] // '?', tree => $tree, ours_top => $ours->{top}, concepts => []);
    my (%rows, %open, %line_of);
    my @pairs = $facts ? $map->pair(@$facts) : map { [undef, $_] } $map->entries;
    for my $pair (@pairs) {
        my ($fact, $line) = @$pair;
        $view{n_new}++ if $fact && !$line && $fact->{used};
        $view{n_gone}++ if $facts && !$fact;
        next if !$line || ($facts && !$fact) || $line->{ours} =~ /^[=?]$/;
        push @{$rows{$line->{concept}}}, { entry => $line, fact => $fact, places => [places($ours, @{$line->{pieces}})] };
    }
    push @{$open{$_->{concept}}}, $_ for unexplained($map, $ours, $facts);
    for my $concept (@{$map->{order}}) {
        next if $only ne '' && $only ne $concept;
        my $unexplained = $open{$concept} // [];
        $view{n_unexplained} += @$unexplained;
        push @{$view{concepts}}, { name => $concept, what => $map->{concepts}{$concept}, rows => $rows{$concept} // [],
                                   unexplained => $unexplained };
    }
    $view{n_unexplained} //= 0;
    return \%view;
}

sub their_place {
    my ($row) = @_;
    my ($entry, $fact) = @$row{qw(entry fact)};
    return $fact && $fact->{line} ? short_file($fact->{file}) . ":$fact->{line}" : $entry->{file};
}

sub text_of {
    my ($view) = @_;
    my $text = 'Open MPI ' . $view->{release} . ($view->{tree} ? '' : ', as the map says (no tree was named)') . " and bfo.\n";
    for my $concept (@{$view->{concepts}}) {
        next if !@{$concept->{rows}} && !@{$concept->{unexplained}};
        $text .= "\n== $concept->{name}: $concept->{what}\n";
        for my $row (@{$concept->{rows}}) {
            my $entry = $row->{entry};
            $text .= sprintf "%-10s%s  (%s)\n", $entry->{kind}, $entry->{name}, their_place($row);
            $text .= '    bfo: ' . join(', ', places_text(@{$row->{places}})) . "\n" if @{$row->{places}};
            $text .= (@{$row->{places}} ? '    meant: ' : '    no counterpart: ') . "$entry->{why}\n" if $entry->{why} ne '';
        }
        $text .= unexplained_text($_) for @{$concept->{unexplained}};
    }
    $text .= "\n" . ($view->{n_gone} ? "$view->{n_gone} lines name what this tree does not have: see check-ob1-revision.pl\n" : '')
        . ($view->{n_new} ? "$view->{n_new} things of headers that bfo names have no line yet: check-ob1-revision.pl --accept adds them\n" : '')
        . "$view->{n_unexplained} unexplained\n";
    return $text;
}

sub unexplained_text {
    my ($open) = @_;
    my $where = $open->{line} ? short_file($open->{file}) . ":$open->{line}" : $open->{file};
    my @places = places_text(@{$open->{pieces} // []});
    return sprintf("! %-10s%s  (%s)\n    %s\n", $open->{kind}, $open->{name}, $where, $open->{problem})
        . (@places ? '    near: ' . join(', ', @places) . "\n" : '');
}

sub json_of {
    my ($view) = @_;
    my $place = sub { { name => $_[0]{piece}, file => $_[0]{file}, line => defined $_[0]{line} ? $_[0]{line} + 0 : undef } };
    return { release => $view->{release}, unexplained => $view->{n_unexplained}, concepts => [map { {
        name => $_->{name}, what => $_->{what},
        rows => [map { my $row = $_; { kind => $row->{entry}{kind}, name => $row->{entry}{name}, file => $row->{entry}{file},
                       line => $row->{fact} ? $row->{fact}{line} + 0 : undef, why => $row->{entry}{why},
                       ours => [map { $place->($_) } @{$row->{places}}] } } @{$_->{rows}}],
        unexplained => [map { { kind => $_->{kind}, name => $_->{name}, file => $_->{file}, line => $_->{line} + 0,
                                problem => $_->{problem}, near => [map { $place->($_) } @{$_->{pieces} // []}] } }
                        @{$_->{unexplained}}] } } @{$view->{concepts}}] };
}

# ---- HTML

sub escape {
    my ($text) = @_;
    my %entity = ('&' => '&amp;', '<' => '&lt;', '>' => '&gt;', '"' => '&quot;', "'" => '&#39;');
    $text =~ s/([&<>"'])/$entity{$1}/g;
    $text =~ s/[^\P{Cc}\t\n]/?/g;
    return $text;
}

# Returns the lines FROM to TO of a file, or nothing.
sub source_of {
    my ($path, $from, $to) = @_;
    my @lines = split /^/, file_text($path);
    return join '', grep { defined } @lines[$from - 1 .. ($to < @lines ? $to : @lines) - 1];
}

sub html_cell {
    my ($head, $source) = @_;
    return '<td>' . escape($head) . ($source eq '' ? '' : '<details open><summary>source</summary><pre>' . escape($source) . '</pre></details>') . '</td>';
}

sub html_row {
    my ($view, $row) = @_;
    my ($entry, $fact) = @$row{qw(entry fact)};
    my $theirs = $fact && $fact->{end} ? source_of("$view->{tree}{dir}/$fact->{file}", $fact->{line}, $fact->{end}) : '';
    my $ours = join "\n", map { $_->{file} && ($_->{end} // 0) > 0 ? source_of("$view->{ours_top}/$_->{file}", $_->{line}, $_->{end}) : () }
        @{$row->{places}};
    my $why = $entry->{why} eq '' ? '' : (@{$row->{places}} ? 'meant: ' : 'no counterpart: ') . $entry->{why};
    return '<tr>' . html_cell("$entry->{kind} $entry->{name} (" . their_place($row) . ')', $theirs)
        . html_cell(join(', ', places_text(@{$row->{places}})), $ours) . '<td>' . escape($why) . "</td></tr>\n";
}

sub html_text {
    my ($view) = @_;
    my $title = escape("Open MPI $view->{release} and bfo: $view->{n_unexplained} unexplained");
    my $html = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>$title</title>\n<style>"
        . 'table{border-collapse:collapse;width:100%;table-layout:fixed}td,th{border:1px solid #888;padding:4px;vertical-align:top;'
        . 'overflow:auto}pre{font-size:small}.open td{background:#fdd}</style></head><body>' . "\n<h1>$title</h1>\n";
    for my $concept (@{$view->{concepts}}) {
        next if !@{$concept->{rows}} && !@{$concept->{unexplained}};
        $html .= '<h2>' . escape("$concept->{name}: $concept->{what}") . "</h2>\n<table><tr><th>ob1, r2, interfaces</th><th>bfo</th><th>why</th></tr>\n";
        $html .= join '', map { '<tr class="open"><td>' . escape("$_->{kind} $_->{name} ($_->{file})") . '</td><td>'
            . escape(join ', ', places_text(@{$_->{pieces} // []})) . '</td><td>' . escape("unexplained: $_->{problem}") . "</td></tr>\n" } @{$concept->{unexplained}};
        $html .= join('', map { html_row($view, $_) } @{$concept->{rows}}) . "</table>\n";
    }
    return "$html</body></html>\n";
}

__END__

=head1 NAME

check-ob1-pml-diffs.pl - shows ob1's functions with those of bfo, and the differences nobody has explained

=head1 SYNOPSIS

B<contrib/check-ob1-pml-diffs.pl> [B<--tree> I<DIR> | B<--git> I<DIR> [B<--to> I<TAG>]] [B<--html> I<FILE>] [B<--json>] [I<CONCEPT>]

=head1 DESCRIPTION

For one concept, or for all, this script shows the functions and other things of Open MPI's PML ob1, of BML r2 and of the
interfaces under them, each with the pieces of bfo that do the same, and the places of both. A I<piece> is a function, type,
field or parameter of bfo; its I<place> is its file and line. The concepts are those of F<contrib/ob1-map.txt>: startup,
matching, send, receive, rendezvous, rget, put, frag, fin, pending, progress, probe, cancel, finalize, parameters and some more;
an unknown concept prints them all.

After B<meant> comes the reason why bfo does something in another way; after B<no counterpart> the reason why bfo does not do it
at all.
A line with B<!> is unexplained:

=over

=item *

a function, macro, variable, structure, parameter, request field or error path of the tree without a line in the map;

=item *

a line or a topic whose piece of ours is gone, or a line that says C<?>;

=item *

an error code that a function there handles and ours does not, without a reason.

=back

An error path is a function and an error code that it names; a code that the function only passes on does not count. Without a
tree the script only tests the map against bfo's sources. The script and this page are not installed; they stay in the source
tree of bfo. The script needs Universal Ctags.

=head1 OPTIONS

=over

=item B<--tree> I<DIR>

An unpacked source tree of Open MPI. It need not be configured.

=item B<--git> I<DIR>, B<--to> I<TAG>

A clone of Open MPI, and its tag (HEAD if no tag is given).

=item B<--html> I<FILE>

Writes both sources side by side into a file instead of the text, either completely or not at all. If the file is a symlink, the
script writes its target.

=item B<--json>

Prints one JSON object: release, unexplained (a number), and concepts, each with name, what, rows and unexplained.

=item B<--map> I<FILE>, B<--ours> I<DIR>

Another map, and another source tree of bfo, than those around the script.

=item B<--help>

This text.

=back

=head1 EXIT STATUS

0: everything is explained. 1: something is unexplained. 2: bad input or a signal; one message names it, and nothing was written.

=head1 EXAMPLES

    contrib/check-ob1-pml-diffs.pl --tree ../openmpi-4.1.4 matching
    contrib/check-ob1-pml-diffs.pl --tree ../openmpi-4.1.4 --html /tmp/ob1.html

=head1 SEE ALSO

check-ob1-revision.pl(1), ctags(1), DESIGN.txt section 18.1

=cut
