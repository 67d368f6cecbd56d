#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# rows.sh   removes every row and guard of the four tables, one at a time, and shows which run of the models notices.
# Prints one line per row: the first run that ends with an error, or "not noticed". rows.new keeps the lines.
# The models are compiled once per run (flag SWEEP); the environment names the line to remove.
# Rows of parts that no model covers (MATCH, cancel, ports) are left out; DESIGN.txt section 13 names them.
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
MEM=${MEM:-4000}
command -v spin >/dev/null || { echo "the model checker spin is missing (Debian package: spin)"; exit 77; }
ulimit -v $((MEM * 1024 + 500000))

bfo_runs='-DP_FRAG -DNMSG=1 -DQUEUE -DTWOQP
-DP_PUT -DNMSG=1 -DQUEUE -DTWOQP
-DP_GET -DNMSG=2 -DTWOQP -DDOWNMSG
-DP_FRAG -DNMSG=1 -DPOISON -DDOWNMSG
-DP_PUT -DNMSG=1 -DPOISON -DDOWNMSG
-DP_GET -DNMSG=2 -DPOISON
-DP_FRAG -DNMSG=1 -DTHREADS -DPOISON
-DP_FRAG -DNMSG=1 -DQUEUE -DDECLARE
-DP_PUT -DNMSG=1 -DDECLARE
-DP_GET -DNMSG=2 -DDECLARE
-DP_FRAG -DNMSG=1 -DPOISON -DDECLARE'
rail_runs='-DNF=1
-DNF=1 -DLOSS=1 -DLIVE
-DNF=0 -DDEADPEER
-DNF=1 -DLAZY -DNODUP
-DNF=1 -DREFUSE=1 -DNODUP
-DNF=3 -DGIVER -DNODUP'
drain_runs='-DSHARED -DPORT
-DDEADCARD -DPORT
-DIWARP'
# A send enters NOTIFIED with nothing outstanding, therefore its rows there are for a BTL that breaks its contract. RTS_ERR_UNANSWERED
# outside RTS needs two threads.
left_out='NOTIFIED, *(RTS|FRAG|WRITE|DATA)|(STREAM|ERRD|NOTIFIED), *RTS_ERR_UNANSWERED|\((M[1-4]|S13e|S18p|R1|R2m|R15|R16p|C1|L1b|L1c|L23|D1|LX),|CONTROL_POISON|DONE, *(START|POST)'

mkdir -p run/rows
cd run/rows || exit 1
cp "$here"/*.pml "$top"/pml_bfo/tables/*.def "$top"/btl_openib_failover/tables/*.def .
out=../../rows.new
: > $out

# build MODEL N FLAGS: builds the verifier of this run, pan-MODEL-N
build() {
    local cc=-DSAFETY
    case $3 in *-DLIVE*) cc=-DNP ;; esac
    # shellcheck disable=SC2086
    timeout 60 spin -DSWEEP $3 -a "$1.pml" > spin.log 2>&1 && ! grep -q Error spin.log || { cat spin.log; exit 1; }
    timeout 300 gcc -O0 -w "-DMEMLIM=$MEM" -DCOLLAPSE -DVECTORSZ=4096 $cc -o "pan-$1-$2" pan.c || exit 1
}
# sweep MODEL TABLE FILE RUNS: removes each row of FILE, and runs the verifiers until a run notices
sweep() {
    local number row n flags by pan
    grep -nE '^(ROW|ROW_ZERO|ROW_NEXT|GUARD)\(' "$3.def" | grep -vE "$left_out" | while IFS=: read -r number row; do
        by="not noticed" n=0
        while read -r flags; do
            n=$((n + 1)) pan=-n
            case $flags in *-DLIVE*) pan="-n -l" ;; esac
            # shellcheck disable=SC2086
            SWEEP=$(($2 * 1000 + number)) timeout 60 ./pan-$1-$n -m400000 $pan < /dev/null > pan.log 2>&1
            grep -q 'errors: 1' pan.log && { by=$flags; break; }
        done <<< "$4"
        echo "$3: ${row%)*} | $by" | tr -s ' ' | tee -a $out
    done
}
n=0
while read -r flags; do n=$((n + 1)); build bfo $n "$flags"; done <<< "$bfo_runs"
n=0
while read -r flags; do n=$((n + 1)); build rail $n "$flags"; done <<< "$rail_runs"
n=0
while read -r flags; do n=$((n + 1)); build drain $n "$flags"; done <<< "$drain_runs"
sweep bfo 0 pml_bfo_failover_send "$bfo_runs"
sweep bfo 1 pml_bfo_failover_recv "$bfo_runs"
sweep rail 0 btl_openib_rail "$rail_runs"
sweep drain 0 btl_openib_drain "$drain_runs"
rm -f pan-* pan.*
echo "rows taken away: $(grep -c . $out), not noticed: $(grep -c 'not noticed' $out)"
