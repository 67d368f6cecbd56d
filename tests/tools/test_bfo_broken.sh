#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The command refuses, by name, a file that is no file of figures or belongs to another user; such a file harms neither the command nor a
# running job. Damaged files (BFO_FIGURES_INPUTS of them) break nothing.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/tools/tools.sh"
use_components pml btl
need perl perl

start_job 2 2
until_so "the job is not shown" status_has ' 2 of 2 ranks '
good=$(find "$FIGURES" -type f ! -name ".*" | head -n 1)
size=$(stat -c %s "$good")
mkfifo "$FIGURES/1.1.0.11"
ln -s /etc/passwd "$FIGURES/1.1.0.12"
ln "$good" "$FIGURES/1.1.0.13"
: >"$FIGURES/1.1.0.14"
head -c "$size" /dev/urandom >"$FIGURES/1.1.0.15"
head -c "$size" /dev/zero >"$FIGURES/1.1.0.16"
mkdir "$FIGURES/1.1.0.17"
rm "$FIGURES/1.1.0.13" # a second link makes the good file itself untrusted
cp "$good" "$FIGURES/1.1.0.18" # its name differs from the name in the file
truncate -s $((size - 1)) "$FIGURES/1.1.0.18"
cp "$good" "$FIGURES/1.1.0.19"
printf '\033[2J' >"$FIGURES/$(printf '\033[2J')"
refused="11 12 14 15 16 17 18 19"
if [ "$(id -u)" = 0 ]; then
    cp "$good" "$FIGURES/1.1.0.20"
    chown 12345 "$FIGURES/1.1.0.20"
    refused="$refused 20"
fi
timeout 60 "$BFO" status >"$TEST_TMP/out" 2>"$TEST_TMP/err"
[ $? = 0 ] && grep -q ' 2 of 2 ranks ' "$TEST_TMP/out" || { cat "$TEST_TMP/out" "$TEST_TMP/err"; fail "the job is not shown when there are broken files"; }
for pid in $refused; do
    grep -q "not read: $FIGURES/1.1.0.$pid: " "$TEST_TMP/err" || { cat "$TEST_TMP/err"; fail "1.1.0.$pid is not refused"; }
done
! grep -q "$(printf '\033')" "$TEST_TMP/err" "$TEST_TMP/out" || fail "a file's name reaches the terminal as it is"
timeout 60 "$BFO" status --json 2>/dev/null >"$TEST_TMP/json"
[ "$(json "$TEST_TMP/json" 'scalar @{$j->{refused}}')" -ge 8 ] || fail "JSON does not name what was refused"
timeout 60 "$BFO" events >/dev/null 2>&1 || fail "bfo events fails when there are broken files"
note "$(wc -l <"$TEST_TMP/err") files refused"

cp "$good" "$TEST_TMP/${good##*/}"
"$BFO_BUILDDIR/tests/tools/broken_figures" "$TEST_TMP/${good##*/}" "${BFO_FIGURES_INPUTS:-20000}" "${BFO_FIGURES_SEED:-1}" >"$TEST_TMP/out" 2>"$TEST_TMP/err" ||
    { tail -n 5 "$TEST_TMP/err"; fail "a damaged file breaks something"; }
note "$(cat "$TEST_TMP/err")"
finish_job # nobody has changed the files of its ranks

# A directory that others may write to, or that is a link, is not used: the job writes no figures, and the command says why.
rm -rf "$FIGURES"
for bad in open link; do
    case $bad in
    open) mkdir "$FIGURES"; chmod 777 "$FIGURES" ;;
    link) rm -rf "$FIGURES"; mkdir "$TEST_TMP/elsewhere"; chmod 700 "$TEST_TMP/elsewhere"; ln -s "$TEST_TMP/elsewhere" "$FIGURES" ;;
    esac
    start_job 2 2
    [ -z "$(ls -A "$FIGURES/")" ] || fail "a file in a directory that is $bad"
    status_has "not read: $FIGURES: it is no private directory of its user"
    [ "$STATUS" = 4 ] && grep -q 'not read' "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "a directory that is $bad: status $STATUS"; }
    finish_job
done
if [ "$(id -u)" = 0 ]; then
    mkdir -m 700 "$BFO_STATUS_DIR/bfo-12345"
    status_has "not read: $BFO_STATUS_DIR/bfo-12345: it is no private directory of its user" || { cat "$TEST_TMP/out"; fail "a directory of another user is trusted"; }
fi

# The file system is full: the job runs without figures.
if unshare -m true 2>/dev/null; then
    mkdir "$TEST_TMP/small"
    unshare -m sh -c 'mount -t tmpfs -o size=8k tmpfs "$1" && shift && exec "$@"' sh "$TEST_TMP/small" env OMPI_MCA_pml_bfo_status_dir="$TEST_TMP/small" \
        timeout -k 5 "$MPI_TIMEOUT" "$SOFTRAIL" run -n 2 -- "$MPIRUN" --oversubscribe --bind-to none -np 2 --mca pml bfo --mca btl openib,self \
        --mca pml_bfo_verbose 1 "$BFO_BUILDDIR/contrib/bfo_stream" -s 1 >"$LOG" 2>&1 </dev/null || { cat "$LOG"; fail "a job with a full file system"; }
    grep -q 'keeps no figures for the command bfo.*: No space left on device' "$LOG" || { cat "$LOG"; fail "a full file system is not found out"; }
    note "a full file system: the job runs"
fi
exit 0
