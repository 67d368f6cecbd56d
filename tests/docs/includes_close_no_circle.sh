#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The include graph of the component folders and of the command bfo has no circle, leaves know only leaves, and rooms know no room further down. A fault that is planted into a copy of the sources is found.
. "$BFO_SRCDIR/tests/lib.sh"
need perl perl
graph="$BFO_SRCDIR"/tests/docs/include_graph.pl
perl "$graph" "$BFO_SRCDIR" || fail "the include graph is not what tests/docs/include_graph.pl says"

btl=btl_openib_failover
# planted COMMAND WORDS: after COMMAND has changed the copy, the check fails and prints WORDS.
planted() {
    rm -rf "$TEST_TMP/copy"
    mkdir "$TEST_TMP/copy"
    cp -r "$BFO_SRCDIR"/{btl_openib_failover,pml_bfo,softrail,tools} "$TEST_TMP/copy"
    chmod -R u+w "$TEST_TMP/copy"
    (cd "$TEST_TMP/copy" && eval "$1") || fail "cannot plant: $1"
    if perl "$graph" "$TEST_TMP/copy" >"$TEST_TMP/out" 2>&1; then
        fail "not found: $1"
    fi
    grep -qF -- "$2" "$TEST_TMP/out" || { cat "$TEST_TMP/out"; fail "$1: not \"$2\""; }
}
planted "echo '#include \"door/btl_openib_module.h\"' >>$btl/device/btl_openib_device.c" "btl_openib_device -> btl_openib_module -> btl_openib_device"
planted "echo '#include \"door/pml_bfo_module.h\"' >>pml_bfo/show/pml_bfo_pvars.c; echo '#include \"show/pml_bfo_pvars.h\"' >pml_bfo/door/pml_bfo_module.h" \
    "pml_bfo_module -> pml_bfo_pvars -> pml_bfo_module"
planted "echo '#include \"threads/btl_openib_poll.h\"' >>$btl/in/btl_openib_recv.c" "room in, includes btl_openib_poll.h of the room threads, further down"
planted "echo '#include \"rail/btl_openib_open.h\"' >>$btl/out/btl_openib_silent.c" "room out, includes btl_openib_open.h of the room rail, further down"
planted "sed -i 's/ .wire.c.//' btl_openib_failover/README.md" "btl_openib_wire is in no room"
planted "mv pml_bfo/show/pml_bfo_tell.c pml_bfo/send/" "pml_bfo/send: README.md says that pml_bfo_tell is in show"
planted "echo '#include \"show/pml_bfo_tell.h\"' >>pml_bfo/formats/pml_bfo_ids.c" "room formats, includes pml_bfo_tell.h of the room show, further down"
planted "echo '#include \"sr_process.h\"' >>softrail/sr_shm.h" "the leaf sr_shm includes sr_process.h"
planted "echo '#include \"types/btl_openib_log.h\"' >>$btl/device/btl_openib_srq.c" "btl_openib_srq.c includes btl_openib_log.h twice"
planted "echo 'void ofo_log_all(void);' >>$btl/types/btl_openib_types.h" "btl_openib_types.h declares ofo_log_all()"
planted "echo 'void bfo_recv_copy_from(void);' >>pml_bfo/recv/pml_bfo_recv_place.h" "pml_bfo_recv_place.h declares bfo_recv_copy_from()"
planted "echo '#include \"bt_check.h\"' >>tools/bt.h" "bt -> bt_check -> bt"
planted "sed -i 's/^bool bt_is_among(/bool bt_among(/' tools/*.c" "tools/bt.h declares bt_is_among(), which no .c file defines"
planted "sed -i '/bfo_lock_wait(/d' pml_bfo/formats/pml_bfo_sync.h" "pml_bfo_sync.h declares nothing of pml_bfo_local.c"
planted "mv softrail/sr_fabric.h softrail/sr_web.h; mv softrail/sr_fabric.c softrail/sr_web.c" "no folder has the unit sr_fabric"
