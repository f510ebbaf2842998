#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pulsar-priority.sh SEED MINUTES: priority against the backlog of a real Pulsar, 20,000 messages on
# each of three topics, beside pulsar-dispatcher. One round, however many minutes; it draws the
# course of the windows into evidence/.
# sources: src include bench/pulsar_priority.c bench/peers/pulsar-priority
exec bench/peers/pulsar-priority --check --json --peer-messages 10000 --seed "$1" --plots evidence
