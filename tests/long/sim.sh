#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sim.sh SEED MINUTES: the simulator, in blocks of 1,000 seeds, until the time is over.
# sources: src include tests/sim
set -uo pipefail
seed=$1
first=$seed
deadline=$(awk -v now=$SECONDS -v minutes="$2" 'BEGIN { printf "%d", now + minutes * 60 }')
failed=0
while [ $SECONDS -lt "$deadline" ] && [ $failed -eq 0 ]; do
    build/tests/sim --first "$seed" --seeds 1000 || failed=1
    seed=$((seed + 1000))
done
printf '{"seeds": %d, "failed": %d}\n' $((seed - first)) $failed
exit $failed
