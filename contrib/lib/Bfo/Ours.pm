# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The sources of bfo: the place of each function and type, whether its text names an error code, which files name a
# thing of Open MPI, and which headers of Open MPI they include. DESIGN.txt 18.1.
package Bfo::Ours;
use strict;
use warnings;
use Bfo::C qw(read_tags file_tokens tokens_of);

my @folders = qw(include pml_bfo btl_openib_failover);

# new(TOP): TOP is the folder that contains pml_bfo/.
sub new {
    my ($class, $top) = @_;
    my @files;
    for my $folder (@folders) {
        -d "$top/$folder" or die "$top: this is no source tree of bfo: $folder is missing\n";
        push @files, sort grep { /\.(?:[ch]|def|h\.in)$/ } map { substr $_, 1 + length $top } glob("\Q$top/$folder\E/*" . ($folder eq 'include' ? '' : '/*'));
    }
    my $self = bless { top => $top, files => \@files, at => {}, word => {}, field => {}, own_field => {}, parameter => {},
                       headers => {} }, $class;
    $self->read_words($_) for @files;
    my @tags = read_tags($top, @files);
    my %alias = map { $_->{kind} eq 'typedef' && ($_->{typeref} // '') =~ /^(?:struct|union):(__anon\w+)$/ ? ($1 => $_->{name}) : () } @tags;
    for my $tag (@tags) {
        next if $tag->{kind} !~ /^(?:function|macro|struct|union|enum|enumerator|typedef|member|variable|externvar)$/;
        $self->{own_field}{$tag->{name}} = 1 if $tag->{kind} eq 'member';
        my $name = $tag->{kind} eq 'member' ? ($alias{$tag->{scope}} // $tag->{scope}) . ".$tag->{name}" : $tag->{name};
        my $same = $self->{at}{$name} //= [];
        @$same = () if @$same && $same->[0]{kind} eq 'externvar';
        push @$same, { file => $tag->{path}, line => $tag->{line}, end => $tag->{end}, kind => $tag->{kind}, tag => $tag }
            if !@$same || ($tag->{kind} eq 'function' && $same->[0]{kind} eq 'function');
    }
    return $self;
}

sub read_words {
    my ($self, $file) = @_;
    my $before = '';
    my $tokens = file_tokens("$self->{top}/$file");
    my $registers = $file =~ m{^pml_bfo/} && grep { $_->[0] eq 'mca_base_component_var_register' } @$tokens;
    for my $i (0 .. $#$tokens) {
        my $t = $tokens->[$i][0];
        if ($t =~ /^[A-Za-z_]/) {
            $self->{word}{$t}{$file} //= $tokens->[$i][1];
            $self->{word}{$1 . '_t'}{$file} //= $tokens->[$i][1] if $t =~ /^(\w+)_\d+_\d+_\d+_t$/; # as in Bfo::Tree
            $self->{field}{$t}{$file} //= $tokens->[$i][1] if $before eq '.' || $before eq '->';
        } elsif ($t =~ /^"(.*)"$/) {
            my $text = $1;
            $self->{parameter}{$text} //= { file => $file, line => $tokens->[$i][1], kind => 'text' } if $registers && $before eq '{';
            $self->{headers}{$text} //= "$file:$tokens->[$i][1]" if $before eq 'include' && $text =~ m{^(?:ompi|opal|orte)/};
        }
        $before = $t;
    }
}

# find(PIECE): the places of a function, type, constant, structure.field or "parameter" of our code; several for static functions
# of one name, none if there is no such piece. A parameter is the first word of a row of the table that the PML registers.
sub find {
    my ($self, $piece) = @_;
    return grep { defined } $self->{parameter}{$1} if $piece =~ /^"(.*)"$/;
    return @{$self->{at}{$piece} // []};
}

# field_users(FIELD, STRUCTURE NAME...): the files that use the field, with the line. If our own structures also have a
# field of that name, only files that name the structure count.
sub field_users {
    my ($self, $field, @names) = @_;
    my $where = $self->{field}{$field} or return {};
    return $where if !$self->{own_field}{$field};
    my %names_it = map { $_ => 1 } map { keys %{$self->{word}{$_} // {}} } @names;
    return { map { $names_it{$_} ? ($_ => $where->{$_}) : () } keys %$where };
}

# users(FACT): "file:line" of our files that name a thing of Open MPI, with the first such line of each file.
sub users {
    my ($self, $fact) = @_;
    my $name = $fact->{name};
    if ($fact->{kind} eq 'header') {
        return $self->{headers}{$name} ? ($self->{headers}{$name}) : ();
    }
    my $where = $fact->{kind} eq 'field' ? $self->field_users($name =~ /\.(.*)/, $name =~ /^(.*?)\./) : $self->{word}{$name};
    return map { "$_:$where->{$_}" } sort keys %{$where // {}};
}

# names_code(PIECE, CODE): does our function of that name mention this error code, as OMPI_ or as OPAL_?
sub names_code {
    my ($self, $piece, $code) = @_;
    (my $bare = $code) =~ s/^(?:OMPI|OPAL|ORTE)_//;
    for my $at (grep { $_->{kind} eq 'function' || $_->{kind} eq 'macro' } $self->find($piece)) {
        $at->{codes} //= { map { s/^(?:OMPI|OPAL|ORTE)_//r => 1 } grep { /_ERR/ } tokens_of($self->{top}, $at->{tag}) };
        return 1 if $at->{codes}{$bare} || $at->{codes}{$code};
    }
    return 0;
}

1;
