/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is active on a Failover subscription. Of the best priority, sorted by name: on a partition
 * the one at [partition mod count], else the owner of the topic's hash on a ring of 100 points a
 * name. A change takes effect after a pause, in which the old one goes on; then everybody is told
 * and the new one gets everything that is not acknowledged.
 */
#include "tests/support/pulsar/embedded_state.h"

enum { POINTS = 100, VERSION_THAT_IS_TOLD = 12 };

static int
by_name(const void *a, const void *b)
{
    const struct embedded_consumer *left = *(struct embedded_consumer *const *)a;
    const struct embedded_consumer *right = *(struct embedded_consumer *const *)b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : (left->serial < right->serial ? -1 : 1);
}

static uint32_t
best_of(const struct embedded_subscription *subscription, struct embedded_consumer **out)
{
    uint32_t count = 0;
    for (struct lw_list *node = subscription->consumers.next; node != &subscription->consumers;
         node = node->next) {
        struct embedded_consumer *consumer = LW_CONTAINER(node, struct embedded_consumer,
                                                          in_subscription);
        if (count > 0 && consumer->priority < out[0]->priority) {
            count = 0;
        }
        if (count == 0 || consumer->priority == out[0]->priority) {
            out[count++] = consumer;
        }
    }
    qsort(out, count, sizeof *out, by_name);
    return count;
}

static struct embedded_consumer *
on_ring(const char *topic, struct embedded_consumer **consumers, uint32_t count)
{
    char text[EMBEDDED_NAME_BYTES + 16];
    uint32_t wanted = embedded_hash(embedded_bytes(topic));
    uint32_t best = UINT32_MAX;
    uint32_t lowest = UINT32_MAX;
    struct embedded_consumer *owner = NULL;
    struct embedded_consumer *first = NULL;
    for (uint32_t i = 0; i < count * POINTS; i++) {
        snprintf(text, sizeof text, "%s%u", consumers[i / POINTS]->name, i % POINTS);
        uint32_t hash = embedded_hash(embedded_bytes(text));
        if (hash >= wanted && hash < best) {
            best = hash;
            owner = consumers[i / POINTS];
        }
        if (hash < lowest) {
            lowest = hash;
            first = consumers[i / POINTS];
        }
    }
    return owner != NULL ? owner : first;
}

struct embedded_consumer *
embedded_failover_choose(const struct embedded_subscription *subscription)
{
    struct embedded_consumer *consumers[64];
    uint32_t total = 0;
    for (struct lw_list *node = subscription->consumers.next; node != &subscription->consumers;
         node = node->next) {
        total++;
    }
    lw_assert(total <= 64);
    uint32_t count = total == 0 ? 0 : best_of(subscription, consumers);
    if (count == 0) {
        return NULL;
    }
    int32_t partition = subscription->topic->partition;
    return partition >= 0 ? consumers[(uint32_t)partition % count]
                          : on_ring(subscription->topic->name, consumers, count);
}

static void
tell(struct embedded_consumer *consumer, bool is_active)
{
    if (consumer->session->version < VERSION_THAT_IS_TOLD) {
        return;
    }
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_ACTIVE_CONSUMER_CHANGE);
    command.active_consumer_change.consumer_id = consumer->id;
    command.active_consumer_change.is_active = is_active;
    command.active_consumer_change.has = is_active ? 0 : 1 << 2;
    embedded_reply(consumer->session, &command);
}

void
embedded_failover_joined(struct embedded_consumer *consumer)
{
    if (embedded_failover_choose(consumer->subscription) != consumer) {
        tell(consumer, false);
    }
}

void
embedded_failover_changed(struct embedded_subscription *subscription)
{
    struct embedded *broker = subscription->topic->broker;
    const struct embedded_consumer *chosen = embedded_failover_choose(subscription);
    if (embedded_consumer_of(subscription, subscription->active) == NULL) {
        subscription->active = 0;
    }
    if (chosen == NULL || chosen->serial == subscription->active) {
        embedded_disarm(&subscription->failover_alarm);
        return;
    }
    if (lw_list_is_empty(&subscription->failover_alarm.link)) {
        embedded_arm(broker, &subscription->failover_alarm,
                     embedded_now_ms(broker) + broker->settings.failover_delay_ms);
    }
}

void
embedded_on_failover_alarm(struct embedded_alarm *alarm)
{
    struct embedded_subscription *subscription = LW_CONTAINER(
        alarm, struct embedded_subscription, failover_alarm);
    const struct embedded_consumer *chosen = embedded_failover_choose(subscription);
    if (chosen == NULL) {
        return;
    }
    subscription->active = chosen->serial;
    embedded_cells_rewind(subscription, false);
    for (struct lw_list *node = subscription->consumers.next; node != &subscription->consumers;
         node = node->next) {
        struct embedded_consumer *consumer = LW_CONTAINER(node, struct embedded_consumer,
                                                          in_subscription);
        tell(consumer, consumer == chosen);
    }
    embedded_want_dispatch(subscription);
}
