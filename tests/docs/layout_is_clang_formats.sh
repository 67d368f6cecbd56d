#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# clang-format, with the .clang-format of this tree, changes no C source. Other versions of the program format some lines differently.
. "$BFO_SRCDIR/tests/lib.sh"
need clang-format clang-format
clang-format --version | grep -q 'version 14\.' || skip_missing "clang-format 14 (here is $(clang-format --version))" "clang-format of Debian 12"
cd "$BFO_SRCDIR" || exit 1
mapfile -t sources < <(find include pml_bfo btl_openib_failover softrail tools railfail contrib tests -name '*.[ch]' -not -path '*/.*')
[ "${#sources[@]}" -ge 400 ] || fail "only ${#sources[@]} sources were found"
changed=$(printf '%s\0' "${sources[@]}" | xargs -0 -P 2 -n 40 clang-format --dry-run 2>&1 | sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: warning.*/\1/p' | sort | uniq -c)
[ -z "$changed" ] || { echo "$changed"; fail "lines that clang-format changes; 'clang-format -i FILE' mends them"; }

# The check finds a fault.
mkdir "$TEST_TMP/sample"
cp .clang-format "$TEST_TMP/sample"
echo 'int  x ;' >"$TEST_TMP/sample/x.c"
clang-format --dry-run -Werror "$TEST_TMP/sample/x.c" 2>/dev/null && fail "a line with a space too many passes"
exit 0
