#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Workers that speak lines and frames, holding one message or four, killed at random moments: nothing
# is lost, keys stay in order, nobody is charged but who was alone with a killed worker.
set -u
program=$BUILD_DIR/tests/support/kill_programs
[ -x "$program" ] || { echo "$program is not built" >&2 && exit 77; }
seed=${SEED:-$((RANDOM * 32768 + RANDOM + 1))}
for protocol in lines frames; do
    for window in 1 4; do
        "$program" $protocol $window "$seed" 4000 15 || exit 1
    done
done
