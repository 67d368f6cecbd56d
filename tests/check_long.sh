#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# check_long.sh [PART...]: simulated jobs from 100,000 seeds, days of simulated jobs, large simulated jobs, the whole fault matrix, first contacts of 64 ranks, a soak of SOAK_SECONDS (1800), the mutants, the
# rows taken, the branches of the recovery that tests take, rails that flap a thousand times, whole jobs under sanitizers, the matrix, a soak, the packages, dying processes under rails that are cut and the fuzz program of the BTL on Open MPI 5.0 and 6.0 (in_tree.sh), the throughput around a failover, all models, kernel rails; or only the parts named, here or in PARTS, because all parts
# take some three hours. A skipped test counts as failed (CI=true). A part runs even if another part has failed. The models, which only compute,
# run beside the first parts at low priority. The throughput (in a build of its own without assertions) and the virtual machines run alone, after
# the models have ended. When a part has ended, its row replaces its last row in tests/RESULTS.md and in docs/verification.md, unless the sources
# differ from the commit that the row names. The rows of this run are in check-long.md in the build directory, with the logs.
. "$BFO_SRCDIR/tests/lib.sh"
need flock util-linux
export CI=true
out=$BFO_BUILDDIR/tests/check-long.md results=$BFO_SRCDIR/tests/RESULTS.md page=$BFO_SRCDIR/docs/verification.md
all_parts="world day scale faults contact soak mutants rows coverage flaps soak-flaps sanitized ompi5-faults ompi5-soak ompi5-packages ompi5-ulfm ompi5-fuzz ompi6-faults ompi6-soak ompi6-packages ompi6-ulfm ompi6-fuzz model model-full model-mutants stream vm vm-faults"
parts=${*:-${PARTS:-$all_parts}}
for name in $parts; do
    [[ " $all_parts " == *" $name "* ]] || fail "there is no part '$name'; the parts are: $all_parts"
done
if [ -n "${SHORT:-}" ]; then
    export WORLD_SEEDS=100 DAY="-m 90" SCALE="8:2 16:2 1+100:2" FAULTS='^FRAG.lost.first' CONTACT_FULL=1 SOAK_SECONDS=10 TREE_SOAK_SECONDS=10 MUTANTS='^epochs-wrap' ROWS_SECONDS=5 MODEL_RUNS=smoke STREAM='-r 1' VM_TESTS=test_faults.sh VM_FAULT='no fault' FLAP_RUNS=1 ULFM_RUNS=1 FLAPS=4 DAMPED_FLAPS=2
fi
rm -f "$BFO_BUILDDIR"/tests/check-long-*.md

# version: the commit of the sources, and whether they differ from it. Changes of the tables of results do not count.
version() {
    local commit
    commit=$(git -C "$BFO_SRCDIR" log -1 --format=%h 2>/dev/null) || commit="unknown, changed"
    [ -z "$(git -C "$BFO_SRCDIR" status --porcelain -- . ':(exclude)tests/RESULTS.md' ':(exclude)docs/verification.md' 2>/dev/null)" ] || commit="$commit, changed"
    echo "$commit"
}
built=$(version)
make -s -C "$BFO_BUILDDIR" >"$TEST_TMP/build" 2>&1 || { tail -n 20 "$TEST_TMP/build"; fail "the build fails"; }

heading() {
    echo "# The last run of each part of \`make check-long\`"
    echo "Written by tests/check_long.sh. A part that counts nothing counts as one."
    echo
    echo "| part | verdict | seconds | passed | failed | retried | commit, date |"
    echo "|---|---|---|---|---|---|---|"
}

# add_row NAME TEXT: writes the row of a part of this run. Parts may end at the same time.
add_row() {
    local name now=$built
    [ "$(version)" = "$built" ] || now="${built%, changed}, changed" # the sources changed while the part ran
    echo "| $1 | $2 | $now, $(date -u +%Y-%m-%d) |" >"$BFO_BUILDDIR/tests/check-long-$1.md"
    [ -z "${SHORT:-}" ] && [[ $now != *changed ]] || return
    (
        flock 9
        { heading
          for name in $all_parts; do
              if [ "$name" = "$1" ]; then
                  cat "$BFO_BUILDDIR/tests/check-long-$name.md"
              else
                  grep "^| $name |" "$results"
              fi
          done
          awk '/^## / && !on { on = 1; print "" } on' "$results"; } >"$TEST_TMP/results" # other sections stay
        cp "$TEST_TMP/results" "$results"
        [ ! -e "$page" ] || perl "$BFO_SRCDIR/contrib/results-page.pl" --update "$page"
    ) 9>"$BFO_BUILDDIR/tests/check-long.lock"
}

# numbers LOG STATUS: prints "passed | failed | retried" of a part, as the matrix, the soak, the models, the mutants or automake counted; otherwise the part
# counts as one.
numbers() {
    awk -v status="$2" '
        /^[0-9]+ cells, .* passed, / { split($0, word, " passed, "); n = split(word[1], left, " "); good += left[n]; bad += word[2] + 0; counted = 1 }
        /^[0-9]+ jobs \(seeds .* jobs failed$/ { bad += $(NF - 2); good += $1 - $(NF - 2); counted = 1 }
        /^runs: [0-9]+, not as expected: / { bad += $NF; good += $2 - $NF; counted = 1 }
        /^[0-9]+ (seeds|runs) from .* failed; / { bad += $5; good += $1 - $5; counted = 1 }
        /^[0-9]+ mutants: [0-9]+ caught, / { good += $3; bad += $1 - $3; counted = 1 }
        /^# (PASS|XFAIL): / { good += $3; counted = 1 }
        /^# (FAIL|XPASS|ERROR): / { bad += $3; counted = 1 }
        /^ *retried: [0-9]+/ { retried += $2 }
        END { if (!counted) { good = status == "passed"; bad = !good } printf "%d | %d | %d\n", good, bad, retried }' "$1"
}

# retries_of FOLDER STAMP: prints the lines about retries that tests of automake have written into their own logs since STAMP.
retries_of() { find "$BFO_BUILDDIR/tests/$1" -maxdepth 1 -name '*.log' ! -name test-suite.log -newer "$2" -exec grep -h '^ *retried: ' {} +; }

# part NAME LINES MAKE-ARGUMENTS...: runs the part, writes its row of the table, and prints its last LINES lines.
part() {
    local name=$1 lines=$2 start=$SECONDS log=$BFO_BUILDDIR/tests/check-long-$1.log status=passed stamp=$TEST_TMP/stamp-$1
    shift 2
    case " $parts " in
    *" $name "*) ;;
    *) return ;;
    esac
    touch "$stamp"
    make -s -C "$BFO_BUILDDIR" "$@" >"$log" 2>&1 </dev/null || status=FAILED
    case $name in
    contact | flaps) retries_of mpi "$stamp" >>"$log" ;;
    vm) retries_of vm "$stamp" >>"$log" ;;
    esac
    add_row "$name" "$status | $((SECONDS - start)) | $(numbers "$log" $status)"
    grep -v '^make' "$log" | tail -n "$lines"
    echo "$name: $status, $((SECONDS - start)) s"
}

models() {
    renice -n 19 $BASHPID >/dev/null
    part model 20 check-model
    part model-full 20 check-model-full
    part model-mutants 20 check-model-mutants
}
models &
part world 4 -C tests/world world SEEDS="${WORLD_SEEDS:-100000}"
part day 90 -C tests/world day
part scale 120 -C tests/world scale ${SCALE:+SCALE="$SCALE"}
part faults 60 check-faults
part contact 20 check-contact
part soak 5 soak SECONDS="${SOAK_SECONDS:-1800}" SEED="${SEED:-1}"
part mutants 45 check-mutants
part rows 4 check-rows
part coverage 60 -C tests/coverage coverage ${SHORT:+LEVELS=cheap CHECK=-f}
BFO_FLAP_RUNS=${FLAP_RUNS:-10} BFO_FLAPS=${FLAPS:-1000} part flaps 130 -C tests/mpi check TESTS="btl_flaps.sh test_pml_rejoin.sh" VERBOSE=1
BFO_FLAPS=${FLAPS:-1000} BFO_DAMPED_FLAPS=${DAMPED_FLAPS:-100} part soak-flaps 20 -C tests/soak check TESTS=test_flaps.sh VERBOSE=1
part sanitized 24 -C tests/mpi check-sanitized
for release in ompi5 ompi6; do
    part $release-faults 60 -C tests check-tree RELEASE=$release PART=faults
    part $release-soak 5 -C tests check-tree RELEASE=$release PART=soak
    part $release-packages 5 -C tests check-tree RELEASE=$release PART=packages
    BFO_ULFM_RUNS=${ULFM_RUNS:-10} part $release-ulfm 40 -C tests check-tree RELEASE=$release PART=ulfm
    part $release-fuzz 20 -C tests check-tree RELEASE=$release PART=fuzz
done
wait
case " $parts " in
*" stream "*) bash "$BFO_SRCDIR/contrib/build.sh" "$BFO_BUILDDIR/user" --disable-assertions --enable-werror >"$TEST_TMP/user" 2>&1 || tail -n 20 "$TEST_TMP/user" ;;
esac
part stream 16 -C user/tests/perf check-stream
part vm 20 check-vm
part vm-faults 30 check-vm-faults
for name in $parts; do
    [ -f "$BFO_BUILDDIR/tests/check-long-$name.md" ] || add_row "$name" "FAILED: no result | | | |"
done
{ heading
  for name in $parts; do
      cat "$BFO_BUILDDIR/tests/check-long-$name.md"
  done; } >"$out"
cat "$out"
bad=$(grep -c '^| [^|]* | FAILED' "$out")
[ "$bad" = 0 ] || fail "$bad parts failed"
