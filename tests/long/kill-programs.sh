#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kill-programs.sh SEED MINUTES: workers that speak lines and frames killed at random moments; four
# seeds are 200,000 messages and 1,000 kills.
# sources: src include tests/support/kill_programs_main.c
set -uo pipefail
seed=$1
first=$seed
deadline=$(awk -v now=$SECONDS -v minutes="$2" 'BEGIN { printf "%d", now + minutes * 60 }')
failed=0
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT
while [ $SECONDS -lt "$deadline" ] && [ $failed -eq 0 ]; do
    case $((seed % 4)) in
        0) kind="lines 1" ;;
        1) kind="frames 1" ;;
        2) kind="lines 4" ;;
        3) kind="frames 4" ;;
    esac
    # shellcheck disable=SC2086
    build/tests/support/kill_programs $kind "$seed" 50000 250 | tee -a "$counts" || failed=1
    seed=$((seed + 1))
done
python3 - "$counts" $((seed - first)) $failed <<'END'
import json
import sys
rounds = [json.loads(line) for line in open(sys.argv[1], encoding="ascii")]
sums = {name: sum(one[name] for one in rounds)
        for name in ("messages", "kills", "starts", "charged", "suspects", "dead", "faults")}
print(json.dumps({"seeds": int(sys.argv[2]), "failed": int(sys.argv[3]), **sums}))
END
exit $failed
