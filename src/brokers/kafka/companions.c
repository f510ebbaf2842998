/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions of retry tiers, read beside their source's partition of the same number by whoever
 * owns that. No event of the group names them, so three duties are ours: they are made known to
 * the client at the start (else the first message takes a second), they start at earliest
 * whatever the source's reset says, and their committed offsets are committed again every day,
 * since the cluster forgets offsets of topics that the group does not subscribe to after a week.
 */
#include "base/alloc.h"
#include "base/log.h"
#include "brokers/kafka/kafka.h"

static void on_refresh_due(struct lw_timer *timer, uint64_t now);

void
lw_kafka_companions_init(struct lw_kafka_client *client)
{
    lw_timer_init(&client->refresh_timer, on_refresh_due);
}

/* A request that is not waited for: its answer teaches the client where the topic lives. */
static void
ask_about(rd_kafka_t *rk, const char *topic)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_END;
    (void)rd_kafka_offsets_for_times(rk, list, 0);
    rd_kafka_topic_partition_list_destroy(list);
}

static void
prepare_tier(struct lw_kafka_client *client, struct lw_kafka_tier *tier)
{
    char reason[256], quoted[512];
    rd_kafka_topic_conf_t *conf = rd_kafka_default_topic_conf_dup(client->rk);
    if (rd_kafka_topic_conf_set(conf, "auto.offset.reset", "earliest", reason, sizeof reason) !=
        RD_KAFKA_CONF_OK) {
        lw_host_log(client->broker->base.host, LW_LOG_ERROR, "kafka.tier_reset",
                    "a retry tier follows the reset policy of its source", "topic=%s reason=%s",
                    tier->topic, lw_log_quote(reason, quoted, sizeof quoted));
    }
    tier->rkt = rd_kafka_topic_new(client->rk, tier->topic, conf);
    if (tier->rkt) {
        ask_about(client->rk, tier->topic);
    }
}

void
lw_kafka_companions_prepare(struct lw_kafka_client *client)
{
    struct lw_host *host = client->broker->base.host;
    for (struct lw_list *at = client->sources.next; at != &client->sources; at = at->next) {
        struct lw_kafka_source *source = LW_CONTAINER(at, struct lw_kafka_source, client_link);
        for (size_t i = 0; source->reads_tiers && i < source->tier_count; i++) {
            prepare_tier(client, &source->tiers[i]);
            lw_timers_arm(&host->timers, &client->refresh_timer,
                          host->now + client->broker->companion_refresh_ns);
        }
    }
}

/* A tier may have fewer partitions than its source; copies go to those that exist. */
static bool
has_partition(struct lw_kafka_source *source, const char *topic, int32_t number)
{
    struct lw_kafka_topic *known = lw_kafka_producer_topic(&source->broker->producer, topic);
    int32_t partitions = known ? lw_kafka_topic_partitions(known) : 0;
    return partitions == 0 || number < partitions;
}

void
lw_kafka_companions_add(struct lw_kafka_source *source, int32_t number,
                        rd_kafka_topic_partition_list_t *list)
{
    for (size_t i = 0; source->reads_tiers && i < source->tier_count; i++) {
        struct lw_kafka_tier *tier = &source->tiers[i];
        if (has_partition(source, tier->topic, number) &&
            lw_kafka_partition_open(source, tier->topic, tier->delay_ms, number)) {
            rd_kafka_topic_partition_list_add(list, tier->topic, number);
        }
    }
}

/* -- Committing again ---------------------------------------------------------------------------- */

static void
add_if_companion(struct lw_kafka_partition *partition, void *user)
{
    if (partition->tier_ms >= 0 && !partition->is_revoking) {
        rd_kafka_topic_partition_list_add(user, partition->topic, partition->number);
    }
}

void
lw_kafka_companions_refresh(struct lw_kafka_client *client)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    lw_kafka_client_each(client, add_if_companion, list);
    if (list->cnt > 0) {
        rd_kafka_ListConsumerGroupOffsets_t *request = rd_kafka_ListConsumerGroupOffsets_new(
            client->group, list);
        rd_kafka_ListConsumerGroupOffsets(client->rk, &request, 1, NULL, client->queue);
        rd_kafka_ListConsumerGroupOffsets_destroy(request);
    }
    rd_kafka_topic_partition_list_destroy(list);
}

static void
on_refresh_due(struct lw_timer *timer, uint64_t now)
{
    struct lw_kafka_client *client = LW_CONTAINER(timer, struct lw_kafka_client, refresh_timer);
    lw_timers_arm(&client->broker->base.host->timers, timer,
                  now + client->broker->companion_refresh_ns);
    if (client->state == LW_KAFKA_CLIENT_MEMBER && !client->revoke) {
        lw_kafka_companions_refresh(client);
    }
}

/* Still ours, and not committed by this ownership since: that one is younger. */
static bool
is_current(struct lw_kafka_client *client, const rd_kafka_topic_partition_t *item)
{
    const struct lw_kafka_partition *partition = lw_kafka_client_find_partition(
        client, item->topic, item->partition);
    return partition && partition->generation && !partition->is_revoking &&
           (partition->committed < 0 || partition->committed == item->offset);
}

static void
commit_again(struct lw_kafka_client *client, const rd_kafka_topic_partition_list_t *found)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(found->cnt);
    for (int i = 0; i < found->cnt; i++) {
        const rd_kafka_topic_partition_t *item = &found->elems[i];
        if (item->offset >= 0 && !item->err && is_current(client, item)) {
            rd_kafka_topic_partition_list_add(list, item->topic, item->partition)->offset =
                item->offset;
        }
    }
    if (list->cnt > 0 &&
        rd_kafka_commit_queue(client->rk, list, client->queue, NULL, NULL) == 0) {
        client->is_refreshing = true;
    }
    rd_kafka_topic_partition_list_destroy(list);
}

void
lw_kafka_companions_on_offsets(struct lw_kafka_client *client, rd_kafka_event_t *event)
{
    const rd_kafka_ListConsumerGroupOffsets_result_t *result =
        rd_kafka_event_ListConsumerGroupOffsets_result(event);
    size_t count = 0;
    const rd_kafka_group_result_t **groups = rd_kafka_ListConsumerGroupOffsets_result_groups(
        result, &count);
    /* A commit in flight, or a partition in doubt: the next day will do. */
    bool is_bad_time = client->commit || client->revoke || client->is_refreshing ||
                       atomic_load(&client->is_joining);
    if (count == 1 && !is_bad_time && !rd_kafka_group_result_error(groups[0])) {
        commit_again(client, rd_kafka_group_result_partitions(groups[0]));
    }
}
