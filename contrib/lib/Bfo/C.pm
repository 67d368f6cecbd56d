# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Reads C sources. Universal Ctags finds each declaration with its beginning and end; this module cuts the text between
# into tokens, and replaces the parameters, locals and labels of a function and the parameters of a macro by $1, $2, ...
# in the order of their first use. Therefore comments, white space, line breaks and the names of locals leave no trace.
# Nothing is preprocessed: both sides of an #if count, and a tree need not be configured. DESIGN.txt 18.1.
package Bfo::C;
use strict;
use warnings;
use Exporter 'import';
use Digest::SHA 'sha1_hex';
use Encode qw(decode encode);
our @EXPORT_OK = qw(read_tags file_text file_tokens forward tokens_of without_parameter_names
    normal_text digest);

my %tokens_of_file;

# Words that ctags must not take for a part of a declaration.
my @ignored = qw(OMPI_DECLSPEC OPAL_DECLSPEC ORTE_DECLSPEC OMPI_MODULE_DECLSPEC OPAL_MODULE_DECLSPEC
    BEGIN_C_DECLS END_C_DECLS BFO_COLD BFO_OURS INSIDE+
    __opal_attribute_always_inline__ __opal_attribute_noinline__ __opal_attribute_malloc__ __opal_attribute_destructor__
    __opal_attribute_pure__ __opal_attribute_const__ __opal_attribute_noreturn__ __opal_attribute_unused__
    __opal_attribute_deprecated__ __opal_attribute_warn_unused_result__
    __opal_attribute_nonnull__+ __opal_attribute_format__+ OBJ_CLASS_DECLARATION+ OBJ_CLASS_INSTANCE+);

# read_tags(DIR, FILE...): the tags of these files, paths as given. Dies without ctags.
sub read_tags {
    my ($dir, @files) = @_;
    return () if !@files;
    my $pid = open(my $out, '-|') // die "cannot fork: $!\n";
    if (!$pid) {
        open STDERR, '>', '/dev/null';
        chdir $dir and exec('ctags', '--quiet', '--options=NONE', '--language-force=C', '--sort=no', '--kinds-C=+pxlzLD', '-x',
             "--_xformat=%K\t%N\t%F\t%n\t%e\t%t\t%s", (map { ('-I', $_) } @ignored), @files);
        exit 127;
    }
    my @tags;
    while (my $line = <$out>) {
        chomp $line;
        my ($kind, $name, $path, $at, $end, $type, $scope) = split /\t/, $line, 7;
        next if !defined $scope || $at !~ /^\d+$/;
        push @tags, { kind => $kind, name => $name, path => $path, line => $at, scope => $scope,
                      $end =~ /^\d+$/ ? (end => $end) : (), $type ne '-' ? (typeref => $type) : () };
    }
    close $out or die "ctags is missing or another one: this needs Universal Ctags (the package universal-ctags)\n";
    return @tags;
}

my $mark = qr/\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\#\#|[-+*\/%&|^]=|./;

# file_text(PATH): the text; bytes that are no UTF-8 become the replacement character.
sub file_text {
    my ($path) = @_;
    open my $in, '<:raw', $path or die "cannot read $path: $!\n";
    local $/;
    my $text = <$in> // (-s $in ? die "cannot read $path: $!\n" : '');
    return $text =~ /[^\x00-\x7f]/ ? decode('UTF-8', $text) : $text;
}

# file_tokens(PATH): reference to a list of [text, line]; neighbouring strings are joined.
sub file_tokens {
    my ($path) = @_;
    return $tokens_of_file{$path} if $tokens_of_file{$path};
    my $text = file_text($path);
    my ($line, $length, @list) = (1, length $text);
    for ($text) {
        pos = 0;
        while (pos() < $length) {
            if (/\G[ \t\r\f\x0b]+/gc) { next }
            if (/\G\\?\r?\n/gc) { $line++; next }
            if (/\G([A-Za-z_]\w*)/gc) {
                push @list, [$1, $line];
            } elsif (m{\G(/\*.*?(?:\*/|\z))}gcs || m{\G(//(?:[^\\\n]|\\\r?\n|\\.)*)}gc) {
                $line += $1 =~ tr/\n//;
            } elsif (/\G("(?:[^"\\\n]|\\.)*")/gcs) {
                my $string = $1;
                if (@list && substr($list[-1][0], 0, 1) eq '"') {
                    $list[-1][0] = substr($list[-1][0], 0, -1) . substr($string, 1);
                } else {
                    push @list, [$string, $line];
                }
                $line += $string =~ tr/\n//;
            } elsif (/\G('(?:[^'\\\n]|\\.)*'|\.?\d(?:[eEpP][+-]|[\w.])*)/gc || /\G($mark)/gcs) {
                push @list, [$1, $line];
            }
        }
    }
    return $tokens_of_file{$path} = \@list;
}

# Returns the place of the first token of the file at or after a line.
sub first_at {
    my ($tokens, $line) = @_;
    my ($low, $high) = (0, scalar @$tokens);
    while ($low < $high) {
        my $mid = int(($low + $high) / 2);
        if ($tokens->[$mid][1] < $line) { $low = $mid + 1 } else { $high = $mid }
    }
    return $low;
}

# Goes forward from a token to the first of `ends` outside brackets; returns its place.
sub forward {
    my ($tokens, $at, $ends) = @_;
    for (my $depth = 0; $at < @$tokens; $at++) {
        my $t = $tokens->[$at][0];
        return $at if $depth <= 0 && $ends->{$t};
        if ($t eq '(' || $t eq '{' || $t eq '[') { $depth++ }
        elsif ($t eq ')' || $t eq '}' || $t eq ']') { $depth-- }
    }
    return $#$tokens;
}

# tokens_of(DIR, TAG): the texts of the tokens of the declaration that the tag names.
sub tokens_of {
    my ($dir, $tag) = @_;
    my $tokens = file_tokens("$dir/$tag->{path}");
    my $at = first_at($tokens, $tag->{line});
    my $kind = $tag->{kind};
    if ($kind ne 'struct' && $kind ne 'union' && $kind ne 'enum') {
        $at++ while $at < $#$tokens && $tokens->[$at][0] ne $tag->{name};
    }
    my $end = $at;
    if ($kind eq 'typedef') {
        $at-- while $at > 0 && $tokens->[$at][0] ne 'typedef';
        $end = forward($tokens, $at, { ';' => 1 });
    } elsif ($kind eq 'member' || $kind eq 'prototype' || $kind eq 'externvar') {
        $end = forward($tokens, $at, { ';' => 1, '=' => 1 });
    } elsif ($kind eq 'variable') {
        $end = forward($tokens, $at, { ';' => 1, ',' => 1 });
    } elsif ($kind eq 'macro') {
        $at++; # after the name
        my $last = $tag->{end} // $tag->{line};
        $end = $at - 1;
        $end++ while $end < $#$tokens && $tokens->[$end + 1][1] <= $last;
    } else {
        my $last = $tag->{end} // $tag->{line};
        $end++ while $end < $#$tokens && $tokens->[$end + 1][1] <= $last;
    }
    return map { $_->[0] } @$tokens[$at .. $end];
}

my %qualifier = map { $_ => 1 } qw(const volatile restrict register struct union enum);
my %type_word = (%qualifier, map { $_ => 1 } qw(void bool char short int long float double signed unsigned));

# without_parameter_names(TOKENS...): a type without the names of the parameters of function pointers.
sub without_parameter_names {
    my (@tokens) = @_;
    my %is_name;
    for my $open (grep { $tokens[$_] eq '(' && $tokens[$_ - 1] =~ /^(?:\)|[A-Za-z_]\w*)$/ } 1 .. $#tokens) {
        my ($from, $depth) = ($open + 1, 0);
        for my $at ($open .. $#tokens) {
            $depth++ if $tokens[$at] eq '(';
            $depth-- if $tokens[$at] eq ')';
            next if $depth && !($depth == 1 && $tokens[$at] eq ',');
            my $last = $at - 1;
            while ($last > $from && $tokens[$last] eq ']') { $last-- while $last > $from && $tokens[$last] ne '['; $last-- }
            $is_name{$last} = 1 if $last > $from && $tokens[$last] =~ /^[A-Za-z_]/ && !$type_word{$tokens[$last]}
                && grep { /^[A-Za-z_]/ && !$qualifier{$_} } @tokens[$from .. $last - 1];
            last if !$depth;
            $from = $at + 1;
        }
    }
    return @tokens[grep { !$is_name{$_} } 0 .. $#tokens];
}

# normal_text(TOKENS, LOCALS): one line; the names in LOCALS become $1, $2, ..., except where they are members.
sub normal_text {
    my ($tokens, $locals) = @_;
    my (%number, @out);
    my $before = '';
    for my $t (@$tokens) {
        my $is_local = $locals->{$t} && $before ne '.' && $before ne '->';
        push @out, $is_local ? '$' . ($number{$t} //= 1 + keys %number) : $t;
        $before = $t;
    }
    return join ' ', @out;
}

sub digest { return substr sha1_hex(encode('UTF-8', join "\n", @_)), 0, 10 }

1;
