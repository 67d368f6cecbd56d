#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The bfo authors
#
# What the BTL reads from others: kept inputs, then fresh ones.
exec bash "$BFO_SRCDIR/tests/fuzz/fuzz.sh" btl 10
