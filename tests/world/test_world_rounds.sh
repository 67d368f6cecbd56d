#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Jobs that do rounds of collectives and windows, and make and free communicators, while rails are lost and come back.
exec bash "$BFO_SRCDIR/tests/world/world.sh" --seeds "${BFO_WORLD_ROUNDS:-160}" --jobs 2 rounds=8 kills=0 sequence=0 names=0 generation=0 epochs=0
