/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the Pulsar broker: what a dispatcher calls, and the way of a broker from its URL
 * to CLOSED. Everything that talks lives in the parts; here they are put together.
 *
 *   NEW -> RUNNING -> CLOSING -> ENDED
 *
 * A close first ends the consumers, whose last acks need the connections, and the publisher, whose
 * receipts do; CLOSED follows when both are done, each within its own deadline. Loop thread.
 */
#include "brokers/pulsar/broker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/log.h"
#include "brokers/pulsar/names.h"
#include "brokers/pulsar/pulsar.h"

/* -- What the parts tell -------------------------------------------------------------------------- */

static struct lw_pulsar_broker *
of_client(struct lw_pulsar_client *client)
{
    return LW_CONTAINER(client, struct lw_pulsar_broker, client);
}

static void
on_up(struct lw_pulsar_client *client)
{
    struct lw_event event = { .kind = LW_EVENT_BROKER_UP };
    lw_events_push(&of_client(client)->events, &event);
}

static void
on_down(struct lw_pulsar_client *client, const struct lw_error *error)
{
    struct lw_event event = { .kind = LW_EVENT_BROKER_DOWN, .status = error->status };
    lw_events_push_error(&of_client(client)->events, &event, error);
}

static const struct lw_pulsar_client_ops client_ops = { .on_up = on_up, .on_down = on_down };

/* Its place was reserved when the publication was accepted. */
static void
on_receipt(void *user, struct lw_publication *publication, enum lw_status status)
{
    struct lw_pulsar_broker *broker = user;
    struct lw_event event = { .kind = LW_EVENT_PUBLISHED,
                              .publication = publication,
                              .status = status };
    lw_events_push_reserved(&broker->events, &event);
}

static void
on_room(void *user)
{
    struct lw_pulsar_broker *broker = user;
    struct lw_event event = { .kind = LW_EVENT_PUBLISH_ROOM };
    lw_events_push(&broker->events, &event);
}

static void
on_blocked(void *user, const char *topic, const struct lw_error *error)
{
    struct lw_pulsar_broker *broker = user;
    char quoted[512];
    lw_host_log(broker->base.host, error ? LW_LOG_WARN : LW_LOG_INFO,
                error ? "pulsar.publish_blocked" : "pulsar.publish_again",
                error ? "nothing can be published to a topic; it is tried again"
                      : "a topic takes messages again",
                "broker=%s topic=%s code=%s reason=%s", broker->name, topic,
                error ? error->code : "",
                lw_log_quote(error ? error->message : "", quoted, sizeof quoted));
}

static void
on_closed(void *user)
{
    struct lw_pulsar_broker *broker = user;
    broker->is_publisher_closed = true;
    lw_pulsar_broker_continue_close(broker);
}

static const struct lw_pulsar_publisher_ops publisher_ops = {
    .on_receipt = on_receipt,
    .on_room = on_room,
    .on_blocked = on_blocked,
    .on_closed = on_closed,
};

/* -- Connecting without a subscription ------------------------------------------------------------ */

static void dial(struct lw_pulsar_broker *broker);

/* Until it was there once: from then on whoever publishes looks for itself. */
static void
on_dialled(struct lw_pulsar_dial *it, struct lw_pulsar_connection *connection,
           const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_broker *broker = LW_CONTAINER(it, struct lw_pulsar_broker, dial);
    struct lw_host *host = broker->base.host;
    (void)failure; /* told by on_down */
    if (!connection) {
        uint64_t pause = lw_pulsar_backoff_next(&broker->dial_backoff, &broker->client);
        lw_timers_arm(&host->timers, &broker->dial_timer, host->now + pause);
    }
}

static void
on_dial_due(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    dial(LW_CONTAINER(timer, struct lw_pulsar_broker, dial_timer));
}

static void
dial(struct lw_pulsar_broker *broker)
{
    lw_pulsar_dial_service(&broker->client, &broker->dial, on_dialled);
}

static void
stop_dialling(struct lw_pulsar_broker *broker)
{
    lw_pulsar_dial_cancel(&broker->dial);
    lw_timers_disarm(&broker->base.host->timers, &broker->dial_timer);
}

/* -- Life ---------------------------------------------------------------------------------------------- */

static struct lw_pulsar_source *
source_at(struct lw_list *node)
{
    return LW_CONTAINER(node, struct lw_pulsar_source, link);
}

static void
destroy(struct lw_broker *base)
{
    if (!base) {
        return;
    }
    struct lw_pulsar_broker *broker = lw_pulsar_broker_of(base);
    stop_dialling(broker);
    while (!lw_list_is_empty(&broker->sources)) {
        lw_pulsar_source_destroy(source_at(lw_list_first(&broker->sources)));
    }
    if (broker->publisher) {
        lw_pulsar_publisher_destroy(broker->publisher);
    }
    if (broker->client.host) {
        lw_pulsar_holder_deinit(&broker->holder);
        lw_pulsar_client_deinit(&broker->client);
    }
    lw_events_deinit(&broker->events);
    lw_properties_deinit(&broker->properties);
    lw_free(broker->name);
    lw_free(broker);
}

static const struct lw_broker_caps pulsar_caps = {
    .settlement = LW_SETTLE_INDIVIDUAL,
    .nack = LW_NACK_MESSAGE,
    .has_native_delay = true,
    .has_redelivery_count = true,
    .has_faults = true,
    .default_ordering = LW_ORDERING_NONE,
    .default_keyless = LW_KEYLESS_ROTATE,
    .retries_in_place = false,
    .gives_on_demand = true,
};

/* It routes by the name that TLS says first; without TLS nobody says one. */
static enum lw_status
check_proxy(const struct lw_pulsar_client_settings *settings,
            const struct lw_pulsar_address *address, struct lw_error *ret_error)
{
    if (!settings->has_proxy || address->is_tls) {
        return LW_STATUS_OK;
    }
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, "E0419",
                                         "proxy_service_url needs TLS, and the broker's url "
                                         "does not use it");
    lw_error_help(ret_error, "write pulsar+ssl://, or use_tls: true");
    return status;
}

/* The client keeps address and credentials that it finds when it begins. */
static enum lw_status
open_client(struct lw_pulsar_broker *broker, const char *url, struct lw_error *ret_error)
{
    struct lw_pulsar_client_settings settings;
    struct lw_pulsar_auth_options auth;
    struct lw_pulsar_client *client = &broker->client;
    enum lw_status status = lw_pulsar_address_parse(url, &client->address, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    lw_pulsar_settings_auth(&broker->options.client, &auth);
    lw_pulsar_settings_client(&broker->options.client, &settings);
    client->address.is_tls |= settings.wants_tls;
    status = check_proxy(&settings, &client->address, ret_error);
    if (status == LW_STATUS_OK) {
        status = lw_pulsar_auth_create(broker->base.host, &auth, &client->auth, ret_error);
    }
    lw_pulsar_client_init(client, broker->base.host, broker->name, &settings, &client_ops);
    lw_pulsar_holder_init(&broker->holder, client, client->options.admin_url);
    return status;
}

static enum lw_status
open_parts(struct lw_pulsar_broker *broker, const char *url, struct lw_error *ret_error)
{
    lw_pulsar_options_init(&broker->options);
    enum lw_status status = lw_pulsar_options_read_broker(
        &broker->options, broker->properties.items, broker->properties.count, ret_error);
    if (status == LW_STATUS_OK) {
        status = open_client(broker, url, ret_error);
    }
    if (status != LW_STATUS_OK) {
        return status;
    }
    struct lw_pulsar_producer_settings settings;
    lw_pulsar_settings_producer(&broker->options, &settings);
    broker->publisher = lw_pulsar_publisher_create(&broker->client, &settings, &publisher_ops,
                                                   broker);
    return broker->publisher
               ? LW_STATUS_OK
               : lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a broker");
}

/* The table's signature has seven. NOLINTBEGIN(readability-function-size) */
static enum lw_status
create(struct lw_host *host, const char *name, const char *url,
       const struct lw_property *properties, size_t property_count,
       struct lw_broker **ret_broker, struct lw_error *ret_error)
{
    struct lw_pulsar_broker *broker = lw_alloc(sizeof *broker);
    if (!broker) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a broker");
    }
    broker->base = (struct lw_broker){ lw_pulsar_broker_ops(), host, pulsar_caps, NULL };
    lw_list_init(&broker->sources);
    lw_events_init(&broker->events, host);
    lw_timer_init(&broker->dial_timer, on_dial_due);
    broker->name = lw_copy_text(name);
    broker->base.name = broker->name;
    enum lw_status status = LW_STATUS_NO_MEMORY;
    if (broker->name && lw_properties_copy(&broker->properties, properties, property_count)) {
        status = open_parts(broker, url, ret_error);
    } else {
        (void)lw_error_set(ret_error, status, "", "no memory for a broker");
    }
    if (status != LW_STATUS_OK) {
        destroy(&broker->base);
        return status;
    }
    *ret_broker = &broker->base;
    return LW_STATUS_OK;
}
/* NOLINTEND(readability-function-size) */

static enum lw_status
subscribe(struct lw_broker *base, const struct lw_source_options *options,
          struct lw_source **ret_source, struct lw_error *ret_error)
{
    struct lw_pulsar_broker *broker = lw_pulsar_broker_of(base);
    if (broker->phase != LW_PULSAR_NEW) {
        return lw_error_set(ret_error, LW_STATUS_STATE, "",
                            "a subscription must be made before the broker starts");
    }
    struct lw_pulsar_source *source = NULL;
    enum lw_status status = lw_pulsar_source_create(broker, options, &source, ret_error);
    *ret_source = status == LW_STATUS_OK ? lw_pulsar_source_face(source) : NULL;
    return status;
}

static void
unsubscribe(struct lw_source *face)
{
    lw_pulsar_source_destroy(lw_pulsar_source_of(face));
}

static enum lw_status
start(struct lw_broker *base, struct lw_error *ret_error)
{
    struct lw_pulsar_broker *broker = lw_pulsar_broker_of(base);
    if (!lw_events_reserve(&broker->events, 1)) { /* CLOSED */
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a broker");
    }
    broker->phase = LW_PULSAR_RUNNING;
    for (struct lw_list *at = broker->sources.next; at != &broker->sources; at = at->next) {
        lw_pulsar_source_start(source_at(at));
    }
    if (lw_list_is_empty(&broker->sources)) {
        dial(broker);
    }
    return LW_STATUS_OK;
}

static size_t
events(struct lw_broker *base, struct lw_event *out, size_t n)
{
    struct lw_pulsar_broker *broker = lw_pulsar_broker_of(base);
    lw_pulsar_backlog_look(broker);
    return lw_events_take(&broker->events, out, n);
}

static void
revoke_done(struct lw_broker *base, uint64_t generation)
{
    struct lw_pulsar_broker *broker = lw_pulsar_broker_of(base);
    for (struct lw_list *at = broker->sources.next; at != &broker->sources; at = at->next) {
        lw_pulsar_source_revoke_done(source_at(at), generation);
    }
}

static void
stop_sources(struct lw_broker *base)
{
    struct lw_pulsar_broker *broker = lw_pulsar_broker_of(base);
    if (broker->is_stopping) {
        return;
    }
    broker->is_stopping = true;
    for (struct lw_list *at = broker->sources.next; at != &broker->sources; at = at->next) {
        lw_pulsar_source_stop(source_at(at));
    }
}

void
lw_pulsar_broker_continue_close(struct lw_pulsar_broker *broker)
{
    if (broker->phase != LW_PULSAR_CLOSING || !broker->is_publisher_closed) {
        return;
    }
    for (struct lw_list *at = broker->sources.next; at != &broker->sources; at = at->next) {
        if (!lw_pulsar_source_is_stopped(source_at(at))) {
            return;
        }
    }
    broker->phase = LW_PULSAR_ENDED;
    broker->client.is_closing = true;
    struct lw_event event = { .kind = LW_EVENT_CLOSED };
    lw_events_push_reserved(&broker->events, &event);
}

static void
close_broker(struct lw_broker *base)
{
    struct lw_pulsar_broker *broker = lw_pulsar_broker_of(base);
    if (broker->phase == LW_PULSAR_NEW) {
        if (!lw_events_reserve(&broker->events, 1)) {
            return;
        }
    } else if (broker->phase != LW_PULSAR_RUNNING) {
        return;
    }
    stop_sources(base);
    stop_dialling(broker);
    broker->phase = LW_PULSAR_CLOSING;
    lw_pulsar_publisher_close(broker->publisher, base->host->now + LW_PULSAR_WAIT_NS);
}

/* -- Messages ------------------------------------------------------------------------------------------- */

static void
traits(const struct lw_source *face, struct lw_source_traits *ret_traits)
{
    const struct lw_pulsar_source *source = (const void *)face;
    int32_t type = source->settings.type;
    *ret_traits = (struct lw_source_traits){
        .redeliveries_max = source->settings.max_redeliver_count,
        .dead_letter_topic = source->settings.dead_letter_topic,
        .starts_paused = source->settings.starts_paused,
        .ignores_delays = type != LW_PULSAR_SUB_SHARED && type != LW_PULSAR_SUB_KEY_SHARED,
    };
}

static bool
reads(const struct lw_source *face, const char *topic)
{
    const struct lw_pulsar_source *source = (const void *)face;
    struct lw_pulsar_name name;
    if (lw_pulsar_name_parse(topic, &name, NULL) != LW_STATUS_OK) {
        return false;
    }
    return source->pattern ? lw_pulsar_pattern_has(source->pattern, name.text)
                           : strcmp(source->name.text, name.text) == 0;
}

static void
demand(struct lw_source *face, uint32_t messages, uint64_t bytes)
{
    lw_pulsar_source_demand(lw_pulsar_source_of(face), messages, bytes);
}

static void
expect_delay(struct lw_source *face, int64_t delay_ms)
{
    lw_pulsar_backlog_expect_delay(lw_pulsar_source_of(face), delay_ms);
}

static bool
is_ready(const struct lw_source *face)
{
    const struct lw_pulsar_source *source = (const void *)face;
    return source->ready.count > 0;
}

static size_t
receive(struct lw_source *face, struct lw_message *const out[], size_t n, uint64_t bytes_max,
        bool *ret_has_more)
{
    return lw_pulsar_source_receive(lw_pulsar_source_of(face), out, n, bytes_max, ret_has_more);
}

static void
settle(struct lw_source *face, const struct lw_settle_item *items, size_t n)
{
    lw_pulsar_source_settle(lw_pulsar_source_of(face), items, n);
}

static enum lw_status
commit(struct lw_broker *base, const struct lw_commit_item *items, size_t n)
{
    (void)base, (void)items, (void)n;
    lw_assert_failed("a Pulsar source settles each message", __FILE__, __LINE__);
}

/* A receipt must find its place, so only what has one is accepted. */
static size_t
publish(struct lw_broker *base, struct lw_publication *const items[], size_t n)
{
    struct lw_pulsar_broker *broker = lw_pulsar_broker_of(base);
    if (!lw_events_reserve(&broker->events, n)) {
        return 0;
    }
    size_t accepted = lw_pulsar_publisher_publish(broker->publisher, items, n);
    lw_events_unreserve(&broker->events, n - accepted);
    return accepted;
}

static void
release(struct lw_broker *base, struct lw_message *const messages[], size_t n)
{
    (void)base;
    for (size_t i = 0; i < n; i++) {
        lw_pulsar_message_release(messages[i]);
    }
}

static bool
detach(struct lw_broker *base, struct lw_message *message)
{
    (void)base;
    return lw_pulsar_message_detach(message);
}

static const struct lw_header *
headers(struct lw_broker *base, const struct lw_message *message, size_t *ret_count)
{
    (void)base;
    return lw_pulsar_message_headers(message, ret_count);
}

static void
times(struct lw_broker *base, const struct lw_message *message,
      struct lw_message_times *ret_times)
{
    (void)base;
    lw_pulsar_message_times(message, ret_times);
}

/* Without the partition, which the identity names before it. */
static void
place(const struct lw_message *message, char *out, size_t size)
{
    struct lw_pulsar_message_id id = lw_pulsar_message_own_id(message);
    if (id.batch_index >= 0) {
        (void)snprintf(out, size, "%" PRIu64 ":%" PRIu64 ":%d", id.ledger, id.entry,
                       (int)id.batch_index);
    } else {
        (void)snprintf(out, size, "%" PRIu64 ":%" PRIu64, id.ledger, id.entry);
    }
}

/* As the C++ and Python clients do, and so pulsar-dispatcher. */
static void
id_text(const struct lw_message *message, char *out, size_t size)
{
    struct lw_pulsar_message_id id = lw_pulsar_message_own_id(message);
    (void)snprintf(out, size, "(%" PRIu64 ",%" PRIu64 ",%d,%d)", id.ledger, id.entry,
                   (int)id.partition, (int)id.batch_index);
}

static bool
lag(struct lw_source *face, struct lw_lag *ret_lag)
{
    return lw_pulsar_source_lag(lw_pulsar_source_of(face), ret_lag);
}

static enum lw_status
describe_topics(struct lw_broker *base, struct lw_topic_info *topics, size_t n,
                int64_t timeout_ms, struct lw_error *ret_error)
{
    return lw_pulsar_describe(lw_pulsar_broker_of(base), topics, n, timeout_ms, ret_error);
}

static enum lw_status
create_topics(struct lw_broker *base, struct lw_topic_info *topics, size_t n,
              int64_t timeout_ms, struct lw_error *ret_error)
{
    return lw_pulsar_admin_create(&lw_pulsar_broker_of(base)->client,
                                  lw_pulsar_broker_of(base)->client.options.admin_url, topics,
                                  n, timeout_ms, ret_error);
}

static const struct lw_broker_ops ops = {
    .scheme = "pulsar",
    .create = create,
    .subscribe = subscribe,
    .traits = traits,
    .reads = reads,
    .unsubscribe = unsubscribe,
    .start = start,
    .events = events,
    .demand = demand,
    .expect_delay = expect_delay,
    .is_ready = is_ready,
    .receive = receive,
    .settle = settle,
    .commit = commit,
    .publish = publish,
    .release = release,
    .detach = detach,
    .headers = headers,
    .times = times,
    .place = place,
    .id_text = id_text,
    .is_same_topic = lw_pulsar_name_is_same,
    .revoke_done = revoke_done,
    .stop_sources = stop_sources,
    .close = close_broker,
    .destroy = destroy,
    .default_topic = lw_pulsar_name_default_topic,
    .describe_topics = describe_topics,
    .create_topics = create_topics,
    .lag = lag,
};

const struct lw_broker_ops *
lw_pulsar_broker_ops(void)
{
    return &ops;
}
