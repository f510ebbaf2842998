# SPDX-License-Identifier: Apache-2.0
"""What a broker refuses while all else is well: each is said in plain words, nothing is lost, and
what can pass goes on by itself once the cause is gone."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
import pulsar  # noqa: E402
import _pulsar  # noqa: E402
from e2e_pulsar import check, check_equal, test  # noqa: E402
from e2e_pulsar_job import read_runs  # noqa: E402


def say(line):
    print(f"{line.get('code')} {line['msg']} {line.get('reason', '')}\n  help: {line.get('help')}")


def replies(count, first=0):
    return [json.dumps({"i": number, "do": ["reply"]}) for number in range(first, first + count)]


class Replying:
    """A service whose replies go to a topic that the test spoils."""

    def __init__(self, folder, name, reply):
        self.folder, self.topic, self.reply = folder, e2e.unique(name), reply
        setting = e2e.config("sub", [self.topic], e2e.handler(log=folder), reply={"topic": reply})
        e2e.produce(self.topic, replies(10))
        self.service = e2e.Service(setting, folder).start()

    def wait_blocked(self, *words):
        line = self.service.wait_log("pulsar.publish_blocked", timeout=60)
        say(line)
        for word in words:
            check(word in line["reason"], f"no {word!r} in {line}")
        check_equal(e2e.settled_of(self.service.status()), 0, "settled without its reply")
        return line

    def finish(self, count=10):
        """Every message has its reply now; none ran twice."""
        self.service.wait_log("pulsar.publish_again")
        self.service.wait_settled(count)
        e2e.wait_backlog([self.topic], "sub")
        check_equal(self.service.stop(), 0, "exit code")
        runs = [run.number for run in read_runs(self.folder)]
        check_equal(sorted(runs), list(range(count)), "runs")
        done = [json.loads(message["value"])["done"] for message in e2e.read(self.reply)]
        e2e.check_same(done, range(count), "replies")
        return done


@test
def a_namespace_that_is_missing_is_waited_for(folder):
    namespace = f"public/{e2e.unique('nowhere')}"
    topic = f"{namespace}/orders"
    service = e2e.Service(e2e.config("sub", [topic], e2e.handler(log=folder)), folder).start()
    line = service.wait_log("source.error", timeout=60)
    say(line)
    check("Namespace not found" in line["msg"] and topic in line["msg"], f"what is missing: {line}")
    check(line["help"] != "", "what to do")
    e2e.admin().create_namespace(namespace)
    e2e.produce(topic, e2e.numbered(10))
    service.wait_settled(10)
    check_equal(service.stop(), 0, "exit code")


@test
def a_topic_that_was_terminated_is_finished_and_the_service_stays(folder):
    topic, other = e2e.unique("ended"), e2e.unique("lives")
    e2e.produce(topic, e2e.numbered(100))
    e2e.admin().terminate(topic)
    setting = e2e.config("sub", [topic, other], e2e.handler(log=folder))
    service = e2e.Service(setting, folder).start()
    line = service.wait_log("pulsar.end_of_topic", timeout=60)
    say(line)
    check(topic in line["topic"], f"which one: {line}")
    e2e.produce(other, e2e.numbered(10, 100))
    service.wait_settled(110)
    check_equal(service.stop(), 0, "exit code")
    check_equal(sorted(run.number for run in read_runs(folder)), list(range(110)), "runs")


@test
def replies_to_a_terminated_topic_wait_for_another_of_its_name(folder):
    reply = e2e.unique("full-stop")
    e2e.admin().create(reply)
    e2e.admin().terminate(reply)
    work = Replying(folder, "stopped", reply)
    work.wait_blocked("terminated")
    e2e.admin().delete(reply)
    work.finish()


@test
def replies_wait_while_a_quota_is_exceeded(folder):
    namespace = f"public/{e2e.unique('quota')}"
    e2e.admin().create_namespace(namespace)
    reply = f"{namespace}/replies"
    e2e.admin().subscribe(reply, "shelf")
    e2e.admin().policy(namespace, "backlog-quota", "1000")
    e2e.produce(reply, [json.dumps({"done": -1, "pad": "x" * 3000})], batch=1)

    def is_exceeded():
        try:
            e2e.client().create_producer(reply).close()
        except pulsar.PulsarException:
            return True
        return False

    e2e.wait_for("the broker to look at its quotas", is_exceeded)
    work = Replying(folder, "quota", reply)
    work.wait_blocked("quota")
    e2e.admin().policy(namespace, "backlog-quota", "10000000")
    e2e.admin().skip(reply, "shelf")
    work.service.wait_log("pulsar.publish_again")
    work.service.wait_settled(10)
    check_equal(work.service.stop(), 0, "exit code")
    check_equal(sorted(run.number for run in read_runs(folder)), list(range(10)), "runs")


@test
def replies_wait_for_the_end_of_an_exclusive_producer(folder):
    reply = e2e.unique("fenced")
    e2e.admin().subscribe(reply, "shelf")
    producer = e2e.client().create_producer(
        reply, access_mode=_pulsar.ProducerAccessMode.Exclusive)
    work = Replying(folder, "exclusive", reply)
    work.wait_blocked("ProducerBusy")
    producer.close()
    work.finish()


@test
def an_exclusive_producer_that_fences_ours_is_told(folder):
    """The one that was fenced is told nothing by the broker; its connection ends at its next
    message, and from then on it waits."""
    reply = e2e.unique("ousted")
    e2e.admin().subscribe(reply, "shelf")
    work = Replying(folder, "fencing", reply)
    work.service.wait_settled(10)
    producer = e2e.client().create_producer(
        reply, access_mode=_pulsar.ProducerAccessMode.ExclusiveWithFencing)
    e2e.produce(work.topic, replies(10, 10))
    line = work.service.wait_log("pulsar.publish_blocked", timeout=60)
    say(line)
    producer.close()
    done = work.finish(20)
    print({"replies": len(done)})


if __name__ == "__main__":
    e2e.run()
