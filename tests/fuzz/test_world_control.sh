#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Control messages that come back with an error, and forged ones.
exec bash "$BFO_SRCDIR/tests/fuzz/world.sh" world_control
