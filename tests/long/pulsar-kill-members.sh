#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pulsar-kill-members.sh SEED MINUTES: one of three members killed ten times under the main job.
# sources: src include tests/support examples/six-lanes
exec python3 tests/support/pulsar/e2e_pulsar_long.py pulsar-kill-members "$1" "$2"
