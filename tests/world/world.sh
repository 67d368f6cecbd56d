#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# world.sh [OPTION...] [NAME=VALUE...]: builds the world and runs it with these arguments (--help lists them).
# BFO_WORLD_PML, BFO_WORLD_BTL: other source folders, to see seeds fail with them. BFO_WORLD_CFLAGS: instead of -O2.
# BFO_WORLD_COVERS: source files of which gcov counts the branches.
. "$BFO_SRCDIR/tests/lib.sh"
from=$BFO_SRCDIR/tests/world pml=${BFO_WORLD_PML:-$BFO_SRCDIR/pml_bfo} btl=${BFO_WORLD_BTL:-$BFO_SRCDIR/btl_openib_failover}
covers=${BFO_WORLD_COVERS:-}
into=${BFO_WORLD_INTO:-$BFO_BUILDDIR/tests/world/made}
flags="-std=gnu11 -D_GNU_SOURCE -mcx16 -g ${BFO_WORLD_CFLAGS:--O2} -fno-strict-aliasing -fPIC -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-field-initializers"
# The files of an image: the PML and the BTL but for their readers of /proc, and this world's part.
image_sources() {
    ls "$pml"/*/*.c "$btl"/*/*.c | grep -vE '/(pml_bfo_life|osc_bfo_component|pml_bfo_figures_dir)\.c$'
    ls "$from"/image_*.c
}
build() {
    local rules=$into/Makefile f
    mkdir -p "$into"
    {
        echo "CFLAGS = $flags -I$from"
        echo "IMAGE = -D_GNU_SOURCE -include $from/image.h -fvisibility=hidden -DPML_BFO=1 -DBFO_BTL_FAILOVER=1 -DBFO_ASSERTIONS=1 -DBFO_FLUSH_SECONDS=1000000 '-DBFO_TURN_LEAST=world_turn_least()' -I$BFO_SRCDIR/tests/fuzz/shadow -I$BFO_SRCDIR/include -I$BFO_BUILDDIR/include -I$BFO_SRCDIR/include/compat -I$pml -I$btl"
        [ -z "$covers" ] || echo "IMAGE += -DWORLD_COVERAGE=1"
        for f in $covers; do
            echo "$(basename "$f" .c).o: CFLAGS += --coverage"
        done
        echo "pml_bfo_failover_fsm.o pml_bfo_failover_actions.o: IMAGE += -include $from/image_epochs.h"
        echo "pml_bfo_send_complete.o: IMAGE += -include $from/image_checked.h"
        echo "OMPI = $OMPI_CPPFLAGS $OMPI_CFLAGS"
        echo "all: world image.so lean.so"
        objects=
        for f in $(image_sources); do
            o=$(basename "$f" .c).o objects+=" $o"
            echo "$o: $f"
            printf '\t$(CC) $(CFLAGS) $(IMAGE) $(OMPI) -MMD -MP -c -o $@ $<\n'
            [ $o != pml_bfo_witness.o ] || printf '\tobjcopy --globalize-symbol=n_asked $@\n' # image_starts.c sets it
        done
        echo "image.so:$objects"
        printf '\t$(CC) -shared -Wl,-Bsymbolic -Wl,--wrap=bfo_figures_steer,--wrap=bfo_figures_directory,--wrap=ofo_paths_map,--wrap=ofo_paths_unmap,--wrap=ofo_paths_clock,--wrap=bfo_seqmap_find,--wrap=bfo_ids_add,--wrap=ofo_fsm_classify,--wrap=ofo_fsm_step,--wrap=bfo_peer_get,--wrap=bfo_ctl_send,--wrap=ofo_probation_follow,--wrap=ofo_probation_answer,--wrap=ofo_inquiry_begin,--wrap=ofo_inquiry_follow,--wrap=ofo_inquiry_answer,--wrap=bfo_stat_drop,--wrap=bfo_failover_fin_is_visible,--wrap=bfo_failover_send_raise,--wrap=bfo_generation_fence_ends,--wrap=ofo_send_complete,--wrap=ofo_rdma_part_done,--wrap=ofo_rdma_abandon -o $@ $^ %s\n' "$OMPI_LDFLAGS $OMPI_LIBS ${covers:+-lgcov}"
        printf 'lean.so: image.so\n\tstrip -g -o $@ $<\n'
        objects=
        for f in "$from"/{main,schedule,trace,world,memory,faults,failures,day,day_figures,scale,scale_figures,peers}.c "$from"/fabric*.c "$BFO_SRCDIR"/softrail/sr_transition.c "$btl"/formats/btl_openib_{wire,record}.c; do
            o=host-$(basename "$f" .c).o objects+=" $o"
            echo "$o: $f"
            printf '\t$(CC) $(CFLAGS) -I%s $(OMPI) -fno-optimize-sibling-calls -MMD -MP -c -o $@ $<\n' "$BFO_SRCDIR/include/compat -I$BFO_SRCDIR/softrail -I$btl"
        done
        echo "world:$objects"
        printf '\t$(CC) -rdynamic -o $@ $^ %s -ldl\n' "$OMPI_LDFLAGS $OMPI_LIBS"
        echo "-include *.d"
    } >"$rules.new"
    cmp -s "$rules.new" "$rules" || { rm -f "$into"/*.[do]; mv "$rules.new" "$rules"; } # sources may have other paths now
    make -s -k -j2 -C "$into" CC="${CC:-cc}" all
}
build >"$TEST_TMP/log" 2>&1 || { tail -n 60 "$TEST_TMP/log"; fail "the world does not build"; }
unset LD_PRELOAD
exec "$into/world" --image "$into/image.so" "$@"
