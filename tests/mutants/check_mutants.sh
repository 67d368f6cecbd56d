#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# make check-mutants: every mutant must be caught. Results in mutants.tsv; started again it runs what has no result yet.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
export BFO_OMPI_COMPONENTDIR
perl "$BFO_SRCDIR/tests/mutants/mutants.pl" ${MUTANTS:+--only "$MUTANTS"} || fail "a mutant survived: a test is missing"
