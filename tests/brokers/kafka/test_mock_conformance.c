/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance suite on librdkafka's mock cluster: the only one here whose connections can be
 * cut at will. It makes topics by a command of its own and whatever is named, and its rebalances
 * take the session time less a second.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <unistd.h>

#include "base/loop.h"
#include "brokers/kafka/broker.h"
#include "tests/brokers/conformance.h"
#include "tests/support/kafka_driver.h"

static const struct lw_property quick[] = { { "session.timeout.ms", "6000" } };

struct environment {
    struct lw_loop *loop;
    struct mock mock;
    uint64_t up_at; /* 0: not down */
};

static void
pump(void *user, uint64_t ms)
{
    struct environment *environment = user;
    struct lw_host *host = lw_loop_host(environment->loop);
    uint64_t deadline = host->ops->refresh(host) + ms * LW_MS;
    while (host->now < deadline) {
        lw_loop_turn_until(environment->loop, deadline);
    }
    if (environment->up_at > 0 && host->now >= environment->up_at) {
        environment->up_at = 0;
        mock_command(&environment->mock, "up -1");
    }
}

static void
create_topic(void *user, const char *name, int32_t partitions)
{
    struct environment *environment = user;
    char command[256];
    (void)snprintf(command, sizeof command, "topic %s %d", name, (int)partitions);
    mock_command(&environment->mock, command);
}

static void
set_down(void *user, uint64_t ms)
{
    struct environment *environment = user;
    struct lw_host *host = lw_loop_host(environment->loop);
    mock_command(&environment->mock, "down -1");
    environment->up_at = host->ops->refresh(host) + ms * LW_MS;
}

int
main(void)
{
    struct environment environment = { .up_at = 0 };
    char url[96];
    if (lw_loop_create(1, &environment.loop) != LW_STATUS_OK) {
        return 1;
    }
    mock_open(&environment.mock, "first:1");
    (void)snprintf(url, sizeof url, "kafka://%s", environment.mock.address);
    const struct conformance conformance = {
        .name = "Kafka, mock cluster",
        .ops = lw_kafka_broker_ops(),
        .url = url,
        .prefix = "c",
        .host = lw_loop_host(environment.loop),
        .user = &environment,
        .properties = quick,
        .property_count = 1,
        .pump = pump,
        .create_topic = create_topic,
        .set_down = set_down,
        .patience_ms = DRIVER_PATIENCE_MS,
        .divides_partitions = true,
    };
    int failed = conformance_run(&conformance);
    mock_close(&environment.mock);
    lw_loop_destroy(environment.loop);
    return failed;
}
