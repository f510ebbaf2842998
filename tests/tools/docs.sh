#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The documents agree with what is there: every configuration in them is accepted by `laneway check`
# (one without `version` is laid over a small one), every Python handler in them answers, every
# plug-in compiles and loads, every file, test, command and error code that they name exists, and
# every link leads somewhere.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
[ -x "$LANEWAY" ] || { echo "the command is not built" >&2 && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work XDG_RUNTIME_DIR=$work
unset LANEWAY_CONFIG LANEWAY_URL

python3 - "$root" "$LANEWAY" "$work" <<'P'
import json
import pathlib
import re
import subprocess
import sys

root, laneway, work = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
faults, counts = [], dict.fromkeys(("pages", "configurations", "handlers", "names", "links"), 0)
BASE = """version: 1
brokers: { main: { url: "memory:" } }
handlers: { base: { builtin: noop } }
pipelines:
  base: { broker: main, handler: base, consumer: { group: base }, topics: [ base ] }
"""
ASKED = [{"hello": {"protocol": 1, "service": "s", "handler": "h", "window": 1}},
         {"id": 1, "message_id": "main/t/0/0", "topic": "t", "value": "{}"},
         {"id": 2, "message_id": "main/t/0/1", "topic": "t", "value": '{"id": 7, "name": "Ada"}'}]


def fault(page, text):
    faults.append(f"{page.relative_to(root)}: {text}")


def output(*words):
    return subprocess.run([laneway, *words], capture_output=True, text=True, check=True).stdout


def check_config(page, folder, name, text):
    files = [name]
    (folder / name).write_text(text)
    if not re.search(r"^version:", text, re.M):
        (folder / "base.yaml").write_text(BASE)
        files.insert(0, "base.yaml")
    done = subprocess.run([laneway, "check", *files], cwd=folder, capture_output=True, text=True)
    counts["configurations"] += 1
    if done.returncode != 0:
        fault(page, f"a configuration is refused:\n{done.stdout}{done.stderr}")


def check_handler(page, file):
    asked = "".join(json.dumps(line) + "\n" for line in ASKED)
    done = subprocess.run([sys.executable, file], input=asked, capture_output=True, text=True,
                          timeout=30)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    counts["handlers"] += 1
    if done.returncode != 0 or "ready" not in answers[0]:
        fault(page, f"{file.name} does not start: {done.stdout}{done.stderr}")
    elif [(a["id"], a["result"]) for a in answers[1:]] != [(1, "dead"), (2, "ok")]:
        fault(page, f"{file.name} answers {answers[1:]}")


def check_plugin(page, file):
    counts["handlers"] += 1
    done = subprocess.run(["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                           f"-I{root}/include", "-o", file.with_suffix(".so"), file],
                          capture_output=True, text=True)
    if done.returncode != 0:
        fault(page, f"{file.name} does not compile:\n{done.stderr}")


def check_blocks(page, text):
    """A block under a line "`NAME`:" is that file."""
    folder = work / page.stem
    folder.mkdir()
    blocks = re.findall(r"(?:^`([\w.-]+)`:\n\n)?^```(\w+)\n(.*?)^```$", text, re.M | re.S)
    handlers = [(name or "handler.py", body) for name, kind, body in blocks if kind == "python"]
    for name, body in handlers:
        (folder / name).write_text(body)
        check_handler(page, folder / name)
    for name, kind, body in blocks:
        if kind == "c" and name:
            (folder / name).write_text(body)
            check_plugin(page, folder / name)
    for name, kind, body in blocks:
        if kind == "yaml":
            check_config(page, folder, name or "config.yaml", body)


def has_match(pattern):
    tops = (root, root / "src", root / "include" / "laneway")
    return any(next(top.glob(pattern), None) for top in tops)


def check_names(page, text, tests, commands, codes):
    for name in set(re.findall(r"`([\w.]+/[\w./*-]+)`", text)):
        is_ours = re.match(r"(src|tests|tools|include|docs|bench|examples|base|core|policy|"
                           r"dispatcher|engines|brokers|service|cli)/", name)
        if re.search(r"AREA|LAYER|\b(test_|test_mock_|fuzz_)?x\.", name):
            continue  # a pattern that stands for any
        counts["names"] += bool(is_ours)
        if is_ours and not has_match(name.rstrip("/")) and not has_match(f"{name}.[ch]"):
            fault(page, f"there is no {name}")
    for name in set(re.findall(r"`([a-z]+(?:_[a-z0-9]+){3,})`", text)):
        counts["names"] += 1
        if not re.search(rf"\b{name}\b", tests):
            fault(page, f"there is no test {name}")
    for name in set(re.findall(r"(?:^ {4}|`|^)laneway ([a-z-]+)", text, re.M)):
        counts["names"] += 1
        if name not in commands:
            fault(page, f"there is no command laneway {name}")
    for code in set(re.findall(r"\b[EW]0\d{3}\b", text)) - codes:
        fault(page, f"there is no code {code}")


def check_links(page, text):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        counts["links"] += 1
        if "://" not in target and not (page.parent / target).exists():
            fault(page, f"a link to {target} leads nowhere")


tests = "\n".join(path.read_text(errors="replace") for top in ("tests", "src", "include")
                  for path in (root / top).rglob("*") if path.suffix in (".c", ".h", ".py", ".sh"))
commands = set(re.findall(r"^  ([a-z]+) ", output("help").split("Exit codes")[0], re.M))
commands.add("config-reference")
codes = set(re.findall(r"\b[EW]0\d{3}\b", output("errors")))
pages = sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")])
for page in pages:
    text = page.read_text()
    counts["pages"] += 1
    check_blocks(page, text)
    check_names(page, text, tests, commands, codes)
    check_links(page, text)
print("\n".join(faults))
print(", ".join(f"{count} {name}" for name, count in counts.items()), f"- {len(faults)} faults")
enough = counts["configurations"] >= 3 and counts["handlers"] >= 2 and counts["names"] >= 50
sys.exit(0 if enough and not faults else 1)
P
