# SPDX-License-Identifier: Apache-2.0
"""Delays on a real Pulsar: of retry copies, of what is given back, of outputs. The broker's clock
for them ticks once a second: it keeps them to a tick, early or late (0.8 s early and 1.3 s late were
seen), and does not delay by less than one. What is given back is our own clock's."""
import collections
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
import pulsar  # noqa: E402
from e2e_pulsar import check, check_equal, test  # noqa: E402
from e2e_pulsar_job import read_runs  # noqa: E402

EARLY_S, LATE_S = 1.0, 1.5
BUSY_S = 1.0  # what one of many may be late beyond that, when others use the machine


def orders(results):
    return [json.dumps({"i": number, "do": each}) for number, each in enumerate(results)]


def check_waits(waits, delay_s, what, early_s=EARLY_S):
    """waits: seconds that it took, of several messages with the same delay."""
    late = sorted(wait - delay_s for wait in waits)
    print({"what": what, "delay_s": delay_s, "median_s": round(late[len(late) // 2], 2),
           "least_s": round(late[0], 2), "most_s": round(late[-1], 2)})
    check(late[0] >= -early_s, f"{what}: {-late[0]:.2f} s too early")
    check(late[len(late) // 2] <= LATE_S, f"{what}: half are {late[len(late) // 2]:.2f} s late")
    check(late[-1] <= LATE_S + BUSY_S, f"{what}: {late[-1]:.2f} s too late")


def waits_of(folder):
    """Returns {number: seconds between the end of its first run and the start of its second}."""
    runs = collections.defaultdict(list)
    for run in read_runs(folder):
        runs[run.number].append(run)
    check(all(len(each) == 2 for each in runs.values()), "each ran twice")
    return {n: (second.start - first.end) / 1e9 for n, (first, second) in runs.items()}


@test
def retry_copies_come_when_they_are_due(folder):
    topic, retry = e2e.unique("retried"), e2e.unique("copies")
    delays = {"2s": 2, "3500ms": 3.5, "5s": 5}
    names = [name for name in delays for _ in range(10)]
    e2e.produce(topic, orders([[f"retry:{name}", "ok"] for name in names]))
    setting = e2e.config("sub", [topic, retry], e2e.handler(log=folder),
                         retry={"topic": retry, "max_retries": 3}, dead_letter="none",
                         on_exhausted="drop")
    service = e2e.Service(setting, folder).start()
    service.wait_settled(2 * len(names))
    e2e.wait_backlog([topic, retry], "sub")
    check_equal(service.stop(), 0, "exit code")
    waits = waits_of(folder)
    check_equal(len(waits), len(names), "messages")
    for name, delay_s in delays.items():
        check_waits([waits[n] for n, each in enumerate(names) if each == name], delay_s,
                    "retry copies")


@test
def what_is_given_back_comes_again_after_its_delay(folder):
    topic = e2e.unique("nacked")
    e2e.produce(topic, orders([["error-once"]] * 20))
    setting = e2e.config("sub", [topic], e2e.handler(log=folder), on_error="redeliver",
                         properties={"negative_ack_redelivery_delay_ms": "1500"})
    service = e2e.Service(setting, folder).start()
    service.wait_settled(40)
    e2e.wait_backlog([topic], "sub")
    check_equal(service.stop(), 0, "exit code")
    check_waits(waits_of(folder).values(), 1.5, "given back", early_s=0)
    check_equal(sorted(run.redeliveries for run in read_runs(folder)), [0] * 20 + [1] * 20,
                "redeliveries")


@test
def an_output_is_given_out_when_it_is_due(folder):
    topic, output = e2e.unique("orders"), e2e.unique("later")
    consumer = e2e.client().subscribe(output, "sub", pulsar.ConsumerType.Shared)
    setting = e2e.config("sub", [topic], e2e.handler(log=folder))
    service = e2e.Service(setting, folder).start()
    e2e.produce(topic, orders([[f"output:{output}:3s"]] * 10))
    waits = []
    for _ in range(10):
        message = consumer.receive(timeout_millis=e2e.PATIENCE_S * 1000)
        waits.append(time.time() - message.publish_timestamp() / 1000)
        consumer.acknowledge(message)
    consumer.close()
    check_equal(service.stop(), 0, "exit code")
    check_waits(waits, 3, "outputs")


if __name__ == "__main__":
    e2e.run()
