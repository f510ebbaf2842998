#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A spool by the command alone: send, peek and topics with an owner and without one, a second owner, a
# kill, files that cannot be used, a limit on the size of files.
set -uo pipefail
. "$(dirname "$0")/_lib.sh"
cd "$work" || exit 1
if "$LANEWAY" send -b spool:probe.db probe </dev/null 2>&1 | grep -q E0508; then
    echo "built without the spool" >&2
    exit 77
fi

cat >shop.yaml <<'Y'
version: 1
service: { name: shop, concurrency: 4 }
brokers: { main: { url: "spool:shop.db", properties: { keep: 1h } } }
handlers: { work: { builtin: echo } }
pipelines:
  orders: { broker: main, handler: work, consumer: { group: g }, reply: { topic: done },
            topics: [ { name: urgent, priority: 10 }, { name: bulk, priority: 20 } ] }
Y

start()
{
    : >log
    "$LANEWAY" run -c shop.yaml 2>log &
    pid=$!
    wait_for log "broker.up"
}

send()
{
    "$LANEWAY" send -q "$@" || fail "send $*"
}

# peeked TOPIC COUNT: the topic has so many messages.
peeked()
{
    local got
    got=$("$LANEWAY" peek -b spool:shop.db -e "$1" | wc -l)
    [ "$got" -eq "$2" ] || fail "$1 has $got messages instead of $2"
}

# Without an owner.
expect 0 "made on first use" "" -- check --connect shop.yaml
[ ! -e shop.db ] || fail "a look made a file"
expect 66 "" "E0523" -- peek -b spool:shop.db -e urgent
[ ! -e shop.db-owner ] || fail "a look made a lock"
expect 0 "created" "" -- topics create --all shop.yaml
expect 0 "there" "" -- topics plan shop.yaml
[ "$(stat -c %a shop.db)" = 600 ] || fail "the file is for everybody"
expect 66 "" "E0503" -- peek -b spool:shop.db -e nothing
seq 100 | send -c shop.yaml bulk
printf 'a=1\nb=2\n' | send -b spool:shop.db -K = -H kind=x urgent
expect 0 "urgent 0 0 a 1 kind=x" "" -- peek -b spool:shop.db -e -n 1 -f '%t %p %o %k %s %h\n' urgent
expect 0 '"offset":99' "" -- peek -b spool:shop.db -e -o -1 --json bulk
peeked bulk 100
[ -z "$("$LANEWAY" peek -b spool:shop.db -e -o 9223372036854775807 urgent)" ] || fail "a number that no message has"

# Topics that are made have as many partitions as those that come by their use.
sed 's/keep: 1h/partitions: 3/; s/shop\.db/wide.db/' shop.yaml >wide.yaml
expect 0 "created" "" -- topics create --all wide.yaml
[ "$("$LANEWAY" topics plan --json wide.yaml | grep -o '"found":3' | wc -l)" -ge 3 ] || fail "not three partitions"

# Several at once, of whom the first to come serves the others, and a look that goes on meanwhile.
"$LANEWAY" peek -b spool:shop.db done &
looking=$!
senders=
for i in 1 2 3 4 5 6; do
    seq 20 | "$LANEWAY" send -q -b spool:shop.db many &
    senders="$senders $!"
done
for sender in $senders; do
    wait "$sender" || fail "one of several senders"
done
kill $looking
wait $looking 2>/dev/null
peeked many 120

# With one.
start
expect 69 "" "is in use by process $pid" -- run -c shop.yaml
send -c shop.yaml urgent <<<three
"$LANEWAY" peek -b spool:shop.db -n 103 done >replies || fail "peek through the owner"
[ "$(wc -l <replies)" -eq 103 ] && [ "$(sort -u replies | wc -l)" -eq 101 ] || fail "not every reply: $(wc -l <replies)"
expect 0 "there" "" -- topics plan shop.yaml
expect 0 "" "" -- drain
ends_with 0 $pid
[ ! -e shop.db-socket ] || fail "the socket stayed"
peeked done 103

# Killed: what was sent while it ran is there, and is handled by the next.
start
seq 1000 | sed 's/^/k/' | send -b spool:shop.db bulk
kill -KILL $pid
wait $pid 2>/dev/null
expect 0 "k1" "" -- peek -b spool:shop.db -e bulk
start
for _ in $(seq 2400); do
    [ "$("$LANEWAY" peek -b spool:shop.db -e done | grep -c '^k' )" -ge 1000 ] && break
    sleep 0.05
done
[ "$("$LANEWAY" peek -b spool:shop.db -e done | grep '^k' | sort -u | wc -l)" -eq 1000 ] ||
    fail "not all 1,000 were handled"
kill -TERM $pid
ends_with 0 $pid

# Files that cannot be used.
echo "a letter" >letter.db
expect 71 "" "E0521" -- send -b spool:letter.db urgent
grep -q "a letter" letter.db || fail "a foreign file was changed"
expect 66 "" "E0523" -- send -b spool:none/shop.db urgent
expect 64 "" "E0122" -- send -b spool: urgent
expect 64 "" "did you mean \"synchronous\"" -- send -b spool:shop.db -X synchronus=full urgent

# A limit on the size of files: some are refused, and all that were confirmed are there.
(ulimit -f 600; seq -f "%0500g" 4000 | "$LANEWAY" send -b spool:small.db full) 2>said
code=$?
[ $code -eq 69 ] || fail "a full file: exit code $code: $(tail -3 said)"
grep -q "E0524" said || fail "no E0524: $(head -5 said)"
confirmed=$(sed -n 's/^sent \([0-9]*\), failed .*/\1/p' said)
stored=$("$LANEWAY" peek -b spool:small.db -e full | wc -l)
[ "${confirmed:-0}" -gt 100 ] && [ "$stored" -ge "$confirmed" ] ||
    fail "confirmed ${confirmed:-nothing}, stored $stored"
seq 5 | send -b spool:small.db full
finish
