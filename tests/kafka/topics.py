# SPDX-License-Identifier: Apache-2.0
"""Topics that are absent or denied, and a broker that is not there: laneway waits, says what to
do, charges no message, and goes on by itself."""
import json
import pathlib
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import e2e  # noqa: E402
import e2e_judge  # noqa: E402
from e2e import admin, check, check_equal, test  # noqa: E402

REFRESH = {"topic.metadata.refresh.interval.ms": "1000"}
ALL_DEAD = [[1, 0, ["dead"]]]


def runs_of(folder):
    return e2e_judge.read_runs(folder, {})


@test
def a_missing_topic_is_named_and_consumed_once_it_exists(folder):
    topic = e2e.unique("absent")
    setting = e2e.config(topic, [topic], e2e.handler(), properties=REFRESH)
    service = e2e.Service(setting, folder).start()
    line = service.wait_log("source.error", code="E0503")
    check(topic in line["msg"], f"the message names the topic: {line}")
    check("laneway topics create" in line["help"], f"help tells what to do: {line}")
    admin("create", topic, 2)
    admin("produce", topic, 20)
    service.wait_settled(20)
    check_equal(service.stop(), 0, "exit code")


@test
def a_missing_dead_letter_topic_stops_receiving_until_it_exists(folder):
    topic = e2e.unique("nodlq")
    admin("create", topic, 1)
    admin("produce", topic, 50)
    setting = e2e.config(topic, [topic], e2e.handler(ALL_DEAD, log=folder),
                         max_in_flight=10, properties=REFRESH)
    service = e2e.Service(setting, folder).start()
    line = service.wait_log("publish.refused", to=f"{topic}.dlq")
    check("laneway topics create" in line["msg"], f"it says what to do: {line}")
    service.wait_status("publish blocked",
                        lambda s: s["topics"][0]["state"] == "publish blocked")
    check_equal(e2e.committed(topic).get((topic, 0), -1) <= 0, True, "nothing is committed")
    admin("create", f"{topic}.dlq", 1)
    service.wait_settled(50)
    check_equal(service.stop(), 0, "exit code")
    check_equal(len(admin("read", f"{topic}.dlq")), 50, "dead letters")
    check_equal(len(runs_of(folder)), 50, "runs: a refused publication runs no handler again")
    e2e.check_all_committed(topic, [topic])


@test
def a_denied_dead_letter_topic_stops_receiving_until_it_is_allowed(folder):
    topic = e2e.unique("denied")
    admin("create", f"{topic},{topic}.dlq", 1)
    admin("produce", topic, 5)
    admin("deny", f"{topic}.dlq", "ANONYMOUS", "WRITE")
    service = e2e.Service(e2e.config(topic, [topic], e2e.handler(ALL_DEAD, log=folder)),
                          folder).start()
    line = service.wait_log("publish.refused", status="denied")
    check("denies writing" in line["msg"], f"it says that it is denied: {line}")
    service.wait_status("publish blocked",
                        lambda s: s["topics"][0]["state"] == "publish blocked")
    admin("allow", f"{topic}.dlq")
    service.wait_log("publish.unblocked")
    service.wait_settled(5)
    check_equal(service.stop(), 0, "exit code")
    check_equal(len(admin("read", f"{topic}.dlq")), 5, "dead letters")
    check_equal(len(runs_of(folder)), 5, "runs")


@test
def a_denied_source_topic_is_named(folder):
    topic = e2e.unique("unread")
    admin("create", topic, 1)
    admin("produce", topic, 5)
    admin("deny", topic, "ANONYMOUS", "READ")
    service = e2e.Service(e2e.config(topic, [topic], e2e.handler(), properties=REFRESH),
                          folder).start()
    line = service.wait_log("source.error", code="E0504")
    check("READ" in line["help"] and topic in line["help"], f"help names the right: {line}")
    admin("allow", topic)
    service.wait_settled(5)
    check_equal(service.stop(), 0, "exit code")


@test
def a_denied_group_is_named(folder):
    topic = e2e.unique("group")
    admin("create", topic, 1)
    admin("produce", topic, 5)
    admin("deny", topic, "ANONYMOUS", "READ", "--kind", "GROUP")
    service = e2e.Service(e2e.config(topic, [topic], e2e.handler()), folder).start()
    line = service.wait_log("source.error", code="E0504")
    check(f'READ on the group "{topic}"' in line["help"], f"help names the right: {line}")
    admin("allow", topic, "--kind", "GROUP")
    service.wait_settled(5)
    check_equal(service.stop(), 0, "exit code")


class Door:
    """Listens on an address later on and passes connections to the real broker."""

    def __init__(self):
        self.place = socket.socket()
        self.place.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.place.getsockname()[1]

    def open(self):
        self.place.listen(50)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        host, port = e2e.bootstrap().split(",")[0].rsplit(":", 1)
        while True:
            client = self.place.accept()[0]
            server = socket.create_connection((host, int(port)))
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    @staticmethod
    def _pump(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass
        finally:
            target.close()


@test
def an_unreachable_broker_is_waited_for(folder):
    topic, door = e2e.unique("later"), Door()
    admin("create", topic, 1)
    admin("produce", topic, 5)
    setting = e2e.config(topic, [topic], e2e.handler(), url=f"kafka://{door.address}")
    service = e2e.Service(setting, folder).start()
    line = service.wait_log("broker.down", code="E0501")
    check(door.address in line["msg"], f"the message names the address: {line}")
    check("nothing is lost" in line["help"], f"help says that it goes on: {line}")
    health = service.wait_status("down", lambda s: "broker main down" in s["health"])
    check_equal(health["topics"][0]["state"], "broker down", "state of the topic")
    door.open()
    service.wait_log("broker.up")
    service.wait_settled(5)
    check_equal(service.stop(), 0, "exit code")


@test
def check_connect_names_what_is_absent_and_topics_create_makes_it(folder):
    topic = e2e.unique("made")
    admin("create", topic, 3)
    setting = e2e.config(topic, [topic], e2e.handler())
    file = folder / "made.yaml"
    file.write_text(json.dumps(setting))
    found = e2e.laneway("check", "--connect", str(file))
    check_equal(found.returncode, 0, f"exit code of check: {found.stderr}")
    check(f"{topic}.dlq" in found.stdout + found.stderr, f"check names it: {found}")
    made = e2e.laneway("topics", "create", str(file))
    check_equal(made.returncode, 0, f"exit code of topics create: {made.stderr}")
    there = {each["topic"]: each["partitions"] for each in admin("list")}
    check_equal(there.get(f"{topic}.dlq"), 3, "partitions of the dead-letter topic")


@test
def check_connect_says_that_a_broker_is_unreachable(folder):
    setting = e2e.config("g", ["t"], e2e.handler(), url=f"kafka://{Door().address}")
    (folder / "far.yaml").write_text(json.dumps(setting))
    found = e2e.laneway("check", "--connect", str(folder / "far.yaml"))
    check_equal(found.returncode, 69, f"exit code: {found.stdout} {found.stderr}")
    check("error[E0501]: cannot use broker" in found.stdout, f"it says why: {found}")


if __name__ == "__main__":
    e2e.run()
