#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Runs on node1: compare.sh FAULT STACK...: one row per stack. The fault hits the rail that carries most at that moment. Each row
# shows what happens to a job that loses a rail it uses while another rail works.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/rails.sh"
. "$here/traffic.sh"

# Prints the first line of the log that looks like a reason.
reason() {
    sed -n 's/^\(A rail was lost: \).*; cause: \(.*\); left: .*/\1\2/p' "$log" | grep -m 1 . && return
    grep -iE 'error|fail|abort|unreach|signal|retry|lost|closed|broken| down' "$log" | grep -vE '^round|^---|^counters|mpirun noticed|show_help.c|[Cc]onnection to .* closed' |
        head -n 1 | sed 's/^\[[^]]*\] *//; s/[[:space:]]\+/ /g' | cut -c1-100
}

row() {
    local what
    [ "$fault" = 'lost acknowledgements' ] && case $1 in *tcp*) return ;; esac # this fault concerns only RDMA
    stack "$1"
    through "$fault" "$BFO_VM_OUT/$(echo "$1-$fault" | tr -c 'a-z0-9\n' _).log" "${args[@]}"
    [ "$outcome" = 'hit nothing' ] && bad=$((bad + 1))
    what=$(reason)
    [ "$outcome" = aborted ] && grep -q 'signal 6' "$log" && what="SIGABRT: $what"
    printf '%-26s| %-47s| %-9s| %6s | %5s | %-1s | %s\n' "$1" "$fault" "$outcome" "$took" "$in_use" "${VM_NOTE:-}" "${what:-says nothing}"
}

fault=$1 count_rails=1
for name in "${@:2}"; do
    row "$name"
done
finish
