#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The tarball of make dist is complete: it configures and builds outside its own, read-only source tree.
. "$BFO_SRCDIR/tests/lib.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL

cd "$TEST_TMP" || exit 1
make -s -C "$BFO_BUILDDIR" dist >dist.log 2>&1 </dev/null || { tail -n 20 dist.log; fail "make dist"; }
mv "$BFO_BUILDDIR/bfo-$BFO_VERSION.tar.gz" . || fail "make dist wrote no tarball"
tar -xzf "bfo-$BFO_VERSION.tar.gz" --no-same-owner || fail "the tarball does not unpack"
source=$(find "$TEST_TMP" -name configure -printf '%h\n' | head -n 1)
[ -n "$source" ] || fail "the tarball has no configure"
chmod -R a-w "$source"
mkdir build && cd build || exit 1
"$source/configure" CFLAGS=-O0 >configure.log 2>&1 </dev/null || { tail -n 20 configure.log; fail "configure of the tarball"; }
make -s -j2 >make.log 2>&1 </dev/null || { tail -n 20 make.log; fail "make of the tarball"; }
[ -f pml_bfo/.libs/mca_pml_bfo.so ] || fail "the tarball built no PML"
[ -f btl_openib_failover/.libs/mca_btl_openib.so ] || fail "the tarball built no BTL"
chmod -R u+w "$source"
