/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much waits at the cluster for a source, from what the client knows anyway: the end of each
 * partition as of its last fetch, less the next offset to be given out. Nothing is asked for and
 * nothing waits; a partition whose queue is full is not fetched, so its end may be old.
 *
 * Offsets are counted, so holes (compaction, control records) count as messages. The client keeps
 * the high watermark only; under read_committed what lies behind an open transaction cannot be
 * read, and then the end that it reported last (the last stable offset) is believed instead.
 */
#include "brokers/kafka/kafka.h"

/* The end was reported at this very place, and nothing has come into the queue since. */
static bool
is_at_end(const struct lw_kafka_partition *partition)
{
    return partition->next >= 0 && partition->next == partition->end &&
           partition->stash_count == 0 && lw_list_is_empty(&partition->ready);
}

bool
lw_kafka_partition_lag(const struct lw_kafka_partition *partition, uint64_t *ret_count)
{
    int64_t low = 0;
    int64_t high = 0;
    if (is_at_end(partition)) {
        *ret_count = 0;
        return true;
    }
    rd_kafka_resp_err_t code = rd_kafka_get_watermark_offsets(
        partition->source->client->rk, partition->topic, partition->number, &low, &high);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR || high < 0 || partition->next < 0) {
        return false;
    }
    *ret_count = high > partition->next ? (uint64_t)(high - partition->next) : 0;
    return true;
}

struct sum {
    struct lw_lag lag;
    bool is_known;
};

static void
add(struct lw_kafka_partition *partition, void *user)
{
    struct sum *sum = user;
    uint64_t count = 0;
    if (!partition->is_given_up && lw_kafka_partition_lag(partition, &count)) {
        uint64_t *total = partition->tier_ms >= 0 ? &sum->lag.companions : &sum->lag.messages;
        *total += count;
        sum->is_known = true;
    }
}

bool
lw_kafka_source_lag(struct lw_kafka_source *source, struct lw_lag *ret_lag)
{
    struct sum sum = { .is_known = false };
    if (source->client->rk) {
        lw_kafka_source_each(source, add, &sum);
    }
    if (sum.is_known) {
        *ret_lag = sum.lag;
    }
    return sum.is_known;
}
