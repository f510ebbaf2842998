#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mutants.sh SEED MINUTES: every mutant of the product must be caught by the simulator within
# 1,000 seeds. Takes about as long as building the core sixteen times, whatever MINUTES says.
# sources: src/core src/dispatcher src/policy src/brokers/memory tests/sim tests/support
exec tests/sim/mutants.py
