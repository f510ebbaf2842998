#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# chaos-kafka.sh SEED MINUTES: three members under random kills, freezes, stops and pauses.
# sources: src include tests/support
exec python3 tests/support/e2e_long.py chaos-kafka "$1" "$2"
