# SPDX-License-Identifier: Apache-2.0
"""A service on a broker in memory, for tests of handler programs: build/tests/support/memory_run.

Configurations are taken as they are printed; only the address is changed, and what a test asks for,
each of which must find its place.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build"))
RUN = BUILD / "tests" / "support" / "memory_run"
KAFKA = 'main: { url: "kafka://localhost:9092" }'
MEMORY = 'main: { url: "memory:test", properties: { mode: individual } }'


def install_clients(folder):
    """Puts the Node client where its programs look for it; gives the environment for Python's."""
    modules = folder / "node_modules"
    modules.mkdir(exist_ok=True)
    if not (modules / "laneway").exists():
        (modules / "laneway").symlink_to(ROOT / "clients" / "node")
    return {**os.environ, "PYTHONPATH": str(ROOT / "clients" / "python"),
            "PYTHONDONTWRITEBYTECODE": "1"}


def changed(text, changes):
    for old, new in changes.items():
        if old not in text:
            raise AssertionError(f"there is no {old!r} to change")
        text = text.replace(old, new)
    return text


def run(folder, config, group, topics, messages, changes=None):
    """Runs the configuration in `folder` until all is acknowledged: (what was published, log). The
    log is the file `log` in the folder, which may be read meanwhile."""
    text = changed((folder / config).read_text(), {KAFKA: MEMORY, **(changes or {})})
    path = folder / f"memory-{config}"
    path.write_text(text)
    with open(folder / "log", "w", encoding="utf-8") as log:
        done = subprocess.run([RUN, "test", group, path, *topics], env=install_clients(folder),
                              input="".join(json.dumps(message) + "\n" for message in messages),
                              stdout=subprocess.PIPE, stderr=log, text=True, timeout=280)
    text = (folder / "log").read_text(encoding="utf-8")
    if done.returncode != 0:
        raise AssertionError(f"exit status {done.returncode}\n{text[-8000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()], text


def copy_of(folder):
    """A copy that a test may write into; the caller removes it."""
    copy = pathlib.Path(tempfile.mkdtemp(prefix="laneway-example-"))
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    return copy


def values(published, topic):
    return sorted(message["value"] for message in published if message["topic"] == topic)


def expect(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r}, not {wanted!r}")
