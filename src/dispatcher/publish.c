/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a judged delivery owes to other topics: reply and outputs, a retry copy, a dead letter.
 * All of it is confirmed before the delivery is settled (P1). Each item's receipt comes exactly
 * once. Refused for a passing reason or unknown: sent again after 100 ms, x2, cap 5 s, for ever,
 * without running the handler again. No authorisation or no such topic: the same, with the
 * stream's intake stopped and said aloud. The message's own fault: a reply, output or copy turns
 * the verdict to dead; a dead letter is sent without payload; if even that is refused the
 * message stays unfinished.
 *
 * JUDGED while nothing is on its way, PUBLISHING while something is.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fault.h"
#include "dispatcher/pinned.h"
#include "dispatcher/receive.h"

#define RESEND_FIRST_MS 100
#define RESEND_MAX_MS 5000
#define SAY_AGAIN_AFTER 8 /* refusals between two lines about the same delivery */
#define TOPIC_MAX 512

enum item_state { ITEM_WAITING, ITEM_SENT, ITEM_CONFIRMED };

struct publish_item {
    struct lw_publication publication; /* user = the item */
    struct lw_headers headers;
    struct lw_link *link;
    struct lw_publishing *owner;
    enum item_state state;
    enum lw_status refused; /* the last receipt that was not OK */
};

struct lw_publishing {
    struct lw_queue_node link; /* in a link's waiting room */
    struct lw_delivery *delivery;
    struct lw_ruling ruling;
    struct publish_item *items;
    uint32_t count;
    uint32_t outstanding;
    uint32_t confirmed;
    uint32_t tries;
    bool is_abandoned;    /* its generation ended; goes when the receipts came */
    bool is_in_room;      /* in a waiting room */
    bool is_headers_only; /* a dead letter that was too large */
    bool is_blocking;     /* its target takes nothing: it stops the intake of its stream */
    char topic[TOPIC_MAX];
};

/* -- origin ---------------------------------------------------------------------------------- */

uint32_t
lw_publish_retries(const struct lw_delivery *delivery)
{
    struct lw_origin origin;
    char place[LW_PLACE_BYTES];
    lw_view_read_origin(delivery, &origin);
    if (origin.is_malformed) {
        lw_host_log(lw_stream_of(delivery)->dispatcher->host, LW_LOG_WARN, "retries.malformed",
                    "the retry count in the headers cannot be read and counts as 0",
                    "topic=%s id=%s", delivery->partition->topic,
                    lw_stream_shown_id(delivery, place, sizeof(place)));
    }
    return origin.retries;
}

/* What a broker writes of a message; lives as long as the facts. */
struct texts {
    char place[LW_PLACE_BYTES];
    char id[LW_PLACE_BYTES];
};

static struct lw_origin_facts
facts_of(const struct lw_delivery *delivery, struct texts *texts)
{
    const struct lw_stream *stream = lw_stream_of(delivery);
    return (struct lw_origin_facts){
        .family = stream->family,
        .broker = stream->link->broker->name,
        .topic = delivery->partition->topic,
        .partition = delivery->partition->number,
        .position = delivery->message.position,
        .place = lw_stream_place(delivery, texts->place, sizeof(texts->place)),
        .id_text = lw_stream_id_text(delivery, texts->id, sizeof(texts->id)),
        .subscription = stream->name,
        .generation = delivery->partition->generation,
        .timestamp_ms = lw_delivery_timestamp_ms(delivery),
        .attempt = delivery->attempt,
        .reason = lw_delivery_reason(delivery),
        .dead_letter_topic = stream->dead_letter_topic,
        .not_before_ms = -1,
        .delay_ms = -1,
    };
}

/* -- building --------------------------------------------------------------------------------- */

static struct publish_item *
add_item(struct lw_publishing *publishing, uint32_t index, struct lw_link *link)
{
    struct publish_item *item = &publishing->items[index];
    const struct lw_message *message = &publishing->delivery->message;
    bool is_same_broker = link == lw_stream_of(publishing->delivery)->link;
    lw_headers_init(&item->headers);
    item->link = link;
    item->owner = publishing;
    item->state = ITEM_WAITING;
    item->publication = (struct lw_publication){
        .partition = -1,
        .key = message->key,
        .ordering_key = message->ordering_key,
        .value = message->value,
        .event_time_ms = lw_delivery_event_time_ms(publishing->delivery),
        .base = is_same_broker ? message : NULL, /* its private part is that broker's */
        .user = item,
    };
    return item;
}

static void
use_headers(struct publish_item *item)
{
    item->publication.headers = item->headers.items;
    item->publication.header_count = item->headers.count;
}

/* The longest tier is the longest delay there is; a header that promised more would be wrong. */
static int64_t
fitting_delay_ms(const struct lw_stream *stream, int64_t delay_ms)
{
    if (stream->tier_count == 0 || delay_ms <= stream->tiers_ms[stream->tier_count - 1]) {
        return delay_ms;
    }
    int64_t longest_ms = stream->tiers_ms[stream->tier_count - 1];
    lw_host_log(
        stream->dispatcher->host, LW_LOG_WARN, "retry.shortened",
        "a retry was wanted later than the longest tier; it comes after that tier's time",
        "topic=%s wanted_ms=%lld tier_ms=%lld", stream->topic, (long long)delay_ms,
        (long long)longest_ms);
    return longest_ms;
}

static bool
build_retry(struct lw_publishing *publishing)
{
    struct lw_delivery *delivery = publishing->delivery;
    struct lw_stream *stream = lw_stream_of(delivery);
    struct publish_item *item = add_item(publishing, 0, stream->link);
    struct lw_origin origin;
    size_t count = 0;
    const struct lw_header *headers = lw_delivery_headers(delivery, &count);
    lw_origin_read(stream->family, headers, count, &origin);
    struct lw_host *host = stream->dispatcher->host;
    struct texts texts;
    struct lw_origin_facts facts = facts_of(delivery, &texts);
    facts.retries = origin.retries + 1;
    facts.delay_ms = fitting_delay_ms(stream, publishing->ruling.delay_ms);
    facts.not_before_ms = host->ops->wall_ms(host) + facts.delay_ms;
    if (!lw_origin_build_retry(&facts, headers, count, &item->headers)) {
        return false;
    }
    item->publication.kind = LW_PUBLISH_RETRY;
    item->publication.topic = stream->retry_topic;
    /* At once, but through a tier all the same: nobody need read the retry topic itself. */
    item->publication.delay_ms = facts.delay_ms == 0 && stream->reads_tiers ? 1
                                                                            : facts.delay_ms;
    use_headers(item);
    return true;
}

/*
 * A copy names the dead-letter topic of the subscription that it came from, so those of all
 * subscriptions here may be chosen. In the spelling of the one that has it; NULL: none has.
 */
static const char *
dead_letter_topic_here(const struct lw_stream *stream, const char *wanted)
{
    const struct lw_dispatcher *dispatcher = stream->dispatcher;
    const struct lw_link *link = stream->dead_letter_link;
    bool (*is_same)(const char *, const char *) = link->broker->ops->is_same_topic;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        const struct lw_stream *other = dispatcher->streams[i];
        const char *topic = other->dead_letter_link == link ? other->dead_letter_topic : NULL;
        if (topic && (is_same ? is_same(topic, wanted) : strcmp(topic, wanted) == 0)) {
            return topic;
        }
    }
    return NULL;
}

/* The header's topic if it may choose, else the stream's. */
static const char *
dead_letter_topic(struct lw_publishing *publishing, const struct lw_origin *origin)
{
    struct lw_stream *stream = lw_stream_of(publishing->delivery);
    struct lw_bytes wanted = origin->dead_letter_topic;
    if (!wanted.data || wanted.size >= TOPIC_MAX ||
        lw_text_is_equal(wanted, stream->dead_letter_topic)) {
        return stream->dead_letter_topic;
    }
    memcpy(publishing->topic, wanted.data, wanted.size);
    publishing->topic[wanted.size] = '\0';
    const char *here = dead_letter_topic_here(stream, publishing->topic);
    if (here) {
        return here;
    }
    if (!lw_origin_is_allowed(wanted, (const char *const *)stream->allow,
                              stream->allow_count)) {
        lw_host_log(stream->dispatcher->host, LW_LOG_WARN, "dead_letter.refused",
                    "a message names a dead-letter topic that dead_letter.allow does not list; "
                    "the subscription's own is used",
                    "topic=%s wanted=%.*s", stream->topic, (int)wanted.size,
                    (const char *)wanted.data);
        return stream->dead_letter_topic;
    }
    return publishing->topic;
}

static bool
build_dead_letter(struct lw_publishing *publishing)
{
    struct lw_delivery *delivery = publishing->delivery;
    struct lw_stream *stream = lw_stream_of(delivery);
    struct publish_item *item = add_item(publishing, 0, stream->dead_letter_link);
    struct lw_origin origin;
    size_t count = 0;
    const struct lw_header *headers = lw_delivery_headers(delivery, &count);
    lw_origin_read(stream->family, headers, count, &origin);
    struct texts texts;
    struct lw_origin_facts facts = facts_of(delivery, &texts);
    facts.retries = origin.retries;
    if (!lw_origin_build_dead_letter(&facts, headers, count, &item->headers)) {
        return false;
    }
    item->publication.kind = LW_PUBLISH_DEAD_LETTER;
    item->publication.topic = dead_letter_topic(publishing, &origin);
    if (stream->payload == LW_PAYLOAD_HEADERS_ONLY || publishing->is_headers_only) {
        item->publication.key = (struct lw_bytes){ NULL, 0 };
        item->publication.ordering_key = (struct lw_bytes){ NULL, 0 };
        item->publication.value = (struct lw_bytes){ NULL, 0 };
    }
    use_headers(item);
    return true;
}

static struct lw_bytes
reply_key(const struct lw_stream *stream, const struct lw_delivery *delivery)
{
    if (strcmp(stream->reply_key, "keep") == 0) {
        return delivery->message.key;
    }
    if (strcmp(stream->reply_key, "none") == 0) {
        return (struct lw_bytes){ NULL, 0 };
    }
    return lw_delivery_header(delivery, stream->reply_key);
}

static bool
build_output(struct lw_publishing *publishing, uint32_t index, uint32_t stored)
{
    struct lw_delivery *delivery = publishing->delivery;
    struct lw_stream *stream = lw_stream_of(delivery);
    const struct lw_outcome *outcome = delivery->outcome;
    bool is_reply = outcome->outputs[stored].is_reply;
    size_t own_count = outcome->outputs[stored].header_count;
    struct lw_header *own = own_count ? lw_alloc_array(own_count, sizeof(*own)) : NULL;
    if (own_count && !own) {
        return false;
    }
    struct lw_output view;
    lw_outcome_view(outcome, stored, &view, own);
    struct publish_item *item = add_item(publishing, index, stream->reply_link);
    size_t count = 0;
    const struct lw_header *headers = lw_delivery_headers(delivery, &count);
    bool is_ok = lw_origin_build_reply(own, own_count, headers, count, &item->headers);
    lw_free(own);
    item->publication.kind = is_reply ? LW_PUBLISH_REPLY : LW_PUBLISH_OUTPUT;
    item->publication.topic = view.topic ? view.topic : stream->reply_topic;
    item->publication.key = is_reply ? reply_key(stream, delivery) : view.key;
    item->publication.ordering_key = (struct lw_bytes){ NULL, 0 };
    item->publication.value = view.value;
    item->publication.delay_ms = view.delay_ms;
    item->publication.event_time_ms = -1;
    item->publication.base = NULL;
    use_headers(item);
    return is_ok;
}

/* An output without a topic goes to the reply topic; without that there is none to send. */
static bool
has_target(const struct lw_stream *stream, const struct lw_stored_output *output)
{
    return output->topic_size > 0 || stream->reply_topic;
}

static bool
build_outputs(struct lw_publishing *publishing)
{
    struct lw_delivery *delivery = publishing->delivery;
    struct lw_stream *stream = lw_stream_of(delivery);
    uint32_t built = 0;
    for (uint32_t i = 0; i < delivery->outcome->output_count; i++) {
        if (!has_target(stream, &delivery->outcome->outputs[i])) {
            continue;
        }
        publishing->count = ++built;
        if (!build_output(publishing, built - 1, i)) {
            return false;
        }
    }
    return true;
}

static void
free_items(struct lw_publishing *publishing)
{
    for (uint32_t i = 0; i < publishing->count; i++) {
        lw_headers_deinit(&publishing->items[i].headers);
    }
    lw_free(publishing->items);
    publishing->items = NULL;
    publishing->count = 0;
    publishing->confirmed = 0;
}

static bool
build(struct lw_publishing *publishing)
{
    const struct lw_delivery *delivery = publishing->delivery;
    bool is_outputs = publishing->ruling.action == LW_ACTION_DONE;
    uint32_t count = is_outputs ? delivery->outcome->output_count : 1;
    publishing->items = lw_alloc_array(count, sizeof(*publishing->items));
    if (!publishing->items) {
        return false;
    }
    publishing->count = is_outputs ? 0 : 1;
    switch (publishing->ruling.action) {
    case LW_ACTION_DONE:
        return build_outputs(publishing);
    case LW_ACTION_REPUBLISH:
        return build_retry(publishing);
    case LW_ACTION_DEAD:
        return build_dead_letter(publishing);
    case LW_ACTION_PARK:
    case LW_ACTION_DROP:
    case LW_ACTION_NACK:
    case LW_ACTION_HOLD:
    case LW_ACTION_STOP:
        break;
    }
    lw_assert_failed("nothing to publish for this action", __FILE__, __LINE__);
    return false;
}

/* -- sending ----------------------------------------------------------------------------------- */

static void
enter_room(struct lw_publishing *publishing, struct lw_link *link)
{
    if (!publishing->is_in_room) {
        publishing->is_in_room = true;
        lw_queue_push(&link->waiting_room, &publishing->link);
        link->has_no_room = true;
    }
}

static bool
send_item(struct lw_publishing *publishing, struct publish_item *item)
{
    struct lw_broker *broker = item->link->broker;
    struct lw_publication *publication = &item->publication;
    struct lw_dispatcher *dispatcher = item->link->dispatcher;
    (void)lw_fault_point(dispatcher->host->faults, "publish.before");
    if (broker->ops->publish(broker, &publication, 1) != 1) {
        enter_room(publishing, item->link);
        return false;
    }
    item->state = ITEM_SENT;
    publishing->outstanding++;
    return true;
}

static void
send_all(struct lw_publishing *publishing)
{
    struct lw_delivery *delivery = publishing->delivery;
    for (uint32_t i = 0; i < publishing->count; i++) {
        struct publish_item *item = &publishing->items[i];
        if (item->state == ITEM_WAITING && !send_item(publishing, item)) {
            break;
        }
    }
    if (publishing->outstanding > 0 && delivery->state == LW_STATE_JUDGED) {
        lw_delivery_set_state(delivery, LW_STATE_PUBLISHING);
    }
}

static void
resend_later(struct lw_publishing *publishing)
{
    struct lw_delivery *delivery = publishing->delivery;
    struct lw_host *host = lw_stream_of(delivery)->dispatcher->host;
    struct lw_backoff backoff = { RESEND_FIRST_MS, 2, RESEND_MAX_MS, 0 };
    int64_t delay_ms = lw_backoff_ms(&backoff, ++publishing->tries, 0);
    lw_timers_arm(&host->timers, &delivery->timer, host->now + (uint64_t)delay_ms * LW_MS);
}

/* -- the end ------------------------------------------------------------------------------------ */

/* This one no longer waits for a target that takes nothing; the last one of its stream. */
static void
unblock(struct lw_dispatcher *dispatcher, const struct lw_publishing *publishing)
{
    struct lw_stream *stream = lw_stream_of(publishing->delivery);
    if (publishing->is_blocking && --stream->blocking == 0) {
        stream->subscription.is_publish_blocked = false;
        lw_host_log(dispatcher->host, LW_LOG_INFO, "publish.unblocked",
                    "nothing waits for a blocked topic any more; receiving goes on", "topic=%s",
                    stream->topic);
        lw_receive_update(dispatcher, stream);
    }
}

/* It waits in at most one room; which one is not noted. */
static void
leave_room(struct lw_publishing *publishing, struct lw_queue *room)
{
    for (struct lw_queue_node *node = room->first; node; node = node->next) {
        if (node == &publishing->link) {
            lw_queue_remove(room, node);
            publishing->is_in_room = false;
            return;
        }
    }
}

static void
destroy(struct lw_dispatcher *dispatcher, struct lw_publishing *publishing)
{
    struct lw_delivery *delivery = publishing->delivery;
    unblock(dispatcher, publishing);
    lw_timers_disarm(&dispatcher->host->timers, &delivery->timer);
    for (uint32_t i = 0; i < publishing->count && publishing->is_in_room; i++) {
        leave_room(publishing, &publishing->items[i].link->waiting_room);
    }
    free_items(publishing);
    delivery->publishing = NULL;
    delivery->subscription->publishing--;
    dispatcher->publishing_count--;
    lw_free(publishing);
}

static void
complete(struct lw_dispatcher *dispatcher, struct lw_publishing *publishing)
{
    struct lw_delivery *delivery = publishing->delivery;
    struct lw_stream *stream = lw_stream_of(delivery);
    enum lw_action action = publishing->ruling.action;
    enum lw_settled outcome = action == LW_ACTION_DONE        ? LW_SETTLED_ACKED
                              : action == LW_ACTION_REPUBLISH ? LW_SETTLED_RETRIED
                                                              : LW_SETTLED_DEAD_LETTERED;
    if (action == LW_ACTION_DEAD) {
        stream->counters.dead_reasons[publishing->ruling.cause]++;
    }
    destroy(dispatcher, publishing);
    (void)lw_fault_point(dispatcher->host->faults, "settle.after_publish");
    lw_settle(dispatcher, delivery, outcome, -1);
}

/* -- refusals ------------------------------------------------------------------------------------ */

static const struct publish_item *
find_refused(const struct lw_publishing *publishing, bool (*is_kind)(enum lw_status))
{
    for (uint32_t i = 0; i < publishing->count; i++) {
        const struct publish_item *item = &publishing->items[i];
        if (item->state == ITEM_WAITING && item->refused != LW_STATUS_OK &&
            is_kind(item->refused)) {
            return item;
        }
    }
    return NULL;
}

static bool
is_own_fault(enum lw_status status)
{
    return status == LW_STATUS_TOO_LARGE || status == LW_STATUS_INVALID;
}

static bool
is_any_fault(enum lw_status status)
{
    return status != LW_STATUS_OK;
}

static bool
is_targets_fault(enum lw_status status)
{
    return status == LW_STATUS_DENIED || status == LW_STATUS_NOT_FOUND;
}

static void
say_refused(struct lw_dispatcher *dispatcher, const struct lw_publishing *publishing,
            const struct publish_item *item, const char *text)
{
    const struct lw_delivery *delivery = publishing->delivery;
    char place[LW_PLACE_BYTES];
    if (publishing->tries % SAY_AGAIN_AFTER != 0) {
        return;
    }
    lw_host_log(dispatcher->host, LW_LOG_ERROR, "publish.refused", text,
                "to=%s status=%s topic=%s id=%s tries=%u", item->publication.topic,
                lw_status_name(item->refused), delivery->partition->topic,
                lw_stream_shown_id(delivery, place, sizeof(place)), publishing->tries + 1);
}

/* The target takes nothing: stop taking in more, keep trying, charge nobody. */
static void
block(struct lw_dispatcher *dispatcher, struct lw_publishing *publishing,
      const struct publish_item *item)
{
    struct lw_stream *stream = lw_stream_of(publishing->delivery);
    say_refused(
        dispatcher, publishing, item,
        item->refused == LW_STATUS_DENIED
            ? "publish blocked: the broker denies writing to the topic; receiving stops "
              "until it is allowed"
            : "publish blocked: the topic does not exist; receiving stops until it does "
              "(laneway topics create makes it)");
    if (!publishing->is_blocking) {
        publishing->is_blocking = true;
        stream->blocking++;
        stream->subscription.is_publish_blocked = true;
        lw_receive_update(dispatcher, stream);
    }
}

static void
start_over(struct lw_dispatcher *dispatcher, struct lw_publishing *publishing)
{
    free_items(publishing);
    if (!build(publishing)) {
        free_items(publishing);
        resend_later(publishing);
        return;
    }
    send_all(publishing);
    (void)dispatcher;
}

/* Keeps the message unfinished, aloud: nothing that we could write is taken. */
static void
hold(struct lw_dispatcher *dispatcher, struct lw_publishing *publishing)
{
    struct lw_delivery *delivery = publishing->delivery;
    char place[LW_PLACE_BYTES];
    lw_stream_of(delivery)->counters.held++;
    lw_host_log(dispatcher->host, LW_LOG_ERROR, "message.undeliverable",
                "even the headers of a dead letter are refused as too large; the message stays "
                "unfinished and holds the commit",
                "topic=%s partition=%d id=%s", delivery->partition->topic,
                delivery->partition->number,
                lw_stream_shown_id(delivery, place, sizeof(place)));
    destroy(dispatcher, publishing);
    if (dispatcher->phase >= LW_PHASE_DRAINING) {
        lw_shutdown_give_back(dispatcher, delivery);
    }
}

static void
on_own_fault(struct lw_dispatcher *dispatcher, struct lw_publishing *publishing,
             const struct publish_item *item)
{
    struct lw_delivery *delivery = publishing->delivery;
    struct lw_stream *stream = lw_stream_of(delivery);
    if (item->publication.kind == LW_PUBLISH_DEAD_LETTER) {
        if (publishing->is_headers_only || stream->payload == LW_PAYLOAD_HEADERS_ONLY) {
            hold(dispatcher, publishing);
            return;
        }
        publishing->is_headers_only = true;
        start_over(dispatcher, publishing);
        return;
    }
    bool is_reply = item->publication.kind == LW_PUBLISH_REPLY;
    char reason[128];
    lw_text_copy(reason, sizeof(reason),
                 is_reply ? "the reply is larger than its topic allows"
                          : "a copy or output is larger than its topic allows");
    struct lw_outcome *outcome = lw_delivery_outcome(delivery);
    if (outcome) {
        lw_outcome_set_reason(outcome, reason, strlen(reason));
    }
    struct lw_case judged = { .verdict = (enum lw_verdict)delivery->verdict,
                              .delay_ms = -1,
                              .attempt = delivery->attempt,
                              .retries = lw_publish_retries(delivery) };
    struct lw_ruling ruling = lw_policy_judge_refused(&stream->policy, is_reply, &judged,
                                                      lw_host_random(dispatcher->host));
    destroy(dispatcher, publishing);
    lw_dispatcher_carry_out(dispatcher, delivery, ruling);
}

/* All receipts of this try are in and something was refused. */
static void
on_refused(struct lw_dispatcher *dispatcher, struct lw_publishing *publishing)
{
    lw_delivery_set_state(publishing->delivery, LW_STATE_JUDGED);
    const struct publish_item *item = find_refused(publishing, is_own_fault);
    if (item) {
        on_own_fault(dispatcher, publishing, item);
        return;
    }
    item = find_refused(publishing, is_targets_fault);
    if (item) {
        block(dispatcher, publishing, item);
    } else if ((item = find_refused(publishing, is_any_fault)) != NULL) {
        say_refused(dispatcher, publishing, item,
                    "a publication was not confirmed; it is sent again");
    }
    resend_later(publishing);
}

/* -- what others call ----------------------------------------------------------------------------- */

void
lw_publish_begin(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery,
                 struct lw_ruling ruling)
{
    if (dispatcher->is_pinned_tight) {
        (void)lw_pinned_copy(delivery); /* from here on its bytes must not move */
    }
    struct lw_publishing *publishing = lw_alloc(sizeof(*publishing));
    if (!publishing) {
        /* Lack of memory is backpressure: the delivery stays judged and is tried again. */
        delivery->publishing = NULL;
        lw_timers_arm(&dispatcher->host->timers, &delivery->timer,
                      dispatcher->host->now + RESEND_FIRST_MS * LW_MS);
        return;
    }
    publishing->delivery = delivery;
    publishing->ruling = ruling;
    delivery->publishing = publishing;
    delivery->subscription->publishing++;
    dispatcher->publishing_count++;
    if (!build(publishing)) {
        free_items(publishing);
        resend_later(publishing);
        return;
    }
    if (publishing->count == 0) {
        complete(dispatcher, publishing);
        return;
    }
    send_all(publishing);
}

void
lw_publish_on_receipt(struct lw_dispatcher *dispatcher, const struct lw_event *event)
{
    struct publish_item *item = event->publication->user;
    struct lw_publishing *publishing = item->owner;
    struct lw_delivery *delivery = publishing->delivery;
    struct lw_counters *counters = &lw_stream_of(delivery)->counters;
    lw_assert(item->state == ITEM_SENT && publishing->outstanding > 0);
    publishing->outstanding--;
    if (event->status == LW_STATUS_OK) {
        item->state = ITEM_CONFIRMED;
        publishing->confirmed++;
        counters->published[item->publication.kind]++;
        lw_history_note(dispatcher, LW_HISTORY_PUBLISHED, delivery, (int)item->publication.kind,
                        0);
    } else {
        item->state = ITEM_WAITING;
        item->refused = event->status;
        counters->publish_failures[item->publication.kind]++;
    }
    if (publishing->outstanding > 0) {
        return;
    }
    if (publishing->is_abandoned) {
        destroy(dispatcher, publishing);
        lw_settle_drop(dispatcher, delivery);
    } else if (publishing->confirmed == publishing->count) {
        complete(dispatcher, publishing);
    } else if (!publishing->is_in_room) {
        on_refused(dispatcher, publishing);
    }
}

void
lw_publish_on_room(struct lw_link *link)
{
    struct lw_queue waiting = link->waiting_room;
    link->waiting_room = (struct lw_queue){ NULL, NULL };
    link->has_no_room = false;
    struct lw_queue_node *node;
    while ((node = lw_queue_pop(&waiting)) != NULL) {
        struct lw_publishing *publishing = LW_CONTAINER(node, struct lw_publishing, link);
        publishing->is_in_room = false;
        if (!publishing->is_abandoned) {
            send_all(publishing);
        }
    }
}

bool
lw_publish_abandon(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    struct lw_publishing *publishing = delivery->publishing;
    if (publishing->outstanding > 0) {
        publishing->is_abandoned = true;
        return false;
    }
    destroy(dispatcher, publishing);
    return true;
}

bool
lw_publish_is_abandoned(const struct lw_delivery *delivery)
{
    return delivery->publishing && delivery->publishing->is_abandoned;
}

/* The timer of a JUDGED delivery: send again what was not confirmed. */
void
lw_publish_resend(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    struct lw_publishing *publishing = delivery->publishing;
    if (publishing->count == 0) {
        start_over(dispatcher, publishing);
        return;
    }
    send_all(publishing);
}
