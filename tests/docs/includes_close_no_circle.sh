#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The include graph of the component folders has no circle, leaves know only leaves, and rooms know no room further down. A fault that is planted into a copy of the sources is found.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
graph="$BFO_SRCDIR"/tests/docs/include_graph.pl
perl "$graph" "$BFO_SRCDIR" || fail "the include graph is not what tests/docs/include_graph.pl says"

btl=btl_openib_failover/btl_openib
# planted COMMAND WORDS: after COMMAND has changed the copy, the check fails and prints WORDS.
planted() {
    rm -rf "$TEST_TMP/copy"
    mkdir "$TEST_TMP/copy"
    for folder in btl_openib_failover pml_bfo softrail; do
        mkdir "$TEST_TMP/copy/$folder"
        cp "$BFO_SRCDIR/$folder"/*.[ch] "$BFO_SRCDIR/$folder"/README.md "$TEST_TMP/copy/$folder"
    done
    chmod -R u+w "$TEST_TMP/copy"
    (cd "$TEST_TMP/copy" && eval "$1") || fail "cannot plant: $1"
    if perl "$graph" "$TEST_TMP/copy" >"$TEST_TMP/out" 2>&1; then
        fail "not found: $1"
    fi
    grep -qF -- "$2" "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "$1: not \"$2\""; }
}
planted "echo '#include \"btl_openib_module.h\"' >>${btl}_device.c" "btl_openib_device -> btl_openib_module -> btl_openib_device"
planted "echo '#include \"pml_bfo_module.h\"' >>pml_bfo/pml_bfo_pvars.c; echo '#include \"pml_bfo_pvars.h\"' >pml_bfo/pml_bfo_module.h" \
    "pml_bfo_module -> pml_bfo_pvars -> pml_bfo_module"
planted "echo '#include \"btl_openib_poll.h\"' >>${btl}_recv.c" "room in, includes btl_openib_poll.h of the room threads, further down"
planted "echo '#include \"btl_openib_open.h\"' >>${btl}_silent.c" "room out, includes btl_openib_open.h of the room rail, further down"
planted "sed -i 's/ .wire.c.//' btl_openib_failover/README.md" "btl_openib_wire is in no room"
planted "echo '#include \"pml_bfo_tell.h\"' >>pml_bfo/pml_bfo_ids.c" "room formats, includes pml_bfo_tell.h of the room show, further down"
planted "echo '#include \"sr_process.h\"' >>softrail/sr_shm.h" "the leaf sr_shm includes sr_process.h"
planted "echo '#include \"btl_openib_log.h\"' >>${btl}_srq.c" "btl_openib_srq.c includes btl_openib_log.h twice"
planted "echo 'void ofo_log_all(void);' >>${btl}_types.h" "btl_openib_types.h declares ofo_log_all()"
planted "echo 'void bfo_recv_copy_from(void);' >>pml_bfo/pml_bfo_recv_place.h" "pml_bfo_recv_place.h declares bfo_recv_copy_from()"
