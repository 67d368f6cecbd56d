#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The README.md of a folder of the product names every source in it, and no other.
. "$BFO_SRCDIR/tests/lib.sh"
cd "$BFO_SRCDIR" || exit 1

# check FOLDER PREFIX: names in backquotes are files, with or without the prefix; the header of a .c file needs no name of its own.
check() {
    local file missing= name
    for file in $(cd "$1" && ls -- *.c *.h *.def *.pl *.sh 2>/dev/null); do
        [ "${file%.h}" = "$file" ] || [ ! -e "$1/${file%.h}.c" ] || continue
        grep -qF "\`${file#"$2"}\`" "$1/README.md" || grep -qF "\`$file\`" "$1/README.md" || missing="$missing $file"
    done
    [ -z "$missing" ] || fail "$1/README.md does not name$missing"
    for name in $(grep '^|' "$1/README.md" | grep -oE '`[a-z0-9_.-]+\.(c|h|def|pl|sh)`' | tr -d '`'); do
        [ -e "$1/$name" ] || [ -e "$1/$2$name" ] || fail "$1/README.md names $name, which is not there"
    done
}
check pml_bfo pml_bfo_
check btl_openib_failover btl_openib_
check softrail sr_
check tools bt_
check contrib ''
check railfail rf_
check include ''

# Each folder of tests, and that of the pages, has a README whose table names files that exist.
for folder in docs tests/*/; do
    folder=${folder%/}
    [ -n "$(find "$folder" -maxdepth 1 -name '*.am' -o -maxdepth 1 -name '*.md')" ] || continue
    [ -e "$folder/README.md" ] || fail "$folder has no README.md"
    for name in $(grep '^|' "$folder/README.md" | grep -oE '`[A-Za-z0-9_*][A-Za-z0-9_./*-]*\.(sh|c|h|pl|pm|am|list|md|svg)`' | tr -d '`'); do
        compgen -G "$folder/$name" >/dev/null || compgen -G "$name" >/dev/null || fail "$folder/README.md names $name, which is not there"
    done
done
