#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/support/mock_kafka fills topics completely or says that it could not, answers each command,
# and ends with its standard input.
set -eu
mock=${BUILD_DIR:?}/tests/support/mock_kafka
[ -x "$mock" ] || { echo "built without Kafka" >&2; exit 77; }
out=$(mktemp)
trap 'rm -f "$out"' EXIT

"$mock" --topics a:4,b:1 --fill a:1000:50:10 --rtt 1 >"$out" <<'EOF'
fill a 1000 50 0
topic c 2
error 1 -195 3
clear 1
leader a 3 -1
leader a 3 1
coordinator group g 1
down 1
up 1
nonsense
leader a 3
fill b 20000 1000 0
EOF
head -n 1 "$out" | grep -q '^READY 127\.0\.0\.1:[0-9][0-9]*$'
[ "$(grep -cx ok "$out")" -eq 9 ] || { cat "$out" && exit 1; }
grep -qx 'failed: unknown command' "$out"
grep -qx 'failed: leader needs TOPIC PARTITION BROKER' "$out"
grep -q '^failed: a partition keeps 5 MiB' "$out"

if "$mock" --topics a:1 --fill a:20000:1000:0 </dev/null >"$out" 2>&1; then
    echo "a fill that did not fit was accepted" && exit 1
fi
echo "mock_kafka: fills whole, answers, ends"
