#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Every help topic that the code names stands in a help text, and every topic of a help text is named by the code.
. "$BFO_SRCDIR/tests/lib.sh"
cd "$BFO_SRCDIR" || exit 1
bad=0
for dir in pml_bfo btl_openib_failover; do
    texts=$(ls "$dir"/help-*.txt 2>/dev/null)
    [ -n "$texts" ] || fail "$dir has no help text"
    for text in $texts; do
        for topic in $(sed -n 's/^\[\(.*\)\]$/\1/p' "$text"); do
            grep -q "\"$topic\"" "$dir"/*.[ch] || { echo "  $text: [$topic] is used nowhere"; bad=1; }
        done
    done
    for topic in $(tr -d '\n' < <(cat "$dir"/*.c) | grep -oE '(show_help|bfo_help|ofo_help)[a-z_]*\((BFO_HELP_FILE|OFO_HELP_FILE|"help-[^"]*"), *"[^"]*"' |
        sed 's/.*"\([^"]*\)"$/\1/' | sort -u); do
        grep -qF "[$topic]" $texts || { echo "  $dir: no text for topic \"$topic\""; bad=1; }
    done
done
[ "$bad" = 0 ] || fail "help texts and code disagree"
