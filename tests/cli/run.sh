#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run with a broker in memory: ready line, signals, control socket, exit codes.
set -uo pipefail
. "$(dirname "$0")/_lib.sh"
cd "$work" || exit 1

cat >shop.yaml <<'Y'
version: 1
service: { name: shop, concurrency: 4 }
brokers: { main: { url: "memory:" } }
handlers: { work: { builtin: noop } }
pipelines:
  orders: { broker: main, handler: work, consumer: { group: g },
            topics: [ { name: urgent, priority: 10 }, { name: bulk, priority: 20 } ] }
Y

start()
{
    : >log
    "$LANEWAY" run -c shop.yaml "$@" 2>log &
    pid=$!
    wait_for log "service.ready"
}

start
grep -q "unix:$work/shop.sock" log || fail "no socket: $(cat log)"
python3 -c 'import json, sys; [json.loads(line) for line in open("log")]' || fail "a log line is no JSON"
[ "$(stat -c %a shop.sock)" = 600 ] || fail "the socket is for everybody"
expect 0 "1st     urgent" "" -- status
expect 0 "SERVED  TOPIC   STATE  WAITING  RUNNING  LAG  OLDEST  RATE/s  P50  P99  RETRYING  DEAD/h" "" -- status
expect 0 "1st     urgent  idle         0        0    0      --       0   --   --         0       0" "" -- status
expect 0 '"service":"shop"' "" -- status --json
expect 0 '"lag":0,"retry_lag":0,"p50_ms":null,"p99_ms":null,"dead_last_hour":0' "" -- status --json
expect 0 "no message is in hand" "" -- explain
expect 66 "" "E0204" -- explain nothing
expect 0 "paused orders/bulk" "" -- pause orders/bulk --reason "db migration" --for 10m
expect 0 'db migration' "" -- status
expect 0 "resumed orders" "" -- resume orders
expect 66 "" "E0205" -- pause nothing
expect 64 "" '--for "soon"' -- pause orders --for soon
expect 69 "" "E0803" -- status --url unix:/nowhere.sock
expect 0 "" "" -- status --url "unix:$work/shop.sock"
LANEWAY_URL=unix:$work/shop.sock expect 0 "urgent" "" -- status

# A second service of the same name gets a socket of its own, and status asks which.
first=$pid
start
wait_for log "control.taken"
second=$pid
expect 69 "" "2 services are running" -- status
expect 0 "draining" "" -- drain --url "unix:$work/shop-$second.sock"
ends_with 0 "$second"
kill -TERM "$first"
ends_with 0 "$first"
[ ! -e shop.sock ] || fail "the socket stays"
expect 69 "" "no running service" -- status

# A socket that a killed service left is replaced.
start
kill -KILL "$pid"
wait "$pid" 2>/dev/null
[ -e shop.sock ] || fail "no socket was left"
expect 69 "" "no running service" -- status
start
expect 0 "urgent" "" -- status
kill -INT "$pid"
ends_with 0 "$pid"

# Warnings are lines of the log: nothing else comes between JSON lines.
start --set service.drain_timeout=1s
kill -TERM "$pid"
ends_with 0 "$pid"
grep -q '"event":"config.note".*"code":"W0306"' log || fail "the note is not logged: $(cat log)"
python3 -c 'import json, sys; [json.loads(line) for line in open("log")]' || fail "a log line is no JSON"

# Errors before anything is started.
expect 78 "" "E0118" -- run -c shop.yaml --set service.nonsense=1
expect 66 "" "missing.yaml" -- run -c missing.yaml
expect 64 "" "--exit-on-outage" -- run -c shop.yaml --exit-on-outage never
expect 64 "" "" -- run -c shop.yaml --faults nonsense

# A broker that nobody reaches: waits for ever, or as long as it may.
: >log
"$LANEWAY" run -c shop.yaml --set brokers.main.url=kafka://127.0.0.1:1 --exit-on-outage 5s 2>log
[ $? -eq 69 ] || fail "an outage ends otherwise: $(cat log)"
grep -q "E0501" log || fail "the outage is not explained: $(cat log)"
finish
