#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Handlers that cannot work under the real command, with a spool, so that what a fault did to the
# messages is seen afterwards: the pipeline waits and says why and what helps, a stop ends with the
# right code, and a good handler then gets every message for the first time. And what a program is
# told before it is killed at the drain's deadline.
set -uo pipefail
. "$(dirname "$0")/_lib.sh"
cd "$work" || exit 1
if "$LANEWAY" send -b spool:probe.db probe </dev/null 2>&1 | grep -q E0508; then
    echo "built without the spool" >&2
    exit 77
fi

cat >good.py <<'P'
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "hello" in m:
        answer = {"ready": {"protocol": 1}}
    else:
        answer = {"id": m["id"], "result": "ok", "reply": f"{m['value']} run {m['attempt']}"}
    print(json.dumps(answer), flush=True)
P

# with HANDLER [SERVICE]: a configuration whose handler has these keys.
with()
{
    printf '%s\n' "version: 1" "service: { name: t, ${2:-drain_timeout: 40s} }" \
        "brokers: { main: { url: \"spool:q.db\" } }" "handlers: { h: { $1 } }" \
        "pipelines: { p: { broker: main, handler: h, consumer: { group: g }, reply: { topic: r }," \
        "             topics: [ a ] } }" >c.yaml
}

# queue TEXT...: a fresh spool with these messages.
queue()
{
    rm -f q.db*
    with "program: [python3, good.py]"
    "$LANEWAY" topics create --all c.yaml >out 2>&1 || fail "no topics: $(cat out)"
    printf '%s\n' "$@" | "$LANEWAY" send -c c.yaml a 2>out || fail "nothing was sent: $(cat out)"
}

# run_service [LIMIT...]: in the background, perhaps under prlimit.
run_service()
{
    : >log
    "$@" "$LANEWAY" run -c c.yaml 2>log &
    service=$!
}

# A good handler gets every message, and none a second time.
untouched()
{
    with "program: [python3, good.py]"
    run_service
    timeout 60 "$LANEWAY" peek -c c.yaml -n 2 r >out 2>err
    sort out | tr '\n' ' ' | grep -qx "m0 run 1 m1 run 1 " || fail "$1: afterwards: $(cat out err)"
    kill -TERM $service
    ends_with 0 $service
    "$LANEWAY" peek -c c.yaml -e a.dlq 2>/dev/null | grep . && fail "$1: a dead letter"
}

# until_down: whether the service stands and says that its handler is down, before it ends.
until_down()
{
    while kill -0 $service 2>/dev/null; do
        grep -qF "handler.down" log && grep -qF "broker.up" log && return 0
        sleep 0.05
    done
    return 1
}

# down CODE WHY HELP [LIMIT...]: the handler of c.yaml is down for that reason, and nothing else is.
down()
{
    local code=$1 why=$2 help=$3
    shift 3
    run_service "$@"
    is_down "$code" "$why" "$help"
}

# As many descriptors as the service needs to start, and none for the handler.
down_without_descriptors()
{
    local limit
    for limit in $(seq 10 40); do
        run_service prlimit "--nofile=$limit"
        until_down && break
        wait $service
    done
    is_down E0602 "Too many open files" "ulimit -n"
}

# is_down CODE WHY HELP: of the service that runs.
is_down()
{
    local code=$1 why=$2 help=$3
    wait_for log "$code"
    grep -F "handler.down" log | grep -F -- "$why" | grep -qF -- "$help" ||
        fail "$why: the log does not say so and what helps: $(cat log)"
    expect 0 "a: handler down: handler \"h\" cannot start" "" -- status
    expect 0 "$why" "" -- status
    kill -TERM $service
    wait $service
    local got=$?
    [ $got -eq 0 ] || [ $got -eq 75 ] || fail "$why: run ended with $got"
    untouched "$why"
}

# -- the drain's deadline: TERM and some time, then KILL; beside the rest, since it takes its time --
mkdir slow && cd slow && cp ../good.py . || exit 1
queue m0 m1
cat >slow.py <<'P'
import os, signal, sys
def end(number, frame):
    open("told", "a").write("TERM\n")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
print("{\"ready\":{\"protocol\":1}}", flush=True)
sys.stdin.readline()
sys.stdin.readline()
open("begun", "w").close()
while True:
    signal.pause()
P
with "program: [python3, slow.py], workers: 1" "drain_timeout: 10s"
"$LANEWAY" run --no-control -c c.yaml 2>log &
drained=$!
for _ in $(seq 1200); do [ -e begun ] && break; sleep 0.05; done
begin=$(date +%s)
kill -TERM $drained
(tail --pid=$drained -f /dev/null; date +%s >ended) &
cd ..

# -- programs --
queue m0 m1
printf 'cat\n' >noline && chmod +x noline
with "program: [./noline]"
down E0602 "./noline: Exec format error" "a script whose first line is #!"
queue m0 m1
printf '#!/none/such\n' >nowhere && chmod +x nowhere
with "program: [./nowhere], protocol: once"
down E0602 "./nowhere: No such file or directory" "the file is there"
queue m0 m1
with "program: [python3, good.py], protocol: frames"
down E0602 "it was spoken to in frames; one that speaks lines needs" "is paused"
queue m0 m1
with "program: [sh, -c, 'echo \"{\\\"ready\\\":{\\\"protocol\\\":2}}\"; cat']"
down E0602 "it speaks protocol 2, this version speaks 1" "is paused"

# -- what the system refuses: it is said, and status can be asked for it --
if command -v prlimit >/dev/null; then
    queue m0 m1
    with "program: [python3, good.py], workers: 1"
    down_without_descriptors
    queue m0 m1
    with "plugin: $BUILD_DIR/tests/plugins/obey.so, engine: processes, workers: 1"
    down_without_descriptors
    queue m0 m1
    with "plugin: $BUILD_DIR/tests/plugins/obey.so, engine: processes, processes: { ring: 64MiB }"
    down E0602 "File too large" "ulimit -f" prlimit --fsize=33554432
fi

# -- what is charged: a message that ends its program is dead after its runs, by default --
queue m0 bad
cat >dies.py <<'P'
import os, sys
exec(open("good.py").read().replace("    else:", "    elif m['value'] == 'bad':\n        os._exit(3)\n    else:"))
P
with "program: [python3, dies.py]"
sed -i 's/topics: \[ a \]/topics: [ a ], retry: { in_place_backoff: { initial: 10ms, max: 10ms, jitter: 0 } }/' c.yaml
run_service
timeout 60 "$LANEWAY" peek -c c.yaml -n 1 -f '%s %h\n' a.dlq >out 2>err
grep -q "bad.*the handler's process ended: exit 3.*x-retry-attempt=3" out ||
    fail "no dead letter after three runs: $(cat out err log)"
kill -TERM $service
ends_with 0 $service

# -- the drain's deadline, from above --
cd "$work/slow" || exit 1
ends_with 75 $drained
for _ in $(seq 600); do [ -s ended ] && break; sleep 0.05; done
[ $(($(cat ended) - begin)) -ge 8 ] || fail "the drain lasted $(($(cat ended) - begin)) s"
grep -q TERM told 2>/dev/null || fail "the program was killed without a word: $(cat log)"
cp ../good.py .
untouched "a drain that passed"
finish
