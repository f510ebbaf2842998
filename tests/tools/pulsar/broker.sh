#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The real Pulsar of tools/broker, seen with the official client: messages and topics outlive a
# SIGKILL, a message of the maximum size is answered, TLS and tokens let in whom they should, and
# nothing runs afterwards, also when the start is interrupted or its owner dies.
set -eu
root=$(cd "$(dirname "$0")/../../.." && pwd)
work=$(mktemp -d)
export LANEWAY_BROKER_DIR=$work/state
unset PULSAR_URL PULSAR_ADMIN_URL PULSAR_TOKEN_FILE
pulsar() { timeout 120 "$root/tools/broker" pulsar "$@"; }
finish()
{
    local code=$? variant
    for variant in "" "--tls --wrong-host" "--token --tls"; do
        # shellcheck disable=SC2086
        pulsar stop $variant || code=1
    done
    rm -rf "$work"
    exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM
# equal FOUND EXPECTED WHAT
equal() { [ "$1" = "$2" ] || { echo "$3: '$1' instead of '$2'"; exit 1; }; }
# refused ERROR WORDS...: the official client cannot publish, for that reason.
refused()
{
    local error=$1
    shift
    if pulsar client "$@" >"$work/out" 2>&1 || ! grep -q "$error" "$work/out"; then
        echo "client $*: not refused with $error" && cat "$work/out" && exit 1
    fi
}
begin=$(date +%s%N)
took() { echo "$1: $((($(date +%s%N) - begin) / 1000000)) ms" && begin=$(date +%s%N); }

# An interrupted start leaves neither a process nor its state.
"$root/tools/broker" pulsar start >"$work/out" 2>&1 &
starting=$!
until [ -s "$work/state/pulsar/pid" ]; do
    # It may end by itself: this machine cannot run Pulsar.
    kill -0 $starting || { cat "$work/out" && wait $starting && exit 1 || exit $?; }
    sleep 0.02
done
read -r pid _ <"$work/state/pulsar/pid"
kill -TERM $starting
code=0
wait $starting || code=$?
equal $code 130 "code of an interrupted start"
equal "$(cat "$work/state/pulsar/id" "/proc/$pid/stat" 2>/dev/null)" "" "left of it"

took interrupted
url=$(pulsar start) || exit $?
took "plain start"
equal "$(pulsar address)" "$url" address
pulsar python >/dev/null || exit $?
pulsar admin create grown 2 && pulsar admin grow grown 4
pulsar admin subscribe kept shelf
pulsar client produce kept 300 --single --keys 5
equal "$(pulsar admin backlog kept shelf)" '{"entries": 300, "unacked": 0}' backlog
pulsar client produce kept 300 --keys 5 --first 300 --compression zstd
# The largest that the client lets out: its metadata counts too.
pulsar admin subscribe large shelf
pulsar client produce large 1 --single --keys 0 --size 5242800
begin=$(date +%s%N)
pulsar kill
equal "$(pulsar status || true)" "Pulsar is dead" status
equal "$(pulsar restart)" "$url" "address after the restart"
took "kill and restart"
equal "$(pulsar client consume shelf kept --count 600 | grep -c '"key":"k[0-4]"')" 600 survivors
equal "$(pulsar client consume shelf large | wc -c | sed 's/^52[0-9]*$/whole/')" whole "large message"
equal "$(pulsar admin backlog kept shelf 10)" '{"entries": 0, "unacked": 0}' "backlog after acks"
equal "$(pulsar admin partitions grown)" 4 partitions
pulsar stop
equal "$(pulsar status || true)" "not started" status

both=(--token --tls)
begin=$(date +%s%N)
pulsar start "${both[@]}" >"$work/url"
took "start with TLS and tokens"
equal "$(cut -d: -f1 "$work/url")" pulsar+ssl scheme
info=$(pulsar info "${both[@]}")
value() { sed -n "s/^$1=//p" <<<"$info"; }
pulsar admin "${both[@]}" subscribe asked s
for auth in token basic tls; do
    pulsar client "${both[@]}" --auth $auth produce asked 10
done
pulsar client "${both[@]}" --plain produce asked 10
pulsar token "${both[@]}" laneway 60 >"$work/ending"
PULSAR_TOKEN_FILE=$work/ending pulsar client "${both[@]}" produce asked 10
equal "$(pulsar client "${both[@]}" consume s asked --count 50 | wc -l)" 50 "messages over TLS"
PULSAR_TOKEN_FILE=$(value PULSAR_TOKEN_GUEST_FILE) \
    refused AuthorizationError "${both[@]}" produce asked 1
refused ConnectError "${both[@]}" --timeout 3 --ca "$(value PULSAR_OTHER_CA)" produce asked 1
# The official client tries again until its time is out.
pulsar token "${both[@]}" laneway -1 >"$work/ended"
PULSAR_TOKEN_FILE=$work/ended \
    refused "TimeOut\|AuthenticationError" "${both[@]}" --timeout 3 produce asked 1
pulsar stop "${both[@]}"

# With another process as its owner the broker goes when that goes.
sleep 300 &
owner=$!
begin=$(date +%s%N)
LANEWAY_BROKER_OWNER=$owner pulsar start --tls --wrong-host >"$work/url"
took "start with a wrong certificate"
refused ConnectError --tls --wrong-host --timeout 3 produce asked 1
read -r pid _ <"$work/state/pulsar-tls-wrong-host/pid"
kill $owner
timeout 20 tail -f --pid="$pid" /dev/null || { echo "it outlived its owner" && exit 1; }
echo "pulsar: survives SIGKILL, lets in whom it should, leaves nothing behind"
