#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# second-run.sh SEED MINUTES: the main job stopped by SIGTERM in its middle, and a second run.
# sources: src include tests/support
exec python3 tests/support/e2e_long.py second-run "$1" "$2"
