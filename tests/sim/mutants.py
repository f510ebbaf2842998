#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutants.py [NAME ...] [--seeds N] [--build DIR]: does the simulator see a broken promise?

Each mutant is one small change of the product that breaks one promise. The sources are copied,
one mutant at a time is put in, the simulator is built and must fail within N seeds (1,000); the
unchanged copy must pass them. A mutant whose place is not found any more is an error: then the
code has moved, and the mutant has to move with it. Prints one line each and a JSON summary.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# name, promise, file, text, replacement
MUTANTS = [
    ("receipts-unread", "P1", "src/dispatcher/publish.c",
     "    if (event->status == LW_STATUS_OK) {\n        item->state = ITEM_CONFIRMED;",
     "    if (event->status != LW_STATUS_NO_MEMORY) {\n        item->state = ITEM_CONFIRMED;"),
    ("commit-the-highest", "P2", "src/dispatcher/settle.c",
     "    int64_t safe = lw_offsets_safe(&partition->offsets);",
     "    int64_t safe = partition->offsets.next;"),
    ("busy-lane-is-ready", "P3", "src/core/lane.c",
     "    lane->place = LW_LANE_BUSY;\n    return delivery;",
     "    (void)lw_lane_release(lane);\n    return delivery;"),
    ("last-in-first-out", "P3", "src/core/lane.c",
     "    lw_queue_push(&lane->waiting, &delivery->link);",
     "    lw_queue_push_front(&lane->waiting, &delivery->link);"),
    ("worst-first", "P4", "src/core/ranks.h",
     "high * 64 + (uint32_t)__builtin_ctzll(ranks->words[high]);",
     "high * 64 + 63u - (uint32_t)__builtin_clzll(ranks->words[high]);"),
    ("dropped-but-queued", "P5", "src/dispatcher/assignment.c",
     "        lw_scheduler_remove(&dispatcher->scheduler, delivery);\n"
     "        lw_settle_drop(dispatcher, delivery);",
     "        lw_settle_drop(dispatcher, delivery);"),
    ("revoked-lives-on", "P6", "src/dispatcher/assignment.c",
     "    partition->is_ended = true;", "    partition->is_ended = false;"),
    ("lost-unheard", "P6", "src/dispatcher/assignment.c",
     "    end_generation(link, event->generation);\n    struct lw_list *node",
     "    struct lw_list *node"),
    ("three-too-many", "P7", "src/core/limits.c",
     "    return limits->count_max - limits->count;",
     "    return limits->count_max - limits->count + 3;"),
    ("never-released", "P7", "src/dispatcher/settle.c",
     "    link->broker->ops->release(link->broker, link->finished, link->finished_count);\n", ""),
    ("room-unheard", "P8", "src/dispatcher/publish.c",
     "            send_all(publishing);\n        }\n    }\n}",
     "        }\n    }\n}"),
    ("never-at-rest", "P9", "src/dispatcher/dispatcher.c",
     "    return has_work ? dispatcher->host->now : LW_NEVER;",
     "    return has_work ? dispatcher->host->now : dispatcher->host->now;"),
    ("attempts-forgotten", "P10", "src/dispatcher/dispatcher.c",
     "    delivery->subscription->parked--;\n    lw_delivery_set_state(delivery, LW_STATE_QUEUED);",
     "    delivery->subscription->parked--;\n    delivery->attempt = 0;\n"
     "    lw_delivery_set_state(delivery, LW_STATE_QUEUED);"),
    ("crash-is-charged", "P10", "src/dispatcher/dispatcher.c",
     "outcome->is_uncharged, 0)) {\n        delivery->attempt--;",
     "outcome->is_uncharged, 0)) {"),
    ("given-back-is-done", "lost", "src/dispatcher/settle.c",
     "    return outcome != LW_SETTLED_REDELIVERED && outcome != LW_SETTLED_GIVEN_BACK;",
     "    return outcome != LW_SETTLED_REDELIVERED;"),
    ("answers-before-commit", "lost", "src/dispatcher/assignment.c",
     "    if (is_last_commit_done(link)) {\n        answer_revokes(link);",
     "    if (is_last_commit_done(link) || true) {\n        answer_revokes(link);"),
    # Tasks of several messages.
    ("the-others-go-on", "P3", "src/dispatcher/task.c",
     "    bool blocks = is_blocking(&ruling);", "    bool blocks = is_blocking(&ruling) && !stream;"),
    ("company-is-charged", "P10", "src/dispatcher/task.c",
     "    member->attempt--;\n", ""),
    ("back-behind-the-others", "P3", "src/core/gather.c",
     "    lw_queue_push_front(&lane->waiting, &delivery->link);",
     "    lw_queue_push(&lane->waiting, &delivery->link);"),
    ("company-never-comes", "P8", "src/core/gather.c",
     "        ready_lanes(gather, now - gather->wait_ns);\n    }\n    update_pool(",
     "    }\n    (void)update_pool; if (0) update_pool("),
    # What only a broker that settles one by one can show.
    ("acked-before-confirmed", "P1", "src/dispatcher/publish.c",
     "    send_all(publishing);\n}\n\nvoid\nlw_publish_on_receipt(",
     "    send_all(publishing);\n    struct lw_stream *stream = lw_stream_of(delivery);\n"
     "    struct lw_settle_item item = { &delivery->message, true, -1 };\n"
     "    if (!delivery->partition->has_ledger) {\n"
     "        stream->link->broker->ops->settle(stream->source, &item, 1);\n    }\n}\n\n"
     "void\nlw_publish_on_receipt("),
    ("acked-twice", "P5", "src/dispatcher/settle.c",
     "        stream->settle_count = 0;\n        lw_list_remove(&stream->settle_link);",
     "        stream->link->broker->ops->settle(stream->source, stream->settle_items, 1);\n"
     "        stream->settle_count = 0;\n        lw_list_remove(&stream->settle_link);"),
    ("nacked-though-settled", "P5", "src/dispatcher/settle.c",
     "        stream->settle_count = 0;\n        lw_list_remove(&stream->settle_link);",
     "        stream->settle_items[0].is_ack = false;\n"
     "        stream->link->broker->ops->settle(stream->source, stream->settle_items, 1);\n"
     "        stream->settle_count = 0;\n        lw_list_remove(&stream->settle_link);"),
    ("nack-is-an-ack", "lost", "src/dispatcher/settle.c",
     "        add_item(dispatcher, delivery, is_finished(outcome), nack_delay_ms);",
     "        add_item(dispatcher, delivery, true, nack_delay_ms);"),
    ("redeliveries-lost", "P10", "src/core/view.c",
     "    return delivery->message.redeliveries;", "    return 0 * delivery->attempt;"),
    ("key-at-two-members", "P3", "src/brokers/memory/keys.c",
     "    return hash->owner == slot && (hash->held == 0 || hash->holder == slot);",
     "    return hash->owner == slot;"),
    ("half-a-batch-is-done", "lost", "src/brokers/memory/backlog.c",
     "    if (--entry->batch->left == 0) {", "    if (--entry->batch->left <= 1) {"),
]


def copy_sources(build):
    tree = build / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    for name in ("CMakeLists.txt", "cmake", "include", "src", "tests"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, copy_function=shutil.copy,
                            ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / name)
    return tree


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)


def build_sim(build):
    result = run(["ninja", "-C", str(build / "out"), "sim"])
    if result.returncode != 0:
        sys.exit(f"mutants: the simulator does not build:\n{result.stdout[-3000:]}")


def simulate(build, seeds):
    try:
        result = run([str(build / "out/tests/sim"), "--seeds", str(seeds)], timeout=600)
    except subprocess.TimeoutExpired:
        return 1, "did not end within 600 s"
    lines = [line for line in result.stdout.splitlines() if not line.startswith("  ")]
    said = next((line for line in lines if line.startswith(("VIOLATION", "laneway: assert"))),
                lines[-1] if lines else "")
    return result.returncode, said


def try_mutant(build, tree, mutant, seeds):
    name, promise, path, text, replacement = mutant
    file = tree / path
    original = file.read_text(encoding="utf-8")
    if original.count(text) != 1:
        sys.exit(f"mutants: {name}: its place in {path} is there {original.count(text)} times")
    file.write_text(original.replace(text, replacement), encoding="utf-8")
    try:
        build_sim(build)
        code, said = simulate(build, seeds)
    finally:
        file.write_text(original, encoding="utf-8")
    print(f"{'caught' if code else 'MISSED'} {name} ({promise}): {said[:150]}", flush=True)
    return code != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--build", help="keep the build there instead of in a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="laneway-mutants-") as temporary:
        build = pathlib.Path(options.build or temporary).resolve()
        tree = copy_sources(build)
        configured = run(["cmake", "-S", str(tree), "-B", str(build / "out"), "-G", "Ninja",
                          "-DCMAKE_BUILD_TYPE=Release", "-DLANEWAY_KAFKA=OFF",
                          "-DLANEWAY_PULSAR=OFF", "-DLANEWAY_SPOOL=OFF"])
        if configured.returncode != 0:
            sys.exit(f"mutants: cannot configure:\n{configured.stdout[-3000:]}")
        build_sim(build)
        code, said = simulate(build, options.seeds)
        print(f"{'unchanged FAILS' if code else 'unchanged passes'}: {said[:150]}", flush=True)
        chosen = [m for m in MUTANTS if not options.names or m[0] in options.names]
        caught = sum(try_mutant(build, tree, mutant, options.seeds) for mutant in chosen)
    failed = len(chosen) - caught + (1 if code else 0)
    print(json.dumps({"seeds": options.seeds, "mutants": len(chosen), "caught": caught,
                      "failed": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
