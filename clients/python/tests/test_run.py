# SPDX-License-Identifier: Apache-2.0
"""Whole programs under a service of a few lines: handshake, order, concurrency, prints, the end."""
import os
import signal
import unittest

from service import Program

ECHO = """
    import laneway
    app = laneway.App()
    @app.handler("it")
    def it(message):
        return message.text
    app.run()
"""


class Conversation(unittest.TestCase):
    def ends(self, program, status=0):
        program.end_input()
        self.assertIsNone(program.read())
        self.assertEqual(program.wait(), status, program.stderr())

    def test_messages_are_answered_in_both_protocols_and_ways(self):
        for protocol in ("lines", "frames"):
            for uses_fd in (True, False):
                with self.subTest(protocol, uses_fd=uses_fd):
                    with Program(ECHO, protocol, uses_fd) as program:
                        self.assertEqual(program.read(), {"ready": {"protocol": 1}})
                        program.send(*(program.message(i, f"v{i} é") for i in (1, 2, 3)))
                        for number in (1, 2, 3):  # one after the other, in order
                            answer = program.read()
                            self.assertEqual((answer["id"], answer["reply"]),
                                             (number, f"v{number} é"))
                        self.ends(program)

    def test_a_large_message_comes_and_goes_whole(self):
        text = "x" * 3_000_000
        for protocol in ("lines", "frames"):
            with Program(ECHO, protocol) as program:
                program.read()
                program.send(program.message(1, text))
                self.assertEqual(program.read()["reply"], text)
                self.ends(program)

    def test_an_answer_that_is_too_large_is_an_error_of_its_message_and_no_more(self):
        source = """
            import laneway
            app = laneway.App()
            @app.handler("it", threads=THREADS)
            ASYNCdef it(message):
                way, size = message.text.split(" ")[:2]
                if way == "output":
                    message.publish("t", b"x" * int(size))
                    return None
                return "x" * int(size) if way == "text" else b"x" * int(size)
            app.run()
        """
        large = 16 << 20
        for protocol in ("lines", "frames"):
            for how in ("", "async "):
                text = source.replace("ASYNC", how).replace("THREADS", "0" if how else "True")
                with self.subTest(protocol, how=how), Program(text, protocol) as program:
                    program.read()
                    ways = ("text", "bytes", "output")
                    for number, way in enumerate(ways, 1):
                        program.send(program.message(number, f"{way} {large}"))
                        answer = program.read()
                        self.assertEqual((answer["id"], answer["result"]), (number, "error"))
                        self.assertIn("at most 16 MiB more than its request", answer["reason"])
                    # As large as its request, and more than what is allowed to a small one.
                    program.send(program.message(5, f"text {large} " + "y" * 2000))
                    self.assertEqual(len(program.read()["reply"]), large)
                    self.ends(program)

    def test_a_log_line_without_end_is_cut(self):
        source = """
            import laneway
            app = laneway.App()
            @app.handler("it")
            def it(message):
                app.log("info", "x" * (17 << 20))
            app.run()
        """
        with Program(source) as program:
            program.read()
            program.send(program.message(1))
            self.assertEqual(len(program.read()["msg"]), 65536)
            self.assertEqual(program.read(), {"id": 1, "result": "ok"})
            self.ends(program)

    def test_the_protocol_is_known_by_its_first_byte(self):
        for protocol in ("lines", "frames"):
            source = "import os; del os.environ['LANEWAY_PROTOCOL']\nif 1:\n" + ECHO
            with Program(source, protocol) as program:
                self.assertEqual(program.read(), {"ready": {"protocol": 1}})
                self.ends(program)

    def test_a_last_message_that_came_with_the_end_is_answered(self):
        with Program(ECHO) as program:
            program.send(program.message(1, "a"), program.message(2, "b"))
            program.end_input()
            self.assertEqual(program.read(), {"ready": {"protocol": 1}})
            self.assertEqual(sorted(program.answers(2)), [1, 2])
            self.assertIsNone(program.read())
            self.assertEqual(program.wait(), 0)

    def test_a_service_that_goes_away_is_no_crash(self):
        with Program(ECHO) as program:
            program.read()
            os.close(program._answers)
            program._answers = os.open(os.devnull, os.O_RDONLY)
            program.send(program.message(1, "a"))
            program.end_input()
            self.assertEqual(program.wait(), 0, program.stderr())
            self.assertNotIn("Traceback", program.stderr())


class Prints(unittest.TestCase):
    SOURCE = """
        import os, subprocess, sys
        import laneway
        app = laneway.App()
        @app.handler("it")
        def it(message):
            print("printed")
            os.write(1, b"written\\n")
            subprocess.run(["echo", "from a child"])
            return str(len(subprocess.run(["cat"], stdout=subprocess.PIPE).stdout))
        app.run()
    """

    def test_prints_and_children_do_no_harm(self):
        for uses_fd in (True, False):
            with self.subTest(uses_fd=uses_fd), Program(self.SOURCE, uses_fd=uses_fd) as program:
                program.read()
                program.send(program.message(1), program.message(2))
                for number in (1, 2):  # the child found no input of ours
                    self.assertEqual(program.read(), {"id": number, "result": "ok", "reply": "0"})
                program.end_input()
                self.assertEqual(program.wait(), 0)
                for word in ("printed", "written", "from a child"):
                    self.assertEqual(program.stderr().count(word), 2)
                if uses_fd:
                    self.assertEqual(program.stdout(), "")

    def test_children_do_not_hold_the_answers_open(self):
        source = """
            import subprocess
            import laneway
            app = laneway.App()
            @app.handler("it")
            def it(message):
                return str(subprocess.Popen(["sleep", "600"]).pid)
            app.run()
        """
        with Program(source) as program:
            program.read()
            program.send(program.message(1))
            child = int(program.read()["reply"])
            program.end_input()
            self.assertIsNone(program.read())  # the end comes though the child lives
            os.kill(child, 9)


class Together(unittest.TestCase):
    def check(self, source, concurrent, window=4):
        with Program(source, window=window) as program:
            ready = program.read()["ready"]
            self.assertEqual(ready.get("concurrent", False), concurrent)
            program.send(*(program.message(i) for i in range(1, 5)))
            self.assertEqual(sorted(program.answers(4)), [1, 2, 3, 4])
            program.send(*(program.message(i) for i in range(5, 9)))
            program.end_input()
            self.assertEqual(sorted(program.answers(4)), [5, 6, 7, 8])
            self.assertIsNone(program.read())
            self.assertEqual(program.wait(), 0, program.stderr())

    def test_an_async_handler_runs_the_whole_window_at_once(self):
        self.check("""
            import asyncio
            import laneway
            app = laneway.App()
            here, full = [], asyncio.Event()
            @app.on_start
            async def prepare():
                global full
                full = asyncio.Event()
            @app.handler("it")
            async def it(message):  # none ends before four have begun
                global full
                here.append(message)
                mine = full
                if len(here) % 4 == 0:
                    full = asyncio.Event()
                    mine.set()
                await mine.wait()
            app.run()
        """, concurrent=True)

    def test_threads_run_at_once(self):
        self.check("""
            import threading
            import laneway
            app, barrier = laneway.App(), threading.Barrier(4)
            @app.handler("it", threads=True)
            def it(message):
                barrier.wait()
            app.run()
        """, concurrent=True)

    def test_fewer_threads_than_the_window_are_not_concurrent(self):
        self.check("""
            import threading
            import laneway
            app, barrier = laneway.App(), threading.Barrier(2)
            @app.handler("it", threads=2)
            def it(message):
                barrier.wait()
            app.run()
        """, concurrent=False)

    def test_a_quick_answer_never_waits_for_a_slow_handler(self):
        source = """
            import os
            import laneway
            app = laneway.App()
            @app.handler("it")
            def it(message):
                if message.text:
                    os.read(os.open(message.text, os.O_RDONLY), 1)  # until somebody writes
            app.run()
        """
        fifo = f"/tmp/laneway-client-{os.getpid()}"
        os.mkfifo(fifo)
        self.addCleanup(os.unlink, fifo)
        with Program(source, window=64) as program:
            program.read()
            for begin in (1, 65, 129):  # quick ones, so that answers are held together
                program.send(*(program.message(begin + i) for i in range(64)))
                program.answers(64)
            program.send(program.message(200), program.message(201, fifo), program.message(202))
            self.assertEqual(program.read()["id"], 200)
            with open(fifo, "w", encoding="ascii") as go:
                go.write("x")
            self.assertEqual(sorted(program.answers(2)), [201, 202])

    def test_extensions_and_logs_come_while_a_handler_runs(self):
        source = """
            import logging
            import laneway
            app = laneway.App()
            @app.handler("it")
            def it(message):
                message.extend("30s")
                app.log("info", "halfway", of=message.number)
                logging.getLogger("shop").warning("slow")
            app.run()
        """
        with Program(source) as program:
            program.read()
            program.send(program.message(1))
            self.assertEqual([program.read() for _ in range(4)], [
                {"id": 1, "extend": "30000ms"},
                {"log": "info", "msg": "halfway of=1"},
                {"log": "warn", "msg": "shop: slow"},
                {"id": 1, "result": "ok"}])


class Ends(unittest.TestCase):
    def check(self, source, status, *words, **options):
        with Program(source, **options) as program:
            program.end_input()
            said = program.read()
            self.assertEqual(program.wait(), status, program.stderr())
            for word in words:
                self.assertIn(word, program.stderr())
            return said

    def test_an_unknown_handler_is_named_and_nothing_is_ready(self):
        self.assertIsNone(self.check(ECHO, 78, "'other'", "has: it", handler="other"))

    def test_no_service_is_said(self):
        self.assertIsNone(self.check(ECHO, 64, "before the service said hello", hello=False))

    def test_an_unknown_protocol_is_said(self):
        for name in ("once", "smoke"):  # 78 of `once`: the handler is broken, not the message
            source = f"import os; os.environ['LANEWAY_PROTOCOL'] = {name!r}\nif 1:\n" + ECHO
            self.assertIsNone(self.check(source, 78, f"not {name}", hello=False))

    def test_what_is_not_the_protocol_is_said(self):
        with Program(ECHO, hello=False) as program:
            program.write(b"smoke\n")
            program.end_input()
            self.assertIsNone(program.read())
            self.assertEqual(program.wait(), 76)
            self.assertIn("not the lines protocol", program.stderr())

    def test_a_failing_start_is_told_by_its_traceback(self):
        source = """
            import laneway
            app = laneway.App()
            @app.on_start
            def connect():
                raise ConnectionError("no database")
            app.handler(lambda message: None)
            app.run()
        """
        self.assertIsNone(self.check(source, 1, "ConnectionError: no database"))

    def test_hooks_frame_the_work(self):
        source = """
            import laneway
            app = laneway.App()
            app.on_start(lambda: app.log("info", "open"))
            app.on_stop(lambda: app.log("info", "closed"))
            app.handler(lambda message: None)
            app.run()
        """
        with Program(source) as program:
            program.send(program.message(1))
            program.end_input()
            said = [program.read() for _ in range(4)]
            self.assertEqual([list(unit) for unit in said],
                             [["log", "msg"], ["ready"], ["id", "result"], ["log", "msg"]])

    def test_an_exit_in_a_handler_ends_the_program_after_what_was_answered(self):
        for options in ("", ", threads=1"):
            source = f"""
                import sys
                import laneway
                app = laneway.App()
                @app.handler("it"{options})
                def it(message):
                    if message.text == "go":
                        sys.exit(7)
                app.run()
            """
            with self.subTest(options), Program(source) as program:
                program.read()
                program.send(program.message(1), program.message(2, "go"), program.message(3))
                self.assertEqual(program.read()["id"], 1)
                self.assertIsNone(program.read())
                self.assertEqual(program.wait(), 7)

    def test_an_exit_in_an_async_handler_is_no_error_of_the_others(self):
        source = """
            import asyncio
            import sys
            import laneway
            app = laneway.App()
            @app.handler("it")
            async def it(message):
                if message.text == "wait":
                    await asyncio.Event().wait()
                if message.text == "go":
                    sys.exit(7)
            app.run()
        """
        for ends_first in (False, True):
            with self.subTest(ends_first), Program(source) as program:
                program.read()
                program.send(program.message(1, "wait"), program.message(2))
                self.assertEqual(program.read(), {"id": 2, "result": "ok"})
                program.send(program.message(3, "go"))
                if ends_first:
                    program.end_input()
                said = [unit for unit in iter(program.read, None) if "log" not in unit]
                self.assertEqual(said, [])  # of 1, which was interrupted, nothing is said
                self.assertEqual(program.wait(), 7)

    def test_an_async_hook_of_a_plain_handler_is_refused_before_ready(self):
        source = """
            import laneway
            app = laneway.App()
            app.handler(lambda message: None)
            @app.on_stop
            async def close():
                pass
            app.run()
        """
        self.assertIsNone(self.check(source, 1, "close is asynchronous, but the handler is not"))

    def test_a_signal_handler_may_log_while_its_thread_writes(self):
        source = """
            import signal
            import laneway
            app = laneway.App()
            signal.signal(signal.SIGUSR1, lambda *_: app.log("info", "hit"))
            @app.handler("it")
            def it(message):
                return "x" * 3_000_000
            app.run()
        """
        with Program(source) as program:
            program.read()
            program.send(program.message(1))
            program.wait_blocked()  # the pipe is full, and nobody reads
            program._process.send_signal(signal.SIGUSR1)
            units = [program.read() for _ in range(2)]
            self.assertEqual([list(unit)[0] for unit in units], ["id", "log"])
            program.end_input()
            self.assertIsNone(program.read())
            self.assertEqual(program.wait(), 0, program.stderr())


if __name__ == "__main__":
    unittest.main()
