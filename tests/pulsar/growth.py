# SPDX-License-Identifier: Apache-2.0
"""What grows while a service runs is found without a restart: partitions of a topic, and topics
that fit a pattern."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
from e2e_pulsar import check, check_equal, test  # noqa: E402
from e2e_pulsar_job import read_runs  # noqa: E402


@test
def a_topic_that_grows_from_two_to_four_partitions(folder):
    topic = e2e.unique("grows")
    e2e.admin().create(topic, 2)
    setting = e2e.config("sub", [topic], e2e.handler(log=folder))
    setting["brokers"]["main"]["properties"] = {"partitions_update_interval_seconds": "1"}
    service = e2e.Service(setting, folder).start()
    service.wait_status("two partitions", lambda s: s["topics"][0]["partitions"] == 2)
    e2e.produce(topic, e2e.numbered(1000, 0, 50), e2e.key_of)
    e2e.wait_for("the middle", lambda: len(read_runs(folder)) >= 500)
    e2e.admin().grow(topic, 4)
    service.wait_log("pulsar.partitions_grown", partitions=4)
    service.wait_status("four partitions", lambda s: s["topics"][0]["partitions"] == 4)
    # A new connection of the official client, which knows the four.
    e2e.forget_client()
    e2e.produce(topic, e2e.numbered(1000, 1000, 50), e2e.key_of)
    service.wait_settled(2000)
    e2e.wait_backlog([topic], "sub")
    check_equal(service.stop(), 0, "exit code")
    runs = read_runs(folder)
    check_equal(sorted(run.number for run in runs), list(range(2000)), "runs")
    check_equal(len({run.topic for run in runs if run.number >= 1000}), 4, "partitions that ran")


@test
def a_topic_that_grew_before_anything_looked_loses_nothing(folder):
    """What was published to a new partition before it was found waits for its subscriber."""
    topic = e2e.unique("early")
    e2e.admin().create(topic, 2)
    setting = e2e.config("sub", [topic], e2e.handler(log=folder),
                         properties={"initial_position": "latest"})
    setting["brokers"]["main"]["properties"] = {"partitions_update_interval_seconds": "2"}
    service = e2e.Service(setting, folder).start()
    e2e.wait_consumers(topic, "sub", 2)
    e2e.admin().grow(topic, 4)
    e2e.forget_client()
    e2e.produce(topic, e2e.numbered(400, 0, 50), e2e.key_of)
    service.wait_settled(400)
    check_equal(service.stop(), 0, "exit code")
    check_equal(sorted(run.number for run in read_runs(folder)), list(range(400)), "runs")


@test
def a_new_topic_of_a_pattern_is_found(folder):
    stem = e2e.unique("pattern")
    first, second, third, other = (f"{stem}-{name}" for name in ("a", "b", "c", "x"))
    for topic in (first, other):
        e2e.admin().create(topic)
    setting = e2e.config("sub", [], e2e.handler(log=folder),
                         properties={"pattern_auto_discovery_period": "1"})
    setting["pipelines"]["work"]["topics"] = [{"name": f"{stem}-[a-c]"}]
    service = e2e.Service(setting, folder).start()
    e2e.wait_consumers(first, "sub", 1)
    e2e.produce(first, e2e.numbered(10))
    e2e.produce(second, e2e.numbered(10, 10))  # not subscribed: it is made by this
    e2e.admin().create(third, 2)
    e2e.wait_consumers(third, "sub", 2)
    e2e.produce(third, e2e.numbered(10, 20, 10), e2e.key_of)
    e2e.produce(other, e2e.numbered(10, 90))
    service.wait_settled(30)
    check_equal(service.stop(), 0, "exit code")
    runs = read_runs(folder)
    check_equal(sorted(run.number for run in runs), list(range(30)), "runs")
    check(other not in e2e.admin().topics("public/default") or
          e2e.admin().subscriptions(other) == [], "what does not fit is left alone")
    for topic in (first, second, third):
        check_equal(e2e.backlog(topic, "sub"), 0, f"backlog of {topic}")


if __name__ == "__main__":
    e2e.run()
