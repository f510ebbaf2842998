#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/broker says what is missing and skips, obeys KAFKA_BOOTSTRAP, and never stops a broker that
# somebody else started. Nothing is fetched or started here.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LANEWAY_BROKER_DIR=$work/state LANEWAY_CACHE=$work/cache
unset KAFKA_BOOTSTRAP LANEWAY_BROKER_OWNER
broker()
{
    "$root/tools/broker" "$@" >"$work/out" 2>"$work/err"
}
# expect CODE TEXT WORDS...: that exit code, and TEXT on stdout or stderr.
expect()
{
    local code=0 wanted=$1 text=$2
    shift 2
    broker "$@" || code=$?
    if [ "$code" -ne "$wanted" ] || { [ -n "$text" ] && ! cat "$work/out" "$work/err" | grep -qF -- "$text"; }; then
        echo "broker $*: exit $code, expected $wanted and '$text'" && cat "$work/out" "$work/err" && exit 1
    fi
}

expect 64 "no broker named"
expect 64 "no broker named nonsense" nonsense start
expect 64 "no command nonsense" kafka nonsense
expect 64 "--set needs a value" kafka start --set
expect 1 "not started" kafka status
expect 1 "nothing to restart" kafka restart
expect 1 "is not started" kafka address
expect 0 "" kafka stop

# A machine without Java, one without Maven, and one without network: each skips by its reason.
mkdir "$work/bin"
for tool in bash mkdir rm mv sed cut paste cat python3 flock dirname ls tail grep; do
    ln -s "$(command -v $tool)" "$work/bin/$tool"
done
PATH=$work/bin expect 77 "needs java" kafka start
printf '#!/bin/bash\nexit 0\n' >"$work/bin/java" && chmod +x "$work/bin/java"
PATH=$work/bin expect 77 "needs mvn" kafka start
printf '#!/bin/bash\nexit 1\n' >"$work/bin/mvn" && chmod +x "$work/bin/mvn"
PATH=$work/bin expect 77 "could not be fetched" kafka start

export KAFKA_BOOTSTRAP=broker.example:9092
expect 0 "broker.example:9092" kafka start
expect 0 "broker.example:9092" kafka address
expect 0 "" kafka stop
expect 77 "KAFKA_BOOTSTRAP" kafka kill
expect 77 "KAFKA_BOOTSTRAP" kafka restart

# A pid of somebody else's process, whose start time is another, is left alone.
unset KAFKA_BOOTSTRAP
mkdir -p "$work/state/kafka/node-1"
echo "$$ 1" >"$work/state/kafka/node-1/pid"
expect 1 "node 1 is dead" kafka status
expect 0 "" kafka kill
expect 0 "" kafka stop
echo "broker: skips by name, obeys KAFKA_BOOTSTRAP, kills only its own"
