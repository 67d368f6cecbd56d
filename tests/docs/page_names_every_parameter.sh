#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# docs/parameters.md and docs/bfo-params.7 list the parameters that the components register: names, defaults, meanings.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
use_components pml btl
for page in docs/parameters.md docs/bfo-params.7; do
    perl "$BFO_SRCDIR/contrib/parameters-page.pl" "$BFO_SRCDIR/$page" ||
        fail "$page differs from the components: perl contrib/parameters-page.pl --update $page"
done
