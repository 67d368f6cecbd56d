#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Declared peers, communicators that end, no more memory.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_declared
