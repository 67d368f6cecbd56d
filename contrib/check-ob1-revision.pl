#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Shows the changes of ob1 and of the interfaces under it since a person compared contrib/ob1-map.txt, and the places of our code to
# look at. The manual is at the end: --help prints it.
use strict;
use warnings;
use FindBin '$RealBin';
use lib "$RealBin/lib";
use Getopt::Long qw(GetOptionsFromArray :config no_ignore_case);
use Bfo::Compare 'changes';
use Bfo::Map 'short_file';
use Bfo::Ours;
use Bfo::Run qw(run_main check_options read_tree places_text to_json lines_must_name_something);
use Bfo::Tree;

my @headings = ('', 'our sources name it, and it changed or is gone', 'frameworks, components and headers',
    'changed, and a piece of ours does the same', 'new', 'changed or gone, and ours has no counterpart', 'moved only');

run_main(\&main, @ARGV);

sub main {
    my %option = (map => "$RealBin/ob1-map.txt", ours => "$RealBin/..");
    GetOptionsFromArray(\@_, \%option, 'tree=s', 'git=s', 'from=s', 'to=s', 'map=s', 'ours=s', 'json', 'accept', 'help')
        or die "see check-ob1-revision.pl --help\n";
    if ($option{help}) { require Pod::Usage; Pod::Usage::pod2usage(-verbose => 2, -noperldoc => 1, -exitval => 0) }
    die "'$_[0]' is one word too many: see check-ob1-revision.pl --help\n" if @_;
    check_options(\%option);
    for my $other (grep { $option{accept} && defined $option{$_} } qw(json from)) { die "--accept and --$other exclude each other\n" }
    my $map = Bfo::Map->read($option{map});
    my $ours = Bfo::Ours->new($option{ours});
    if (!defined $option{tree} && !defined $option{git}) {
        die "--accept needs --tree or --git\n" if $option{accept};
        print json_text($map) if $option{json};
        print compared_with($map), ".\nName a tree to compare: --tree DIR, or --git DIR --to TAG.\n" if !$option{json};
        return 0;
    }
    $map->{watch}{headers}{$_} = 1 for keys %{$ours->{headers}}, map { $_->{name} } grep { $_->{kind} eq 'header' } $map->entries;
    my $tree = read_tree(\%option, $map);
    my $facts = [$tree->facts($map->{watch}, $ours)];
    lines_must_name_something($map, $facts, $tree);
    my $before = defined $option{from} && [Bfo::Tree->from_git($option{git}, $option{from}, $map->{watch})->facts($map->{watch}, $ours)];
    return accept_all($map, $facts, $tree->{release}) if $option{accept};
    my @changes = changes($map, $ours, $facts, $before);
    print $option{json} ? json_text($map, $tree, $option{from}, @changes) : report($map, $tree, $option{from}, @changes);
    return @changes ? 1 : 0;
}

sub compared_with {
    my ($map) = @_;
    my ($release, @others) = $map->releases;
    return 'The map was compared with Open MPI ' . ($release // '(nothing yet)') . ' ('
        . scalar(my @entries = $map->entries) . ' lines' . (@others ? "; some of them with @others" : '') . ')';
}

sub report {
    my ($map, $tree, $from, @changes) = @_;
    my $text = compared_with($map) . ".\n" . ($from ? "From $from to" : 'This tree is') . " Open MPI $tree->{release}: "
        . (@changes ? "changes to look at: " . scalar(@changes) . ".\n" : "nothing to look at.\n");
    $text .= topics_text($map, @changes);
    for my $rank (1 .. 6) {
        my @of_rank = grep { $_->{rank} == $rank } @changes or next;
        $text .= "\n== $headings[$rank] (" . scalar(@of_rank) . ")\n";
        $text .= change_text($_) for @of_rank;
    }
    return $text;
}

sub topics_text {
    my ($map, @changes) = @_;
    my $text = '';
    for my $topic (@{$map->{topics}}) {
        my @of_topic = grep { grep { $_ eq $topic->{name} } @{$_->{topics}} } @changes or next;
        my (%files, @where);
        for my $place (map { @{$_->{pieces}} } @of_topic) { $files{$place->{file}} = 1 if $place->{file} }
        for my $user (map { @{$_->{users}} } @of_topic) { $files{$user =~ s/:\d+$//r} = 1 }
        @where = sort keys %files;
        my @names = map { $_->{name} } @of_topic;
        $text .= "\n* $topic->{name}: $topic->{why}\n    " . scalar(@names) . (@names > 1 ? ' changes: ' : ' change: ')
            . join(', ', @names > 6 ? (@names[0 .. 5], '...') : @names) . "\n    look at: " . join(', ', @where) . "\n";
    }
    return $text eq '' ? '' : "\n== in short\n" . substr($text, 1);
}

sub change_text {
    my ($change) = @_;
    my $where = $change->{line} ? short_file($change->{file}) . ":$change->{line}" : short_file($change->{file});
    my $text = sprintf "%-8s%-10s%s  (%s)  [%s]\n", @$change{qw(what kind name)}, $where, $change->{concept};
    my $values = values_text($change);
    $text .= "    $values\n" if $values ne '';
    $text .= "    handles: @{$change->{codes}}\n" if $change->{codes} && $change->{what} eq 'added';
    $text .= "    was in $change->{was_file}\n" if ($change->{was_file} // '') ne short_file($change->{file}) && $change->{what} ne 'gone' && $change->{was_file};
    my @places = (places_text(@{$change->{pieces}}), @{$change->{pieces}} ? () : users_text($change));
    $text .= '    -> ' . join(', ', @places) . "\n" if @places;
    $text .= "    no counterpart of ours: $change->{why}\n" if !@places && $change->{why} ne '';
    return $text;
}

sub users_text {
    my ($change) = @_;
    my @users = @{$change->{users}};
    return @users > 8 ? (@users[0 .. 7], 'and ' . (@users - 8) . ' more files') : @users;
}

# Returns the old and the new value, where both are short; the whole new text of a type.
sub values_text {
    my ($change) = @_;
    my ($was, $is) = map { defined $_ && /^=(.*)/ && $_ ne '=here' ? $1 : undef } @$change{qw(was is)};
    return "was $was, is $is" if $change->{what} eq 'changed' && defined $was && defined $is;
    return "was $was" if $change->{what} eq 'gone' && defined $was;
    return "is $is" if defined $is && $change->{what} ne 'moved';
    my $text = $change->{text};
    return '' if !defined $text || $change->{what} eq 'moved' || $change->{kind} !~ /^(?:typedef|field|variable|macro)$/;
    $text =~ s/\s+/ /g;
    return 'is ' . (length($text) > 160 ? substr($text, 0, 157) . '...' : $text);
}

sub json_text {
    my ($map, $tree, $from, @changes) = @_;
    my ($compared) = $map->releases;
    return to_json({ compared_with => $compared, from => $from, release => $tree && $tree->{release}, changes => [map { {
        what => $_->{what}, kind => $_->{kind}, name => $_->{name}, file => $_->{file}, line => $_->{line} + 0, rank => $_->{rank} + 0,
        concept => $_->{concept}, topics => $_->{topics}, why => $_->{why}, was => $_->{was}, is => $_->{is},
        was_file => $_->{was_file}, users => $_->{users},
        ours => [map { { name => $_->{piece}, file => $_->{file}, line => defined $_->{line} ? $_->{line} + 0 : undef } } @{$_->{pieces}}] } } @changes] });
}

# After a person has compared: records the present state, removes things that are gone, adds new things with a question mark.
sub accept_all {
    my ($map, $facts, $release) = @_;
    my ($recorded, $gone, $new, %lines_for, %n) = (0, 0, 0);
    my $key = sub { "$_[0]{kind} $_[0]{name} " . short_file($_[0]{file}) };
    $n{$key->($_)}++ for @$facts;
    my $file_of = sub { $n{$key->($_[0])} > 1 ? $_[0]{file} : short_file($_[0]{file}) };
    for my $pair ($map->pair(@$facts)) {
        my ($fact, $line) = @$pair;
        if (!$fact) { $line->{text} = undef; $gone++; next }
        if (!$line) { push @{$lines_for{$fact->{used} || $fact->{kind} eq 'header' ? '=' : '?'}}, $fact; $new++; next }
        @$line{qw(release record file)} = ($release, $fact->{record}, $file_of->($fact));
        $line->{text} = Bfo::Map::entry_text($line);
        $recorded++;
    }
    for my $ours (sort keys %lines_for) {
        push @{$map->{rows}}, { text => '' }, { text => '# ---- new in ' . $release };
        push @{$map->{rows}}, map { { text => Bfo::Map::entry_text({ %$_, file => $file_of->($_), concept => 'interface',
            ours => $ours, release => $release, why => '' }) } } @{$lines_for{$ours}};
    }
    $map->save;
    print "Recorded in $map->{path} for Open MPI $release: $recorded lines compared, $gone taken out, $new new"
        . ($lines_for{'?'} ? ', ' . scalar(@{$lines_for{'?'}}) . " of them marked '?': say which piece of ours does that, or why none does" : '') . ".\n";
    return 0;
}

__END__

=head1 NAME

check-ob1-revision.pl - shows what changed in Open MPI's ob1, and where to look in bfo

=head1 SYNOPSIS

B<contrib/check-ob1-revision.pl> [B<--tree> I<DIR> | B<--git> I<DIR> [B<--from> I<TAG>] [B<--to> I<TAG>]] [B<--json>] [B<--accept>]

=head1 DESCRIPTION

bfo does the job of Open MPI's PML ob1 under the same interfaces, and is no copy of it. The file F<contrib/ob1-map.txt> has a
line for each function, macro, variable, structure, parameter and error path of ob1, BML r2, F<btl.h>, F<pml.h> and
F<bml.h>, and for each thing of other headers that bfo uses. A line names the pieces of bfo that do the same job, and the
release of Open MPI that it was compared with. A I<piece> is a function, type, field or parameter of bfo; its I<place> is
its file and line.

This script reads another tree of Open MPI and lists the differences from the records of the map: things that are new, gone,
moved or changed in substance. Comments, white space, line breaks, and the names of parameters, locals and labels do not
count. For each change it names the piece of bfo to look at, and its place; the worst change comes first. Topics sum up
changes that belong together.

The script misses some changes, and reports others without need: DESIGN.txt section 18.1 lists the limits. Without a tree the script
only prints the release that the map was compared with.

The script and this page are not installed; they stay in the source tree of bfo. The script needs Universal Ctags; B<--git> needs git.

=head1 OPTIONS

=over

=item B<--tree> I<DIR>

An unpacked source tree of Open MPI. It need not be configured.

=item B<--git> I<DIR>

A clone of Open MPI, with or without work tree.

=item B<--to> I<TAG>

The tag (or branch, or commit) of the clone to compare; HEAD if none is given. The script ignores variables of the environment
that name another repository (C<GIT_DIR>).

=item B<--from> I<TAG>

Compares with this tag instead of the records of the map. The map still says which pieces are concerned.

=item B<--json>

Prints one JSON object: compared_with, from, release (null without a tree), and changes: a list of objects with what (added, gone, changed, moved),
kind, name, file, line, rank (1 is the worst), concept, topics, why, was, is, was_file, ours (name, file, line), users.

=item B<--accept>

Use this after a person has compared: it writes the release and the records of this tree into the map, in one step. It removes
the lines of things that are gone. New things get a line with C<?> in the place of our piece, and check-ob1-pml-diffs.pl(1)
complains about such a line. If the map is a symlink, the script writes its target. Not with B<--json> or B<--from>.

=item B<--map> I<FILE>, B<--ours> I<DIR>

Another map, and another source tree of bfo, than those around the script.

=item B<--help>

This text.

=back

=head1 EXIT STATUS

0: nothing to look at. 1: something to look at. 2: bad input or a signal; one message names it, and nothing was written.

=head1 EXAMPLES

    contrib/check-ob1-revision.pl --tree ../openmpi-5.0.7
    contrib/check-ob1-revision.pl --git ../ompi --from v4.1.4 --to v4.1.8

=head1 SEE ALSO

check-ob1-pml-diffs.pl(1), ctags(1), DESIGN.txt section 18.1

=cut
