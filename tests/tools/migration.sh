#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The tables of docs/from-*.md name options that exist: each `service.…`, `brokers.X.…`,
# `handlers.X.…` and `pipelines.X.…` is a row of the reference; every row of a table says something,
# and none was lost.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "$LANEWAY" ] || { echo "the command is not built" >&2 && exit 77; }

python3 - "$root" "$LANEWAY" <<'P'
import pathlib
import re
import subprocess
import sys

root, laneway = pathlib.Path(sys.argv[1]), sys.argv[2]
LEAST = {"from-pyrallel.md": 60, "from-parallel-consumer.md": 36}
reference = subprocess.run([laneway, "config-reference"], capture_output=True, text=True,
                           check=True).stdout
known, section = set(), None
for line in reference.splitlines():
    if head := re.match(r"## (service|brokers|handlers|pipelines)\b", line):
        section = head[1]
    elif line.startswith("#"):
        section = None
    elif section and (row := re.match(r"\| `([\w.]+)`", line)):
        known.add(f"{section}.{row[1]}" if section == "service" else f"{section}.X.{row[1]}")

faults, options, rows = [], 0, 0
for name, least in LEAST.items():
    count = 0
    for line in (root / "docs" / name).read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) < 2 or cells[0].startswith("---") or not cells[0].startswith("`"):
            continue
        count += 1
        if not cells[1] or (cells[1] == "none" and not cells[0]):
            faults.append(f"{name}: a row without an answer: {line}")
        for option in re.findall(r"`((?:service|brokers|handlers|pipelines)\.[\w.]+)`", line):
            options += 1
            if option not in known:
                faults.append(f"{name}: there is no option {option}")
    rows += count
    if count < least:
        faults.append(f"{name}: {count} rows, {least} or more are expected")
print("\n".join(faults))
print(f"{rows} rows, {options} options, {len(faults)} faults")
sys.exit(1 if faults or options < 50 else 0)
P
