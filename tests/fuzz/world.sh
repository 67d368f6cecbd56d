#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# world.sh PROGRAM [CASE]: builds PROGRAM.c with the whole PML and the world of fuzz_world.h, with AddressSanitizer, and runs
# all of its cases, or CASE only. BFO_PML: another source folder of the PML, to see a case fail with it. BFO_WORLD_CFLAGS: more flags.
. "$BFO_SRCDIR/tests/lib.sh"
from=$BFO_SRCDIR/tests/fuzz pml=${BFO_PML:-$BFO_SRCDIR/pml_bfo} program=$BFO_BUILDDIR/tests/fuzz/$1
flags=(-std=gnu11 -Werror=implicit-function-declaration -mcx16 -g -O1 -fno-strict-aliasing -fsanitize=address -fno-omit-frame-pointer -DPML_BFO=1 -DBFO_FLUSH_SECONDS=1
    -DBFO_DEVICE_MEMORY=1 -DBFO_DRAIN_LOOK_MS=0 -DBFO_TURN_LEAST=BFO_TURN_BYTES -I"$from" -I"$from"/shadow -I"$BFO_SRCDIR"/include -I"$BFO_BUILDDIR"/include -I"$BFO_SRCDIR"/include/compat -I"$pml"
    -Dnanosleep=fuzz_nanosleep -Dopal_output=fuzz_output -Dompi_errhandler_invoke=fuzz_errhandler
    -Dopal_progress=fuzz_progress -Dopal_progress_register=fuzz_progress_register -Dopal_progress_register_lp=fuzz_progress_register_lp
    -Dopal_progress_unregister=fuzz_progress_unregister -Dopal_convertor_prepare_for_send=world_prepare_for_send
    -Dopal_convertor_prepare_for_recv=world_prepare_for_recv ${BFO_WORLD_CFLAGS:-})
memory=(-Dcalloc=world_calloc -Dmalloc=world_malloc -Dposix_memalign=world_memalign) # of the PML, not of the world
objects=$BFO_BUILDDIR/tests/fuzz/world_objects # of PML and world, which all programs have in common
# shellcheck disable=SC2206
compile=(${CC:-cc} "${flags[@]}" $OMPI_CPPFLAGS $OMPI_CFLAGS -c)
is_old() { [ ! -e "$1" ] || [ -n "$(find "$from" "$pml" "$BFO_SRCDIR"/include -name '*.[chd]*' -newer "$1" -print -quit)" ]; }
make_objects() {
    ! is_old "$objects/made" && [ "$(<"$objects/made")" = "$pml ${compile[*]}" ] && return
    rm -rf "$objects" && mkdir "$objects" && cd "$objects" && "${compile[@]}" "$from"/fuzz_world.c "$from"/fuzz_world_mpi.c &&
        printf '%s\0' "$pml"/*/*.c | xargs -0 -P 2 -n 1 "${compile[@]}" "${memory[@]}" && echo "$pml ${compile[*]}" >made
}
(
    flock 9
    make_objects || exit 1
    [ "$objects/made" -ot "$program" ] && ! is_old "$program" && exit 0
    # shellcheck disable=SC2086
    cd "$TEST_TMP" && "${compile[@]}" "${memory[@]}" "$from/$1.c" -o program.o &&
        ${CC:-cc} "${flags[@]}" program.o "$objects"/*.o -o "$program.new" $OMPI_LDFLAGS $OMPI_LIBS && mv "$program.new" "$program"
) 9>"$objects.lock" >"$TEST_TMP/log" 2>&1 || { cat "$TEST_TMP/log"; fail "$1 does not build"; }
unset LD_PRELOAD # AddressSanitizer's run-time library must be the first library
cases=${2:-$("$program")}
[ -n "$cases" ] || fail "$1 has no cases"
bad=0
for each in $cases; do
    ASAN_OPTIONS=detect_leaks=0 timeout -k 5 60 "$program" "$each" >"$TEST_TMP/log" 2>&1 </dev/null ||
        { tail -n 30 "$TEST_TMP/log"; note "$each: failed"; bad=1; }
done
exit $bad
