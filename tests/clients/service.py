#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""service.py: both clients under a real service, with a broker in memory.

One stream of messages goes through the same handler in Python (one after the other, on threads,
asynchronously) and in Node (both ways), in lines and in frames, one by one and in batches: replies
with bytes that are no text, outputs, retries, dead letters, drops, prints between answers, a large
payload. What must come out is the same each time.
"""
import base64
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import memory_service  # noqa: E402
from memory_service import expect  # noqa: E402

CONFIG = """version: 1
service: { name: clients, concurrency: 16 }
brokers: { main: { url: "kafka://localhost:9092" } }
handlers:
  obey: { program: [PROGRAM], protocol: PROTOCOL, workers: 2, window: 8 BATCH }
pipelines:
  work: { broker: main, handler: obey, consumer: { group: g }, topics: [ work ],
          retry: { in_place: true, max_attempts: 2, backoff: { initial: 1ms, max: 1ms } },
          dead_letter: { topic: dead }, reply: { topic: replies } }
"""

PYTHON = """
import laneway
app = laneway.App()
app.on_stop(lambda: app.log("info", "a handler ends"))
ASYNC
def obey(message):
    word = message.headers.get("do")
    if word == "reply":
        print("a print of", message.key_text)
    if word == "output":
        message.publish("outputs", message.value, key=message.key, headers={"h": "1"})
        return None
    if word == "retry" and message.attempt == 1:
        raise laneway.Retry("not yet", delay="1ms")
    if word == "dead":
        raise laneway.Dead("never")
    if word == "drop":
        raise laneway.Drop()
    if word == "log":
        app.log("warn", "said by a handler", of=message.key_text)
        message.extend(60)
    return message.value
app.run()
"""
BATCH = """
@app.handler("obey", batch=True)
def obey_all(messages):
    return [result_of(message) for message in messages]

def result_of(message):
    try:
        return obey(message)
    except laneway.Verdict as verdict:
        return verdict
"""
WAYS = {
    "python": '@app.handler("obey")',
    "python-threads": '@app.handler("obey", threads=True)',
    "python-async": '@app.handler("obey")\nasync',
    "python-batch": BATCH,
}

NODE = """
const { App, Dead, Drop, Retry } = require('laneway');
const app = new App();
app.onStop(() => app.log('info', 'a handler ends'));
app.handler('obey', { concurrent: CONCURRENT }, ASYNC (message) => {
  const word = message.headers.get('do');
  if (word === 'reply') console.log('a print of', message.keyText);
  if (word === 'output') {
    message.publish('outputs', message.value, { key: message.key, headers: { h: '1' } });
    return undefined;
  }
  if (word === 'retry' && message.attempt === 1) throw new Retry('not yet', { delay: 1 });
  if (word === 'dead') throw new Dead('never');
  if (word === 'drop') throw new Drop();
  if (word === 'log') {
    app.log('warn', 'said by a handler', { of: message.keyText });
    message.extend('60s');
  }
  return message.value;
});
app.run();
"""

BINARY = base64.b64encode(bytes(range(256))).decode()
LARGE = "x" * 900_000
WORDS = ["reply", "output", "retry", "dead", "drop", "log"]


def messages():
    stream = [{"topic": "work", "key": f"k{i}", "value": f"v{i} é", "headers": {"do": word}}
              for i, word in enumerate(WORDS * 40)]
    stream.append({"topic": "work", "key": "large", "value": LARGE, "headers": {"do": "reply"}})
    stream.append({"topic": "work", "key": "binary", "value_b64": BINARY,
                   "headers": {"do": "reply"}})
    return stream


def programs():
    for name, way in WAYS.items():
        text = PYTHON.replace("ASYNC\n", way + ("\n" if not way.endswith("async") else " "))
        yield name, "handler.py", "python3, handler.py", text
    if not shutil.which("node"):
        print("node is not installed: its client is left out", file=sys.stderr)
        return
    for name, concurrent, word in (("node", "true", "async"), ("node-serial", "false", "")):
        text = NODE.replace("CONCURRENT", concurrent).replace("ASYNC", word)
        yield name, "handler.js", "node, handler.js", text


def check(published, log):
    stream = messages()
    by_word = {word: [m for m in stream if m["headers"]["do"] == word] for word in WORDS}
    replied = [m for word in ("reply", "retry", "log") for m in by_word[word]]
    texts = sorted(m["value"] for m in replied if "value" in m)
    replies = [m for m in published if m["topic"] == "replies"]
    expect("replies", sorted(m["value"] for m in replies if "value" in m), texts)
    expect("binary replies", [m["value_b64"] for m in replies if "value_b64" in m], [BINARY])
    outputs = [(m["key"], m["value"], m["headers"]["h"]) for m in published
               if m["topic"] == "outputs"]
    expect("outputs", sorted(outputs), sorted((m["key"], m["value"], "1")
                                              for m in by_word["output"]))
    dead = [m for m in published if m["topic"] == "dead"]
    expect("dead letters", sorted(m["key"] for m in dead), sorted(m["key"] for m in by_word["dead"]))
    expect("logs", log.count("said by a handler"), len(by_word["log"]))
    # A worker that was never ready has nothing to end.
    expect("ends", log.count("a handler ends") in (1, 2), True)
    expect("killed", log.count("signal=9"), 0)
    expect("prints", log.count("a print of"), len(by_word["reply"]))
    return len(published)


def run(folder, name, program, protocol, batch):
    config = CONFIG.replace("PROGRAM", program).replace("PROTOCOL", protocol)
    config = config.replace(" BATCH", ", batch: { size: 16, wait: 5ms }" if batch else "")
    (folder / "clients.yaml").write_text(config)
    count = check(*memory_service.run(folder, "clients.yaml", "g", ["work"], messages()))
    print(f"{name} {protocol}{' in batches' if batch else ''}: {len(messages())} messages, "
          f"{count} published")


def main():
    folder = memory_service.copy_of(pathlib.Path(__file__).parent)
    try:
        for name, file, program, text in programs():
            (folder / file).write_text(text)
            run(folder, name, program, "lines", False)
            run(folder, name, program, "frames", False)
            run(folder, name, program, "frames" if "async" in name else "lines", True)
    finally:
        shutil.rmtree(folder)


main()
