# SPDX-License-Identifier: Apache-2.0
"""Handlers that are broken in every known way. A broken handler is never charged to a message; a
message that breaks a handler is, alone; and the log says what to do."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import e2e  # noqa: E402
import e2e_judge  # noqa: E402
from e2e import admin, check, check_equal, test  # noqa: E402

QUICK = {"in_place": True, "max_attempts": 2,
         "backoff": {"initial": "10ms", "max": "10ms", "jitter": "0ms"}}


class Work:
    """A topic with records that tell the handler what to do, and a service that runs it."""

    def __init__(self, folder, name, tells, **handler):
        self.folder, self.topic = folder, e2e.unique(name)
        admin("create", f"{self.topic},{self.topic}.dlq", 1)
        self.count = len(tells)
        e2e.put([{"topic": self.topic, "key": f"k{number}",
                  "value": json.dumps({"i": number, "do": [tell] if tell else []})}
                 for number, tell in enumerate(tells)])
        setting = e2e.config(self.topic, [self.topic], e2e.handler(log=folder, **handler),
                             retry=QUICK)
        self.service = e2e.Service(setting, folder).start()

    def finish(self):
        """Waits until all is settled and stopped well; returns {number: runs}, dead letters."""
        self.service.wait_settled(self.count)
        self.status = self.service.status()
        check_equal(self.service.stop(), 0, "exit code")
        e2e.check_all_committed(self.topic, [self.topic])
        runs = {number: 0 for number in range(self.count)}
        for run in e2e_judge.read_runs(self.folder, {}):
            runs[int(run.key[1:])] += 1
        dead = {record["key"]: e2e.headers_of(record)
                for record in admin("read", f"{self.topic}.dlq")}
        return runs, dead


@test
def a_program_that_does_not_exist_is_an_error_of_the_configuration(folder):
    work = e2e.config("g", ["t"], e2e.handler(program=[str(folder / "handler.sh")]))
    service = e2e.Service(work, folder).start()
    service.wait_log(text="error[E02")
    check_equal(service.code(), 78, "exit code")
    check("must be executable" in service.log_text(), "help tells what to do")


@test
def a_handler_that_cannot_start_is_not_charged_to_messages(folder):
    program = folder / "handler.sh"
    program.write_text("#!/nonexistent/interpreter\n")
    program.chmod(0o755)
    work = Work(folder, "nostart", [""] * 5, program=[str(program)])
    line = work.service.wait_log("handler.down", code="E0602")
    check(str(program) in line["msg"], f"the message names the program: {line}")
    check("0 messages were consumed" in line["help"], f"help calms down: {line}")
    work.service.wait_status("handler down",
                             lambda s: s["topics"][0]["state"] == "handler down")
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {e2e.SUPPORT}/e2e_handler.py\n")
    runs, dead = work.finish()
    check_equal(set(runs.values()), {1}, "runs of each message")
    check_equal(dead, {}, "dead letters")


@test
def a_handler_that_exits_at_once_is_shown_with_its_last_output(folder):
    switch = folder / "works"
    script = (f"[ -e {switch} ] || {{ echo 'cannot read settings.ini' >&2; exit 2; }}; "
              f"exec {sys.executable} {e2e.SUPPORT}/e2e_handler.py")
    work = Work(folder, "exits", [""] * 5, program=["sh", "-c", script])
    line = work.service.wait_log("handler.down", code="E0602")
    check("exit 2" in line["msg"], f"the message says how it ended: {line}")
    check("settings.ini" in line["help"], f"help shows the last output: {line}")
    switch.touch()
    runs, dead = work.finish()
    check_equal([set(runs.values()), dead], [{1}, {}], "runs and dead letters")


@test
def a_handler_that_prints_garbage_is_tolerated_and_told(folder):
    work = Work(folder, "garbage", ["garbage", "", "garbage", ""])
    line = work.service.wait_log("handler.stray")
    check("use stderr" in line["msg"], f"the message says what to do: {line}")
    runs, dead = work.finish()
    check_equal([set(runs.values()), dead], [{1}, {}], "runs and dead letters")
    check_equal(work.status["handlers"][0]["stray_lines"], 2, "stray lines")
    check_equal(work.status["handlers"][0]["restarts"], 0, "restarts")


@test
def a_handler_that_never_answers_is_ended_and_its_message_dead_lettered(folder):
    work = Work(folder, "silent", ["", "silent", "", ""], timeout="3s", workers=1, window=4)
    runs, dead = work.finish()
    check_equal(runs[1], 2, "runs of the silent one")
    check_equal(list(dead), ["k1"], "dead letters")
    check("timed out after 3s" in dead["k1"]["x-error-reason"], f"reason: {dead}")
    check_equal(dead["k1"]["x-retry-attempt"], "2", "attempts")
    check(work.status["handlers"][0]["restarts"] >= 2, f"restarts: {work.status['handlers']}")


@test
def a_second_answer_for_an_id_restarts_the_worker_and_harms_no_message(folder):
    work = Work(folder, "twice", ["", "twice", "", ""])
    line = work.service.wait_log(text="not open")
    check("handler" in json.dumps(line), f"the line names the handler: {line}")
    runs, dead = work.finish()
    check_equal(dead, {}, "dead letters")
    check_equal(min(runs.values()), 1, "every message ran")


@test
def an_answer_with_an_unknown_id_restarts_the_worker(folder):
    work = Work(folder, "unknown", ["", "unknown", "", ""])
    work.service.wait_log(text="not open")
    runs, dead = work.finish()
    check_equal(list(dead), ["k1"], "dead letters: the one that breaks the handler alone")
    check_equal({n: count for n, count in runs.items() if n != 1}.keys(), {0, 2, 3}, "others")


@test
def a_message_that_kills_its_worker_is_charged_and_its_neighbours_are_not(folder):
    tells = [""] * 20
    tells[7] = "exit"
    work = Work(folder, "crash", tells, workers=1, window=8)
    _, dead = work.finish()
    check_equal(list(dead), ["k7"], "dead letters")
    reason = dead["k7"]["x-error-reason"]
    check("exit 3" in reason and "going down" in reason, f"reason: {reason}")
    check_equal(dead["k7"]["x-retry-attempt"], "2", "attempts")


if __name__ == "__main__":
    e2e.run()
