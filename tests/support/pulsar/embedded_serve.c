/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of a connection to the embedded broker: the handshake with credentials, keep-alive,
 * and who handles what. As brokers do, it closes without a word on everything that a client must
 * not send. A name that somebody else holds starts a contest: the holder is pinged, and what it
 * holds is free when it stays silent.
 */
#include "tests/support/pulsar/embedded_state.h"

void
embedded_reply(struct embedded_session *session, const struct lw_pulsar_command *command)
{
    size_t size = lw_pulsar_command_frame_size(command);
    struct lw_proto_writer writer = lw_proto_writer_of(embedded_output_begin(session, size),
                                                       size);
    lw_pulsar_command_write(command, &writer);
    lw_assert(!lw_proto_is_overflow(&writer));
    embedded_output_end(session, command->type, size);
}

void
embedded_succeed(struct embedded_session *session, uint64_t request_id)
{
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_SUCCESS);
    answer.success.request_id = request_id;
    embedded_reply(session, &answer);
}

void
embedded_fail(struct embedded_session *session, uint64_t request_id, int32_t error,
              const char *text)
{
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_ERROR);
    answer.error.request_id = request_id;
    answer.error.error = error;
    answer.error.message = embedded_bytes(text);
    embedded_reply(session, &answer);
}

/* -- Liveness -------------------------------------------------------------------------------------- */

static void
ping(struct embedded_session *session)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_PING);
    embedded_reply(session, &command);
}

static void
on_keep_alive(struct embedded_alarm *alarm)
{
    struct embedded_session *session = LW_CONTAINER(alarm, struct embedded_session, keep_alive);
    struct embedded *broker = session->broker;
    if (!session->was_heard || session->greeting == GREETING_NONE) {
        embedded_doom(session, false);
        return;
    }
    session->was_heard = false;
    ping(session);
    embedded_arm(broker, alarm, embedded_now_ms(broker) + broker->settings.keep_alive_ms);
}

static void
on_challenge_alarm(struct embedded_alarm *alarm)
{
    embedded_doom(LW_CONTAINER(alarm, struct embedded_session, challenge), false);
}

static void
on_delay_over(struct embedded_alarm *alarm)
{
    struct embedded_session *session = LW_CONTAINER(alarm, struct embedded_session, delay);
    session->is_waiting = false;
    embedded_parse(session);
    embedded_want_work(session->broker);
}

void
embedded_session_start(struct embedded_session *session)
{
    struct embedded *broker = session->broker;
    embedded_alarm_init(&session->keep_alive, on_keep_alive);
    embedded_alarm_init(&session->challenge, on_challenge_alarm);
    embedded_alarm_init(&session->delay, on_delay_over);
    session->was_heard = true;
    if (broker->settings.keep_alive_ms > 0) {
        embedded_arm(broker, &session->keep_alive,
                     embedded_now_ms(broker) + broker->settings.keep_alive_ms);
    }
}

/* -- Contests -------------------------------------------------------------------------------------- */

static void
free_contest(struct embedded_contest *contest)
{
    embedded_disarm(&contest->alarm);
    lw_list_remove(&contest->link);
    free(contest->command);
    free(contest);
}

/* The holder is gone: what was wanted is done as if it came now. */
static void
win(struct embedded_contest *contest)
{
    struct lw_pulsar_command command;
    struct lw_bytes bytes = { contest->command, contest->command_size };
    lw_list_remove(&contest->link);
    if (lw_pulsar_command_decode(bytes, &command) == LW_PULSAR_OK &&
        !contest->session->is_doomed) {
        embedded_handle(contest->session, &command, (struct lw_bytes){ "", 0 });
    }
    free_contest(contest);
}

static void
on_contest_alarm(struct embedded_alarm *alarm)
{
    struct embedded_contest *contest = LW_CONTAINER(alarm, struct embedded_contest, alarm);
    struct lw_list *node;
    embedded_doom(contest->holder, true);
    while ((node = lw_list_first(&contest->holder->producers)) != NULL) {
        embedded_producer_free(LW_CONTAINER(node, struct embedded_producer, link));
    }
    while ((node = lw_list_first(&contest->holder->consumers)) != NULL) {
        embedded_consumer_free(LW_CONTAINER(node, struct embedded_consumer, link));
    }
    win(contest);
}

void
embedded_contest_begin(struct embedded_session *session, struct embedded_session *holder,
                       const struct lw_pulsar_command *command, uint64_t request_id,
                       int32_t error, const char *text)
{
    struct embedded *broker = session->broker;
    if (holder == session) {
        embedded_fail(session, request_id, error, text);
        return;
    }
    struct embedded_contest *contest = embedded_new(sizeof *contest);
    contest->broker = broker;
    contest->session = session;
    contest->holder = holder;
    contest->error = error;
    contest->request_id = request_id;
    snprintf(contest->text, sizeof contest->text, "%s", text);
    contest->command_size = lw_pulsar_command_frame_size(command) - LW_PULSAR_HEAD_BYTES;
    contest->command = embedded_new(contest->command_size);
    struct lw_proto_writer writer = lw_proto_writer_of(contest->command, contest->command_size);
    lw_pulsar_command_encode(command, &writer);
    embedded_alarm_init(&contest->alarm, on_contest_alarm);
    lw_list_push(&broker->contests, &contest->link);
    ping(holder);
    embedded_arm(broker, &contest->alarm,
                 embedded_now_ms(broker) + broker->settings.liveness_ms);
}

static struct embedded_contest *
contest_of(struct embedded *broker, const struct embedded_session *holder,
           const struct embedded_session *session)
{
    for (struct lw_list *node = broker->contests.next; node != &broker->contests;
         node = node->next) {
        struct embedded_contest *contest = LW_CONTAINER(node, struct embedded_contest, link);
        if (contest->holder == holder || contest->session == session) {
            return contest;
        }
    }
    return NULL;
}

void
embedded_contest_heard(struct embedded_session *holder)
{
    struct embedded_contest *contest;
    while ((contest = contest_of(holder->broker, holder, NULL)) != NULL) {
        embedded_fail(contest->session, contest->request_id, contest->error, contest->text);
        free_contest(contest);
    }
}

void
embedded_contest_end(struct embedded_session *gone)
{
    struct embedded_contest *contest;
    while ((contest = contest_of(gone->broker, NULL, gone)) != NULL) {
        free_contest(contest);
    }
    while ((contest = contest_of(gone->broker, gone, NULL)) != NULL) {
        win(contest);
    }
}

/* -- Handshake ------------------------------------------------------------------------------------- */

static bool
is_allowed(const struct embedded *broker, struct lw_bytes method, struct lw_bytes data)
{
    const struct embedded_settings *settings = &broker->settings;
    return settings->auth_method == NULL || (lw_text_is_equal(method, settings->auth_method) &&
                                             lw_text_is_equal(data, settings->auth_data));
}

static void
send_challenge(struct embedded_session *session)
{
    struct embedded *broker = session->broker;
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_AUTH_CHALLENGE);
    const char *method = broker->settings.auth_method;
    command.auth_challenge.has = LW_PULSAR_AUTH_HAS_DATA;
    command.auth_challenge.challenge.auth_method_name = embedded_bytes(method == NULL ? "token"
                                                                                      : method);
    command.auth_challenge.challenge.auth_data = embedded_bytes("PulsarAuthRefresh");
    command.auth_challenge.protocol_version = LW_PULSAR_PROTOCOL_VERSION;
    embedded_reply(session, &command);
    embedded_arm(broker, &session->challenge,
                 embedded_now_ms(broker) + broker->settings.challenge_ms);
}

void
embedded_say(struct embedded *broker, const struct lw_pulsar_command *command)
{
    for (struct lw_list *node = broker->sessions.next; node != &broker->sessions;
         node = node->next) {
        struct embedded_session *session = LW_CONTAINER(node, struct embedded_session, link);
        if (session->greeting == GREETING_DONE) {
            embedded_reply(session, command);
        }
    }
}

void
embedded_challenge(struct embedded *broker)
{
    for (struct lw_list *node = broker->sessions.next; node != &broker->sessions;
         node = node->next) {
        struct embedded_session *session = LW_CONTAINER(node, struct embedded_session, link);
        if (session->greeting != GREETING_DONE) {
            continue;
        }
        if (session->flags.supports_auth_refresh) {
            send_challenge(session);
        } else {
            embedded_doom(session, false);
        }
    }
}

static void
greet(struct embedded_session *session)
{
    struct embedded *broker = session->broker;
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_CONNECTED);
    struct lw_pulsar_connected *connected = &answer.connected;
    session->greeting = GREETING_DONE;
    connected->server_version = embedded_bytes("Pulsar Server4.2.4");
    connected->protocol_version = session->version;
    connected->max_message_size = broker->settings.max_message_size;
    connected->has = LW_PULSAR_CONNECTED_HAS_MAX_MESSAGE_SIZE |
                     LW_PULSAR_CONNECTED_HAS_FEATURE_FLAGS;
    connected->feature_flags.supports_topic_watchers = broker->settings.has_topic_watchers;
    connected->feature_flags.supports_get_partitioned_metadata_without_auto_creation = true;
    embedded_reply(session, &answer);
}

static void
reject(struct embedded_session *session)
{
    embedded_fail(session, LW_PULSAR_NO_REQUEST, LW_PULSAR_AUTHENTICATION_ERROR,
                  "Failed to authenticate");
    embedded_doom(session, false);
}

/* Behind a proxy: the broker that is meant. False: it is unknown. */
static bool
find_target(struct embedded_session *session, struct lw_bytes target)
{
    struct embedded *broker = session->broker;
    if (!session->is_via_proxy || target.data == NULL) {
        return true;
    }
    for (int i = 0; i < broker->member_count; i++) {
        const struct embedded_member *member = broker->members[i];
        bool is_it = lw_text_is_equal(target, member->url + strlen("pulsar://")) ||
                     (broker->tls != NULL &&
                      lw_text_is_equal(target, member->tls_url + strlen("pulsar+ssl://")));
        if (is_it && !member->is_proxy && member->watch != NULL) {
            session->member = i;
            session->is_via_proxy = false;
            return true;
        }
    }
    return false;
}

static void
on_connect(struct embedded_session *session, const struct lw_pulsar_connect *connect)
{
    struct embedded *broker = session->broker;
    if (session->greeting != GREETING_NONE) {
        embedded_protest(session, "a second CONNECT");
        return;
    }
    int32_t version = connect->protocol_version;
    session->version = version < LW_PULSAR_PROTOCOL_VERSION ? version
                                                            : LW_PULSAR_PROTOCOL_VERSION;
    session->flags = connect->feature_flags;
    if (!find_target(session, connect->proxy_to_broker_url)) {
        embedded_fail(session, LW_PULSAR_NO_REQUEST, LW_PULSAR_SERVICE_NOT_READY,
                      "Target broker cannot be validated");
        embedded_doom(session, false);
    } else if (broker->settings.challenges_first) {
        session->greeting = GREETING_CHALLENGED;
        send_challenge(session);
    } else if (!is_allowed(broker, connect->auth_method_name, connect->auth_data)) {
        reject(session);
    } else {
        greet(session);
    }
}

static void
on_auth_response(struct embedded_session *session,
                 const struct lw_pulsar_auth_response *response)
{
    const struct lw_pulsar_auth_data *data = &response->response;
    embedded_disarm(&session->challenge);
    if (data->auth_method_name.data == NULL || data->auth_data.data == NULL) {
        embedded_protest(session, "AUTH_RESPONSE without its fields");
    } else if (!is_allowed(session->broker, data->auth_method_name, data->auth_data)) {
        reject(session);
    } else if (session->greeting == GREETING_CHALLENGED) {
        greet(session);
    }
}

/* -- Commands -------------------------------------------------------------------------------------- */

static void
pong(struct embedded_session *session)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_PONG);
    embedded_reply(session, &command);
}

/* What stands in no other table; false: a client must not send it. */
static bool
handle_rest(struct embedded_session *session, const struct lw_pulsar_command *command)
{
    switch (command->type) {
    case LW_PULSAR_PARTITIONED_METADATA:
        embedded_on_partitions(session, &command->partitioned_metadata);
        return true;
    case LW_PULSAR_LOOKUP:
        embedded_on_lookup(session, &command->lookup);
        return true;
    case LW_PULSAR_GET_TOPICS_OF_NAMESPACE:
        embedded_on_get_topics(session, &command->get_topics);
        return true;
    case LW_PULSAR_WATCH_TOPIC_LIST:
        embedded_on_watch(session, &command->watch_topic_list);
        return true;
    case LW_PULSAR_WATCH_TOPIC_LIST_CLOSE:
        embedded_on_watch_close(session, &command->watch_topic_list_close);
        return true;
    case LW_PULSAR_GET_SCHEMA:
        embedded_on_get_schema(session, &command->get_schema);
        return true;
    case LW_PULSAR_GET_OR_CREATE_SCHEMA:
        embedded_on_create_schema(session, &command->get_or_create_schema);
        return true;
    case LW_PULSAR_NEW_TXN:
        embedded_fail(session, command->new_txn.request_id, LW_PULSAR_NOT_ALLOWED,
                      "Transactions are not enabled.");
        return true;
    case LW_PULSAR_TC_CLIENT_CONNECT_REQUEST:
        embedded_fail(session, command->tc_client_connect.request_id, LW_PULSAR_NOT_ALLOWED,
                      "Transactions are not enabled.");
        return true;
    default:
        return false;
    }
}

static bool
handle_consumer(struct embedded_session *session, const struct lw_pulsar_command *command)
{
    switch (command->type) {
    case LW_PULSAR_SUBSCRIBE:
        embedded_on_subscribe(session, command);
        return true;
    case LW_PULSAR_FLOW:
        embedded_on_flow(session, &command->flow);
        return true;
    case LW_PULSAR_ACK:
        embedded_on_ack(session, &command->ack);
        return true;
    case LW_PULSAR_REDELIVER_UNACKNOWLEDGED:
        embedded_on_redeliver(session, &command->redeliver);
        return true;
    case LW_PULSAR_UNSUBSCRIBE:
        embedded_on_unsubscribe(session, &command->unsubscribe);
        return true;
    case LW_PULSAR_CLOSE_CONSUMER:
        embedded_on_close_consumer(session, &command->close_consumer);
        return true;
    case LW_PULSAR_SEEK:
        embedded_on_seek(session, &command->seek);
        return true;
    case LW_PULSAR_GET_LAST_MESSAGE_ID:
        embedded_on_last_id(session, &command->get_last_message_id);
        return true;
    case LW_PULSAR_CONSUMER_STATS:
        embedded_on_stats(session, &command->consumer_stats);
        return true;
    default:
        return false;
    }
}

void
embedded_handle(struct embedded_session *session, const struct lw_pulsar_command *command,
                struct lw_bytes rest)
{
    switch (command->type) {
    case LW_PULSAR_PING:
        pong(session);
        return;
    case LW_PULSAR_PONG:
        return;
    case LW_PULSAR_CONNECT:
        on_connect(session, &command->connect);
        return;
    case LW_PULSAR_AUTH_RESPONSE:
        on_auth_response(session, &command->auth_response);
        return;
    default:
        break;
    }
    if (session->greeting != GREETING_DONE) {
        embedded_protest(session, "a command before the handshake");
        return;
    }
    switch (command->type) {
    case LW_PULSAR_PRODUCER:
        embedded_on_producer(session, command);
        return;
    case LW_PULSAR_SEND:
        embedded_on_send(session, &command->send, rest);
        return;
    case LW_PULSAR_CLOSE_PRODUCER:
        embedded_on_close_producer(session, &command->close_producer);
        return;
    default:
        break;
    }
    if (!handle_consumer(session, command) && !handle_rest(session, command)) {
        embedded_protest(session, "a command that only brokers send, or nobody");
    }
}

/* -- Faults of frames that come in ------------------------------------------------------------------ */

static bool
wait(struct embedded_session *session, int64_t ms)
{
    struct embedded *broker = session->broker;
    session->is_waiting = true;
    session->skips_faults = true;
    embedded_arm(broker, &session->delay, embedded_now_ms(broker) + ms);
    return false;
}

/* Returns whether the frame is used up; *ret_handles: it is to be handled. */
static bool
apply_in(struct embedded_session *session, const struct lw_pulsar_command *command,
         const struct embedded_fault *fault, bool *ret_handles)
{
    static const char garbage[] = "\xff\xff\xff\xff this is no frame at all";
    *ret_handles = false;
    switch (fault->kind) {
    case EMBEDDED_DROP:
        embedded_doom(session, false);
        return true;
    case EMBEDDED_LOSE:
        return true;
    case EMBEDDED_DELAY:
        return wait(session, fault->ms);
    case EMBEDDED_REFUSE:
        embedded_refuse(session, command, fault->error, fault->text);
        return true;
    case EMBEDDED_GARBAGE:
        embedded_output_raw(session, garbage, sizeof garbage);
        embedded_doom(session, false);
        return true;
    case EMBEDDED_SILENCE:
        session->is_silent = true;
        return true;
    case EMBEDDED_STOP_READING:
        session->is_stopped = true;
        break;
    case EMBEDDED_CALL:
        fault->fn(fault->user);
        break;
    case EMBEDDED_DROP_AFTER:
    case EMBEDDED_DUPLICATE:
    case EMBEDDED_CHECKSUM:
    case EMBEDDED_UNKNOWN:
    case EMBEDDED_CUT:
        break;
    }
    *ret_handles = true;
    return true;
}

static void
handle_known(struct embedded_session *session, const struct lw_pulsar_command *command,
             struct lw_bytes rest)
{
    if (!command->is_known) {
        embedded_protest(session, "a command of unknown type");
    } else {
        embedded_handle(session, command, rest);
    }
}

static void
note(struct embedded_session *session, const struct lw_pulsar_command *command)
{
    struct embedded_counts *counts = &session->broker->counts;
    counts->frames_in++;
    if (command->is_known) {
        counts->in[command->type]++;
    }
    session->was_heard = true;
    embedded_contest_heard(session);
}

bool
embedded_take(struct embedded_session *session, struct lw_bytes bytes, struct lw_bytes rest)
{
    struct lw_pulsar_command command;
    enum lw_pulsar_fault bad = lw_pulsar_command_decode(bytes, &command);
    if (bad != LW_PULSAR_OK) {
        embedded_protest(session, lw_pulsar_fault_text(bad));
        return true;
    }
    bool was_seen = session->skips_faults;
    session->skips_faults = false;
    const struct embedded_fault *match = was_seen ? NULL
                                                  : embedded_match(session->broker, EMBEDDED_IN,
                                                                   command.type);
    struct embedded_fault fault = { .kind = EMBEDDED_CUT };
    bool handles = true;
    if (match != NULL) {
        fault = *match;
        if (!apply_in(session, &command, &fault, &handles)) {
            return false;
        }
    }
    if (session->is_silent || session->is_doomed) {
        return true;
    }
    note(session, &command);
    if (handles) {
        handle_known(session, &command, rest);
    }
    if (handles && fault.kind == EMBEDDED_DUPLICATE) {
        handle_known(session, &command, rest);
    }
    if (fault.kind == EMBEDDED_DROP_AFTER) {
        embedded_doom(session, false);
    }
    return true;
}
