#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/check-sizes finds a function of 71 lines, a file of 801, and a missing header comment.
set -eu
check=$(cd "$(dirname "$0")/../.." && pwd)/tools/check-sizes
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/src/base"

# write NAME BODY-LINES FILLER-LINES: a file with one function
write()
{
    {
        printf '/* SPDX-License-Identifier: Apache-2.0 */\n'
        printf '/*\n * a.c: owns one thing.\n * Two.\n * Three.\n * Four.\n */\n'
        printf 'int\nlw_a(void)\n{\n'
        yes '    x();' | head -n "$2" || true
        printf '}\n'
        yes '' | head -n "$3" || true
    } >"$root/src/base/$1"
}

expect()
{
    if output=$("$check" --root "$root"); then
        echo "accepted, though: $1" && exit 1
    fi
    grep -q "$1" <<<"$output" || { echo "missing '$1' in: $output" && exit 1; }
}

write a.c 67 0 # name, braces and body: 70
"$check" --root "$root" | grep -q 'median 70'
write a.c 68 0 && expect 'lw_a has 71 lines'
write a.c 3 786 && "$check" --root "$root" >/dev/null
write a.c 3 787 && expect '801 lines'
write a.c 3 0 && sed -i 2,7d "$root/src/base/a.c" && expect 'header comment of 0'
echo "check-sizes: all faults found"
