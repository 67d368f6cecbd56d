#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# The unit programs and the simulations reach the branches of each recovery file that they have reached before.
exec bash "$BFO_SRCDIR/tests/coverage/coverage.sh" -f cheap
