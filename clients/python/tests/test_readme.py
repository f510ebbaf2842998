# SPDX-License-Identifier: Apache-2.0
"""The programs in README.md start and answer."""
import re
import unittest

from service import ROOT, Program


class Readme(unittest.TestCase):
    def test_its_programs_answer(self):
        blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 2)
        for block in blocks:
            with Program(block, handler="confirm-order") as program:
                self.assertIn("ready", program.read())
                program.send(program.message(1, '{"id": 7}'), program.message(2, "{}"))
                program.end_input()
                units = iter(program.read, None)
                results = {unit["id"]: unit["result"] for unit in units if "result" in unit}
                self.assertEqual(results, {1: "ok", 2: "dead"})
                self.assertEqual(program.wait(), 0, program.stderr())


if __name__ == "__main__":
    unittest.main()
