#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# groff formats every man page without a warning; the parameters that man pages and bfo(7) name are registered (docs/parameters.md),
# and our pages that they refer to exist.
. "$BFO_SRCDIR/tests/lib.sh"
need groff groff-base
cd "$BFO_SRCDIR" || exit 1
pages=(tools/*.1 contrib/*.1 softrail/*.[1-8] docs/*.7 "$BFO_BUILDDIR/railfail/railfail.1")
[ ${#pages[@]} -ge 6 ] || fail "only ${#pages[@]} man pages"
for page in "${pages[@]}"; do
    groff -man -Tutf8 -ww -z "$page" >"$TEST_TMP/warnings" 2>&1 && [ ! -s "$TEST_TMP/warnings" ] || fail "$(cat "$TEST_TMP/warnings")"
    text=$(groff -man -Tutf8 -P-cbou "$page" | sed -n '/^NAME/,$p')
    [ "$(wc -l <<<"$text")" -gt 20 ] || fail "$page has hardly any text"
    sed 's/\\-/-/g; s/^\.\\".*//' "$page" >"$TEST_TMP/plain"
    while read -r name; do
        grep -q "^| \`$name\` |" docs/parameters.md || fail "$page names the parameter $name, which docs/parameters.md does not have"
    done < <(grep -oE '\b(pml_bfo|btl_openib)_[a-z0-9_]+[a-z0-9]' "$TEST_TMP/plain" | grep -vE '_failover$' | sort -u)
    while read -r other section; do
        ls ./*/"$other.$section" >/dev/null 2>&1 || fail "$page refers to $other($section), which does not exist"
    done < <(sed -nE 's/.*\b((bfo|softrail)[a-z_-]*) ?\(([1-8])\).*/\1 \3/p' "$TEST_TMP/plain" | sort -u)
done

# Each command has a section in bfo(1), and a man page of its name that shows bfo(1).
commands=$("$BFO_BUILDDIR/tools/bfo" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -gt 8 ] || fail "bfo --help names hardly any command"
for command in $commands; do
    grep -qx "\.SS $command" tools/bfo.1 || fail "bfo(1) has no section of bfo $command"
    grep -qx '\.so man1/bfo\.1' "$BFO_BUILDDIR/tools/bfo-$command.1" || fail "bfo-$command(1) is not made"
done
exit 0
