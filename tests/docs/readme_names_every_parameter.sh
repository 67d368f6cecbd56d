#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Every parameter that the components register stands in README.md, and README.md names none that does not exist.
. "$BFO_SRCDIR/tests/lib.sh"
use_components pml btl
registered=$(
    for pair in "pml bfo" "btl openib"; do
        "$OMPI_INFO" --parsable --param $pair --level 9
    done | sed -n 's/^mca:[a-z]*:[a-z]*:param:\([a-z0-9_]*\):value:.*/\1/p' | sort -u)
[ -n "$registered" ] || fail "ompi_info lists no parameter of ours"
documented=$(grep -oE '`(pml_bfo|btl_openib)_[a-z0-9_]+`' "$BFO_SRCDIR/README.md" | tr -d '`' | sort -u)
missing=$(comm -23 <(echo "$registered") <(echo "$documented"))
unknown=$(comm -13 <(echo "$registered") <(echo "$documented"))
[ -z "$missing" ] || fail "README.md does not name: $(echo $missing)"
[ -z "$unknown" ] || fail "README.md names what does not exist: $(echo $unknown)"
