#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pulsar-six-lanes.sh SEED MINUTES: the six-lane example with 60,000 orders, undisturbed.
# sources: src include tests/support examples/six-lanes
exec python3 tests/support/pulsar/e2e_pulsar_long.py pulsar-six-lanes "$1" "$2"
