#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The tables of docs/parameters.md are what the components register: names, defaults, meanings.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
use_components pml btl
perl "$BFO_SRCDIR/contrib/parameters-page.pl" "$BFO_SRCDIR/docs/parameters.md" ||
    fail "docs/parameters.md differs from the components: perl contrib/parameters-page.pl --update docs/parameters.md"
