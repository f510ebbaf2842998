# SPDX-License-Identifier: Apache-2.0
"""The test vectors of the protocols, which the service's own tests read too."""
import base64
import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "tests" / "data" / "protocol"


def load(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def content(value):
    """Bytes, or None for a null."""
    if isinstance(value, dict):
        return base64.b64decode(value["b64"])
    return None if value is None else value.encode()


def line_of(vector):
    return (vector["line"] + "\n").encode()


def frame_of(vector):
    header = vector["frame"]["header"].encode()
    return len(header).to_bytes(4, "big") + header + content(vector["frame"]["tail"])
