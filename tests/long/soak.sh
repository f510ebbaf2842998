#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# soak.sh SEED MINUTES: three rounds of the main job through one process; memory and descriptors.
# sources: src include tests/support
exec python3 tests/support/e2e_long.py soak "$1" "$2"
