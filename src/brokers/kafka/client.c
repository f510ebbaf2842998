/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One consumer of the client library per (cluster, group): making it, serving its queue, ending
 * it. All that it says comes through one queue as events; the library's callback only posts a
 * letter. Leaving never blocks: a pending revoke is answered first, then the close runs by
 * events, and after 5 s it is given up (the client is then destroyed without a goodbye).
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "brokers/kafka/kafka.h"

enum { EVENTS_PER_LETTER = 1000 };

/* -- Making -------------------------------------------------------------------------------------- */

static void on_letter(struct lw_letter *letter);
static void on_poll_due(struct lw_timer *timer, uint64_t now);
static void on_stop_due(struct lw_timer *timer, uint64_t now);
static void on_missing_due(struct lw_timer *timer, uint64_t now);
static void say_group_error(struct lw_kafka_client *client, rd_kafka_resp_err_t code,
                            const char *reason, bool is_fatal);

struct lw_kafka_client *
lw_kafka_client_create(struct lw_kafka_broker *broker, const char *group)
{
    struct lw_kafka_client *client = lw_alloc(sizeof *client);
    if (!client) {
        return NULL;
    }
    client->broker = broker;
    client->commit_index = -1;
    client->group = lw_copy_text(group);
    lw_list_init(&client->sources);
    lw_list_init(&client->link);
    lw_letter_init(&client->letter, on_letter);
    lw_timer_init(&client->poll_timer, on_poll_due);
    lw_timer_init(&client->stop_timer, on_stop_due);
    lw_timer_init(&client->missing_timer, on_missing_due);
    lw_kafka_assignment_init(client);
    lw_kafka_commit_init(client);
    lw_kafka_companions_init(client);
    lw_list_push(&broker->clients, &client->link);
    if (!client->group) {
        lw_kafka_client_destroy(client);
        return NULL;
    }
    return client;
}

struct lw_kafka_source *
lw_kafka_client_find(struct lw_kafka_client *client, const char *topic)
{
    for (struct lw_list *at = client->sources.next; at != &client->sources; at = at->next) {
        struct lw_kafka_source *source = LW_CONTAINER(at, struct lw_kafka_source, client_link);
        if (strcmp(source->topic, topic) == 0) {
            return source;
        }
    }
    return NULL;
}

struct lw_kafka_partition *
lw_kafka_client_find_partition(struct lw_kafka_client *client, const char *topic,
                               int32_t number)
{
    struct lw_kafka_partition *partition = NULL;
    struct lw_list *at = client->sources.next;
    for (; !partition && at != &client->sources; at = at->next) {
        struct lw_kafka_source *source = LW_CONTAINER(at, struct lw_kafka_source, client_link);
        partition = lw_kafka_partition_find(source, topic, number);
    }
    return partition;
}

void
lw_kafka_client_each(struct lw_kafka_client *client, lw_kafka_partition_fn fn, void *user)
{
    for (struct lw_list *at = client->sources.next; at != &client->sources; at = at->next) {
        lw_kafka_source_each(LW_CONTAINER(at, struct lw_kafka_source, client_link), fn, user);
    }
}

static int64_t
number_of(const rd_kafka_conf_t *conf, const char *name, int64_t otherwise)
{
    char value[64];
    size_t size = sizeof value;
    int64_t number = otherwise;
    if (rd_kafka_conf_get(conf, name, value, &size) == RD_KAFKA_CONF_OK) {
        (void)lw_text_to_int(value, &number);
    }
    return number;
}

/* What was given by the user for the prefetch of a queue wins over our share of the budget. */
static enum lw_status
set_prefetch(struct lw_kafka_client *client, rd_kafka_conf_t *conf, int64_t kbytes,
             struct lw_error *ret_error)
{
    static const char name[] = "queued.max.messages.kbytes";
    if (lw_properties_get(&client->properties, name) ||
        lw_properties_get(&client->broker->properties, name)) {
        return LW_STATUS_OK;
    }
    char value[32];
    char reason[256];
    (void)snprintf(value, sizeof value, "%lld", (long long)kbytes);
    if (rd_kafka_conf_set(conf, name, value, reason, sizeof reason) != RD_KAFKA_CONF_OK) {
        return lw_error_set(ret_error, LW_STATUS_INTERNAL, "", "%s", reason);
    }
    return LW_STATUS_OK;
}

/*
 * From 2.1.0 on a batch that ends with the end of a partition leaves the client one offset too far,
 * and after a cooperative rebalance it fetches there: out of range, or past a message. Without
 * these events only the tail behind control records stays uncommitted.
 */
static void
renounce_ends(rd_kafka_conf_t *conf)
{
    char reason[256];
    if (rd_kafka_version() >= 0x02010000) {
        (void)rd_kafka_conf_set(conf, "enable.partition.eof", "false", reason, sizeof reason);
    }
}

static rd_kafka_conf_t *
configure(struct lw_kafka_client *client, int64_t kbytes, struct lw_error *ret_error)
{
    struct lw_kafka_broker *broker = client->broker;
    rd_kafka_conf_t *conf = lw_kafka_settings_create(
        broker, LW_KAFKA_ROLE_CONSUMER, client->group, &client->properties, ret_error);
    if (!conf) {
        return NULL;
    }
    if (set_prefetch(client, conf, kbytes, ret_error) != LW_STATUS_OK ||
        lw_kafka_broker_observe(broker, conf, client) != LW_STATUS_OK) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    char strategy[256] = "";
    size_t size = sizeof strategy;
    (void)rd_kafka_conf_get(conf, "partition.assignment.strategy", strategy, &size);
    client->is_cooperative = strstr(strategy, "cooperative") != NULL;
    if (client->is_cooperative) {
        renounce_ends(conf);
    }
    client->max_poll_interval_ms = number_of(conf, "max.poll.interval.ms", 300000);
    rd_kafka_conf_set_opaque(conf, client);
    return conf;
}

static void
on_queue_filled(rd_kafka_t *rk, void *opaque)
{
    (void)rk;
    struct lw_kafka_client *client = opaque;
    (void)lw_host_post(client->broker->base.host, &client->letter);
}

/* Logs, errors, rebalances and answers all come by the consumer's queue. */
static void
join_queue(struct lw_kafka_client *client)
{
    (void)rd_kafka_poll_set_consumer(client->rk);
    client->queue = rd_kafka_queue_get_consumer(client->rk);
    (void)rd_kafka_set_log_queue(client->rk, client->queue);
    rd_kafka_queue_cb_event_enable(client->queue, on_queue_filled, client);
    (void)lw_host_post(client->broker->base.host, &client->letter);
}

static enum lw_status
subscribe(struct lw_kafka_client *client, struct lw_error *ret_error)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    for (struct lw_list *at = client->sources.next; at != &client->sources; at = at->next) {
        struct lw_kafka_source *source = LW_CONTAINER(at, struct lw_kafka_source, client_link);
        rd_kafka_topic_partition_list_add(list, source->topic, RD_KAFKA_PARTITION_UA);
    }
    rd_kafka_resp_err_t code = rd_kafka_subscribe(client->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return lw_error_set(ret_error, lw_kafka_error_status(code), "E0507",
                            "group \"%s\" cannot subscribe at broker \"%s\": %s", client->group,
                            client->broker->name, rd_kafka_err2str(code));
    }
    return LW_STATUS_OK;
}

static void
arm_poll(struct lw_kafka_client *client)
{
    struct lw_host *host = client->broker->base.host;
    uint64_t period_ms = (uint64_t)client->max_poll_interval_ms / 3;
    lw_timers_arm(&host->timers, &client->poll_timer, host->now + period_ms * LW_MS);
}

enum lw_status
lw_kafka_client_start(struct lw_kafka_client *client, int64_t kbytes,
                      struct lw_error *ret_error)
{
    rd_kafka_conf_t *conf = configure(client, kbytes, ret_error);
    if (!conf) {
        return ret_error ? ret_error->status : LW_STATUS_CONFIG;
    }
    char reason[512];
    client->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason, sizeof reason);
    if (!client->rk) {
        rd_kafka_conf_destroy(conf);
        return lw_error_set(ret_error, LW_STATUS_CONFIG, "E0410",
                            "the Kafka client cannot be made: %s", reason);
    }
    client->state = LW_KAFKA_CLIENT_MEMBER;
    client->served_at = client->broker->base.host->now;
    join_queue(client);
    lw_kafka_companions_prepare(client);
    arm_poll(client);
    return subscribe(client, ret_error);
}

void
lw_kafka_client_rejoin(struct lw_kafka_client *client)
{
    struct lw_error error;
    if (client->is_stop_wanted) {
        return;
    }
    if (subscribe(client, &error) != LW_STATUS_OK) {
        say_group_error(client, RD_KAFKA_RESP_ERR__FAIL, error.message, false);
    }
}

/* -- Serving -------------------------------------------------------------------------------------- */

static enum lw_log_level
level_of(int severity)
{
    return severity <= 3 ? LW_LOG_WARN : severity <= 6 ? LW_LOG_INFO : LW_LOG_DEBUG;
}

/* What comes as an error event too is not said twice. */
static bool
is_doubled(const char *facility)
{
    return strcmp(facility, "FAIL") == 0 || strcmp(facility, "ERROR") == 0;
}

static void
on_log(struct lw_kafka_broker *broker, rd_kafka_event_t *event, const char *who)
{
    const char *facility = "";
    const char *text = "";
    int severity = 7;
    if (rd_kafka_event_log(event, &facility, &text, &severity) != 0) {
        return;
    }
    if (strcmp(facility, "FAIL") == 0) {
        lw_kafka_error_on_log(broker, text);
    }
    lw_host_log(broker->base.host, is_doubled(facility) ? LW_LOG_DEBUG : level_of(severity),
                "kafka.client", text, "broker=%s client=%s facility=%s", broker->name, who,
                facility);
}

bool
lw_kafka_client_on_common(struct lw_kafka_broker *broker, rd_kafka_event_t *event,
                          char **statistics, const char *who)
{
    int type = rd_kafka_event_type(event);
    if (type == RD_KAFKA_EVENT_LOG) {
        on_log(broker, event, who);
        return true;
    }
    if (type == RD_KAFKA_EVENT_STATS) {
        char *copy = lw_copy_text(rd_kafka_event_stats(event));
        if (copy) {
            lw_free(*statistics);
            *statistics = copy;
        }
        return true;
    }
    return false;
}

/* The client names the topic only in its text: "Subscribed topic not available: NAME: why". */
static bool
is_about(const char *text, const char *topic)
{
    const char *at = strstr(text, ": ");
    size_t length = strlen(topic);
    return at && strncmp(at + 2, topic, length) == 0 && strncmp(at + 2 + length, ": ", 2) == 0;
}

static void
say_source_error(struct lw_kafka_source *source, rd_kafka_resp_err_t code, const char *reason)
{
    struct lw_kafka_client *client = source->client;
    struct lw_error error;
    const struct lw_kafka_failure failure = { source->topic, client->group, code, reason };
    lw_kafka_error_topic(client->broker, &failure, &error);
    source->is_missing = error.status == LW_STATUS_NOT_FOUND;
    if (source->is_missing) {
        struct lw_host *host = client->broker->base.host;
        lw_timers_arm(&host->timers, &client->missing_timer,
                      host->now + LW_KAFKA_MISSING_POLL_NS);
    }
    lw_kafka_source_fail(source, &error);
}

/* An error of the group is told to all of its sources, one of a topic to its own. */
static void
say_group_error(struct lw_kafka_client *client, rd_kafka_resp_err_t code, const char *reason,
                bool is_fatal)
{
    for (struct lw_list *at = client->sources.next; at != &client->sources; at = at->next) {
        struct lw_kafka_source *source = LW_CONTAINER(at, struct lw_kafka_source, client_link);
        struct lw_error error;
        const struct lw_kafka_failure failure = { source->topic, client->group, code, reason };
        lw_kafka_error_topic(client->broker, &failure, &error);
        error.is_fatal = is_fatal;
        lw_kafka_source_fail(source, &error);
    }
}

static void
on_error(struct lw_kafka_client *client, rd_kafka_event_t *event)
{
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    const char *reason = rd_kafka_event_error_string(event);
    if (rd_kafka_event_error_is_fatal(event)) {
        say_group_error(client, code, reason, true);
        return;
    }
    for (struct lw_list *at = client->sources.next; at != &client->sources; at = at->next) {
        struct lw_kafka_source *source = LW_CONTAINER(at, struct lw_kafka_source, client_link);
        if (is_about(reason, source->topic)) {
            say_source_error(source, code, reason);
            return;
        }
    }
    if (code == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED) {
        say_group_error(client, code, reason, false);
        return;
    }
    if (code == RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED) {
        lw_host_log(client->broker->base.host, LW_LOG_ERROR, "kafka.max_poll",
                    "the loop was stuck longer than max.poll.interval.ms and left the group",
                    "broker=%s group=%s", client->broker->name, client->group);
        return;
    }
    lw_kafka_error_on_event(client->broker, code, reason, true);
}

/* A message here had no queue of its own: it is fetched again, never dropped. */
static void
on_stray(struct lw_kafka_client *client, rd_kafka_event_t *event)
{
    const rd_kafka_message_t *message = rd_kafka_event_message_next(event);
    struct lw_kafka_partition *partition = NULL;
    if (message && message->rkt) {
        partition = lw_kafka_client_find_partition(client, rd_kafka_topic_name(message->rkt),
                                                   message->partition);
    }
    if (partition && !message->err) {
        lw_kafka_partition_rewind(partition, message->offset);
    }
}

static void
on_event(struct lw_kafka_client *client, rd_kafka_event_t *event)
{
    if (lw_kafka_client_on_common(client->broker, event, &client->statistics, client->group)) {
        rd_kafka_event_destroy(event);
        return;
    }
    switch (rd_kafka_event_type(event)) {
    case RD_KAFKA_EVENT_REBALANCE:
        lw_kafka_assignment_on_event(client, event); /* keeps it while it is unanswered */
        return;
    case RD_KAFKA_EVENT_OFFSET_COMMIT:
        lw_kafka_commit_on_event(client, event);
        break;
    case RD_KAFKA_EVENT_LISTCONSUMERGROUPOFFSETS_RESULT:
        lw_kafka_companions_on_offsets(client, event);
        break;
    case RD_KAFKA_EVENT_ERROR:
        on_error(client, event);
        break;
    case RD_KAFKA_EVENT_FETCH:
        on_stray(client, event);
        break;
    case RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH:
        lw_kafka_token_refresh(client->broker->token, client->rk);
        break;
    default:
        break;
    }
    rd_kafka_event_destroy(event);
}

/* Serves the queue; any poll keeps the membership. */
static void
serve(struct lw_kafka_client *client)
{
    int served = 0;
    rd_kafka_event_t *event = NULL;
    while (served < EVENTS_PER_LETTER && (event = rd_kafka_queue_poll(client->queue, 0))) {
        on_event(client, event);
        served++;
    }
    if (served == EVENTS_PER_LETTER) {
        (void)lw_host_post(client->broker->base.host, &client->letter);
    }
    client->served_at = client->broker->base.host->now;
    if (client->state == LW_KAFKA_CLIENT_MEMBER) {
        arm_poll(client);
        lw_kafka_stall_check(client);
    }
    if (client->is_stop_wanted) {
        lw_kafka_client_continue_stop(client);
    }
}

static void
on_letter(struct lw_letter *letter)
{
    struct lw_kafka_client *client = LW_CONTAINER(letter, struct lw_kafka_client, letter);
    if (client->state != LW_KAFKA_CLIENT_NEW && client->state != LW_KAFKA_CLIENT_GONE) {
        serve(client);
    }
}

static void
on_poll_due(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    serve(LW_CONTAINER(timer, struct lw_kafka_client, poll_timer));
}

/*
 * Asks for the topics that were missing: the answer is metadata, with which the client notices
 * that a subscribed topic exists now. Time-out 0 does not wait for it.
 */
static void
on_missing_due(struct lw_timer *timer, uint64_t now)
{
    struct lw_kafka_client *client = LW_CONTAINER(timer, struct lw_kafka_client, missing_timer);
    bool is_any = false;
    for (struct lw_list *at = client->sources.next; at != &client->sources; at = at->next) {
        struct lw_kafka_source *source = LW_CONTAINER(at, struct lw_kafka_source, client_link);
        if (!source->is_missing) {
            continue;
        }
        is_any = true;
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, source->topic, 0)->offset = RD_KAFKA_OFFSET_END;
        (void)rd_kafka_offsets_for_times(client->rk, list, 0);
        rd_kafka_topic_partition_list_destroy(list);
    }
    if (is_any && client->state == LW_KAFKA_CLIENT_MEMBER) {
        lw_timers_arm(&client->broker->base.host->timers, &client->missing_timer,
                      now + LW_KAFKA_MISSING_POLL_NS);
    }
}

/* -- Leaving ---------------------------------------------------------------------------------------- */

static void
enter_gone(struct lw_kafka_client *client)
{
    struct lw_timers *timers = &client->broker->base.host->timers;
    lw_timers_disarm(timers, &client->poll_timer);
    lw_timers_disarm(timers, &client->stop_timer);
    lw_timers_disarm(timers, &client->missing_timer);
    lw_timers_disarm(timers, &client->refresh_timer);
    lw_timers_disarm(timers, &client->revoke_timer);
    client->state = LW_KAFKA_CLIENT_GONE;
    lw_kafka_commit_abandon(client, LW_STATUS_CLOSED);
    lw_kafka_broker_continue_close(client->broker);
}

/* A cooperative client before 2.3.0 may abort when it is closed before its first assignment. */
static bool
may_close(const struct lw_kafka_client *client)
{
    if (client->revoke) {
        return false;
    }
    bool is_fragile = client->is_cooperative && rd_kafka_version() < 0x02030000;
    return !is_fragile || client->was_assigned ||
           client->broker->base.host->now >= client->stop_deadline;
}

static void
close_consumer(struct lw_kafka_client *client)
{
    rd_kafka_error_t *error = rd_kafka_consumer_close_queue(client->rk, client->queue);
    client->state = LW_KAFKA_CLIENT_LEAVING;
    if (error) {
        rd_kafka_error_destroy(error);
        client->is_abandoned = true;
    }
}

void
lw_kafka_client_continue_stop(struct lw_kafka_client *client)
{
    bool is_late = client->broker->base.host->now >= client->stop_deadline;
    if (client->state == LW_KAFKA_CLIENT_MEMBER && may_close(client)) {
        close_consumer(client);
    }
    if (client->state != LW_KAFKA_CLIENT_LEAVING) {
        return;
    }
    if (rd_kafka_consumer_closed(client->rk) && !client->revoke) {
        enter_gone(client);
    } else if (is_late || client->is_abandoned) {
        lw_host_log(client->broker->base.host, LW_LOG_WARN, "kafka.close_abandoned",
                    "the group could not be left in time; the cluster will notice by itself",
                    "broker=%s group=%s", client->broker->name, client->group);
        client->is_abandoned = true;
        lw_kafka_assignment_force(client);
        enter_gone(client);
    }
}

static void
on_stop_due(struct lw_timer *timer, uint64_t now)
{
    struct lw_kafka_client *client = LW_CONTAINER(timer, struct lw_kafka_client, stop_timer);
    if (now >= client->stop_deadline && client->revoke) {
        lw_kafka_assignment_force(client);
    }
    serve(client);
    if (client->state != LW_KAFKA_CLIENT_GONE) {
        lw_timers_arm(&client->broker->base.host->timers, timer, now + LW_KAFKA_CLOSE_POLL_NS);
    }
}

void
lw_kafka_client_stop(struct lw_kafka_client *client)
{
    if (client->is_stop_wanted) {
        return;
    }
    client->is_stop_wanted = true;
    if (client->state == LW_KAFKA_CLIENT_NEW) {
        enter_gone(client);
        return;
    }
    struct lw_host *host = client->broker->base.host;
    /* A revoke that is awaited has its own 5 s, then the close has as many. */
    client->stop_deadline = host->now + 2 * LW_KAFKA_WAIT_NS;
    lw_timers_arm(&host->timers, &client->stop_timer, host->now + LW_KAFKA_CLOSE_POLL_NS);
    lw_kafka_client_continue_stop(client);
}

/*
 * -- Ending ------------------------------------------------------------------------------------------
 *
 * A consumer whose close was given up (the cluster is gone, a commit hangs in it) would hold
 * rd_kafka_destroy until its session ends, 45 s. It is left to itself instead, together with the
 * memory that its threads look at; mostly the process ends now anyway.
 */

static void
destroy_handles(struct lw_kafka_client *client)
{
    for (struct lw_list *at = client->sources.next; at != &client->sources; at = at->next) {
        lw_kafka_source_forget_tiers(LW_CONTAINER(at, struct lw_kafka_source, client_link));
    }
    rd_kafka_queue_destroy(client->queue);
    rd_kafka_destroy(client->rk);
}

void
lw_kafka_client_destroy(struct lw_kafka_client *client)
{
    if (!client) {
        return;
    }
    lw_list_remove(&client->link);
    if (client->rk && client->broker->token) {
        lw_kafka_token_forget(client->broker->token, client->rk);
    }
    if (client->is_abandoned) {
        client->broker->is_leaked = true;
        return;
    }
    if (client->rk) {
        destroy_handles(client);
    }
    lw_list_remove(&client->sources); /* they are destroyed later */
    lw_properties_deinit(&client->properties);
    lw_free(client->statistics);
    lw_free(client->group);
    lw_free(client);
}
