/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake of the protocol and what keeps a connection alive afterwards: credentials are
 * asked for at every attempt, since they may have been replaced; a challenge is answered in place,
 * before CONNECTED too. What the broker says against us is kept word for word for all who wait.
 */
#include <string.h>

#include "base/error.h"
#include "brokers/pulsar/connection_state.h"

enum { REASON_BYTES = 256 };

static struct lw_bytes
text_bytes(const char *text)
{
    return (struct lw_bytes){ text, strlen(text) };
}

/* -- CONNECT ------------------------------------------------------------------------------------------ */

/* Both texts of CONNECT that are made here; false without memory. */
struct texts {
    struct lw_text version;
    struct lw_text broker;
};

static bool
set_texts(struct lw_pulsar_connection *connection, struct texts *texts,
          struct lw_pulsar_connect *connect)
{
    const struct lw_pulsar_client_settings *options = &connection->client->options;
    const struct lw_pulsar_target *target = &connection->target;
    lw_text_format(&texts->version, "%s%s%s", options->client_version,
                   options->description ? "-" : "",
                   options->description ? options->description : "");
    connect->client_version = (struct lw_bytes){ texts->version.data, texts->version.size };
    if (!lw_pulsar_host_is_same(&target->logical, &target->physical)) {
        /* Through a proxy: "host:port" of the broker that is meant. */
        lw_pulsar_host_format(&target->logical, &texts->broker);
        connect->proxy_to_broker_url = (struct lw_bytes){ texts->broker.data,
                                                          texts->broker.size };
    }
    return !texts->version.is_failed && !texts->broker.is_failed;
}

static void
send_connect(struct lw_pulsar_connection *connection,
             const struct lw_pulsar_credentials *credentials)
{
    struct texts texts;
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_CONNECT);
    struct lw_pulsar_connect *connect = &command.connect;
    connect->auth_method_name = text_bytes(credentials->method);
    connect->auth_data = credentials->data;
    connect->protocol_version = LW_PULSAR_PROTOCOL_VERSION;
    connect->has |= LW_PULSAR_CONNECT_HAS_FEATURE_FLAGS;
    connect->feature_flags.supports_auth_refresh = true;
    connect->feature_flags.supports_broker_entry_metadata = true;
    lw_text_init(&texts.version);
    lw_text_init(&texts.broker);
    if (set_texts(connection, &texts, connect)) {
        connection->state = LW_PULSAR_GREETING;
        lw_timers_arm(&connection->client->host->timers, &connection->timer,
                      connection->deadline);
        (void)lw_pulsar_connection_send(connection, &command);
    } else {
        struct lw_error error;
        (void)lw_error_set(&error, LW_STATUS_NO_MEMORY, "", "no memory for a connection");
        lw_pulsar_connection_end(connection, -1, &error);
    }
    lw_text_deinit(&texts.version);
    lw_text_deinit(&texts.broker);
}

static void
send_auth_response(struct lw_pulsar_connection *connection,
                   const struct lw_pulsar_credentials *credentials)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_AUTH_RESPONSE);
    struct lw_pulsar_auth_response *response = &command.auth_response;
    response->client_version = text_bytes(connection->client->options.client_version);
    response->protocol_version = LW_PULSAR_PROTOCOL_VERSION;
    response->has |= LW_PULSAR_AUTH_HAS_DATA;
    response->response.auth_method_name = text_bytes(credentials->method);
    /* Present though empty: brokers refuse an answer without it. */
    response->response.auth_data = credentials->data.data ? credentials->data : text_bytes("");
    (void)lw_pulsar_connection_send_urgent(connection, &command);
}

static void
on_credentials(struct lw_pulsar_auth_request *request,
               const struct lw_pulsar_credentials *credentials, const struct lw_error *error)
{
    struct lw_pulsar_connection *connection = LW_CONTAINER(request, struct lw_pulsar_connection,
                                                           auth);
    if (!credentials) {
        lw_pulsar_connection_end(connection, -1, error);
    } else if (connection->state == LW_PULSAR_CONNECTING) {
        send_connect(connection, credentials);
    } else {
        send_auth_response(connection, credentials);
    }
}

static void
ask(struct lw_pulsar_connection *connection, bool is_challenge)
{
    static const struct lw_pulsar_credentials none = { .method = "none" };
    if (!connection->client->auth) {
        on_credentials(&connection->auth, &none, NULL);
    } else if (!connection->auth.is_asked) {
        lw_pulsar_auth_ask(connection->client->auth, &connection->auth, on_credentials,
                           is_challenge);
    }
}

void
lw_pulsar_connection_greet(struct lw_pulsar_connection *connection)
{
    connection->step = LW_PULSAR_ASKING;
    /* An issuer of tokens may take its time: the address has done its part. */
    lw_timers_arm(&connection->client->host->timers, &connection->timer, connection->deadline);
    ask(connection, false);
}

void
lw_pulsar_connection_on_challenge(struct lw_pulsar_connection *connection)
{
    ask(connection, true);
}

/* A text of the peer's for a person: cut, and without what would disturb a terminal. */
static void
copy_printable(struct lw_bytes from, char *out, size_t size)
{
    size_t length = from.size < size ? from.size : size - 1;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = ((const unsigned char *)from.data)[i];
        out[i] = (char)(byte < 0x20 || byte == 0x7f || byte == '"' ? ' ' : byte);
    }
    out[length] = '\0';
}

/* -- Answers -------------------------------------------------------------------------------------------- */

void
lw_pulsar_connection_on_connected(struct lw_pulsar_connection *connection,
                                  const struct lw_pulsar_connected *connected)
{
    struct lw_pulsar_client *client = connection->client;
    const struct lw_pulsar_feature_flags *flags = &connected->feature_flags;
    int32_t size = connected->max_message_size;
    char version[64];
    copy_printable(connected->server_version, version, sizeof version);
    connection->message_bytes_max = size > 0 ? (size_t)size : LW_PULSAR_MESSAGE_BYTES_DEFAULT;
    connection->frame_bytes_max = lw_pulsar_frame_bytes_accepted(
        (int64_t)connection->message_bytes_max);
    connection->protocol = connected->protocol_version;
    connection->has_topic_watchers = flags->supports_topic_watchers;
    connection->has_partitions_without_creation =
        flags->supports_get_partitioned_metadata_without_auto_creation;
    connection->state = LW_PULSAR_READY;
    lw_timers_arm(&client->host->timers, &connection->timer,
                  client->host->now + client->options.keep_alive_ns);
    lw_host_log(client->host, LW_LOG_INFO, "pulsar.connected", "connected to a broker",
                "broker=%s address=%s version=\"%s\" protocol=%d tls=%s", client->name,
                connection->name, version, (int)connection->protocol,
                connection->tls ? lw_pulsar_tls_version(connection->tls) : "no");
    lw_pulsar_pool_on_ready(connection);
    lw_host_defer(client->host, &connection->tell);
}

void
lw_pulsar_connection_on_refused(struct lw_pulsar_connection *connection, int32_t code,
                                struct lw_bytes message)
{
    struct lw_pulsar_client *client = connection->client;
    const struct lw_pulsar_server_error_info *info = lw_pulsar_server_error_of(code);
    struct lw_error error;
    char reason[REASON_BYTES];
    copy_printable(message, reason, sizeof reason);
    if (code == LW_PULSAR_AUTHENTICATION_ERROR && client->auth) {
        lw_pulsar_auth_explain(client->auth, client->name, reason, &error);
    } else if (code == LW_PULSAR_AUTHENTICATION_ERROR) {
        (void)lw_error_set(&error, LW_STATUS_DENIED, "E0502",
                           "broker \"%s\" refused the authentication: %s", client->name,
                           reason);
        lw_error_help(&error,
                      "it wants credentials and none are configured: give auth.token, or "
                      "auth.plugin and auth.params. Still trying; nothing is lost.");
    } else {
        (void)lw_error_set(&error, LW_STATUS_UNAVAILABLE, "E0501",
                           "broker \"%s\" at %s refused the connection: %s (%s)", client->name,
                           connection->name, reason[0] ? reason : info->meaning, info->name);
        lw_error_help(&error, "Still trying; nothing is lost.");
    }
    lw_pulsar_connection_end(connection, code, &error);
}

/* -- Keep-alive ------------------------------------------------------------------------------------------ */

void
lw_pulsar_connection_on_ping(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_command pong = lw_pulsar_command_of(LW_PULSAR_PONG);
    (void)lw_pulsar_connection_send_urgent(connection, &pong);
}

static void
end_silent(struct lw_pulsar_connection *connection)
{
    struct lw_error error;
    (void)lw_error_set(&error, LW_STATUS_TIMEOUT, "E0501",
                       "broker \"%s\" at %s does not answer any more", connection->client->name,
                       connection->name);
    lw_error_help(&error, "it hangs, or the network lost the connection. Connecting again; "
                          "nothing is lost.");
    lw_pulsar_connection_end(connection, -1, &error);
}

/*
 * A peer that only asks (PING) and never answers is as good as gone. A PING that could not leave
 * yet, since the socket takes nothing, is given a second interval.
 */
void
lw_pulsar_connection_on_tick(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_client *client = connection->client;
    bool is_silent = connection->is_ping_out && !connection->has_heard;
    connection->silent_ticks = is_silent ? connection->silent_ticks + 1 : 0;
    uint32_t allowed = connection->out.urgent_size > 0 ? 2 : 1;
    if (connection->silent_ticks >= allowed) {
        end_silent(connection);
        return;
    }
    connection->has_heard = false;
    lw_timers_arm(&client->host->timers, &connection->timer,
                  client->host->now + client->options.keep_alive_ns);
    if (!is_silent) {
        struct lw_pulsar_command ping = lw_pulsar_command_of(LW_PULSAR_PING);
        connection->is_ping_out = true;
        (void)lw_pulsar_connection_send_urgent(connection, &ping);
    }
}
