#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# many.sh [-f FROM] [-n SEEDS] [-p PART] [-j JOBS] [-s STATE] [NAME=VALUE...]: simulated jobs from SEEDS seeds (1000000), in parts of PART (1000)
# seeds. A run that was interrupted continues with the part that was interrupted, and each seed counts once. STATE (many.state in the build
# directory) has the next seed, what the seeds so far have counted, and the seeds that failed. STATE.reports has what the failed seeds said. A
# state is valid for one world, one plan and one FROM; a run of another one begins again. With a larger SEEDS a run that has ended goes on. The status is 1 if a
# seed failed. BFO_WORLD_RUNS: a script in the place of world.sh, for the test.
. "$BFO_SRCDIR/tests/lib.sh"
need flock util-linux
from=1 seeds=1000000 part=1000 jobs=$(nproc) state=$BFO_BUILDDIR/tests/world/many.state
while getopts f:n:p:j:s: letter; do
    case $letter in
    f) from=$OPTARG ;;
    n) seeds=$OPTARG ;;
    p) part=$OPTARG ;;
    j) jobs=$OPTARG ;;
    s) state=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
runs=${BFO_WORLD_RUNS:-$BFO_SRCDIR/tests/world/world.sh}
into=${BFO_WORLD_INTO:-$BFO_BUILDDIR/tests/world/made}
exec 9>"$state.lock"
flock -n 9 || fail "another run has the state $state"
bash "$BFO_SRCDIR/tests/world/world.sh" --help >"$TEST_TMP/help" || { cat "$TEST_TMP/help"; exit 1; }
of="$(cat "$into/world" "$into/image.so" | sha256sum | cut -c1-16) from $from $*"

# The state: a line with what it is of, a line with numbers, a line for each seed that failed.
next=$from steps=0 seconds=0 failed=()
write_state() {
    { echo "of $of"; echo "$next $steps $seconds"; printf 'failed %s\n' "${failed[@]}"; } | grep -v '^failed $' >"$state.new" && mv "$state.new" "$state"
}
if [ -f "$state" ] && [ "$(head -n 1 "$state")" = "of $of" ]; then
    read -r next steps seconds < <(sed -n 2p "$state")
    mapfile -t failed < <(sed -n 's/^failed //p' "$state")
    note "continues with seed $next"
else
    rm -rf "$state.reports"
    write_state
fi

# run_part FIRST COUNT: these seeds, which then count. Nothing counts before all of them have ended.
run_part() {
    local log=$TEST_TMP/part numbers
    bash "$runs" --from "$1" --seeds "$2" --jobs "$jobs" --shrink "${plan[@]}" >"$log" 2>&1
    numbers=$(sed -nE "s/^$2 seeds from $1: ([0-9]+) failed; ([0-9.]+) million steps, ([0-9]+) s of their time\$/\1 \2 \3/p" "$log")
    [ -n "$numbers" ] || { tail -n 20 "$log"; fail "the seeds from $1 did not end; a second start runs them again"; }
    read -r bad more_steps more_seconds <<<"$numbers"
    mapfile -t now < <(sed -nE 's/^seed ([0-9]+)( failed$|: .*)/\1/p' "$log")
    [ "$bad" = ${#now[@]} ] || fail "$bad seeds from $1 failed, but ${#now[@]} say so"
    if [ "$bad" != 0 ]; then
        mkdir -p "$state.reports"
        cp "$log" "$state.reports/$1"
        cat "$log"
    fi
    failed+=("${now[@]}") next=$(($1 + $2)) seconds=$((seconds + more_seconds))
    steps=$(awk "BEGIN { printf \"%.1f\", $steps + $more_steps }")
    write_state
}

plan=("$@")
while [ "$next" -lt $((from + seeds)) ]; do
    left=$((from + seeds - next))
    run_part "$next" $((left < part ? left : part))
done
echo "$((next - from)) seeds from $from: ${#failed[@]} failed; $steps million steps, $seconds s of their time"
[ ${#failed[@]} = 0 ] || fail "these seeds failed: ${failed[*]}"
exit 0
