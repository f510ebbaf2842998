# SPDX-License-Identifier: Apache-2.0
"""Retries through topics: tiers, so that a long delay never blocks a short one; times that are
kept; headers; and what waits in a tier goes on after a restart."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import e2e  # noqa: E402
import e2e_judge  # noqa: E402
from e2e import admin, check, check_equal, test  # noqa: E402

EARLY_S = 0.002  # clocks of two kinds are compared


class Retries:
    def __init__(self, folder, name, tells, tiers, max_retries=3):
        self.folder, self.topic, self.tiers = folder, e2e.unique(name), tiers
        admin("create", self.topic, 2)
        retry = {"topic": "{topic}.retry", "max_retries": max_retries, "tiers": tiers}
        self.setting = e2e.config(self.topic, [self.topic], e2e.handler(log=folder, workers=4),
                                  ordering="none", retry=retry)
        file = folder / "topics.yaml"
        file.write_text(json.dumps(self.setting))
        made = e2e.laneway("topics", "create", str(file))
        check_equal(made.returncode, 0, f"topics create: {made.stdout}{made.stderr}")
        self.put(tells)

    def put(self, tells):
        e2e.put([{"topic": self.topic, "partition": n % 2, "key": f"k{n}", "headers": [["h", "1"]],
                  "value": json.dumps({"i": n, "do": tell})} for n, tell in enumerate(tells)])

    def start(self):
        return e2e.Service(self.setting, self.folder).start()

    def runs(self):
        """Returns {number: [runs in order]}."""
        found = {}
        for run in e2e_judge.read_runs(self.folder, {}):
            found.setdefault(int(run.key[1:]), []).append(run)
        return found


def gap_s(runs, index):
    return (runs[index + 1].start - runs[index].end) / 1e9


@test
def a_long_delay_never_blocks_a_short_one(folder):
    tells = [["retry:15s", "ok"]] + [["retry:1s", "ok"] for _ in range(20)]
    work = Retries(folder, "tiers", tells, ["1s", "15s"])
    service = work.start()
    service.wait_settled(2 * len(tells))
    check_equal(service.stop(), 0, "exit code")
    runs = work.runs()
    check_equal({len(each) for each in runs.values()}, {2}, "runs of each message")
    gaps = {number: gap_s(each, 0) for number, each in runs.items()}
    short = [gap for number, gap in gaps.items() if number > 0]
    print(f"delays: 1s tier {min(short):.3f} to {max(short):.3f} s, 15s tier {gaps[0]:.3f} s")
    check(min(short) >= 1 - EARLY_S, f"not before its time: {min(short)}")
    check(max(short) < 15, f"the long delay blocked a short one: {max(short)}")
    check(gaps[0] >= 15 - EARLY_S, f"not before its time: {gaps[0]}")


@test
def copies_carry_where_they_came_from_and_their_time(folder):
    work = Retries(folder, "headers", [["retry:1s"]], ["1s"], max_retries=2)
    admin("create", f"{work.topic}.seen", 1)
    source = admin("read", work.topic)[0]
    service = work.start()
    service.wait_log("message.failed", text="dead-lettered")
    service.wait_settled(3)
    check_equal(service.stop(), 0, "exit code")
    copies = admin("read", f"{work.topic}.retry.1s")
    check_equal(len(copies), 2, "copies")
    for number, copy in enumerate(copies):
        headers = e2e.headers_of(copy)
        due = int(headers["x-laneway-not-before"])
        check(copy["timestamp"] > source["timestamp"], f"a time of its own: {copy}")
        check(source["timestamp"] + 1000 <= due <= copy["timestamp"] + 1100,
              f"due 1 s after it was sent: {copy}")
        check_equal(headers["x-laneway-retries"], str(number + 1), "x-laneway-retries")
        check_equal([headers["h"], copy["partition"]], ["1", source["partition"]], "copy")
    dead = admin("read", f"{work.topic}.dlq")
    check_equal(len(dead), 1, "dead letters")
    for record in copies + dead:
        headers = e2e.headers_of(record)
        check_equal(headers["x-laneway-id"], f"main/{work.topic}/0/0", "identity")
        check_equal(headers["x-laneway-timestamp"], str(source["timestamp"]), "first time")
        check_equal([headers["source-topic"], headers["partition"], headers["offset"]],
                    [work.topic, "0", "0"], "first place")
    check_equal(e2e.headers_of(dead[0])["x-laneway-retries"], "2", "retries of the dead letter")
    check_equal(len(work.runs()[0]), 3, "runs")


@test
def what_waits_in_a_tier_goes_on_after_a_restart(folder):
    work = Retries(folder, "restart", [["retry:15s", "ok"] for _ in range(6)], ["15s"])
    first = work.start()
    first.wait_settled(6)
    check_equal(first.stop(), 0, "exit code of the first run")
    check_equal({len(each) for each in work.runs().values()}, {1}, "runs before the restart")
    second = work.start()
    second.wait_settled(6)
    check_equal(second.stop(), 0, "exit code of the second run")
    runs = work.runs()
    check_equal({len(each) for each in runs.values()}, {2}, "runs of each message")
    check(min(gap_s(each, 0) for each in runs.values()) >= 15 - EARLY_S, "not before its time")
    e2e.check_all_committed(work.topic, [work.topic, f"{work.topic}.retry.15s"])


@test
def a_member_that_is_killed_loses_no_copy(folder):
    tells = [["retry:1s", "ok"] for _ in range(200)]
    work = Retries(folder, "killed", tells, ["1s"])
    work.setting["pipelines"]["work"]["consumer"]["properties"].update(e2e.SHORT_SESSION)
    first = work.start()
    first.wait_settled(100)
    first.kill()
    second = work.start()

    tier = f"{work.topic}.retry.1s"
    check_equal(admin("lag", work.topic, work.topic, tier, "--wait", e2e.PATIENCE_S), [0], "lag")
    check_equal(second.stop(), 0, "exit code")
    runs = work.runs()
    check_equal(len(runs), len(tells), "messages that ran")
    undone = [n for n, each in runs.items() if all(r.result != "ok" for r in each)]
    check_equal(undone, [], "messages without an end")


if __name__ == "__main__":
    e2e.run()
