#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/broker pulsar says what is missing and skips, obeys PULSAR_URL, never stops a broker that
# somebody else started, and makes the tokens that it says. Nothing is fetched or started here.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LANEWAY_BROKER_DIR=$work/state LANEWAY_CACHE=$work/cache
unset PULSAR_URL PULSAR_ADMIN_URL LANEWAY_BROKER_OWNER
broker()
{
    "$root/tools/broker" pulsar "$@" >"$work/out" 2>"$work/err"
}
# expect CODE TEXT WORDS...: that exit code, and TEXT on stdout or stderr.
expect()
{
    local code=0 wanted=$1 text=$2
    shift 2
    broker "$@" || code=$?
    if [ "$code" -ne "$wanted" ] || { [ -n "$text" ] && ! cat "$work/out" "$work/err" | grep -qF -- "$text"; }; then
        echo "pulsar $*: exit $code, expected $wanted and '$text'" && cat "$work/out" "$work/err" && exit 1
    fi
}

expect 64 "no command nonsense" nonsense
expect 64 "--set needs a value" start --set
expect 64 "start takes no nonsense" start nonsense
expect 64 "--wrong-host is for --tls" start --wrong-host
expect 64 "is for the variant --token" token laneway
expect 1 "not started" status
expect 1 "nothing to restart" restart
expect 1 "is not started" address
expect 1 "is not started" admin list
expect 0 "" stop
expect 0 "unload TOPIC" admin -h

# A machine without Java, one without Maven, and one without network: each skips by its reason.
mkdir "$work/bin"
for tool in bash mkdir rm mv sed cut paste cat python3 flock dirname ls tail grep; do
    ln -s "$(command -v $tool)" "$work/bin/$tool"
done
PATH=$work/bin expect 77 "needs java" start
printf '#!/bin/bash\nexit 0\n' >"$work/bin/java" && chmod +x "$work/bin/java"
PATH=$work/bin expect 77 "needs mvn" start
printf '#!/bin/bash\nexit 1\n' >"$work/bin/mvn" && chmod +x "$work/bin/mvn"
PATH=$work/bin expect 77 "could not be fetched" start

export PULSAR_URL=pulsar://broker.example:6650
expect 0 "$PULSAR_URL" start
expect 0 "$PULSAR_URL" address
expect 0 "PULSAR_URL=$PULSAR_URL" info
expect 0 "" stop
expect 77 "PULSAR_URL" kill
expect 77 "PULSAR_URL" restart
expect 77 "PULSAR_ADMIN_URL is not" admin list
PULSAR_ADMIN_URL=http://broker.example:8080 expect 0 "http://broker.example:8080" address --admin
unset PULSAR_URL

# A pid of somebody else's process, whose start time is another, is left alone.
mkdir -p "$work/state/pulsar-token/token"
printf '%d\n' 1 2 3 4 5 >"$work/state/pulsar-token/ports"
echo "$$ 1" >"$work/state/pulsar-token/pid"
expect 1 "Pulsar is dead" status --token
expect 0 "" kill --token
expect 0 "pulsar://127.0.0.1:1" address --token
expect 0 "http://127.0.0.1:2" address --token --admin

# The token of RFC 7515's kind: header, claims, and the HMAC that openssl finds, too.
key=$work/state/pulsar-token/token/secret.key
printf 0123456789abcdef0123456789abcdef >"$key"
url_text() { base64 -w0 | tr -d = | tr /+ _-; }
signature() { printf %s "$1" | openssl dgst -sha256 -hmac "$(<"$key")" -binary | url_text; }
expect 0 "$(printf '{"alg":"HS256"}' | url_text).$(printf '{"sub":"laneway"}' | url_text)." \
    token --token laneway
[ "$(signature "$(cut -d. -f1,2 "$work/out")")" = "$(cut -d. -f3 "$work/out")" ]
now=$(date +%s)
broker token --token laneway 100
claims=$(cut -d. -f2 "$work/out" | tr _- /+)
end=$(printf %s "$claims$(printf '=%.0s' $(seq $((-${#claims} & 3))))" | base64 -d 2>/dev/null |
    sed 's/.*"exp"://; s/}//')
[ "$end" -ge $((now + 100)) ] && [ "$end" -le $((now + 110)) ]

expect 0 "" stop --token
[ ! -e "$work/state/pulsar-token" ]
echo "pulsar: skips by name, obeys PULSAR_URL, kills only its own, signs as it should"
