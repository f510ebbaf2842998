#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a service for the price of an order such as {"id": 7, "item": "lamp"}.

The handler is `async`, so all messages of the window wait at the same time in one process. The
service is a stand-in that takes 50 ms: put your HTTP or database client there.
"""
import asyncio

import laneway

app = laneway.App()
PRICES = {"lamp": 19, "desk": 150}


@app.on_start
async def connect() -> None:
    """Here a pool of connections would be opened, before any message is handed over."""


async def ask_for_price(item: str) -> int:
    await asyncio.sleep(0.05)
    return PRICES[item]


@app.handler("price-order", dead_on=(KeyError, ValueError), retry_on=(asyncio.TimeoutError, OSError))
async def price(message: laneway.Message) -> dict:
    order = message.json()
    cost = await asyncio.wait_for(ask_for_price(order["item"]), timeout=5)
    return {"id": order["id"], "price": cost}


app.run()
