#!/usr/bin/perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Proves that the tests can fail: builds one mutant after the other in a copy of the sources and runs the tests that should
# notice, fast and likely tests first: unit tests, a script, cells of the fault matrix, the rows of the simulated world, the
# whole fast set, a soak. The test that noticed runs once more without a mutant; if it fails there as well it proves nothing, and
# the mutant is called unsound. Prints which test caught which mutant. A second start continues where the first ended, as long
# as sources, tests and the mutant are the same. DESIGN.txt section 13.
#   mutants.pl [--only REGEX] [--work DIR] [--results FILE] [--limit SECONDS]
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../sim/matrix";
use Digest::MD5;
use File::Find ();
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

# A mutant that has been tested is taken back: ccache has the objects without it.
$ENV{CCACHE_DIR} = "$work/ccache";
$ENV{CC} = 'ccache gcc';
$ENV{BFO_WORLD_SEEDS} //= 1000; # for test_world.sh
sub sh { my ($command, $log) = @_; return system("($command) >'$log' 2>&1 </dev/null") == 0 }

# A result is valid for this state of the product and of the tests that may notice.
sub stamp {
    my $md5 = Digest::MD5->new;
    my @files;
    File::Find::find({ wanted => sub { push @files, $_ if -f && !/Makefile\.in$/ }, no_chdir => 1 },
                     map { "$from/$_" } qw(pml_bfo btl_openib_failover softrail include),
                     map { "tests/$_" } qw(lib.sh env.sh.in stock_stays.c unit mpi sim soak fuzz world tools));
    for my $file (sort @files) {
        open my $in, '<', $file or next;
        $md5->add(substr($file, length $from), "\0");
        $md5->addfile($in);
    }
    return '# ' . $md5->hexdigest . "\n";
}

# A result is valid for this definition of the mutant.
sub print_of {
    my ($m) = @_;
    return substr Digest::MD5::md5_hex(join "\0", map({ @$_ } Mutants::edits($m)), map { "$_=$m->{$_}" } grep { $_ ne 'also' } sort keys %$m), 0, 8;
}

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
    sh("cd '$build' && eval \"'$src/configure' $arguments --disable-werror CFLAGS=-O1\" && make -s -j2 && make -s -C tests/sim/matrix traffic && make -s -C tests/soak soak && make -s -C tests/mpi check TESTS=",
       "$work/build.log") or die "the copy does not build, see $work/build.log\n";
    open my $out, '>', "$work/stamp" or die;
    print $out $stamp;
}

sub replace {
    my ($m) = @_;
    for (Mutants::edits($m)) {
        my ($file, $from, $to) = @$_;
        my $text = Job::slurp("$src/$file");
        my $fits = () = $text =~ /\Q$from\E/g;
        return 0 if $fits != 1;
        put($file, $text =~ s/\Q$from\E/$to/r);
    }
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

sub matrix { my ($set, $only) = @_; return inside("perl '$src/tests/sim/matrix/matrix.pl' --fresh --stop --cell-limit 25 --results '$work/cells.tsv' --set $set --only '$only'") }

# The tests, in order: [name, command]; the command may become the command of the one cell or seed that failed.
sub tests_of {
    my ($m) = @_;
    return (map({ my $unit = $_; ["unit: $unit", sub { "VERBOSE=1 make -s -C '$build/tests/unit' check check_PROGRAMS=$unit TESTS=$unit" }] } split ' ', $m->{unit} // ''),
            map({ my $script = $_; ["script: $script", sub { inside("timeout -k 5 600 bash '$src/$script'") }] } split ' ', $m->{test} // ''),
            defined $m->{says} || $m->{always} ? () : others_of($m));
}
sub others_of {
    my ($m) = @_;
    return ($m->{cells} ? ['matrix', sub { matrix('all', @_ ? "^\Q$_[0]\E\$" : $m->{cells}) }] : (),
            ['simulated world', sub { inside("bash '$src/tests/sim/rows/test_rows.sh'") }],
            ['fast matrix', sub { matrix('fast', @_ ? "^\Q$_[0]\E\$" : '.') }],
            ['soak', sub { inside("perl '$src/tests/soak/soak.pl' " . (@_ ? "--seconds 0 --seed $_[0]" : '--seconds 60')) }]);
}

# What a test must say if the mutant has `says`: an assertion, or the number of an invariant, whose breach a check of the simulated world has seen.
sub said { return $_[0] =~ /^I\d+$/ ? qr/^world: seed .*: $_[0]: /m : qr/^bfo: assertion failed at .*: \Q$_[0]\E \(process /m }

# Runs the tests; returns the test that noticed, and the command that must succeed without the mutant; or nothing.
sub caught_by {
    my ($m) = @_;
    for my $test (tests_of($m)) {
        my ($name, $command) = @$test;
        next if sh($command->(), "$work/test.log");
        next if defined $m->{says} && Job::slurp("$work/test.log") !~ said($m->{says});
        next if $m->{always} && sh($command->(), "$work/test.log");
        my ($line, $part) = Job::slurp("$work/test.log") =~ /^FAILED ((?:seed )?([^\s,]+),.*)/m;
        return defined $line ? ("$name: $line", $command->($part)) : ($name, $command->());
    }
    return;
}

my (%done, $survived, %control);
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
for my $file (map { map { $_->[0] } Mutants::edits($_) } @Mutants::all) { # a run that was ended has left its mutant
    my $text = Job::slurp("$from/$file");
    put($file, $text) if Job::slurp("$src/$file") ne $text;
}
for my $m (@mutants) {
    next if $done{ $m->{name} };
    last if $opt{limit} && time - $begin > $opt{limit};
    my $start = time;
    my %original = map { $_->[0] => Job::slurp("$src/$_->[0]") } Mutants::edits($m);
    my ($verdict, $who, $again) = ('survived', '');
    if (!replace($m)) { ($verdict, $who) = ('misfit', 'the replacement does not fit the code any more') }
    elsif (!rebuild()) { ($verdict, $who) = ('misfit', "does not compile, see $work/make.log") }
    else { ($who, $again) = caught_by($m); $verdict = 'caught' if $who }
    put($_, $original{$_}) for keys %original;
    if ($again && !$control{$again}) {
        rebuild() or die "the copy does not build without $m->{name}, see $work/make.log\n";
        $control{$again} = sh($again, "$work/again.log");
        ($verdict, $who) = ('unsound', "fails without the mutant too, see $work/again.log: $who") unless $control{$again};
    }
    $who //= '';
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
