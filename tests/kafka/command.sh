#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The command on a real Kafka, as a user would try it: topics, send, run, status, peek; the exit
# codes of a drain that ends in time, of one that does not, and of a policy that stops.
set -uo pipefail
. "$(dirname "$0")/../cli/_lib.sh"
[ -n "${KAFKA_BOOTSTRAP:-}" ] || exit 77
cd "$work" || exit 1
id=cmd-$$-$RANDOM
url=kafka://$KAFKA_BOOTSTRAP

write_config() # HANDLER MORE-OF-THE-PIPELINE
{
    cat >shop.yaml <<Y
version: 1
service: { name: shop, concurrency: 4, drain_timeout: ${drain_timeout:-20s} }
brokers: { main: { url: "$url" } }
handlers: { work: $1 }
pipelines:
  orders: { broker: main, handler: work, consumer: { group: $id, properties: { auto.offset.reset: earliest } },
            reply: { topic: $id.replies }, $2
            topics: [ { name: $id.urgent, priority: 10 }, { name: $id.bulk, priority: 20 } ] }
Y
}

start()
{
    : >log
    "$LANEWAY" run -c shop.yaml 2>log &
    pid=$!
    wait_for log "kafka.assigned"
}

# How many messages a topic holds, once it holds N or two minutes are over.
count_of() # TOPIC N
{
    local count=0
    for _ in $(seq 1200); do
        count=$("$LANEWAY" peek -b "$url" "$1" -e -f '%o\n' | wc -l)
        [ "$count" -ge "$2" ] && break
        sleep 0.1
    done
    echo "$count"
}

write_config "{ builtin: echo }" ""
expect 0 "not found" "W0314" -- check --connect shop.yaml
expect 1 "" "" -- check --connect --strict shop.yaml
expect 0 "missing: create --all makes it" "" -- topics plan shop.yaml
expect 0 "created" "" -- topics create --all --partitions 3 shop.yaml
expect 0 "there" "" -- topics create --all shop.yaml
# It looks again by itself before it says "not found"; a busy broker may take longer than that.
for _ in $(seq 30); do "$LANEWAY" check --connect --strict shop.yaml >/dev/null 2>&1 && break; done
expect 0 "connected: $url" "" -- check --connect --strict shop.yaml

# send and peek
for i in $(seq 200); do echo "key $((i % 7)):value $i"; done |
    "$LANEWAY" send -b "$url" -K : -H trace=abc "$id.bulk" 2>err || fail "send: $(cat err)"
grep -q "sent 200, failed 0" err || fail "send says: $(cat err)"
printf 'k:\n:v\nplain\n' | "$LANEWAY" send -c shop.yaml -q -K : -Z "$id.urgent" || fail "send -Z"
"$LANEWAY" peek -b "$url" "$id.urgent" -e --json >out
python3 - <<'P' || fail "peek shows otherwise: $(cat out)"
import json
shown = sorted((json.loads(line) for line in open("out")), key=lambda m: str(m["value"]))
assert [(m["key"], m["value"]) for m in shown] == [("k", None), (None, "plain"), (None, "v")], shown
P
[ "$("$LANEWAY" peek -b "$url" "$id.bulk" -e -f '%k|%s|%h\n' | sort -u | grep -c '^key [0-9]|value [0-9]*|trace=abc$')" = 200 ] ||
    fail "peek of 200 messages"
[ "$("$LANEWAY" peek -b "$url" "$id.bulk" -n 5 | wc -l)" = 5 ] || fail "peek -n"
[ "$("$LANEWAY" peek -b "$url" "$id.bulk" -p 0 -o -2 -e | wc -l)" = 2 ] || fail "peek of the last two"
expect 66 "" "does not exist" -- peek -b "$url" "$id.nothing" -e
expect 66 "" "none of number 9" -- peek -b "$url" "$id.bulk" -p 9 -e
head -c 3000000 /dev/zero | tr '\0' x | "$LANEWAY" send -b "$url" "$id.bulk" 2>err
[ $? -eq 65 ] || fail "a message that is too large: $(cat err)"
grep -q "line 1 was not accepted" err || fail "no line number: $(cat err)"

# run until all is handled, ask it, drain it
start
[ "$(count_of "$id.replies" 203)" -ge 202 ] || fail "replies are missing" # the null value has none
expect 0 "1st     $id.urgent" "" -- status
expect 0 "draining" "" -- drain
ends_with 0 "$pid"
start
expect 0 '"received":0' "" -- status --json
kill -TERM "$pid"
ends_with 0 "$pid"

# A handler that is still running at the deadline: 75 at once, and the message comes again.
drain_timeout=1s
write_config '{ builtin: "sleep:1h", engine: threads, timeout: 2h }' ""
echo slow | "$LANEWAY" send -b "$url" -q "$id.urgent"
start
for _ in $(seq 1200); do "$LANEWAY" explain | grep -q "its handler runs" && break; sleep 0.1; done
kill -TERM "$pid"
ends_with 75 "$pid"
grep -q "service.unfinished" log || fail "not said: $(cat log)"
start
for _ in $(seq 1200); do "$LANEWAY" explain | grep -q "its handler runs" && break; sleep 0.1; done
kill -INT "$pid"
wait_for log "service.draining"
kill -INT "$pid"
ends_with 130 "$pid"
drain_timeout=20s
write_config "{ builtin: echo }" ""
start
for _ in $(seq 1200); do "$LANEWAY" status --json | grep -q '"received":1' && break; sleep 0.1; done
expect 0 '"received":1' "" -- status --json
kill -TERM "$pid"
ends_with 0 "$pid"

# A policy that stops: 79, and the message stays.
write_config '{ builtin: "fail-n:9" }' "retry: { in_place: true, max_attempts: 1 }, dead_letter: none, on_exhausted: stop,"
echo bad | "$LANEWAY" send -b "$url" -q "$id.urgent"
"$LANEWAY" run -c shop.yaml 2>log
[ $? -eq 79 ] || fail "stopped otherwise: $(cat log)"
grep -q "E0710" log || fail "the stop is not explained: $(cat log)"
finish
