#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# combinations.sh PLAIN: every combination of our PML, stock ob1, our BTL and stock BTLs runs, with failover compiled in
# and left out on either side (PLAIN is a build directory configured with --disable-pml-failover
# --disable-btl-openib-failover). Where failover is not in force the PML bfo says so once, with the reason. The script
# needs two builds, therefore test.sh runs it and make check does not.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/mpi/btl.sh"
plain=${1:?usage: combinations.sh BUILD-DIRECTORY-WITHOUT-FAILOVER}

# try PML-DIRECTORY BTL-DIRECTORY PML BTL WANTED: WANTED is "in force", "none" (ob1: nothing is said) or a part of the
# reason why failover is not in force (shared memory and self cannot fail: nothing is said). A directory "-" stands for Open MPI's own components.
try() {
    local pml_dir=$1 btl_dir=$2 pml=$3 btl=$4 wanted=$5 path=''
    [ "$pml_dir" = - ] || path=$path$pml_dir/pml_bfo/.libs:
    [ "$btl_dir" = - ] || path=$path$btl_dir/btl_openib_failover/.libs:
    local name="pml $pml ($(basename "$pml_dir")), btl $btl ($(basename "$btl_dir"))"
    BTL_ARGS=(--mca pml "$pml" --mca btl "$btl" --mca mpi_leave_pinned 0 --mca btl_openib_allow_ib 1 --mca btl_openib_warn_no_device_params_found 0)
    OMPI_MCA_mca_base_component_path=$path$BFO_OMPI_COMPONENTDIR on_rails "-n 2" 2 "$STREAM" -s 1 -m 262144 || { show_log; fail "$name: the job failed"; }
    grep -q '[1-9][0-9]* messages, .* 0 wrong$' "$LOG" || { tail -n 20 "$LOG"; fail "$name: nothing verified"; }
    local moved said
    moved=$(awk -F'[:,]' '/"tx_bytes"/ && $2 > 1000000 { n++ } END { print n + 0 }' "$REPORT")
    case $btl in
    openib*) [ "$moved" = 2 ] || fail "$name: $moved of 2 rails carried the data" ;;
    esac
    said=$(grep -c 'a rail that fails will not be survived' "$LOG")
    case $wanted in
    'in force' | none) [ "$said" = 0 ] || { cat "$LOG"; fail "$name: says that failover is not in force"; } ;;
    *)
        [ "$said" = 1 ] || { cat "$LOG"; fail "$name: says $said times, not once, that failover is not in force"; }
        grep -qi -- "$wanted" "$LOG" || { cat "$LOG"; fail "$name: the reason does not hold '$wanted'"; } ;;
    esac
    note "$name: runs ($wanted)"
}

full=$BFO_BUILDDIR
try "$full" "$full" bfo openib,self 'in force'
try "$full" "$plain" bfo openib,self 'failover'
try "$plain" "$full" bfo openib,self 'without failover'
try "$plain" "$plain" bfo openib,self 'without failover'
try "$full" - bfo openib,self 'failover'
try "$full" - bfo "$SHARED_MEMORY,self" none
try "$full" - bfo tcp,self 'failover'
try "$plain" - bfo "$SHARED_MEMORY,self" none
try "$plain" - bfo tcp,self 'without failover'
try - "$full" ob1 openib,self none
try - "$plain" ob1 openib,self none
