/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client and the embedded broker on one host with a moved clock, for tests of consumers: set up
 * and taken down around each test, where nothing may be left and nothing may have been acknowledged
 * twice. And entries as producers of other kinds make them: chunks, packed ones, broken ones.
 */
#ifndef TESTS_BROKERS_PULSAR_STAGE_H
#define TESTS_BROKERS_PULSAR_STAGE_H

#include "tests/brokers/pulsar/consuming.h"

struct stage {
    struct world world;
    struct embedded *broker;
    uint64_t live; /* allocations before the test */
};

extern struct stage stage;

int stage_set_up(void **state);
int stage_tear_down(void **state);

#define STAGE_TEST(name) cmocka_unit_test_setup_teardown(name, stage_set_up, stage_tear_down)

/* One message, or a batch of equal ones. */
void stage_publish(const char *value, int32_t batch);
/* Metadata of a single message, to be changed. */
struct lw_pulsar_metadata stage_metadata(void);
/* One entry of these bytes. */
void stage_store(const struct lw_pulsar_metadata *metadata, struct lw_bytes body);
/* Chunk `index` of `count` of that message; all chunks of it are equal in size. */
void stage_chunk(const char *uuid, int32_t index, int32_t count, const char *body);
struct embedded_subscription_info stage_subscription(const char *name);
/* What the broker thinks is granted and not used is what the consumer thinks. */
void stage_expect_permits_agree(struct consuming *consuming, const char *subscription);
/* The next so many commands of a type have this happen to them. */
void stage_fault(enum embedded_fault_kind kind, enum embedded_direction direction, int32_t type,
                 uint32_t times);
uint64_t stage_count_in(enum lw_pulsar_command_type type);

#endif
