# SPDX-License-Identifier: Apache-2.0
"""pyrallel_process_peer.py BOOTSTRAP TOPIC CONCURRENCY PROCESSES POLICY WORK: consumes in key order
with Pyrallel's process engine until it is killed. workloads.py says what it did."""
import asyncio
import functools
import logging
import os
import sys

from pyrallel_consumer import (ExecutionConfig, ExecutionMode, KafkaConfig, OrderingMode,
                               ParallelConsumerConfig, PyrallelConsumer)
from pyrallel_consumer.config import ProcessConfig

import workloads

logging.disable(logging.CRITICAL)


def handle(item, name):
    workloads.run(workloads.WORKS[name], item.payload)


async def main():
    address, topic, concurrency, processes, policy, work = sys.argv[1:]
    execution = ExecutionConfig(
        mode=ExecutionMode.PROCESS, max_in_flight=int(concurrency),
        process_config=ProcessConfig(process_count=int(processes), flush_policy=policy))
    parallel = ParallelConsumerConfig(ordering_mode=OrderingMode.KEY_HASH, execution=execution)
    kafka = KafkaConfig(BOOTSTRAP_SERVERS=[address], CONSUMER_GROUP=f"peer-{os.getpid()}",
                        dlq_enabled=False, parallel_consumer=parallel)
    consumer = PyrallelConsumer(kafka, functools.partial(handle, name=work), topic)
    await consumer.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
