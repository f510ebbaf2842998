#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Confirms orders such as {"id": 7}, as confirm_order.py does, in the shell alone. Good for orders
# of this shape; anything richer wants a JSON parser.

# number NAME: the number that follows "NAME": in the rest of the line, or nothing.
number() {
    rest=${line#*"$1\":"}
    [ "$rest" != "$line" ] || { found=; return; }
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
    number '"retries'
    retries=${found:-0}
    number '\"fails\'
    fails=${found:-0}
    number '\"id\'
    order=$found
    if [ -z "$order" ]; then
        echo "{\"id\":$id,\"result\":\"dead\",\"reason\":\"bad order: no id\"}"
    elif [ "$retries" -lt "$fails" ]; then
        echo "{\"id\":$id,\"result\":\"retry\",\"reason\":\"database timeout\"}"
    else
        echo "{\"id\":$id,\"result\":\"ok\",\"reply\":\"{\\\"confirmed\\\": $order}\"}"
    fi
done
