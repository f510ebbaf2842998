#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Confirms orders such as {"id": 7} in the shell alone. {"id": 7, "fails": 1} fails once before it
# works. Good for orders of this shape; anything richer wants a JSON parser.

# number NAME: puts the number that follows NAME": in the rest of the line into $found, or nothing.
number() {
    found=
    case $line in
    *"$1\":"*) ;;
    *) return ;; # looked for first: to cut what is not there takes a shell for ever in a long line
    esac
    rest=${line#*"$1\":"}
    rest=${rest# }
    found=${rest%%[!0-9]*}
}

while IFS= read -r line; do
    case $line in
    '{"hello":'*)
        echo '{"ready":{"protocol":1}}'
        continue
        ;;
    esac
    number '{"id'
    id=$found
    number '"attempt'
    attempt=$found
    number '\"fails\'
    fails=${found:-0}
    number '\"id\'
    order=$found
    if [ -z "$order" ]; then
        echo "{\"id\":$id,\"result\":\"dead\",\"reason\":\"bad order: no id\"}"
    elif [ "$attempt" -le "$fails" ]; then
        echo "{\"id\":$id,\"result\":\"retry\",\"reason\":\"database timeout\",\"delay\":\"10ms\"}"
    else
        echo "{\"id\":$id,\"result\":\"ok\",\"reply\":\"{\\\"confirmed\\\":$order}\"}"
    fi
done
