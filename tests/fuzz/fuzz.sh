#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# fuzz.sh TARGET once: builds the target with the compiler CC and the flags BFO_WORLD_CFLAGS, and runs all inputs of corpus/TARGET.
# fuzz.sh TARGET SECONDS [keep]: builds the libFuzzer target fuzz_TARGET.c with clang, AddressSanitizer and
# UndefinedBehaviorSanitizer, runs all inputs of corpus/TARGET, then fuzzes from these inputs for SECONDS. `keep`
# adds inputs that reached new code to the corpus. BFO_FUZZ_SEED: another seed than 1.
# An input that fails stays in the build directory; to run it again, give its name to the program as the only argument.
. "$BFO_SRCDIR/tests/lib.sh"
target=$1 seconds=$2 keep=${3:-}
from=$BFO_SRCDIR/tests/fuzz program=$BFO_BUILDDIR/tests/fuzz/fuzz_$target
kept=$from/corpus/$target
[ "$(find "$kept" -type f | wc -l)" -ge 30 ] || fail "the corpus $kept is not there"

# The sources of each target; of the BTL only files that read messages.
btl=$BFO_SRCDIR/btl_openib_failover
pml=$BFO_SRCDIR/pml_bfo
case $target in
dispatch)
    sources=("$from"/fuzz_dispatch.c "$from"/fuzz_world.c "$from"/fuzz_world_mpi.c "$from"/fuzz_races.c
        "$from"/fuzz_threads.c "$from"/fuzz_early.c "$from"/fuzz_params.c "$pml"/*/*.c)
    flags=(-I"$pml" -DPML_BFO=1 -DBFO_FLUSH_SECONDS=1 -DBFO_DRAIN_LOOK_MS=0 -DBFO_TURN_LEAST=BFO_TURN_BYTES -Dpthread_mutex_lock=fuzz_mutex_lock -Dnanosleep=fuzz_nanosleep -Dopal_output=fuzz_output -Dompi_errhandler_invoke=fuzz_errhandler -Dopal_progress=fuzz_progress
        -Dopal_progress_register=fuzz_progress_register -Dopal_progress_register_lp=fuzz_progress_register_lp -Dopal_progress_unregister=fuzz_progress_unregister)
    libraries=() floor=2500
    ;;
btl)
    sources=("$from"/fuzz_btl.c "$btl"/*/btl_openib_{recv,buffers,heard,coalesce,ring,ring_in,wire,record,rails,queues,qpmap,rail_fsm,counts}.c)
    flags=(-I"$btl" -fno-pie -no-pie)
    libraries=(-libverbs -Wl,--unresolved-symbols=ignore-in-object-files) floor=400
    ;;
*) fail "no target $target" ;;
esac
includes=(-I"$from"/shadow -I"$BFO_SRCDIR"/include -I"$BFO_BUILDDIR"/include -I"$BFO_SRCDIR"/include/compat)
if [ "$seconds" = once ]; then
    # shellcheck disable=SC2086
    ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -g -fno-strict-aliasing -DBFO_ASSERTIONS=1 ${BFO_WORLD_CFLAGS:-} "${includes[@]}" "${flags[@]}" $OMPI_CPPFLAGS $OMPI_CFLAGS \
        "$from"/once.c "${sources[@]}" -o "$program-once" $OMPI_LDFLAGS $OMPI_LIBS "${libraries[@]}" || fail "fuzz_$target does not build"
    unset LD_PRELOAD
    timeout -k 5 120 "$program-once" "$kept"/* || fail "a kept input of $target fails"
    exit 0
fi

need clang clang
echo 'int main(void) { return 0; }' >"$TEST_TMP/empty.c"
clang -fsanitize=address "$TEST_TMP/empty.c" -o "$TEST_TMP/empty" 2>/dev/null ||
    skip_missing "clang's run-time library of sanitizers and libFuzzer" "libclang-rt-14-dev"

if [ ! -x "$program" ] || [ -n "$(find "$from" "$pml" "$btl" "$BFO_SRCDIR"/include \
    -name '*.[chd]*' -newer "$program" -print -quit)" ]; then
    # shellcheck disable=SC2086
    clang -std=gnu11 -D_GNU_SOURCE -g -O1 -fno-strict-aliasing -fsanitize=fuzzer,address,undefined -fno-sanitize=alignment \
        -fno-sanitize-recover=undefined -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Werror -DBFO_ASSERTIONS=1 \
        "${includes[@]}" "${flags[@]}" $OMPI_CPPFLAGS $OMPI_CFLAGS "${sources[@]}" -o "$program.new" $OMPI_LDFLAGS $OMPI_LIBS \
        "${libraries[@]}" || fail "fuzz_$target does not build"
    mv "$program.new" "$program"
fi

export ASAN_OPTIONS=detect_leaks=1:${ASAN_OPTIONS:-} UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=suppressions=$from/leaks.txt:print_suppressions=0
mkdir "$TEST_TMP/new"
run() { # arguments of libFuzzer
    timeout -k 5 $((seconds + 120)) "$program" -artifact_prefix="$program-" -rss_limit_mb=2500 -timeout=20 "$@" \
        >"$TEST_TMP/log" 2>&1 </dev/null ||
        { grep -vE '^#[0-9]+' "$TEST_TMP/log" | tail -n 60; fail "fuzz_$target failed; its input is named above"; }
}
run -runs=0 "$kept"
# Inputs that no longer fit a changed format reach less code: random bytes reach 2330 (dispatch) and 70 edges (btl). README.md says what to do.
cov=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$TEST_TMP/log" | tail -n 1)
[ "${cov:-0}" -ge "$floor" ] || fail "the kept inputs of $target reach ${cov:-no} edges, fewer than $floor: their format has changed"
note "$target: $(find "$kept" -type f | wc -l) kept inputs pass, $cov edges"
run -seed="${BFO_FUZZ_SEED:-1}" -max_total_time="$seconds" -max_len=1500 "$TEST_TMP/new" "$kept"
note "$target: seed ${BFO_FUZZ_SEED:-1}, $(grep '^Done' "$TEST_TMP/log"), $(grep -oE 'cov: [0-9]+' "$TEST_TMP/log" | tail -n 1)"
if [ "$keep" = keep ]; then
    mkdir "$TEST_TMP/merged"
    run -merge=1 -max_len=1500 "$TEST_TMP/merged" "$kept" "$TEST_TMP/new"
    for input in "$TEST_TMP"/merged/*; do
        [ -f "$kept/$(basename "$input")" ] || cp "$input" "$kept"
    done
    note "$target: the corpus has $(find "$kept" -type f | wc -l) inputs now"
fi
exit 0
