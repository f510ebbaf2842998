# SPDX-License-Identifier: Apache-2.0
"""What a handler's result becomes, by laneway.testing."""
import asyncio
import contextlib
import datetime
import io
import logging
import unittest

import laneway
from laneway._verdicts import duration_text
from laneway.testing import call, call_batch


def app_of(function, **options):
    app = laneway.App()
    app.handler("it", **options)(function)
    return app


def raiser(error):
    def function(message):
        raise error
    return function


def quietly(app, *words, **options):
    """(result, what was printed to standard error)"""
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed):
        return call(app, *words, **options), printed.getvalue()


class Results(unittest.TestCase):
    def test_nothing_is_ok_without_a_reply(self):
        result = call(app_of(lambda message: None))
        self.assertEqual((result.verdict, result.has_reply), ("ok", False))

    def test_replies_of_all_kinds_in_both_protocols(self):
        replies = {"text é": "text é".encode(), b"\xff": b"\xff", bytearray(b"a").decode(): b"a",
                   "": b""}
        for protocol in ("lines", "frames"):
            for reply, wanted in replies.items():
                result = call(app_of(lambda message, reply=reply: reply), protocol=protocol)
                self.assertEqual((result.has_reply, result.reply), (True, wanted))
            result = call(app_of(lambda message: {"a": [1, "é"]}), protocol=protocol)
            self.assertEqual(result.json(), {"a": [1, "é"]})
            result = call(app_of(lambda message: laneway.NULL), protocol=protocol)
            self.assertEqual((result.has_reply, result.reply), (True, None))

    def test_verdicts_may_be_raised_or_returned(self):
        for verdict in (laneway.Retry("r", delay=1.5), laneway.Dead("r"), laneway.Drop("r")):
            for function in (raiser(verdict), lambda message, verdict=verdict: verdict):
                result = call(app_of(function))
                self.assertEqual((result.verdict, result.reason), (verdict.result, "r"))
                self.assertEqual(result.delay, verdict.delay)

    def test_an_exception_is_an_error_and_its_traceback_is_printed(self):
        result, printed = quietly(app_of(lambda message: message.json()["id"]), {"name": "x"})
        self.assertEqual((result.verdict, result.reason), ("error", "KeyError: 'id'"))
        self.assertIn("Traceback", printed)
        self.assertIn("test_handlers.py", printed)

    def test_exceptions_may_be_named_as_verdicts(self):
        options = {"retry_on": (TimeoutError, OSError), "dead_on": ValueError}
        for error, wanted in ((TimeoutError("slow"), "retry"), (ValueError("x"), "dead"),
                              (KeyError("x"), "error")):
            result, printed = quietly(app_of(raiser(error), **options))
            self.assertEqual(result.verdict, wanted)
            self.assertEqual(wanted == "error", "Traceback" in printed)

    def test_what_cannot_be_sent_is_an_error_of_its_message(self):
        for reply in (7, 1.5, True, object(), "\ud800", {"a": {1}}, {"a": float("nan")}):
            for protocol in ("lines", "frames"):
                result, _ = quietly(app_of(lambda message, reply=reply: reply), protocol=protocol)
                self.assertEqual(result.verdict, "error", repr(reply))

    def test_what_cannot_be_sent_is_never_one_of_the_named_exceptions(self):
        options = {"dead_on": (TypeError, ValueError), "retry_on": Exception}
        for reply in (7, "\ud800", {"a": float("nan")}):
            result, printed = quietly(app_of(lambda message, reply=reply: reply, **options))
            self.assertEqual(result.verdict, "error", repr(reply))
            self.assertIn("Traceback", printed)
        for replies in (7, [None] * 3, ["\ud800", 7]):
            app = app_of(lambda messages, replies=replies: replies, batch=True, **options)
            with contextlib.redirect_stderr(io.StringIO()):
                results = call_batch(app, ["", ""])
            self.assertEqual([result.verdict for result in results], ["error"] * 2, repr(replies))

    def test_a_verdict_of_a_class_of_ones_own_has_no_reason(self):
        class Late(laneway.Retry):
            def __init__(self, order):
                self.order = order
        result = call(app_of(raiser(Late(7))))
        self.assertEqual((result.verdict, result.reason, result.delay), ("retry", "", None))

    def test_json_is_the_same_in_both_protocols(self):
        for value, wanted in (('{"a": "é"}', {"a": "é"}), ("\ufeff{}", None), (b"\xff{}", None),
                              ("{}".encode("utf-16"), None), ("1" * 30, int("1" * 30))):
            for protocol in ("lines", "frames"):
                seen = []

                def function(message, seen=seen):
                    seen.append(message.json())
                result = call(app_of(function, dead_on=ValueError), value, protocol=protocol)
                self.assertEqual((result.verdict, seen), ("dead", []) if wanted is None else
                                 ("ok", [wanted]), (protocol, value))

    def test_a_reason_is_cut_and_made_text(self):
        result = call(app_of(raiser(laneway.Dead("x" * 9999 + "\ud800"))))
        self.assertEqual(result.reason, "x" * 512)
        result = call(app_of(raiser(laneway.Dead("half \ud800"))))
        self.assertEqual(result.reason, "half \\ud800")

    def test_outputs_are_published_with_a_reply(self):
        def function(message):
            message.publish("audit", {"seen": message.key_text}, key=b"k", delay="1m30s",
                            headers={"a": ["1", None]})
            message.publish("gone", key="k")
            return "r"
        for protocol in ("lines", "frames"):
            result = call(app_of(function), key="c-1", protocol=protocol)
            self.assertEqual(result.reply, b"r")
            self.assertEqual(result.outputs, [
                ("audit", b"k", b'{"seen":"c-1"}', {"a": ["1", None]}, "90000ms"),
                ("gone", b"k", None, {}, None)])

    def test_outputs_are_left_out_when_the_verdict_is_not_ok(self):
        def function(message):
            message.publish("audit", "x")
            raise laneway.Retry("later")
        self.assertEqual(call(app_of(function)).outputs, [])

    def test_an_async_handler_is_called_the_same_way(self):
        async def function(message):
            await asyncio.sleep(0)
            return message.text.upper()
        self.assertEqual(call(app_of(function), "abc").reply, b"ABC")

    def test_an_async_handler_that_is_cancelled_answers(self):
        async def function(message):
            raise asyncio.CancelledError
        self.assertEqual(quietly(app_of(function))[0].verdict, "error")

    def test_what_is_raised_need_not_be_an_exception(self):
        class Timeout(BaseException):
            """As some libraries have it."""

        for error in (Timeout("slow"), asyncio.CancelledError()):
            async def later(message, error=error):
                raise error
            for function in (raiser(error), later):
                self.assertEqual(quietly(app_of(function))[0].verdict, "error")
                self.assertEqual(quietly(app_of(function, retry_on=type(error)))[0].verdict, "retry")
                with contextlib.redirect_stderr(io.StringIO()):
                    for options in ({}, {"batch": True}):
                        results = call_batch(app_of(function, **options), ["", ""])
                        self.assertEqual([each.verdict for each in results], ["error"] * 2)


class Messages(unittest.TestCase):
    def test_extending_moves_the_deadline(self):
        left = []

        def function(message):
            left.append(message.remaining())
            message.extend(60)
            left.append(message.remaining())
            message.extend(1)
            left.append(message.remaining())
        result = call(app_of(function), deadline_ms=5000)
        self.assertEqual(result.extensions, ["60000ms", "1000ms"])
        self.assertLessEqual(left[0], 5)
        self.assertGreater(left[1], 30)
        self.assertGreater(left[2], 30)

    def test_extending_after_the_answer_says_nothing(self):
        kept = []
        result = call(app_of(lambda message: kept.append(message)))
        recorder = kept[0]._session.writer
        kept[0].extend(5)
        self.assertEqual((recorder.said, result.extensions), ([], []))

    def test_logs_have_levels_and_fields(self):
        app = laneway.App()

        @app.handler
        def function(message):
            app.log("warn", "disk is full", free="0 B", node=3)
        self.assertEqual(call(app).logs, [("warn", "disk is full free=0 B node=3")])

    def test_an_unknown_level_is_an_error(self):
        app = laneway.App()

        @app.handler
        def function(message):
            app.log("loud", "x")
        self.assertEqual(quietly(app)[0].verdict, "error")

    def test_records_of_logging_go_to_the_log(self):
        app = laneway.App()
        logger = logging.Logger("shop")

        @app.handler
        def function(message):
            logger.addHandler(laneway._app.LogHandler(app._session))
            logger.warning("late by %d s", 3)
            logger.critical("gone")
        self.assertEqual(call(app).logs, [("warn", "shop: late by 3 s"), ("error", "shop: gone")])

    def test_a_null_has_no_json(self):
        def function(message):
            self.assertIsNone(message.value)
            self.assertEqual(message.text, "")
            with self.assertRaises(ValueError):
                message.json()
        self.assertEqual(call(app_of(function)).verdict, "ok")


class Batches(unittest.TestCase):
    def verdicts(self, function, values, **options):
        app = app_of(function, **options)
        lists = []
        for protocol in ("lines", "frames"):
            with contextlib.redirect_stderr(io.StringIO()):
                results = call_batch(app, values, protocol=protocol)
            lists.append([(result.verdict, result.reply) for result in results])
        self.assertEqual(lists[0], lists[1])
        return lists[0]

    def test_each_message_has_a_result_of_its_own(self):
        def function(messages):
            messages[0].publish("audit", messages[0].value)
            return [message.text.upper() if message.text != "x" else laneway.Dead("never")
                    for message in messages]
        self.assertEqual(self.verdicts(function, ["a", "x", b"c"], batch=True),
                         [("ok", b"A"), ("dead", None), ("ok", b"C")])
        results = call_batch(app_of(function, batch=True), ["a", "b"], protocol="frames")
        self.assertEqual([len(result.outputs) for result in results], [1, 0])

    def test_nothing_is_ok_for_each_and_an_exception_is_for_all(self):
        self.assertEqual(self.verdicts(lambda messages: None, ["a", "b"], batch=True),
                         [("ok", None)] * 2)
        for wrong in (raiser(laneway.Retry("later")), lambda messages: laneway.Retry("later")):
            self.assertEqual(self.verdicts(wrong, ["a", "b"], batch=True), [("retry", None)] * 2)
        for wrong in (lambda messages: 7, lambda messages: [None] * 3):
            self.assertEqual(self.verdicts(wrong, ["a", "b"], batch=True), [("error", None)] * 2)

    def test_what_cannot_be_sent_is_an_error_of_its_message_alone(self):
        for wrong in (7, "\ud800"):
            self.assertEqual(self.verdicts(lambda messages, wrong=wrong: [wrong, "b"], ["", ""],
                                           batch=True)[1], ("ok", b"b"))

    def test_a_handler_of_one_message_gets_them_one_after_the_other(self):
        def function(message):
            return message.json()

        async def later(message):
            return message.json()
        for handler in (function, later):
            self.assertEqual(self.verdicts(handler, ["[1]", "{", "[2]"]),
                             [("ok", b"[1]"), ("error", None), ("ok", b"[2]")])

    def test_a_handler_of_batches_gets_one_message_as_a_list(self):
        async def function(messages):
            return [f"{len(messages)} {messages[0].text}"]
        self.assertEqual(call(app_of(function, batch=True), "a").reply, b"1 a")


class Registering(unittest.TestCase):
    def test_a_handler_is_chosen_by_name_or_else_the_one_without(self):
        app = laneway.App()
        app.handler("a")(lambda message: "a")
        app.handler(lambda message: "any")
        self.assertEqual(app.choose("a").name, "a")
        self.assertIsNone(app.choose("b").name)

    def test_wrong_registrations_are_refused(self):
        app = laneway.App()
        app.handler("a")(lambda message: None)
        with self.assertRaisesRegex(ValueError, "already"):
            app.handler("a")(lambda message: None)

        async def function(message):
            pass
        with self.assertRaisesRegex(ValueError, "threads"):
            app.handler("b", threads=2)(function)
        with self.assertRaisesRegex(ValueError, "threads"):
            app.handler("b", threads=-2)(lambda message: None)
        for wrong in ("ValueError", ValueError("x"), (OSError, 7), [OSError]):
            for name in ("dead_on", "retry_on"):
                with self.assertRaisesRegex(TypeError, "no class of exceptions"):
                    app.handler("b", **{name: wrong})(lambda message: None)

    def test_codes_are_checked_where_they_are_given(self):
        for code in (None, 0, 12, -1, 2**31 - 1):
            self.assertEqual(laneway.Error(code=code).code, code)
        for code in ("12", 1.5, 2**31, 10**30):
            with self.assertRaises(ValueError):
                laneway.Error(code=code)

    def test_durations_are_checked_where_they_are_given(self):
        for value, wanted in ((5, "5000ms"), (0.25, "250ms"), ("5s", "5000ms"), ("1m30s", "90000ms"),
                              ("1.5s", "1500ms"), (datetime.timedelta(minutes=2), "120000ms"),
                              (0, "0ms")):
            self.assertEqual(duration_text(value), wanted)
        for value in ("5", "", "s", "5 s", -1, float("nan"), float("inf"), 400 * 86400, "-5s"):
            with self.assertRaises(ValueError, msg=repr(value)):
                laneway.Retry(delay=value)


if __name__ == "__main__":
    unittest.main()
