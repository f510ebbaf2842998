# SPDX-License-Identifier: Apache-2.0
"""How a service ends, and what operators may do to it: a stop in the middle, a drain that takes
too long, a second signal, an outage, a pause. Each with its exit code."""
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import e2e  # noqa: E402
import e2e_judge  # noqa: E402
from e2e import admin, check, check_equal, test  # noqa: E402
from e2e_job import Job  # noqa: E402


def start(folder, topic, rules=(), drain="15s", arguments=(), **handler):
    one = e2e.handler(rules, log=folder, **handler)
    setting = e2e.config(topic, [topic], one, properties=e2e.STEADY_SESSION)
    setting["service"]["drain_timeout"] = drain
    return e2e.Service(setting, folder, arguments=arguments).start()


def runs_of(folder):
    return e2e_judge.read_runs(folder, {})


@test
def a_stop_in_the_middle_leaves_nothing_to_run_again(folder):
    job = Job(folder, 3000, name="middle")
    first = job.start(work_ms=5)  # 7 s for all, so that the stop comes in the middle
    first.wait_settled(job.total // 3)
    check_equal(first.stop(), 0, "exit code of the first run")
    check(job.lag(0) > 0, "the first run was stopped before its end")
    second = job.start()
    check_equal(job.lag(e2e.PATIENCE_S), 0, "lag")
    check_equal(second.stop(), 0, "exit code of the second run")
    counts = job.check_all()
    check_equal(counts["duplicates"], 0, "duplicates")
    print(counts)


@test
def a_drain_that_takes_too_long_gives_back_and_says_so(folder):
    topic = e2e.unique("late")
    admin("create", topic, 1)
    admin("produce", topic, 4, "--keys", 1)
    service = start(folder, topic, [[4, 1, ["sleep:30"]]], drain="1s")
    service.wait_status("one runs", lambda s: e2e.settled_of(s) == 1 and s["slots_busy"] == 1)
    check_equal(service.stop(), 75, "exit code")
    check_equal(e2e.committed(topic)[topic, 0], 1, "committed offset")
    second = start(folder, topic)
    second.wait_settled(3)
    check_equal(second.stop(), 0, "exit code of the second run")
    check_equal(sorted(run.offset for run in runs_of(folder)), [0, 1, 1, 2, 3], "runs")


@test
def a_second_signal_ends_at_once(folder):
    topic = e2e.unique("twice")
    admin("create", topic, 1)
    admin("produce", topic, 1)
    service = start(folder, topic, [[1, 0, ["sleep:30"]]])
    service.wait_status("it runs", lambda s: s["slots_busy"] == 1)
    service.process.send_signal(signal.SIGINT)
    service.wait_log("service.draining")
    service.process.send_signal(signal.SIGINT)
    check_equal(service.code(), 130, "exit code")
    check_equal(e2e.committed(topic).get((topic, 0), 0) <= 0, True, "nothing was committed")


@test
def an_outage_ends_the_service_only_when_asked(folder):
    setting = e2e.config("g", ["t"], e2e.handler(), url="kafka://127.0.0.1:1")
    service = e2e.Service(setting, folder, arguments=["--exit-on-outage", "5s"]).start()
    check_equal(service.code(), 69, "exit code")
    check(service.find("broker.down", code="E0501") is not None, "the log says why")


@test
def a_paused_topic_starts_nothing_until_it_is_resumed(folder):
    topic, other = e2e.unique("paused"), e2e.unique("other")
    admin("create", f"{topic},{other}", 1)
    setting = e2e.config(topic, [topic, other], e2e.handler(log=folder))
    service = e2e.Service(setting, folder).start()
    service.wait_status("assigned", lambda s: all(t["partitions"] for t in s["topics"]))
    done = service.ask("pause", topic, "--reason", "db migration")
    check_equal(done.returncode, 0, f"exit code of pause: {done.stderr}")
    admin("produce", topic, 10)
    admin("produce", other, 10)
    service.wait_settled(10)
    check_equal({run.topic for run in runs_of(folder)}, {other}, "topics that ran")
    found = service.topic(topic)
    check_equal(found["state"], "paused", "state")
    check("db migration" in found["reason"], f"the reason is shown: {found}")
    check_equal(service.ask("resume", topic).returncode, 0, "exit code of resume")
    service.wait_settled(20)
    check_equal(service.stop(), 0, "exit code")


@test
def drain_by_command_ends_like_a_signal(folder):
    topic = e2e.unique("drained")
    admin("create", topic, 1)
    admin("produce", topic, 10)
    service = start(folder, topic)
    service.wait_settled(10)
    check_equal(service.ask("drain").returncode, 0, "exit code of drain")
    check_equal(service.code(), 0, "exit code of the service")
    e2e.check_all_committed(topic, [topic])


if __name__ == "__main__":
    e2e.run()
