# SPDX-License-Identifier: Apache-2.0
"""docs/from-pulsar-dispatcher.md is true: its two programs, as they stand there, do the same with the
same orders; the second goes on where the first was stopped; every parameter that the installed
pulsar-dispatcher and its client have is a row of the page, and a name that Laneway knows."""
import inspect
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import e2e_base  # noqa: E402

e2e_base.go_on_with("pulsar_dispatcher", "pulsar", "python", "--dispatcher")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
import pulsar  # noqa: E402
import pulsar.asyncio  # noqa: E402
import pulsar_dispatcher  # noqa: E402
from e2e_pulsar import check, check_equal, check_same, test, wait_for  # noqa: E402

PAGE = e2e.ROOT / "docs/from-pulsar-dispatcher.md"
FILES = {"before.py": "py", "orders.yaml": "yaml", "orders.py": "python"}
NAMES = re.compile(r"\b(orders-retry|orders-sub|confirmations|orders)\b(?!\.(?:py|yaml))")
COUNT, NEVER, MAX_RETRIES = 200, 13, 5


class Program:
    """Files of the page on topics of their own; `stem` names them."""

    def __init__(self, folder, name, stem=None):
        self.folder, self.process, self.service = folder / name, None, None
        self.folder.mkdir()
        self.stem = stem or e2e.unique("ported")
        page = PAGE.read_text()
        for file, kind in FILES.items():
            found = re.search(rf"^`{re.escape(file)}`:\n\n```{kind}\n(.*?)^```$", page, re.M | re.S)
            check(found, f"the page has a block {file}")
            text = found[1].replace("pulsar://localhost:6650", e2e.url())
            (self.folder / file).write_text(NAMES.sub(rf"{self.stem}-\1", text))
        self.dead = f"{self.topic('orders')}-{self.topic('orders-sub')}-DLQ"

    def topic(self, name):
        return f"{self.stem}-{name}"

    def make_topics(self):
        """With a shelf where what comes out stays until it is read."""
        e2e.admin().create(self.topic("orders"))
        for topic in (self.topic("orders-retry"), self.topic("confirmations"), self.dead):
            e2e.admin().create(topic)
            e2e.admin().subscribe(topic, "shelf")

    def start_before(self):
        self.process = subprocess.Popen([sys.executable, "before.py"], cwd=self.folder,
                                        stderr=open(self.folder / "log", "w"),
                                        preexec_fn=e2e_base.die_with_parent)
        return self

    def start_after(self):
        self.service = e2e.Service(self.folder / "orders.yaml", self.folder, "after").start()
        return self

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        if self.service:
            check_equal(self.service.stop(), 0, "exit code of laneway")

    def values(self, topic):
        return sorted(message["value"] for message in e2e.read(topic))

    def wait_values(self, topic, count):
        return wait_for(f"{count} messages in {topic}",
                        lambda: len(set(self.values(topic))) >= count, pause=0.3)


def order(number):
    if number % 50 == 7:
        return json.dumps({"name": f"no id {number}"})
    fails = 99 if number == NEVER else 1 if number % 20 == 3 else 0
    return json.dumps({"id": number, **({"fails": fails} if fails else {})})


def origin_of(message):
    """What both sides say of a dead letter, full names for short ones."""
    properties = message["properties"]
    target = properties.get("DEAD_LETTER_TOPIC")
    return (message["value"], properties.get("RECONSUMETIMES", "0"),
            e2e.full(properties["REAL_TOPIC"]).rsplit("-", 1)[1],
            target and e2e.full(target).rsplit("-", 3)[1:])


@test
def the_two_programs_do_the_same(folder):
    programs = [Program(folder, "first"), Program(folder, "second")]
    orders = [order(number) for number in range(COUNT)]
    dead = [value for number, value in enumerate(orders) if number % 50 == 7 or number == NEVER]
    confirmed = sorted(json.dumps({"confirmed": number}) for number in range(COUNT)
                       if number % 50 != 7 and number != NEVER)
    for program in programs:
        program.make_topics()
        e2e.produce(program.topic("orders"), orders)
    programs[0].start_before()
    programs[1].start_after()
    for program in programs:
        program.wait_values(program.topic("confirmations"), len(confirmed))
        program.wait_values(program.dead, len(dead))
        e2e.wait_backlog([program.topic("orders"), program.topic("orders-retry")],
                         program.topic("orders-sub"))
        program.stop()
        check_equal(program.values(program.topic("confirmations")), confirmed, "confirmations")
        check_equal(program.values(program.dead), sorted(dead), "dead letters")
    origins = [sorted(map(origin_of, e2e.read(program.dead)), key=str) for program in programs]
    check_equal(origins[1], origins[0], "what dead letters say of their origin")
    check_equal([o[1] for o in origins[1] if "fails" in o[0]], [str(MAX_RETRIES)], "retries")
    print({"orders": COUNT, "confirmed": len(confirmed), "dead": len(dead), "programs": 2})


def counts(program):
    return [message["properties"]["RECONSUMETIMES"]
            for message in e2e.read(program.topic("orders-retry"))]


@test
def the_second_goes_on_where_the_first_was_stopped(folder):
    first = Program(folder, "first")
    first.make_topics()
    orders = [json.dumps({"id": number}) for number in range(20)]
    e2e.produce(first.topic("orders"), orders + ['{"id": 20, "fails": 3}'])
    first.start_before()
    wait_for("the first retry", lambda: counts(first), pause=0.1)
    e2e.wait_backlog([first.topic("orders")], first.topic("orders-sub"))
    first.stop()
    # What the first would have left there of an order that failed five times, in its spelling.
    e2e.produce(first.topic("orders-retry"), ['{"id": 99, "fails": 99}'],
                properties={"RECONSUMETIMES": str(MAX_RETRIES), "DEAD_LETTER_TOPIC": first.dead,
                            "REAL_TOPIC": e2e.full(first.topic("orders"))})
    second = Program(folder, "second", first.stem).start_after()
    wanted = [json.dumps({"confirmed": number}) for number in range(21)]
    second.wait_values(second.topic("confirmations"), len(wanted))
    e2e.wait_backlog([second.topic("orders-retry")], second.topic("orders-sub"))
    second.stop()
    check_same(second.values(second.topic("confirmations")), wanted, "confirmations")
    check_equal(second.values(second.dead), ['{"id": 99, "fails": 99}'], "dead letters")
    found = [count for count in counts(second) if count != str(MAX_RETRIES)]
    check_equal(sorted(set(found)), ["1", "2", "3"], "retries over both programs")
    check_equal(found.count("1"), 1, "the count goes on instead of beginning again")


def parameters(*functions):
    found = []
    for function in functions:
        found += [name for name, each in inspect.signature(function).parameters.items()
                  if name not in ("self", "service_url") and each.kind != each.VAR_KEYWORD]
    return sorted(set(found))


@test
def every_parameter_has_a_row(folder):
    del folder
    rows = set(re.findall(r"^\| `([a-z_]+)` \|", PAGE.read_text(), re.M))
    dispatcher = pulsar_dispatcher.PulsarDispatcher
    wanted = parameters(dispatcher.__init__, dispatcher.subscribe,
                        dispatcher.subscribe_multiple_priorities, pulsar.Client.__init__,
                        pulsar.asyncio.Client.subscribe)
    check(len(wanted) >= 50, f"only {len(wanted)} parameters were found")
    check_equal([name for name in wanted if name not in rows], [], "parameters without a row")
    public = [name for name in pulsar_dispatcher.__all__
              if name.isidentifier() and name not in ("__version__", "version")]
    missing = [name for name in public if name not in PAGE.read_text() and
               name not in ("BackoffFunction", "MessageHandler")]
    check_equal(missing, [], "public names that the page does not mention")
    print({"parameters": len(wanted), "rows": len(rows)})


@test
def every_parameter_of_the_client_is_known_by_name(folder):
    names = parameters(pulsar.Client.__init__, pulsar.Client.subscribe,
                       pulsar.asyncio.Client.subscribe, pulsar.Client.create_producer,
                       pulsar.asyncio.Client.create_producer)
    setting = e2e.config("s", ["t"], {"builtin": "noop"})
    setting["brokers"]["main"]["properties"] = {name: "?" for name in names}
    (folder / "all.yaml").write_text(json.dumps(setting))
    said = e2e.laneway("check", "--json", str(folder / "all.yaml"))
    found = json.loads(said.stdout)["diagnostics"]
    unknown = [each["message"] for each in found if each["code"] == "E0414"]
    check_equal(unknown, [], "parameters that are not known")
    check(len(names) >= 50, f"only {len(names)} parameters were found")
    print({"parameters": len(names)})


if __name__ == "__main__":
    e2e.run()
