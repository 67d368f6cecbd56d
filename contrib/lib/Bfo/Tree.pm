# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The facts of one source tree of Open MPI: the things that the map watches, each with its file, its line and a record.
# A record is the value itself where the value is short (a default, a constant, the type of a field), otherwise a digest
# of the normal text (Bfo::C). Trees come from a directory or from a tag of a git repository. DESIGN.txt 18.1.
package Bfo::Tree;
use strict;
use warnings;
use File::Path 'make_path';
use File::Temp qw(tempdir tempfile);
use Bfo::C qw(read_tags file_tokens forward tokens_of without_parameter_names normal_text digest);

my $ob1 = 'ompi/mca/pml/ob1';
my $complaint; # git's complaint of its last failure

# from_dir(DIR): an unpacked tree.
sub from_dir {
    my ($class, $dir) = @_;
    -d $dir or die "$dir: no such directory\n";
    my @sources = names_in($dir, $ob1, qr/\.c\z/);
    @sources or die "$dir: this is no source tree of Open MPI with ob1: $ob1 is missing\n";
    return bless { dir => $dir, release => release_of("$dir/VERSION") }, $class;
}

# from_git(REPOSITORY, TAG, WATCH): the watched files of this commit, in a temporary directory.
sub from_git {
    my ($class, $repository, $tag, $watch) = @_;
    -e $repository or die "$repository: no such directory\n";
    defined git('.', '--version') or die "git is missing: --git needs it\n";
    git($repository, 'rev-parse', '--git-dir') // die "$repository: git cannot read it: $complaint\n";
    $tag !~ /^-/ && defined git($repository, 'rev-parse', '--verify', '--quiet', "$tag^{commit}")
        or die "$repository: it has no tag '$tag'\n";
    my %there = map { $_ => 1 } split /\0/, git($repository, 'ls-tree', '-r', '-z', '--name-only', $tag, '--full-tree') // '';
    my %wanted;
    for my $path (keys %there) {
        my $folder = $path =~ m{^(.*)/} ? $1 : '';
        $wanted{$path} = 1 if $path eq 'VERSION' || $watch->{headers}{$path}
            || ($path =~ /\.[ch]$/ && grep { $path eq $_ || $folder eq $_ } @{$watch->{every}});
    }
    grep { /^\Q$ob1\E\// } keys %wanted or die "$repository: '$tag' has no ob1: $ob1 is missing\n";
    my $dir = tempdir(CLEANUP => 1);
    defined git($repository, 'archive', '--format=tar', "--output=$dir/.tar", $tag, '--', sort keys %wanted)
        or die "$repository: git archive of '$tag' failed\n";
    system('tar', '-xf', "$dir/.tar", '-C', $dir) == 0 or die "tar failed on '$tag' of $repository\n";
    for my $folder (@{$watch->{folders}}) {
        my %inside = map { m{^(\Q$folder\E/[^/]+)/} ? ($1 => 1) : () } keys %there;
        make_path(map { "$dir/$_" } keys %inside ? ($folder, keys %inside) : ());
    }
    my $self = $class->from_dir($dir);
    $self->{release} = $tag =~ /^v(\d[\w.]*)$/ ? $1 : $self->{release};
    return $self;
}

# Variables of the environment that name another repository are ignored; variables with settings are not.
sub git {
    my ($repository, @command) = @_;
    my $said = tempfile();
    my $pid = open(my $out, '-|') // die "cannot fork: $!\n";
    if (!$pid) {
        delete @ENV{grep { /^GIT_/ && !/^GIT_(?:CONFIG|EXEC_PATH)/ } keys %ENV};
        $ENV{LC_ALL} = 'C';
        open STDERR, '>&', $said;
        exec 'git', '-C', $repository, @command;
        exit 127;
    }
    my $text = do { local $/; <$out> };
    return $text // '' if close $out;
    seek $said, 0, 0;
    ($complaint) = map { /^fatal: (.*)/ ? $1 : () } <$said>;
    $complaint //= 'it says nothing';
    return undef;
}

# has(PATH): is the path in the tree?
sub has { return there($_[0]{dir}, $_[1]) }

# Is this path in the folder DIR? A path that cannot be read does not count as missing.
sub there {
    my ($dir, $path) = @_;
    return 1 if lstat "$dir/$path";
    die "cannot read $dir/$path: $!\n" if !$!{ENOENT} && !$!{ENOTDIR};
    my $above = $dir;
    for my $part (split m{/}, $path) {
        $above .= "/$part";
        die "cannot read $above: $!\n" if -l $above && !stat $above;
    }
    return 0;
}

sub must_be_readable {
    my ($dir, @files) = @_;
    for my $file (@files) {
        my $in;
        open($in, '<', "$dir/$file") && defined sysread($in, my $byte, 1) or die "cannot read $dir/$file: $!\n";
    }
}

# The names in a folder of the tree that match the pattern, with the folder. Names with other characters are not Open MPI's.
sub names_in {
    my ($dir, $folder, $like) = @_;
    return () if !there($dir, $folder);
    opendir my $handle, "$dir/$folder" or die "cannot read $dir/$folder: $!\n";
    return map { "$folder/$_" } sort grep { !/^\./ && /^[\w.+-]+\z/ && /$like/ } readdir $handle;
}

# Returns "4.1.4" from a file VERSION; "?" without such a file.
sub release_of {
    my ($file) = @_;
    open my $in, '<', $file or return '?';
    my %is = map { /^(\w+)=([\w.]*)/ ? ($1 => $2) : () } <$in>;
    return '?' if !length($is{major} // '');
    return join('.', map { $is{$_} // 0 } qw(major minor release)) . ($is{greek} // '');
}

# facts(WATCH, NAMED): list of facts. WATCH comes from the map; NAMED says which identifiers our code names.
sub facts {
    my ($self, $watch, $named) = @_;
    my $dir = $self->{dir};
    my (@facts, %every);
    for my $place (@{$watch->{every}}) {
        my @files = -d "$dir/$place" ? names_in($dir, $place, qr/\.[ch]\z/) : there($dir, $place) ? ($place) : ();
        $every{$_} = 1 for @files;
    }
    my @headers = grep { there($dir, $_) } sort keys %{$watch->{headers}};
    my @used = grep { !$every{$_} } @headers;
    must_be_readable($dir, keys %every, @used);
    for my $folder (@{$watch->{folders}}) {
        push @facts, map { fact('component', $_, $folder, 0, '=here') }
            grep { -d "$dir/$_" && !m{/(?:base|example|template)$} } names_in($dir, $folder, qr/./);
    }
    push @facts, map { fact('header', $_, $_, 0, '=here', used => 1) } @headers;
    push @facts, map { class_facts($dir, $_) } sort keys %every;
    my @tags = read_tags($dir, sort(keys %every), @used);
    my $index = index_tags(@tags);
    for my $tag (@tags) {
        my $watched = $every{$tag->{path}};
        push @facts, map { $_->{used} = !$watched; $_ } facts_of_tag($dir, $tag, $index, $watched, $named);
    }
    return merge(@facts);
}

sub fact {
    my ($kind, $name, $file, $line, $record, %more) = @_;
    return { kind => $kind, name => $name, file => $file, line => $line, record => $record, %more };
}

# Merges several facts of one kind, name and file (the sides of an #if).
sub merge {
    my (%at, @out);
    for my $fact (grep { defined } @_) {
        my $key = "$fact->{kind} $fact->{name} $fact->{file}";
        my $first = $at{$key};
        if (!$first) { $at{$key} = $fact; push @out, $fact; next }
        next if $first->{record} eq $fact->{record};
        $first->{record} = digest($first->{record}, $fact->{record});
        $first->{text} .= "\n$fact->{text}" if defined $first->{text} && defined $fact->{text};
        $first->{tokens} = [@{$first->{tokens} // []}, @{$fact->{tokens} // []}];
    }
    return @out;
}

# Locals by function, aliases of structures, and names that are defined, not only declared.
sub index_tags {
    my (%locals, %alias, %defined);
    for my $tag (@_) {
        if ($tag->{kind} =~ /^(?:local|label|parameter|macroparam)$/) {
            push @{$locals{"$tag->{path} $tag->{scope}"}}, [$tag->{name}, $tag->{line}];
        } elsif ($tag->{kind} eq 'typedef' && ($tag->{typeref} // '') =~ /^(?:struct|union|enum):(\w+)/) {
            push @{$alias{$1}}, $tag->{name};
        } elsif ($tag->{kind} eq 'function') {
            $defined{$tag->{name}} = 1;
        }
    }
    return { locals => \%locals, alias => \%alias, defined => \%defined };
}

# mca_pml_base_module_1_0_1_t is mca_pml_base_module_t.
sub without_version {
    my ($name) = @_;
    $name =~ s/_\d+_\d+_\d+_t$/_t/;
    return $name;
}

# The name of a structure, also if only a typedef names it; undef for a structure inside another.
sub struct_name {
    my ($name, $index) = @_;
    return without_version($name) if $name !~ /^__anon/;
    my $alias = $index->{alias}{$name} or return undef;
    return without_version($alias->[0]);
}

sub short_record {
    my ($text) = @_;
    $text =~ s/ ?([^\w ]) ?/$1/g;
    return length($text) <= 48 && $text !~ /\|/ ? "=$text" : digest($text);
}

sub facts_of_tag {
    my ($dir, $tag, $index, $every, $named) = @_;
    my ($kind, $name) = @$tag{qw(kind name)};
    if ($kind eq 'function' || $kind eq 'prototype') {
        return function_facts($dir, $tag, $index, $every, $named);
    }
    if ($kind eq 'macro') {
        return if $name =~ /_H(_INCLUDED)?_?$/ || !($every || $named->{word}{$name});
        my @text = tokens_of($dir, $tag);
        my $text = normal_text(\@text, locals_of($tag, $index));
        return fact('macro', $name, $tag->{path}, $tag->{line}, short_record($text), text => $text, tokens => \@text);
    }
    if ($kind eq 'enumerator') {
        return if !($every || $named->{word}{$name});
        my $tokens = [tokens_of_enumerator($dir, $tag)];
        return fact('constant', $name, $tag->{path}, $tag->{line}, short_record(join ' ', @$tokens), text => "@$tokens");
    }
    if ($kind eq 'typedef') {
        return if ($tag->{typeref} // '') =~ /^(?:struct|union|enum):/ || !($every || $named->{word}{$name});
        my $text = normal_text([without_parameter_names(tokens_of($dir, $tag))], locals_of($tag, $index));
        return fact('typedef', $name, $tag->{path}, $tag->{line}, digest($text), text => $text);
    }
    if ($kind eq 'struct' || $kind eq 'union') {
        my $own = struct_name($name, $index) // return;
        return if !($every || grep { $named->{word}{$_} } $name, $own, @{$index->{alias}{$name} // []});
        my $text = normal_text([without_parameter_names(tokens_of($dir, $tag))], {});
        return fact('struct', $own, $tag->{path}, $tag->{line}, digest($text), text => $text);
    }
    if ($kind eq 'member') {
        return field_fact($dir, $tag, $index, $every, $named);
    }
    if ($kind eq 'variable') {
        return if !$every;
        my @tokens = tokens_of($dir, $tag);
        my $text = join ' ', ($tag->{typeref} // '') =~ s/^typename://r, @tokens[0 .. $#tokens - 1];
        return fact('variable', $name, $tag->{path}, $tag->{line}, short_record($text), text => $text);
    }
    if ($kind eq 'externvar') {
        return if $every || !$named->{word}{$name};
        my $type = $tag->{typeref} // '';
        return fact('variable', $name, $tag->{path}, $tag->{line}, short_record($type =~ s/^typename://r), text => $type);
    }
    return;
}

sub locals_of {
    my ($tag, $index) = @_;
    my ($from, $to) = ($tag->{line}, $tag->{end} // $tag->{line});
    return { map { $_->[0] => 1 } grep { $_->[1] >= $from && $_->[1] <= $to }
             @{$index->{locals}{"$tag->{path} $tag->{name}"} // []} };
}

# OBJ_CLASS_INSTANCE(name, parent, constructor, destructor) makes the variable name_class.
sub class_facts {
    my ($dir, $file) = @_;
    my $tokens = file_tokens("$dir/$file");
    my @texts = map { $_->[0] } @$tokens;
    return map {
        my ($name, @rest) = arguments(\@texts, $_ + 1);
        fact('variable', "${name}_class", $file, $tokens->[$_][1], short_record(join ',', @rest), text => join ' , ', @rest);
    } grep { $texts[$_] eq 'OBJ_CLASS_INSTANCE' && $texts[$_ + 1] eq '(' && $texts[$_ - 1] ne 'define' } 1 .. $#texts - 1;
}

# The value of an enumerator: the last explicit value, at it or before it, and the number of enumerators after that.
sub tokens_of_enumerator {
    my ($dir, $tag) = @_;
    my $tokens = file_tokens("$dir/$tag->{path}");
    my ($at) = grep { $tokens->[$_][1] == $tag->{line} && $tokens->[$_][0] eq $tag->{name} } 0 .. $#$tokens;
    return ('?') if !defined $at;
    my ($after, $depth) = (0, 0);
    for (my $i = $at + 1; $i > 0; $i--) {
        my $t = $tokens->[$i][0];
        if ($t eq ')') { $depth++ } elsif ($t eq '(') { $depth-- }
        last if $t eq '{';
        $after++ if $t eq ',' && !$depth && $i <= $at;
        next if $t ne '=';
        my $end = forward($tokens, $i, { ',' => 1, '}' => 1 });
        return ((map { $_->[0] } @$tokens[$i + 1 .. $end - 1]), $after ? ('+', $after) : ());
    }
    return "#$after";
}

# Fields: all fields of requests and of the modules of an interface; of other structures those that our code names.
sub field_fact {
    my ($dir, $tag, $index, $every, $named) = @_;
    my ($scope) = ($tag->{scope} // '') =~ /(\w+)$/;
    my $struct = defined $scope ? struct_name($scope, $index) : undef;
    return if !defined $struct;
    my $is_request = $every && $struct =~ /_request_t$/;
    my $is_module = $every && $struct =~ /^mca_\w+_base_module_t$/;
    my @names = ($scope, $struct, @{$index->{alias}{$scope} // []});
    my $is_named = %{$named->field_users($tag->{name}, @names)} && grep { $named->{word}{$_} } @names;
    return if !($is_request || $is_module || $is_named) || ($every && $tag->{path} =~ /\/ob1\// && !$is_request);
    my $type = $tag->{typeref} // '';
    $type =~ s/^typename://;
    $type =~ s/^(\w+):/$1 /;
    $type = join ' ', without_parameter_names($type =~ /\w+|\S/g) if $type =~ /\(/;
    $type = 'anonymous' if $type =~ /__anon/;
    return fact('field', "$struct.$tag->{name}", $tag->{path}, $tag->{line}, short_record($type), text => $type);
}

sub function_facts {
    my ($dir, $tag, $index, $every, $named) = @_;
    my ($kind, $name, $path, $line) = @$tag{qw(kind name path line)};
    return if $kind eq 'prototype' && $index->{defined}{$name};
    return if !($every || $named->{word}{$name});
    my @tokens = tokens_of($dir, $tag);
    my $type = ($tag->{typeref} // '') =~ s/^typename://r;
    $type =~ s/\b(?:static|inline|extern|__\w+)\b//g;
    my $text = "$type " . normal_text(\@tokens, locals_of($tag, $index));
    my @facts = fact('function', $name, $path, $line, digest($text), text => $text, tokens => \@tokens,
                     end => $tag->{end} // $line);
    return @facts if $kind eq 'prototype' || !$every;
    my %code = map { $_ => 1 } grep { /^(?:(?:OMPI|OPAL|ORTE|PMIX)_ERROR|(?:OMPI|OPAL|ORTE|PMIX|MPI)_ERR_\w+)$/ } @tokens;
    push @facts, map { fact('error', "$name $_", $path, $line, '=here') } sort keys %code;
    return @facts, param_facts(\@tokens, $path, $line);
}

# Calls that register a parameter: *_param_register_*("name", default, ...) of ob1, and *_component_[p]var_register; the default of the
# latter is the value last assigned to its storage.
sub param_facts {
    my ($tokens, $path, $line) = @_;
    my ($framework, $component) = $path =~ m{mca/(\w+)/(\w+)/} or return;
    my @facts;
    for my $at (0 .. $#$tokens - 1) {
        next if $tokens->[$at] !~ /(?:_param_register_\w+|mca_base_component_p?var_register)$/ || $tokens->[$at + 1] ne '(';
        my @arguments = arguments($tokens, $at + 1);
        my $is_var = $tokens->[$at] =~ /var_register$/;
        my ($quoted, $default) = $is_var ? ($arguments[1], assigned($tokens, $at, $arguments[-1])) : @arguments;
        next if ($quoted // '') !~ /^"(\w+)"$/;
        push @facts, fact('param', "${framework}_${component}_$1", $path, $line, short_record($default), text => $default);
    }
    return @facts;
}

sub arguments {
    my ($tokens, $at) = @_;
    my ($depth, @list, @one) = (0);
    for (; $at < @$tokens; $at++) {
        my $t = $tokens->[$at];
        if ($t eq '(' && !$depth++) { next }
        if ($t eq ')' && !--$depth) { last }
        if ($t eq ',' && $depth == 1) { push @list, "@one"; @one = (); next }
        push @one, $t;
    }
    return @list, "@one";
}

sub assigned {
    my ($tokens, $at, $storage) = @_;
    my @name = split / /, $storage;
    return 'none' if shift(@name) ne '&';
    for (my $i = $at; $i >= 0; $i--) {
        next if ($tokens->[$i + @name] // '') ne '=' || "@$tokens[$i .. $i + $#name]" ne "@name";
        my $end = $i + @name + 1;
        $end++ while $end < $#$tokens && $tokens->[$end] ne ';';
        return join ' ', @$tokens[$i + @name + 1 .. $end - 1];
    }
    return 'unset';
}

1;
