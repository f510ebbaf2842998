#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Confirms one order such as {"id": 7} and ends: protocol "once" runs it for each message. The order
# is on standard input, the reply goes to standard output, the exit code is the result.
order=$(cat)

# number NAME: prints the number that follows "NAME": in the order, or nothing.
number() {
    case $order in
    *"\"$1\":"*) ;;
    *) return ;; # looked for first: to cut what is not there takes a shell for ever in a long text
    esac
    rest=${order#*"\"$1\":"}
    rest=${rest# }
    printf '%s' "${rest%%[!0-9]*}"
}

id=$(number id)
fails=$(number fails)
if [ -z "$id" ]; then
    echo "bad order: no id" >&2
    exit 65     # EX_DATAERR: dead
elif [ "$LANEWAY_ATTEMPT" -le "${fails:-0}" ]; then
    echo "database timeout" >&2
    exit 75     # EX_TEMPFAIL: retry
fi
printf '{"confirmed": %s}' "$id"
