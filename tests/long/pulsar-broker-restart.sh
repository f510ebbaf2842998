#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pulsar-broker-restart.sh SEED MINUTES: the broker killed and restarted twice under the main job.
# sources: src include tests/support examples/six-lanes
exec python3 tests/support/pulsar/e2e_pulsar_long.py pulsar-broker-restart "$1" "$2"
