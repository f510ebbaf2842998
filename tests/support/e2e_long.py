# SPDX-License-Identifier: Apache-2.0
"""e2e_long.py SCENARIO SEED MINUTES: the main job with something going wrong, again and again
with other seeds until the time is over, on a Kafka of its own. The last line is what tools/long
reads. A scenario gets a job and a seeded generator and leaves a drained, stopped group."""
import os
import pathlib
import random
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
os.environ.setdefault("LANEWAY_BROKER_DIR", str(ROOT / "build/broker/long"))
import e2e  # noqa: E402
import e2e_rounds  # noqa: E402
from e2e import check, check_equal  # noqa: E402
from e2e_job import Job  # noqa: E402

SCENARIOS = {}
POINTS = ("publish.before", "settle.after_publish", "settle.before", "commit.before")


def scenario(count):
    """`count` messages for each of the three topics."""

    def add(function):
        SCENARIOS[function.__name__.replace("_", "-")] = (function, count)
        return function

    return add


def finish(job, members, wait_s=120):
    """Waits until the group has committed everything; all members end well."""
    check_equal(job.lag(wait_s), 0, "lag")
    for member in members:
        check_equal(member.stop(), 0, f"exit code of {member.name}")


def progress(job, before, share):
    """Waits until the group has gone on by this share of the job."""
    goal = before - int(job.total * share)
    return e2e.wait_for(f"a lag below {goal}", lambda: job.lag(0) <= max(goal, 0) and
                        (job.lag(0) or -1), timeout=60, pause=0.2)


@scenario(33400)
def second_run(job, _rng):
    """SIGTERM in the middle and a second run: a clean stop leaves nothing to run again."""
    first = job.start()
    first.wait_settled(job.total // 2)
    check_equal(first.stop(), 0, "exit code after SIGTERM in the middle")
    check(job.lag(0) > 0, "the job was over before its middle")
    second = job.start()
    finish(job, [second])
    return {"stops": 1, "duplicates_allowed": 0}


@scenario(33400)
def kill_members(job, rng):
    """One of three members is killed, ten times."""
    options = {"work_ms": 2, "workers": 4, "properties": e2e.SHORT_SESSION}
    members = [job.start(**options) for _ in range(3)]
    lag = job.total
    for _ in range(10):
        lag = progress(job, lag, 0.04)
        check(lag > 0, "the job was over before the last kill")
        victim = members.pop(rng.randrange(3))
        victim.kill()
        members.append(job.start(**options))
    finish(job, members)
    return {"kills": 10}


@scenario(33400)
def broker_restart(job, _rng):
    """The broker is killed and restarted twice under one member, which keeps its assignment."""
    member = job.start(work_ms=1, workers=4)
    lag = job.total
    for _ in range(2):
        lag = progress(job, lag, 0.2)
        e2e.broker("kill")
        member.wait_log("broker.down")
        e2e.broker("restart")
    finish(job, [member])
    check(member.find("assignment.lost") is None, "the assignment was lost")
    return {"broker_kills": 2}


def freeze(member, _job, rng):
    """Longer than a session, or shorter."""
    member.process.send_signal(signal.SIGSTOP)
    time.sleep(rng.uniform(0.3, 3))  # not a wait for anything: the length of the fault itself
    member.process.send_signal(signal.SIGCONT)


def replace(member, job, members, options):
    members.remove(member)
    members.append(job.start(**options))


@scenario(20000)
def chaos_kafka(job, rng):
    """Three members under a random mix of kills, freezes, stops, pauses and a broker's death."""
    protocol = rng.choice(["range", "cooperative-sticky"])
    options = {"work_ms": 2, "workers": 4,
               "properties": {**e2e.SHORT_SESSION, "partition.assignment.strategy": protocol}}
    members = [job.start(**options) for _ in range(3)]
    counts, lag, broker_deaths = {"kill": 0, "freeze": 0, "stop": 0, "pause": 0, "broker": 0}, \
        job.total, 0
    while lag > job.total * 0.2:
        lag = progress(job, lag, 0.05)
        what = rng.choices(list(counts), [4, 3, 3, 1, 1 if broker_deaths == 0 else 0])[0]
        member = rng.choice(members)
        counts[what] += 1
        if what == "kill":
            member.kill()
            replace(member, job, members, options)
        elif what == "freeze":
            freeze(member, job, rng)
        elif what == "stop":
            check_equal(member.stop(), 0, "exit code of a stop")
            replace(member, job, members, options)
        elif what == "pause":
            member.ask("pause", job.topics[0])
            member.ask("resume", job.topics[0])
        else:
            broker_deaths += 1
            e2e.broker("kill")
            e2e.broker("restart")
    finish(job, members)
    return counts


@scenario(1000)
def crash_points(job, rng):
    """SIGKILL at a named point of publish, settle or commit, then a second run."""
    point = rng.choice(POINTS)
    passage = rng.randrange(1, 6 if point.startswith("commit") else 60)
    first = job.start(work_ms=1, properties=e2e.SHORT_SESSION,
                      arguments=["--faults", f"{point}:{passage}:kill"])
    check_equal(first.code(), -signal.SIGKILL, f"how it ended at {point}:{passage}")
    second = job.start(properties=e2e.SHORT_SESSION)
    finish(job, [second])
    return {"crashes": 1}


def memory_kb(member):
    for line in open(f"/proc/{member.pid}/status", encoding="ascii"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


@scenario(33400)
def soak(job, _rng):
    """Two rounds more through the same process: memory and descriptors stay where they were."""
    member = job.start()
    member.wait_settled(job.total, timeout=120)
    marks = [(memory_kb(member), len(os.listdir(f"/proc/{member.pid}/fd")))]
    for part in range(1, 3):
        e2e.admin("produce", ",".join(job.topics), job.count, "--keys", 500, "--seed",
                  job.seed + part, "--first", job.count * part, *job.headers)
        job.total += job.count * len(job.topics)
        member.wait_settled(job.total, timeout=120)
        marks.append((memory_kb(member), len(os.listdir(f"/proc/{member.pid}/fd"))))
    finish(job, [member])
    growth, files = marks[-1][0] - marks[1][0], marks[-1][1] - marks[1][1]
    check(growth < 8192, f"memory grew by {growth} kB in one round: {marks}")
    check(files <= 2, f"{files} more descriptors: {marks}")
    return {"growth_kb": growth}


def judge(job, extra):
    counts = job.check_all()
    allowed = extra.pop("duplicates_allowed", None)
    if allowed is not None:
        check(counts["duplicates"] <= allowed, f"{counts['duplicates']} duplicates")
    return {**counts, **extra}


def start_broker():
    os.environ.setdefault("LANEWAY_BROKER_OWNER", str(os.getpid()))
    os.environ["KAFKA_BOOTSTRAP"] = e2e.broker("start")


def main():
    function, count = SCENARIOS[sys.argv[1]]

    def play(folder, seed):
        job = Job(folder, count, seed=seed, name=function.__name__.replace("_", "-"))
        counts = judge(job, function(job, random.Random(seed)))
        e2e.admin("delete", *job.topics, *[f"{t}.dlq" for t in job.topics], job.reply)
        return counts

    return e2e_rounds.run(play, int(sys.argv[2]), float(sys.argv[3]), start_broker,
                          lambda: e2e.broker("stop"))


if __name__ == "__main__":
    sys.exit(main())
