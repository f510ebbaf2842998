#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The configuration in README.md is accepted by `laneway check`, and its handler answers.
set -eu
readme=$(cd "$(dirname "$0")/../.." && pwd)/README.md
[ -x "$LANEWAY" ] || { echo "the command is not built" >&2 && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
sed -n '/^```yaml$/,/^```$/p' "$readme" | grep -v '^```' >hello.yaml
sed -n '/^```python$/,/^```$/p' "$readme" | grep -v '^```' >hello.py
[ "$(wc -l <hello.yaml)" -eq 6 ]
"$LANEWAY" check hello.yaml
"$LANEWAY" plan hello.yaml | grep -q urgent
cat >asked <<'END'
{"hello":{"protocol":1,"service":"s","handler":"hello","window":1}}
{"id":1,"topic":"greetings","value":"{\"name\": \"Ada\"}"}
{"id":2,"topic":"greetings","value":"{}"}
END
python3 hello.py <asked >answered
grep -q '"ready"' answered
grep -q '"id": 1, "result": "ok", "reply": "hello Ada"' answered
grep -q '"id": 2, "result": "dead"' answered
echo "README: configuration accepted, handler answers"
