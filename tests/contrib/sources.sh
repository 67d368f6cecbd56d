#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# sources.sh VERSION SUITE FOLDER   unpacks the files that the scripts about ob1 read from Debian's source package openmpi VERSION of SUITE,
# and prints their folder. It fetches nothing if FOLDER/VERSION or the unpacked tree $BFO_OMPI_SOURCES/openmpi-VERSION exists.
# It uses the mirror from which this machine installs, and does not change this machine's apt.
set -u
version=$1 suite=$2 upstream=${1%-*}
for tree in "${BFO_OMPI_SOURCES:-/nowhere}/openmpi-$upstream" "$3/$version"; do
    [ ! -f "$tree/ompi/mca/pml/ob1/pml_ob1.c" ] || { echo "$tree"; exit 0; }
done
command -v apt-get >/dev/null || { echo "sources.sh: no apt-get, and no openmpi-$upstream in BFO_OMPI_SOURCES" >&2; exit 1; }
mkdir -p "$3" || exit 1
work=$(mktemp -d "$3/fetch.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' 'Component: main' |
    awk '$1 !~ /-/ { print $2; exit }')
[ -n "$mirror" ] || { echo "sources.sh: apt of this machine names no Debian mirror" >&2; exit 1; }
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r $keys ] && signed="[signed-by=$keys] " || signed=
echo "deb-src $signed$mirror $suite main" >"$work/sources.list"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/tree"
apt() {
    timeout -k 5 300 apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User="$(id -un)" \
        -o Acquire::Retries=3 "$@" >>"$work/log" 2>&1 </dev/null
}
cd "$work" || exit 1
if ! { apt update && apt source --download-only "openmpi=$version"; }; then
    tail -n 10 log >&2
    echo "sources.sh: the source package openmpi $version of $suite cannot be fetched from the mirror of this machine" >&2
    exit 1
fi
tar -xf "openmpi_$upstream".orig.tar.* -C tree --strip-components=1 --no-same-owner --wildcards \
    '*/VERSION' '*/ompi/*.[ch]' '*/opal/*.[ch]' '*/orte/*.h' 2>>log ||
    [ -f tree/ompi/mca/pml/ob1/pml_ob1.c ] || { tail -n 3 log >&2; echo "sources.sh: openmpi $version does not unpack" >&2; exit 1; }
mv tree "$3/$version" 2>/dev/null || [ -d "$3/$version" ] || exit 1
echo "$3/$version"
