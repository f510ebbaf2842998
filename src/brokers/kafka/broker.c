/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table, and the life of a broker: made and subscribed without I/O; started by a producer that
 * also finds out how many partitions there are, since the prefetch of each follows from that;
 * then one consumer per group. A close ends the groups, then the producer, then the callbacks,
 * and says CLOSED only when every letter that a client's thread posted has been read. Destroying
 * the clients, which may block for milliseconds, is left to destroy.
 */
#include "brokers/kafka/broker.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"
#include "brokers/kafka/kafka.h"

#define PREFETCH_BYTES (INT64_C(256) << 20)

/* Request types of the protocol that say nothing about being served, or that we watch. */
enum { API_JOIN_GROUP = 11, API_SASL_HANDSHAKE = 17, API_VERSIONS = 18, API_SASL_AUTH = 36 };

#define CLIENT_AT(at) LW_CONTAINER(at, struct lw_kafka_client, link)

/* -- What the clients' threads tell ------------------------------------------------------------- */

/* These signatures are the client's. NOLINTBEGIN(readability-function-size) */
static rd_kafka_resp_err_t
on_response(rd_kafka_t *rk, int fd, const char *name, int32_t id, int16_t api, int16_t version,
            int32_t correlation, size_t size, int64_t rtt, rd_kafka_resp_err_t error,
            void *opaque)
{
    (void)rk, (void)fd, (void)name, (void)id, (void)version, (void)correlation;
    (void)size;
    struct lw_kafka_broker *broker = opaque;
    bool is_greeting = api == API_SASL_HANDSHAKE || api == API_VERSIONS || api == API_SASL_AUTH;
    if (!error && !is_greeting) {
        lw_kafka_error_note_answer(broker, rtt);
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t
on_request(rd_kafka_t *rk, int fd, const char *name, int32_t id, int16_t api, int16_t version,
           int32_t correlation, size_t size, void *opaque)
{
    (void)rk, (void)fd, (void)name, (void)id, (void)version, (void)correlation, (void)size;
    struct lw_kafka_client *client = opaque;
    if (api == API_JOIN_GROUP) {
        atomic_store(&client->is_joining, true);
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* NOLINTEND(readability-function-size) */

static rd_kafka_resp_err_t
on_new_producer(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque, char *reason,
                size_t size)
{
    (void)conf, (void)reason, (void)size;
    return rd_kafka_interceptor_add_on_response_received(rk, "laneway", on_response, opaque);
}

static rd_kafka_resp_err_t
on_new_consumer(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque, char *reason,
                size_t size)
{
    (void)conf, (void)reason, (void)size;
    struct lw_kafka_client *client = opaque;
    (void)rd_kafka_interceptor_add_on_response_received(rk, "laneway", on_response,
                                                        client->broker);
    return rd_kafka_interceptor_add_on_request_sent(rk, "laneway", on_request, client);
}

enum lw_status
lw_kafka_broker_observe(struct lw_kafka_broker *broker, rd_kafka_conf_t *conf,
                        struct lw_kafka_client *client)
{
    rd_kafka_resp_err_t code =
        client ? rd_kafka_conf_interceptor_add_on_new(conf, "laneway", on_new_consumer, client)
               : rd_kafka_conf_interceptor_add_on_new(conf, "laneway", on_new_producer, broker);
    return code ? LW_STATUS_INTERNAL : LW_STATUS_OK;
}

static void
on_reach_due(struct lw_timer *timer, uint64_t now)
{
    struct lw_kafka_broker *broker = LW_CONTAINER(timer, struct lw_kafka_broker, reach_timer);
    lw_kafka_error_check_reached(broker);
    if (!broker->is_up && broker->phase < LW_KAFKA_CLOSING) {
        lw_timers_arm(&broker->base.host->timers, timer, now + LW_KAFKA_REACH_POLL_NS);
    }
}

/* -- Making -------------------------------------------------------------------------------------- */

static enum lw_status
read_url(struct lw_kafka_broker *broker, const char *url, struct lw_error *ret_error)
{
    static const char scheme[] = "kafka://";
    const char *rest = strncmp(url, scheme, sizeof scheme - 1) == 0 ? url + sizeof scheme - 1
                                                                    : "";
    size_t length = strlen(rest);
    length -= length > 0 && rest[length - 1] == '/' ? 1 : 0;
    if (length == 0 || memchr(rest, '/', length) || memchr(rest, '@', length)) {
        enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, "E0122",
                                             "\"%s\" is no address of a Kafka cluster", url);
        lw_error_help(ret_error,
                      "write kafka://host:port, several separated by commas; user and "
                      "password belong into the properties sasl.username and "
                      "sasl.password");
        return status;
    }
    broker->url = lw_copy_text(url);
    broker->addresses = lw_copy_text_n(rest, length);
    return broker->url && broker->addresses ? LW_STATUS_OK : LW_STATUS_NO_MEMORY;
}

static enum lw_status
say_bad_property(const struct lw_property *property, const char *broker_name,
                 const char *reason, struct lw_error *ret_error)
{
    char near[128];
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, "E0410",
                                         "property \"%s\" of broker \"%s\": %s", property->name,
                                         broker_name, reason);
    if (strstr(reason, "No such configuration property") &&
        lw_kafka_property_suggest(property->name, near, sizeof near)) {
        lw_error_help(ret_error, "did you mean \"%s\"?", near);
    }
    return status;
}

static enum lw_status
read_properties(struct lw_kafka_broker *broker, const struct lw_property *properties,
                size_t count, struct lw_error *ret_error)
{
    for (size_t i = 0; i < count; i++) {
        const char *reason = lw_kafka_property_check(properties[i].name, properties[i].value);
        if (reason) {
            return say_bad_property(&properties[i], broker->name, reason, ret_error);
        }
    }
    if (!lw_properties_copy(&broker->properties, properties, count)) {
        return LW_STATUS_NO_MEMORY;
    }
    const char *prefetch = lw_properties_get(&broker->properties, "prefetch_bytes");
    broker->prefetch_bytes = PREFETCH_BYTES;
    if (prefetch) {
        (void)lw_text_to_int(prefetch, &broker->prefetch_bytes);
    }
    if (lw_kafka_token_is_wanted(&broker->properties)) {
        return lw_kafka_token_create(broker, &broker->token, ret_error);
    }
    return LW_STATUS_OK;
}

static void on_start_due(struct lw_timer *timer, uint64_t now);
static void on_closed(struct lw_letter *letter);
static void destroy(struct lw_broker *base);

static const struct lw_broker_caps kafka_caps = {
    .settlement = LW_SETTLE_POSITION,
    .nack = LW_NACK_NONE,
    .has_native_delay = false,
    .has_redelivery_count = false,
    .message_bytes_max = 0,
    .commit_metadata_max = 4096,
    .default_ordering = LW_ORDERING_KEY,
    .default_keyless = LW_KEYLESS_SHARED,
    .retries_in_place = true,
};

static void
init(struct lw_kafka_broker *broker, struct lw_host *host)
{
    broker->base = (struct lw_broker){ .ops = lw_kafka_broker_ops(),
                                       .host = host,
                                       .caps = kafka_caps };
    broker->companion_refresh_ns = LW_KAFKA_COMPANION_REFRESH_NS;
    broker->stall_ns = LW_KAFKA_STALL_NS;
    lw_list_init(&broker->clients);
    lw_list_init(&broker->sources);
    lw_timer_init(&broker->start_timer, on_start_due);
    lw_timer_init(&broker->reach_timer, on_reach_due);
    lw_letter_init(&broker->closed_letter, on_closed);
    lw_kafka_producer_init(&broker->producer, broker);
    lw_kafka_spent_init(&broker->spent, host);
    lw_events_init(&broker->events, host);
}

/* The configurations are built once here, so that what the client refuses is known at once. */
static enum lw_status
try_settings(struct lw_kafka_broker *broker, struct lw_error *ret_error)
{
    rd_kafka_conf_t *conf = lw_kafka_settings_create(broker, LW_KAFKA_ROLE_PRODUCER, NULL, NULL,
                                                     ret_error);
    if (!conf) {
        return ret_error ? ret_error->status : LW_STATUS_CONFIG;
    }
    rd_kafka_conf_destroy(conf);
    return LW_STATUS_OK;
}

/* The table's signature has seven. NOLINTBEGIN(readability-function-size) */
static enum lw_status
create(struct lw_host *host, const char *name, const char *url,
       const struct lw_property *properties, size_t property_count,
       struct lw_broker **ret_broker, struct lw_error *ret_error)
{
    struct lw_kafka_broker *broker = lw_alloc(sizeof *broker);
    enum lw_status status = LW_STATUS_NO_MEMORY;
    if (broker) {
        init(broker, host);
        broker->name = lw_copy_text(name);
        broker->base.name = broker->name;
        status = broker->name ? read_url(broker, url, ret_error) : LW_STATUS_NO_MEMORY;
    }
    if (status == LW_STATUS_OK) {
        status = read_properties(broker, properties, property_count, ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = try_settings(broker, ret_error);
    }
    if (status == LW_STATUS_NO_MEMORY) {
        (void)lw_error_set(ret_error, status, "", "no memory for broker \"%s\"", name);
    }
    if (status != LW_STATUS_OK) {
        destroy(broker ? &broker->base : NULL);
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
    struct lw_kafka_source *source = NULL;
    enum lw_status status = lw_kafka_source_create(lw_kafka_broker_of(base), options, &source,
                                                   ret_error);
    if (status == LW_STATUS_OK) {
        *ret_source = lw_kafka_source_face(source);
    }
    return status;
}

static void
unsubscribe(struct lw_source *base)
{
    struct lw_kafka_source *source = lw_kafka_source_of(base);
    struct lw_kafka_client *client = source->client;
    lw_assert(source->broker->phase == LW_KAFKA_NEW);
    lw_kafka_source_destroy(source);
    if (lw_list_is_empty(&client->sources)) {
        lw_kafka_client_destroy(client);
    }
}

/* -- Starting ------------------------------------------------------------------------------------- */

/* Registers the topics with the producer, which asks the cluster about them. */
static void
ask_topics(struct lw_kafka_broker *broker)
{
    for (struct lw_list *at = broker->sources.next; at != &broker->sources; at = at->next) {
        struct lw_kafka_source *source = LW_CONTAINER(at, struct lw_kafka_source, link);
        (void)lw_kafka_producer_topic(&broker->producer, source->topic);
        for (size_t i = 0; i < source->tier_count; i++) {
            (void)lw_kafka_producer_topic(&broker->producer, source->tiers[i].topic);
        }
    }
}

static int32_t
partitions_of(struct lw_kafka_broker *broker, const char *name)
{
    struct lw_kafka_topic *topic = lw_kafka_producer_topic(&broker->producer, name);
    return topic ? lw_kafka_topic_partitions(topic) : 0;
}

static bool
are_topics_known(struct lw_kafka_broker *broker)
{
    for (struct lw_list *at = broker->sources.next; at != &broker->sources; at = at->next) {
        struct lw_kafka_source *source = LW_CONTAINER(at, struct lw_kafka_source, link);
        if (partitions_of(broker, source->topic) == 0) {
            return false;
        }
    }
    return true;
}

static int64_t
count_partitions(struct lw_kafka_client *client)
{
    int64_t count = 0;
    for (struct lw_list *at = client->sources.next; at != &client->sources; at = at->next) {
        struct lw_kafka_source *source = LW_CONTAINER(at, struct lw_kafka_source, client_link);
        count += partitions_of(client->broker, source->topic);
        for (size_t i = 0; source->reads_tiers && i < source->tier_count; i++) {
            count += partitions_of(client->broker, source->tiers[i].topic);
        }
    }
    return count;
}

static void
start_client(struct lw_kafka_client *client)
{
    struct lw_error error;
    int64_t partitions = count_partitions(client);
    int64_t kbytes = lw_kafka_settings_prefetch_kbytes(client->broker->prefetch_bytes,
                                                       partitions);
    lw_host_log(client->broker->base.host, LW_LOG_INFO, "kafka.joining", "joining a group",
                "broker=%s group=%s partitions=%lld prefetch_kbytes=%lld", client->broker->name,
                client->group, (long long)partitions, (long long)kbytes);
    if (lw_kafka_client_start(client, kbytes, &error) == LW_STATUS_OK) {
        return;
    }
    error.is_fatal = true;
    for (struct lw_list *at = client->sources.next; at != &client->sources; at = at->next) {
        lw_kafka_source_fail(LW_CONTAINER(at, struct lw_kafka_source, client_link), &error);
    }
}

static void
on_start_due(struct lw_timer *timer, uint64_t now)
{
    struct lw_kafka_broker *broker = LW_CONTAINER(timer, struct lw_kafka_broker, start_timer);
    if (broker->phase != LW_KAFKA_STARTING || broker->is_stopping) {
        return;
    }
    lw_kafka_error_check_reached(broker);
    if (!are_topics_known(broker) && now < broker->start_deadline) {
        lw_timers_arm(&broker->base.host->timers, timer, now + LW_KAFKA_START_POLL_NS);
        return;
    }
    broker->phase = LW_KAFKA_RUNNING;
    for (struct lw_list *at = broker->clients.next; at != &broker->clients; at = at->next) {
        start_client(CLIENT_AT(at));
    }
}

static enum lw_status
start(struct lw_broker *base, struct lw_error *ret_error)
{
    struct lw_kafka_broker *broker = lw_kafka_broker_of(base);
    struct lw_host *host = base->host;
    enum lw_status status = lw_kafka_producer_start(&broker->producer, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    broker->phase = LW_KAFKA_STARTING;
    broker->start_deadline = host->now + LW_KAFKA_START_WAIT_NS;
    ask_topics(broker);
    lw_timers_arm(&host->timers, &broker->start_timer, host->now + LW_KAFKA_START_POLL_NS);
    lw_timers_arm(&host->timers, &broker->reach_timer, host->now + LW_KAFKA_REACH_POLL_NS);
    return LW_STATUS_OK;
}

/* -- Running ---------------------------------------------------------------------------------------- */

static size_t
events(struct lw_broker *base, struct lw_event *out, size_t n)
{
    return lw_events_take(&lw_kafka_broker_of(base)->events, out, n);
}

/* Kafka prefetches by itself; the figure only tells whether there is room at all. */
static void
demand(struct lw_source *face, uint32_t messages, uint64_t bytes)
{
    (void)bytes;
    lw_kafka_source_of(face)->demand_messages = messages;
}

static void
limit_slots(struct lw_source *face, uint32_t *rooms)
{
    lw_kafka_source_of(face)->rooms = rooms;
}

static bool
is_ready(const struct lw_source *face)
{
    const struct lw_kafka_source *source = (const void *)face;
    return source->ready.count > 0 && !source->broker->is_stopping;
}

static bool
lag(struct lw_source *face, struct lw_lag *ret_lag)
{
    return lw_kafka_source_lag(lw_kafka_source_of(face), ret_lag);
}

static size_t
receive(struct lw_source *face, struct lw_message *const out[], size_t n, uint64_t bytes_max,
        bool *ret_has_more)
{
    struct lw_kafka_source *source = lw_kafka_source_of(face);
    if (source->broker->is_stopping) {
        *ret_has_more = false;
        return 0;
    }
    return lw_kafka_source_receive(source, out, n, bytes_max, ret_has_more);
}

static void
settle(struct lw_source *face, const struct lw_settle_item *items, size_t n)
{
    (void)face, (void)items, (void)n;
    lw_assert_failed("a Kafka source settles by position", __FILE__, __LINE__);
}

static enum lw_status
commit(struct lw_broker *base, const struct lw_commit_item *items, size_t n)
{
    return lw_kafka_commit(lw_kafka_broker_of(base), items, n);
}

static size_t
publish(struct lw_broker *base, struct lw_publication *const items[], size_t n)
{
    return lw_kafka_producer_publish(&lw_kafka_broker_of(base)->producer, items, n);
}

static void
release(struct lw_broker *base, struct lw_message *const messages[], size_t n)
{
    lw_kafka_message_release(lw_kafka_broker_of(base), messages, n);
}

static bool
detach(struct lw_broker *base, struct lw_message *message)
{
    return lw_kafka_message_detach(lw_kafka_broker_of(base), message);
}

static const struct lw_header *
headers(struct lw_broker *base, const struct lw_message *message, size_t *ret_count)
{
    (void)base;
    return lw_kafka_message_headers(message, ret_count);
}

static void
times(struct lw_broker *base, const struct lw_message *message,
      struct lw_message_times *ret_times)
{
    (void)base;
    lw_kafka_message_times(message, ret_times);
}

static void
revoke_done(struct lw_broker *base, uint64_t generation)
{
    struct lw_kafka_broker *broker = lw_kafka_broker_of(base);
    for (struct lw_list *at = broker->clients.next; at != &broker->clients; at = at->next) {
        lw_kafka_assignment_done(CLIENT_AT(at), generation);
    }
}

/* -- Ending ------------------------------------------------------------------------------------------ */

static void
stop_sources(struct lw_broker *base)
{
    struct lw_kafka_broker *broker = lw_kafka_broker_of(base);
    broker->is_stopping = true;
    lw_timers_disarm(&base->host->timers, &broker->start_timer);
    for (struct lw_list *at = broker->clients.next; at != &broker->clients; at = at->next) {
        lw_kafka_client_stop(CLIENT_AT(at));
    }
}

static bool
are_clients_gone(const struct lw_kafka_broker *broker)
{
    for (struct lw_list *at = broker->clients.next; at != &broker->clients; at = at->next) {
        if (CLIENT_AT(at)->state != LW_KAFKA_CLIENT_GONE) {
            return false;
        }
    }
    return true;
}

/* Ends the callbacks; what they posted before is read before the letter that is posted here. */
static void
silence(struct lw_kafka_broker *broker)
{
    for (struct lw_list *at = broker->sources.next; at != &broker->sources; at = at->next) {
        struct lw_kafka_source *source = LW_CONTAINER(at, struct lw_kafka_source, link);
        for (uint32_t i = 0; i < source->slot_count; i++) {
            lw_kafka_partition_silence(source->slots[i]);
        }
    }
    for (struct lw_list *at = broker->clients.next; at != &broker->clients; at = at->next) {
        if (CLIENT_AT(at)->queue) {
            rd_kafka_queue_cb_event_enable(CLIENT_AT(at)->queue, NULL, NULL);
        }
    }
    lw_kafka_producer_silence(&broker->producer);
    broker->is_silenced = true;
    (void)lw_host_post(broker->base.host, &broker->closed_letter);
}

void
lw_kafka_broker_continue_close(struct lw_kafka_broker *broker)
{
    if (broker->phase == LW_KAFKA_CLOSING && !broker->is_silenced && are_clients_gone(broker) &&
        lw_kafka_producer_is_empty(&broker->producer)) {
        silence(broker);
    }
}

static void
on_closed(struct lw_letter *letter)
{
    struct lw_kafka_broker *broker = LW_CONTAINER(letter, struct lw_kafka_broker,
                                                  closed_letter);
    struct lw_event event = { .kind = LW_EVENT_CLOSED };
    broker->phase = LW_KAFKA_CLOSED;
    lw_events_push_reserved(&broker->events, &event);
}

static void
close_broker(struct lw_broker *base)
{
    struct lw_kafka_broker *broker = lw_kafka_broker_of(base);
    if (broker->phase >= LW_KAFKA_CLOSING) {
        return;
    }
    if (!lw_events_reserve(&broker->events, 1)) {
        lw_host_log(base->host, LW_LOG_ERROR, "kafka.no_memory",
                    "no memory to end the broker in order", "broker=%s", broker->name);
        return;
    }
    stop_sources(base);
    broker->phase = LW_KAFKA_CLOSING;
    lw_timers_disarm(&base->host->timers, &broker->reach_timer);
    lw_kafka_producer_close(&broker->producer);
    lw_kafka_broker_continue_close(broker);
}

static void
destroy(struct lw_broker *base)
{
    if (!base) {
        return;
    }
    struct lw_kafka_broker *broker = lw_kafka_broker_of(base);
    lw_assert(broker->live == 0); /* the client would wait for ever for the last message */
    lw_kafka_spent_flush(&broker->spent);
    lw_kafka_producer_deinit(&broker->producer);
    while (!lw_list_is_empty(&broker->clients)) {
        lw_kafka_client_destroy(CLIENT_AT(lw_list_first(&broker->clients)));
    }
    while (!lw_list_is_empty(&broker->sources)) {
        lw_kafka_source_destroy(
            LW_CONTAINER(lw_list_first(&broker->sources), struct lw_kafka_source, link));
    }
    lw_kafka_token_destroy(broker->token);
    lw_events_deinit(&broker->events);
    lw_properties_deinit(&broker->properties);
    lw_free(broker->addresses);
    lw_free(broker->url);
    lw_free(broker->name);
    if (!broker->is_leaked) {
        lw_free(broker);
    }
}

static bool
default_topic(enum lw_topic_kind kind, const char *topic, const char *subscription, char *out,
              size_t size)
{
    (void)subscription;
    const char *suffix = kind == LW_TOPIC_RETRY ? ".retry" : ".dlq";
    int length = snprintf(out, size, "%s%s", topic, suffix);
    return length > 0 && (size_t)length < size && length <= 249;
}

/* -- The table ---------------------------------------------------------------------------------------- */

static const struct lw_broker_ops kafka_ops = {
    .scheme = "kafka",
    .create = create,
    .subscribe = subscribe,
    .unsubscribe = unsubscribe,
    .start = start,
    .events = events,
    .demand = demand,
    .is_ready = is_ready,
    .receive = receive,
    .limit_slots = limit_slots,
    .settle = settle,
    .commit = commit,
    .publish = publish,
    .release = release,
    .detach = detach,
    .headers = headers,
    .times = times,
    .revoke_done = revoke_done,
    .stop_sources = stop_sources,
    .close = close_broker,
    .destroy = destroy,
    .default_topic = default_topic,
    .describe_topics = lw_kafka_admin_describe,
    .create_topics = lw_kafka_admin_create,
    .lag = lag,
};

const struct lw_broker_ops *
lw_kafka_broker_ops(void)
{
    return &kafka_ops;
}

const char *
lw_kafka_client_version(void)
{
    return rd_kafka_version_str();
}

const char *
lw_kafka_broker_statistics(const struct lw_broker *base, const char *group)
{
    const struct lw_kafka_broker *broker = (const void *)base;
    if (!group) {
        return broker->producer.statistics;
    }
    for (struct lw_list *at = broker->clients.next; at != &broker->clients; at = at->next) {
        if (strcmp(CLIENT_AT(at)->group, group) == 0) {
            return CLIENT_AT(at)->statistics;
        }
    }
    return NULL;
}
