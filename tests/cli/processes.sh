#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Engine processes under the command: what it refuses, what plan and status say of it, that a stop
# leaves no process behind, and that a service whose zygote is killed says so and ends with 75.
set -uo pipefail
. "$(dirname "$0")/_lib.sh"
plugins=$BUILD_DIR/tests/plugins

# with HANDLER: a configuration whose handler has these keys.
with()
{
    printf '%s\n' "version: 1" "brokers: { main: { url: \"memory:\" } }" "handlers: { h: { $1 } }" \
        "pipelines: { p: { broker: main, handler: h, consumer: { group: g }, topics: [ a ] } }" \
        >"$work/c.yaml"
}

with "builtin: noop, engine: processes"
expect 78 "" 'engine "processes" cannot run handlers.h' -- check "$work/c.yaml"
with "plugin: $plugins/forms.so, symbol: asynchronous, engine: processes"
expect 78 "" 'it has only handle_async' -- check "$work/c.yaml"
with "plugin: $plugins/naughty.so, engine: threads, processes: { ring: 1MiB }"
expect 0 "" "does not run on engine processes" -- check "$work/c.yaml"
with "plugin: $plugins/naughty.so, engine: processes, processes: { max_crashes: 0 }"
expect 78 "" "error[E0105]" -- check "$work/c.yaml"

with "plugin: $plugins/naughty.so, engine: processes, memory_max: 200MB, cpu_max: 1s"
expect 0 "" '"cpu_max" has no effect' -- check "$work/c.yaml"
expect 0 "window 64, memory 200MB" "" -- plan "$work/c.yaml"

with "plugin: $plugins/naughty.so, engine: processes, workers: 2, processes: { lanes: pinned }"
expect 0 "on processes x2, window 64" "" -- plan "$work/c.yaml"
"$LANEWAY" run -c "$work/c.yaml" 2>"$work/log" &
service=$!
wait_for "$work/log" "service.ready"
expect 0 '"flushes"' "" -- status --json
zygote=$(pgrep -P $service -f laneway-zygote)
[ -n "$zygote" ] || fail "the service has no zygote"
kill -TERM $service
ends_with 0 $service
[ -z "$zygote" ] || ! kill -0 "$zygote" 2>/dev/null || fail "its zygote is still there"

"$LANEWAY" run -c "$work/c.yaml" 2>"$work/log" &
service=$!
wait_for "$work/log" "service.ready"
# Killed before it serves, it is started again: wait until it has workers.
for _ in $(seq 2400); do
    zygote=$(pgrep -P $service -f laneway-zygote)
    [ -n "$zygote" ] && [ "$(pgrep -c -P "$zygote")" = 2 ] && break
    sleep 0.05
done
[ -n "$zygote" ] && [ "$(pgrep -c -P "$zygote")" = 2 ] || fail "it never had two workers"
kill -KILL "$zygote"
ends_with 75 $service
grep -q "E0631" "$work/log" || fail "the service did not say that its zygote was killed"
finish
