#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`laneway handler check`: good handlers pass, and each fault is found, said and helped with.

Only faults that show by silence have a short time-out; they must not be mistaken for slowness, so
theirs is long enough for a loaded machine, too.
"""
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

LANEWAY = os.environ["LANEWAY"]
HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
MANNERS = str(HERE / "data" / "manners.py")
SLOW = ["--timeout", "60s"]
SHORT = ["--timeout", "6s"]
FAULTS = []
os.environ.pop("PYTHONUNBUFFERED", None)

# how: (options, exit code, {id: (result, a part of why)}); all other checks must be ok.
CASES = {
    "good": (SLOW, 0, {}),
    "descriptor": (SLOW, 0, {}),
    "prints": (SLOW, 0, {"stray": ("warning", "on standard output")}),
    "dead": (SLOW, 0, {"ok": ("warning", "it never said ok")}),
    "exit-code": (SLOW, 0, {"end": ("warning", "it ended with exit 3")}),
    "brood": (SLOW, 0, {"end": ("warning", "it left 1 process behind")}),
    "stubborn": (SHORT, 0, {"term": ("warning", "it does not heed SIGTERM")}),
    "silent": (SHORT, 1, {"start": ("failed", "ready did not come within 6s")}),
    "buffered": (SHORT, 1, {"start": ("failed", "ready came only when its input had ended")}),
    "buffered-and-slow": (SHORT, 1, {"start": ("failed",
                                               "ready came only when its input had ended")}),
    "no-newline": (SHORT, 1, {"start": ("failed", "without the end of a line")}),
    "exits": (SLOW, 1, {"start": ("failed", "it ended before it said ready: exit 2")}),
    "early": (SLOW, 1, {"start": ("failed", "it answered before it said ready")}),
    "future": (SLOW, 1, {"start": ("failed", "it speaks protocol 2, this version speaks 1")}),
    "no-object": (SLOW, 1, {"start": ("failed", "is not an object such as")}),
    "closes": (SHORT, 1, {"message": ("failed", "it closed its standard output")}),
    "buffered-answers": (SHORT, 1, {"message": ("failed", "the answer came only when its input")}),
    "wrong-ids": (SLOW, 1, {"message": ("failed", "which is not open")}),
    "text-ids": (SLOW, 1, {"message": ("failed", '"id" is not a number that was given')}),
    "no-result": (SLOW, 1, {"message": ("failed", '"result" is none of ok, retry')}),
    "bad-reply": (SLOW, 1, {"message": ("failed", '"reply" is neither a text nor null')}),
    "twice": (SLOW, 1, {"once": ("failed", ""),
                        "*": None}),
    "single": (SLOW, 1, {"once": ("warning", "it ended after its answer"), "many": None,
                         "end": None}),
    "single-and-slow": (SLOW, 1, {"once": ("warning", "it ended after its answer"), "many": None,
                                  "end": None}),
    "short-ids": (SLOW, 1, {"large-id": ("failed", "which is not open")}),
    "needs-value": (SLOW, 1, {"null-value": ("failed", "it ended before it answered: exit 1"),
                              "binary": ("failed", "it ended before it answered: exit 1")}),
    "needs-text": (SLOW, 1, {"binary": ("failed", "it ended before it answered: exit 1")}),
    "plain-headers": (SLOW, 1, {"headers": ("failed", "it ended before it answered: exit 1")}),
    "strict": (SLOW, 1, {"unknown": ("failed", "it ended before it answered: exit 1")}),
    "short-lines": (SLOW, 1, {"large": ("failed", "it ended before it answered: exit 1")}),
    "forgets": (SHORT, 1, {"many": ("failed", "answers did not come within 6s"),
                           "large": None, "end": None}),
    "lazy": (SLOW, 1, {"end": ("failed", "it ended before it answered: exit 0")}),
    "endless": (SHORT, 1, {"end": ("failed", "it still ran 6s after the end of its input")}),
    "extends": (SHORT, 0, {}),
    "babbling": (SHORT, 1, {"end": ("failed", "it still ran 6s after the end of its input")}),
    "locks": (SLOW, 1, {"beside": ("failed", "it ended before it said ready: exit 1")}),
}

FRAMED = {
    "good": (SLOW, 0, {}),
    "prints": (SLOW, 0, {"stray": ("warning", "on standard output")}),
    "silent": (SHORT, 1, {"start": ("failed", "ready did not come within 6s")}),
    "lines-always": (SLOW, 1, {"start": ("failed", "")}),
    "lowest-first": (SLOW, 1, {"start": ("failed", "lowest byte first")}),
    "long-lengths": (SHORT, 1, {"message": ("failed", "bytes of a frame that is not whole")}),
    "needs-value": (SLOW, 1, {"null-value": ("failed", "it ended before it answered: exit 1")}),
    "short-ids": (SLOW, 1, {"large-id": ("failed", "which is not open")}),
    "strict": (SLOW, 1, {"unknown": ("failed", "it ended before it answered: exit 1")}),
    "lazy": (SLOW, 1, {"end": ("failed", "it ended before it answered: exit 0")}),
}


def fault(text):
    FAULTS.append(text)


def run(*words):
    return subprocess.run([LANEWAY, "handler", "check", *words], capture_output=True, text=True,
                          timeout=280, stdin=subprocess.DEVNULL)


def try_case(how, folder, cases, protocol):
    options, code, wanted = cases[how]
    done = run("--json", "--protocol", protocol, *options, sys.executable, "-S", MANNERS, how,
               f"{folder}/{how}")
    where = f"{protocol} {how}: {done.stdout}{done.stderr}"
    if done.returncode != code:
        return fault(f"exit {done.returncode}, not {code}: {where}")
    report = json.loads(done.stdout)
    if report["ok"] != (code == 0):
        fault(f"\"ok\" is wrong: {where}")
    checks = {check["id"]: check for check in report["checks"]}
    for name in wanted.keys() - checks.keys() - {"*"}:
        fault(f"{name} was not tried: {where}")
    for name, check in checks.items():
        result, why = wanted.get(name, wanted.get("*", ("ok", ""))) or (None, "")
        if result and (check["result"] != result or why not in check.get("why", "")):
            fault(f"{name} is {check['result']}, not {result} {why!r}: {where}")
        if check["result"] != "ok" and not (check["why"] and check["help"]):
            fault(f"{name} helps nobody: {where}")
    return None


def expect(done, code, *parts):
    text = done.stdout + done.stderr
    for part in parts:
        if part not in text:
            fault(f"{done.args}: no {part!r} in {text}")
    if done.returncode != code:
        fault(f"{done.args}: exit {done.returncode}, not {code}: {text}")


def try_examples():
    for path in sorted((ROOT / "examples").rglob("handlers/*.py")):
        value = '{"id": 7, "name": "Ada"}'
        expect(run(*SLOW, "--strict", "--value", value, sys.executable, str(path)), 0,
               "fit to run", "a value of 1 MiB")
    for path in sorted((ROOT / "examples").rglob("handlers/*.sh")):
        expect(run(*SHORT, "sh", str(path)), 0, "fit to run")


def try_words(folder):
    plain = pathlib.Path(folder) / "plain.py"
    plain.write_text("print('no')\n")
    python = [sys.executable, "-S", MANNERS]
    expect(run(), 64, "laneway handler check python3 handler.py")
    expect(subprocess.run([LANEWAY, "handler"], capture_output=True, text=True), 64, "check CMD")
    expect(run("--timeout", "5", *python, "good"), 64, "--timeout")
    expect(run("--protocol", "telepathy", *python, "good"), 64, "--protocol")
    expect(run("--value", "@/no/such/file", *python, "good"), 66, "/no/such/file")
    expect(run("--value", f"@{folder}", *python, "good"), 66, f"cannot read {folder}")
    large = pathlib.Path(folder) / "large"
    large.write_bytes(b"x" * (8 << 20) + b"y")
    expect(run("--value", f"@{large}", *python, "good"), 66, "more than 8 MiB")
    expect(run("/no/such/handler"), 1, "FAIL", "it cannot be run: No such file", "PATH")
    expect(run("python3 handler.py"), 1, "as words of their own")
    expect(run(str(plain)), 1, "Permission denied", "chmod +x")
    plain.chmod(0o755)
    plain.write_text("echo no first line\n")
    expect(run(str(plain)), 1, "Exec format error", "neither a program for this machine")
    expect(run(*SLOW, "--strict", *python, "prints"), 1, "warn", "loading the model", "LANEWAY_FD")
    expect(run(*SLOW, "--value", "{}", *python, "dead"), 1, "it said dead to the value of --value")
    expect(run(*SLOW, *python, "exits"), 1, "config.ini: no such file", "was not tried")
    expect(run(*SLOW, "-q", *python, "good"), 0)
    expect(run(*SLOW, "-v", *python, "good"), 0, 'sent    {"hello"', '"value_b64"')
    quiet = run(*SLOW, "-q", *python, "good").stdout
    if quiet:
        fault(f"-q says something though all is well: {quiet}")


def try_interrupt(number):
    """Ctrl-C reaches the command alone; the handler, in a session of its own, must not outlive it."""
    with subprocess.Popen([LANEWAY, "handler", "check", *SLOW, "sh", "-c",
                           "echo $$ >&3; exec sleep 100"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL,
                          preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as command:
        for _ in range(2400):
            children = pathlib.Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text()
            if children and "sleep" in pathlib.Path(
                    f"/proc/{children.split()[0]}/cmdline").read_text():
                break
            time.sleep(0.05)
        command.send_signal(number)
        if command.wait(60) != -number:
            fault(f"a check that {number!r} ends ends with {command.returncode}")
    for _ in range(2400):
        state = pathlib.Path(f"/proc/{children.split()[0]}/stat")
        if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    fault(f"a handler outlives a check that {number!r} ends")


CONFIRM = 'body=$(cat); printf %s "$body" | grep -q id || exit 65; echo "$LANEWAY_KEY is confirmed"'
ONCE = [  # a shell's program, options, exit code, what is said
    (CONFIRM, SLOW, 0, ["12 passed, 0 warnings"]),
    ("true", SLOW, 0, ["12 passed, 0 warnings"]),
    ("exit 127", SLOW, 1, ["exit 127 says that the handler itself is broken"]),
    ("kill -9 $$", SLOW, 1, ["it was killed by signal 9 (SIGKILL)"]),
    ("echo why >&2; exit 3", SLOW, 0, ["exit 3 is no word", "why", "it never ended with 0"]),
    ('eval "echo $LANEWAY_KEY"', SLOW, 1, ["a key or header was run by the shell"]),
    ("sleep 600 >/dev/null 2>&1 &", SLOW, 0, ["it left 1 process behind"]),
    ("exec sleep 600", SHORT, 1, ["it did not end within 6s"]),
    ("exec yes", SHORT, 1, ["it printed more than 16 MiB"]),
    ("exec >&-; cat >/dev/null; sleep 0.3", SLOW, 0, ["12 passed, 0 warnings"]),
]


def try_once(program, options, code, said):
    expect(run("--protocol", "once", *options, "sh", "-c", program), code, "(protocol once)", *said)


def main():
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(try_case, how, folder, CASES, "lines") for how in CASES]
            jobs += [pool.submit(try_case, how, folder, FRAMED, "frames") for how in FRAMED]
            jobs += [pool.submit(try_examples), pool.submit(try_words, folder)]
            jobs += [pool.submit(try_interrupt, number) for number in (signal.SIGINT, signal.SIGHUP)]
            jobs += [pool.submit(try_once, *case) for case in ONCE]
            for job in jobs:
                job.result()
    print("\n".join(FAULTS))
    print(f"{len(CASES) + len(FRAMED) + len(ONCE)} handlers, {len(FAULTS)} faults")
    sys.exit(1 if FAULTS else 0)


main()
