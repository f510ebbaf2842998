#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/test-summary names what was skipped and what could not run, and a skip fails when strict.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/CTestTestfile.cmake" <<'END'
add_test(good true)
add_test(away sh -c "exit 77")
set_tests_properties(away PROPERTIES SKIP_RETURN_CODE 77)
END
run()
{
    LANEWAY_TEST_STRICT=$1 TEST_TRIES=${2:-1} "$root/tools/test-summary" "$work" -- ctest --test-dir "$work" \
        >"$work/out" 2>&1
}

run 0
grep -q '1 tests passed .* 0 failed, 1 skipped' "$work/out"
grep -q 'SKIPPED  away' "$work/out"
tail -n 1 "$work/out" | grep -q '100% tests passed'
[ "$(cat "$work/test-counts")" = "1 0 1" ]
if run 1; then echo "a skip was accepted though strict" && exit 1; fi
[ "$(cat "$work/test-counts")" = "1 1 0" ]
echo 'add_test(missing /nowhere/at-all)' >>"$work/CTestTestfile.cmake"
echo 'add_test(bad false)' >>"$work/CTestTestfile.cmake"
if run 0; then echo "a failed test was accepted" && exit 1; fi
grep -q 'FAILED   missing' "$work/out"
grep -q 'FAILED   bad' "$work/out"
[ "$(cat "$work/test-counts")" = "1 2 1" ]
echo "add_test(flaky sh -c \"test -e $work/tried || { touch $work/tried; exit 1; }\")" \
    >"$work/CTestTestfile.cmake"
run 0 2
grep -q 'FLAKY    flaky' "$work/out"
[ "$(cat "$work/test-counts")" = "1 0 0" ]
rm "$work/tried"
if run 0; then echo "what failed at its only try was accepted" && exit 1; fi
echo "test-summary: names skipped, missing, flaky and failed tests"
