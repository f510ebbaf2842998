/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a stream out of subscription options: every default is resolved here, against the
 * capabilities of its broker, so that the path of a message never looks at an option.
 */
#include "dispatcher/stream.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "dispatcher/dispatcher.h"
#include "dispatcher/task.h"
#include "policy/topic_names.h"

#define TOPIC_MAX 512
#define PRIORITY_WINDOW 1

/* -- windows and limits ---------------------------------------------------------------------- */

static void
init_window(struct lw_stream *stream, const struct lw_subscription_options *options)
{
    struct lw_window *window = &stream->subscription.window;
    uint32_t maximum = options->receiver_queue_size;
    switch (options->profile) {
    case LW_PROFILE_ADAPTIVE:
        lw_window_init(window, 1, maximum);
        return;
    case LW_PROFILE_PRIORITY:
        lw_window_init(window, PRIORITY_WINDOW, PRIORITY_WINDOW);
        return;
    case LW_PROFILE_THROUGHPUT:
    case LW_PROFILE_LOW_LATENCY:
    case LW_PROFILE_CONSTRAINED:
        lw_window_init(window, maximum, maximum);
        return;
    }
}

static void
init_subscription(struct lw_stream *stream, const struct lw_subscription_options *options,
                  struct lw_engine *engine)
{
    struct lw_subscription *subscription = &stream->subscription;
    const struct lw_broker_caps *caps = &stream->link->broker->caps;
    lw_subscription_init(subscription, stream->dispatcher->stream_count);
    subscription->topic = stream->topic;
    subscription->name = stream->name;
    subscription->pipeline = stream->pipeline;
    subscription->priority = options->priority;
    lw_subscription_set_ordering(
        subscription,
        options->ordering == LW_ORDERING_DEFAULT ? caps->default_ordering : options->ordering,
        options->keyless == LW_KEYLESS_DEFAULT ? caps->default_keyless : options->keyless);
    subscription->concurrency = options->concurrency;
    subscription->engine = engine;
    subscription->broker = stream->link->broker;
    subscription->dispatcher = stream->dispatcher;
    subscription->view = &lw_dispatcher_view;
    lw_limits_init(&subscription->limits, options->max_in_flight, options->max_in_flight_bytes);
    init_window(stream, options);
    if (stream->is_on_demand) {
        lw_window_set_on_demand(&subscription->window);
    }
}

/* -- policy ------------------------------------------------------------------------------------ */

static struct lw_backoff
backoff_of(const struct lw_backoff_options *options)
{
    return (struct lw_backoff){ options->initial_ms, options->multiplier, options->max_ms,
                                options->jitter_ms };
}

/*
 * Redelivery on an ordered lane of a broker without nack means trying again in place. Where a
 * retry is in place, a message that was given back would let later ones of its key pass.
 */
static enum lw_on_error
resolve_on_error(const struct lw_stream *stream, enum lw_on_error wanted)
{
    const struct lw_broker_caps *caps = &stream->link->broker->caps;
    bool can_nack = caps->nack != LW_NACK_NONE;
    if (wanted == LW_ON_ERROR_DEFAULT) {
        return can_nack && !caps->retries_in_place ? LW_ON_ERROR_REDELIVER : LW_ON_ERROR_RETRY;
    }
    if (wanted == LW_ON_ERROR_REDELIVER && !can_nack) {
        return LW_ON_ERROR_RETRY;
    }
    return wanted;
}

static void
init_policy(struct lw_stream *stream, const struct lw_subscription_options *options)
{
    const struct lw_broker_caps *caps = &stream->link->broker->caps;
    const struct lw_retry_options *retry = &options->retry;
    bool is_default_in_place = caps->retries_in_place && !stream->retry_topic;
    stream->policy = (struct lw_policy){
        .is_in_place = retry->in_place == LW_DEFAULT ? is_default_in_place
                                                     : retry->in_place == LW_YES,
        .max_attempts = retry->max_attempts,
        .in_place_backoff = backoff_of(&retry->in_place_backoff),
        .has_retry_topic = stream->retry_topic != NULL,
        .max_retries = retry->max_retries,
        .backoff = backoff_of(&retry->backoff),
        .can_nack = caps->nack != LW_NACK_NONE,
        .on_error = resolve_on_error(stream, options->on_error),
        .on_exhausted = options->on_exhausted,
        .on_undecodable = options->on_undecodable,
        .has_dead_letter = stream->dead_letter_topic != NULL,
        .reply_on_oversize = options->reply.on_oversize,
        .errors = stream->errors,
        .error_count = options->error_count,
    };
}

static void
init_tiers(struct lw_stream *stream, const struct lw_retry_options *retry)
{
    if (!stream->retry_topic || stream->link->broker->caps.has_native_delay) {
        return;
    }
    if (retry->tier_count > 0) {
        size_t count = retry->tier_count < LW_TIERS_MAX ? retry->tier_count : LW_TIERS_MAX;
        memcpy(stream->tiers_ms, retry->tiers_ms, count * sizeof(*stream->tiers_ms));
        stream->tier_count = count;
    } else {
        struct lw_backoff backoff = backoff_of(&retry->backoff);
        stream->tier_count = lw_backoff_steps(&backoff, stream->tiers_ms, LW_TIERS_MAX);
    }
    stream->reads_tiers = !retry->is_external;
}

/* -- topics ------------------------------------------------------------------------------------- */

static enum lw_status
expand(const char *pattern, const char *topic, const char *what, char **ret_text,
       struct lw_error *ret_error)
{
    char name[TOPIC_MAX];
    if (!lw_topic_expand(pattern, topic, name, sizeof(name))) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "E0117",
                            "the %s topic \"%s\" of %s is empty or too long", what, pattern,
                            topic);
    }
    *ret_text = lw_copy_text(name);
    return *ret_text ? LW_STATUS_OK : LW_STATUS_NO_MEMORY;
}

static enum lw_status
init_dead_letter(struct lw_stream *stream, const struct lw_subscription_options *options,
                 struct lw_error *ret_error)
{
    const struct lw_dead_letter_options *dead = &options->dead_letter;
    stream->payload = dead->payload;
    stream->dead_letter_link = stream->link;
    if (dead->is_off) {
        return LW_STATUS_OK;
    }
    if (dead->broker) {
        stream->dead_letter_link = lw_dispatcher_find_link(stream->dispatcher, dead->broker);
    }
    if (!stream->dead_letter_link) {
        return lw_error_set(ret_error, LW_STATUS_NOT_FOUND, "E0201",
                            "no broker is called \"%s\"", dead->broker);
    }
    if (dead->topic) {
        return expand(dead->topic, stream->topic, "dead-letter", &stream->dead_letter_topic,
                      ret_error);
    }
    char name[TOPIC_MAX];
    if (!stream->link->broker->ops->default_topic(LW_TOPIC_DEAD_LETTER, stream->topic,
                                                  stream->name, name, sizeof(name))) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "E0117",
                            "no dead-letter topic can be named after \"%s\"", stream->topic);
    }
    stream->dead_letter_topic = lw_copy_text(name);
    return stream->dead_letter_topic ? LW_STATUS_OK : LW_STATUS_NO_MEMORY;
}

static enum lw_status
init_reply(struct lw_stream *stream, const struct lw_subscription_options *options,
           struct lw_error *ret_error)
{
    const struct lw_reply_options *reply = &options->reply;
    stream->reply_link = stream->link;
    stream->reply_key = lw_copy_text(reply->key ? reply->key : "keep");
    if (!stream->reply_key) {
        return LW_STATUS_NO_MEMORY;
    }
    if (reply->broker) {
        stream->reply_link = lw_dispatcher_find_link(stream->dispatcher, reply->broker);
    }
    if (!stream->reply_link) {
        return lw_error_set(ret_error, LW_STATUS_NOT_FOUND, "E0201",
                            "no broker is called \"%s\"", reply->broker);
    }
    return reply->topic
               ? expand(reply->topic, stream->topic, "reply", &stream->reply_topic, ret_error)
               : LW_STATUS_OK;
}

static enum lw_status
init_allow(struct lw_stream *stream, const struct lw_dead_letter_options *dead)
{
    if (dead->allow_count == 0) {
        return LW_STATUS_OK;
    }
    stream->allow = lw_alloc_array(dead->allow_count, sizeof(*stream->allow));
    if (!stream->allow) {
        return LW_STATUS_NO_MEMORY;
    }
    for (; stream->allow_count < dead->allow_count; stream->allow_count++) {
        stream->allow[stream->allow_count] = lw_copy_text(dead->allow[stream->allow_count]);
        if (!stream->allow[stream->allow_count]) {
            return LW_STATUS_NO_MEMORY;
        }
    }
    return LW_STATUS_OK;
}

static enum lw_status
init_names(struct lw_stream *stream, const struct lw_subscription_options *options)
{
    stream->topic = lw_copy_text(options->topic);
    stream->name = lw_copy_text(options->subscription);
    stream->pipeline = lw_copy_text(options->pipeline ? options->pipeline : options->topic);
    bool is_ok = stream->topic && stream->name && stream->pipeline;
    if (is_ok && options->error_count > 0) {
        stream->errors = lw_copy_bytes(options->errors,
                                       options->error_count * sizeof(*options->errors));
        is_ok = stream->errors != NULL;
    }
    return is_ok ? LW_STATUS_OK : LW_STATUS_NO_MEMORY;
}

/* -- checks --------------------------------------------------------------------------------------- */

static enum lw_status
check(const struct lw_subscription_options *options, struct lw_error *ret_error)
{
    if (!options->topic || !options->topic[0]) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "E0107", "a topic is required");
    }
    if (!options->subscription || !options->subscription[0]) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "E0107",
                            "a subscription (consumer group) is required for topic \"%s\"",
                            options->topic);
    }
    if (options->retry.max_attempts == 0) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "E0105",
                            "max_attempts of topic \"%s\" is 0: at least one run is needed",
                            options->topic);
    }
    if (options->retry.max_retries < -1) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "E0105",
                            "max_retries of topic \"%s\" is below 0", options->topic);
    }
    if (options->max_in_flight == 0 || options->max_in_flight_bytes == 0 ||
        options->receiver_queue_size == 0 || options->max_uncommitted == 0) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "E0105",
                            "a limit of topic \"%s\" is 0: nothing could be received",
                            options->topic);
    }
    return LW_STATUS_OK;
}

static enum lw_status
check_order(const struct lw_stream *stream, const struct lw_retry_options *retry,
            struct lw_error *ret_error)
{
    bool is_ordered = stream->subscription.ordering != LW_ORDERING_NONE;
    if (is_ordered && stream->retry_topic && !retry->allow_overtaking) {
        lw_error_set(ret_error, LW_STATUS_INVALID, "E0307",
                     "a retry topic breaks \"ordering: %s\": later messages of the key would "
                     "overtake the retried one",
                     stream->subscription.ordering == LW_ORDERING_KEY ? "key" : "partition");
        lw_error_help(ret_error, "use \"in_place: true\" to hold the key while it is retried, "
                                 "or \"allow_overtaking: true\" if you accept it");
        return LW_STATUS_INVALID;
    }
    return LW_STATUS_OK;
}

/* -- making ---------------------------------------------------------------------------------------- */

static enum lw_status
fill(struct lw_stream *stream, const struct lw_subscription_options *options,
     struct lw_engine *engine, struct lw_error *ret_error)
{
    enum lw_status status = init_names(stream, options);
    if (status == LW_STATUS_OK && options->retry.topic) {
        status = expand(options->retry.topic, stream->topic, "retry", &stream->retry_topic,
                        ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = init_dead_letter(stream, options, ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = init_reply(stream, options, ret_error);
    }
    if (status == LW_STATUS_OK) {
        status = init_allow(stream, &options->dead_letter);
    }
    if (status != LW_STATUS_OK) {
        return status;
    }
    init_subscription(stream, options, engine);
    init_policy(stream, options);
    init_tiers(stream, &options->retry);
    status = lw_task_init_stream(stream, ret_error);
    return status == LW_STATUS_OK ? check_order(stream, &options->retry, ret_error) : status;
}

/* The turn that this timer makes asks again. */
static void
on_awaited(struct lw_timer *timer, uint64_t now)
{
    (void)timer, (void)now;
}

/* NOLINTBEGIN(readability-function-size): a constructor with its two outputs */
enum lw_status
lw_stream_create(struct lw_dispatcher *dispatcher,
                 const struct lw_subscription_options *options, struct lw_link *link,
                 struct lw_engine *engine, struct lw_stream **ret_stream,
                 struct lw_error *ret_error)
{
    enum lw_status status = check(options, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    struct lw_stream *stream = lw_alloc(sizeof(*stream));
    if (!stream) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a subscription");
    }
    stream->dispatcher = dispatcher;
    stream->link = link;
    stream->batch_max = 1;
    stream->is_on_demand = link->broker->caps.gives_on_demand;
    stream->max_uncommitted = options->max_uncommitted;
    stream->is_retry_external = options->retry.is_external;
    stream->family = link->broker->caps.settlement == LW_SETTLE_POSITION ? LW_HEADERS_KAFKA
                                                                         : LW_HEADERS_PULSAR;
    lw_timer_init(&stream->awaited_timer, on_awaited);
    lw_timer_init(&stream->gather_timer, lw_task_on_timer);
    lw_list_init(&stream->settle_link);
    lw_list_init(&stream->subscription.partitions);
    status = fill(stream, options, engine, ret_error);
    if (status != LW_STATUS_OK) {
        if (status == LW_STATUS_NO_MEMORY) {
            lw_error_set(ret_error, status, "", "no memory for a subscription");
        }
        lw_stream_destroy(stream);
        return status;
    }
    *ret_stream = stream;
    return LW_STATUS_OK;
}
/* NOLINTEND(readability-function-size) */

void
lw_stream_destroy(struct lw_stream *stream)
{
    if (!stream) {
        return;
    }
    lw_timers_disarm(&stream->dispatcher->host->timers, &stream->awaited_timer);
    lw_timers_disarm(&stream->dispatcher->host->timers, &stream->gather_timer);
    struct lw_list *node;
    while ((node = lw_list_first(&stream->subscription.partitions)) != NULL) {
        struct lw_partition *partition = LW_CONTAINER(node, struct lw_partition, link);
        partition->is_ended = true;
        lw_assignment_release(partition);
    }
    for (size_t i = 0; i < stream->allow_count; i++) {
        lw_free(stream->allow[i]);
    }
    lw_free(stream->allow);
    lw_free(stream->errors);
    lw_free(stream->topic);
    lw_free(stream->name);
    lw_free(stream->pipeline);
    lw_free(stream->retry_topic);
    lw_free(stream->dead_letter_topic);
    lw_free(stream->reply_topic);
    lw_free(stream->reply_key);
    lw_free(stream->slots);
    lw_free(stream->rooms);
    lw_free(stream);
}

/* What the client's own options ask for; what was said here by our own names goes first. */
static enum lw_status
take_traits(struct lw_stream *stream, const struct lw_subscription_options *options,
            struct lw_error *ret_error)
{
    const struct lw_broker_ops *ops = stream->link->broker->ops;
    struct lw_source_traits traits = { 0 };
    if (!ops->traits) {
        return LW_STATUS_OK;
    }
    ops->traits(stream->source, &traits);
    if (traits.dead_letter_topic && stream->dead_letter_topic && !options->dead_letter.topic) {
        char *topic = lw_copy_text(traits.dead_letter_topic);
        if (!topic) {
            return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "",
                                "no memory for a subscription");
        }
        lw_free(stream->dead_letter_topic);
        stream->dead_letter_topic = topic;
    }
    stream->policy.redeliveries_max = stream->dead_letter_topic ? traits.redeliveries_max : 0;
    stream->subscription.is_paused = traits.starts_paused;
    stream->ignores_delays = traits.ignores_delays;
    return LW_STATUS_OK;
}

enum lw_status
lw_stream_open(struct lw_stream *stream, const struct lw_subscription_options *options,
               struct lw_error *ret_error)
{
    struct lw_source_options source = {
        .topic = stream->topic,
        .subscription = stream->name,
        .priority = options->priority,
        .receiver_queue_size = options->receiver_queue_size,
        .queue_bytes_max = options->max_in_flight_bytes,
        .properties = options->properties,
        .property_count = options->property_count,
        .retry_topic = stream->tier_count > 0 ? stream->retry_topic : NULL,
        .tiers_ms = stream->tiers_ms,
        .tier_count = stream->tier_count,
        .reads_tiers = stream->reads_tiers,
        .stall_timeout_ms = options->receive_stall_timeout_ms,
    };
    enum lw_status status = stream->link->broker->ops->subscribe(stream->link->broker, &source,
                                                                 &stream->source, ret_error);
    return status == LW_STATUS_OK ? take_traits(stream, options, ret_error) : status;
}

void
lw_stream_close(struct lw_stream *stream)
{
    if (stream->source) {
        stream->link->broker->ops->unsubscribe(stream->source);
        stream->source = NULL;
    }
    lw_stream_destroy(stream);
}

/* -- partitions --------------------------------------------------------------------------------------- */

static bool
reserve_slot(struct lw_stream *stream, uint32_t slot)
{
    if (slot < stream->slot_count) {
        return true;
    }
    uint32_t count = slot + 16;
    void *rooms = lw_resize_array(stream->rooms, count, sizeof(*stream->rooms));
    if (!rooms) {
        return false;
    }
    stream->rooms = rooms;
    void *grown = lw_resize_array(stream->slots, count, sizeof(struct lw_partition *));
    if (!grown) {
        return false;
    }
    stream->slots = grown;
    for (uint32_t i = stream->slot_count; i < count; i++) {
        stream->slots[i] = NULL;
    }
    stream->slot_count = count;
    return true;
}

struct lw_partition *
lw_stream_assign(struct lw_stream *stream, const struct lw_event *event)
{
    if (!reserve_slot(stream, event->slot)) {
        return NULL;
    }
    struct lw_partition *partition = lw_alloc(sizeof(*partition));
    if (!partition) {
        return NULL;
    }
    lw_list_init(&partition->held);
    lw_list_init(&partition->dirty);
    lw_list_init(&partition->link);
    partition->subscription = &stream->subscription;
    partition->topic = event->topic;
    partition->number = event->partition;
    partition->place = lw_lane_place(&stream->subscription, event->partition);
    partition->slot = event->slot;
    partition->generation = event->generation;
    partition->is_companion = event->is_companion;
    partition->has_ledger = stream->link->broker->caps.settlement == LW_SETTLE_POSITION;
    partition->committed = event->position;
    partition->committing = -1;
    partition->tail = -1;
    partition->blocking = -1;
    if (partition->has_ledger) {
        lw_offsets_init(&partition->offsets, event->position, stream->max_uncommitted);
    }
    lw_partition_update(partition);
    lw_list_push(&stream->subscription.partitions, &partition->link);
    stream->slots[event->slot] = partition;
    return partition;
}

/* -- partitions without memory ------------------------------------------------------------------------ */

static void
update_blind(struct lw_stream *stream)
{
    stream->is_blind = false;
    for (uint32_t i = 0; i < stream->unplaced_count; i++) {
        stream->is_blind = stream->is_blind || stream->unplaced[i].slot >= stream->slot_count ||
                           !stream->link->broker->ops->limit_slots;
    }
}

bool
lw_stream_put_off(struct lw_stream *stream, const struct lw_event *event)
{
    if (stream->unplaced_count == LW_UNPLACED_MAX) {
        return false;
    }
    stream->unplaced[stream->unplaced_count++] = (struct lw_unplaced){
        .slot = event->slot,
        .partition = event->partition,
        .generation = event->generation,
        .topic = event->topic,
        .position = event->position,
        .is_companion = event->is_companion,
    };
    update_blind(stream);
    return true;
}

static void
remove_unplaced(struct lw_stream *stream, uint32_t i)
{
    stream->unplaced[i] = stream->unplaced[--stream->unplaced_count];
    update_blind(stream);
}

struct lw_partition *
lw_stream_assign_again(struct lw_stream *stream, uint32_t i)
{
    const struct lw_unplaced *unplaced = &stream->unplaced[i];
    const struct lw_event event = {
        .kind = LW_EVENT_ASSIGNED,
        .source = stream->source,
        .slot = unplaced->slot,
        .partition = unplaced->partition,
        .generation = unplaced->generation,
        .topic = unplaced->topic,
        .position = unplaced->position,
        .is_companion = unplaced->is_companion,
    };
    struct lw_partition *partition = lw_stream_assign(stream, &event);
    if (partition) {
        remove_unplaced(stream, i);
    }
    return partition;
}

void
lw_stream_forget(struct lw_stream *stream, uint64_t generation)
{
    for (uint32_t i = 0; i < stream->unplaced_count;) {
        if (stream->unplaced[i].generation == generation) {
            remove_unplaced(stream, i);
        } else {
            i++;
        }
    }
}
