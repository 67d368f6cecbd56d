#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The same seed gives the same run, bit for bit.
exec bash "$BFO_SRCDIR/tests/world/world.sh" --seeds 200 --jobs 2 --replay
