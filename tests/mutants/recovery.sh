#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# recovery.sh [NAME...]: proves that the tests of the recovery can fail. Each patch of recovery/ breaks one thing in a copy of the
# sources and names, in its line "Must fail:", the test that must notice. Before its first patch each test must pass without a mutant.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/lib.sh"
need patch patch
src=$TEST_TMP/src build=$TEST_TMP/build bad=0
mkdir "$src" "$build"
(cd "$BFO_SRCDIR" && tar cf - --exclude=./.git --exclude=./build --exclude=autom4te.cache .) | tar xf - -C "$src"
arguments=$("$BFO_BUILDDIR/config.status" --config)
make_all() { make -s -C "$build" && make -s -C "$build/tests/unit" check TESTS= && make -s -C "$build/tests/mpi" check TESTS=; }
(cd "$build" && eval "'$src/configure' $arguments") >"$TEST_TMP/log" 2>&1 && make_all >>"$TEST_TMP/log" 2>&1 ||
    { tail -n 20 "$TEST_TMP/log"; fail "the copy does not build"; }
# try TEST: runs the test in the copy and returns its status. The test has a session of its own, and all its processes are ended with it:
# a mutant that hangs leaves no job.
try() {
    local status leader
    setsid bash -c '
        . "$1/tests/env.sh"
        case $3 in
        *.sh) timeout -k 5 200 bash "$2/$3" ;;
        *) timeout -k 5 60 "$1/$3" ;;
        esac' try "$build" "$src" "$1" >"$TEST_TMP/test.log" 2>&1 </dev/null &
    leader=$!
    wait $leader
    status=$?
    pkill -KILL -s $leader
    return $status
}
sound=
for patch in "$BFO_SRCDIR"/tests/mutants/recovery/*.patch; do
    name=$(basename "$patch" .patch)
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    test=$(sed -n 's/^Must fail: //p' "$patch")
    if [[ " $sound " != *" $test "* ]]; then
        make_all >"$TEST_TMP/log" 2>&1 || fail "the copy does not build without the last mutant" # the copy still has the last mutant built in
        try "$test" || { tail -n 20 "$TEST_TMP/test.log"; fail "$test fails without any mutant"; }
        sound="$sound $test"
    fi
    patch -s -p1 -d "$src" <"$patch" || fail "$name does not apply"
    make_all >"$TEST_TMP/log" 2>&1 || { tail -n 20 "$TEST_TMP/log"; fail "$name does not build"; }
    if try "$test"; then
        echo "SURVIVED $name: $test passes"
        bad=$((bad + 1))
    elif try "$test"; then # a mutant is caught if its test fails every time, not if it fails once
        echo "SURVIVED $name: $test failed, then passed"
        bad=$((bad + 1))
    else
        note "$name: caught by $test"
    fi
    patch -s -R -p1 -d "$src" <"$patch"
done
[ $bad = 0 ] || fail "$bad mutants survived"
exit 0
