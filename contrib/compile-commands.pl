#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# compile-commands.pl BUILD   writes BUILD/compile_commands.json, which tells clangd and other tools how each source is compiled
#
# Asks make in each folder of a complete build which commands it would run if every source were new, tests included, and keeps the compilations;
# make runs none of them. Objects, dependencies and makefiles do not change. A source that is compiled more than once has an entry for each time.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Spec;
use JSON::PP;
use Text::ParseWords qw(shellwords);

my $build = shift @ARGV;
die "usage: compile-commands.pl BUILD\n" if !defined $build || @ARGV;
die "compile-commands.pl: $build is no build of bfo: it has no config.status\n" unless -f "$build/config.status";
$build = abs_path($build);

sub slurp {
    my ($file) = @_;
    open my $in, '<', $file or die "compile-commands.pl: cannot read $file: $!\n";
    local $/;
    return scalar <$in>;
}

# sources(DIR...): the sources that the dependency files of the folders name; such a file may be in the folder of the source.
sub sources {
    my %source;
    for my $file (map { glob("'$_'/.deps/*.P*o '$_'/*/.deps/*.P*o") } @_) {
        $source{$_} = 1 for slurp($file) =~ /(\S+\.c)\b/g;
    }
    return sort keys %source;
}

# compilation(DIR, WORDS): returns an entry of the file, if the words are a compilation.
sub compilation {
    my ($dir, @word) = @_;
    if (my ($mode) = grep { $word[$_] eq '--mode=compile' } 0 .. $#word) { splice @word, 0, $mode + 1 }
    return unless grep { $_ eq '-c' } @word;
    my (@keep, $source, $output);
    while (@word) {
        my $word = shift @word;
        if ($word eq '-MT' || $word eq '-MF') { shift @word; next }
        next if $word eq '-MD' || $word eq '-MP';
        $output = $word[0] if $word eq '-o';
        $source = $word if $word =~ /\.c$/ && $word !~ /^-/;
        push @keep, $word;
    }
    return unless defined $source && defined $output;
    return { directory => $dir, file => abs_path(File::Spec->rel2abs($source, $dir)), output => $output, arguments => \@keep };
}

# A makefile that includes the folder's own makefile, and has a target for everything that is compiled there.
my $makefile = "$build/compile-commands.mk";
open my $out, '>', $makefile or die "compile-commands.pl: cannot write $makefile: $!\n";
print $out "include Makefile\nbfo-compiled: \$(PROGRAMS) \$(LTLIBRARIES) \$(check_PROGRAMS) \$(check_LTLIBRARIES)\n";
close $out;

my @entries;
delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};
my ($files) = slurp("$build/config.status") =~ /^config_files="([^"]*)"/m;
my @dirs = map { my $dir = "$build/$_" =~ s{/?Makefile$}{}r; $dir } grep { m{(^|/)Makefile$} } split ' ', $files // '';
my @new = map { ('-W', $_) } sources(@dirs);
for my $dir (@dirs) {
    my @command = ('make', '-n', '-k', '--no-print-directory', '-C', $dir, '-o', 'Makefile', '-f', $makefile, 'V=1', @new, 'bfo-compiled');
    open my $in, '-|', @command or die "compile-commands.pl: cannot run make: $!\n";
    my $text = do { local $/; <$in> } // '';
    close $in;
    $text =~ s/\\\n/ /g;
    for my $line (split /\n/, $text) {
        next unless $line =~ / -c /;
        # automake finds a source by `test -f 'x.c' || echo 'FOLDER/'`: it is not in the build folder.
        $line =~ s{`test -f '([^']*)' \|\| echo '([^']*)'`}{-f "$dir/$1" ? '' : $2}ge;
        for my $command (split /;|&&/, $line) {
            push @entries, compilation($dir, shellwords($command)) if $command =~ / -c / && $command !~ /`/;
        }
    }
}
unlink $makefile;
die "compile-commands.pl: make compiles nothing in $build: run make there first\n" unless @entries;
my $json = "$build/compile_commands.json";
open $out, '>', "$json.new" or die "compile-commands.pl: cannot write $json.new: $!\n";
print $out JSON::PP->new->canonical->pretty->encode(\@entries);
close $out && rename "$json.new", $json or die "compile-commands.pl: cannot write $json: $!\n";
print "$json: ", scalar @entries, " compilations\n";
