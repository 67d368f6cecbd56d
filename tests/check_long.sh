#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# make check-long: the whole fault matrix, a soak of SOAK_SECONDS (1800), the mutants, the rows taken, the throughput around
# a failover, all models, kernel rails. What is skipped has not passed (CI=true). Each part goes on although another failed.
# The dated summary goes to check-long.md in the build directory; what is worth keeping of it is copied to tests/RESULTS.md.
# PARTS="faults soak" runs only those.
. "$BFO_SRCDIR/tests/lib.sh"
export CI=true
out=$BFO_BUILDDIR/tests/check-long.md
bad=0
if [ -n "${SHORT:-}" ]; then
    export FAULTS='^FRAG.lost.first' SOAK_SECONDS=10 MUTANTS='^epochs-wrap' ROWS_SECONDS=5 MODEL_RUNS=smoke STREAM='-r 1' VM_TESTS=test_faults.sh VM_FAULT='no fault'
fi
{
    echo "## $(date -u +%Y-%m-%d), $(nproc) cores, $(uname -m)"
    echo
} >"$out"

# part NAME LINES MAKE-ARGUMENTS...: run it, keep its last lines.
part() {
    local name=$1 lines=$2 start=$SECONDS log=$BFO_BUILDDIR/tests/check-long-$1.log status=passed
    shift 2
    case " ${PARTS:-$name} " in
    *" $name "*) ;;
    *) return ;;
    esac
    make -s -C "$BFO_BUILDDIR" "$@" >"$log" 2>&1 </dev/null || { status=FAILED; bad=$((bad + 1)); }
    {
        echo "### $name: $status, $((SECONDS - start)) s"
        echo
        grep -v '^make' "$log" | tail -n "$lines" | sed 's/^/    /'
        echo
    } >>"$out"
    echo "$name: $status, $((SECONDS - start)) s"
}
part faults 60 check-faults
part soak 5 soak SECONDS="${SOAK_SECONDS:-1800}" SEED="${SEED:-1}"
part mutants 45 check-mutants
part recovery-mutants 12 check-recovery-mutants
part rows 4 check-rows
part stream 16 -C tests/perf check-stream
part model 20 check-model
part model-full 20 check-model-full
part model-mutants 20 check-model-mutants
part vm 20 check-vm
part vm-faults 30 check-vm-faults
cat "$out"
[ "$bad" = 0 ] || fail "$bad parts failed"
