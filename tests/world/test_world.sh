#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Simulated jobs from BFO_WORLD_SEEDS seeds (default 10000), and the seeds that once failed.
from=$BFO_SRCDIR/tests/world
. "$BFO_SRCDIR/tests/lib.sh"
while read -r seed plan; do
    [[ $seed == [0-9]* ]] || continue
    # shellcheck disable=SC2086
    bash "$from/world.sh" --seed "$seed" ${plan%%#*} >"$TEST_TMP/out" 2>&1 || { tail -n 20 "$TEST_TMP/out"; fail "the kept seed $seed ${plan%%#*}fails"; }
done <"$from/kept_seeds.txt"
bash "$from/world.sh" --from "${BFO_WORLD_FROM:-1}" --seeds "${BFO_WORLD_SEEDS:-10000}" --jobs "$(nproc)" --shrink
