#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The README.md of a folder of the product names every source in it, and no other file.
. "$BFO_SRCDIR/tests/lib.sh"
cd "$BFO_SRCDIR" || exit 1

# tables_name_files README PLACE...: each file that a table of the page names in backquotes exists, with a PLACE before its name (or pattern).
tables_name_files() {
    local page=$1 name place found
    shift
    for name in $(grep '^|' "$page" | grep -oE '`[A-Za-z0-9_*][A-Za-z0-9_./*-]*\.(am|c|def|h|list|md|pl|pm|sh|svg)`' | tr -d '`'); do
        found=
        for place in "$@"; do compgen -G "$place$name" >/dev/null && found=1; done
        [ -n "$found" ] || fail "$page names $name, which is not there"
    done
}
# check FOLDER PREFIX [ROOMS]: names in backquotes are files, with or without the prefix; the header of a .c file need not be named. ROOMS: the
# files are in the folders of this folder (*/).
check() {
    local file missing='' rooms=${3:-}
    # shellcheck disable=SC2086
    for file in $(cd "$1" && ls -- $rooms*.c $rooms*.h $rooms*.def *.pl *.sh 2>/dev/null); do
        [ "${file%.h}" = "$file" ] || [ ! -e "$1/${file%.h}.c" ] || continue
        file=${file##*/}
        grep -qF "\`${file#"$2"}\`" "$1/README.md" || grep -qF "\`$file\`" "$1/README.md" || missing="$missing $file"
    done
    [ -z "$missing" ] || fail "$1/README.md does not name$missing"
    tables_name_files "$1/README.md" "$1/$rooms" "$1/$rooms$2"
}
check pml_bfo pml_bfo_ '*/'
check btl_openib_failover btl_openib_ '*/'
check softrail sr_
check tools bt_
check contrib ''
check railfail rf_
check include ''

# Each folder of tests, and the folder of the pages, has a README whose table names files that exist.
for folder in docs tests/*/; do
    folder=${folder%/}
    [ -n "$(find "$folder" -maxdepth 1 -name '*.am' -o -maxdepth 1 -name '*.md')" ] || continue
    [ -e "$folder/README.md" ] || fail "$folder has no README.md"
    tables_name_files "$folder/README.md" "$folder/" ""
done
