#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The parameter tables of README.md are what the components register: names, defaults, meanings.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
use_components pml btl
perl "$BFO_SRCDIR/contrib/readme-parameters.pl" "$BFO_SRCDIR/README.md" ||
    fail "README.md differs from the components: perl contrib/readme-parameters.pl --update README.md"
