#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# coverage.sh [-l] [-f | -u | -a] LEVEL...: which branches of the recovery files (files.txt) do tests take? Builds the sources with gcc's counters of
# branches in $BFO_BUILDDIR/coverage, runs the levels, and prints the share of each file. README.md says what is not counted.
#   unit   the unit programs             fuzz   the PML in one process, step by step, and the kept inputs of the fuzzers        rows   the simulations of tests/sim/rows
#   world  simulated jobs: COVERAGE_SEEDS seeds (default 1500), the sweep, jobs whose paths fall silent
#   cheap  these four                    mpi    MPI jobs on software rails: COVERAGE_TESTS, scripts of tests/ (default: see below)
#   -l     prints each branch that no level took
#   -f     fails if a file is under its floor in files.txt; -u raises the floors to what was reached, and lowers none
#   -a     fails unless unreached.txt gives a reason for each branch that no level took, and for no other branch
# A level that was measured before counts again with its old result if it is named with a plus: coverage.sh -a cheap +mpi
. "$BFO_SRCDIR/tests/lib.sh"
need gcovr gcovr
here=$BFO_SRCDIR/tests/coverage dir=$BFO_BUILDDIR/coverage
options=() levels=()
for word in "$@"; do
    case $word in
    -[lfua]) options+=("$word") ;;
    cheap) levels+=(unit fuzz rows world) ;;
    +cheap) levels+=(+unit +fuzz +rows +world) ;;
    unit | fuzz | rows | world | mpi | +unit | +fuzz | +rows | +world | +mpi) levels+=("$word") ;;
    *) sed -n 's/^# \?//; 5,14p' "$0"; exit 2 ;;
    esac
done
[ ${#levels[@]} -gt 0 ] || fail "name a level: unit fuzz rows world cheap mpi"
# Branches in these statements are not counted.
apart='^\s*(BFO_ASSERT|BFO_(UN)?LOCK|OBJ_[A-Z]+|OPAL_THREAD_(UN)?LOCK|OPAL_MODEX_RECV[A-Z_]*)\(.*'
files=$(sed -n '/^#/!s/ .*//p' "$here/files.txt")

# The branches of -O0 are those of the source. Threads count together.
flags="-O0 --coverage -fprofile-update=atomic"
mkdir -p "$dir" && cd "$dir" || fail "cannot write to $dir"
{ [ -f Makefile ] || "$BFO_SRCDIR/configure" -q --enable-assertions CFLAGS="-g $flags"; } >configure.log 2>&1 || { tail configure.log; fail "configure fails"; }
make -s -C include || fail "no bfo_config.h"
. "$dir/tests/env.sh"
unset MAKEFLAGS

programs() { (cd "$BFO_SRCDIR/tests/unit" && for f in test_{bfo,ofo,fsm}_*.c; do echo "${f%.c}"; done) | xargs; }
unit() {
    make -s -j2 -C btl_openib_failover libofo_pure.la && make -s -j2 -C tests/unit check check_PROGRAMS="$(programs)" TESTS="$(programs)"
}
fuzz() {
    local name bad=0
    for name in control declared drain edges figures reads rejoin restart wait; do
        BFO_WORLD_CFLAGS=$flags bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_$name || bad=1
    done
    for name in dispatch btl; do
        BFO_WORLD_CFLAGS=$flags bash "$BFO_SRCDIR/tests/fuzz/fuzz.sh" $name once || bad=1
    done
    return $bad
}
rows() { BFO_WORLD_CFLAGS="$flags -UBFO_COUNT_ROWS" bash "$BFO_SRCDIR/tests/sim/rows/simulate.sh" "$dir/tests/sim/rows/simulated"; }
world() {
    local from=$BFO_SRCDIR/tests/world
    export BFO_WORLD_CFLAGS=-O0 BFO_WORLD_COVERS=$files
    BFO_WORLD_SEEDS=${COVERAGE_SEEDS:-1500} bash "$from/test_world.sh" && bash "$from/test_world_sweep.sh" && bash "$from/test_world_paths.sh"
}
mpi() {
    local script bad=0
    local scripts=(mpi/test_pml_{lost,rails,rejoin,flap,silence,slow,wait,alive,poison,late,late_port,look,ports,faults,configurations,memlock}.sh
        mpi/test_pml_{messages,parameters,refusals,changed,cvars,pmix,stock_openib,tcp}.sh
        mpi/btl_{fence,flaps,events,idle,crossed,adapters,contact,parameters,fragments,rdmacm}.sh tools/test_bfo_{drain,force,set,status}.sh)
    make -s -j2 && make -s -j2 -C tests/mpi check TESTS= && make -s -j2 -C tests/tools check TESTS= || return 1
    for script in ${COVERAGE_TESTS:-"${scripts[@]}"}; do
        bash "$BFO_SRCDIR/tests/limit.sh" bash "$BFO_SRCDIR/tests/$script" || { echo "FAIL $script"; bad=1; }
    done
    return $bad
}

# measure LEVEL: runs the level and writes LEVEL.json. The counters of each level have a folder of their own, into which the notes of the compiler come.
measure() {
    local level=$1 data=$dir/data/$1 start=$SECONDS status=0 pattern counters notes
    rm -rf "$data" "$level.json"
    mkdir -p "$data"
    (export GCOV_PREFIX=$data; $level) >"$level.log" 2>&1 </dev/null || status=1
    pattern=$(for f in $files; do basename "${f%.*}"; done | paste -sd'|')
    while read -r counters; do
        notes=${counters%.gcda}.gcno
        if [[ $counters =~ ($pattern).gcda$ ]]; then cp "${notes#"$data"}" "$notes"; else rm "$counters"; fi
    done < <(find "$data" -name '*.gcda')
    (cd "$BFO_SRCDIR" && gcovr -r . -j 2 --json "$dir/$level.json" --exclude-branches-by-pattern "$apart" \
        $(printf -- '-f %s$ ' $files) "$data") >>"$level.log" 2>&1 || status=1
    [ $status = 0 ] || { tail -n 30 "$level.log"; rm -f "$level.json"; }
    echo "$level: $((SECONDS - start)) s"
}
bad=0 tracefiles=()
for level in "${levels[@]}"; do # two at a time, but jobs alone
    tracefiles+=(-a "$dir/${level#+}.json")
    [[ $level != +* ]] || continue
    [ $level != mpi ] || wait
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
    measure "$level" &
done
wait
for level in "${levels[@]}"; do
    [ -f "$dir/${level#+}.json" ] || fail "level $level failed, see $dir/${level#+}.log"
done
cd "$BFO_SRCDIR" && gcovr -r . "${tracefiles[@]}" --json "$dir/all.json" || fail "no result"
perl "$here/coverage.pl" "${options[@]}" "$here" "$dir/all.json" || bad=1
[ $bad = 0 ] || fail "see above"
