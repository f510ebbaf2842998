/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topics of the embedded broker: names, stored entries, ledgers, partitions, schemas, and the
 * ends that a topic can have. An entry is kept as the bytes that came, checksum included. A
 * ledger begins with each unload, so that nobody can rely on what ids look like.
 */
#include <ctype.h>

#include "tests/support/pulsar/embedded_state.h"

/* -- Names ----------------------------------------------------------------------------------------- */

static bool
is_fine_local(const char *local)
{
    return local[0] != '\0' && strchr(local, '/') == NULL &&
           strspn(local, " \t") != strlen(local);
}

bool
embedded_canonical(struct lw_bytes bytes, char *out, size_t size)
{
    char name[EMBEDDED_NAME_BYTES];
    const char *domain = "persistent";
    if (bytes.size == 0 || bytes.size >= sizeof name) {
        return false;
    }
    embedded_text(name, sizeof name, bytes);
    char *rest = strstr(name, "://");
    if (rest != NULL) {
        *rest = '\0';
        domain = name;
        rest += 3;
        if (strcmp(domain, "persistent") != 0 && strcmp(domain, "non-persistent") != 0) {
            return false;
        }
    } else {
        rest = name;
    }
    char *slash = strchr(rest, '/');
    if (slash == NULL) {
        return domain != name && is_fine_local(rest) &&
               (size_t)snprintf(out, size, "persistent://public/default/%s", rest) < size;
    }
    char *second = strchr(slash + 1, '/');
    if (second == NULL || slash == rest || second == slash + 1 || !is_fine_local(second + 1)) {
        return false;
    }
    return memchr(rest, ' ', (size_t)(second - rest)) == NULL &&
           (size_t)snprintf(out, size, "%s://%s", domain, rest) < size;
}

size_t
embedded_base(const char *name, int32_t *ret_partition)
{
    static const char mark[] = "-partition-";
    const char *found = NULL;
    for (const char *at = strstr(name, mark); at != NULL; at = strstr(at + 1, mark)) {
        found = at;
    }
    int64_t number = -1;
    if (found == NULL || !isdigit((unsigned char)found[sizeof mark - 1]) ||
        !lw_text_to_int(found + sizeof mark - 1, &number) || number > INT32_MAX) {
        *ret_partition = -1;
        return strlen(name);
    }
    *ret_partition = (int32_t)number;
    return (size_t)(found - name);
}

static void
canonical_or_die(const char *topic, char *out)
{
    if (!embedded_canonical(embedded_bytes(topic), out, EMBEDDED_NAME_BYTES)) {
        fprintf(stderr, "embedded broker: no topic name: %s\n", topic);
        abort();
    }
}

struct embedded_topic *
embedded_topic_find(const struct embedded *broker, const char *name)
{
    char canonical[EMBEDDED_NAME_BYTES];
    canonical_or_die(name, canonical);
    for (struct lw_list *node = broker->topics.next; node != &broker->topics;
         node = node->next) {
        struct embedded_topic *topic = LW_CONTAINER(node, struct embedded_topic, link);
        if (strcmp(topic->name, canonical) == 0) {
            return topic;
        }
    }
    return NULL;
}

struct embedded_topic *
embedded_topic_get(struct embedded *broker, const char *name)
{
    struct embedded_topic *topic = embedded_topic_find(broker, name);
    if (topic != NULL) {
        return topic;
    }
    topic = embedded_new(sizeof *topic);
    topic->broker = broker;
    canonical_or_die(name, topic->name);
    (void)embedded_base(topic->name, &topic->partition);
    topic->is_persistent = strncmp(topic->name, "persistent:", 11) == 0;
    topic->schema_type = -1;
    lw_list_init(&topic->subscriptions);
    lw_list_init(&topic->producers);
    lw_list_init(&topic->dedup);
    lw_list_push(&broker->topics, &topic->link);
    embedded_ledger_start(topic);
    embedded_tell_watchers(broker, topic->name, true);
    return topic;
}

bool
embedded_has_topic(const struct embedded *broker, const char *topic)
{
    return embedded_topic_find(broker, topic) != NULL;
}

void
embedded_create_topic(struct embedded *broker, const char *topic)
{
    (void)embedded_topic_get(broker, topic);
}

void
embedded_set_owner(struct embedded *broker, const char *topic, int member)
{
    embedded_topic_get(broker, topic)->owner = member;
}

void
embedded_set_redirect_loop(struct embedded *broker, const char *topic, bool is_on)
{
    embedded_topic_get(broker, topic)->is_redirect_loop = is_on;
}

/* -- Ids ------------------------------------------------------------------------------------------- */

void
embedded_ledger_start(struct embedded_topic *topic)
{
    topic->ledgers = embedded_bigger(topic->ledgers, topic->ledger_count + 1,
                                     sizeof *topic->ledgers);
    topic->ledgers[topic->ledger_count++] = (struct embedded_ledger){
        topic->broker->next_ledger, topic->count
    };
    topic->broker->next_ledger += 3;
}

void
embedded_id_of(const struct embedded_topic *topic, uint64_t number, uint64_t *ret_ledger,
               uint64_t *ret_entry)
{
    uint32_t i = topic->ledger_count - 1;
    while (i > 0 && topic->ledgers[i].first > number) {
        i--;
    }
    *ret_ledger = topic->ledgers[i].id;
    *ret_entry = number - topic->ledgers[i].first;
}

static uint64_t
ledger_end(const struct embedded_topic *topic, uint32_t i)
{
    return i + 1 < topic->ledger_count ? topic->ledgers[i + 1].first : topic->count;
}

bool
embedded_number_of(const struct embedded_topic *topic, uint64_t ledger, uint64_t entry,
                   uint64_t *ret_number)
{
    for (uint32_t i = topic->ledger_count; i-- > 0;) {
        uint64_t first = topic->ledgers[i].first;
        if (topic->ledgers[i].id == ledger && entry < ledger_end(topic, i) - first) {
            *ret_number = first + entry;
            return true;
        }
    }
    return false;
}

uint64_t
embedded_position_of(const struct embedded_topic *topic, uint64_t ledger, uint64_t entry)
{
    if ((int64_t)ledger < 0) {
        return 0;
    }
    for (uint32_t i = 0; i < topic->ledger_count; i++) {
        uint64_t first = topic->ledgers[i].first;
        uint64_t end = ledger_end(topic, i);
        if (topic->ledgers[i].id > ledger) {
            return first;
        }
        if (topic->ledgers[i].id == ledger) {
            return (int64_t)entry < 0 ? first : entry < end - first ? first + entry : end;
        }
    }
    return topic->count;
}

/* -- Entries --------------------------------------------------------------------------------------- */

const struct embedded_entry *
embedded_entry_at(const struct embedded_topic *topic, uint64_t number)
{
    return &topic->entries[topic->stored == topic->count ? number : number % topic->stored];
}

void
embedded_entry_read(struct embedded_entry *entry, const struct lw_pulsar_send *send)
{
    struct lw_pulsar_payload payload;
    struct lw_pulsar_metadata metadata;
    entry->messages = send != NULL && send->num_messages > 0 ? send->num_messages : 1;
    struct lw_bytes rest = { entry->rest, entry->rest_size };
    enum lw_pulsar_fault fault = lw_pulsar_payload_open(rest, &payload);
    if ((fault != LW_PULSAR_OK && fault != LW_PULSAR_CHECKSUM_WRONG) ||
        lw_pulsar_metadata_decode(payload.metadata, &metadata) != LW_PULSAR_OK) {
        return;
    }
    entry->is_readable = true;
    entry->publish_ms = (int64_t)metadata.publish_time;
    if ((metadata.has & LW_PULSAR_METADATA_HAS_DELIVER_AT) != 0) {
        entry->deliver_at_ms = metadata.deliver_at_time;
    }
    if (lw_pulsar_metadata_is_batch(&metadata)) {
        entry->messages = metadata.num_messages_in_batch;
    }
    entry->is_chunk = lw_pulsar_metadata_is_chunk(&metadata);
    if (entry->is_chunk) {
        entry->messages = 1;
        embedded_text(entry->uuid, sizeof entry->uuid, metadata.uuid);
    }
    entry->hash = embedded_key_hash(&metadata);
}

uint64_t
embedded_append(struct embedded_topic *topic, struct lw_bytes rest,
                const struct lw_pulsar_send *send)
{
    lw_assert(topic->stored == topic->count); /* a feed takes nothing more */
    if (topic->count == topic->capacity) {
        topic->capacity = topic->capacity == 0 ? 64 : 2 * topic->capacity;
        topic->entries = embedded_bigger(topic->entries, topic->capacity,
                                         sizeof *topic->entries);
    }
    struct embedded_entry *entry = &topic->entries[topic->count];
    *entry = (struct embedded_entry){ .rest_size = rest.size };
    entry->rest = embedded_copy(rest.data, rest.size);
    embedded_entry_read(entry, send);
    topic->stored++;
    topic->messages += (uint64_t)entry->messages;
    topic->broker->counts.messages_stored += (uint64_t)entry->messages;
    for (struct lw_list *node = topic->subscriptions.next; node != &topic->subscriptions;
         node = node->next) {
        embedded_want_dispatch(LW_CONTAINER(node, struct embedded_subscription, link));
    }
    return topic->count++;
}

uint64_t
embedded_entry_count(const struct embedded *broker, const char *name)
{
    const struct embedded_topic *topic = embedded_topic_find(broker, name);
    return topic == NULL ? 0 : topic->count;
}

uint64_t
embedded_message_count(const struct embedded *broker, const char *name)
{
    const struct embedded_topic *topic = embedded_topic_find(broker, name);
    return topic == NULL ? 0 : topic->messages;
}

bool
embedded_entry(const struct embedded *broker, const char *name, uint64_t number,
               struct lw_pulsar_metadata *ret_metadata, struct lw_bytes *ret_body)
{
    const struct embedded_topic *topic = embedded_topic_find(broker, name);
    struct lw_pulsar_payload payload;
    if (topic == NULL || number >= topic->count) {
        return false;
    }
    const struct embedded_entry *entry = embedded_entry_at(topic, number);
    struct lw_bytes rest = { entry->rest, entry->rest_size };
    if (lw_pulsar_payload_open(rest, &payload) != LW_PULSAR_OK ||
        lw_pulsar_metadata_decode(payload.metadata, ret_metadata) != LW_PULSAR_OK) {
        return false;
    }
    *ret_body = payload.body;
    return true;
}

/* -- Partitions and schemas ------------------------------------------------------------------------- */

struct embedded_partitions *
embedded_partitions_find(const struct embedded *broker, struct lw_bytes name)
{
    for (struct lw_list *node = broker->partitioned.next; node != &broker->partitioned;
         node = node->next) {
        struct embedded_partitions *it = LW_CONTAINER(node, struct embedded_partitions, link);
        if (lw_text_is_equal(name, it->name)) {
            return it;
        }
    }
    return NULL;
}

void
embedded_partitions_free(struct embedded *broker)
{
    struct lw_list *node;
    while ((node = lw_list_pop(&broker->partitioned)) != NULL) {
        free(LW_CONTAINER(node, struct embedded_partitions, link));
    }
}

static void
copy_subscriptions(struct embedded_topic *from, struct embedded_topic *to)
{
    for (struct lw_list *node = from->subscriptions.next; node != &from->subscriptions;
         node = node->next) {
        const struct embedded_subscription *it = LW_CONTAINER(
            node, struct embedded_subscription, link);
        struct lw_bytes name = embedded_bytes(it->name);
        if (it->is_durable && embedded_subscription_find(to, name) == NULL) {
            (void)embedded_subscription_new(to, name, it->type);
        }
    }
}

void
embedded_set_partitions(struct embedded *broker, const char *topic, uint32_t count)
{
    char name[EMBEDDED_NAME_BYTES];
    char partition[EMBEDDED_NAME_BYTES + 32];
    canonical_or_die(topic, name);
    struct embedded_partitions *it = embedded_partitions_find(broker, embedded_bytes(name));
    if (it == NULL) {
        it = embedded_new(sizeof *it);
        snprintf(it->name, sizeof it->name, "%s", name);
        lw_list_push(&broker->partitioned, &it->link);
    }
    lw_assert(count >= it->count);
    snprintf(partition, sizeof partition, "%s-partition-0", name);
    struct embedded_topic *first = embedded_topic_get(broker, partition);
    for (uint32_t i = it->count; i < count; i++) {
        snprintf(partition, sizeof partition, "%s-partition-%u", name, i);
        copy_subscriptions(first, embedded_topic_get(broker, partition));
    }
    it->count = count;
}

void
embedded_create_subscription(struct embedded *broker, const char *topic, const char *name,
                             int32_t type, bool is_latest)
{
    struct embedded_topic *it = embedded_topic_get(broker, topic);
    struct embedded_subscription *subscription = embedded_subscription_new(
        it, embedded_bytes(name), type);
    embedded_cells_reset(subscription, is_latest ? it->count : 0);
}

void
embedded_set_schema(struct embedded *broker, const char *topic, int32_t type,
                    const char *definition)
{
    struct embedded_topic *it = embedded_topic_get(broker, topic);
    free(it->schema);
    it->schema_type = type;
    it->schema = embedded_copy(definition, strlen(definition) + 1);
}

/* -- Ends ------------------------------------------------------------------------------------------- */

static void
close_users(struct embedded_topic *topic, const char *url, const char *tls_url)
{
    embedded_producers_close(topic, url, tls_url);
    for (struct lw_list *node = topic->subscriptions.next; node != &topic->subscriptions;
         node = node->next) {
        embedded_consumers_close(LW_CONTAINER(node, struct embedded_subscription, link), url,
                                 tls_url);
    }
}

void
embedded_topic_free(struct embedded_topic *topic)
{
    struct lw_list *node;
    lw_list_remove(&topic->link);
    while ((node = lw_list_first(&topic->subscriptions)) != NULL) {
        embedded_subscription_free(LW_CONTAINER(node, struct embedded_subscription, link));
    }
    while ((node = lw_list_pop(&topic->dedup)) != NULL) {
        free(LW_CONTAINER(node, struct embedded_dedup, link));
    }
    for (uint64_t i = 0; i < topic->stored; i++) {
        free(topic->entries[i].rest);
    }
    free(topic->entries);
    free(topic->ledgers);
    free(topic->schema);
    free(topic);
}

void
embedded_terminate(struct embedded *broker, const char *name)
{
    struct embedded_topic *topic = embedded_topic_get(broker, name);
    topic->is_terminated = true;
    embedded_producers_close(topic, NULL, NULL);
    for (struct lw_list *node = topic->subscriptions.next; node != &topic->subscriptions;
         node = node->next) {
        embedded_want_dispatch(LW_CONTAINER(node, struct embedded_subscription, link));
    }
}

void
embedded_unload(struct embedded *broker, const char *name, int new_owner, bool is_assigned)
{
    struct embedded_topic *topic = embedded_topic_get(broker, name);
    const struct embedded_member *owner = broker->members[new_owner];
    topic->owner = new_owner;
    topic->is_looked_up = is_assigned;
    close_users(topic, is_assigned ? owner->url : NULL,
                is_assigned && broker->tls != NULL ? owner->tls_url : NULL);
    embedded_ledger_start(topic);
}

void
embedded_delete_topic(struct embedded *broker, const char *name)
{
    struct embedded_topic *topic = embedded_topic_find(broker, name);
    if (topic != NULL) {
        close_users(topic, NULL, NULL);
        embedded_tell_watchers(broker, topic->name, false);
        embedded_topic_free(topic);
    }
}

void
embedded_close_producers(struct embedded *broker, const char *topic)
{
    embedded_producers_close(embedded_topic_get(broker, topic), NULL, NULL);
}

void
embedded_close_consumers(struct embedded *broker, const char *name)
{
    struct embedded_topic *topic = embedded_topic_get(broker, name);
    for (struct lw_list *node = topic->subscriptions.next; node != &topic->subscriptions;
         node = node->next) {
        embedded_consumers_close(LW_CONTAINER(node, struct embedded_subscription, link), NULL,
                                 NULL);
    }
}

void
embedded_restart(struct embedded *broker)
{
    embedded_drop_all(broker);
    for (struct lw_list *node = broker->topics.next; node != &broker->topics;
         node = node->next) {
        struct embedded_topic *topic = LW_CONTAINER(node, struct embedded_topic, link);
        topic->is_looked_up = false;
        embedded_ledger_start(topic);
    }
}
