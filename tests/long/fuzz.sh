#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh SEED MINUTES TARGET: libFuzzer on tests/fuzz/fuzz_TARGET.c. What it finds new goes on
# from run to run in build-fuzz/corpus/TARGET; a crash is left in build-fuzz/crashes/.
# sources: src include tests/fuzz
set -euo pipefail
seed=$1 minutes=$2 target=$3
cmake --preset fuzz >/dev/null
cmake --build build-fuzz --target "fuzz_$target" >/dev/null
found=build-fuzz/corpus/$target
mkdir -p "$found" build-fuzz/crashes
seconds=$(awk -v minutes="$minutes" 'BEGIN { printf "%d", minutes * 60 }')
log=build-fuzz/fuzz-$target.log
code=0
dict=tests/fuzz/$target.dict
build-fuzz/tests/fuzz/fuzz_"$target" -seed="$seed" -max_total_time="$seconds" -timeout=5 \
    -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="build-fuzz/crashes/$target-" \
    $([ -f "$dict" ] && echo "-dict=$dict") "$found" "tests/fuzz/corpus/$target" >"$log" 2>&1 ||
    code=$?
[ $code -eq 0 ] || tail -n 40 "$log"
runs=$(sed -nE 's/^stat::number_of_executed_units: *([0-9]+)/\1/p' "$log")
printf '{"seeds": 1, "runs": %d, "failed": %d}\n' "${runs:-0}" "$((code != 0))"
exit $code
