#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# build.sh DIR [CONFIGURE ARGUMENTS...]   configures (a new build, or when the arguments have changed) and builds in DIR.
# The build is for the tests: with assertions, unless the arguments have --disable-assertions.
# Prints one line for each step; after a failure also the end of the log DIR/build.log.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 1 ] || { echo "usage: build.sh DIR [CONFIGURE ARGUMENTS...]" >&2; exit 2; }
dir=$1
shift
set -- --enable-assertions "$@"
mkdir -p "$dir" || exit 1
dir=$(cd "$dir" && pwd)
log=$dir/build.log
: >"$log"

run() {
    "$@" >>"$log" 2>&1 </dev/null && return
    tail -n 30 "$log" >&2
    echo "build.sh: '$*' failed; the whole log is $log" >&2
    exit 1
}

if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ] || [ "$top/m4/bfo.m4" -nt "$top/configure" ]; then
    echo "- autogen.sh"
    run "$top/autogen.sh"
fi
cd "$dir" || exit 1
if [ ! -f Makefile ] || [ ! -f .arguments ] || [ "$(cat .arguments)" != "$*" ]; then
    echo "- configure $*"
    run "$top/configure" "$@"
    echo "$*" >.arguments
fi
echo "- make ($dir)"
run make -j"$(nproc)"
