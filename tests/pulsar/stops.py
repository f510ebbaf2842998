# SPDX-License-Identifier: Apache-2.0
"""How a service ends on Pulsar, and what operators may do to it: a stop in the middle, a drain that
takes too long, a second signal, an outage, a pause; and a second member that joins."""
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
import e2e_judge  # noqa: E402
from e2e_pulsar import check, check_equal, test  # noqa: E402
from e2e_pulsar_job import Job, read_runs  # noqa: E402


def start(folder, topic, rules=(), drain="15s", arguments=(), **handler):
    one = e2e.handler(rules, log=folder, **handler)
    setting = e2e.config("sub", [topic], one)
    setting["service"]["drain_timeout"] = drain
    return e2e.Service(setting, folder, arguments=arguments).start()


@test
def a_stop_in_the_middle_leaves_nothing_to_run_again(folder):
    job = Job(folder, 3000, name="middle")
    first = job.start(work_ms=5)
    job.wait_runs(job.total // 3)
    check_equal(first.stop(), 0, "exit code of the first run")
    check(e2e.backlog(job.topics[2], job.subscription) > 0, "it was stopped before its end")
    second = job.start()
    job.wait_done()
    check_equal(second.stop(), 0, "exit code of the second run")
    counts = job.check_all(0)
    check(second.find("pulsar.connected") is not None, "the second run did the rest")
    print(counts)


@test
def a_member_that_joins_gets_work_within_a_second(folder):
    topic, logs = e2e.unique("joins"), [folder / "first", folder / "second"]
    e2e.produce(topic, e2e.numbered(4000))
    members = []
    for name, log in zip(("first", "second"), logs):
        log.mkdir()
        one = e2e.handler(log=log, work_ms=10, workers=4)
        setting = e2e.config("sub", [topic], one, concurrency=4)
        members.append(e2e.Service(setting, folder, name).start())
        e2e.wait_for(f"runs of {name}", lambda: len(read_runs(log)) >= 400)
    e2e.wait_backlog([topic], "sub")
    for member in members:
        check_equal(member.stop(), 0, f"exit code of {member.name}")
    first, second = (read_runs(log) for log in logs)
    events = e2e_judge.read_history(members[1].history)
    joined = next(event["t"] for event in events if event["kind"] == "assigned")
    waited = (second[0].start - joined) / 1e9
    check(waited <= 1, f"it waited {waited:.2f} s for its first message")
    check_equal(sorted(run.number for run in first + second), list(range(4000)), "runs")
    after = sum(run.start > second[0].start for run in first)
    share = len(second) / (len(second) + after)
    check(0.25 <= share <= 0.75, f"its share from then on is {share:.2f}")
    print({"joined_ms": round(waited * 1000), "share_afterwards": round(share, 2)})


@test
def a_drain_that_takes_too_long_gives_back_and_says_so(folder):
    topic = e2e.unique("late")
    e2e.produce(topic, e2e.numbered(4))
    service = start(folder, topic, [[4, 1, ["sleep:30"]]], drain="1s")
    service.wait_status("one runs", lambda s: e2e.settled_of(s) == 3 and s["slots_busy"] == 1)
    check_equal(service.stop(), 75, "exit code")
    check_equal(e2e.admin().backlog(topic, "sub"), {"entries": 1, "unacked": 0}, "backlog")
    second = start(folder, topic)
    e2e.wait_backlog([topic], "sub")
    check_equal(second.stop(), 0, "exit code of the second run")
    runs = sorted(run.number for run in read_runs(folder) if run.end)
    check(set(runs) == {0, 1, 2, 3}, f"runs: {runs}")


@test
def a_second_signal_ends_at_once(folder):
    topic = e2e.unique("twice")
    e2e.produce(topic, e2e.numbered(1))
    service = start(folder, topic, [[1, 0, ["sleep:30"]]])
    service.wait_status("it runs", lambda s: s["slots_busy"] == 1)
    service.process.send_signal(signal.SIGINT)
    service.wait_log("service.draining")
    service.process.send_signal(signal.SIGINT)
    check_equal(service.code(), 130, "exit code")
    check_equal(e2e.backlog(topic, "sub"), 1, "backlog")


@test
def an_outage_ends_the_service_only_when_asked(folder):
    setting = e2e.config("sub", ["t"], e2e.handler(), address="pulsar://127.0.0.1:1")
    service = e2e.Service(setting, folder, arguments=["--exit-on-outage", "3s"]).start()
    check_equal(service.code(), 69, "exit code")
    check(service.find("broker.down", code="E0501") is not None, "the log says why")


@test
def a_paused_topic_starts_nothing_until_it_is_resumed(folder):
    topic, other = e2e.unique("paused"), e2e.unique("other")
    for each in (topic, other):
        e2e.admin().create(each)
    setting = e2e.config("sub", [topic, other], e2e.handler(log=folder))
    service = e2e.Service(setting, folder).start()
    service.wait_status("assigned", lambda s: all(t["partitions"] for t in s["topics"]))
    done = service.ask("pause", topic, "--reason", "db migration")
    check_equal(done.returncode, 0, f"exit code of pause: {done.stderr}")
    e2e.produce(topic, e2e.numbered(10))
    e2e.produce(other, e2e.numbered(10, 10))
    service.wait_settled(10)
    check_equal({run.number for run in read_runs(folder)}, set(range(10, 20)), "what ran")
    found = service.topic(e2e.full(topic)) or service.topic(topic)
    check_equal(found["state"], "paused", "state")
    check("db migration" in found["reason"], f"the reason is shown: {found}")
    check_equal(service.ask("resume", topic).returncode, 0, "exit code of resume")
    service.wait_settled(20)
    check_equal(service.stop(), 0, "exit code")


@test
def drain_by_command_ends_like_a_signal(folder):
    topic = e2e.unique("drained")
    e2e.produce(topic, e2e.numbered(10))
    service = start(folder, topic)
    service.wait_settled(10)
    check_equal(service.ask("drain").returncode, 0, "exit code of drain")
    check_equal(service.code(), 0, "exit code of the service")
    check_equal(e2e.backlog(topic, "sub"), 0, "backlog")


if __name__ == "__main__":
    e2e.run()
