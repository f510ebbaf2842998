#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# processes-kills.sh SEED MINUTES: 1,000 kills of worker processes while 200,000 messages flow.
# sources: src include tests/engines tests/plugins
set -euo pipefail
log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
LANEWAY_TEST_SEED=$1 LANEWAY_TEST_KILLS=1000 \
    timeout "$((${2%.*} * 60))" build/tests/engines/test_processes_ways >"$log" 2>&1 || code=$?
[ $code -eq 0 ] || tail -n 40 "$log"
line=$(sed -nE 's/.*: ([0-9]+) messages, ([0-9]+) kills, ([0-9]+) met a handler, ([0-9]+) of them.*/\1 \2 \3 \4/p' "$log")
read -r messages kills met alone <<<"${line:-0 0 0 0}"
printf '{"seeds": 1, "messages": %d, "kills": %d, "met_a_handler": %d, "charged": %d, "failed": %d}\n' \
    "$messages" "$kills" "$met" "$alone" "$((code != 0))"
exit $code
