#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# Everything that the BTL reads from other processes: kept inputs, then new inputs.
exec bash "$BFO_SRCDIR/tests/fuzz/fuzz.sh" btl 10
