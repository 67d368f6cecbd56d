#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The part of the fault matrix that "make check" runs: each kind of fragment x fault x side that sees the error,
# a second fault in each state of a restart, and ports. "make check-faults" runs all cells. Before that, the bound on
# cells that are tried again: one of three cells may be, two may not.
. "$BFO_SRCDIR/tests/lib.sh"
use_components pml btl
need perl perl
matrix() { perl "$BFO_SRCDIR/tests/sim/matrix/matrix.pl" --set fast --jobs "${JOBS:-2}" "$@"; }

mapfile -t ids < <(matrix --list | cut -f1 | head -n 3)
known() { printf '%s\tpassed\t1\t0\tof 2%s\n' "$@" >>"$TEST_TMP/bound.tsv"; }
bound() { matrix --only "^($(IFS='|'; echo "${ids[*]}"))\$" --results "$TEST_TMP/bound.tsv"; }
matrix --only "^${ids[0]}\$" --results "$TEST_TMP/bound.tsv" >"$TEST_TMP/out" || fail "$(cat "$TEST_TMP/out")"
sed -i 1q "$TEST_TMP/bound.tsv" # the first line says for which binaries the results are
known "${ids[0]}" ', tries: 2 (rules that hit nothing: 3)' "${ids[1]}" '' "${ids[2]}" ''
bound >"$TEST_TMP/out" || fail "one retried cell fails a run of three: $(cat "$TEST_TMP/out")"
known "${ids[2]}" ', tries: 2 (rules that hit nothing: 3)'
! bound >"$TEST_TMP/out" || fail "two retried cells of three do not fail the run"
grep -q "^FAILED: 2 cells were tried again, at most 1 may be: ${ids[0]} ${ids[2]}\$" "$TEST_TMP/out" ||
    fail "the message does not name the retried cells: $(cat "$TEST_TMP/out")"

matrix --results "$PWD/fast.tsv" --fresh --limit 3600 ||
    fail "cells of the fault matrix failed; matrix.pl --set fast --only ID runs one again"
