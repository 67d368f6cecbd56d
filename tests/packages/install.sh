#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# install.sh DIR   on a machine, or in a tree of contrib/tree.sh --bare, that has no bfo: installs the packages in DIR with their dependencies,
# runs debian/tests/survives, and removes the packages, after which nothing may be left. Needs root.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
[ $# = 1 ] && dir=$(cd "$1" && pwd) || { echo "usage: install.sh DIR" >&2; exit 2; }
fail() { echo "FAIL packages: $*"; exit 1; }
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
quietly() { "$@" >"$log" 2>&1 </dev/null || { tail -n 20 "$log"; fail "$*"; }; }
ours() {
    find / -xdev \( -path /proc -o -path /tmp -o -path "$top" -o -path "$dir" \) -prune -o -print | grep -E '/([^/]*[^a-z/])?(bfo|softrail)([^a-z/][^/]*)?$' | grep -v '^/\.bfo-'
}
left=$(ours)
[ -z "$left" ] || fail "something of bfo is here already: $left"

quietly apt-get install -y --no-install-recommends "$dir"/openmpi-bfo_*.deb "$dir"/softrail_*.deb "$dir"/bfo-doc_*.deb procps
bash "$top/debian/tests/survives" || fail "the installed packages do not work"
bfo doctor >"$log" 2>&1
grep -q 'installation' "$log" || { cat "$log"; fail "bfo doctor says nothing of the installation"; }
quietly apt-get purge -y openmpi-bfo softrail bfo-doc
left=$(ours)
[ -z "$left" ] || fail "purged, and left: $left"
rm -f "$log"
echo "packages: installed, used, purged"
