#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# ./demo.sh [SECONDS]   builds bfo and runs an MPI job of two ranks over two software rails (default 10 seconds).
set -u
top=$(cd "$(dirname "$0")" && pwd)
cd "$top" || exit 1
seconds=${1:-10}
case $seconds in
'' | *[!0-9]* | 0) echo "usage: ./demo.sh [SECONDS]   (a whole number, not '$seconds')" >&2; exit 2 ;;
esac

echo "== 1. packages"
bash contrib/packages.sh build || exit $?
echo "== 2. build"
bash contrib/build.sh build || exit 1
. build/tests/env.sh

# mpirun refuses root unless told otherwise.
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export OMPI_MCA_mca_base_component_path=$top/build/pml_bfo/.libs:$top/build/btl_openib_failover/.libs:$BFO_OMPI_COMPONENTDIR
softrail=build/softrail/softrail
out=$(mktemp -d) || exit 1
job=
trap '[ -z "$job" ] || kill "$job" 2>/dev/null; rm -rf "$out"' EXIT

# Bytes each rail has carried so far, one line a rail: NAME BYTES.
rail_bytes() { $softrail status --fabric="demo-$$" 2>/dev/null | awk '$1 ~ /^sr[0-9]+$/ { printf "%s %.0f\n", $1, $5 + $7 }'; }

echo "== 3. run: two ranks exchange a verified stream over two software rails"
command="mpirun -np 2 --mca pml bfo --mca btl openib,self build/contrib/bfo_stream -s $seconds"
echo "   softrail run -n 2 -- $command"
$softrail run -n 2 --name "demo-$$" --report "$out/report.json" -- $command >"$out/log" 2>&1 </dev/null &
job=$!
shown=0
before=
while kill -0 $job 2>/dev/null; do
    sleep 1
    now=$(rail_bytes)
    rates=$(join <(echo "$before") <(echo "$now") | awk '{ printf "   %s %7.1f MiB/s", $1, ($3 - $2) / 1048576 }')
    before=$now
    lines=$(wc -l <"$out/log")
    while [ "$shown" -lt "$lines" ]; do
        shown=$((shown + 1))
        echo "$(sed -n "${shown}p" "$out/log")$([ "$shown" = "$lines" ] && echo "$rates")"
    done
done
wait $job
status=$?
job=
sed -n "$((shown + 1)),\$p" "$out/log"
if [ "$status" != 0 ] || ! grep -q ' 0 wrong$' "$out/log"; then
    echo "demo.sh: the job failed (status $status)" >&2
    exit 1
fi
echo "== what it did"
echo "Every byte of every message was checked by its receiver. What each rail carried:"
awk -F'[:,]' '/"name"/ { gsub(/[ "]/, "", $2); name = $2 }
              /"tx_bytes"/ { tx = $2 }
              /"tx_messages"/ { printf "  %s  %8.1f MiB in %d work requests\n", name, tx / 1048576, $2 }' "$out/report.json"
cat <<END
== what to try next
  . build/tests/env.sh; export OMPI_MCA_mca_base_component_path=$OMPI_MCA_mca_base_component_path
  your own program:   $softrail run -n 2 -- mpirun -np 2 --mca pml bfo --mca btl openib,self PROGRAM
  without rails:      mpirun -np 2 --mca pml bfo --mca btl vader,self build/contrib/bfo_stream
  the rails alone:    $softrail run -n 2 -- ibv_devinfo        (package ibverbs-utils)
  all tests:          ./test.sh
  for real use:       make -C build install, and the line that it prints (README.md)
END
