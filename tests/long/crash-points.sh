#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# crash-points.sh SEED MINUTES: SIGKILL at the named points of publish, settle and commit.
# sources: src include tests/support
exec python3 tests/support/e2e_long.py crash-points "$1" "$2"
