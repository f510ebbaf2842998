# SPDX-License-Identifier: Apache-2.0
#
# What the script tests of the command share. $LANEWAY is the command.
LANEWAY=${LANEWAY:?set LANEWAY to the command under test}
work=$(mktemp -d)
export TMPDIR=$work XDG_RUNTIME_DIR=$work
unset LANEWAY_CONFIG LANEWAY_URL NO_COLOR FORCE_COLOR
failures=0

# What a test started ends with it, however it ends.
end_all()
{
    local started
    started=$(jobs -p)
    [ -z "$started" ] || kill -KILL $started 2>/dev/null
    wait
    rm -rf "$work"
} 2>/dev/null
trap end_all EXIT

fail()
{
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# expect CODE STDOUT STDERR -- ARGUMENTS: runs the command; the texts must occur ("" anything).
expect()
{
    local code=$1 out=$2 err=$3
    shift 4
    "$LANEWAY" "$@" >"$work/out" 2>"$work/err" </dev/null
    local got=$?
    [ $got -eq "$code" ] || fail "laneway $*: exit code $got instead of $code: $(cat "$work/err")"
    [ -z "$out" ] || grep -qF -- "$out" "$work/out" || fail "laneway $*: no \"$out\" in: $(cat "$work/out")"
    [ -z "$err" ] || grep -qF -- "$err" "$work/err" || fail "laneway $*: no \"$err\" in: $(cat "$work/err")"
}

# wait_for FILE TEXT: until the text is in the file; two minutes end what would hang.
wait_for()
{
    for _ in $(seq 2400); do
        grep -qF -- "$2" "$1" 2>/dev/null && return 0
        sleep 0.05
    done
    fail "no \"$2\" in $1: $(cat "$1")"
    return 1
}

# ends_with CODE PID: the background process ends with that exit code.
ends_with()
{
    wait "$2"
    local got=$?
    [ $got -eq "$1" ] || fail "process $2 ended with $got instead of $1"
}

finish()
{
    [ $failures -eq 0 ] || echo "$failures failure(s)" >&2
    exit $((failures > 0))
}
