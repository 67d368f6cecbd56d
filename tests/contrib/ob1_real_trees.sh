#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The two scripts on real Open MPI: every difference to 4.1.4 is explained; 5.0.7 gives the work list of a port; a changed line of
# ob1's match function is reported; ob1 in another layout is not. If BFO_OMPI_SOURCES has openmpi-6.0*, that is tested as well.
. "$BFO_SRCDIR/tests/lib.sh"
unset LD_PRELOAD
need ctags universal-ctags
need xz xz-utils
contrib=$BFO_SRCDIR/contrib

# source_tree VERSION SUITE: sets tree
source_tree() {
    tree=$(bash "$BFO_SRCDIR/tests/contrib/sources.sh" "$1" "$2" "$BFO_BUILDDIR/tests/contrib/sources") ||
        skip_missing "the source package openmpi $1 of Debian $2" "from the mirror of this machine, or unpacked in BFO_OMPI_SOURCES"
}
# ends STATUS SCRIPT ARGUMENTS...
ends() {
    local wanted=$1 status=0
    shift
    perl "$contrib/$1" "${@:2}" >"$TEST_TMP/out" 2>&1 || status=$?
    [ "$status" = "$wanted" ] || { head -n 60 "$TEST_TMP/out"; fail "'$*' ended with $status, not $wanted"; }
}
SAID=$TEST_TMP/out SAID_AS=-F
# names THING FILE: the paragraph of a change names our file.
names() {
    awk -v thing="$1" -v file="$2" '/^[a-z]/ { here = index($0, thing) } here && index($0, file) { found = 1 } END { exit !found }' \
        "$TEST_TMP/out" || { grep -F -A3 -- "$1" "$TEST_TMP/out"; fail "the list has no '$1' with $2"; }
}

source_tree 4.1.4-3 bookworm
old=$tree
ends 0 check-ob1-pml-diffs.pl --tree "$old"
says '0 unexplained'
ends 0 check-ob1-revision.pl --tree "$old"
says 'nothing to look at'

# One line of the match function.
rm -rf "$TEST_TMP/copy"
cp -r "$old" "$TEST_TMP/copy"
ob1=$TEST_TMP/copy/ompi/mca/pml/ob1
sed -i '/^match_one(/,/^}/s/return match;/return NULL;/' "$ob1/pml_ob1_recvfrag.c"
cmp -s "$old/ompi/mca/pml/ob1/pml_ob1_recvfrag.c" "$ob1/pml_ob1_recvfrag.c" && fail "the match function did not change"
ends 1 check-ob1-revision.pl --tree "$TEST_TMP/copy"
says 'changes to look at: 1.'
names 'function  match_one' pml_bfo/formats/pml_bfo_recv_match.c

# ob1 in another layout: clang-format, where it is installed; and in any case other comments, indentation and the name of a local variable.
cp "$old"/ompi/mca/pml/ob1/*.[ch] "$ob1"
if command -v clang-format >/dev/null; then
    clang-format -i --style='{BasedOnStyle: Google, ColumnLimit: 70, SortIncludes: false}' "$ob1"/*.[ch]
fi
perl -pi -e 's/^( +)(?=\S)/"\t" x length($1)/e; s{^(\s+if) \(}{$1 /* so */ (}; s/(?<!->)\bnum_segments\b/how_many/g' "$ob1/pml_ob1_recvfrag.c" \
    "$ob1/pml_ob1_sendreq.c"
cmp -s "$old/ompi/mca/pml/ob1/pml_ob1_recvfrag.c" "$ob1/pml_ob1_recvfrag.c" && fail "the layout did not change"
ends 0 check-ob1-revision.pl --tree "$TEST_TMP/copy"
says 'nothing to look at'

# The work list of a port.
source_tree 5.0.7-1 trixie
start=$(date +%s)
ends 1 check-ob1-revision.pl --tree "$tree"
note "5.0.7: $(sed -n 2p "$TEST_TMP/out") ($(($(date +%s) - start)) s)"
names 'typedef   mca_btl_base_module_recv_cb_fn_t' pml_bfo/arrivals/pml_bfo_recv_dispatch.c
names 'struct    mca_btl_base_receive_descriptor_t' pml_bfo/arrivals/pml_bfo_recv_dispatch.c
names 'field     ompi_communicator_t.c_contextid' include/bfo_ompi.h
names 'component opal/mca/accelerator' pml_bfo/types/pml_bfo_device.c
names 'field     mca_pml_base_module_t.pml_revoke_comm' pml_bfo/ulfm/pml_bfo_revoke.c
names 'component opal/mca/btl/openib' btl_openib_failover/
for topic in 'receive callback' '128-bit context id' 'accelerator framework' revoke 'lost openib'; do says "* $topic: "; done
ends 1 check-ob1-pml-diffs.pl --tree "$tree" matching
says '! '

for tree in "${BFO_OMPI_SOURCES:-/nowhere}"/openmpi-6.*; do
    [ -d "$tree" ] || continue
    ends 1 check-ob1-revision.pl --tree "$tree"
    names 'field     mca_pml_base_module_t.pml_revoke_comm' pml_bfo/ulfm/pml_bfo_revoke.c
done
