/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault script of the embedded broker: rules that wait for a frame in one direction, of one
 * type, for the n-th time, and how a command is refused in the shape that its kind has. Rules are
 * asked in order of their adding; the first that concerns a frame is used. Also the counters.
 */
#include "tests/support/pulsar/embedded_state.h"

void
embedded_add_fault(struct embedded *broker, const struct embedded_fault *fault)
{
    struct embedded_rule *rule = embedded_new(sizeof *rule);
    rule->fault = *fault;
    if (fault->text != NULL) {
        snprintf(rule->text, sizeof rule->text, "%s", fault->text);
        rule->fault.text = rule->text;
    }
    rule->left = fault->times == 0 ? 1 : fault->times;
    lw_list_push(&broker->rules, &rule->link);
}

static void
unstop(struct embedded_session *session)
{
    bool was_stopped = session->is_stopped;
    session->is_stopped = session->is_silent = false;
    if (was_stopped && !session->is_doomed) {
        embedded_parse(session);
        embedded_want_work(session->broker);
    }
}

void
embedded_clear_faults(struct embedded *broker)
{
    struct lw_list *node;
    while ((node = lw_list_pop(&broker->rules)) != NULL) {
        free(LW_CONTAINER(node, struct embedded_rule, link));
    }
    for (node = broker->sessions.next; node != &broker->sessions; node = node->next) {
        unstop(LW_CONTAINER(node, struct embedded_session, link));
    }
}

uint32_t
embedded_faults_left(const struct embedded *broker)
{
    uint32_t count = 0;
    for (struct lw_list *node = broker->rules.next; node != &broker->rules; node = node->next) {
        count += LW_CONTAINER_CONST(node, struct embedded_rule, link)->left > 0 ? 1 : 0;
    }
    return count;
}

static bool
concerns(const struct embedded_fault *fault, enum embedded_direction direction, int32_t type)
{
    return fault->kind != EMBEDDED_CUT &&
           (fault->direction == EMBEDDED_BOTH || fault->direction == direction) &&
           (fault->type == 0 || fault->type == type);
}

struct embedded_fault *
embedded_match(struct embedded *broker, enum embedded_direction direction, int32_t type)
{
    for (struct lw_list *node = broker->rules.next; node != &broker->rules; node = node->next) {
        struct embedded_rule *rule = LW_CONTAINER(node, struct embedded_rule, link);
        if (!concerns(&rule->fault, direction, type) || rule->left == 0) {
            continue;
        }
        rule->seen++;
        if (rule->seen < rule->fault.nth) {
            continue;
        }
        rule->left -= rule->left == UINT32_MAX ? 0 : 1;
        return &rule->fault;
    }
    return NULL;
}

size_t
embedded_cut_at(struct embedded *broker, enum embedded_direction direction, uint64_t passed,
                size_t size)
{
    for (struct lw_list *node = broker->rules.next; node != &broker->rules; node = node->next) {
        struct embedded_rule *rule = LW_CONTAINER(node, struct embedded_rule, link);
        const struct embedded_fault *fault = &rule->fault;
        bool is_it = fault->kind == EMBEDDED_CUT && rule->left > 0 &&
                     (fault->direction == EMBEDDED_BOTH || fault->direction == direction);
        if (is_it && passed + size > fault->bytes) {
            rule->left -= rule->left == UINT32_MAX ? 0 : 1;
            return passed < fault->bytes ? (size_t)(fault->bytes - passed) : 0;
        }
    }
    return size;
}

/* -- Refusals -------------------------------------------------------------------------------------- */

static void
refuse_partitions(struct embedded_session *session, uint64_t request_id, int32_t error,
                  struct lw_bytes text)
{
    struct lw_pulsar_command answer = lw_pulsar_command_of(
        LW_PULSAR_PARTITIONED_METADATA_RESPONSE);
    answer.partitioned_metadata_response.request_id = request_id;
    answer.partitioned_metadata_response.response = LW_PULSAR_PARTITIONED_FAILED;
    answer.partitioned_metadata_response.error = error;
    answer.partitioned_metadata_response.message = text;
    embedded_reply(session, &answer);
}

static void
refuse_lookup(struct embedded_session *session, uint64_t request_id, int32_t error,
              struct lw_bytes text)
{
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_LOOKUP_RESPONSE);
    answer.lookup_response.request_id = request_id;
    answer.lookup_response.response = LW_PULSAR_LOOKUP_FAILED;
    answer.lookup_response.error = error;
    answer.lookup_response.message = text;
    embedded_reply(session, &answer);
}

static void
refuse_send(struct embedded_session *session, const struct lw_pulsar_send *send, int32_t error,
            struct lw_bytes text)
{
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_SEND_ERROR);
    answer.send_error.producer_id = send->producer_id;
    answer.send_error.sequence_id = send->sequence_id;
    answer.send_error.error = error;
    answer.send_error.message = text;
    embedded_reply(session, &answer);
}

static void
refuse_ack(struct embedded_session *session, const struct lw_pulsar_ack *ack, int32_t error,
           struct lw_bytes text)
{
    if ((ack->has & LW_PULSAR_ACK_HAS_REQUEST_ID) == 0) {
        return;
    }
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_ACK_RESPONSE);
    answer.ack_response.has = LW_PULSAR_ACK_RESPONSE_HAS_ERROR;
    answer.ack_response.has |= LW_PULSAR_ACK_RESPONSE_HAS_REQUEST_ID;
    answer.ack_response.consumer_id = ack->consumer_id;
    answer.ack_response.request_id = ack->request_id;
    answer.ack_response.error = error;
    answer.ack_response.message = text;
    embedded_reply(session, &answer);
}

/* The request id of commands that ERROR answers; LW_PULSAR_NO_REQUEST: it has none. */
static uint64_t
request_id_of(const struct lw_pulsar_command *command)
{
    switch (command->type) {
    case LW_PULSAR_SUBSCRIBE:
        return command->subscribe.request_id;
    case LW_PULSAR_PRODUCER:
        return command->producer.request_id;
    case LW_PULSAR_UNSUBSCRIBE:
        return command->unsubscribe.request_id;
    case LW_PULSAR_CLOSE_PRODUCER:
    case LW_PULSAR_CLOSE_CONSUMER:
        return command->close_consumer.request_id;
    case LW_PULSAR_SEEK:
        return command->seek.request_id;
    case LW_PULSAR_GET_LAST_MESSAGE_ID:
        return command->get_last_message_id.request_id;
    case LW_PULSAR_GET_TOPICS_OF_NAMESPACE:
        return command->get_topics.request_id;
    case LW_PULSAR_WATCH_TOPIC_LIST:
        return command->watch_topic_list.request_id;
    case LW_PULSAR_GET_SCHEMA:
        return command->get_schema.request_id;
    case LW_PULSAR_GET_OR_CREATE_SCHEMA:
        return command->get_or_create_schema.request_id;
    case LW_PULSAR_CONSUMER_STATS:
        return command->consumer_stats.request_id;
    default:
        return LW_PULSAR_NO_REQUEST;
    }
}

void
embedded_refuse(struct embedded_session *session, const struct lw_pulsar_command *command,
                int32_t error, const char *text)
{
    struct lw_bytes message = embedded_bytes(text == NULL ? "refused by the script" : text);
    switch (command->type) {
    case LW_PULSAR_PARTITIONED_METADATA:
        refuse_partitions(session, command->partitioned_metadata.request_id, error, message);
        return;
    case LW_PULSAR_LOOKUP:
        refuse_lookup(session, command->lookup.request_id, error, message);
        return;
    case LW_PULSAR_SEND:
        refuse_send(session, &command->send, error, message);
        return;
    case LW_PULSAR_ACK:
        refuse_ack(session, &command->ack, error, message);
        return;
    default:
        embedded_fail(session, request_id_of(command), error, (const char *)message.data);
        if (command->type == LW_PULSAR_CONNECT) {
            embedded_doom(session, false);
        }
        return;
    }
}

/* -- Counters -------------------------------------------------------------------------------------- */

const struct embedded_counts *
embedded_counts(const struct embedded *broker)
{
    return &broker->counts;
}

void
embedded_reset_counts(struct embedded *broker)
{
    broker->counts = (struct embedded_counts){ .frames_in = 0 };
}

void
embedded_violation(struct embedded *broker, const char *format, ...)
{
    if (broker->counts.violations++ == 0) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(broker->counts.first_violation, sizeof broker->counts.first_violation, format,
                  arguments);
        va_end(arguments);
    }
}
