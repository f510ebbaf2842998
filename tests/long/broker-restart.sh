#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# broker-restart.sh SEED MINUTES: the broker killed and restarted twice under the main job.
# sources: src include tests/support
exec python3 tests/support/e2e_long.py broker-restart "$1" "$2"
