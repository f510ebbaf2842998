#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Confirms orders such as {"id": 7}. {"id": 7, "fails": 1} fails once before it works.

Needs the client: pip install ./clients/python
"""
import laneway

app = laneway.App()


@app.handler("confirm-order", dead_on=(KeyError, TypeError, ValueError))
def confirm(message: laneway.Message) -> dict:
    order = message.json()
    if message.attempt <= order.get("fails", 0):
        raise laneway.Retry("database timeout", delay="10ms")
    return {"confirmed": order["id"]}


app.run()
