# SPDX-License-Identifier: Apache-2.0
"""pyrallel_peer.py BOOTSTRAP TOPIC COUNT CONCURRENCY WORK_US: consumes COUNT messages in key order
with Pyrallel's asynchronous engine and prints how long it took from the first handler's begin to
the last one's end."""
import asyncio
import json
import logging
import os
import sys
import time

from pyrallel_consumer import (ExecutionConfig, ExecutionMode, KafkaConfig, OrderingMode,
                               ParallelConsumerConfig, PyrallelConsumer)

logging.disable(logging.CRITICAL)


async def main():
    address, topic, count, concurrency, work_us = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
    marks, done = [], asyncio.Event()

    async def work(_item):
        if not marks:
            marks.extend([time.monotonic(), 0])
        if work_us:
            await asyncio.sleep(work_us / 1e6)
        marks[1] += 1
        if marks[1] == count:
            done.set()

    execution = ExecutionConfig(mode=ExecutionMode.ASYNC, max_in_flight=concurrency)
    parallel = ParallelConsumerConfig(ordering_mode=OrderingMode.KEY_HASH, execution=execution)
    kafka = KafkaConfig(BOOTSTRAP_SERVERS=[address], CONSUMER_GROUP=f"peer-{os.getpid()}",
                        dlq_enabled=False, parallel_consumer=parallel)
    consumer = PyrallelConsumer(kafka, work, topic)
    await consumer.start()
    try:
        await asyncio.wait_for(done.wait(), 100)
    finally:
        seconds = time.monotonic() - marks[0] if marks else 0
        is_done = bool(marks) and marks[1] == count
        print(json.dumps({"done": is_done, "seconds": round(seconds, 4)}), flush=True)
        os._exit(0 if is_done else 1)


asyncio.run(main())
