#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes a slow digest of each document: 500 rounds of SHA-256.

A plain function: messages are handled one after the other in each process, and the service runs
several processes. Threads would share one processor, since Python code runs on one at a time.
"""
import hashlib

import laneway

app = laneway.App()
ROUNDS = 500


@app.handler("digest")
def digest(message: laneway.Message) -> str:
    value = message.value or b""
    for _ in range(ROUNDS):
        value = hashlib.sha256(value).digest()
    return value.hex()


app.run()
