#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Expected to fail: progress counts its calls for ever after the first shortage.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_later progress_of_nothing_writes_nothing
