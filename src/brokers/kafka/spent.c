/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that are not needed any more, on their way back to the client library. They go back in
 * bursts: the client's threads allocate a message while we free one, from the same arena, and each
 * meeting of the two at its lock puts a thread to sleep. A burst of a thousand meets them once.
 * What waits here is bounded in number and bytes, and goes back at the turn after the last one
 * came, so nothing is kept by an idle service. Loop thread.
 */
#include "brokers/kafka/kafka.h"

static void
on_turn(struct lw_deferred *deferred)
{
    struct lw_kafka_spent *spent = LW_CONTAINER(deferred, struct lw_kafka_spent, deferred);
    if (spent->count == spent->seen) {
        lw_kafka_spent_flush(spent);
        return;
    }
    spent->seen = spent->count;
    lw_host_defer(spent->host, deferred);
}

void
lw_kafka_spent_init(struct lw_kafka_spent *spent, struct lw_host *host)
{
    spent->host = host;
    lw_deferred_init(&spent->deferred, on_turn);
}

void
lw_kafka_spent_flush(struct lw_kafka_spent *spent)
{
    lw_deferred_cancel(&spent->deferred);
    for (uint32_t i = 0; i < spent->count; i++) {
        rd_kafka_message_destroy(spent->messages[i]);
    }
    spent->count = 0;
    spent->seen = 0;
    spent->bytes = 0;
}

void
lw_kafka_spent_add(struct lw_kafka_spent *spent, rd_kafka_message_t *message)
{
    if (spent->count == 0) {
        lw_host_defer(spent->host, &spent->deferred);
    }
    spent->messages[spent->count++] = message;
    spent->bytes += message->len + message->key_len;
    if (spent->count == LW_KAFKA_SPENT || spent->bytes > LW_KAFKA_SPENT_BYTES) {
        lw_kafka_spent_flush(spent);
    }
}
