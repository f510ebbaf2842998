# SPDX-License-Identifier: Apache-2.0
"""examples/three-topics on a real Pulsar: the commands of its README do what it says, and the three
topics take turns while each has messages waiting, whatever the others have."""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
import e2e_judge  # noqa: E402
from e2e_pulsar import check, check_equal, test  # noqa: E402

TOPICS = ("orders", "payments", "notifications")
NAMES = re.compile(r"\b(orders|payments|notifications|events_retry|events_dead|events-sub)\b")
WORK_S = 0.004
EACH = 600


class Example:
    """What `laneway init three-topics` writes, on topics of its own and otherwise as it stands."""

    def __init__(self, folder):
        self.folder = folder / "three"
        self.stem = e2e.unique("three").replace("-", "_")
        done = e2e.laneway("init", "three-topics", str(self.folder))
        check_equal(done.returncode, 0, f"laneway init: {done.stderr}")
        self.file = self.folder / "events.yaml"
        for file in (self.file, self.folder / "README.md"):
            file.write_text(NAMES.sub(rf"{self.stem}_\1", file.read_text()))
        self.environment = dict(
            os.environ, LANEWAY_BROKERS__MAIN__URL=e2e.url(),
            LANEWAY_BROKERS__MAIN__PROPERTIES__ADMIN_URL=e2e.admin().url,
            PATH=f"{pathlib.Path(e2e.LANEWAY).resolve().parent}:{os.environ['PATH']}")

    def topic(self, name):
        return e2e.full(f"{self.stem}_{name}")

    def topics(self):
        return [self.topic(name) for name in TOPICS]

    def commands(self):
        """Those of the README, up to the one that runs until it is stopped."""
        block = re.search(r"^```sh\n(.*?)^```$", (self.folder / "README.md").read_text(), re.M | re.S)
        before, run = block[1].split("laneway run", 1)
        check_equal(run, " -c events.yaml\n", "how the README runs it")
        return before

    def shell(self, text):
        done = subprocess.run(["bash", "-eu", "-c", text], cwd=self.folder, text=True,
                              env=self.environment, capture_output=True, timeout=e2e.PATIENCE_S)
        check_equal(done.returncode, 0, f"{text}: {done.stdout} {done.stderr}")
        return done.stdout

    def start(self):
        return e2e.Service(self.file, self.folder, env=self.environment).start()


@test
def the_readme_is_true(folder):
    example = Example(folder)
    said = example.shell(example.commands())
    check("connected: pulsar://" in said, f"check --connect: {said}")
    check_equal(said.count("not found"), 5, f"topics that check --connect misses: {said}")
    check_equal(said.count(" created\n"), 5, f"topics create: {said}")
    for bad in ('{"id": 21, "fails": 1}', '{"name": "no id"}'):
        example.shell(f"echo '{bad}' | laneway send -c events.yaml {example.stem}_orders")
    service = example.start()
    service.wait_settled(63)  # 62 and a copy in the retry topic
    e2e.wait_backlog(example.topics() + [example.topic("events_retry")],
                     f"{example.stem}_events-sub")
    check_equal(service.stop(), 0, "exit code")
    recorded = re.findall(rf"{example.stem}_(\w+): (\d+)\"", service.log_text())
    check(recorded, "what the handler wrote is in the log")
    runs = collections.Counter(event["topic"] for event in
                               e2e_judge.read_history(service.history)
                               if event["kind"] == "started")
    wanted = dict(zip(example.topics(), (22, 20, 20)), **{example.topic("events_retry"): 1})
    check_equal(dict(runs), wanted, "runs of each topic")
    dead = example.shell(f"laneway peek -c events.yaml -e {example.stem}_events_dead")
    check_equal(dead, '{"name": "no id"}\n', "dead letters")
    again = example.shell("laneway topics plan events.yaml; laneway check --connect events.yaml")
    check("missing" not in again and "not found" not in again, f"the topics are there: {again}")
    print({"runs": sum(runs.values()), "dead": 1, "retried": 1})


@test
def topics_of_equal_priority_take_turns(folder):
    example = Example(folder)
    handler = example.folder / "handlers/record.py"
    slow = handler.read_text().replace(
        "    try:\n", f"    __import__('time').sleep({WORK_S})\n    try:\n", 1)
    check(slow != handler.read_text(), "the handler has a place to be slow at")
    handler.write_text(slow)
    # One has ten times the backlog of the others.
    for name, count in zip(TOPICS, (EACH * 10, EACH, EACH)):
        e2e.produce(example.topic(name), [json.dumps({"id": number}) for number in range(count)])
    service = example.start()
    service.wait_status("the two others", lambda s: all(
        sum(t["settled"].values()) >= EACH for t in s["topics"] if t["topic"].endswith(TOPICS[1:])))
    check_equal(service.stop(), 0, "exit code")
    events = e2e_judge.read_history(service.history)
    starts = [event["topic"] for event in events if event["kind"] == "started"]
    begin = max(starts.index(topic) for topic in example.topics())
    shares = collections.Counter(starts[begin:begin + EACH])
    check(all(EACH * 0.27 <= shares[topic] <= EACH * 0.4 for topic in example.topics()),
          f"of {EACH} starts each topic has about a third: {dict(shares)}")
    print({"starts": EACH, "shares": sorted(shares.values())})


if __name__ == "__main__":
    e2e.run()
