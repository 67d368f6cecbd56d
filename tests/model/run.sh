#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# run.sh smoke|quick|full|mutants|all|only TAG...   runs the models of runs.list and reports unexpected outcomes.
# One run at a time (JOBS=n for more), each with a limit of memory (MEM, MB) and time (TMO, seconds).
# Files of a run: run/TAG/ in the current directory; after an error trail.txt (full) and messages.txt (messages only).
# results.new holds one line per run. Exit: 0 all as expected, 1 otherwise, 77 spin is missing.
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
MEM=${MEM:-4000} TMO=${TMO:-600} JOBS=${JOBS:-1} DEPTH=${DEPTH:-1000000}
export here top MEM TMO DEPTH

if ! command -v spin >/dev/null; then
    echo "the model checker spin is missing (Debian package: spin)"
    [ "${CI:-}" = true ] && exit 1
    exit 77
fi

# one LINE: does the verification run of this line of runs.list; prints one line, fails if the outcome is unexpected
one() {
    IFS='|' read -r set want tag model search flags edit <<< "$1"
    local d=run/$tag opt=-O1 cc=-DSAFETY pan=-n rc line found msg
    [ "$set" = f ] || opt=-O0
    [ "$search" = live ] && cc=-DNP pan="-n -l"
    rm -rf "$d" && mkdir -p "$d" && cd "$d" || return 1
    cp "$here/$model.pml" "$top"/pml_bfo/tables/*.def "$top"/btl_openib_failover/tables/*.def . || return 1
    if [ -n "$edit" ]; then
        cat ./*.def | cksum > before
        sed -i "$edit" ./*.def
        cat ./*.def | cksum | cmp -s - before && { echo "[UNEXPECTED] $tag: the edit changed nothing: $edit"; return 1; }
    fi
    ulimit -v $((MEM * 1024 + 500000))
    # shellcheck disable=SC2086
    timeout 60 spin $flags -a "$model.pml" > spin.log 2>&1 || { echo "[UNEXPECTED] $tag: spin: $(head -1 spin.log)"; return 1; }
    timeout 300 gcc $opt -w "-DMEMLIM=$MEM" -DCOLLAPSE -DVECTORSZ=4096 $cc -o pan pan.c 2> gcc.log || { echo "[UNEXPECTED] $tag: gcc: $(head -1 gcc.log)"; return 1; }
    # shellcheck disable=SC2086
    timeout -s INT "$TMO" ./pan -m"$DEPTH" $pan > pan.log 2>&1
    rc=$?
    found=$(grep -oE 'errors: [0-9]+' pan.log | head -1)
    msg=$(grep -hE '^pan:1' pan.log | head -1)
    line="$tag: ${found:-no result, code $rc}; states $(awk '/states, stored/ {print $1; exit}' pan.log); transitions $(awk '/transitions \(/ {print $1; exit}' pan.log); depth $(grep -oE 'depth reached [0-9]+' pan.log | head -1 | grep -oE '[0-9]+'); $(sed -n 's/.*elapsed time //p' pan.log | sed 's/ seconds//')s${msg:+; $msg}; flags: $flags${edit:+; tables: $edit}"
    rm -f pan pan.[a-z] pan.pre
    if [ -f "$model.pml.trail" ]; then
        timeout 60 spin $flags -t -c "$model.pml" > messages.txt 2>&1
        timeout 60 spin $flags -t -p -g -l "$model.pml" > trail.txt 2>&1
    fi
    case "$want:$found" in
    "err:errors: 1") echo "[as expected] $line" ;;
    "ok:errors: 0")
        # "no error" means nothing if the run reached a limit of depth, memory or time
        if [ $rc -ne 0 ] || grep -qE 'max search depth too small|Search not completed|out of memory' pan.log; then
            echo "[NOT EXHAUSTED] $line"
            return 1
        fi
        echo "[as expected] $line" ;;
    ok:) echo "[NOT EXHAUSTED] $line"; return 1 ;;
    *) echo "[UNEXPECTED] $line"; return 1 ;;
    esac
}
export -f one

pick() {
    case $1 in
    smoke) grep '^s|' ;;
    quick) grep '^[sq]|' ;;
    full) grep '^[sqf]|' ;;
    mutants) grep '^m|' ;;
    all) grep '^[sqfm]|' ;;
    *) return 1 ;;
    esac < "$here/runs.list"
}

case ${1:-} in
only)
    shift
    list=$(for tag in "$@"; do grep -F "|$tag|" "$here/runs.list" || { echo "no such run: $tag" >&2; exit 2; }; done) || exit 2 ;;
smoke|quick|full|mutants|all)
    list=$(pick "$1") ;;
*)
    sed -n '5,9s/^# \?//p' "$0"
    exit 2 ;;
esac
mkdir -p run
printf '%s\n' "$list" | xargs -d '\n' -P "$JOBS" -I{} bash -c 'one "$1"' _ {} | tee results.new
bad=$(grep -vc '^\[as expected\]' results.new)
echo "runs: $(grep -c . results.new), not as expected: $bad"
[ "$bad" = 0 ] && [ "$(grep -c . results.new)" = "$(printf '%s\n' "$list" | grep -c .)" ]
