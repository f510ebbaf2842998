#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The starter of a plug-in builds by its own Makefile and is loaded by the command, which exports
# every function that a handler may call; what cannot be loaded is refused by check and run with the
# same words and the same exit code, before a broker is asked.
set -uo pipefail
. "$(dirname "$0")/_lib.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
plugins=$BUILD_DIR/tests/plugins

expect 0 "" "" -- init plugin "$work/starter"
make -s -C "$work/starter" CPPFLAGS="-I$root/include" CFLAGS="-O2 -Wall -Wextra -Werror" ||
    fail "the starter does not build"
expect 0 "ok (1 topic, 1 pipeline, 1 handler)" "" -- check --strict "$work/starter/orders.yaml"
expect 0 "plug-in $work/starter/orders.so on threads" "" -- plan "$work/starter/orders.yaml"

# What the headers offer to handlers is there.
cat "$root"/include/laneway/{laneway,handler}.h | grep -v '^ *#' | tr '\n' ' ' |
    grep -oP 'LW_API[^;{]*?\b\Klw_\w+(?=\s*\()' | sort -u >"$work/declared"
nm -D --defined-only "$LANEWAY" | awk '{ print $3 }' | sort -u >"$work/exported"
[ "$(wc -l <"$work/declared")" -ge 50 ] || fail "few functions were found in the headers"
comm -23 "$work/declared" "$work/exported" | grep . && fail "the command does not export these"

# refused CODE EXIT TEXT: both commands say it, and nothing was started.
refused()
{
    expect "$2" "" "error[$1]" -- check "$work/bad.yaml"
    expect "$2" "" "$3" -- check "$work/bad.yaml"
    expect "$2" "" "$3" -- run --no-control -c "$work/bad.yaml"
    grep -q "service.ready" "$work/err" && fail "run started over: $3"
}

# with HANDLER: a configuration whose handler has these keys.
with()
{
    printf '%s\n' "version: 1" "brokers: { main: { url: \"memory:\" } }" "handlers: { h: { $1 } }" \
        "pipelines: { p: { broker: main, handler: h, consumer: { group: g }, topics: [ a ] } }" \
        >"$work/bad.yaml"
}

with "plugin: ./none.so"
refused E0601 78 "$work/none.so: No such file or directory"
with "plugin: ./bad.yaml"
refused E0601 78 "it is not a shared object"
with "plugin: $plugins/undefined.so"
refused E0601 78 'it uses "nobody_defines_this", which nobody defines'
with "plugin: $plugins/needs_absent.so"
refused E0601 78 'it needs the library "liblaneway_absent.so"'
with "plugin: $plugins/forms.so, symbol: function"
refused E0607 78 '"function" is not a handler'
with "plugin: $plugins/forms.so, symbol: other_abi"
refused E0608 78 "it was built for handler ABI 2; this is 1"
with "plugin: $plugins/forms.so, symbol: asynchronous, engine: threads"
refused E0311 78 'engine "threads" cannot run handlers.h: it has only handle_async'
with "plugin: $plugins/forms.so, symbol: blocking, engine: programs"
refused E0311 78 'engine "programs" cannot run handlers.h'

# A start that the plug-in itself refuses: check has not asked it.
with "plugin: $plugins/journal.so, options: { refuse: \"the database is away\" }"
expect 0 "ok" "" -- check "$work/bad.yaml"
expect 69 "" 'handler "h" cannot start: the database is away' -- run --no-control -c "$work/bad.yaml"

# It runs: opened, ready, stopped by a signal, closed.
with "plugin: $plugins/journal.so, options: { journal: $work/journal }"
"$LANEWAY" run --no-control -c "$work/bad.yaml" 2>"$work/log" &
wait_for "$work/log" "service.ready"
kill -TERM $!
ends_with 0 $!
grep -q "^open h of laneway on threads" "$work/journal" || fail "it was not opened"
grep -q "^close" "$work/journal" || fail "it was not closed"
finish
