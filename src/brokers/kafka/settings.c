/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of each client, in layers: our defaults, the broker's properties, the
 * consumer's properties of the subscription, and last what is ours alone. Properties of the other
 * role are left out, so that a broker's properties may hold those of consumers and producers.
 */
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "brokers/kafka/kafka.h"

enum { KBYTES_MIN = 2 * 1024, KBYTES_MAX = 64 * 1024 };

/*
 * fetch.wait 50 ms and at least 2,000 kB a queue: a partition that was full is served again
 * within 50 ms instead of a second. A member keeps its assignment through a broker's restart with
 * the client's own session time of 45 s if it reconnects every second.
 */
static const struct lw_property consumer_defaults[] = {
    { "auto.offset.reset", "earliest" },   { "fetch.wait.max.ms", "50" },
    { "queued.min.messages", "100000" },   { "reconnect.backoff.max.ms", "1000" },
    { "statistics.interval.ms", "90000" },
};

static const struct lw_property producer_defaults[] = {
    { "partitioner", "murmur2_random" },
    { "reconnect.backoff.max.ms", "1000" },
    { "topic.metadata.propagation.max.ms", "5000" },
    { "statistics.interval.ms", "180000" },
};

static const struct lw_property consumer_owned[] = {
    { "enable.auto.commit", "false" },
    { "enable.auto.offset.store", "false" },
    { "enable.partition.eof", "true" },
    { "log.queue", "true" },
};

static const struct lw_property producer_owned[] = {
    { "enable.idempotence", "true" },
    { "delivery.report.only.error", "false" },
    { "log.queue", "true" },
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct build {
    rd_kafka_conf_t *conf;
    enum lw_kafka_role role;
    struct lw_kafka_property_table *table;
    struct lw_error *ret_error;
};

static enum lw_status
set(struct build *build, const char *name, const char *value)
{
    char reason[512];
    if (rd_kafka_conf_set(build->conf, name, value, reason, sizeof reason) ==
        RD_KAFKA_CONF_OK) {
        return LW_STATUS_OK;
    }
    return lw_error_set(build->ret_error, LW_STATUS_CONFIG, "E0410",
                        "the Kafka client refuses the property \"%s\": %s", name, reason);
}

static bool
is_for_role(const struct build *build, const char *name)
{
    enum lw_kafka_scope scope = lw_kafka_property_scope(build->table, name);
    enum lw_kafka_scope other = build->role == LW_KAFKA_ROLE_PRODUCER ? LW_KAFKA_SCOPE_CONSUMER
                                                                      : LW_KAFKA_SCOPE_PRODUCER;
    return scope != other;
}

static enum lw_status
set_all(struct build *build, const struct lw_property *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = items[i].name;
        const char *value = items[i].value;
        bool is_ours = strcmp(name, "prefetch_bytes") == 0 || lw_kafka_property_is_token(name);
        if (is_ours || !is_for_role(build, name)) {
            continue;
        }
        bool is_none = strcmp(name, "auto.offset.reset") == 0 && strcmp(value, "none") == 0;
        enum lw_status status = set(build, name, is_none ? "error" : value);
        if (status != LW_STATUS_OK) {
            return status;
        }
    }
    return LW_STATUS_OK;
}

/* The host's name tells an operator whose client it is; a property overrides it. */
static enum lw_status
set_client_id(struct build *build)
{
    char name[256];
    if (gethostname(name, sizeof name) != 0) {
        lw_text_copy(name, sizeof name, "laneway");
    }
    name[sizeof name - 1] = '\0';
    return set(build, "client.id", name);
}

/* Later clients wait after a full queue by a property of their own; older ones do not know it. */
static void
set_backoff(struct build *build)
{
    char reason[256];
    (void)rd_kafka_conf_set(build->conf, "fetch.queue.backoff.ms", "10", reason, sizeof reason);
}

static enum lw_status
set_defaults(struct build *build)
{
    enum lw_status status = set_client_id(build);
    if (status != LW_STATUS_OK) {
        return status;
    }
    if (build->role == LW_KAFKA_ROLE_PRODUCER) {
        return set_all(build, producer_defaults, COUNT(producer_defaults));
    }
    set_backoff(build);
    return set_all(build, consumer_defaults, COUNT(consumer_defaults));
}

static enum lw_status
set_owned(struct build *build, const struct lw_kafka_broker *broker, const char *group)
{
    enum lw_status status = set(build, "bootstrap.servers", broker->addresses);
    if (status == LW_STATUS_OK && group) {
        status = set(build, "group.id", group);
    }
    if (status != LW_STATUS_OK) {
        return status;
    }
    return build->role == LW_KAFKA_ROLE_PRODUCER
               ? set_all(build, producer_owned, COUNT(producer_owned))
               : set_all(build, consumer_owned, COUNT(consumer_owned));
}

static enum lw_status
fill(struct build *build, struct lw_kafka_broker *broker, const char *group,
     const struct lw_properties *own)
{
    enum lw_status status = set_defaults(build);
    if (status == LW_STATUS_OK) {
        status = set_all(build, broker->properties.items, broker->properties.count);
    }
    if (status == LW_STATUS_OK && own) {
        status = set_all(build, own->items, own->count);
    }
    return status == LW_STATUS_OK ? set_owned(build, broker, group) : status;
}

static int
events_of(enum lw_kafka_role role, bool has_token)
{
    int common = RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_LOG | RD_KAFKA_EVENT_STATS;
    if (has_token) {
        common |= RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH;
    }
    switch (role) {
    case LW_KAFKA_ROLE_CONSUMER:
        return common | RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT;
    case LW_KAFKA_ROLE_PRODUCER:
        return common | RD_KAFKA_EVENT_DR;
    case LW_KAFKA_ROLE_ADMIN:
        return common;
    }
    return common;
}

rd_kafka_conf_t *
lw_kafka_settings_create(struct lw_kafka_broker *broker, enum lw_kafka_role role,
                         const char *group, const struct lw_properties *own,
                         struct lw_error *ret_error)
{
    struct build build = { .conf = rd_kafka_conf_new(),
                           .role = role,
                           .table = lw_kafka_property_table_create(),
                           .ret_error = ret_error };
    if (!build.table) {
        (void)lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a Kafka client");
        rd_kafka_conf_destroy(build.conf);
        return NULL;
    }
    enum lw_status status = fill(&build, broker, group, own);
    lw_kafka_property_table_destroy(build.table);
    if (status != LW_STATUS_OK) {
        rd_kafka_conf_destroy(build.conf);
        return NULL;
    }
    rd_kafka_conf_set_events(build.conf, events_of(role, broker->token != NULL));
    return build.conf;
}

int64_t
lw_kafka_settings_prefetch_kbytes(int64_t prefetch_bytes, int64_t partitions)
{
    int64_t kbytes = prefetch_bytes / 1024 / (partitions > 0 ? partitions : 1);
    if (kbytes < KBYTES_MIN) {
        return KBYTES_MIN;
    }
    return kbytes > KBYTES_MAX ? KBYTES_MAX : kbytes;
}
