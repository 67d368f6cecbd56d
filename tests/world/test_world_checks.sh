#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Many queue pairs break while long messages are sent, so that most messages are interrupted, some of them several times. The checks of the
# invariants (image_checks*.c) have the most to do in such jobs, and mutants that a check must notice are shown with this test.
exec bash "$BFO_SRCDIR/tests/world/world.sh" --from 1 --seeds 300 --jobs 2 nodes=2 per_node=1 crowd=0 rails=2 faults=60 breaks=9 downs=3 silences=0 losses=0 stops=0 \
    drains=0 deaths=0 kills=0 cqs=0 fails=0 epochs=0 generation=0 rejoin=1 stable=10 put=1 get=0 srq=1 synchronous=40 messages=20 biggest=131072 horizon=3000
