#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# run.sh itself: it always ends, returns the command's status, boots again if a boot fails, leaves no files or processes, and
# prints in one line what is missing.
. "${BFO_SRCDIR:?source tests/env.sh of the build directory first}/tests/vm/lib.sh" || exit 1
export TMPDIR=$TEST_TMP/tmp
mkdir "$TMPDIR" "$TEST_TMP/few" "$TEST_TMP/fake"

# run WANTED-STATUS ARGUMENTS...: output in $TEST_TMP/{out,err}; no file and no process may be left afterwards.
run() {
    local want=$1 status begin=$SECONDS
    shift
    ${as[@]+"${as[@]}"} "$RUN" "$@" >"$TEST_TMP/out" 2>"$TEST_TMP/err" </dev/null
    status=$?
    [ $status = "$want" ] || fail "run.sh $*: status $status, not $want: $(cat "$TEST_TMP/out" "$TEST_TMP/err")"
    nothing_left "run.sh $*"
    note "run.sh $* -> $status after $((SECONDS - begin)) s"
}

nothing_left() {
    ! pgrep -f "$TMPDIR/bfo-vm" >/dev/null || fail "$1 leaves processes: $(pgrep -af "$TMPDIR/bfo-vm" | cut -c1-100)"
    [ -z "$(ls -A "$TMPDIR")" ] || fail "$1 leaves files: $(ls -A "$TMPDIR")"
}

said() { grep -q "$2" "$TEST_TMP/$1" || fail "no '$2' in $1: $(cat "$TEST_TMP/$1")"; }

bad_usage() {
    run 2 --nodes 4 -- true
    run 2 --rails 0 -- true
    run 2 --frob -- true
    run 2
    [ "$(wc -l <"$TEST_TMP/err")" = 1 ] || fail "more than one line: $(cat "$TEST_TMP/err")"
    run 0 --list
    for verb in rail_down rail_up carrier_pull carrier_push loss drop_acks rate address_del address_add pause kill_rank; do
        said out "^$verb "
    done
    BFO_VM_ACCEL=warp run 2 -- true
}

# A PATH with everything except QEMU.
missing_package() {
    local dir tool
    for dir in /usr/local/bin /usr/bin /bin; do
        for tool in "$dir"/*; do
            case ${tool##*/} in qemu* | dropbearkey) ;; *) ln -s "$tool" "$TEST_TMP/few/" 2>/dev/null ;; esac
        done
    done
    CI= PATH=$TEST_TMP/few run 77 -- true
    said err 'qemu-system-x86'
    said err 'apt-get install'
    [ "$(wc -l <"$TEST_TMP/err")" = 1 ] || fail "more than one line: $(cat "$TEST_TMP/err")"
    CI=true PATH=$TEST_TMP/few run 1 -- true
}

# run.sh needs no root: if this user is root, the next run is another user's, with a cache of its own.
as=()
as_another_user() {
    local cache=${BFO_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bfo-vm}
    [ "$(id -u)" = 0 ] || return 0
    as=(setpriv --reuid=65534 --regid=65534 --clear-groups env "HOME=$TEST_TMP/home" "BFO_VM_CACHE=$TEST_TMP/home/cache")
    chmod 755 "$TEST_TMP"
    mkdir "$TEST_TMP/home" "$TEST_TMP/results"
    [ ! -d "$cache" ] || cp -r "$cache" "$TEST_TMP/home/cache"
    chown -R 65534:65534 "$TEST_TMP/home" "$TEST_TMP/results" "$TMPDIR"
    "${as[@]}" test -r "$RUN" -a -w "$TMPDIR" && return 0
    note "not tried as another user, who cannot read $RUN"
    as=()
}

# Three machines, three rails: stdout and stderr stay apart, files are brought back, every machine reaches every other over each rail,
# faults of the host work.
job_and_status() {
    cat >"$TEST_TMP/host" <<'END'
carrier_pull node3 2 || echo "carrier_pull failed on the host" >&2
loss node2 1 in 100 || echo "loss failed on the host" >&2
touch "$VM_DIR/share/out/pulled"
END
    cat >"$TEST_TMP/job" <<'END'
until [ -e "$BFO_VM_OUT/pulled" ]; do sleep 0.1; done
reached() { # reached PEER RAIL: one ping of some; a machine that has much to do answers late
    for ((i = 0; i < 5; i++)); do busybox ping -q -c 1 -W 1 10.77.$2.${1#node} >/dev/null && return; done
    return 1
}
for peer in node2 node3; do
    for rail in 0 1 2; do reached $peer $rail && echo "$peer $rail"; done
done
ssh node3 'hostname; busybox ping -q -c 1 -W 1 10.77.2.2 >/dev/null || echo "node3 cannot reach node2 on rail 2"'
touch /usr/written-in-the-machine && echo "cover works"
echo "to stderr" >&2
echo brought >"$BFO_VM_OUT/result"
exit 7
END
    as_another_user
    run 7 --nodes 3 --rails 3 --out "$TEST_TMP/results" --host-script "$TEST_TMP/host" -- bash "$TEST_TMP/job"
    printf '%s\n' 'node2 0' 'node2 2' 'node3 0' 'node3 1' node3 'node3 cannot reach node2 on rail 2' 'cover works' |
        diff - "$TEST_TMP/out" || fail "not what was expected: $(cat "$TEST_TMP/err")"
    as=()
    said err '^to stderr$'
    [ "$(wc -l <"$TEST_TMP/err")" = 1 ] || fail "more than the job's stderr: $(cat "$TEST_TMP/err")"
    [ "$(cat "$TEST_TMP/results/result")" = brought ] || fail "the result was not brought back"
    [ ! -e /usr/written-in-the-machine ] || fail "a machine wrote to the host"
}

# A QEMU that dies only the first time; and a QEMU whose machine never comes up.
boots_again() {
    local real
    real=$(PATH=$PATH:/usr/sbin command -v qemu-system-x86_64)
    cat >"$TEST_TMP/fake/qemu-system-x86_64" <<END
#!/bin/bash
case "\$*" in
*bfo.node=2*) [ -e "$TEST_TMP/second" ] || { touch "$TEST_TMP/second"; exit 1; } ;;
esac
exec "$real" "\$@"
END
    chmod +x "$TEST_TMP/fake/qemu-system-x86_64"
    BFO_VM_ACCEL=tcg PATH=$TEST_TMP/fake:$PATH run 3 -- sh -c 'exit 3'
    said err 'trying once more'
    printf '#!/bin/bash\nexec sleep 1000\n' >"$TEST_TMP/fake/qemu-system-x86_64"
    BFO_VM_ACCEL=tcg BFO_VM_BOOT_TIMEOUT=2 PATH=$TEST_TMP/fake:$PATH run 125 -- true
}

wait_gone() {
    local i
    for ((i = 0; i < 600; i++)); do
        pgrep -f "$1" >/dev/null || return 0
        sleep 0.2
    done
    return 1
}

# A run that is killed in the middle of its job. The next run removes its folder, and runs out of time.
ends_anyhow() {
    local pid
    "$RUN" -- bash -c 'echo up; sleep 1000' >"$TEST_TMP/out" 2>&1 </dev/null &
    pid=$!
    timeout 600 sh -c "until grep -q up '$TEST_TMP/out'; do sleep 0.2; done" || fail "the job does not start: $(cat "$TEST_TMP/out")"
    kill -KILL $pid
    wait $pid 2>/dev/null
    wait_gone "qemu.*$TMPDIR/bfo-vm" || fail "QEMU outlives a killed run.sh"
    wait_gone "$TMPDIR/bfo-vm|$RUN" || fail "helpers outlive a killed run.sh: $(pgrep -af "$RUN")"
    run 124 --timeout 2 -- bash -c 'trap "" TERM; sleep 1000'
    said err 'ended after 2 s'
}

machine_dies() {
    run 125 -- bash -c 'ssh node2 "sleep 1; echo c >/proc/sysrq-trigger" & sleep 1000'
    said err 'node2 died'
}

shell() {
    command -v script >/dev/null || skip_missing script bsdutils
    # The shell does not get what is typed before it starts: type until it ends.
    (for ((i = 0; i < 300; i++)); do sleep 2; echo 'hostname; exit 9'; done) |
        timeout 620 script -qec "$RUN --shell" "$TEST_TMP/typescript" >"$TEST_TMP/out" 2>&1
    [ $? = 9 ] || fail "run.sh --shell did not end with the shell's status: $(cat "$TEST_TMP/out")"
    grep -q '^node1' "$TEST_TMP/out" || fail "no shell on node1: $(cat "$TEST_TMP/out")"
    nothing_left "run.sh --shell"
    note "a shell"
}

bad_usage
missing_package
job_and_status
boots_again
ends_anyhow
machine_dies
shell
