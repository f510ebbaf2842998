#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each bad edge is found by tools/check-layers, and a good tree passes.
set -eu
check=$(cd "$(dirname "$0")/../.." && pwd)/tools/check-layers
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{include/laneway,src/{base,core,policy,dispatcher,service,cli}}
mkdir -p "$root"/src/{engines/common,engines/programs,brokers/kafka,brokers/memory,brokers/pulsar/wire}
touch "$root"/include/laneway/laneway.h "$root"/src/base/{text,list}.h "$root"/src/core/lane.h
touch "$root"/src/service/api.h "$root"/src/dispatcher/dispatcher.h
touch "$root"/src/brokers/memory/topic.h "$root"/src/brokers/names.h
touch "$root"/src/engines/loop.{c,h} "$root"/src/engines/common/file.{c,h} "$root"/src/brokers/pulsar/wire/frame.h

put()
{
    printf '#include %s\n' "${@:2}" >"$root/src/$1"
}

expect()
{
    if output=$("$check" --root "$root"); then
        echo "accepted, though: $1" && exit 1
    fi
    grep -q "$1" <<<"$output" || { echo "missing '$1' in: $output" && exit 1; }
    rm "$root/src/$2"
}

put core/lane.c '"core/lane.h"' '"base/text.h"' '<laneway/laneway.h>' '<stdio.h>'
put service/api.c '"brokers/memory/topic.h"' '"dispatcher/dispatcher.h"'
put engines/programs/b.c '"engines/common/file.h"'
put brokers/kafka/client.c '"brokers/names.h"' '"core/lane.h"'
"$check" --root "$root"
put base/text.c '"core/lane.h"' && expect 'base must not include core' base/text.c
put policy/judge.c '"service/api.h"' && expect 'policy must not include service' policy/judge.c
put dispatcher/a.c '"brokers/names.h"' && expect 'must not include brokers' dispatcher/a.c
put engines/threads.c '"brokers/names.h"' && expect 'must not include brokers' engines/threads.c
put brokers/kafka/a.c '"brokers/memory/topic.h"' && expect siblings brokers/kafka/a.c
put engines/programs/a.c '"engines/loop.h"' && expect siblings engines/programs/a.c
put brokers/pulsar/wire/a.c '"core/lane.h"' && expect 'must not include core' brokers/pulsar/wire/a.c
put brokers/kafka/b.c '"brokers/pulsar/wire/frame.h"' && expect 'pulsar/wire' brokers/kafka/b.c
put cli/main.c '"nowhere.h"' && expect 'no such file: nowhere.h' cli/main.c
put base/list.h '"base/a.h"' && put base/a.h '"base/list.h"' && expect cycle: base/a.h
echo "check-layers: all bad edges found"
