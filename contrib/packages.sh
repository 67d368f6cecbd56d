#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# packages.sh GROUP...   names the Debian packages of these groups that are missing, and installs them.
# packages.sh --list GROUP...   only prints the names of the packages.
# Without root it prints the command and ends with status 3. Groups: see the table below.
set -u

packages_of() {
    case $1 in
    build) echo gcc libc6-dev make autoconf automake libtool pkg-config openmpi-bin libopenmpi-dev libibverbs-dev \
                librdmacm-dev libhwloc-dev libevent-dev libjansson-dev perl ;;
    test)  echo clang libclang-rt-14-dev libcmocka-dev ibverbs-utils libfabric-bin perftest netpipe-openmpi hpcc scalapack-mpi-test \
                ucx-utils rdmacm-utils gnuplot-nox perl man-db codespell clang-format gcovr valgrind patch universal-ctags git xz-utils gdb ccache ;;
    tree)  echo libcmocka-dev libpmix-dev ibverbs-providers ibverbs-utils netpipe-openmpi hpcc scalapack-mpi-test procps file ca-certificates ;;
    model) echo spin ;;
    vm)    echo qemu-system-x86 busybox-static kmod cpio nftables iproute2 dropbear-bin openssh-client procps \
                ibverbs-utils perftest rdmacm-utils openmpi-bin tmux ;;
    perf)  echo gnuplot-nox ;;
    packages) echo build-essential debhelper dpkg-dev lintian git rpm python3-minimal ;;
    ompi)  echo debootstrap ;;
    *)     echo "packages.sh: unknown group '$1'; groups: build test tree model vm perf packages ompi" >&2; exit 2 ;;
    esac
}

list=
if [ "${1:-}" = --list ]; then
    list=yes
    shift
fi
[ $# -gt 0 ] || { echo "usage: packages.sh [--list] GROUP..." >&2; exit 2; }
all=
for group in "$@"; do
    all="$all $(packages_of "$group")" || exit 2
done
if [ -n "$list" ]; then
    echo $all
    exit 0
fi

command -v dpkg-query >/dev/null || {
    echo "packages.sh: this is not a Debian system; install the equivalents of:$all" >&2
    exit 3
}
missing=
for package in $all; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
    echo "These packages are missing and installing them needs root. Run this, then start again:"
    echo "  apt-get update && apt-get install -y --no-install-recommends$missing"
    exit 3
fi
echo "Installing these Debian packages:$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
if ! { apt-get update && apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1 </dev/null; then
    tail -n 15 "$log" >&2
    echo "packages.sh: apt-get failed (above: the end of its output)" >&2
    rm -f "$log"
    exit 1
fi
rm -f "$log"
