#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Messages that are read over several rails: which rails are offered, which ones read, and what happens when one of them is lost.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_reads
