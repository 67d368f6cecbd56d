#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# build.sh DIR   empties DIR and builds the Debian packages into it, from a clean copy of the source tree. lintian must find nothing,
# openmpi-bfo must depend on the release of Open MPI that it was built for and on no other, and each package must hold its part of bfo.
# The recipes for RPM and Spack must parse, and name this release.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
[ $# = 1 ] || { echo "usage: build.sh DIR" >&2; exit 2; }
fail() { echo "FAIL packages: $*"; exit 1; }
rm -rf "$1"
mkdir -p "$1/bfo" && dir=$(cd "$1" && pwd) || exit 1
(cd "$top" && git ls-files -z | tar --null -cf - -T -) | tar xf - -C "$dir/bfo" || fail "no copy of the source tree"
# The packages must not get the flags and the make variables of the build that runs this test.
(cd "$dir/bfo" && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u CFLAGS -u LD_PRELOAD dpkg-buildpackage -us -uc -b) >"$dir/log" 2>&1 </dev/null ||
    { tail -n 30 "$dir/log"; fail "dpkg-buildpackage"; }
lintian --allow-root --fail-on error,warning "$dir"/*.changes >"$dir/lintian" 2>&1 || { cat "$dir/lintian"; fail "lintian has something to say"; }

has() {
    dpkg-deb -c "$dir/$1"_*.deb >"$dir/list" || fail "$1 cannot be read"
    grep -q " \./$2\$" "$dir/list" || fail "$1 has no $2"
}
has openmpi-bfo 'usr/lib/.*/openmpi-bfo/mca_pml_bfo\.so'
has openmpi-bfo 'usr/lib/.*/openmpi-bfo/mca_btl_openib\.so'
has openmpi-bfo 'usr/bin/bfo'
has openmpi-bfo 'usr/share/bfo/bfo\.conf'
has openmpi-bfo 'usr/lib/.*/openmpi-bfo/bin/mpirun -> .*/bin/bfo'
has softrail 'usr/lib/.*/softrail/libsoftrail\.so'
has railfail 'usr/share/railfail/railfail_job\.c'
has bfo-doc 'usr/share/doc/bfo-doc/site-guide\.md\(\.gz\)\?'

release=$(ompi_info --parsable | sed -n '/^ompi:version:full:/{s///;s/rc/~rc/;p}')
library=$(dpkg-query -S "$(readlink -f "$(gcc -print-file-name=libmpi.so)")" | cut -d: -f1)
depends=$(dpkg-deb -f "$dir"/openmpi-bfo_*.deb Depends)
case "$depends" in
*"$library (>= $release), $library (<< $release.0~)"*) ;;
*) fail "openmpi-bfo depends on: $depends" ;;
esac
version=$(sed -n 's/^bfo (\(.*\)) .*/\1/p;q' "$top/debian/changelog")
"$BFO_BUILDDIR/tools/bfo" --version | grep -qx "bfo $version" || fail "debian/changelog is of release $version"
rpmspec -q --qf '%{name} %{version}\n' "$top/contrib/openmpi-bfo.spec" >"$dir/spec" 2>&1 && grep -qx "openmpi-bfo $version" "$dir/spec" &&
    grep -qx "softrail $version" "$dir/spec" || { cat "$dir/spec"; fail "contrib/openmpi-bfo.spec"; }
recipe=$top/contrib/spack/openmpi-bfo/package.py
python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$recipe" && grep -q "version(\"$version\")" "$recipe" || fail "$recipe"

installed=$(dpkg-query -W -f '${Version}' "$library")
dpkg --compare-versions "$installed" ge "$release" && dpkg --compare-versions "$installed" lt "$release.0~" ||
    fail "openmpi-bfo, built for $release, cannot be installed beside $library $installed"
echo "packages: $(ls "$dir"/*.deb | wc -l) built; Depends: $depends"
