#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# check, plan and topics: exit codes, places of errors, JSON, precedence of --set.
set -uo pipefail
. "$(dirname "$0")/_lib.sh"
cd "$work" || exit 1

cat >good.yaml <<'Y'
version: 1
service: { name: shop }
brokers: { main: { url: "memory:" } }
handlers: { work: { builtin: noop } }
pipelines:
  orders: { broker: main, handler: work, consumer: { group: g }, topics: [ { name: orders, priority: 10 } ] }
Y
sed 's/handler: work/handler: wrok/; s/priority: 10/priorty: 10/' good.yaml >bad.yaml

expect 0 "good.yaml: ok (1 topic, 1 pipeline, 1 handler)" "" -- check good.yaml
expect 0 "good.yaml: ok" "" -- check -c good.yaml
LANEWAY_CONFIG=good.yaml expect 0 "good.yaml: ok" "" -- check
expect 78 "" 'bad.yaml:6:' -- check bad.yaml
expect 78 "" 'did you mean "priority"?' -- check bad.yaml
expect 78 "" 'did you mean "work"' -- check bad.yaml
expect 78 '"ok":false' "" -- check --json bad.yaml
python3 -c '
import json, sys
report = json.load(open("out"))
assert report["ok"] is False and len(report["diagnostics"]) == 2, report
assert all(item["line"] == 6 and item["code"].startswith("E") for item in report["diagnostics"])
' || fail "the JSON of check is wrong"
expect 66 "" 'missing.yaml' -- check missing.yaml
expect 78 "" "" -- run -c bad.yaml
LANEWAY_SERVICE__CONCURENCY=3 expect 0 "" "LANEWAY_SERVICE__CONCURENCY" -- check good.yaml
LANEWAY_SERVICE__CONCURENCY=3 expect 1 "" "" -- check --strict good.yaml
expect 0 "in memory: topics are made on first use" "" -- check --connect good.yaml

expect 0 "service shop: 16 slots" "" -- plan good.yaml
expect 0 "service shop: 40 slots" "" -- plan --set service.concurrency=40 good.yaml
LANEWAY_SERVICE__CONCURRENCY=41 expect 0 "service shop: 41 slots" "" -- plan good.yaml
LANEWAY_SERVICE__CONCURRENCY=41 expect 0 "40 slots" "" -- plan --set service.concurrency=40 good.yaml
"$LANEWAY" plan --json good.yaml | python3 -m json.tool >/dev/null || fail "the plan is no JSON"

# -X is --set for one property of a broker's client, dots and all.
sed 's|memory:|kafka://127.0.0.1:1|' good.yaml >far.yaml
expect 0 'brokers.main.properties.ssl.ca.location' "" -- plan --json -X main:ssl.ca.location=ca:1=2.pem far.yaml
grep -q 'ca:1=2.pem' out || fail "the value of -X: $(cat out)"
expect 0 "" "" -- check -Xmain:client.rack=a --property main:client.id=b far.yaml
expect 78 "" 'brokers.other' -- check -X other:client.id=b far.yaml
expect 78 "" 'enable.auto.commit' -- check -X main:enable.auto.commit=true far.yaml
for wrong in client.id=b main:client.id :client.id=b main:=b main; do
    expect 64 "" "-X \"$wrong\" is not BROKER:NAME=VALUE" -- check -X "$wrong" far.yaml
    expect 64 "" "-X \"$wrong\" is not BROKER:NAME=VALUE" -- peek -c far.yaml -X "$wrong" orders
done
expect 64 "" 'is not NAME=VALUE, as -b wants it' -- peek -b kafka://127.0.0.1:1 -X main:client.id=b orders

expect 0 "orders.dlq" "" -- topics plan good.yaml
expect 0 "made on first use" "" -- topics create good.yaml
expect 64 "" 'say "plan" or "create"' -- topics show good.yaml
expect 64 "" "a memory broker lives inside one process" -- send -c good.yaml orders
expect 64 "" "say which broker" -- peek orders
expect 69 "E0501" "" -- check --connect --timeout 500ms --set brokers.main.url=kafka://127.0.0.1:1 good.yaml
expect 69 "" "E0501" -- topics create --timeout 500ms --set brokers.main.url=kafka://127.0.0.1:1 good.yaml

# Pulsar: what a wrong address was meant to be, options by the clients' names, types and units.
sed 's|memory:|pulsar://localhost|; s/consumer: { group: g }/consumer: { subscription: s }/' good.yaml >pulsar.yaml
expect 0 "ok (1 topic" "" -- check pulsar.yaml
wrong_url() # URL TEXT
{
    expect 78 "" "$2" -- check --set "brokers.main.url=$1" pulsar.yaml
    expect 64 "" "$2" -- peek -b "$1" orders
}
wrong_url localhost:6650 'did you mean "pulsar://localhost:6650"?'
wrong_url pulsars://localhost 'did you mean "pulsar+ssl://localhost"?'
wrong_url PULSAR://localhost 'did you mean "pulsar://localhost"?'
wrong_url http://localhost:8080 'admin API is the property admin_url'
wrong_url pulsar://localhost:66500 'a port is a number from 1 to 65535'
wrong_url pulsar://me:secret@localhost '"pulsar://***@localhost" is not an address of Pulsar'
wrong_url pulsar://localhost/x 'it has a path'
grep -q secret err && fail "a password is shown: $(cat err)"
wrong() # TEXT ARGUMENT...
{
    local text=$1
    shift
    expect 78 "" "$text" -- check "$@" pulsar.yaml
}
wrong 'did you mean "token"?' -X main:tokn=x
wrong 'write a bare number: the options of the clients have their unit in their name' \
    -X main:operation_timeout_seconds=5s
wrong 'write true or false' -X main:use_tls=yes
wrong 'it wants latest | earliest' -X main:initial_position=erliest
wrong 'did you mean "earliest"?' -X main:initial_position=erliest
wrong 'write admin_url: http://HOST:8080' -X main:admin_url=localhost:8080
wrong 'token is given, but auth_plugin is another one' -X main:token=x -X main:auth_plugin=basic
wrong 'it is one of none, token, basic, tls and oauth2' --set brokers.main.auth.plugin=kerberos
wrong 'E0415' -X main:authentication=x
wrong 'did you mean "key_shared"?' --set pipelines.orders.consumer.type=KeyShared
wrong '"ordering: key" cannot be kept on a shared subscription' --set pipelines.orders.ordering=key
expect 0 "" 'pulsar:// is without TLS; write pulsar+ssl://' -- check --set brokers.main.tls.trust_file=ca.pem pulsar.yaml
expect 78 "" '"exclusiv" is not a value' -- check --set pipelines.orders.consumer.type=exclusiv --set pipelines.orders.ordering=key pulsar.yaml
[ "$(grep -c 'error\[' err)" = 1 ] || fail "what follows from a wrong type is said too: $(cat err)"
expect 69 'cannot be reached at 127.0.0.1:1: Connection refused' "" -- check --connect --timeout 2s --set brokers.main.url=pulsar://127.0.0.1:1 pulsar.yaml
grep -q "Still trying" out && fail "check does not go on trying: $(cat out)"
expect 69 "not known" 'Connection refused' -- topics plan --timeout 2s --set brokers.main.url=pulsar://127.0.0.1:1 pulsar.yaml
expect 69 "" 'Connection refused' -- peek -b pulsar://127.0.0.1:1 orders
grep -q "Still trying" err && fail "peek does not go on trying: $(cat err)"
finish
