#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# make check-long: the whole fault matrix, a soak of SOAK_SECONDS (1800), the mutants, the rows taken, the throughput around
# a failover, all models, kernel rails. What is skipped has not passed (CI=true). Each part goes on although another failed.
# The models, which only compute, take what the first parts leave of the processors; the throughput and the virtual machines
# come when they have ended, and alone. The dated summary goes to check-long.md in the build directory; what is worth keeping
# of it is copied to tests/RESULTS.md. PARTS="faults soak" runs only those.
. "$BFO_SRCDIR/tests/lib.sh"
export CI=true
out=$BFO_BUILDDIR/tests/check-long.md
parts=${PARTS:-faults soak mutants recovery-mutants rows model model-full model-mutants stream vm vm-faults}
begin=$SECONDS
if [ -n "${SHORT:-}" ]; then
    export FAULTS='^FRAG.lost.first' SOAK_SECONDS=10 MUTANTS='^epochs-wrap' ROWS_SECONDS=5 MODEL_RUNS=smoke STREAM='-r 1' VM_TESTS=test_faults.sh VM_FAULT='no fault'
fi
rm -f "$BFO_BUILDDIR"/tests/check-long-*.md

# part NAME LINES MAKE-ARGUMENTS...: run it, keep its last lines.
part() {
    local name=$1 lines=$2 start=$SECONDS log=$BFO_BUILDDIR/tests/check-long-$1.log status=passed
    shift 2
    case " $parts " in
    *" $name "*) ;;
    *) return ;;
    esac
    make -s -C "$BFO_BUILDDIR" "$@" >"$log" 2>&1 </dev/null || status=FAILED
    {
        echo "### $name: $status, $((SECONDS - start)) s"
        echo
        grep -v '^make' "$log" | tail -n "$lines" | sed 's/^/    /'
        echo
    } >"${log%.log}.md"
    echo "$name: $status, $((SECONDS - start)) s"
}

models() {
    renice -n 19 $BASHPID >/dev/null
    part model 20 check-model
    part model-full 20 check-model-full
    part model-mutants 20 check-model-mutants
}
models &
part faults 60 check-faults
part soak 5 soak SECONDS="${SOAK_SECONDS:-1800}" SEED="${SEED:-1}"
part mutants 45 check-mutants
part recovery-mutants 12 check-recovery-mutants
part rows 4 check-rows
wait
part stream 16 -C tests/perf check-stream
part vm 20 check-vm
part vm-faults 30 check-vm-faults
{
    echo "## $(date -u +%Y-%m-%d), $(nproc) cores, $(uname -m), $((SECONDS - begin)) s"
    echo
    for name in $parts; do
        cat "$BFO_BUILDDIR/tests/check-long-$name.md" 2>/dev/null || echo "### $name: FAILED, it left no result"
    done
} >"$out"
cat "$out"
bad=$(grep -c '^### .*: FAILED' "$out")
[ "$bad" = 0 ] || fail "$bad parts failed"
