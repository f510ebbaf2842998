# SPDX-License-Identifier: Apache-2.0
"""What every end-to-end test needs, whatever the broker: a `laneway run` as a user would start it,
with its log, its status and its end, and a runner of tests. e2e.py adds Kafka, pulsar/e2e_pulsar.py
adds Pulsar.

Tests are functions marked @test; run(...) runs them, or those that the command line names. All
waiting is for something (a log line, a status, a record) and has a limit; a watchdog ends the
script, and every process that was started here dies with it.
"""
import atexit
import ctypes
import faulthandler
import gc
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SUPPORT = ROOT / "tests/support"
LANEWAY = os.environ.get("LANEWAY", str(ROOT / "build/bin/laneway"))
BROKER = str(ROOT / "tools/broker")
PLUGIN = pathlib.Path(LANEWAY).resolve().parent.parent / "tests/plugins/e2e.so"

gc.disable()  # judges hold hundreds of thousands of records; to walk them again costs seconds
PR_SET_PDEATHSIG = 1
PATIENCE_S = 240  # ends what would hang; a busy machine needs far less, and nothing is measured by it
LOG_PATIENCE_S = 5
LIBC = ctypes.CDLL(None)
_services = []
_tests = []
_names = []


class Failure(AssertionError):
    """What a test says when something is not as it should be."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def check_equal(found, expected, what):
    check(found == expected, f"{what}: {found!r} instead of {expected!r}")


def go_on_with(module, *python):
    """Ends here unless the module can be imported: goes on under the interpreter that this command
    of tools/broker prints, or ends the script as skipped."""
    found = importlib.util.find_spec(module)
    if found and found.origin:  # a mere folder of that name has none
        return
    found = subprocess.run([BROKER, *python], stdout=subprocess.PIPE, text=True)
    if found.returncode != 0 or os.environ.get("E2E_AGAIN"):
        print(f"e2e: no Python interpreter with {module}", file=sys.stderr)
        sys.exit(77)
    os.environ["E2E_AGAIN"] = "1"
    os.execv(found.stdout.strip(), [found.stdout.strip()] + sys.argv)


def call_broker(kind, *words, timeout=PATIENCE_S):
    """Calls tools/broker; ends the script as skipped where that cannot be tried."""
    done = subprocess.run([BROKER, kind, *words], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, timeout=timeout)
    if done.returncode == 77:
        print(f"e2e: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(77)
    check(done.returncode == 0, f"tools/broker {kind} {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


# --- a service ------------------------------------------------------------------------------


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_for(what, is_done, timeout=PATIENCE_S, pause=0.05):
    """Returns the first true value of is_done()."""
    until = time.monotonic() + timeout
    while True:
        value = is_done()
        if value:
            return value
        check(time.monotonic() < until, f"{what}: not within {timeout} s")
        time.sleep(pause)


class Service:
    """One `laneway run` with a configuration (a dict: JSON is YAML; or a file, used as it is), its
    log and its socket."""

    def __init__(self, config, folder, name="member", env=None, arguments=()):
        self.folder, self.name = pathlib.Path(folder), name
        self.socket = str(self.folder / f"{name}.sock")
        arguments = list(arguments)
        if isinstance(config, dict):
            self.file = self.folder / f"{name}.yaml"
            config = json.loads(json.dumps(config))
            config.setdefault("service", {}).setdefault("control", self.socket)
            config["service"].setdefault("name", name)
            self.file.write_text(json.dumps(config, indent=1))
        else:
            self.file = pathlib.Path(config)
            arguments += ["--set", f"service.control={self.socket}"]
        self.history = self.folder / f"{name}-{len(_services)}.history"
        self.environment = dict(os.environ, LANEWAY_HISTORY=str(self.history), **(env or {}))
        self.arguments = arguments
        self.lines, self.news = [], threading.Condition()
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [LANEWAY, "run", "-c", str(self.file), *self.arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=self.environment, cwd=self.folder, preexec_fn=die_with_parent,
            start_new_session=True,
        )
        _services.append(self)
        self.reader = threading.Thread(target=self._read_log, daemon=True)
        self.reader.start()
        return self

    def _read_log(self):
        with open(self.folder / f"{self.name}.log", "ab") as copy:
            for line in self.process.stderr:
                copy.write(line)
                copy.flush()
                try:
                    entry = json.loads(line)
                except ValueError:
                    entry = {"text": line.decode(errors="replace").rstrip("\n")}
                with self.news:
                    self.lines.append(entry)
                    self.news.notify_all()
        with self.news:
            self.lines.append({"event": "end of log"})
            self.news.notify_all()

    @property
    def pid(self):
        return self.process.pid

    def log_text(self):
        with self.news:
            return "\n".join(json.dumps(line) for line in self.lines)

    def find(self, event=None, text=None, start=0, **fields):
        """Returns the first log line with this event, this text anywhere, these fields."""
        for line in self.lines[start:]:
            if event is not None and line.get("event") != event:
                continue
            if text is not None and text not in json.dumps(line, ensure_ascii=False):
                continue
            if all(line.get(key) == value for key, value in fields.items()):
                return line
        return None

    def wait_log(self, event=None, text=None, timeout=PATIENCE_S, start=0, **fields):
        until = time.monotonic() + timeout
        with self.news:
            while True:
                line = self.find(event, text, start, **fields)
                if line is not None:
                    return line
                is_over = any(each.get("event") == "end of log" for each in self.lines)
                left = until - time.monotonic()
                wanted = f"log line event={event} text={text!r} {fields}"
                check(not is_over, f"{wanted}: never came, the service has ended")
                check(left > 0, f"{wanted}: not within {timeout} s")
                self.news.wait(left)

    def ask(self, command, *words):
        return subprocess.run(
            [LANEWAY, command, "--url", f"unix:{self.socket}", *words], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE_S,
        )

    def status(self):
        done = self.ask("status", "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def topic(self, name):
        status = self.status()
        found = [each for each in status["topics"] if each["topic"] == name] if status else []
        return found[0] if found else None

    def wait_status(self, what, is_good, timeout=PATIENCE_S):
        def look():
            check(self.is_alive(), f"{what}: the service ended, {self.process.poll()}")
            status = self.status()
            return status if status and is_good(status) else None

        return wait_for(what, look, timeout, 0.1)

    def wait_settled(self, count, timeout=PATIENCE_S):
        """Waits until this process has settled `count` messages or more."""
        return self.wait_status(f"{count} settled", lambda s: settled_of(s) >= count, timeout)

    def code(self, timeout=PATIENCE_S):
        """Waits for the end; then its whole log is here, unless a child of it holds the pipe."""
        code = self.process.wait(timeout)
        self.reader.join(LOG_PATIENCE_S)
        return code

    def stop(self, timeout=PATIENCE_S):
        """SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.code(timeout)

    def kill(self):
        self.process.kill()
        return self.process.wait(PATIENCE_S)

    def is_alive(self):
        return self.process is not None and self.process.poll() is None


def settled_of(status):
    return sum(sum(topic["settled"].values()) for topic in status["topics"])


def laneway(*words, timeout=PATIENCE_S, stdin=None, env=None):
    """Runs one command; returns it with returncode, stdout and stderr."""
    return subprocess.run([LANEWAY, *words], text=True, stdout=subprocess.PIPE, input=stdin,
                          stderr=subprocess.PIPE, timeout=timeout,
                          env=dict(os.environ, **(env or {})))


def handler(rules=(), work_ms=0, log=None, workers=2, window=1, program=None, **options):
    """The configuration of tests/support/e2e_handler.py as a handler."""
    env = {"E2E_RULES": json.dumps(list(rules)), "E2E_WORK_MS": str(work_ms)}
    if log is not None:
        env["E2E_LOG"] = str(log)
    program = program or [sys.executable, str(SUPPORT / "e2e_handler.py")]
    return {"program": program, "protocol": "lines", "workers": workers, "window": window,
            "env": env, **options}


def plugin_handler(rules=(), work_ms=0, log=None, workers=2, window=None, **options):
    """The same in C (tests/plugins/e2e.c), in worker processes of the service."""
    check(PLUGIN.exists(), f"{PLUGIN} is not built")
    told = {"work_ms": str(work_ms)}
    if rules:
        told["rules"] = ";".join(f"{modulus} {remainder} {','.join(results)}"
                                 for modulus, remainder, results in rules)
    if log is not None:
        told["log"] = str(log)
    if window is not None:
        options["window"] = window
    return {"plugin": str(PLUGIN), "engine": "processes", "workers": workers, "options": told,
            **options}


# --- tests ----------------------------------------------------------------------------------


def test(function):
    _tests.append(function)
    return function


def end_services():
    for service in _services:
        if service.is_alive():
            service.process.kill()
            service.process.wait()
    _services.clear()


def unique(name):
    _names.append(name)
    return f"{name}-{os.getpid()}-{int(time.time())}-{len(_names)}"


def show_logs():
    for service in _services:
        print(f"--- last log lines of {service.name}:", file=sys.stderr)
        for line in service.lines[-15:]:
            print("   ", json.dumps(line)[:600], file=sys.stderr)


def run_one(function):
    folder = tempfile.mkdtemp(prefix="laneway-e2e-")
    begin = time.monotonic()
    try:
        function(pathlib.Path(folder))
    except (Failure, subprocess.TimeoutExpired, Exception):  # noqa: B014
        print(f"FAILED {function.__name__} after {time.monotonic() - begin:.1f} s, see {folder}",
              file=sys.stderr)
        traceback.print_exc()
        show_logs()
        return False
    finally:
        end_services()
    print(f"ok {function.__name__} ({time.monotonic() - begin:.1f} s)", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return True


def run(needed, limit_s=850):
    """Runs the script's tests (or those that its arguments name); exits with 0 or 1. `needed` is
    called first: it ends the script where there is no broker."""
    faulthandler.dump_traceback_later(limit_s, exit=True)
    atexit.register(end_services)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    needed()
    chosen = [each for each in _tests if not sys.argv[1:] or each.__name__ in sys.argv[1:]]
    check(chosen, f"no such test; there are: {', '.join(t.__name__ for t in _tests)}")
    failed = [each.__name__ for each in chosen if not run_one(each)]
    print(f"{len(chosen) - len(failed)} ok, {len(failed)} failed {' '.join(failed)}")
    sys.exit(1 if failed else 0)
