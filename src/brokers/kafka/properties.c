/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What users may write in `properties`. The client itself judges names and values (each is tried
 * on a configuration that is thrown away); this file knows only what is ours and why. The list of
 * names comes from the client at run time, so that it is that of the version in use.
 */
#include "brokers/kafka/properties.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

struct owned {
    const char *name;
    const char *allowed; /* the one value that changes nothing; NULL: none */
    const char *reason;
};

static const struct owned owned_properties[] = {
    { "bootstrap.servers", NULL, "the addresses are those of the broker's url" },
    { "metadata.broker.list", NULL, "the addresses are those of the broker's url" },
    { "group.id", NULL, "the group is the subscription's `group`" },
    { "enable.auto.commit", "false",
      "messages are committed when their effects are confirmed, never by a clock" },
    { "auto.commit.enable", "false",
      "messages are committed when their effects are confirmed, never by a clock" },
    { "auto.commit.interval.ms", NULL,
      "messages are committed when their effects are confirmed, never by a clock" },
    { "enable.auto.offset.store", "false",
      "positions are kept by the ledger, which knows what is unfinished" },
    { "offset.store.method", NULL, "positions are kept by the ledger" },
    { "enable.partition.eof", "true",
      "ends of partitions close the ledger behind control records" },
    { "enable.idempotence", "true",
      "replies and dead letters are sent by an idempotent producer, so that none is doubled" },
    { "acks", "all", "a message settles only after all replicas in sync have its effects" },
    { "request.required.acks", "all",
      "a message settles only after all replicas in sync have its effects" },
    { "enable.gapless.guarantee", "false",
      "one refused message would stop the producer for good" },
    { "transactional.id", NULL, "transactions are not offered: it is at least once" },
    { "transaction.timeout.ms", NULL, "transactions are not offered: it is at least once" },
    { "delivery.report.only.error", "false",
      "every receipt is needed before a message settles" },
    { "log.queue", "true", "the client's log lines go through ours" },
    { "group.protocol", "classic",
      "the consumer protocol of KIP-848 is not in this version; leave it at classic" },
};

static const struct owned *
find_owned(const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof owned_properties / sizeof *owned_properties; i++) {
        const struct owned *owned = &owned_properties[i];
        if (strcmp(owned->name, name) == 0) {
            bool is_harmless = owned->allowed && value && strcmp(owned->allowed, value) == 0;
            return is_harmless ? NULL : owned;
        }
    }
    return NULL;
}

/* Pointers cannot be written in a file. */
static bool
is_pointer(const char *name)
{
    size_t length = strlen(name);
    return (length > 3 && strcmp(name + length - 3, "_cb") == 0) ||
           strcmp(name, "opaque") == 0 || strcmp(name, "default_topic_conf") == 0 ||
           strcmp(name, "interceptors") == 0 || strcmp(name, "ssl_engine_callback_data") == 0;
}

bool
lw_kafka_property_is_token(const char *name)
{
    static const char *const names[] = {
        "sasl.oauthbearer.method",        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret", "sasl.oauthbearer.scope",
        "sasl.oauthbearer.extensions",    "sasl.oauthbearer.token.endpoint.url",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Values with a lower bound of ours; NULL when fine. */
static const char *
check_bounds(const char *name, const char *value)
{
    int64_t number = 0;
    if (!lw_text_to_int(value, &number)) {
        return NULL; /* the client says it better */
    }
    if (strcmp(name, "statistics.interval.ms") == 0 && number != 0 && number < 60000) {
        return "must be at least 60000 (or 0): statistics wake the process up";
    }
    if (strcmp(name, "queued.max.messages.kbytes") == 0 && number < 2000) {
        return "must be at least 2000: with less this client pauses for up to a second "
               "whenever "
               "a partition was full; `prefetch_bytes` bounds the memory of a whole group";
    }
    if (strcmp(name, "max.poll.interval.ms") == 0 && number < 3000) {
        return "must be at least 3000: a rebalance must be answered within it";
    }
    return NULL;
}

static const char *
check_by_client(const char *name, const char *value)
{
    static char reason[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, name, value, reason, sizeof reason);
    rd_kafka_conf_destroy(conf);
    return result == RD_KAFKA_CONF_OK ? NULL : reason;
}

static const char *
check_prefetch(const char *value)
{
    int64_t bytes = 0;
    return lw_text_to_int(value, &bytes) && bytes > 0 ? NULL : "must be a number of bytes";
}

const char *
lw_kafka_property_owned(const char *name, const char *value)
{
    const struct owned *owned = find_owned(name, value);
    if (owned) {
        return owned->reason;
    }
    return is_pointer(name) ? "it is a pointer for programs, which no file could hold" : NULL;
}

const char *
lw_kafka_property_check(const char *name, const char *value)
{
    if (strcmp(name, "prefetch_bytes") == 0) {
        return check_prefetch(value);
    }
    const char *owned = lw_kafka_property_owned(name, value);
    if (owned) {
        return owned;
    }
    if (lw_kafka_property_is_token(name)) {
        return NULL;
    }
    if (strcmp(name, "auto.offset.reset") == 0 && strcmp(value, "none") == 0) {
        return NULL;
    }
    const char *reason = check_bounds(name, value);
    return reason ? reason : check_by_client(name, value);
}

/* -- The client's own list --------------------------------------------------------------------- */

struct row {
    char *name;
    enum lw_kafka_scope scope;
};

struct lw_kafka_property_table {
    struct row *rows;
    size_t count;
};

/* A line of the client's table is "name | C | ..."; everything else has no such shape. */
static bool
parse_row(const char *line, struct row *row)
{
    char scope = ' ';
    int length = 0;
    if (sscanf(line, "%*[a-z0-9._]%n", &length) != 0 || length == 0) {
        return false;
    }
    if (sscanf(line + length, " | %c", &scope) != 1 || !strchr("CP*", scope)) {
        return false;
    }
    row->name = lw_copy_text_n(line, (size_t)length);
    row->scope = scope == 'C'   ? LW_KAFKA_SCOPE_CONSUMER
                 : scope == 'P' ? LW_KAFKA_SCOPE_PRODUCER
                                : LW_KAFKA_SCOPE_BOTH;
    return row->name != NULL;
}

static void
parse_table(struct lw_kafka_property_table *table, char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct row row;
        if (!parse_row(line, &row)) {
            continue;
        }
        struct row *rows = lw_resize_array(table->rows, table->count + 1, sizeof *rows);
        if (!rows) {
            lw_free(row.name);
            return;
        }
        table->rows = rows;
        table->rows[table->count++] = row;
    }
}

struct lw_kafka_property_table *
lw_kafka_property_table_create(void)
{
    struct lw_kafka_property_table *table = lw_alloc(sizeof *table);
    char *text = NULL;
    size_t size = 0;
    FILE *file = table ? open_memstream(&text, &size) : NULL;
    if (!file) {
        lw_free(table);
        return NULL;
    }
    rd_kafka_conf_properties_show(file);
    if (fclose(file) == 0) {
        parse_table(table, text);
    }
    free(text); /* banned-ok: open_memstream allocated it */
    return table;
}

void
lw_kafka_property_table_destroy(struct lw_kafka_property_table *table)
{
    if (!table) {
        return;
    }
    for (size_t i = 0; i < table->count; i++) {
        lw_free(table->rows[i].name);
    }
    lw_free(table->rows);
    lw_free(table);
}

enum lw_kafka_scope
lw_kafka_property_scope(const struct lw_kafka_property_table *table, const char *name)
{
    enum lw_kafka_scope scope = LW_KAFKA_SCOPE_NONE;
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->rows[i].name, name) == 0) {
            /* A name may be listed for consumers and, further down, for producers. */
            bool is_both = scope != LW_KAFKA_SCOPE_NONE && scope != table->rows[i].scope;
            scope = is_both ? LW_KAFKA_SCOPE_BOTH : table->rows[i].scope;
        }
    }
    return scope;
}

bool
lw_kafka_property_suggest(const char *name, char *out, size_t size)
{
    struct lw_kafka_property_table *table = lw_kafka_property_table_create();
    if (!table) {
        return false;
    }
    size_t best = strlen(name) / 3 > 2 ? strlen(name) / 3 : 2;
    bool is_found = false;
    for (size_t i = 0; i < table->count; i++) {
        size_t distance = lw_text_distance(name, table->rows[i].name);
        if (distance < best || (distance == best && !is_found)) {
            best = distance;
            is_found = true;
            lw_text_copy(out, size, table->rows[i].name);
        }
    }
    lw_kafka_property_table_destroy(table);
    return is_found;
}

void
lw_kafka_property_each(void (*fn)(const char *name, bool is_owned, void *user), void *user)
{
    struct lw_kafka_property_table *table = lw_kafka_property_table_create();
    for (size_t i = 0; table && i < table->count; i++) {
        const char *name = table->rows[i].name;
        fn(name, find_owned(name, NULL) || is_pointer(name), user);
    }
    lw_kafka_property_table_destroy(table);
}
