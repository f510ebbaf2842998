#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/check-banned finds each kind of forbidden line, and only outside its home.
set -eu
check=$(cd "$(dirname "$0")/../.." && pwd)/tools/check-banned
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/src/{base,core,brokers/kafka}

write()
{
    printf '/* SPDX-License-Identifier: Apache-2.0 */\n%s\n' "$2" >"$root/src/$1"
}

accept()
{
    write "$1" "$2"
    "$check" --root "$root" >/dev/null || { echo "refused in $1: $2" && exit 1; }
    rm "$root/src/$1"
}

refuse()
{
    write "$1" "$2"
    ! "$check" --root "$root" >/dev/null || { echo "accepted in $1: $2" && exit 1; }
    rm "$root/src/$1"
}

for line in 'strcpy(a, b);' 'x = atoi(s);' 'x = rand();' 'p = malloc(1);' 'free(p);' \
    'p = strdup(s);' 't = time(NULL);' 'clock_gettime(CLOCK_MONOTONIC, &t);' 'usleep(1);' \
    'assert(x);' 'system("ls");' 'x = (int)sprintf (b, "%d", 1);' '#include <uv.h>' \
    '#include <librdkafka/rdkafka.h>' '#include <threads.h>' "/* TO"'DO later */' '// FIX'ME; do
    refuse core/lane.c "$line"
done
accept base/alloc.c 'p = malloc(1); free(p);'
accept base/clock.c 'clock_gettime(CLOCK_MONOTONIC, &t);'
accept base/loop.c '#include <uv.h>'
accept brokers/kafka/client.c '#include <librdkafka/rdkafka.h>'
accept core/lane.c '/* strcpy(a, b) would not do */ x = "malloc(1)"; lw_free(p); host->time(h);'
accept core/lane.c 'free(text); /* banned-ok: the library allocated it */'
printf 'int x;\n' >"$root/src/core/lane.c"
! "$check" --root "$root" >/dev/null || { echo "accepted without SPDX" && exit 1; }
echo "check-banned: all faults found"
