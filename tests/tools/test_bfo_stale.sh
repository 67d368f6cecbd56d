#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The command can read a stopped rank and shows it alive; it shows a killed rank as dead, and the rank's file stays while its job lives here.
# The files of a dead job are shown as dead; `bfo clean` or the next job removes them.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
use_components pml btl
need perl perl

pid_of() { json "$TEST_TMP/json" "map { \$_->{pid} } grep { \$_->{rank} == $1 } map { @{\$_->{processes}} } @{\$j->{jobs}}"; }
counts() { # ALIVE DEAD FILES
    local alive dead
    "$BFO" status --json >"$TEST_TMP/json" 2>"$TEST_TMP/out"
    alive=$(json "$TEST_TMP/json" 'scalar grep { $_->{alive} } map { @{$_->{processes}} } @{$j->{jobs}}')
    dead=$(json "$TEST_TMP/json" 'scalar grep { !$_->{alive} } map { @{$_->{processes}} } @{$j->{jobs}}')
    [ "$alive $dead $(find "$FIGURES" -type f ! -name ".*" | wc -l)" = "$1 $2 $3" ]
}
# kill_job: kills the job as a crash would; mpirun is stopped meanwhile, so that it cannot end the other rank.
kill_job() {
    local zero one mpirun
    until_so "two ranks do not live" counts 2 0 2
    zero=$(pid_of 0) one=$(pid_of 1)
    mpirun=$(ps -o ppid= -p "$one")
    kill -STOP $mpirun $zero || fail "cannot stop $mpirun, $zero"
    kill -KILL $one
    until_so "a killed rank is not dead, or a stopped one is" counts 1 1 2
    "$BFO" clean >"$TEST_TMP/out" && grep -q '^0 files removed' "$TEST_TMP/out" || fail "a file was removed while its job lives: $(cat "$TEST_TMP/out")"
    status_has '^  rank 1 \(pid [0-9]* on [^ ]*\) is dead' && [ "$STATUS" = 1 ] || { cat "$TEST_TMP/out"; fail "status of a dead rank is $STATUS"; }
    kill -KILL $zero
    kill -CONT $mpirun
    wait "$job" && fail "the job whose ranks were killed ended well"
    counts 0 2 2 || { cat "$TEST_TMP/json"; ls -la "$FIGURES"; fail "a dead job is not shown as dead"; }
}

start_job 2 2
kill_job
"$BFO" clean 4711 >/dev/null 2>&1
[ $? = 2 ] || fail "bfo clean takes a job"
"$BFO" clean >"$TEST_TMP/out" && grep -q '^2 files removed' "$TEST_TMP/out" || fail "the files of a dead job stay: $(cat "$TEST_TMP/out")"
"$BFO" clean --json | tr -d ' \n' | grep -qx '{"removed":0}' || fail "bfo clean --json"
note "bfo clean removes what a dead job left"

start_job 2 2
kill_job
: >"$FIGURES/.new.99999999" # a process made this file long ago, and died before it renamed it
touch -d '1 hour ago' "$FIGURES/.new.99999999"
start_job 3 2
until_so "the next job does not remove what a dead one left" counts 3 0 3
[ ! -e "$FIGURES/.new.99999999" ] || fail "a file that never got its name stays"
finish_job
note "the next job does, too"
exit 0
