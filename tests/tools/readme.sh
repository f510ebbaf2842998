#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The three configurations in README.md, of six lines each, are accepted by `laneway check`, and their
# handler answers.
set -eu
readme=$(cd "$(dirname "$0")/../.." && pwd)/README.md
[ -x "$LANEWAY" ] || { echo "the command is not built" >&2 && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
awk '/^```yaml$/ { count++; on = 1; next } /^```$/ { on = 0 } on { print >("hello" count ".yaml") }' "$readme"
sed -n '/^```python$/,/^```$/p' "$readme" | grep -v '^```' >hello.py
for number in 1 2 3; do
    [ "$(wc -l <hello$number.yaml)" -eq 6 ]
    "$LANEWAY" check hello$number.yaml
    "$LANEWAY" plan hello$number.yaml | grep -q urgent
done
grep -q spool: hello1.yaml && grep -q kafka:// hello2.yaml && grep -q pulsar:// hello3.yaml
cat >asked <<'END'
{"hello":{"protocol":1,"service":"s","handler":"hello","window":1}}
{"id":1,"topic":"greetings","value":"{\"name\": \"Ada\"}"}
{"id":2,"topic":"greetings","value":"{}"}
END
python3 hello.py <asked >answered
grep -q '"ready"' answered
grep -q '"id": 1, "result": "ok", "reply": "hello Ada"' answered
grep -q '"id": 2, "result": "dead"' answered
echo "README: configurations accepted, handler answers"
