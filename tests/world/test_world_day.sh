#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The first minutes of some days, whose figures keep their bounds; the same seed gives the same minutes, bit for bit. "make day" runs whole days.
day="bash $BFO_SRCDIR/tests/world/day.sh"
$day -m 60 healthy && $day -m 90 flaps && $day -m 30 -o --replay silences && $day -m 30 short
