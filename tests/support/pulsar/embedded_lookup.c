/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client asks before it produces or consumes: partitions, who owns a topic, lists of
 * topics and watches on them, schemas. LOOKUP does not ask whether a topic exists, and it is what
 * makes its owner serve it: PRODUCER and SUBSCRIBE without one are refused.
 */
#include <regex.h>

#include "tests/support/pulsar/embedded_state.h"

static bool
is_warming_up(struct embedded *broker)
{
    return embedded_now_ms(broker) - broker->started_ms < broker->settings.warmup_ms;
}

/* -- Partitions ------------------------------------------------------------------------------------- */

/* Writes the error; 0: none. */
static int32_t
judge_name(struct embedded *broker, struct lw_bytes topic, char *name, const char **ret_text)
{
    if (!embedded_canonical(topic, name, EMBEDDED_NAME_BYTES)) {
        *ret_text = "Invalid topic name: it cannot be read";
        return LW_PULSAR_INVALID_TOPIC_NAME;
    }
    *ret_text = "Namespace not found";
    return is_warming_up(broker) ? LW_PULSAR_TOPIC_NOT_FOUND : 0;
}

void
embedded_on_partitions(struct embedded_session *session,
                       const struct lw_pulsar_partitioned_metadata *command)
{
    struct embedded *broker = session->broker;
    char name[EMBEDDED_NAME_BYTES];
    const char *text;
    int32_t partition = -1;
    int32_t error = judge_name(broker, command->topic, name, &text);
    struct lw_pulsar_command question = { .type = LW_PULSAR_PARTITIONED_METADATA };
    question.partitioned_metadata = *command;
    if (error != 0) {
        embedded_refuse(session, &question, error, text);
        return;
    }
    size_t base = embedded_base(name, &partition);
    const struct embedded_partitions *whole = embedded_partitions_find(
        broker, (struct lw_bytes){ name, base });
    bool exists = whole != NULL || embedded_topic_find(broker, name) != NULL;
    bool creates = command->metadata_auto_creation_enabled && broker->settings.creates_topics;
    bool is_beyond = partition >= 0 && whole != NULL && (uint32_t)partition >= whole->count;
    if ((!exists && !creates) || is_beyond) {
        embedded_refuse(session, &question, LW_PULSAR_TOPIC_NOT_FOUND, "");
        return;
    }
    struct lw_pulsar_command answer = lw_pulsar_command_of(
        LW_PULSAR_PARTITIONED_METADATA_RESPONSE);
    answer.partitioned_metadata_response.has = 1 << 1 | 1 << 3;
    answer.partitioned_metadata_response.request_id = command->request_id;
    answer.partitioned_metadata_response.response = LW_PULSAR_PARTITIONED_SUCCESS;
    answer.partitioned_metadata_response.partitions = partition < 0 && whole != NULL
                                                          ? whole->count
                                                          : 0;
    embedded_reply(session, &answer);
}

/* -- Owners ----------------------------------------------------------------------------------------- */

/* Lookups do not create a topic, but its owner is noted with it: one without anything is kept. */
static void
answer_lookup(struct embedded_session *session, const struct lw_pulsar_lookup *command,
              struct embedded_topic *topic)
{
    struct embedded *broker = session->broker;
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_LOOKUP_RESPONSE);
    struct lw_pulsar_lookup_response *it = &answer.lookup_response;
    int owner = topic == NULL ? 0 : topic->owner;
    bool is_proxied = session->is_via_proxy;
    bool is_here = is_proxied || owner == session->member;
    if (topic != NULL && topic->is_redirect_loop) {
        is_here = false;
        owner = session->member == 0 && broker->member_count > 1 ? 1 : 0;
    }
    if (topic != NULL && is_here) {
        topic->is_looked_up = true;
    }
    it->request_id = command->request_id;
    it->response = is_here ? LW_PULSAR_LOOKUP_CONNECT : LW_PULSAR_LOOKUP_REDIRECT;
    it->has = 1 << 3;
    it->authoritative = true;
    it->broker_service_url = embedded_bytes(broker->members[owner]->url);
    if (broker->tls != NULL) {
        it->broker_service_url_tls = embedded_bytes(broker->members[owner]->tls_url);
    }
    it->proxy_through_service_url = is_proxied || broker->settings.proxy_flag;
    embedded_reply(session, &answer);
}

void
embedded_on_lookup(struct embedded_session *session, const struct lw_pulsar_lookup *command)
{
    char name[EMBEDDED_NAME_BYTES];
    const char *text;
    int32_t error = judge_name(session->broker, command->topic, name, &text);
    if (error != 0) {
        struct lw_pulsar_command question = { .type = LW_PULSAR_LOOKUP };
        question.lookup = *command;
        embedded_refuse(session, &question, error, text);
        return;
    }
    answer_lookup(session, command, embedded_topic_find(session->broker, name));
}

/* -- Admission of producers and consumers --------------------------------------------------------- */

static void
tell_migrated(struct embedded_session *session, const struct lw_pulsar_command *command,
              const char *url)
{
    struct lw_pulsar_command told = lw_pulsar_command_of(LW_PULSAR_TOPIC_MIGRATED);
    bool is_producer = command->type == LW_PULSAR_PRODUCER;
    uint64_t id = is_producer ? command->producer.producer_id : command->subscribe.consumer_id;
    told.topic_migrated.resource_id = id;
    told.topic_migrated.resource_type = is_producer ? LW_PULSAR_RESOURCE_PRODUCER
                                                    : LW_PULSAR_RESOURCE_CONSUMER;
    told.topic_migrated.broker_service_url = embedded_bytes(url);
    embedded_reply(session, &told);
    struct lw_pulsar_command closed = lw_pulsar_command_of(
        is_producer ? LW_PULSAR_CLOSE_PRODUCER : LW_PULSAR_CLOSE_CONSUMER);
    closed.close_producer.id = id;
    closed.close_producer.request_id = LW_PULSAR_NO_REQUEST;
    embedded_reply(session, &closed);
}

/* What speaks against the name; 0: nothing. */
static int32_t
judge_topic(struct embedded *broker, const char *name, const char **ret_text)
{
    int32_t partition;
    size_t base = embedded_base(name, &partition);
    const struct embedded_partitions *whole = embedded_partitions_find(
        broker, (struct lw_bytes){ name, base });
    if (partition < 0 && whole != NULL) {
        *ret_text = "Found partitioned metadata for non-partitioned topic";
        return LW_PULSAR_NOT_ALLOWED;
    }
    if (partition >= 0 && whole != NULL && (uint32_t)partition >= whole->count) {
        *ret_text = "Topic not found";
        return LW_PULSAR_TOPIC_NOT_FOUND;
    }
    if (partition >= 0 && whole == NULL && embedded_topic_find(broker, name) == NULL) {
        *ret_text = "Partition metadata not found for the partitioned topic";
        return LW_PULSAR_NOT_ALLOWED;
    }
    return 0;
}

static bool
is_served_here(const struct embedded_session *session, const struct embedded_topic *topic)
{
    const struct embedded *broker = session->broker;
    int owner = topic == NULL ? 0 : topic->owner;
    bool is_looked_up = topic == NULL || topic->is_looked_up || !broker->settings.needs_lookup;
    return !session->is_via_proxy && owner == session->member && is_looked_up;
}

struct embedded_topic *
embedded_admit(struct embedded_session *session, const struct lw_pulsar_command *command,
               struct lw_bytes topic_name, uint64_t request_id, bool creates)
{
    struct embedded *broker = session->broker;
    char name[EMBEDDED_NAME_BYTES];
    const char *text;
    int32_t error = judge_name(broker, topic_name, name, &text);
    if (error == 0) {
        error = judge_topic(broker, name, &text);
    } else if (error == LW_PULSAR_TOPIC_NOT_FOUND) {
        error = LW_PULSAR_SERVICE_NOT_READY;
    }
    struct embedded_topic *topic = error == 0 ? embedded_topic_find(broker, name) : NULL;
    if (error == 0 && !is_served_here(session, topic)) {
        error = LW_PULSAR_SERVICE_NOT_READY;
        text = "Namespace bundle not served by this instance. Please redo the lookup.";
    } else if (error == 0 && topic == NULL && !(creates && broker->settings.creates_topics)) {
        error = LW_PULSAR_TOPIC_NOT_FOUND;
        text = "Topic does not exist";
    }
    if (error != 0) {
        embedded_fail(session, request_id, error, text);
        return NULL;
    }
    topic = embedded_topic_get(broker, name);
    topic->is_looked_up = true;
    if (topic->migrated_to[0] != '\0') {
        tell_migrated(session, command, topic->migrated_to);
        return NULL;
    }
    return topic;
}

/* -- Lists of topics ---------------------------------------------------------------------------------- */

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool
is_match(const char *pattern, const char *name)
{
    regex_t regex;
    char anchored[EMBEDDED_NAME_BYTES + 8];
    const char *plain = strstr(pattern, "://");
    const char *local = strstr(name, "://");
    snprintf(anchored, sizeof anchored, "^(%s)$", plain == NULL ? pattern : plain + 3);
    if (pattern[0] == '\0' || regcomp(&regex, anchored, REG_EXTENDED | REG_NOSUB) != 0) {
        return true;
    }
    bool fits = regexec(&regex, local + 3, 0, NULL, 0) == 0;
    regfree(&regex);
    return fits;
}

static bool
is_listed(const struct embedded_topic *topic, const char *space, const char *pattern,
          int32_t mode)
{
    const char *rest = strstr(topic->name, "://") + 3;
    size_t size = strlen(space);
    bool is_kind = mode == LW_PULSAR_TOPICS_ALL ||
                   topic->is_persistent == (mode == LW_PULSAR_TOPICS_PERSISTENT);
    return is_kind && strncmp(rest, space, size) == 0 && rest[size] == '/' &&
           strncmp(rest + size + 1, "__", 2) != 0 && is_match(pattern, topic->name);
}

struct name_list {
    const char **names;
    size_t count;
    struct lw_proto_writer writer; /* of the repeated field */
    char hash[16];
};

static void
list_topics(const struct embedded *broker, const char *space, const char *pattern, int32_t mode,
            struct name_list *ret_list)
{
    size_t bytes = 0;
    struct name_list list = { .names = NULL };
    for (struct lw_list *node = broker->topics.next; node != &broker->topics;
         node = node->next) {
        const struct embedded_topic *topic = LW_CONTAINER_CONST(node, struct embedded_topic,
                                                                link);
        if (is_listed(topic, space, pattern, mode)) {
            list.names = embedded_bigger(list.names, list.count + 1, sizeof *list.names);
            list.names[list.count++] = topic->name;
            bytes += strlen(topic->name) + 16;
        }
    }
    if (list.count > 1) {
        qsort(list.names, list.count, sizeof *list.names, by_name);
    }
    list.writer = lw_proto_writer_of(embedded_new(bytes), bytes);
    uint32_t crc = 0;
    for (size_t i = 0; i < list.count; i++) {
        crc = lw_crc32c(crc, ",", i > 0 ? 1 : 0);
        crc = lw_crc32c(crc, list.names[i], strlen(list.names[i]));
        lw_pulsar_list_put_bytes(&list.writer, embedded_bytes(list.names[i]));
    }
    snprintf(list.hash, sizeof list.hash, "%02x%02x%02x%02x", crc & 255, crc >> 8 & 255,
             crc >> 16 & 255, crc >> 24);
    *ret_list = list;
}

static void
free_list(struct name_list *list)
{
    free(list->names);
    free(list->writer.data);
}

void
embedded_on_get_topics(struct embedded_session *session,
                       const struct lw_pulsar_get_topics *command)
{
    char space[EMBEDDED_NAME_BYTES];
    char pattern[EMBEDDED_NAME_BYTES];
    struct name_list list;
    embedded_text(space, sizeof space, command->namespace_name);
    embedded_text(pattern, sizeof pattern, command->topics_pattern);
    if (strchr(space, '/') == NULL) {
        embedded_protest(session, "a malformed namespace");
        return;
    }
    list_topics(session->broker, space, pattern, command->mode, &list);
    struct lw_pulsar_command answer = lw_pulsar_command_of(
        LW_PULSAR_GET_TOPICS_OF_NAMESPACE_RESPONSE);
    struct lw_pulsar_get_topics_response *it = &answer.get_topics_response;
    it->request_id = command->request_id;
    it->changed = !lw_text_is_equal(command->topics_hash, list.hash);
    it->has = 1 << 5;
    it->filtered = pattern[0] != '\0';
    it->topics_hash = embedded_bytes(list.hash);
    if (it->changed) {
        it->topics = lw_pulsar_list_of(&list.writer);
    }
    embedded_reply(session, &answer);
    free_list(&list);
}

void
embedded_on_watch(struct embedded_session *session,
                  const struct lw_pulsar_watch_topic_list *command)
{
    struct name_list list;
    if (!session->broker->settings.has_topic_watchers) {
        embedded_fail(session, command->request_id, LW_PULSAR_NOT_ALLOWED, "no watchers");
        return;
    }
    struct embedded_watcher *watcher = embedded_new(sizeof *watcher);
    watcher->session = session;
    watcher->id = command->watcher_id;
    embedded_text(watcher->namespace_name, sizeof watcher->namespace_name,
                  command->namespace_name);
    embedded_text(watcher->pattern, sizeof watcher->pattern, command->topics_pattern);
    lw_list_push(&session->watchers, &watcher->link);
    list_topics(session->broker, watcher->namespace_name, watcher->pattern,
                LW_PULSAR_TOPICS_PERSISTENT, &list);
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_WATCH_TOPIC_LIST_SUCCESS);
    answer.watch_topic_list_success.request_id = command->request_id;
    answer.watch_topic_list_success.watcher_id = command->watcher_id;
    answer.watch_topic_list_success.topics = lw_pulsar_list_of(&list.writer);
    answer.watch_topic_list_success.topics_hash = embedded_bytes(list.hash);
    embedded_reply(session, &answer);
    free_list(&list);
}

void
embedded_on_watch_close(struct embedded_session *session,
                        const struct lw_pulsar_watch_topic_list_close *command)
{
    struct lw_list *next;
    for (struct lw_list *node = session->watchers.next; node != &session->watchers;
         node = next) {
        next = node->next;
        struct embedded_watcher *watcher = LW_CONTAINER(node, struct embedded_watcher, link);
        if (watcher->id == command->watcher_id) {
            lw_list_remove(&watcher->link);
            free(watcher);
        }
    }
    embedded_succeed(session, command->request_id);
}

static void
tell_watcher(struct embedded_watcher *watcher, const struct embedded_topic *topic, bool is_new)
{
    if (!is_listed(topic, watcher->namespace_name, watcher->pattern,
                   LW_PULSAR_TOPICS_PERSISTENT)) {
        return;
    }
    uint8_t space[EMBEDDED_NAME_BYTES + 16];
    struct lw_proto_writer writer = lw_proto_writer_of(space, sizeof space);
    struct name_list list;
    lw_pulsar_list_put_bytes(&writer, embedded_bytes(topic->name));
    list_topics(topic->broker, watcher->namespace_name, watcher->pattern,
                LW_PULSAR_TOPICS_PERSISTENT, &list);
    struct lw_pulsar_command update = lw_pulsar_command_of(LW_PULSAR_WATCH_TOPIC_UPDATE);
    update.watch_topic_update.watcher_id = watcher->id;
    update.watch_topic_update.topics_hash = embedded_bytes(list.hash);
    if (is_new) {
        update.watch_topic_update.new_topics = lw_pulsar_list_of(&writer);
    } else {
        update.watch_topic_update.deleted_topics = lw_pulsar_list_of(&writer);
    }
    embedded_reply(watcher->session, &update);
    free_list(&list);
}

void
embedded_tell_watchers(struct embedded *broker, const char *name, bool is_new)
{
    const struct embedded_topic *topic = embedded_topic_find(broker, name);
    for (struct lw_list *node = broker->sessions.next; node != &broker->sessions;
         node = node->next) {
        struct embedded_session *session = LW_CONTAINER(node, struct embedded_session, link);
        for (struct lw_list *at = session->watchers.next; at != &session->watchers;
             at = at->next) {
            tell_watcher(LW_CONTAINER(at, struct embedded_watcher, link), topic, is_new);
        }
    }
}

/* -- Schemas ------------------------------------------------------------------------------------------- */

static const char schema_version[8];

void
embedded_on_get_schema(struct embedded_session *session,
                       const struct lw_pulsar_get_schema *command)
{
    char name[EMBEDDED_NAME_BYTES];
    struct embedded_topic *topic = NULL;
    if (embedded_canonical(command->topic, name, sizeof name)) {
        topic = embedded_topic_find(session->broker, name);
    }
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_GET_SCHEMA_RESPONSE);
    struct lw_pulsar_get_schema_response *it = &answer.get_schema_response;
    it->request_id = command->request_id;
    if (topic == NULL || topic->schema == NULL) {
        it->has = LW_PULSAR_GET_SCHEMA_RESPONSE_HAS_ERROR;
        it->error_code = LW_PULSAR_TOPIC_NOT_FOUND;
        it->error_message = embedded_bytes("Topic not found or no schema");
    } else {
        it->has = LW_PULSAR_GET_SCHEMA_RESPONSE_HAS_SCHEMA;
        it->schema.name = embedded_bytes(strstr(topic->name, "://") + 3);
        it->schema.type = topic->schema_type;
        it->schema.schema_data = embedded_bytes(topic->schema);
        it->schema_version = (struct lw_bytes){ schema_version, sizeof schema_version };
    }
    embedded_reply(session, &answer);
}

void
embedded_on_create_schema(struct embedded_session *session,
                          const struct lw_pulsar_get_or_create_schema *command)
{
    char name[EMBEDDED_NAME_BYTES];
    struct embedded_topic *topic = NULL;
    if (embedded_canonical(command->topic, name, sizeof name)) {
        topic = embedded_topic_find(session->broker, name);
    }
    struct lw_pulsar_command answer = lw_pulsar_command_of(
        LW_PULSAR_GET_OR_CREATE_SCHEMA_RESPONSE);
    struct lw_pulsar_get_or_create_schema_response *it = &answer.get_or_create_schema_response;
    it->request_id = command->request_id;
    if (topic == NULL) {
        it->has = LW_PULSAR_GET_OR_CREATE_SCHEMA_RESPONSE_HAS_ERROR;
        it->error_code = LW_PULSAR_TOPIC_NOT_FOUND;
        it->error_message = embedded_bytes("Topic not found");
    } else {
        if (topic->schema == NULL) {
            topic->schema_type = command->schema.type;
            topic->schema = embedded_new(command->schema.schema_data.size + 1);
            embedded_text(topic->schema, command->schema.schema_data.size + 1,
                          command->schema.schema_data);
        }
        it->schema_version = (struct lw_bytes){ schema_version, sizeof schema_version };
    }
    embedded_reply(session, &answer);
}
