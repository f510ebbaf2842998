# SPDX-License-Identifier: Apache-2.0
"""Offsets that are out of range, and holes: trimmed logs, transactions, compaction. Every record
that is there is handled once, and the commit reaches the end of the log."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import e2e  # noqa: E402
import e2e_judge  # noqa: E402
from e2e import admin, check, check_equal, test  # noqa: E402


def start(folder, topic, reset="earliest"):
    setting = e2e.config(topic, [topic], e2e.handler(log=folder),
                         properties={"auto.offset.reset": reset})
    return e2e.Service(setting, folder).start()


def offsets_run(folder):
    return sorted(run.offset for run in e2e_judge.read_runs(folder, {}))


def wait_committed(topic, end):
    e2e.wait_for(f"commit of {end}", lambda: e2e.committed(topic).get((topic, 0)) == end)


@test
def an_offset_below_a_trimmed_log_goes_on_at_its_start(folder):
    topic = e2e.unique("trimmed")
    admin("create", topic, 1)
    admin("produce", topic, 20)
    admin("seek", topic, topic, 0, 3)
    admin("trim", topic, 0, 10)
    service = start(folder, topic)
    service.wait_settled(10)
    wait_committed(topic, 20)
    check_equal(service.stop(), 0, "exit code")
    check_equal(offsets_run(folder), list(range(10, 20)), "offsets")


@test
def an_offset_beyond_the_end_follows_the_reset_policy(folder):
    topic = e2e.unique("beyond")
    admin("create", topic, 1)
    admin("produce", topic, 20)
    admin("seek", topic, topic, 0, 1000)
    service = start(folder, topic)
    service.wait_settled(20)
    wait_committed(topic, 20)
    check_equal(service.stop(), 0, "exit code")
    check_equal(offsets_run(folder), list(range(20)), "offsets")


@test
def without_a_reset_policy_the_service_ends_and_says_why(folder):
    topic = e2e.unique("noreset")
    admin("create", topic, 1)
    admin("produce", topic, 20)
    service = start(folder, topic, reset="none")
    line = service.wait_log("source.error", code="E0506")
    check("earliest or latest" in line["help"], f"help tells what to do: {line}")
    check_equal(service.code(), 66, "exit code")
    check_equal(offsets_run(folder), [], "nothing ran")


@test
def transactions_leave_holes_and_the_commit_reaches_the_end(folder):
    topic = e2e.unique("holes")
    admin("create", topic, 1)
    for number, transaction in enumerate([(), ("abort",), ("commit",), (), ("abort",)]):
        extra = ("--transaction", *transaction) if transaction else ()
        admin("produce", topic, 10, "--first", number * 10, "--partition", 0, *extra)
    visible = {record["offset"] for record in admin("read", topic)}
    check_equal(len(visible), 30, "records that a reader sees")
    service = start(folder, topic)
    service.wait_settled(30)
    end = admin("end", topic)[0]["offset"]
    check(end > 50, f"control records count: {end}")
    wait_committed(topic, end)
    check_equal(service.stop(), 0, "exit code")
    check_equal(offsets_run(folder), sorted(visible), "offsets")


def compacted(topic, count):
    """Fills a topic until the cleaner has thrown away some of it."""
    admin("create", topic, 1, "cleanup.policy=compact", "segment.ms=200",
          "min.cleanable.dirty.ratio=0.01", "max.compaction.lag.ms=500",
          "min.compaction.lag.ms=0")

    def is_smaller():
        admin("produce", topic, 20, "--keys", 3, "--partition", 0)
        return len(admin("read", topic)) < admin("end", topic)[0]["offset"] - count

    e2e.wait_for("compaction", is_smaller, pause=0.3)


@test
def compaction_leaves_holes_and_the_commit_reaches_the_end(folder):
    topic = e2e.unique("compacted")
    compacted(topic, 20)
    service = start(folder, topic)
    end = admin("end", topic)[0]["offset"]
    wait_committed(topic, end)
    check_equal(service.stop(), 0, "exit code")
    done = offsets_run(folder)
    check_equal(sorted(set(done)), done, "each once")
    check(0 < len(done) < end, f"{len(done)} of {end} were left")


@test
def a_second_run_begins_where_the_first_one_ended(folder):
    topic = e2e.unique("again")
    admin("create", topic, 1)
    admin("produce", topic, 10)
    first = start(folder, topic)
    first.wait_settled(10)
    check_equal(first.stop(), 0, "exit code of the first run")
    admin("produce", topic, 10, "--first", 10)
    second = start(folder, topic)
    second.wait_settled(10)
    check_equal(second.stop(), 0, "exit code of the second run")
    check_equal(offsets_run(folder), list(range(20)), "offsets")
    status = json.dumps(e2e.committed(topic).get((topic, 0)))
    check_equal(status, "20", "committed offset")


if __name__ == "__main__":
    e2e.run()
