#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The demo on a pipe ends by itself with a sound summary; on a terminal it draws, and Ctrl-C ends
# it with the summary. Its memory stays small.
set -uo pipefail
. "$(dirname "$0")/_lib.sh"

expect 0 "lost 0; two of one customer at once: 0" "" -- demo --for 1s
grep -q "1st          110  orders_live_high" "$work/out" || fail "no first lane: $(cat "$work/out")"
expect 0 "" "" -- demo --json --for 1s --seed 7
python3 - "$work/out" <<'P' || fail "the JSON of the demo is wrong"
import json, sys
summary = json.load(open(sys.argv[1]))
assert summary["lost"] == 0 and summary["overlaps"] == 0 and summary["waiting"] == 0, summary
assert summary["dead_lettered"] > 0 and len(summary["topics"]) == 6, summary
assert sum(t["retried"] for t in summary["topics"]) > 0, summary
P
expect 64 "" '--for "soon" is no duration' -- demo --for soon
expect 64 "" '--slots "0"' -- demo --slots 0

python3 - "$LANEWAY" <<'P' || fail "the demo on a terminal, or its memory"
import os, pty, re, resource, select, signal, subprocess, sys, time
primary, secondary = pty.openpty()
demo = subprocess.Popen([sys.argv[1], "demo"], stdin=secondary, stdout=secondary, stderr=secondary,
                        env={**os.environ, "TERM": "xterm"})
os.close(secondary)
text, deadline, is_stopped = b"", time.monotonic() + 60, False
while time.monotonic() < deadline:
    if select.select([primary], [], [], 0.2)[0]:
        try:
            text += os.read(primary, 65536)
        except OSError:
            break
    if not is_stopped and text.count(b"\033[H") >= 3:
        demo.send_signal(signal.SIGINT)
        is_stopped = True
code = demo.wait(60)
peak_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
assert code == 0, code
assert b"\033[?1049h" in text and b"\033[?1049l" in text, "the screen is not given back"
assert b"slots" in text and b"lost 0" in text, text[-2000:]
program = open(sys.argv[1], "rb").read()
is_sanitized = b"__asan_init" in program or b"__tsan_init" in program
assert is_sanitized or peak_kb <= 16384, peak_kb
P
finish
