#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Only include/bfo_ompi.h asks for Open MPI's release or uses a name that one of its releases lacks; every other source uses the names of
# that header. A fault that is planted into a copy of the sources is found.
. "$BFO_SRCDIR/tests/lib.sh"

asks='\b(O(MPI|PAL|RTE)_(MAJOR|MINOR|RELEASE|IDENT)_|O(MPI|PAL)_VERSION|opal_version_string|BFO_OMPI_IS_(4|BEFORE_))'
gone='\b(c_contextid|c_index|ompi_comm_get_cid|OPAL_PMIX_GLOBAL|PMIX_GLOBAL|opal_get_proc_hostname|OMPI_MODULE_DECLSPEC)\b'
gone="$gone|\bMCA_(PML|BTL)_BASE_VERSION_|\bOMPI_OSC_BASE_VERSION_|\bmca_(pml|btl)_base_(component|module)_[0-9]|MCA_BTL_ERROR_FLAGS_ADD_|\bmca_btl_base_receive_descriptor_t\b"
gone="$gone|\b(CONVERTOR_(CUDA|ACCELERATOR)|OPAL_CUDA_SUPPORT|opal_accelerator)"
gone="$gone|[\"<](opal/threads/|opal/mca/(threads|pmix)/|orte/)"

# look DIR: prints the lines of DIR's product that should use the header.
look() {
    (cd "$1" && find include pml_bfo btl_openib_failover -name '*.[ch]' -not -path 'include/compat/*' -not -name bfo_ompi.h -print0 |
        xargs -0 grep -nE "$asks|$gone")
}
[ "$(find "$BFO_SRCDIR/pml_bfo" -name '*.c' | wc -l)" -gt 20 ] || fail "found no sources in $BFO_SRCDIR"
found=$(look "$BFO_SRCDIR")
[ -z "$found" ] || { echo "$found"; fail "these lines belong into include/bfo_ompi.h"; }

# planted FILE LINE: the check refuses a copy with LINE.
planted() {
    rm -rf "$TEST_TMP/copy"
    mkdir "$TEST_TMP/copy"
    cp -r "$BFO_SRCDIR/include" "$BFO_SRCDIR/pml_bfo" "$BFO_SRCDIR/btl_openib_failover" "$TEST_TMP/copy"
    chmod -R u+w "$TEST_TMP/copy"
    echo "$2" >>"$TEST_TMP/copy/$1"
    [ "$(look "$TEST_TMP/copy" | wc -l)" = 1 ] || fail "not found in $1: $2"
}
planted pml_bfo/show/pml_bfo_tell.c '#if 5 <= OMPI_MAJOR_VERSION'
planted pml_bfo/types/pml_bfo.h '#include "opal/threads/mutex.h"'
planted btl_openib_failover/door/btl_openib_port.c 'MCA_BTL_BASE_VERSION_3_3_0,'
planted include/bfo_help.h 'return comm->c_contextid;'
