/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions that fell asleep: the cluster has messages by the watermarks that the client keeps
 * anyway, the dispatcher has room, and nothing came for a minute. It is said once and mended by a
 * seek to the next offset, which makes the client fetch anew; a rebalance would be no remedy.
 * Looked at when the client's queue is served, so it wakes nobody. Under read_committed an open
 * transaction looks the same from here; the seek does no harm then.
 */
#include "brokers/kafka/kafka.h"

static bool
has_lag(const struct lw_kafka_partition *partition)
{
    int64_t low = 0;
    int64_t high = 0;
    rd_kafka_resp_err_t code = rd_kafka_get_watermark_offsets(
        partition->source->client->rk, partition->topic, partition->number, &low, &high);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR && high > partition->next;
}

static bool
is_stalled(const struct lw_kafka_partition *partition, uint64_t now)
{
    uint64_t limit_ns = partition->source->stall_ns;
    bool is_ours = partition->generation && !partition->is_revoking;
    /* What is in the ring or the stash came; it is the dispatcher that does not take it. */
    bool has_some = !lw_list_is_empty(&partition->ready) || partition->stash_count > 0;
    return limit_ns > 0 && is_ours && !has_some && partition->next >= 0 &&
           partition->source->demand_messages > 0 && now - partition->active_at > limit_ns &&
           now - partition->mended_at > limit_ns && has_lag(partition);
}

static void
mend_if_stalled(struct lw_kafka_partition *partition, void *user)
{
    uint64_t now = *(const uint64_t *)user;
    if (!is_stalled(partition, now)) {
        return;
    }
    if (partition->mended_at < partition->active_at) {
        lw_host_log(partition->source->broker->base.host, LW_LOG_WARN, "kafka.stalled",
                    "nothing came for long though there are messages; fetching again",
                    "topic=%s partition=%d next=%lld idle_ms=%llu", partition->topic,
                    (int)partition->number, (long long)partition->next,
                    (unsigned long long)((now - partition->active_at) / LW_MS));
    }
    partition->mended_at = now;
    lw_kafka_partition_rewind(partition, partition->next);
}

void
lw_kafka_stall_check(struct lw_kafka_client *client)
{
    uint64_t now = client->broker->base.host->now;
    if (client->revoke || now - client->checked_at < client->broker->stall_ns / 4) {
        return;
    }
    client->checked_at = now;
    lw_kafka_client_each(client, mend_if_stalled, &now);
}
