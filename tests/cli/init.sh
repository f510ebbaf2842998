#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What `laneway init` prints and writes is what lies in examples/, is right as it stands, and never
# overwrites anything.
set -uo pipefail
. "$(dirname "$0")/_lib.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)

"$root/tools/embed-starters" --check || fail "the starters are not current"
expect 0 "six-lanes" "" -- init
expect 64 "" 'there is no starter "six-lane"; did you mean "six-lanes"?' -- init six-lane
expect 64 "" 'there is no starter "x": laneway init lists them' -- init x
expect 64 "" 'at most one folder' -- init six-lanes a b
for name in $("$LANEWAY" init | cut -d' ' -f1); do
    expect 0 "$work/$name/README.md" "" -- init "$name" "$work/$name"
    diff -r "$root/examples/$name" "$work/$name" || fail "$name differs from examples/$name"
    file=$(basename "$work/$name"/*.yaml)
    "$LANEWAY" init "$name" | cmp - "$root/examples/$name/$file" || fail "$name is printed otherwise"
    for program in "$work/$name"/handlers/*; do
        [ ! -e "$program" ] || [ -x "$program" ] || fail "$program cannot be executed"
    done
    expect 73 "" "File exists" -- init "$name" "$work/$name"
done
: >"$work/file"
expect 73 "" "cannot write $work/file" -- init six-lanes "$work/file"
mkdir -p "$work/half/handlers"
: >"$work/half/handlers/confirm_order.py"
expect 73 "" "File exists" -- init six-lanes "$work/half"
[ ! -e "$work/half/orders.yaml" ] || fail "something was written beside what exists"
expect 0 "ok (6 topics, 1 pipeline, 1 handler)" "" -- check --strict "$work/six-lanes/orders.yaml"
expect 0 "ok (4 topics, 2 pipelines, 1 handler)" "" -- check --strict "$work/three-topics/events.yaml"
expect 0 "6th          250  orders_batch_retry" "" -- plan "$work/six-lanes/orders.yaml"
finish
