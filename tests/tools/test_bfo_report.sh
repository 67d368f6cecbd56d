#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# `bfo report` while a job runs that has lost a rail: the file has the output of the other subcommands and MPI's parameters, no other variable
# of the environment, and only its user may read it. An existing file is kept; a path that cannot be written is named.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
use_components pml btl
report=$TEST_TMP/report

has() { grep -Eq -- "$1" "$report" || { cat "$report"; fail "the report does not have: $1"; }; }

export A_TOKEN=open-sesame OMPI_MCA_btl_openib_ib_timeout=17
start_job 2 2
"$SOFTRAIL" down --fabric "$FABRIC" 1 || fail "rail 1 could not be cut"
until_so "the port is not lost" status_has '^  [^ ]+ +sr1:1 +[0-9]+[GM] +lost '
"$BFO" report --output "$report" >"$TEST_TMP/out" 2>&1 || { cat "$TEST_TMP/out"; fail "no report"; }
grep -q "^$report is written" "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "it does not say where the report is"; }
[ "$(stat -c %a "$report")" = 600 ] || fail "others may read it"
has "^bfo $BFO_VERSION, built for Open MPI [0-9.]+; report of 20"
has '^== machine$'
has '^Max locked memory'
has '^OMPI_MCA_btl_openib_ib_timeout=17$'
has '^== bfo doctor$'
has '^loss of a port$'
has '"port": "sr1:1"'
has ' port-down sr1:1 '
has '^== ibv_devinfo -v$'
! grep -q open-sesame "$report" || fail "a variable that is no business of MPI is in the report"
# The sections are in order: output of a child does not come before its title.
[ "$(grep -n '^== ' "$report" | cut -d: -f2 | tr '\n' ' ')" = "$(printf '%s ' '== machine' '== kernel modules' '== environment (only variables that say how MPI runs)' \
    '== ompi_info --version' '== bfo doctor' '== bfo status --json' '== bfo events --since 1d' '== ibv_devinfo -v')" ] || { grep '^== ' "$report"; fail "the sections"; }

cp "$report" "$TEST_TMP/before"
"$BFO" report -o "$report" >"$TEST_TMP/out" 2>&1
[ $? = 3 ] && cmp -s "$report" "$TEST_TMP/before" || fail "a file that is there is not kept"
grep -q "^bfo: $report: File exists" "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "it does not say why"; }
"$BFO" report -o "$TEST_TMP/nowhere/report" >"$TEST_TMP/out" 2>&1
[ $? = 3 ] || fail "a report in a directory that is not there"
(cd "$TEST_TMP" && "$BFO" report 4711 >out 2>&1) || { cat "$TEST_TMP/out"; fail "no report under its own name"; }
report=$(find "$TEST_TMP" -maxdepth 1 -name 'bfo-report-*.txt')
has '^== bfo status --json 4711$'
has '^\(exit status 4\)$'
finish_job
note "report: what the others say, and no secret"
exit 0
