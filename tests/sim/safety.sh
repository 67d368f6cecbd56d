#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Safety: processes that are killed, a softrail run that is killed, SIGTERM, a directory of another user, a full
# /dev/shm, kernels that refuse process_vm_*.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/sim/sim.sh"
need ibv_rc_pingpong ibverbs-utils

export SOFTRAIL
base=/dev/shm/softrail-$(id -u)

# Processes die that hold locks or send messages: the other processes work on.
rails -n 1 -- ./sr_deadlock > "$TEST_TMP/out" 2>&1 || fail "sr_deadlock: $(cat "$TEST_TMP/out")"
rails -n 1 -- ./sr_crash > "$TEST_TMP/out" 2>&1 || fail "sr_crash: $(cat "$TEST_TMP/out")"
note "$(grep messages "$TEST_TMP/out"), $(grep SEED "$TEST_TMP/out")"

# Waits until a file has a line, at most ten seconds.
wait_for() {
    for _ in $(seq 100); do grep -q "$2" "$1" 2>/dev/null && return; sleep 0.1; done
    fail "no '$2' in $1: $(cat "$1")"
}

# softrail run and all its programs are killed: the next softrail run removes the fabric.
setsid "$SOFTRAIL" run --name "killed-$$" -n 1 -- sh -c "ibv_asyncwatch -d sr0 & echo started; wait" > "$TEST_TMP/log" 2>&1 &
run=$!
wait_for "$TEST_TMP/log" started
kill -9 -- -$run
wait $run 2>/dev/null
[ -e "$base/killed-$$" ] || fail "the killed run left no fabric to remove"
rails -n 1 -- true || fail "the next run failed"
[ ! -e "$base/killed-$$" ] || fail "the killed run's fabric is still there"

# SIGTERM ends the program, then the fabric.
"$SOFTRAIL" run --name "term-$$" -n 1 -- sh -c 'echo started; exec sleep 60' > "$TEST_TMP/log" 2>&1 &
run=$!
wait_for "$TEST_TMP/log" started
kill -TERM $run
wait $run
[ $? = 143 ] || fail "SIGTERM did not end as the program ended"
[ ! -e "$base/term-$$" ] || fail "SIGTERM left the fabric behind"

# softrail run ends with the program's exit status.
rails -n 1 -- sh -c 'exit 42'
[ $? = 42 ] || fail "the exit status was lost"

# softrail uses no directory of another user, and no directory that others may enter.
mkdir -p "$TEST_TMP/dir/softrail-$(id -u)"
chmod 755 "$TEST_TMP/dir/softrail-$(id -u)"
SOFTRAIL_DIR=$TEST_TMP/dir "$SOFTRAIL" run -- true 2> "$TEST_TMP/err" && fail "used a directory that is not private"
grep -q 'not a private directory' "$TEST_TMP/err" || fail "no error text about the directory: $(cat "$TEST_TMP/err")"

# A small /dev/shm leads to a clear error, not to SIGBUS.
small='mkdir -p "$0" && mount -t tmpfs -o size=$1 tmpfs "$0" && shift && exec "$@"'
own_mounts="unshare -m"
[ "$(id -u)" = 0 ] || own_mounts="unshare -Urm"
$own_mounts true || skip_missing "permission for private mounts" util-linux
SOFTRAIL_DIR=$TEST_TMP/tiny $own_mounts sh -c "$small" "$TEST_TMP/tiny" 512k "$SOFTRAIL" run -- true 2> "$TEST_TMP/err" &&
    fail "softrail made a fabric in 512 KiB"
grep -q 'Enlarge /dev/shm' "$TEST_TMP/err" || fail "tiny: $(cat "$TEST_TMP/err")"
SOFTRAIL_DIR=$TEST_TMP/small $own_mounts sh -c "$small" "$TEST_TMP/small" 2m timeout 20 "$SOFTRAIL" run -n 1 -- \
    ibv_rc_pingpong -r 16000 > "$TEST_TMP/err" 2>&1
status=$?
[ $status != 0 ] && [ $status -lt 128 ] || fail "a full /dev/shm ended in status $status: $(cat "$TEST_TMP/err")"
grep -q 'is full' "$TEST_TMP/err" || fail "small: $(cat "$TEST_TMP/err")"

# With --memlock the limit for locked memory applies.
(ulimit -l 64 && rails -n 1 --memlock -- ibv_rc_pingpong -s 1000000 > "$TEST_TMP/err" 2>&1) && fail "--memlock lets everything pass"
grep -q "register MR" "$TEST_TMP/err" || fail "--memlock: $(cat "$TEST_TMP/err")"

# Without process_vm_* everything works, and softrail writes one line about it.
export SOFTRAIL_TEST_NO_CMA=1
rails -n 2 --retry-time 60ms -- ./sr_check > "$TEST_TMP/out" 2>&1 || fail "sr_check without CMA: $(cat "$TEST_TMP/out")"
[ "$(grep -c 'are refused here' "$TEST_TMP/out")" = 1 ] || fail "not one line about process_vm_*: $(grep refused "$TEST_TMP/out")"
for program in sr_faults sr_breaks; do
    rails -n 2 --retry-time 60ms -- ./$program > "$TEST_TMP/out" 2>&1 || fail "$program without CMA: $(cat "$TEST_TMP/out")"
done
pair 0 ibv_rc_pingpong -n 100 -s 300000 -e
