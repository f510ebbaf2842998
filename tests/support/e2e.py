# SPDX-License-Identifier: Apache-2.0
"""Runs `laneway` on a real Kafka as a user would, for the tests in tests/kafka and tests/long.

A script imports this module first: it goes on under an interpreter that has confluent-kafka. Its
tests are functions marked @test; run(...) runs them, or those that the command line names. All
waiting is for something (a log line, a status, a record) and has a limit; a watchdog ends the
script, and every process that was started here dies with it.
"""
import atexit
import contextlib
import ctypes
import faulthandler
import gc
import io
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

try:
    import confluent_kafka  # noqa: F401
except ImportError:
    found = subprocess.run([BROKER, "kafka", "python"], stdout=subprocess.PIPE, text=True)
    if found.returncode != 0 or os.environ.get("E2E_AGAIN"):
        print("e2e: no Python interpreter with confluent-kafka", file=sys.stderr)
        sys.exit(77)
    os.environ["E2E_AGAIN"] = "1"
    os.execv(found.stdout.strip(), [found.stdout.strip()] + sys.argv)

sys.path.insert(0, str(SUPPORT))
import kafka_admin  # noqa: E402

gc.disable()  # judges hold hundreds of thousands of records; to walk them again costs seconds
PR_SET_PDEATHSIG = 1
PATIENCE_S = 240  # ends what would hang; a busy machine needs far less, and nothing is measured by it
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


# --- Kafka ----------------------------------------------------------------------------------


def bootstrap():
    address = os.environ.get("KAFKA_BOOTSTRAP")
    if not address:
        print("e2e: KAFKA_BOOTSTRAP is not set; start one with tools/broker kafka start",
              file=sys.stderr)
        sys.exit(77)
    return address


def admin(*words, stdin="", address=None):
    """Calls tests/support/kafka_admin.py in this process; returns what it printed, parsed."""
    out, errors = io.StringIO(), io.StringIO()
    before = sys.argv, sys.stdin
    sys.argv = ["kafka_admin", "--bootstrap", address or bootstrap()] + [str(w) for w in words]
    sys.stdin = io.StringIO(stdin)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = kafka_admin.main()
    finally:
        sys.argv, sys.stdin = before
    check(code == 0, f"kafka_admin {' '.join(map(str, words))}: {errors.getvalue().strip()}")
    return json.loads("[" + ",".join(out.getvalue().splitlines()) + "]")


def text_of(data):
    return None if data is None else data.decode(errors="backslashreplace")


def read(*topics):
    """Returns all records of the topics, as `kafka_admin read` does but faster for very many."""
    reader = kafka_admin.Consumer({"bootstrap.servers": bootstrap(), "group.id": "laneway-e2e",
                                   "enable.auto.commit": False, "fetch.wait.max.ms": 20})
    ends = {(p["topic"], p["partition"]): p["offset"] for p in admin("end", *topics)}
    ends = {place: end for place, end in ends.items() if end > 0}
    reader.assign([kafka_admin.TopicPartition(*place, 0) for place in ends])
    found, until = [], time.monotonic() + PATIENCE_S
    while ends:
        for message in reader.consume(10000, timeout=0.2):
            check(message.error() is None, f"reading {topics}: {message.error()}")
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            headers = [[name, text_of(value)] for name, value in message.headers() or []]
            found.append({"topic": topic, "partition": partition, "offset": offset,
                          "key": text_of(message.key()), "value": text_of(message.value()),
                          "timestamp": message.timestamp()[1], "headers": headers})
            if offset + 1 >= ends.get((topic, partition), offset + 2):
                del ends[topic, partition]
        check(time.monotonic() < until, f"reading {topics}: {ends} not within {PATIENCE_S} s")
    reader.close()
    return found


def put(records, address=None):
    """Sends exact records (see kafka_admin put); returns their places."""
    return admin("put", stdin="\n".join(json.dumps(each) for each in records), address=address)


def broker(*words, timeout=PATIENCE_S):
    """Calls tools/broker kafka; ends the script as skipped where that cannot be tried."""
    done = subprocess.run([BROKER, "kafka", *words], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, timeout=timeout)
    if done.returncode == 77:
        print(f"e2e: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(77)
    check(done.returncode == 0, f"tools/broker kafka {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def headers_of(record):
    return dict(record["headers"])


def committed(group):
    return {(p["topic"], p["partition"]): p["offset"] for p in admin("offsets", group)}


def check_all_committed(group, topics):
    """Every partition that holds anything is committed up to its end."""
    done = committed(group)
    for place in admin("end", *topics):
        where = (place["topic"], place["partition"])
        if place["offset"] > 0 or where in done:
            check_equal(done.get(where), place["offset"], f"committed offset of {where}")


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
    """One `laneway run` with a configuration (a dict: JSON is YAML), its log and its socket."""

    def __init__(self, config, folder, name="member", env=None, arguments=()):
        self.folder, self.name = pathlib.Path(folder), name
        self.file = self.folder / f"{name}.yaml"
        self.socket = str(self.folder / f"{name}.sock")
        config = json.loads(json.dumps(config))
        config.setdefault("service", {}).setdefault("control", self.socket)
        config["service"].setdefault("name", name)
        self.file.write_text(json.dumps(config, indent=1))
        self.history = self.folder / f"{name}-{len(_services)}.history"
        self.environment = dict(os.environ, LANEWAY_HISTORY=str(self.history), **(env or {}))
        self.arguments = list(arguments)
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
        threading.Thread(target=self._read_log, daemon=True).start()
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
        return self.process.wait(timeout)

    def stop(self, timeout=PATIENCE_S):
        """SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

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


def config(group, topics, one_handler, concurrency=8, properties=None, url=None, **pipeline):
    """A whole configuration; topics are names (equal priority) or (name, priority)."""
    entries = [t if isinstance(t, str) else {"name": t[0], "priority": t[1]} for t in topics]
    consumer = {"auto.offset.reset": "earliest", **(properties or {})}
    return {
        "version": 1,
        "service": {"concurrency": concurrency, "drain_timeout": "15s",
                    "log": {"level": "info", "format": "json"}},
        "brokers": {"main": {"url": url or f"kafka://{bootstrap()}"}},
        "handlers": {"work": one_handler},
        "pipelines": {"work": {"broker": "main", "handler": "work", "topics": entries,
                               "consumer": {"group": group, "properties": consumer},
                               **pipeline}},
    }


# For members that are killed or frozen: others take over soon. A busy machine may lose such a
# session by itself, so only what allows for that is judged with it.
SHORT_SESSION = {"session.timeout.ms": "1000", "heartbeat.interval.ms": "300"}
STEADY_SESSION = {"session.timeout.ms": "30000", "heartbeat.interval.ms": "300"}


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


def run(limit_s=850):
    """Runs the script's tests (or those that its arguments name); exits with 0 or 1."""
    faulthandler.dump_traceback_later(limit_s, exit=True)
    atexit.register(end_services)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    bootstrap()
    chosen = [each for each in _tests if not sys.argv[1:] or each.__name__ in sys.argv[1:]]
    check(chosen, f"no such test; there are: {', '.join(t.__name__ for t in _tests)}")
    failed = [each.__name__ for each in chosen if not run_one(each)]
    print(f"{len(chosen) - len(failed)} ok, {len(failed)} failed {' '.join(failed)}")
    sys.exit(1 if failed else 0)
