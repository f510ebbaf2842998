#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/long goes on behind the last seed, starts again when the source changes, and reports a
# failed job as failed.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{tools,src,tests/long}
cp "$root/tools/long" "$work/tools/long"
echo one >"$work/src/a.c"
job=$work/tests/long/count.sh
printf '#!/bin/bash\necho "{\\"seeds\\": 10, \\"first\\": $1, \\"failed\\": 0}"\n' >"$job"
chmod +x "$job"
run()
{
    "$work/tools/long" count --minutes 1 >"$work/out"
}
start_of_last()
{
    tail -n 1 "$work/evidence/count.jsonl" | python3 -c 'import json; print(json.loads(input())["seed_start"])'
}

run && [ "$(start_of_last)" -eq 1 ]
run && [ "$(start_of_last)" -eq 11 ]
grep -q '2 runs, 0 not ok, totals {"seeds": 20' "$work/out"
echo two >"$work/src/a.c"
run && [ "$(start_of_last)" -eq 1 ]
printf '#!/bin/bash\necho "{\\"seeds\\": 10, \\"failed\\": 2}"\n' >"$job"
if run; then echo "a failed job was accepted" && exit 1; fi
printf '#!/bin/bash\necho nonsense\n' >"$job"
if run; then echo "a job without counts was accepted" && exit 1; fi
echo "long: resumes, starts again, fails"
