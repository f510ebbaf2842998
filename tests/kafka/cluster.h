/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real cluster that the test was given (KAFKA_BOOTSTRAP): topics of this run's own, messages
 * put into them, and two members turned side by side.
 */
#ifndef TESTS_KAFKA_CLUSTER_H
#define TESTS_KAFKA_CLUSTER_H

#include "tests/support/kafka_driver.h"

const char *cluster_address(void);
/* A name that no other run has: "orders" -> "orders-<pid>-<n>"; `out` holds 64 bytes. */
void cluster_name(const char *base, char *out);
/* Creates a topic by the broker's table; fails the test when it cannot. */
void cluster_create(const char *topic, int32_t partitions);
/* Runs tools/broker kafka ARGUMENTS; fails the test unless it exits with 0. */
void cluster_tool(const char *arguments);
/* Publishes `count` messages "<number>" with keys "key-<number % keys>" and waits for receipts. */
void cluster_fill(const char *topic, uint32_t count, uint32_t keys);
/* Turns both in turns until `is_done`; fails after timeout_ms. */
void cluster_run_two(struct driver *a, struct driver *b,
                     bool (*is_done)(struct driver *a, struct driver *b), int64_t timeout_ms);

#endif
