#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# simulate.sh DIR: builds world_rows (the whole PML in the world of tests/fuzz) and rail_rows (two rail machines
# over a bad network) with row counters, and writes the rows that they take to DIR/met and DIR/raised. BFO_WORLD_CFLAGS: more flags of the compiler.
. "$BFO_SRCDIR/tests/lib.sh"
dir=$1
from=$BFO_SRCDIR/tests/sim/rows fuzz=$BFO_SRCDIR/tests/fuzz pml=$BFO_SRCDIR/pml_bfo btl=$BFO_SRCDIR/btl_openib_failover
rm -rf "$dir/met" "$dir/raised"
mkdir -p "$dir/met" "$dir/raised" "$dir/objects" || fail "cannot write to $dir"
flags=(-std=gnu11 -g -O1 -fno-strict-aliasing -mcx16 -DPML_BFO=1 -DBFO_COUNT_ROWS=1 -DBFO_TURN_LEAST=BFO_TURN_BYTES -I"$fuzz/shadow" -I"$BFO_SRCDIR/include" -I"$BFO_BUILDDIR/include"
    -I"$BFO_SRCDIR/include/compat" -I"$pml" -I"$btl" -Dopal_output=fuzz_output -Dopal_progress=fuzz_progress
    -Dopal_progress_register=fuzz_progress_register -Dopal_progress_register_lp=fuzz_progress_register_lp -Dopal_progress_unregister=fuzz_progress_register ${BFO_WORLD_CFLAGS:-})
compile() { # compile SOURCE...: an object for each source, two at a time
    local source
    for source in "$@"; do printf '%s\0' "$source"; done |
        # shellcheck disable=SC2086
        xargs -0 -P 2 -I{} sh -c 'o=$1/$(basename "$2" .c).o; shift 2; '"${CC:-cc}"' "$@" -c "$0" -o "$o"' {} "$dir/objects" {} \
            "${flags[@]}" $OMPI_CPPFLAGS $OMPI_CFLAGS || fail "the simulated world does not build"
}
rm -f "$dir"/objects/*.o
compile "$pml"/*/*.c "$fuzz"/fuzz_world.c "$fuzz"/fuzz_world_mpi.c "$from"/world.c "$from"/world_send.c "$from"/world_recv.c "$from"/world_raised.c
# shellcheck disable=SC2086
${CC:-cc} ${BFO_WORLD_CFLAGS:-} "$dir"/objects/*.o -Wl,--wrap=bfo_send_step -o "$dir/world_rows" $OMPI_LDFLAGS $OMPI_LIBS || fail "world_rows does not link"
${CC:-cc} "${flags[@]}" "$from/rail_rows.c" "$btl/tables/btl_openib_rail_fsm.c" "$btl/formats/btl_openib_wire.c" -o "$dir/rail_rows" || fail "rail_rows does not build"
for program in world_rows rail_rows; do
    for how in met raised; do
        BFO_ROWS_DIR=$dir/$how timeout -k 5 120 "$dir/$program" $how >"$TEST_TMP/log" 2>&1 </dev/null ||
            { tail -n 20 "$TEST_TMP/log"; fail "$program $how"; }
    done
done
exit 0
