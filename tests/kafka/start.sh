#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# docs/start.md works as it stands: its files are written and its commands are run in their order,
# from the handler on, with topics, group and address of this test.
set -euo pipefail
page=$(cd "$(dirname "$0")/../.." && pwd)/docs/start.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export TMPDIR=$work XDG_RUNTIME_DIR=$work
unset LANEWAY_CONFIG LANEWAY_URL
PATH=$(dirname "$LANEWAY"):$PATH

sed -n '/^## A handler/,/^## Next/p' "$page" |
    sed "s/localhost:9092/$KAFKA_BOOTSTRAP/; s/group: shop/group: shop$$/
         s/orders\.\(urgent\|bulk\|confirmed\)/start$$.\1/g" >page
awk '/^`[a-z.]+`:$/ { gsub(/[`:]/, ""); file = $0 }
     /^```/ { is_in = !is_in && /yaml|python/; if (!is_in && !/yaml|python/) file = ""; next }
     is_in && file { print >file }' page
sed -n 's/^    \(laneway\|printf\|wait\)/\1/p' page >commands

fail() { echo "FAILED: $1"; tail -n 40 out err shop.log; exit 1; }
[ -s shop.yaml ] || fail "no configuration on the page"
[ -s confirm.py ] || fail "no handler on the page"
[ "$(wc -l <commands)" -ge 12 ] || fail "too few commands on the page"
timeout -k 5 300 bash -eux commands >out 2>err || fail "exit code $?"
grep -q 'shop.yaml: ok (2 topics, 1 pipeline, 1 handler)' out || fail "check"
[ "$(grep -c ' created$' out)" -eq 5 ] || fail "topics create"
[ "$(grep -c '^{"confirmed": [123]}$' out)" -eq 3 ] || fail "replies"
grep -q "^ben {} x-error-reason=bad order: 'id'," out || fail "dead letter"
grep -q 'paused: by .* "stock taking"' out || fail "pause"
grep -q '"event":"service.closed".*"status":"ok","given_back":0' shop.log || fail "drain"
echo "docs/start.md: $(wc -l <commands) commands, all as it says"
