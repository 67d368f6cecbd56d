#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# `bfo run` starts a job that uses bfo, with any release of Open MPI: with bfo.conf as built, and the directories of this build. Parameters on
# the command line override the file. An error names the thing that is missing.
. "$BFO_SRCDIR/tests/lib.sh"
unset OMPI_MCA_mca_base_component_path PMIX_MCA_mca_base_component_path
BFO=$BFO_BUILDDIR/tools/bfo
export BFO_CONF=$TEST_TMP/bfo.conf PATH=${MPIRUN%/*}:$PATH
sed "s,[^ ]*:SYS_DEFAULT,$BFO_BUILDDIR/pml_bfo/.libs:$BFO_BUILDDIR/btl_openib_failover/.libs:SYS_DEFAULT," "$BFO_BUILDDIR/bfo.conf" >"$BFO_CONF"
grep -q "$BFO_BUILDDIR/pml_bfo" "$BFO_CONF" || { cat "$BFO_CONF"; fail "bfo.conf names no directory"; }

# job ARGUMENTS...: runs a stream of two ranks; returns its status.
job() { timeout -k 5 "$MPI_TIMEOUT" "$@" >"$TEST_TMP/log" 2>&1 </dev/null; }
run=("$BFO" run --oversubscribe --bind-to none -np 2 --mca pml_bfo_verbose 1)
job "$SOFTRAIL" run -n 2 --report "$TEST_TMP/report" -- "${run[@]}" --mca btl openib,self "$BFO_BUILDDIR/contrib/bfo_stream" -s 1 ||
    { cat "$TEST_TMP/log"; fail "bfo run over software rails"; }
grep -q ' 0 wrong$' "$TEST_TMP/log" && grep -q 'bfo: [01]->[01] rails' "$TEST_TMP/log" || { cat "$TEST_TMP/log"; fail "the job did not use bfo"; }
rails_moved "$TEST_TMP/report" 0 1
job "${run[@]}" --mca btl "$SHARED_MEMORY,self" "$BFO_BUILDDIR/contrib/bfo_stream" -s 1 && grep -q ' 0 wrong$' "$TEST_TMP/log" ||
    { cat "$TEST_TMP/log"; fail "bfo run over $SHARED_MEMORY"; }
! grep -q 'bad prefix\|SYS_DEFAULT' "$TEST_TMP/log" || { cat "$TEST_TMP/log"; fail "PMIx complains of our directory"; }
# The program ends after it has used MPI, because prterun of Open MPI 6.0 says of a process that ends while the others are being started that it could
# not be started, and ends with another status.
job "${run[@]}" --mca btl "$SHARED_MEMORY,self" sh -c '"$1" -s 1 && exit 7' sh "$BFO_BUILDDIR/contrib/bfo_stream"
[ $? = 7 ] || { cat "$TEST_TMP/log"; fail "the status is not mpirun's"; }

# refused PATTERN COMMAND...: COMMAND ends with status 3, and prints PATTERN.
refused() {
    local pattern=$1
    shift
    job "$@"
    [ $? = 3 ] && grep -q "$pattern" "$TEST_TMP/log" || { cat "$TEST_TMP/log"; fail "not said: $pattern"; }
}
refused "bfo run: $TEST_TMP/none: No such file.* Install bfo" env BFO_CONF="$TEST_TMP/none" "$BFO" run true
echo '# mca_base_component_path = /tmp' >"$TEST_TMP/empty"
refused "$TEST_TMP/empty names no directory of components" env BFO_CONF="$TEST_TMP/empty" "$BFO" run true
sed "s,[^ ]*:SYS_DEFAULT,/nowhere/bfo:SYS_DEFAULT," "$BFO_CONF" >"$TEST_TMP/gone"
refused 'not in /nowhere/bfo, which .*: No such file' env BFO_CONF="$TEST_TMP/gone" "$BFO" run true
refused "bfo run: mpirun: No such file.* mpirun of Open MPI $OMPI_VERSION" env PATH="$TEST_TMP" "$BFO" run true
job "$BFO" run
[ $? = 2 ] || fail "bfo run without a program is no wrong usage"
exit 0
