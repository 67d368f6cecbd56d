#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The code states its invariants: each room has a least number of assertions (these numbers only rise), no condition of an
# assertion changes anything, and a build for users has no instruction of an assertion: files of plain C give the same assembler
# text with the assertions off and with the assertions removed.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
cd "$BFO_SRCDIR" || exit 1
rooms=
while read -r room floor; do
    count=$(find "$room" -name '*.[ch]' -exec cat {} + | grep -c 'BFO_ASSERT(')
    [ "$count" -ge "$floor" ] || fail "$room has $count assertions, fewer than $floor"
    note "$room: $count assertions"
    rooms="$rooms $room"
done <<'END'
pml_bfo/formats 83
pml_bfo/types 17
pml_bfo/show 7
pml_bfo/rails 81
pml_bfo/ends 26
pml_bfo/failover 25
pml_bfo/send 26
pml_bfo/recv 37
pml_bfo/handshake 42
pml_bfo/arrivals 3
btl_openib_failover/formats 25
btl_openib_failover/tables 1
btl_openib_failover/types 8
btl_openib_failover/device 15
btl_openib_failover/qp 12
btl_openib_failover/out 24
btl_openib_failover/in 10
btl_openib_failover/rail 78
btl_openib_failover/fault 28
btl_openib_failover/threads 6
pml_bfo/tables 2
pml_bfo/door 5
pml_bfo/ulfm 5
btl_openib_failover/connect 17
btl_openib_failover/door 12
softrail 5
END
for room in pml_bfo/*/ btl_openib_failover/*/; do
    [[ " $rooms " == *" ${room%/} "* ]] || [ -z "$(find "$room" -name '*.c')" ] || fail "$room has no least number of assertions here"
done
changing=$(grep -nE 'BFO_ASSERT\(.*(\+\+|--|[^=!<>]=[^=]|_add_|_sub_|exchange)' pml_bfo/*/*.[ch] btl_openib_failover/*/*.[ch] softrail/*.[ch])
[ -z "$changing" ] || fail "an assertion changes something: $changing"

# text FOLDER FILE ASSERTIONS: prints the assembler text
text() {
    gcc -std=gnu11 -O2 -S -o - -DBFO_ASSERTIONS="$3" -I"$1" -Iinclude -I"$BFO_BUILDDIR/include" "$1/$2" |
        grep -v '^[[:space:]]*\.file' || fail "$1/$2 does not compile"
}
for file in pml_bfo/formats/pml_bfo_{recv_match,seqmap,ids,stripe}.c btl_openib_failover/formats/btl_openib_{qpmap,counts}.c; do
    folder=${file%%/*} name=${file#*/}
    [ -d "$TEST_TMP/$folder" ] || cp -r "$folder" "$TEST_TMP"
    chmod -R u+w "$TEST_TMP/$folder"
    perl -ni -e 'print unless /^\s*BFO_ASSERT\(/' "$TEST_TMP/$folder"/*/*.[ch]
    text "$folder" "$name" 0 >"$TEST_TMP/off"
    text "$TEST_TMP/$folder" "$name" 0 >"$TEST_TMP/without"
    [ -s "$TEST_TMP/off" ] && cmp -s "$TEST_TMP/off" "$TEST_TMP/without" || fail "$file: assertions leave something in a build for users"
done
text pml_bfo formats/pml_bfo_recv_match.c 1 | grep -q bfo_assert_failed || fail "--enable-assertions compiles none in"
exit 0
