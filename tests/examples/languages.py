#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""languages.py [LANGUAGE...]: examples/languages/orders.yaml with each of its programs, in lines and in
frames where they speak both, and orders-once.yaml.

Counts are exact: which order is confirmed, tried again and given up follows from what is sent. A
language whose tools are missing is left out, and then the test ends as one that cannot be tried.
"""
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import memory_service  # noqa: E402
from memory_service import expect, values  # noqa: E402

# (tool, how it is built, what the configuration says)
LANGUAGES = {
    "python": ("python3", None, "[python3, confirm.py]"),
    "node": ("node", None, "[node, confirm.js]"),
    "go": ("go", ["go", "build", "-o", "confirm-go", "confirm.go"], "[./confirm-go]"),
    "shell": ("sh", None, "[sh, confirm.sh]"),
    "c": ("cc", ["cc", "-Wall", "-Werror", "-o", "confirm-c", "confirm.c", "-ljansson"],
          "[./confirm-c]"),
    "once": ("sh", None, "[sh, confirm_once.sh]"),
}
BOTH = ("python", "node")  # by their clients


def orders():
    """30 good ones, half of them without spaces, 5 that fail once, 2 that always fail, 3 without an
    id."""
    for number in range(40):
        fails = 0 if number < 30 else 1 if number < 35 else 99
        order = {"id": number, "fails": fails} if fails else {"id": number}
        separators = (",", ":") if number % 2 else None
        yield {"topic": "orders", "key": str(number),
               "value": json.dumps(order if number < 37 else {"name": "nobody"},
                                   separators=separators)}


def changes_for(folder, language, protocol):
    program = LANGUAGES[language][2]
    changes = {"initial: 1s, max: 10s": "initial: 5ms, max: 5ms"}
    if language == "once":
        return "orders-once.yaml", changes
    changes["protocol: lines"] = f"protocol: {protocol}"
    if language != "python":  # the line that is commented out is the one that is meant
        expect("named in orders.yaml", f"# program: {program}" in (folder / "orders.yaml").read_text(),
               True)
        changes["    program: [python3, confirm.py]"] = f"    program: {program}"
    return "orders.yaml", changes


def check(folder, language, protocol):
    config, changes = changes_for(folder, language, protocol)
    published, _ = memory_service.run(folder, config, "shop", ["orders"], orders(), changes)
    confirmed = [json.loads(value)["confirmed"] for value in values(published, "confirmations")]
    expect("confirmations", sorted(confirmed), list(range(35)))
    expect("dead letters", len(values(published, "orders.dead")), 5)
    print(f"{language} {protocol}: 40 orders, {len(confirmed)} confirmed, 5 dead")


def main():
    wanted = sys.argv[1:] or list(LANGUAGES)
    missing = [name for name in wanted if not shutil.which(LANGUAGES[name][0])]
    folder = memory_service.copy_of(memory_service.ROOT / "examples" / "languages")
    try:
        for language in wanted:
            if language in missing:
                continue
            build = LANGUAGES[language][1]
            if build:
                subprocess.run(build, cwd=folder, check=True, timeout=280)
            for protocol in ["lines", "frames"] if language in BOTH else ["lines"]:
                check(folder, language, protocol)
    finally:
        shutil.rmtree(folder)
    if missing:
        print("not installed (tools/setup installs them):", *missing, file=sys.stderr)
        sys.exit(77)


main()
