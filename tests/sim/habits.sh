#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Habits of adapters: each case of sr_habits passes with its switch of softrail run, and fails without the switch.
. "$BFO_SRCDIR/tests/lib.sh"
. "$BFO_SRCDIR/tests/sim/sim.sh"

export SOFTRAIL
# habit LAYER CASE SWITCH...
habit() {
    local layer=$1 case=$2
    shift 2
    rails -n 2 --retry-time 60ms --link-layer "$layer" "$@" -- ./sr_habits "$case" > "$TEST_TMP/out" 2>&1 ||
        fail "$case with $*: $(cat "$TEST_TMP/out")"
    grep -q "OK .*$case" "$TEST_TMP/out" || fail "there is no case $case: $(cat "$TEST_TMP/out")"
    rails -n 2 --retry-time 60ms --link-layer "$layer" -- ./sr_habits "$case" > "$TEST_TMP/out" 2>&1 &&
        fail "$case passes without $*"
    note "$*: $case"
}
habit ib no_address_without_grh --grh-required
habit ib no_post_in_the_error_state --no-post-in-error
habit ib only_so_much_inline --max-inline 128
habit ib no_reliable_connections --no-rc
habit ib large_packets_are_swallowed --mtu-blackhole 1024
habit ib flush_tells_the_head_only --flush-head-only
habit ib write_of_nothing_wants_a_key --no-empty-write
habit ib limited_members_do_not_talk --pkeys 0x7fff,0xffff
habit ib all_rails_have_the_default_prefix --default-prefix
habit ib guids_of_two_processes_are_crossed --default-prefix --crossed-guids
habit ib wires_of_two_processes_are_crossed --crossed-wires
habit ib managers_of_all_rails_have_one_lid --one-sm-lid
habit eth traffic_class_is_shown --traffic-class 106
habit eth first_gid_is_of_another_namespace --foreign-gid
habit eth gids_are_ip_addresses --ipv4-gids

# mistake WORD SWITCH VALUE: the error text names the switch and the kind of value that it wants.
mistake() {
    "$SOFTRAIL" run "$2" "$3" -- true 2> "$TEST_TMP/err" && fail "$2 $3 was accepted"
    grep -q -e "$2 wants $1.* not '$3'" "$TEST_TMP/err" || fail "$2 $3: $(cat "$TEST_TMP/err")"
}
mistake 'a number from 0 to 512' --max-inline 513
mistake 'a number from 0 to 512' --max-inline x
mistake 'a number from 0 to 255' --traffic-class 256
mistake 'a number from 1 to 4096' --mtu-blackhole 0
mistake '1 to 8 hexadecimal' --pkeys 0x7fff,
mistake '1 to 8 hexadecimal' --pkeys 0x18000
