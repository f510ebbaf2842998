#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The quick start of README.md, word for word: files, then commands, with a spool and no server; and
# that it ends in order.
set -eu
readme=$(cd "$(dirname "$0")/../.." && pwd)/README.md
[ -x "$LANEWAY" ] || { echo "the command is not built" >&2 && exit 77; }
work=$(mktemp -d)
trap 'kill %1 2>/dev/null || true; wait; rm -rf "$work"' EXIT
cd "$work"
export XDG_RUNTIME_DIR=$work PATH="$(dirname "$LANEWAY"):$PATH"
unset LANEWAY_CONFIG LANEWAY_URL
if "$LANEWAY" send -b spool:probe.db probe </dev/null 2>&1 | grep -q E0508; then
    echo "built without the spool" >&2
    exit 77
fi
section=$(sed -n '/^## A queue, a handler, no server$/,/^## The same on Kafka$/p' "$readme")
sed -n '/^```yaml$/,/^```$/p' <<<"$section" | grep -v '^```' >hello.yaml
sed -n '/^```python$/,/^```$/p' <<<"$section" | grep -v '^```' >hello.py
sed -n 's/^    \(laneway\|printf\) /\1 /p' <<<"$section" >commands
count=$(wc -l <commands)
[ "$count" -ge 3 ] && [ "$count" -le 4 ]
# shellcheck source=/dev/null
. ./commands >said 2>log
grep -c '^hello \(Ada\|Grace\|Edsger\)$' said | grep -qx 3
laneway drain >/dev/null
wait %1
echo "README: $count commands, three greetings answered"
