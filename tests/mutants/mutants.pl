#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Proves that the tests can fail: builds one mutant after the other in a copy of the sources and runs what should notice,
# the fast and likely first: unit tests, a script, cells of the fault matrix, the rows of the simulated world, the whole fast
# set, a soak. Prints who caught whom. Started again it goes on where it was, as long as the sources and the mutant are the
# same. DESIGN.txt section 13.
#   mutants.pl [--only REGEX] [--work DIR] [--results FILE] [--limit SECONDS]
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../sim/matrix";
use Digest::MD5;
use File::Path qw(make_path remove_tree);
use Getopt::Long;
use Time::HiRes qw(time);
use Job;
use Mutants;

$| = 1;
my %opt = (only => '.', limit => 0, work => '', results => '');
GetOptions(\%opt, 'only=s', 'work=s', 'results=s', 'limit=i') or exit 2;
my $from = $ENV{BFO_SRCDIR} or die "source tests/env.sh of the build directory first\n";
my $keep = $ENV{BFO_BUILDDIR};
my $work = $opt{work} || "$keep/tests/mutants/work";
my $results = $opt{results} || "$keep/tests/mutants/mutants.tsv";
my ($src, $build) = ("$work/src", "$work/build");
my $begin = time;
my @mutants = grep { $_->{name} =~ /$opt{only}/ } @Mutants::all;

sub sh { my ($command, $log) = @_; return system("($command) >'$log' 2>&1 </dev/null") == 0 }

sub stamp {
    my $md5 = Digest::MD5->new;
    for my $file (sort glob "$from/pml_bfo/*.[chd]* $from/btl_openib_failover/*.[chd]* $from/include/*.h") {
        open my $in, '<', $file or next;
        $md5->addfile($in);
    }
    return '# ' . $md5->hexdigest . "\n";
}

# A result is good for this definition of the mutant.
sub print_of { my ($m) = @_; return substr Digest::MD5::md5_hex(join "\0", map { "$_=$m->{$_}" } sort keys %$m), 0, 8 }

# A copy of the sources and a build of its own, made once for a state of the sources.
sub prepare {
    my ($stamp) = @_;
    return if Job::slurp("$work/stamp") eq $stamp;
    remove_tree($work);
    make_path($src, $build);
    sh("cd '$from' && tar cf - --exclude=./.git --exclude=./build --exclude='./build/*' --exclude=autom4te.cache . | tar xf - -C '$src'", "$work/copy.log")
        or die "cannot copy the sources, see $work/copy.log\n";
    my $arguments = `'$keep/config.status' --config`;
    chomp $arguments;
    sh("cd '$build' && eval \"'$src/configure' $arguments\" && make -s -j2 && make -s -C tests/sim/matrix traffic && make -s -C tests/soak soak",
       "$work/build.log") or die "the copy does not build, see $work/build.log\n";
    open my $out, '>', "$work/stamp" or die;
    print $out $stamp;
}

sub replace {
    my ($m) = @_;
    my $text = Job::slurp("$src/$m->{file}");
    my $fits = () = $text =~ /\Q$m->{from}\E/g;
    return 0 if $fits != 1;
    $text =~ s/\Q$m->{from}\E/$m->{to}/;
    put($m->{file}, $text);
    return 1;
}

sub put {
    my ($file, $text) = @_;
    open my $out, '>', "$src/$file" or die "$src/$file: $!\n";
    print $out $text;
    close $out;
}

sub rebuild { return sh("make -s -j2 -C '$build/pml_bfo' && make -s -j2 -C '$build/btl_openib_failover'", "$work/make.log") }

# The environment of tests that run in the copy.
sub inside { return "unset BFO_SRCDIR BFO_BUILDDIR; . '$build/tests/env.sh'; cd '$work'; export OMPI_MCA_mca_base_component_path='$build/pml_bfo/.libs:$build/btl_openib_failover/.libs:$ENV{BFO_OMPI_COMPONENTDIR}'; $_[0]" }

# A script that fails without any mutant proves nothing: it is tried once before, on the copy as it is.
my %sound;
sub sound {
    my ($script) = @_;
    return if $sound{$script}++;
    rebuild(); # the mutant before may still be what is built
    sh("make -s -C '$build/tests/mpi' check TESTS=", "$work/make.log") or die "the MPI programs do not build, see $work/make.log\n";
    sh(inside("timeout -k 5 200 bash '$src/$script'"), "$work/sound.log") or die "$script fails without any mutant, see $work/sound.log\n";
}

# Runs the tests; returns who noticed, or ''.
sub caught_by {
    my ($m) = @_;
    my $log = "$work/test.log";
    my $matrix = "perl '$src/tests/sim/matrix/matrix.pl' --fresh --stop --cell-limit 25 --results '$work/cells.tsv'";
    my $failure = sub { my ($line) = Job::slurp($log) =~ /^FAILED (.*)/m; return $line // 'failed' };
    for my $unit (split ' ', $m->{unit} // '') {
        return "unit: $unit" unless sh("make -s -C '$build/tests/unit' check TESTS=$unit", $log);
    }
    for my $script (split ' ', $m->{test} // '') {
        return "script: $script" unless sh(inside("timeout -k 5 200 bash '$src/$script'"), $log);
    }
    return 'matrix: ' . $failure->() unless !$m->{cells} || sh(inside("$matrix --set all --only '$m->{cells}'"), $log);
    return 'simulated world' unless sh(inside("bash '$src/tests/sim/rows/test_rows.sh'"), $log);
    return 'fast matrix: ' . $failure->() unless sh(inside("$matrix --set fast"), $log);
    return 'soak: ' . $failure->() unless sh(inside("perl '$src/tests/soak/soak.pl' --seconds 60"), $log);
    return '';
}

my (%done, $survived);
my $stamp = stamp();
make_path($work =~ s{/[^/]*$}{}r);
if (open my $in, '<', $results) {
    if ((<$in> // '') eq $stamp) { while (<$in>) { chomp; my ($name, @rest) = split /\t/; $done{$name} = \@rest if @rest == 4 && $rest[0] eq 'caught' } }
}
my %print = map { $_->{name} => print_of($_) } @Mutants::all;
delete $done{$_} for grep { ($print{$_} // '') ne $done{$_}[3] } keys %done;
open my $out, '>', $results or die "$results: $!\n";
$out->autoflush(1);
print $out $stamp, map { join("\t", $_, @{ $done{$_} }) . "\n" } sort keys %done;
prepare($stamp);
for my $m (@mutants) {
    next if $done{ $m->{name} };
    last if $opt{limit} && time - $begin > $opt{limit};
    my $start = time;
    sound($_) for split ' ', $m->{test} // '';
    my $original = Job::slurp("$src/$m->{file}");
    my ($verdict, $who) = ('survived', '');
    if (!replace($m)) { ($verdict, $who) = ('misfit', 'the replacement does not fit the code any more') }
    elsif (!rebuild()) { ($verdict, $who) = ('misfit', "does not compile, see $work/make.log") }
    else { $who = caught_by($m); $verdict = 'caught' if $who }
    put($m->{file}, $original);
    $done{ $m->{name} } = [$verdict, sprintf('%.0f', time - $start), $who, $print{ $m->{name} }];
    print $out join("\t", $m->{name}, @{ $done{ $m->{name} } }), "\n";
    printf "%-9s %-26s %4s s  %s%s\n", $verdict, $m->{name}, $done{ $m->{name} }[1], $who, $verdict eq 'caught' ? '' : ": $m->{what}";
    $survived++ if $verdict ne 'caught';
}
rebuild();
my $caught = grep { my $r = $done{ $_->{name} }; $r && $r->[0] eq 'caught' } @mutants;
my $missing = grep { !$done{ $_->{name} } } @mutants;
my $table = join '', map { sprintf "%-26s %-9s %s\n", $_->{name}, @{ $done{ $_->{name} } // ['not run', '', ''] }[0, 2] } @mutants;
$table .= sprintf "%d mutants: %d caught, %d not, %d not run; %.0f s\n", scalar @mutants, $caught, @mutants - $caught - $missing, $missing, time - $begin;
print $table;
if (open my $text, '>', $results =~ s/(\.tsv)?$/.txt/r) { print $text $table }
exit($caught == @mutants ? 0 : 1);
