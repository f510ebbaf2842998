# SPDX-License-Identifier: Apache-2.0
"""Requests are read, and answers written, as the vectors of the protocols say."""
import datetime
import json
import unittest

from laneway import NULL, App, Dead, Drop, Error, Retry, Verdict
from laneway._codec import Frames, Lines, ProtocolError
from laneway._message import Message
from laneway._session import Session
from laneway.testing import _Reader, _Recorder
from vectors import content, frame_of, line_of, load

REQUESTS = load("requests.json")
ANSWERS = load("answers.json")["answers"]
SAID = [vector for vector in ANSWERS if "say" in vector]
BATCHES = load("batches.json")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def milliseconds(time):
    return None if time is None else round((time - EPOCH).total_seconds() * 1000)


def feed(codec, data, step):
    """Gives all requests of the bytes, fed in pieces of a size."""
    requests = []
    for at in range(0, len(data), step):
        requests += codec.feed(data[at:at + step])
    return requests


def headers_of(wanted):
    """Name to values: texts and nulls first, then what is no text."""
    headers = {}
    for name, value in wanted:
        headers.setdefault(name, []).append(content(value) if isinstance(value, dict) else value)
    return {name: sorted(values, key=lambda value: isinstance(value, bytes))
            for name, values in headers.items()}


class Requests(unittest.TestCase):
    def check(self, fields, vector):
        wanted, message = vector["message"], Message(fields, None)
        self.assertEqual(message.number, vector["id"])
        self.assertEqual(message.value, content(wanted.get("value")))
        self.assertEqual(message.key, content(wanted.get("key")))
        self.assertEqual(message.ordering_key, content(wanted.get("ordering_key")))
        self.assertEqual(message.offset, wanted["offset"])
        self.assertEqual(message.attempt, wanted.get("attempt", 1))
        self.assertEqual(milliseconds(message.timestamp), wanted.get("timestamp_ms"))
        self.assertEqual(milliseconds(message.event_time), wanted.get("event_time_ms"))
        headers = headers_of(wanted.get("headers", []))
        self.assertEqual({name: message.headers.get_all(name) for name in message.headers}, headers)
        self.assertEqual(dict(message.headers), {name: all_[-1] for name, all_ in headers.items()})
        self.assertEqual(message.message_id, f"main/orders/3/{wanted['offset']}")
        context = REQUESTS["context"]
        self.assertEqual((message.topic, message.partition, message.subscription, message.pipeline),
                         tuple(context[name] for name in ("topic", "partition", "subscription",
                                                          "pipeline")))
        left = message.remaining()
        self.assertEqual(left is None, "deadline_ms" not in wanted)
        if left is not None:
            self.assertLessEqual(left, wanted["deadline_ms"] / 1000)

    def check_all(self, codec_class, bytes_of):
        vectors = REQUESTS["requests"]
        data = b"".join(bytes_of(vector) for vector in vectors)
        for step in (1, 7, 1000, len(data)):
            codec = codec_class()
            requests = feed(codec, data, step)
            self.assertEqual(len(requests), len(vectors))
            self.assertFalse(codec.has_rest())
            for fields, vector in zip(requests, vectors):
                with self.subTest(vector["name"], step=step):
                    self.check(fields, vector)

    def test_lines_are_read_however_they_arrive(self):
        self.check_all(Lines, line_of)

    def test_frames_are_read_however_they_arrive(self):
        self.check_all(Frames, frame_of)

    def test_the_hello_is_read(self):
        vector = REQUESTS["hello"]
        (fields,) = Lines().feed(line_of(vector))
        wanted = {"protocol": 1, **vector["hello"]}
        self.assertEqual(fields["hello"], wanted)

    def test_what_is_not_the_protocol_is_refused(self):
        for codec, data in ((Lines(), b"hello\n"), (Lines(), b"{\n"), (Lines(), b"\xff\n"),
                            (Frames(), b"{\"id\":1}"), (Frames(), b"\0\0\0\2{]"),
                            (Frames(), b"\0\0\0\2[]")):
            with self.subTest(data), self.assertRaises(ProtocolError):
                codec.feed(data)


class Answers(unittest.TestCase):
    def say(self, message, what):
        """A handler that does what a vector says."""
        for output in what.get("publish", []):
            message.publish(output["topic"], content(output.get("value")),
                            key=content(output.get("key")), headers=output.get("headers"),
                            delay=output.get("delay_s"))
        if "extend_s" in what:
            message.extend(what["extend_s"])
        if "log" in what:
            self.app.log(*what["log"])
        if "reply" in what:
            reply = what["reply"]
            if isinstance(reply, dict):
                return reply["json"] if "json" in reply else content(reply)
            return NULL if reply is None else reply
        reason = what.get("reason", "")
        if what.get("verdict") == "retry":
            raise Retry(reason, delay=what.get("delay_s"))
        if what.get("verdict") == "error":
            raise Error(reason, code=what.get("code"))
        if what.get("verdict"):
            raise {"dead": Dead, "drop": Drop}[what["verdict"]](reason)
        return None

    def written(self, codec, what):
        """What is written for that: the line beside an answer if there is one, else the answer."""
        self.app = App()
        self.app.handler(lambda message: self.say(message, what))
        session = Session(codec, _Recorder())
        session.handler = self.app.handlers[None]
        self.app._session = session
        answer = session.run({"id": 1})
        return session.writer.said[0] if session.writer.said else answer

    def test_batches_are_read_and_answered_as_the_vectors_say(self):
        for codec_class, bytes_of in ((Lines, line_of), (Frames, frame_of)):
            for vector in BATCHES["requests"]:
                for step in (1, 1000):
                    (fields,) = feed(codec_class(), bytes_of(vector), step)
                    members = Session(codec_class(), None)._messages(fields)
                    self.assertEqual([(m.number, m.offset, m.key, m.value) for m in members],
                                     [(vector["id"], m["offset"], content(m["key"]),
                                       content(m["value"])) for m in vector["messages"]])
            for vector in (v for v in BATCHES["answers"] if "say" in v):
                with self.subTest(vector["name"], codec=codec_class.name):
                    data = self.written_for_all(codec_class(), vector["say"])
                    if codec_class is Lines:
                        self.assertEqual(json.loads(data), json.loads(vector["line"]))
                    else:
                        reader = _Reader("frames", data)
                        self.assertEqual(reader.header, json.loads(vector["frame"]["header"]))
                        self.assertEqual(reader._rest, content(vector["frame"]["tail"]))

    def written_for_all(self, codec, whats):
        def handle(messages):
            results = []
            for message, what in zip(messages, whats):
                try:
                    results.append(self.say(message, what))
                except Verdict as verdict:
                    results.append(verdict)
            return results
        self.app = App()
        self.app.handler(batch=True)(handle)
        session = Session(codec, _Recorder())
        session.handler = self.app.handlers[None]
        return session.run_batch({"id": 1, "messages": [{} for _ in whats]})

    def test_lines_are_written_as_the_vectors_say(self):
        self.assertGreaterEqual(len(SAID), 14)
        for vector in SAID:
            with self.subTest(vector["name"]):
                data = self.written(Lines(), vector["say"])
                self.assertEqual(data[-1:], b"\n")
                self.assertEqual(json.loads(data), json.loads(vector["line"]))

    def test_frames_are_written_as_the_vectors_say(self):
        for vector in SAID:
            with self.subTest(vector["name"]):
                data = self.written(Frames(), vector["say"])
                reader = _Reader("frames", data)
                self.assertEqual(reader.header, json.loads(vector["frame"]["header"]))
                self.assertEqual(reader._rest, content(vector["frame"]["tail"]))


if __name__ == "__main__":
    unittest.main()
