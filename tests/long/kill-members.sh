#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kill-members.sh SEED MINUTES: one of three members killed ten times under the main job.
# sources: src include tests/support
exec python3 tests/support/e2e_long.py kill-members "$1" "$2"
