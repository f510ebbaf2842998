/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producers of the embedded broker: names and access modes, storing what they send, receipts in
 * order, deduplication by the command's first sequence id. A SEND to a producer that the broker
 * closed vanishes without a word; one from a fenced producer ends the connection.
 */
#include "tests/support/pulsar/embedded_state.h"

static struct embedded_producer *
producer_find(const struct embedded_session *session, uint64_t id)
{
    for (struct lw_list *node = session->producers.next; node != &session->producers;
         node = node->next) {
        struct embedded_producer *producer = LW_CONTAINER(node, struct embedded_producer, link);
        if (producer->id == id) {
            return producer;
        }
    }
    return NULL;
}

static struct embedded_producer *
named_in(const struct embedded_topic *topic, struct lw_bytes name)
{
    for (struct lw_list *node = topic->producers.next; node != &topic->producers;
         node = node->next) {
        struct embedded_producer *producer = LW_CONTAINER(node, struct embedded_producer,
                                                          in_topic);
        if (lw_text_is_equal(name, producer->name)) {
            return producer;
        }
    }
    return NULL;
}

static struct embedded_dedup *
dedup_of(struct embedded_topic *topic, const char *name)
{
    for (struct lw_list *node = topic->dedup.next; node != &topic->dedup; node = node->next) {
        struct embedded_dedup *it = LW_CONTAINER(node, struct embedded_dedup, link);
        if (strcmp(it->name, name) == 0) {
            return it;
        }
    }
    struct embedded_dedup *it = embedded_new(sizeof *it);
    snprintf(it->name, sizeof it->name, "%s", name);
    it->last = -1;
    lw_list_push(&topic->dedup, &it->link);
    return it;
}

/* -- Coming and going --------------------------------------------------------------------------------- */

static void
welcome(struct embedded_producer *producer, bool is_ready)
{
    struct embedded_topic *topic = producer->topic;
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_PRODUCER_SUCCESS);
    struct lw_pulsar_producer_success *it = &answer.producer_success;
    static const char version[8];
    it->request_id = producer->request_id;
    it->producer_name = embedded_bytes(producer->name);
    it->has = 1 << 3 | 1 << 6;
    it->last_sequence_id = topic->broker->settings.is_deduplicating
                               ? dedup_of(topic, producer->name)->last
                               : -1;
    it->schema_version = (struct lw_bytes){ version,
                                            topic->schema == NULL ? 0 : sizeof version };
    it->producer_ready = is_ready;
    if (is_ready && producer->access != LW_PULSAR_ACCESS_SHARED) {
        it->has |= LW_PULSAR_PRODUCER_SUCCESS_HAS_TOPIC_EPOCH;
        it->topic_epoch = producer->epoch = topic->epoch++;
    }
    producer->is_waiting = !is_ready;
    embedded_reply(producer->session, &answer);
}

static bool
is_exclusively_held(const struct embedded_topic *topic)
{
    struct lw_list *first = lw_list_first(&topic->producers);
    return first != NULL && LW_CONTAINER(first, struct embedded_producer, in_topic)->access !=
                                LW_PULSAR_ACCESS_SHARED;
}

void
embedded_producer_free(struct embedded_producer *producer)
{
    struct embedded_topic *topic = producer->topic;
    lw_list_remove(&producer->link);
    lw_list_remove(&producer->in_topic);
    free(producer);
    struct lw_list *first = lw_list_first(&topic->producers);
    if (first != NULL) {
        struct embedded_producer *next = LW_CONTAINER(first, struct embedded_producer,
                                                      in_topic);
        if (next->is_waiting && !next->session->is_doomed) {
            welcome(next, true);
        }
    }
}

/* The newcomer takes the topic: those who wait hear of it, the holder does not. */
static void
fence(struct embedded_topic *topic)
{
    struct lw_list *next;
    for (struct lw_list *node = topic->producers.next; node != &topic->producers; node = next) {
        next = node->next;
        struct embedded_producer *producer = LW_CONTAINER(node, struct embedded_producer,
                                                          in_topic);
        lw_list_remove(&producer->in_topic);
        producer->is_fenced = true;
        if (producer->is_waiting) {
            embedded_fail(producer->session, producer->request_id, LW_PULSAR_PRODUCER_FENCED,
                          "Fenced out");
            lw_list_remove(&producer->link);
            free(producer);
        }
    }
}

/* 0: it may come, at once or waiting. */
static int32_t
judge(struct embedded_topic *topic, const struct lw_pulsar_producer_command *command,
      bool *ret_waits, const char **ret_text)
{
    int32_t access = command->producer_access_mode;
    bool is_taken = !lw_list_is_empty(&topic->producers);
    bool is_old = (command->has & LW_PULSAR_PRODUCER_HAS_TOPIC_EPOCH) != 0 &&
                  command->topic_epoch + 1 < topic->epoch;
    *ret_waits = false;
    *ret_text = "Topic was already terminated";
    if (topic->is_terminated) {
        return LW_PULSAR_TOPIC_TERMINATED;
    }
    *ret_text = "Topic has an exclusive producer";
    if (access == LW_PULSAR_ACCESS_SHARED) {
        return is_exclusively_held(topic) ? LW_PULSAR_PRODUCER_BUSY : 0;
    }
    if (is_old || (access == LW_PULSAR_ACCESS_EXCLUSIVE && is_taken)) {
        return LW_PULSAR_PRODUCER_FENCED;
    }
    if (access == LW_PULSAR_ACCESS_EXCLUSIVE_WITH_FENCING) {
        fence(topic);
    }
    *ret_waits = access == LW_PULSAR_ACCESS_WAIT_FOR_EXCLUSIVE && is_taken;
    return 0;
}

static int32_t
judge_schema(const struct embedded_topic *topic,
             const struct lw_pulsar_producer_command *command)
{
    bool has_schema = (command->has & LW_PULSAR_PRODUCER_HAS_SCHEMA) != 0;
    bool is_refused = topic->schema != NULL &&
                      (has_schema
                           ? !lw_text_is_equal(command->schema.schema_data, topic->schema)
                           : topic->broker->settings.enforces_schema);
    return is_refused ? LW_PULSAR_INCOMPATIBLE_SCHEMA : 0;
}

static void
take_schema(struct embedded_topic *topic, const struct lw_pulsar_producer_command *command)
{
    if (topic->schema == NULL && (command->has & LW_PULSAR_PRODUCER_HAS_SCHEMA) != 0) {
        topic->schema_type = command->schema.type;
        topic->schema = embedded_new(command->schema.schema_data.size + 1);
        embedded_text(topic->schema, command->schema.schema_data.size + 1,
                      command->schema.schema_data);
    }
}

static void
forget_recent(struct embedded_session *session, uint64_t id)
{
    struct lw_list *next;
    for (struct lw_list *node = session->recent.next; node != &session->recent; node = next) {
        next = node->next;
        struct embedded_recent *recent = LW_CONTAINER(node, struct embedded_recent, link);
        if (recent->id == id) {
            lw_list_remove(&recent->link);
            free(recent);
        }
    }
}

static void
add_producer(struct embedded_session *session, struct embedded_topic *topic,
             const struct lw_pulsar_producer_command *command, bool waits)
{
    struct embedded_producer *producer = embedded_new(sizeof *producer);
    producer->session = session;
    producer->topic = topic;
    producer->id = command->producer_id;
    producer->request_id = command->request_id;
    producer->access = command->producer_access_mode;
    embedded_text(producer->name, sizeof producer->name, command->producer_name);
    if (producer->name[0] == '\0') {
        snprintf(producer->name, sizeof producer->name, "embedded-%llu",
                 (unsigned long long)topic->broker->next_name++);
    }
    forget_recent(session, producer->id);
    take_schema(topic, command);
    lw_list_push(&session->producers, &producer->link);
    lw_list_push(&topic->producers, &producer->in_topic);
    if (command->initial_subscription_name.size > 0 &&
        embedded_subscription_find(topic, command->initial_subscription_name) == NULL) {
        (void)embedded_subscription_new(topic, command->initial_subscription_name,
                                        LW_PULSAR_SUB_SHARED);
    }
    welcome(producer, !waits);
}

void
embedded_on_producer(struct embedded_session *session, const struct lw_pulsar_command *whole)
{
    const struct lw_pulsar_producer_command *command = &whole->producer;
    struct embedded_producer *same = producer_find(session, command->producer_id);
    char text[EMBEDDED_NAME_BYTES + 128];
    if (same != NULL) {
        same->request_id = command->request_id;
        welcome(same, true);
        return;
    }
    struct embedded_topic *topic = embedded_admit(session, whole, command->topic,
                                                  command->request_id, true);
    if (topic == NULL) {
        return;
    }
    struct embedded_producer *holder = named_in(topic, command->producer_name);
    if (holder != NULL) {
        snprintf(text, sizeof text,
                 "NamingException: Producer with name '%s' is already "
                 "connected to topic",
                 holder->name);
        embedded_contest_begin(session, holder->session, whole, command->request_id,
                               LW_PULSAR_PRODUCER_BUSY, text);
        return;
    }
    bool waits;
    const char *why;
    int32_t error = judge(topic, command, &waits, &why);
    if (error == 0) {
        error = judge_schema(topic, command);
        why = "Producers cannot connect with this schema";
    }
    if (error != 0) {
        embedded_fail(session, command->request_id, error, why);
    } else {
        add_producer(session, topic, command, waits);
    }
}

void
embedded_on_close_producer(struct embedded_session *session,
                           const struct lw_pulsar_close *command)
{
    struct embedded_producer *producer = producer_find(session, command->id);
    if (producer != NULL) {
        embedded_producer_free(producer);
    }
    embedded_succeed(session, command->request_id);
}

/* -- Closed by the broker --------------------------------------------------------------------------- */

static void
close_producer(struct embedded_producer *producer, const char *url, const char *tls_url)
{
    struct embedded_session *session = producer->session;
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_CLOSE_PRODUCER);
    command.close_producer.id = producer->id;
    command.close_producer.request_id = LW_PULSAR_NO_REQUEST;
    command.close_producer.assigned_broker_service_url = embedded_bytes(url);
    command.close_producer.assigned_broker_service_url_tls = embedded_bytes(tls_url);
    struct embedded_recent *recent = embedded_new(sizeof *recent);
    recent->id = producer->id;
    lw_list_push(&session->recent, &recent->link);
    producer->is_waiting = false;
    lw_list_remove(&producer->link);
    lw_list_remove(&producer->in_topic);
    free(producer);
    embedded_reply(session, &command);
}

void
embedded_producers_close(struct embedded_topic *topic, const char *url, const char *tls_url)
{
    struct lw_list *first;
    while ((first = lw_list_first(&topic->producers)) != NULL) {
        close_producer(LW_CONTAINER(first, struct embedded_producer, in_topic), url, tls_url);
    }
}

void
embedded_migrate(struct embedded *broker, const char *name, const char *url)
{
    struct embedded_topic *topic = embedded_topic_get(broker, name);
    snprintf(topic->migrated_to, sizeof topic->migrated_to, "%s", url == NULL ? "" : url);
    if (url == NULL) {
        return;
    }
    for (struct lw_list *node = broker->sessions.next; node != &broker->sessions;
         node = node->next) {
        struct embedded_session *session = LW_CONTAINER(node, struct embedded_session, link);
        for (struct lw_list *at = session->consumers.next; at != &session->consumers;
             at = at->next) {
            const struct embedded_consumer *consumer = LW_CONTAINER(
                at, struct embedded_consumer, link);
            if (consumer->subscription->topic == topic) {
                struct lw_pulsar_command told = lw_pulsar_command_of(LW_PULSAR_TOPIC_MIGRATED);
                told.topic_migrated.resource_id = consumer->id;
                told.topic_migrated.resource_type = LW_PULSAR_RESOURCE_CONSUMER;
                told.topic_migrated.broker_service_url = embedded_bytes(url);
                embedded_reply(session, &told);
            }
        }
    }
    embedded_close_consumers(broker, name);
    embedded_producers_close(topic, NULL, NULL);
}

/* -- Publishing ---------------------------------------------------------------------------------------- */

static void
receipt(struct embedded_producer *producer, const struct lw_pulsar_send *send, uint64_t ledger,
        uint64_t entry)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_SEND_RECEIPT);
    struct lw_pulsar_send_receipt *it = &command.send_receipt;
    it->producer_id = producer->id;
    it->sequence_id = send->sequence_id;
    it->has = LW_PULSAR_RECEIPT_HAS_MESSAGE_ID | LW_PULSAR_RECEIPT_HAS_HIGHEST_SEQUENCE_ID;
    it->message_id = lw_pulsar_message_id_of(ledger, entry);
    if ((send->has & LW_PULSAR_SEND_HAS_HIGHEST_SEQUENCE_ID) != 0) {
        it->highest_sequence_id = send->highest_sequence_id;
    } else {
        /* what a real broker writes here is of no use, and differs from time to time */
        it->highest_sequence_id = producer->receipts++ % 8 == 0 ? 0 : UINT64_MAX;
    }
    embedded_reply(producer->session, &command);
}

/* True: it was stored before, and is only confirmed. */
static bool
is_duplicate(struct embedded_producer *producer, const struct lw_pulsar_send *send,
             struct lw_bytes rest)
{
    struct lw_pulsar_payload payload;
    struct lw_pulsar_metadata metadata;
    if (!producer->topic->broker->settings.is_deduplicating) {
        return false;
    }
    if (send->is_chunk && lw_pulsar_payload_open(rest, &payload) == LW_PULSAR_OK &&
        lw_pulsar_metadata_decode(payload.metadata, &metadata) == LW_PULSAR_OK &&
        metadata.chunk_id + 1 < metadata.num_chunks_from_msg) {
        return false;
    }
    struct embedded_dedup *dedup = dedup_of(producer->topic, producer->name);
    if ((int64_t)send->sequence_id <= dedup->last) {
        return true;
    }
    bool has_highest = (send->has & LW_PULSAR_SEND_HAS_HIGHEST_SEQUENCE_ID) != 0;
    dedup->last = (int64_t)(has_highest ? send->highest_sequence_id : send->sequence_id);
    return false;
}

static void
publish(struct embedded_producer *producer, const struct lw_pulsar_send *send,
        struct lw_bytes rest)
{
    struct embedded_topic *topic = producer->topic;
    uint64_t ledger = 0;
    uint64_t entry = 0;
    if (!topic->is_persistent) {
        struct embedded_entry passing = { .rest_size = rest.size };
        passing.rest = embedded_copy(rest.data, rest.size);
        embedded_entry_read(&passing, send);
        embedded_pass_on(topic, &passing);
        free(passing.rest);
    } else {
        embedded_id_of(topic, embedded_append(topic, rest, send), &ledger, &entry);
    }
    receipt(producer, send, ledger, entry);
}

static bool
was_closed(const struct embedded_session *session, uint64_t id)
{
    for (struct lw_list *node = session->recent.next; node != &session->recent;
         node = node->next) {
        if (LW_CONTAINER_CONST(node, struct embedded_recent, link)->id == id) {
            return true;
        }
    }
    return false;
}

void
embedded_on_send(struct embedded_session *session, const struct lw_pulsar_send *send,
                 struct lw_bytes rest)
{
    struct embedded_producer *producer = producer_find(session, send->producer_id);
    struct lw_pulsar_payload payload;
    if (producer == NULL || producer->is_fenced || producer->is_waiting) {
        if (producer != NULL || !was_closed(session, send->producer_id)) {
            embedded_protest(session, "a SEND of a producer that is not there");
        }
        return;
    }
    struct lw_pulsar_command question = { .type = LW_PULSAR_SEND };
    question.send = *send;
    if (lw_pulsar_payload_open(rest, &payload) == LW_PULSAR_CHECKSUM_WRONG) {
        embedded_refuse(session, &question, LW_PULSAR_CHECKSUM_ERROR,
                        "Checksum failed on the broker");
    } else if (send->txnid_least_bits != 0 || send->txnid_most_bits != 0) {
        embedded_refuse(session, &question, LW_PULSAR_NOT_ALLOWED,
                        "Transaction buffer disable!");
    } else if (is_duplicate(producer, send, rest)) {
        receipt(producer, send, UINT64_MAX, UINT64_MAX);
    } else {
        publish(producer, send, rest);
    }
}
