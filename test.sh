#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# ./test.sh [STEP...]   installs missing packages, builds, and runs all tests; or only the steps named:
#   build        gcc, warnings are errors          unit   the machines and tables alone
#   sim          programs of others on software rails    mpi    MPI programs
#   faults       a fault at every kind of fragment    soak   random faults under random operations
#   fuzz         libFuzzer over everything that is read from other processes
#   world        simulated jobs from seeds
#   tools        the command bfo
#   perf         instructions compared with ob1    docs   documents, installation, tarball
#   contrib      the two scripts about ob1, on made-up trees and on Debian's 4.1.4 and 5.0.7
#   clang        builds with clang, warnings are errors
#   combinations builds without failover on either side, and the cost of failover    sanitizers  unit and softrail tests under ASan and UBSan
#   model        the protocol under Spin           vm     kernel rails in virtual machines
#   packages     the Debian packages, built from a clean copy
# These steps run only if they are named:
#   quick        after a change, in about a minute: the build, unit, the documents without installations, one job that loses a rail
#   bare         the packages on a Debian bookworm and a trixie that have nothing else, in trees next to this folder (2 GB; needs root)
#   ompi5        unit, mpi and the demo on Open MPI 5.0, in a tree of Debian trixie next to this folder (FOLDER-trees/trixie, 1 GB; needs root)
#   ompi6        the same on Open MPI 6.0, in a tree of Debian forky (FOLDER-trees/forky)
# With CI=true a skipped test is a failure. A test that is expected to fail (XFAIL_TESTS of its Makefile.am) and fails is counted
# separately; if it passes, that is a failure. A test that repeats a step writes "retried: N" into its log.
# A test that hangs is ended and named (tests/limit.sh).
# At its end the script prints the tests that took longest, and "N expected failures", "N retries" and "N passed, N failed, N skipped", each on a
# line of its own.
set -u
top=$(cd "$(dirname "$0")" && pwd)
cd "$top" || exit 1
all_steps="build unit fuzz world sim mpi faults soak tools perf docs contrib clang combinations sanitizers model packages vm"
named_steps="quick ompi5 ompi6 bare"
quick_docs="sources_keep_the_house_rules.sh layout_is_clang_formats.sh help_topics_exist.sh readmes_name_every_file.sh page_names_every_message.sh
    page_names_every_parameter.sh pages_show_results.sh man_pages_are_whole.sh words_and_paths.sh one_file_asks_for_the_release.sh tables_are_the_code.sh"
steps=${*:-$all_steps}
passed=0 failed=0 skipped=0 expected=0 retries=0 failures= complaints=

for step in $steps; do
    case " $all_steps $named_steps " in
    *" $step "*) ;;
    *) echo "test.sh: no step '$step'; steps: $all_steps $named_steps" >&2; exit 2 ;;
    esac
done
wanted() { [[ " $steps " == *" $1 "* ]]; }

# count NAME STATUS: counts a step that is no test of automake (such as a build).
count() {
    if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); failures="$failures $1"; fi
}

# complain LOG: keeps the lines in which a failed test gives the reason, for the end of the run, because the last lines of a log may not have them.
complain() { complaints="$complaints$(grep -E '^ *(FAIL|WRONG|ERROR|[A-Za-z0-9_./-]+: (line [0-9]+|error|failed))' "$1" | head -n 12 | cut -c1-400 | sed "s|^|  ${1##*/}: |")
"; }

# add_retries LOG...: adds up the retries that tests have reported.
add_retries() {
    local n
    n=$(cat "$@" 2>/dev/null | awk '/^ *retried: [0-9]+/ { n += $2 } END { print n + 0 }')
    retries=$((retries + n))
}

# add_times LOG...: keeps the times of the tests that took longest, for the end of the run.
slowest=
add_times() { slowest=$(printf '%s\n' "$slowest" "$(awk '/^took: [0-9]+ s$/ { print $2, FILENAME }' "$@" 2>/dev/null)" | sort -rn | head -n 12); }

summary() {
    [ -z "$slowest" ] || printf 'took longest (s):\n%s\n' "$slowest"
    echo "$expected expected failures"
    echo "$retries retries"
    echo "$passed passed, $failed failed, $skipped skipped"
}

inside=() # a command that runs others in another tree

# suite NAME BUILD FOLDER [TARGET [JOBS [VARIABLE=VALUE...]]]: runs the tests of a folder and counts their results.
suite() {
    local name=$1 dir=$2/$3 target=${4:-check} jobs=${5:-1} start=$SECONDS result trs
    local variables=("${@:6}")
    find "$dir" -name '*.trs' -delete 2>/dev/null
    "${inside[@]}" make -k -s -j"$jobs" -C "$dir" "$target" {,SH_}LOG_COMPILER="$top/tests/limit.sh" "${variables[@]}" >"$dir/$name.log" 2>&1 </dev/null
    local status=$? found=0
    while read -r trs; do
        found=$((found + 1))
        add_retries "${trs%.trs}.log"
        add_times "${trs%.trs}.log"
        result=$(sed -n 's/^:test-result: \([A-Z]*\).*/\1/p' "$trs" | head -n 1)
        case $result in
        PASS) passed=$((passed + 1)) ;;
        SKIP) skipped=$((skipped + 1)); echo "SKIP ${trs%.trs}"; tail -n 3 "${trs%.trs}.log" ;;
        XFAIL) expected=$((expected + 1)); echo "XFAIL ${trs%.trs}" ;;
        *) failed=$((failed + 1)); failures="$failures ${trs%.trs}"; complain "${trs%.trs}.log"; echo "${result:-FAIL} ${trs%.trs}"; tail -n 40 "${trs%.trs}.log" ;;
        esac
    done < <(find "$dir" -name '*.trs')
    if [ "$found" = 0 ] || { [ "$status" != 0 ] && [ "$failed" = 0 ]; }; then
        tail -n 30 "$dir/$name.log"
        count "$name" 1
    fi
    echo "== $name: $found tests, $((SECONDS - start)) s"
}

# target NAME BUILD FOLDER: runs a make target, which counts as one test.
target() {
    local name=$1 start=$SECONDS log=$2/$3/$1.log
    make -s -C "$2/$3" "$name" >"$log" 2>&1 </dev/null
    local status=$?
    [ $status = 0 ] || { tail -n 40 "$log"; complain "$log"; }
    add_retries "$log"
    count "$name" $status
    echo "== $name: $((SECONDS - start)) s"
}

# script NAME BUILD SCRIPT ARGUMENTS: runs a test script that needs more than one build, in the environment of the first.
script() {
    local name=$1 build=$2 start=$SECONDS
    shift 2
    (. "$build/tests/env.sh" && bash "$@") >"build/$name.log" 2>&1 </dev/null
    local status=$?
    [ $status = 0 ] || { tail -n 40 "build/$name.log"; complain "build/$name.log"; }
    add_retries "build/$name.log"
    count "$name" $status
    echo "== $name: $((SECONDS - start)) s"
}

build() {
    local name=$1 start=$SECONDS
    shift
    "${inside[@]}" bash contrib/build.sh "$@"
    local status=$?
    count "build:$name" $status
    echo "== build $name: $((SECONDS - start)) s"
    return $status
}

groups="build test"
if wanted model; then groups="$groups model"; fi
if wanted vm; then groups="$groups vm"; fi
if wanted packages || wanted bare; then groups="$groups packages"; fi
if wanted ompi5 || wanted ompi6 || wanted bare; then groups="$groups ompi"; fi
bash contrib/packages.sh $groups || exit $?

build gcc build --prefix="$top/build/install" --enable-werror || { summary; exit 1; }
if wanted quick; then
    suite unit build tests/unit check 2
    suite docs build tests/docs check 2 check_PROGRAMS= TESTS="$quick_docs"
    BFO_FLAPS=1 script lost-rail build tests/mpi/test_pml_rejoin.sh
elif wanted unit; then
    suite unit build tests/unit check 2
fi
if wanted fuzz; then suite fuzz build tests/fuzz check 2; fi
if wanted world; then suite world build tests/world; fi
if wanted sim; then suite sim build tests/sim check 2; fi
if wanted mpi; then suite mpi build tests/mpi check 2; fi
if wanted faults; then suite faults build tests/sim/matrix; suite rows build tests/sim/rows; suite coverage build tests/coverage; suite mutants build tests/mutants; fi
if wanted soak; then suite soak build tests/soak; fi
if wanted tools; then suite tools build tests/tools check 2; fi
# The build of a user, without assertions. Only this build is measured.
if wanted perf || wanted combinations; then build user build/user --disable-assertions --enable-werror; fi
if wanted perf; then suite perf build/user tests/perf; fi
if wanted docs; then suite docs build tests/docs check 2; fi
if wanted contrib; then suite contrib build tests/contrib check 2; fi
if wanted clang; then build clang build/clang CC=clang --enable-werror; fi
if wanted combinations; then
    build without-failover build/plain --disable-btl-openib-failover --disable-pml-failover --disable-assertions --enable-werror &&
        script combinations build tests/mpi/combinations.sh "$top/build/plain" &&
        BYTES=8 script failover-cost build/user tests/perf/failover_cost.sh "$top/build/plain"
fi
if wanted sanitizers && build sanitizers build/sanitizers --enable-sanitizers --enable-werror; then
    suite unit build/sanitizers tests/unit check 2
    suite sim build/sanitizers tests/sim check 2
fi
if wanted model; then
    suite model build tests/model check 1 TESTS=design_rows_match_tables.sh # the runs of check_model_smoke.sh are in check-model
    target check-model build tests/model
fi
if wanted packages || wanted bare; then script packages build tests/packages/build.sh "$top/build/packages"; fi
if wanted bare; then
    script bare build contrib/tree.sh --bare bookworm "$top-trees/bare" bash tests/packages/install.sh "$top/build/packages"
    inside=(bash contrib/tree.sh trixie "$top-trees/trixie")
    build ompi5 build/ompi5 --enable-werror &&
        script packages-trixie build/ompi5 contrib/tree.sh trixie "$top-trees/trixie" bash tests/packages/build.sh "$top/build/packages-trixie" &&
        script bare-trixie build/ompi5 contrib/tree.sh --bare trixie "$top-trees/bare-trixie" bash tests/packages/install.sh "$top/build/packages-trixie"
    inside=()
fi
if wanted vm; then suite vm build tests/vm check-vm-short; fi
# tree SUITE: makes the tree, or does nothing if it is there. A mirror that does not answer makes this one step fail, and no test.
tree() {
    local start=$SECONDS
    bash contrib/tree.sh "$1" "$top-trees/$1"
    local status=$?
    count "tree:$1" $status
    echo "== tree $1: $((SECONDS - start)) s"
    return $status
}

# in_suite STEP SUITE: tests in a tree of another Debian suite.
in_suite() {
    tree "$2" || return
    inside=(bash contrib/tree.sh "$2" "$top-trees/$2")
    if build "$1" "build/$1" --enable-werror; then
        suite "$1-unit" "build/$1" tests/unit check 2
        suite "$1-mpi" "build/$1" tests/mpi check-ompi 2
        script "$1-demo" "build/$1" contrib/tree.sh "$2" "$top-trees/$2" env BFO_DEMO_BUILD="build/$1" ./demo.sh
    fi
    inside=()
}
if wanted ompi5; then in_suite ompi5 trixie; fi
if wanted ompi6; then in_suite ompi6 forky; fi

[ "$failed" = 0 ] || printf 'failed:%s\n%s' "$failures" "$complaints"
summary
[ "$failed" = 0 ] && { [ "${CI:-}" != true ] || [ "$skipped" = 0 ]; }
