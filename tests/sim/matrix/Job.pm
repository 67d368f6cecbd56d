# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs one job under softrail with a fault plan. Returns its status, its output and the results of the rules. The fault matrix, the
# soak and the mutants share this file. DESIGN.txt section 13.
package Job;
use strict;
use warnings;
use JSON::PP;
use POSIX qw(:sys_wait_h setpgid);
use Time::HiRes qw(time sleep);

sub slurp { my ($file) = @_; local $/; open my $in, '<', $file or return ''; my $text = <$in>; return $text // '' }

# The command that softrail runs: mpirun with the two components and these parameters, each [name, value].
sub mpirun {
    my ($ranks, @mca) = @_;
    return ($ENV{MPIRUN}, qw(--oversubscribe --bind-to none -np), $ranks,
            map { ('--mca', @$_) } ['pml', 'bfo'], ['btl', 'openib,self'], ['osc', '^ucx,rdma'], ['pml_bfo_verbose', 1], @mca);
}

# A job can stay until the file "enough" exists in its directory. run() calls this function every 50 ms with the output of the job and the
# name of its fabric, which status() takes. run() makes the file when the function returns true.
our $enough;
sub status {
    my ($fabric) = @_;
    my $text = `$ENV{BFO_BUILDDIR}/softrail/softrail status --json --fabric $fabric 2>/dev/null`;
    return eval { decode_json($text) } // {};
}

# Ends the job that runs, if any: softrail ends the program, then the fabric. A script that gets SIGTERM calls it, because the job has a process
# group of its own.
my $running;
sub end {
    return unless $running;
    my $pid = $running;
    undef $running;
    kill 'TERM', $pid;
    my $grace = time + 5;
    sleep 0.05 until waitpid($pid, WNOHANG) == $pid || time > $grace;
    kill 'KILL', -$pid;
    waitpid $pid, WNOHANG;
}

# run($dir, $limit, \@softrail, \@program, @rules): { status, output, faults, rails, command, plan, seconds }. The status is
# "hung" if the job did not end within $limit seconds. run() then ends the job, and the fabric last.
sub run {
    my ($dir, $limit, $softrail, $program, @rules) = @_;
    my $from = time;
    open my $plan, '>', "$dir/plan" or die "$dir/plan: $!\n";
    print $plan map { "$_\n" } @rules;
    close $plan;
    unlink "$dir/report", "$dir/enough", "$dir/log";
    my $fabric = "bfo-job-$$";
    my @command = ("$ENV{BFO_BUILDDIR}/softrail/softrail", 'run', "--name=$fabric", "--plan=$dir/plan", "--report=$dir/report", @$softrail, '--', @$program);
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        setpgid(0, 0);
        # An mpirun that ends removes the directory that all jobs of a user on a host share. Another mpirun that is about to make its own
        # directory in there then fails ("orte_session_dir failed"). Therefore each job has a directory of its own.
        $ENV{OMPI_MCA_orte_tmpdir_base} = $dir;
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$dir/log";
        open STDERR, '>&', \*STDOUT;
        exec @command or POSIX::_exit(127);
    }
    $running = $pid;
    my ($status, $look, $looks) = ('hung', $enough, 0);
    while (time < $from + $limit) {
        if (waitpid($pid, WNOHANG) == $pid) { $status = $?; undef $running; last }
        sleep 0.01;
        if ($look && ++$looks % 5 == 0 && $look->(slurp("$dir/log"), $fabric)) {
            open my $file, '>', "$dir/enough" or die "$dir/enough: $!\n";
            undef $look;
        }
    }
    end();
    my $report = eval { decode_json(slurp("$dir/report")) } // {};
    return { status => $status, output => slurp("$dir/log"), faults => $report->{faults} // [], rails => $report->{rails} // [], command => "@command",
             plan => join('; ', @rules), seconds => time - $from };
}

# Whatever the faults were, a job must end with status 0, find no wrong data, and verify something. Returns the complaint, or ''.
sub wrong_with {
    my ($j) = @_;
    return 'hung' if $j->{status} eq 'hung';
    return "wrong data: $1" if $j->{output} =~ /^WRONG (.*)/m;
    return 'ended with status ' . ($j->{status} >> 8) . ($j->{status} & 127 ? ' and signal ' . ($j->{status} & 127) : '')
        if $j->{status} != 0;
    return 'verified nothing' if $j->{output} !~ /^VERIFIED [1-9]/m;
    return '';
}

# The rails that were lost: "rank rank rail", once for each pair of ranks, although both ends report the loss.
sub lost {
    my ($j) = @_;
    my %lost;
    while ($j->{output} =~ /bfo: (\d+)->(\d+) rail (\d+) generation \d+ \(\S+\) lost/g) {
        $lost{ ($1 < $2 ? "$1 $2" : "$2 $1") . " $3" } = 1;
    }
    return keys %lost;
}

# On how many rails were faults injected?
sub hit_rails { my ($j) = @_; return scalar grep { $_->{faults} } @{ $j->{rails} // [] } }

# How many rails were lost? A rail counts once, however many pairs of ranks it connects.
sub lost_rails {
    my ($j) = @_;
    my %lost = map { $_ => 1 } $j->{output} =~ /bfo: \d+->\d+ rail \d+ generation \d+ \((\S+)\) lost/g;
    return scalar keys %lost;
}
1;
