#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# valgrind.sh SEED MINUTES: every unit test under memcheck, then 100 seeds of the simulator.
# sources: src include tests
set -uo pipefail
seed=$1
deadline=$((SECONDS + ${2%.*} * 60))
passed=0 failed=0 left=0
check=(valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect)
while read -r test; do
    if [ $SECONDS -gt $deadline ]; then
        left=$((left + 1))
    elif "${check[@]}" "$test" >build/valgrind.log 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "valgrind: $test" && tail -n 30 build/valgrind.log
    fi
done < <(find build/tests -name 'test_*' -type f -executable | sort)
seeds=0
if [ -x build/tests/sim ] && [ $SECONDS -le $deadline ]; then
    seeds=100
    "${check[@]}" build/tests/sim --first "$seed" --seeds $seeds || failed=$((failed + 1))
fi
printf '{"seeds": %d, "executables": %d, "not_reached": %d, "failed": %d}\n' $seeds $passed $left $failed
[ $failed -eq 0 ]
