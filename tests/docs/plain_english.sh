#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Expressions that readers stumbled over do not come back: texts for users have none, DESIGN.txt and the comments of the product no more than the
# table below says.
. "$BFO_SRCDIR/tests/lib.sh"
cd "$BFO_SRCDIR" || exit 1
users="README.md NEWS docs/*.md docs/*.7 tools/*.1 contrib/*.1 softrail/*.1 softrail/*.5 pml_bfo/help-*.txt btl_openib_failover/help-*.txt pml_bfo/types/pml_bfo_params.c pml_bfo/show/pml_bfo_drain_cvar.c
    btl_openib_failover/door/btl_openib_params.c tools/*.c railfail/railfail railfail/README.md softrail/sr_cmd_*.c softrail/softrail.c demo.sh"
others="DESIGN.txt pml_bfo/*/*.[ch] btl_openib_failover/*/*.[ch] include/*.h softrail/*.[ch]"

# pattern MOST-IN-THE-OTHERS BETTER PATTERN
patterns='
1 over_a_rail \bby (a|the|this|that|its|another|one|other|each|which) rails?\b
9 after \bbehind\b
0 again \banew\b
0 without_limit \bfor ever\b
0 a_process_that (process|rank|peer|job|node)(es|s)?,? who\b
1 hears_or_says \b(is|are) told\b
0 iWARP \bof iWARP\b'
bad=0
# flow FILES: prints FILES with each paragraph or comment in one line, because an expression may be broken at the end of a line.
flow() { perl -0777 -pe 's/(?<=\S)[ \t]*\n[ \t]*(?:\*(?!\/)|#+(?!!))?[ \t]*(?=\S)/ /g; s/$/\n/' $1; }
# count FILES PATTERN: prints how often PATTERN is in FILES.
count() { flow "$1" | grep -oiE -- "$2" | wc -l; }
while read -r most better pattern; do
    [ -n "$pattern" ] || continue
    # In the .c files that users read, only lines with a text in quotes count.
    n=$({ grep -niE -- "$pattern" $users | grep -vE '^[^:]*\.c:[0-9]+:[^"]*$' | grep -vE '^[^:]*\.c:[0-9]+: *(\*|/\*)'
        flow "$(ls $users | grep -v '\.c$')" | grep -oiE -- ".{0,40}$pattern.{0,40}"; } | tee "$TEST_TMP/found" | wc -l)
    [ "$n" = 0 ] || { echo "users read '$pattern' (better: ${better//_/ }):"; head -n 10 "$TEST_TMP/found"; bad=1; }
    n=$(count "$others" "$pattern")
    [ "$n" -le "$most" ] || { echo "'$pattern' stands $n times in DESIGN.txt and in comments, and $most were there (better: ${better//_/ })"; bad=1; }
done <<<"$patterns"
[ "$bad" = 0 ] || fail "plain English"
printf 'it goes by\na rail\n' >"$TEST_TMP/sample.md"
[ "$(count "$TEST_TMP/sample.md" '\bby (a|the) rails?\b')" = 1 ] || fail "nothing is found where something stands"
exit 0
