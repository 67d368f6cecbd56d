#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# make check-mutants: the tests must catch every mutant. Results are in mutants.tsv; a second start runs the mutants that have no result yet.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
need ccache ccache
export BFO_OMPI_COMPONENTDIR
perl "$BFO_SRCDIR/tests/mutants/mutants.pl" ${MUTANTS:+--only "$MUTANTS"} || fail "a mutant survived: a test is missing"
