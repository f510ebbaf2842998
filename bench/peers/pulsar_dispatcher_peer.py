# SPDX-License-Identifier: Apache-2.0
"""pulsar_dispatcher_peer.py URL SUBSCRIPTION MESSAGES SLOTS MIN_US MAX_US SEED TOPIC...: handles so
many messages of each topic with pulsar-dispatcher, topics in order of priority, and prints in which
order they were started and how long that took from the first start to the last end."""
import asyncio
import json
import logging
import os
import random
import sys
import time

import pulsar
from pulsar_dispatcher import PulsarDispatcher

logging.disable(logging.CRITICAL)
LIMIT_S = 300


class Peer:
    def __init__(self, total, work_us, seed):
        self.total, self.work_us = total, work_us
        self.random = random.Random(seed)
        self.order, self.ended = [], 0
        self.begin = self.end = 0.0
        self.done = asyncio.Event()

    def handler(self, index):
        async def work(_message):
            if not self.order:
                self.begin = time.monotonic()
            self.order.append(index)
            if self.work_us[1]:
                await asyncio.sleep(self.random.uniform(*self.work_us) / 1e6)
            self.ended += 1
            if self.ended == self.total:
                self.end = time.monotonic()
                self.done.set()
        return work


async def main():
    url, subscription, topics = sys.argv[1], sys.argv[2], sys.argv[8:]
    messages, slots, least_us, most_us, seed = map(int, sys.argv[3:8])
    peer = Peer(messages * len(topics), (least_us, most_us), seed)
    silent = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
    dispatcher = PulsarDispatcher(url, concurrency=slots, logger=silent)
    for index, topic in enumerate(topics):
        await dispatcher.subscribe(
            topic, peer.handler(index), priority=index + 1, subscription_name=subscription,
            consumer_type=pulsar.ConsumerType.Shared,
            initial_position=pulsar.InitialPosition.Earliest)
    running = asyncio.create_task(dispatcher.run())
    try:
        await asyncio.wait_for(peer.done.wait(), LIMIT_S)
    finally:
        print(json.dumps({"started": len(peer.order), "seconds": peer.end - peer.begin,
                          "is_done": peer.ended >= peer.total,
                          "order": "".join(map(str, peer.order))}), flush=True)
        os._exit(0 if peer.ended >= peer.total and not running.done() else 1)


asyncio.run(main())
