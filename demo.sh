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
command="mpirun -np 2 --mca pml bfo --mca btl openib,self build/contrib/bfo_stream -s $seconds"
out=$(mktemp -d) || exit 1
trap 'kill $job 2>/dev/null; rm -rf "$out"' EXIT

echo "== 3. run: two ranks, two software rails"
echo "   softrail run -n 2 -- $command"
$softrail run -n 2 --name demo.$$ --report "$out/report.json" -- $command >"$out/log" 2>&1 </dev/null &
job=$!
shown=0
while kill -0 $job 2>/dev/null; do
    sleep 0.5
    lines=$(wc -l <"$out/log")
    [ "$lines" -gt "$shown" ] || continue
    sed -n "$((shown + 1)),${lines}p" "$out/log"
    shown=$lines
done
wait $job
status=$?
sed -n "$((shown + 1)),\$p" "$out/log"
exit $status
