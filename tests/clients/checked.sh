#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# `laneway handler check` finds nothing to mend at the examples, which speak through both clients or
# for themselves.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
modules=$(mktemp -d)
trap 'rm -rf "$modules"' EXIT
ln -s "$root/clients/node" "$modules/laneway"
export PYTHONPATH=$root/clients/python NODE_PATH=$modules PYTHONDONTWRITEBYTECODE=1
failures=0

# check PROTOCOL NAME VALUE PROGRAM...: as a service would start that handler.
check()
{
    "$LANEWAY" handler check --strict --timeout 60s --protocol "$1" --name "$2" --value "$3" "${@:4}" \
        >"$modules/out" || { cat "$modules/out"; failures=$((failures + 1)); }
    echo "${*:4}, $1: $(grep '^\(not \)\?fit' "$modules/out")"
}

cd "$root/examples" || exit 1
check lines digest 'a document' python3 cpu-bound/digest.py
check lines price-order '{"id": 7, "item": "lamp"}' python3 io-bound/price_order.py
for protocol in lines frames; do
    check $protocol confirm-order '{"id": 7}' python3 languages/confirm.py
    if command -v node >/dev/null; then
        check $protocol confirm-order '{"id": 7}' node languages/confirm.js
    fi
done
check lines confirm-order '{"id": 7}' sh languages/confirm.sh
check once confirm-order '{"id":7}' sh languages/confirm_once.sh
cc -o "$modules/confirm-c" languages/confirm.c -ljansson || failures=$((failures + 1))
check lines confirm-order '{"id": 7}' "$modules/confirm-c"
if command -v go >/dev/null; then
    go build -o "$modules/confirm-go" languages/confirm.go || failures=$((failures + 1))
    check lines confirm-order '{"id": 7}' "$modules/confirm-go"
fi
exit $((failures > 0))
