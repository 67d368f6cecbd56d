#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The unit tests of the PML with threads (identifiers, matching, request machines; its lock, threads inside it, threads that recycle a
# request) under ThreadSanitizer.
. "$BFO_SRCDIR/tests/lib.sh"
pml=$BFO_SRCDIR/pml_bfo unit=$BFO_SRCDIR/tests/unit
echo 'int main(void) { return 0; }' >"$TEST_TMP/empty.c"
gcc -fsanitize=thread "$TEST_TMP/empty.c" -o "$TEST_TMP/empty" 2>/dev/null || skip_missing "gcc's ThreadSanitizer" libtsan2

# under_tsan TEST SOURCES...
under_tsan() {
    local test=$1 status
    shift
    # shellcheck disable=SC2086
    gcc -std=gnu11 -g -O1 -fno-strict-aliasing -fsanitize=thread -DPML_BFO=1 -DBFO_ASSERTIONS=1 -I"$pml" -I"$unit" -I"$BFO_SRCDIR"/include \
        -I"$BFO_BUILDDIR"/include -I"$BFO_SRCDIR"/include/compat $OMPI_CPPFLAGS $OMPI_CFLAGS "$unit/$test.c" "$@" \
        -o "$TEST_TMP/$test" $OMPI_LDFLAGS $OMPI_LIBS -lcmocka -lpthread ||
        fail "$test does not build"
    TSAN_OPTIONS=halt_on_error=1 timeout -k 5 120 "$TEST_TMP/$test" >"$TEST_TMP/log" 2>&1
    status=$?
    [ $status = 0 ] && grep -q '\[  PASSED  \]' "$TEST_TMP/log" || { tail -n 40 "$TEST_TMP/log"; fail "$test under ThreadSanitizer: $status"; }
    note "$test: $(grep 'PASSED' "$TEST_TMP/log" | tail -n 1)"
}
under_tsan test_bfo_threads "$pml"/formats/pml_bfo_ids.c "$pml"/formats/pml_bfo_recv_match.c
under_tsan test_bfo_local "$pml"/types/pml_bfo_local.c "$pml"/formats/pml_bfo_ids.c -Wno-tsan
under_tsan test_bfo_failover_handshake "$pml"/tables/pml_bfo_failover_fsm.c
exit 0
