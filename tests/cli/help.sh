#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The command explains itself: version, help of every command, suggestions for what was misspelt,
# exit codes of wrong use.
set -uo pipefail
. "$(dirname "$0")/_lib.sh"

expect 0 "laneway 0." "" -- version
expect 0 '"version":"0.' "" -- version --json
expect 0 "Exit codes" "" -- help
expect 0 "Exit codes" "" -- --help
expect 64 "Commands" "" --
for command in $("$LANEWAY" help | awk '/^Commands/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'); do
    expect 0 "laneway $command" "" -- help "$command"
    expect 0 "laneway $command" "" -- "$command" --help
done
expect 64 "" 'laneway: unknown command "chek"; did you mean "check"?' -- chek
expect 64 "" 'unknown command "frobnicate"' -- frobnicate
expect 64 "" 'options come after the command' -- --json status
expect 64 "" 'unknown option "--strct"; did you mean "--strict"?' -- check --strct
expect 64 "" 'unknown option "-y"' -- check -y
expect 64 "" 'unknown option "--helo"; did you mean "--help"?' -- check --helo
expect 64 "" 'option "--set" needs a value' -- check --set
expect 64 "" 'option "--json" takes no value' -- version --json=yes
expect 64 "" '--color "blue" is none of' -- version --color blue
expect 64 "" 'no configuration' -- check
expect 64 "" 'laneway help pause' -- pause
expect 0 "E0101" "" -- errors
expect 0 "unknown key" "" -- errors E0101
expect 0 "unknown key" "" -- errors e0101
expect 64 "" 'there is no code "E9999"' -- errors E9999
expect 0 '"code":"E0101"' "" -- errors --json E0101
expect 0 'json-schema.org' "" -- schema
"$LANEWAY" schema | python3 -m json.tool >/dev/null || fail "the schema is no JSON"
"$LANEWAY" errors --json | python3 -m json.tool >/dev/null || fail "the errors are no JSON"
"$LANEWAY" help >/dev/full 2>"$work/err" && fail "a full disk is not noticed"
grep -q "cannot write the output" "$work/err" || fail "a full disk is not said"
finish
