#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# `bfo set` changes a parameter of the processes of one job while they run: they print more from then on, and another job is not affected. A
# process that computes takes the value up later. The command or the process refuses a value that the parameter may not have, and the old value
# stays. Wishes of dead jobs are removed. Of a damaged list only valid wishes are obeyed.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
use_components pml btl
need perl perl
BTL_ARGS=(--mca pml bfo --mca btl openib,self --mca btl_openib_time_wait 1 --mca btl_openib_rejoin_after 50)
declare -A jobs

# begin NAME PROGRAM [MPIRUN-ARGUMENTS...]: starts a job of two ranks on two rails of its own; NAME is its batch number
begin() {
    local name=$1 program=$2
    shift 2
    mkdir "$TEST_TMP/$name"
    SLURM_JOB_ID=$name FABRIC=bfo-set-$name-$$ LOG=$TEST_TMP/$name/log begin_stream "-n 2 --retry-time=500ms" 2 "$@" \
        "$BFO_BUILDDIR/tests/tools/$program" "$TEST_TMP/$name"
    jobs[$name]=$job
}
# end NAME: ends the job, which must have verified its messages
end() {
    touch "$TEST_TMP/$1/end"
    wait "${jobs[$1]}" || { tail -n 40 "$TEST_TMP/$1/log"; fail "the job $1 ended with status $?"; }
    grep -q '^PASSED' "$TEST_TMP/$1/log" || { tail -n 40 "$TEST_TMP/$1/log"; fail "the job $1 verified nothing"; }
}
job_says() { await "$TEST_TMP/$1/log" "$2" "${3:-1}" || { cat "$TEST_TMP/$1/log"; fail "the job $1 does not say: $2"; }; }
has_in_all() { "$BFO" set "$1" "$2" >"$TEST_TMP/out" 2>&1 && grep -Eq "^job [0-9.]+: pml_bfo_$2 $3 in 2 processes\$" "$TEST_TMP/out"; }
wishes() { od -An -tu4 -j28 -N4 "$FIGURES/.steer" | tr -d ' '; }

ends_with 4 "$BFO" set 4711 verbose 1
says "no process of the job '4711' lives on this node"
ends_with 0 "$BFO" set
says '^pml_bfo_last_rail_timeout +-1 to 1000000 seconds$'
begin 4711 mpi_computes --mca pml_bfo_last_rail_timeout 0
begin 4712 mpi_computes --mca pml_bfo_rejoin 0
job_says 4711 '^computes'
job_says 4712 '^computes'
number=$("$BFO" status 4711 --json | sed -n 's/^ *"job": "\(.*\)",*$/\1/p')

# A process computes: the other process does not wait for it.
ends_with 1 "$BFO" set 4711 pml_bfo_verbose 1 --wait 1
says '^pml_bfo_verbose is not 1 yet in [12] of 2 processes:$'
says 'rank 1 \(pid [0-9]+\): it has not noticed yet; it will in its next MPI call that waits$'
job_says 4711 'bfo: rank 0: pml_bfo_verbose = 1 (bfo set)'
! grep -q 'bfo: rank 1: ' "$TEST_TMP/4711/log" || { cat "$TEST_TMP/4711/log"; fail "rank 1 does not compute"; }
touch "$TEST_TMP/4711/computed" "$TEST_TMP/4712/computed"
job_says 4711 'bfo: rank 1: pml_bfo_verbose = 1 (bfo set)'
until_so "rank 1 does not take the value up" has_in_all 4711 verbose 1
note "a process that computes takes it up later"

# The messages of level 1 appear now. The job is named by its number, and by the first part of its number.
"$SOFTRAIL" down --fabric "bfo-set-4711-$$" 0 || fail "rail 0 could not be cut"
job_says 4711 'rail 0 generation [0-9]* (sr0:1) lost' 2
"$SOFTRAIL" up --fabric "bfo-set-4711-$$" 0 || fail "rail 0 did not return"
job_says 4711 'rail 0 generation [0-9]* (sr0:1) is back' 2
ends_with 0 "$BFO" set "$number" verbose 0 --wait 60
says '^pml_bfo_verbose is 0 in 2 processes$'
said=$(grep -c 'generation' "$TEST_TMP/4711/log")
ends_with 0 "$BFO" set "${number%.*}" counters true --wait 60 --json
[ "$(json "$TEST_TMP/out" '$j->{done} && 1 == $j->{value} && 2 == grep { $_->{done} && 1 == $_->{value} } @{$j->{processes}}')" = 1 ] ||
    { cat "$TEST_TMP/out"; fail "--json"; }
ends_with 0 "$BFO" set "$number" last_rail_timeout -1 --wait 60
"$SOFTRAIL" down --fabric "bfo-set-4711-$$" 0 || fail "rail 0 could not be cut"
until_so "the loss is not noticed" status_has '^  [^ ]+ +sr0:1 .* lost .* 0/2 ' 4711
# After the loss of the last rail the job waits, because bfo set has changed last_rail_timeout.
"$SOFTRAIL" down --fabric "bfo-set-4711-$$" 1 || fail "rail 1 could not be cut"
job_says 4711 'No rail is left to a process; the job waits'
"$SOFTRAIL" up --fabric "bfo-set-4711-$$" 1 || fail "rail 1 did not return"
until_so "rail 1 is not back" status_has '^  [^ ]+ +sr1:1 .* up .* 2/2 ' 4711
ends_with 0 "$BFO" events "$number"
says 'parameter: pml_bfo_verbose = 1 \(bfo set\)'
note "more words"

# The other job.
ends_with 0 "$BFO" set 4712 --json
[ "$(json "$TEST_TMP/out" '2 == grep { 0 == $_->{parameters}{pml_bfo_verbose} && 0 == $_->{parameters}{pml_bfo_counters} && 0 == $_->{parameters}{pml_bfo_last_rail_timeout} } @{$j->{processes}}')" = 1 ] ||
    { cat "$TEST_TMP/out"; fail "the other job is not as it was"; }
ends_with 1 "$BFO" set 4712 last_rail_timeout 5 --wait 60
says '^pml_bfo_last_rail_timeout is not 5 in 2 of 2 processes:$'
says 'rank 0 \(pid [0-9]+\): it keeps 0; .*refused: it must be 0 unless pml_bfo_rejoin is 1'
until_so "a refused value is in use" has_in_all 4712 last_rail_timeout 0
ends_with 0 "$BFO" set 4712 warnings_per_minute 1000 --wait 60
note "another job is untouched, and refuses what it cannot"

for words in 'warnings_per_minute 1001' 'warnings_per_minute -1' 'resend_burst 0' 'resend_burst 1x' 'counters maybe' 'last_rail_timeout 99999999999999999999' 'verbose -2'; do
    # shellcheck disable=SC2086
    ends_with 2 "$BFO" set 4712 $words
    says "^bfo set: pml_bfo_${words% *} cannot be '${words#* }': it must be "
done
for name in max_rails pml_bfo_status_dir rejoin nothing; do
    ends_with 2 "$BFO" set 4712 $name 1
    says "^bfo set: '$name' cannot change while a job runs"
done
ends_with 2 "$BFO" set 4712 verbose 1 2
ends_with 2 "$BFO" set 4712 verbose 1 --wait -1
until_so "a refused value is in use" has_in_all 4712 warnings_per_minute 1000
note "refused by the command"

# On another node, by a command that stands for ssh.
printf '#!/bin/sh\n[ "$1" = good ] || exit 255\nshift\nexec "$@"\n' >"$TEST_TMP/rsh"
chmod +x "$TEST_TMP/rsh"
ends_with 0 "$BFO" set --hosts good --rsh "$TEST_TMP/rsh" --wait 60 4712 verbose -1
says '^good: pml_bfo_verbose is -1 in 2 processes$'
ends_with 3 "$BFO" set --hosts good,gone --rsh "$TEST_TMP/rsh" 4712
says '^good: job [0-9.]+: pml_bfo_verbose -1 in 2 processes$'
note "on another node"

# The next wish removes the wishes of the dead job, and of a damaged list only valid wishes are obeyed.
end 4711
[ "$(grep -c 'generation' "$TEST_TMP/4711/log")" = "$said" ] || { cat "$TEST_TMP/4711/log"; fail "it says more although verbose is 0 again"; }
grep -q 'bfo: rank 1 counters: ' "$TEST_TMP/4711/log" || { cat "$TEST_TMP/4711/log"; fail "the counters are not printed"; }
note "fewer words; counters at the end"
[ "$(wishes)" = 6 ] || fail "$(wishes) wishes, not 6"
ends_with 0 "$BFO" set 4712 resend_burst 7 --wait 60
[ "$(wishes)" = 4 ] || fail "$(wishes) wishes, not the 4 of the job that lives"
note "wishes of a dead job are forgotten"
job=$("$BFO" status 4712 --json | sed -n 's/^ *"job": "\(.*\)",*$/\1/p')
perl -e 'my ($file, $family, $local) = @ARGV; open my $f, "+<", $file or die; binmode $f;
    seek $f, 16, 0; read $f, my $n, 8; $n = unpack("Q", $n) + 2;
    seek $f, 32 + 16 * 64, 0; # the wishes
    my @wishes = ([4, 0, $n], [4, 5, ~0], [4, 6, 2], [3, 0, $n], map { [1 << 31 | $_, 0, $n] } 4 .. 127); # 4: resend_burst, 3: last_rail_timeout
    print $f pack("LLqQ", $family << 16 | $local, @$_) for @wishes;
    seek $f, 28, 0; print $f pack("L", 128);
    seek $f, 16, 0; print $f pack("Q", $n)' "$FIGURES/.steer" "${job%.*}" "${job#*.}" || fail "the list cannot be damaged"
events_have() { "$BFO" events 4712 >"$TEST_TMP/out" 2>&1 && grep -q -- "$1" "$TEST_TMP/out"; }
until_so "what is right in the list is not obeyed" events_have "last_rail_timeout = 0 (bfo set)"
events_have "resend_burst = 0 (bfo set; refused: it must be 1 to 1000000)" || { cat "$TEST_TMP/out"; fail "a wrong value is not refused"; }
! events_have "resend_burst = [56]" && has_in_all 4712 resend_burst 7 || { cat "$TEST_TMP/out"; fail "a wish of the past or the future is obeyed"; }
ends_with 3 "$BFO" set 4712 verbose 1
says 'has no room for another; wait until one of these jobs has ended$'
printf short >"$TEST_TMP/short" && mv "$TEST_TMP/short" "$FIGURES/.steer"
ends_with 3 "$BFO" set 4712 verbose 1
says 'another release of bfo made it'
end 4712
note "lists: damaged, full, of another release"
exit 0
