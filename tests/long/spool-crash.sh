#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# spool-crash.sh SEED MINUTES: SIGKILL at 500 random moments of an owner and a guest of a spool.
# sources: src/brokers/spool src/brokers/common src/base include tests/support/spool_main.c tests/tools/spool_crash.py
BUILD_DIR=${BUILD_DIR:-$PWD/build} exec python3 tests/tools/spool_crash.py --seed "$1" --moments 500 --minutes "$2"
