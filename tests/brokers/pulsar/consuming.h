/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer under test on the embedded broker, both on one host with a moved clock: what its
 * source would do is done by the test, message by message.
 */
#ifndef TESTS_BROKERS_PULSAR_CONSUMING_H
#define TESTS_BROKERS_PULSAR_CONSUMING_H

#include "brokers/pulsar/consumer.h"
#include "tests/brokers/pulsar/peer.h"
#include "tests/support/pulsar/embedded.h"

#define CONSUMING_TOPIC "persistent://public/default/t"

enum { CONSUMING_MESSAGES_MAX = 20000 };

/* What one consumer told and gave. */
struct consuming {
    struct world *world;
    struct lw_pulsar_consumer_settings settings;
    struct lw_pulsar_consumer *consumer;
    uint32_t begun;
    uint32_t lost;
    uint32_t failed;
    uint32_t ended;
    uint32_t stopped;
    struct lw_pulsar_failure failure;
    struct lw_message messages[CONSUMING_MESSAGES_MAX];
    size_t count;
    size_t released;
    uint32_t window; /* demand is kept at it, less what is held; 0: nothing is asked for */
    bool acks;       /* each message at once, and releases it */
};

struct consuming *consuming_create(struct world *world, int32_t type);
/* Settings may be changed between create and start. */
void consuming_start(struct consuming *consuming, uint32_t window);
/* Stops, waits, destroys. Messages that were not released are. */
void consuming_destroy(struct consuming *consuming);
/* Turns and looks at sockets until `count` messages came in all; fails the test otherwise. */
void consuming_until(struct consuming *consuming, size_t count);
/* Turns until nothing moves any more. */
void consuming_rest(struct consuming *consuming);
/* The same after so much time. */
void consuming_pass_ms(struct consuming *consuming, int64_t ms);
void consuming_ack(struct consuming *consuming, size_t index);
void consuming_nack(struct consuming *consuming, size_t index, int64_t delay_ms);
void consuming_ack_all(struct consuming *consuming);
struct lw_pulsar_consumer_figures consuming_figures(const struct consuming *consuming);

#endif
