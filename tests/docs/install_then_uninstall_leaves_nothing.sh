#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# make install puts everything under the prefix, ompi_info finds our components there with our version, mpirun finds
# them with nothing but the file for --tune, and make uninstall removes everything again.
. "$BFO_SRCDIR/tests/lib.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL

stage=$TEST_TMP/stage
make -s -C "$BFO_BUILDDIR" install DESTDIR="$stage" >"$TEST_TMP/install.log" 2>&1 </dev/null ||
    { tail -n 20 "$TEST_TMP/install.log"; fail "make install DESTDIR"; }
grep -q 'mpirun --tune .*/bfo\.conf' "$TEST_TMP/install.log" || fail "make install does not print how a job uses bfo"

params=$(find "$stage" -name bfo.conf)
[ -f "$params" ] || fail "no file for --tune was installed"
components=$(dirname "$(find "$stage" -name mca_pml_bfo.so)")
for so in mca_pml_bfo.so mca_osc_bfo.so mca_btl_openib.so; do
    [ -f "$components/$so" ] || fail "$components/$so was not installed"
done
[ "$components" != "$stage$BFO_OMPI_COMPONENTDIR" ] || fail "the components went into Open MPI's own directory"

# The staged tree is not at the path in that file: the test puts in the staged directory.
sed "s,^mca_base_component_path = .*,mca_base_component_path = $components:SYS_DEFAULT:USER_DEFAULT," "$params" \
    >"$TEST_TMP/params.conf"
info=$(OMPI_MCA_mca_base_component_path=$components:$BFO_OMPI_COMPONENTDIR "$OMPI_INFO" --parsable)
grep -qx "mca:pml:bfo:version:\"component:$BFO_VERSION\"" <<<"$info" || fail "ompi_info does not list pml bfo $BFO_VERSION"
grep -qx "mca:btl:openib:version:\"component:$BFO_VERSION\"" <<<"$info" || fail "ompi_info does not list btl openib $BFO_VERSION"
mpi 2 --tune "$TEST_TMP/params.conf" --mca btl "$SHARED_MEMORY,self" \
    "$BFO_BUILDDIR/contrib/bfo_stream" -s 1 -m 65536 >"$TEST_TMP/run.log" 2>&1 ||
    { cat "$TEST_TMP/run.log"; fail "a job with the file for --tune alone"; }
grep -q ' 0 wrong' "$TEST_TMP/run.log" || fail "the job verified nothing"

make -s -C "$BFO_BUILDDIR" uninstall DESTDIR="$stage" >"$TEST_TMP/uninstall.log" 2>&1 </dev/null ||
    { tail -n 20 "$TEST_TMP/uninstall.log"; fail "make uninstall"; }
left=$(find "$stage" ! -type d)
[ -z "$left" ] || fail "make uninstall left: $left"
