# SPDX-License-Identifier: Apache-2.0
"""Priority against the backlog of a real Pulsar, beside pulsar-dispatcher on the same messages: at
most 1 % of a lower topic's starts while a higher one has messages at the broker, with messages in
batches and without. Rates are printed; what they must be is judged where nothing else runs."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

if not os.environ.get("PULSAR_URL"):
    print("PULSAR_URL is not set; start a broker with tools/broker pulsar start", file=sys.stderr)
    sys.exit(77)
tool = str(ROOT / "bench/peers/pulsar-priority")
os.execv(tool, [tool, "--quick", "--check", *sys.argv[1:]])
