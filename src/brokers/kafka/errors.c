/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person reads when the cluster cannot be used: the client's codes and texts turned into
 * one sentence and a help. A state (not reachable) is told once when it begins and once when it
 * ends; the client's own repetitions stay in the debug log.
 */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "brokers/kafka/kafka.h"

enum lw_status
lw_kafka_error_status(rd_kafka_resp_err_t code)
{
    switch ((int)code) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
        return LW_STATUS_OK;
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
        return LW_STATUS_DENIED;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
        return LW_STATUS_NOT_FOUND;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE:
        return LW_STATUS_TOO_LARGE;
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
        return LW_STATUS_TIMEOUT;
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR__INVALID_ARG:
        return LW_STATUS_INVALID;
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
        return LW_STATUS_STATE; /* the group does not know this member any more */
    default:
        return LW_STATUS_UNAVAILABLE;
    }
}

static bool
is_authentication(rd_kafka_resp_err_t code, const char *reason)
{
    return code == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
           code == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED ||
           strstr(reason, "SASL authentication error") != NULL;
}

static const char *
protocol_of(struct lw_kafka_broker *broker)
{
    const char *protocol = lw_properties_get(&broker->properties, "security.protocol");
    return protocol ? protocol : "plaintext";
}

static void
say_closed(struct lw_kafka_broker *broker, struct lw_error *ret_error)
{
    (void)lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0501",
                       "cannot use broker \"%s\" (%s): it closed the connection during the "
                       "first request",
                       broker->name, broker->url);
    const char *protocol = protocol_of(broker);
    if (strcasecmp(protocol, "plaintext") == 0) {
        lw_error_help(ret_error, "this is what a TLS listener does to a plaintext client. "
                                 "security.protocol is plaintext; try ssl or sasl_ssl. "
                                 "Still trying; nothing is lost.");
    } else {
        lw_error_help(ret_error,
                      "this is what a listener of another security.protocol does. It is %s "
                      "here; compare it with the broker's listeners. Still trying; nothing is "
                      "lost.",
                      protocol);
    }
}

/* Clients before 2.6.1 send a nonce that Kafka 3.8.1, 3.9 and 4 refuse like a wrong password. */
static void
help_refused(struct lw_kafka_broker *broker, struct lw_error *ret_error)
{
    const char *mechanism = lw_properties_get(&broker->properties, "sasl.mechanism");
    if (!mechanism) {
        mechanism = lw_properties_get(&broker->properties, "sasl.mechanisms");
    }
    bool is_scram = mechanism && strncasecmp(mechanism, "SCRAM", 5) == 0;
    bool is_old = rd_kafka_version() < 0x020601ff;
    lw_error_help(ret_error,
                  "check sasl.mechanism, sasl.username and sasl.password (or the token) in the "
                  "broker's properties.%s%s%s Still trying; nothing is lost.",
                  is_scram && is_old ? " If they are right: librdkafka " : "",
                  is_scram && is_old ? rd_kafka_version_str() : "",
                  is_scram && is_old ? " cannot use SCRAM with newer brokers such as Kafka 4; "
                                       "2.6.1 and later can, and PLAIN works with any."
                                     : "");
}

/* Newer clients only say when the connection ended, not what that may mean. */
static bool
is_hang_up(const char *reason, const char *state)
{
    return strstr(reason, "Disconnected: connection") && strstr(reason, state);
}

/* A listener without TLS answers a TLS hello with nonsense or with the end of the connection. */
static void
help_unreachable(struct lw_kafka_broker *broker, rd_kafka_resp_err_t code, const char *reason,
                 struct lw_error *ret_error)
{
    bool is_tls = code == RD_KAFKA_RESP_ERR__SSL || strstr(reason, "SSL_HANDSHAKE");
    if (is_tls && (strstr(reason, "unexpected eof") || strstr(reason, "wrong version number") ||
                   strstr(reason, "PLAINTEXT broker listener"))) {
        lw_error_help(ret_error,
                      "this is what a listener without TLS does to a TLS client. "
                      "security.protocol is %s; try plaintext or sasl_plaintext. Still trying; "
                      "nothing is lost.",
                      protocol_of(broker));
    } else if (is_tls) {
        lw_error_help(ret_error, "check ssl.ca.location and the broker's certificate. Still "
                                 "trying; nothing is lost.");
    } else if (!broker->was_up && (strstr(reason, "verify that security.protocol") ||
                                   is_hang_up(reason, "in state UP"))) {
        lw_error_help(ret_error,
                      "this is what a broker that wants a login does to a client without. "
                      "security.protocol is %s; try sasl_plaintext or sasl_ssl. Still trying; "
                      "nothing is lost.",
                      protocol_of(broker));
    } else {
        lw_error_help(ret_error, "check the address and that the broker runs. Still trying; "
                                 "nothing is lost.");
    }
}

/*
 * The client wraps its texts: "sasl_ssl://host:port/bootstrap: REASON (after 3ms in state UP)".
 * Ours names the broker; the connection's number and age help nobody.
 */
static void
unwrap(const char *reason, char *out, size_t size)
{
    const char *slash = strchr(reason, '/');
    const char *start = slash ? strstr(slash, ": ") : NULL;
    lw_text_copy(out, size, start ? start + 2 : reason);
    char *age = strstr(out, " (after ");
    if (age) {
        *age = '\0';
    }
}

void
lw_kafka_error_unreachable(struct lw_kafka_broker *broker, rd_kafka_resp_err_t code,
                           const char *reason, struct lw_error *ret_error)
{
    char plain[300];
    unwrap(*reason ? reason : "no connection", plain, sizeof plain);
    char *advice = strstr(plain, ": verify that security.protocol");
    if (advice && broker->was_up) {
        *advice = '\0'; /* it was right a moment ago */
    }
    if (is_authentication(code, reason)) {
        (void)lw_error_set(ret_error, LW_STATUS_DENIED, "E0502",
                           "broker \"%s\" (%s) refused the authentication: %s", broker->name,
                           broker->url, plain);
        help_refused(broker, ret_error);
    } else if (strstr(reason, "Disconnected while requesting ApiVersion") ||
               (!broker->was_up && is_hang_up(reason, "in state APIVERSION_QUERY"))) {
        say_closed(broker, ret_error);
    } else {
        (void)lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0501",
                           "cannot use broker \"%s\" (%s): %s", broker->name, broker->url,
                           plain);
        help_unreachable(broker, code, reason, ret_error);
    }
    ret_error->is_retriable = true;
}

void
lw_kafka_error_topic(struct lw_kafka_broker *broker, const struct lw_kafka_failure *failure,
                     struct lw_error *ret_error)
{
    const char *topic = failure->topic;
    enum lw_status status = lw_kafka_error_status(failure->code);
    if (status == LW_STATUS_NOT_FOUND) {
        (void)lw_error_set(ret_error, status, "E0503", "broker \"%s\" has no topic \"%s\"",
                           broker->name, topic);
        lw_error_help(ret_error,
                      "create it (`laneway topics create FILE` makes what the "
                      "configuration needs) or correct its name. Consuming begins as "
                      "soon as it exists.");
    } else if (failure->code == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) {
        (void)lw_error_set(ret_error, status, "E0504",
                           "broker \"%s\" does not let us join the group \"%s\"", broker->name,
                           failure->group);
        lw_error_help(ret_error, "the user needs READ on the group \"%s\"", failure->group);
    } else if (status == LW_STATUS_DENIED) {
        (void)lw_error_set(ret_error, status, "E0504",
                           "broker \"%s\" does not let us use the topic \"%s\"", broker->name,
                           topic);
        lw_error_help(ret_error,
                      "the user needs READ and DESCRIBE on \"%s\" to consume, WRITE to publish",
                      topic);
    } else {
        (void)lw_error_set(ret_error, status, "",
                           "cannot use topic \"%s\" of broker \"%s\": %s", topic, broker->name,
                           failure->reason);
    }
    ret_error->is_retriable = true;
}

static void
say_down(struct lw_kafka_broker *broker)
{
    if (broker->is_down_said || broker->phase >= LW_KAFKA_CLOSING) {
        return;
    }
    struct lw_error error;
    lw_kafka_error_unreachable(broker, broker->failure_code, broker->failure, &error);
    struct lw_event event = { .kind = LW_EVENT_BROKER_DOWN, .status = error.status };
    broker->is_down_said = true;
    broker->is_up = false;
    broker->down_at = broker->base.host->now;
    atomic_store(&broker->is_up_known, false);
    lw_timers_arm(&broker->base.host->timers, &broker->reach_timer,
                  broker->base.host->now + LW_KAFKA_REACH_POLL_NS);
    lw_events_push_error(&broker->events, &event, &error);
}

/*
 * Each client has threads of its own: one may still be telling of an answer from before an outage
 * that another has reported. A client's thread has no loop to ask for the time.
 */
void
lw_kafka_error_note_answer(struct lw_kafka_broker *broker, int64_t rtt_us)
{
    if (!atomic_load_explicit(&broker->is_up_known, memory_order_relaxed)) {
        uint64_t taken_ns = rtt_us > 0 ? (uint64_t)rtt_us * 1000 : 0;
        uint64_t sent_at = lw_clock_monotonic_ns() - taken_ns;
        uint64_t latest = atomic_load(&broker->reached_at);
        while (sent_at > latest &&
               !atomic_compare_exchange_weak(&broker->reached_at, &latest, sent_at)) {
            continue;
        }
    }
}

void
lw_kafka_error_check_reached(struct lw_kafka_broker *broker)
{
    if (broker->is_up || atomic_load(&broker->reached_at) <= broker->down_at) {
        return;
    }
    struct lw_event event = { .kind = LW_EVENT_BROKER_UP };
    broker->is_up = true;
    atomic_store(&broker->is_up_known, true);
    broker->was_up = true;
    broker->is_down_said = false;
    lw_events_push(&broker->events, &event);
}

void
lw_kafka_error_on_log(struct lw_kafka_broker *broker, const char *text)
{
    const char *end = strncmp(text, "[thrd:", 6) == 0 ? strstr(text, "]: ") : NULL;
    broker->failure_code = RD_KAFKA_RESP_ERR__TRANSPORT;
    lw_text_copy(broker->failure, sizeof broker->failure, end ? end + 3 : text);
}

void
lw_kafka_error_on_event(struct lw_kafka_broker *broker, rd_kafka_resp_err_t code,
                        const char *reason, bool is_needed)
{
    char quoted[512];
    lw_host_log(broker->base.host, LW_LOG_DEBUG, "kafka.error", "the client reports an error",
                "broker=%s code=%s reason=%s", broker->name, rd_kafka_err2name(code),
                lw_log_quote(reason, quoted, sizeof quoted));
    if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        broker->failure_code = code;
        lw_text_copy(broker->failure, sizeof broker->failure, reason);
    }
    /* An idle producer's connections are closed by the cluster; that is no news. */
    bool is_refused = is_authentication(code, reason);
    if ((code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && is_needed) || is_refused) {
        say_down(broker);
    }
}
