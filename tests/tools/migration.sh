#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The tables of docs/from-*.md name options that exist: each `service.…`, `brokers.X.…`,
# `handlers.X.…` and `pipelines.X.…` is a row of the reference; every row of a table says something,
# and none was lost. Of the page about Pulsar Dispatcher every "property" is an option of the Pulsar
# client that `laneway check` knows by that name, and every parameter has a row (pulsar.ported asks
# the installed packages for more).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "$LANEWAY" ] || { echo "the command is not built" >&2 && exit 77; }

python3 - "$root" "$LANEWAY" <<'P'
import json
import pathlib
import re
import subprocess
import sys
import tempfile

root, laneway = pathlib.Path(sys.argv[1]), sys.argv[2]
LEAST = {"from-pyrallel.md": 60, "from-parallel-consumer.md": 36, "from-pulsar-dispatcher.md": 65}
# Of pulsar-dispatcher 0.1.0 itself: constructor, subscribe, subscribe_multiple_priorities.
PARAMETERS = """url concurrency topic process_message priority fatal_exception_class
retry_exception_class retry_topic retry_backoff_function max_retries reply_topic topic_prefix
priority_levels priority_sublevels retry_priority_sublevel subscription_name consumer_type
receiver_queue_size negative_ack_redelivery_delay_ms dead_letter_policy exponential_backoff
default_backoff RetryTopicWarning run close""".split()
reference = subprocess.run([laneway, "config-reference"], capture_output=True, text=True,
                           check=True).stdout
known, section = set(), None
for line in reference.splitlines():
    if head := re.match(r"## (service|brokers|handlers|pipelines)\b", line):
        section = "service." if head[1] == "service" else f"{head[1]}.X."
    elif head := re.match(r"### pipelines\.NAME\.(\w+), ", line):
        section = f"pipelines.X.{head[1]}."
    elif line.startswith("#"):
        section = None
    elif section and (row := re.match(r"\| `([\w.]+)`", line)):
        known.add(section + row[1])

faults, options, rows, properties, seen = [], 0, 0, [], set()
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
        if cells[1] == "property":
            properties.append(cells[0].strip("`"))
        seen.update(re.findall(r"`(\w+)`", cells[0]))
    rows += count
    if count < least:
        faults.append(f"{name}: {count} rows, {least} or more are expected")
faults += [f"{name} has no row" for name in PARAMETERS if name not in seen]
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "all.yaml"
    file.write_text(json.dumps({
        "version": 1, "brokers": {"main": {"url": "pulsar://localhost",
                                           "properties": dict.fromkeys(properties, "?")}},
        "handlers": {"h": {"builtin": "noop"}},
        "pipelines": {"p": {"broker": "main", "handler": "h", "consumer": {"subscription": "s"},
                            "topics": ["t"]}}}))
    said = json.loads(subprocess.run([laneway, "check", "--json", str(file)], capture_output=True,
                                     text=True).stdout)["diagnostics"]
faults += [each["message"] for each in said if each["code"] == "E0414"]
print("\n".join(faults))
print(f"{len(properties)} properties, {rows} rows, {options} options, {len(faults)} faults")
sys.exit(1 if faults or options < 50 or len(properties) < 20 else 0)
P
