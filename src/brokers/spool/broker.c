/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table: what a dispatcher calls. Locking, opening and finding the positions happen in `start`,
 * before the worker's thread exists: the file is on this machine, and whoever starts a service wants
 * to know at once that its file is damaged or in use. From then on the loop never touches it. A
 * broker without sources whose file is owned by another process publishes through that owner; one
 * that owns its file leaves it to the first who reads it.
 * Loop thread.
 */
#include "brokers/spool/broker.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "brokers/spool/client.h"
#include "brokers/spool/faults.h"
#include "brokers/spool/spool.h"

enum {
    LOCK_TURNS = 50,
    LOCK_TURNS_PROMISED = 500, /* whoever has the file will leave it, when it is written */
    LOCK_PAUSE_MS = 20,
    UNANSWERED_MAX = 3
};

static struct lw_spool_source *
source_of(struct lw_source *source)
{
    return (struct lw_spool_source *)(void *)source;
}

typedef void (*source_fn)(struct lw_spool_source *source);

static void
each_source(struct lw_spool_broker *broker, source_fn fn)
{
    struct lw_list *next;
    for (struct lw_list *node = broker->sources.next; node != &broker->sources; node = next) {
        next = node->next;
        fn(LW_CONTAINER(node, struct lw_spool_source, link));
    }
}

/* -- Making -------------------------------------------------------------------------------------- */

static void
on_flush(struct lw_deferred *deferred)
{
    lw_spool_flush(LW_CONTAINER(deferred, struct lw_spool_broker, flush));
}

static void
on_closed(struct lw_letter *letter)
{
    struct lw_spool_command *command = LW_CONTAINER(letter, struct lw_spool_command, letter);
    struct lw_spool_broker *broker = LW_CONTAINER(command, struct lw_spool_broker, closing);
    struct lw_event event = { .kind = LW_EVENT_CLOSED };
    broker->commits = lw_spool_worker_destroy(broker->worker);
    broker->worker = NULL;
    broker->state = LW_SPOOL_CLOSED;
    lw_events_push_reserved(&broker->events, &event);
}

static void
free_broker(struct lw_spool_broker *broker)
{
    lw_free(broker->name);
    lw_free(broker->url);
    lw_free(broker);
}

static void
init(struct lw_spool_broker *broker, struct lw_host *host)
{
    broker->base = (struct lw_broker){
        .ops = lw_spool_broker_ops(),
        .host = host,
        .name = broker->name,
        .caps = { .settlement = LW_SETTLE_INDIVIDUAL,
                  .nack = LW_NACK_MESSAGE,
                  .has_native_delay = true,
                  .has_redelivery_count = true,
                  .message_bytes_max = LW_SPOOL_MESSAGE_BYTES_MAX,
                  .default_ordering = LW_ORDERING_KEY,
                  .default_keyless = LW_KEYLESS_ROTATE,
                  .retries_in_place = true },
    };
    broker->path = lw_spool_path_of(broker->url);
    lw_list_init(&broker->sources);
    lw_list_init(&broker->spare_publishing);
    lw_list_init(&broker->spare_settling);
    lw_events_init(&broker->events, host);
    lw_deferred_init(&broker->flush, on_flush);
    lw_spool_command_init(&broker->closing, LW_SPOOL_COMMAND_CLOSE, on_closed);
}

/* The table's signature has seven. NOLINTBEGIN(readability-function-size) */
static enum lw_status
create(struct lw_host *host, const char *name, const char *url,
       const struct lw_property *properties, size_t property_count,
       struct lw_broker **ret_broker, struct lw_error *ret_error)
{
    struct lw_spool_options options;
    enum lw_status status = lw_spool_check_url(url, ret_error);
    if (status == LW_STATUS_OK) {
        status = lw_spool_read(lw_spool_rows, &options, properties, property_count, ret_error);
    }
    if (status != LW_STATUS_OK) {
        return status;
    }
    struct lw_spool_broker *broker = lw_alloc(sizeof *broker);
    char *name_copy = lw_copy_text(name);
    char *url_copy = lw_copy_text(url);
    if (!broker || !name_copy || !url_copy) {
        lw_free(broker);
        lw_free(name_copy);
        lw_free(url_copy);
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a broker");
    }
    broker->name = name_copy;
    broker->url = url_copy;
    broker->options = options;
    init(broker, host);
    if (!lw_events_reserve(&broker->events, 1)) { /* CLOSED */
        free_broker(broker);
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a broker");
    }
    *ret_broker = &broker->base;
    return LW_STATUS_OK;
}
/* NOLINTEND(readability-function-size) */

static void
destroy(struct lw_broker *base)
{
    if (!base) {
        return;
    }
    struct lw_spool_broker *broker = lw_spool_broker_of(base);
    lw_assert(broker->state == LW_SPOOL_NEW || broker->state == LW_SPOOL_CLOSED);
    lw_deferred_cancel(&broker->flush);
    each_source(broker, lw_spool_source_destroy);
    lw_spool_free_commands(broker);
    lw_events_deinit(&broker->events);
    free_broker(broker);
}

static enum lw_status
subscribe(struct lw_broker *base, const struct lw_source_options *options,
          struct lw_source **ret_source, struct lw_error *ret_error)
{
    struct lw_spool_broker *broker = lw_spool_broker_of(base);
    struct lw_spool_source *source = NULL;
    if (broker->state != LW_SPOOL_NEW) {
        return lw_error_set(ret_error, LW_STATUS_STATE, "", "subscribed after the start");
    }
    enum lw_status status = lw_spool_source_create(broker, options, &source, ret_error);
    if (status == LW_STATUS_OK) {
        *ret_source = (struct lw_source *)source;
    }
    return status;
}

static void
unsubscribe(struct lw_source *base)
{
    struct lw_spool_source *source = source_of(base);
    lw_assert(source->broker->state == LW_SPOOL_NEW);
    lw_spool_source_destroy(source);
}

/* -- Starting ------------------------------------------------------------------------------------ */

static void
on_notice(struct lw_letter *letter)
{
    struct lw_spool_notice *notice = LW_CONTAINER(letter, struct lw_spool_notice, letter);
    struct lw_spool_broker *broker = notice->user;
    struct lw_event event = {
        .kind = notice->is_down ? LW_EVENT_BROKER_DOWN : LW_EVENT_BROKER_UP,
        .status = notice->error.status,
    };
    if (notice->is_down) {
        lw_events_push_error(&broker->events, &event, &notice->error);
    } else {
        lw_events_push(&broker->events, &event);
    }
    lw_free(notice);
}

static enum lw_status
open_sources(struct lw_spool_broker *broker, struct lw_spool_store *store,
             struct lw_error *ret_error)
{
    struct lw_list *head = &broker->sources;
    enum lw_status status = LW_STATUS_OK;
    for (struct lw_list *node = head->next; status == LW_STATUS_OK && node != head;
         node = node->next) {
        status = lw_spool_source_open(LW_CONTAINER(node, struct lw_spool_source, link), store,
                                      ret_error);
    }
    return status;
}

/* ALREADY: another process has it, *ret_pid says which. */
static enum lw_status
open_store(struct lw_spool_broker *broker, struct lw_spool_store **ret_store, long *ret_pid,
           struct lw_error *ret_error)
{
    struct lw_spool_opening opening = { broker->path, &broker->options, true, 0 };
    struct lw_spool_store *store = NULL;
    enum lw_status status = lw_spool_store_open(&opening, &store, ret_error);
    *ret_pid = opening.owner_pid;
    if (status == LW_STATUS_OK) {
        status = open_sources(broker, store, ret_error);
        if (status != LW_STATUS_OK) {
            lw_spool_store_close(store);
            return status;
        }
    }
    *ret_store = store;
    return status;
}

/* *ret_is_passing: somebody has the file who may be coming, going or only looking. */
static enum lw_status
try_start(struct lw_spool_broker *broker, bool *ret_is_passing, struct lw_error *ret_error)
{
    bool is_reader = !lw_list_is_empty(&broker->sources);
    struct lw_spool_worker_options options = { .host = broker->base.host,
                                               .path = broker->path,
                                               .file_options = &broker->options,
                                               .is_serving = true,
                                               .is_reader = is_reader,
                                               .on_notice = on_notice,
                                               .user = broker };
    enum lw_status status = open_store(broker, &options.store, &options.owner_pid, ret_error);
    *ret_is_passing = status == LW_STATUS_ALREADY;
    if (status == LW_STATUS_OK) {
        options.store->keeps_settled = !is_reader;
    }
    if (status == LW_STATUS_ALREADY && is_reader) {
        return lw_spool_fault_owned(broker->path, options.owner_pid, ret_error);
    }
    if (status == LW_STATUS_OK || status == LW_STATUS_ALREADY) {
        status = lw_spool_worker_create(&options, &broker->worker, ret_error);
    }
    return status;
}

/* How long it is tried to get the file. */
struct patience {
    int turns;
    int unanswered;
};

/*
 * Only a reader needs the file. It asks in every turn, since meanwhile another may have it than the
 * one that said yes; one that does not answer, as it is stopped or its disk is slow, not for ever.
 */
static void
ask_for_file(const struct lw_spool_broker *broker, struct patience *patience)
{
    if (lw_list_is_empty(&broker->sources) || patience->unanswered >= UNANSWERED_MAX) {
        return;
    }
    enum lw_status answer = lw_spool_client_ask_to_yield(broker->path);
    patience->unanswered += answer == LW_STATUS_UNKNOWN;
    if (answer == LW_STATUS_OK) {
        patience->turns = LOCK_TURNS_PROMISED;
    }
}

static enum lw_status
start(struct lw_broker *base, struct lw_error *ret_error)
{
    struct lw_spool_broker *broker = lw_spool_broker_of(base);
    struct lw_event event = { .kind = LW_EVENT_BROKER_UP };
    struct patience patience = { .turns = LOCK_TURNS };
    bool is_passing = true;
    enum lw_status status = LW_STATUS_STATE;
    if (broker->state != LW_SPOOL_NEW) {
        return lw_error_set(ret_error, LW_STATUS_STATE, "", "started twice");
    }
    for (int turn = 0; status != LW_STATUS_OK && is_passing && turn < patience.turns; turn++) {
        if (turn > 0) {
            ask_for_file(broker, &patience);
            (void)poll(NULL, 0, LOCK_PAUSE_MS);
        }
        status = try_start(broker, &is_passing, ret_error);
    }
    if (status != LW_STATUS_OK) {
        return status;
    }
    broker->state = LW_SPOOL_UP;
    lw_events_push(&broker->events, &event);
    each_source(broker, lw_spool_source_assign);
    return LW_STATUS_OK;
}

/* -- Stopping ------------------------------------------------------------------------------------ */

static void
stop_sources(struct lw_broker *base)
{
    each_source(lw_spool_broker_of(base), lw_spool_source_stop);
}

static void
revoke_done(struct lw_broker *base, uint64_t generation)
{
    struct lw_spool_broker *broker = lw_spool_broker_of(base);
    struct lw_list *head = &broker->sources;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        if (lw_spool_source_end(LW_CONTAINER(node, struct lw_spool_source, link), generation)) {
            return;
        }
    }
}

static void
stop_source(struct lw_spool_source *source)
{
    source->is_stopped = true;
}

static void
close_broker(struct lw_broker *base)
{
    struct lw_spool_broker *broker = lw_spool_broker_of(base);
    if (broker->state == LW_SPOOL_NEW) {
        struct lw_event event = { .kind = LW_EVENT_CLOSED };
        broker->state = LW_SPOOL_CLOSED;
        lw_events_push_reserved(&broker->events, &event);
    } else if (broker->state == LW_SPOOL_UP) {
        each_source(broker, stop_source);
        lw_spool_flush(broker);
        broker->state = LW_SPOOL_CLOSING;
        lw_spool_worker_post(broker->worker, &broker->closing);
    }
}

/* -- Messages ------------------------------------------------------------------------------------ */

static size_t
events(struct lw_broker *base, struct lw_event *out, size_t n)
{
    return lw_events_take(&lw_spool_broker_of(base)->events, out, n);
}

static void
demand(struct lw_source *source, uint32_t messages, uint64_t bytes)
{
    lw_spool_source_demand(source_of(source), messages, bytes);
}

static bool
is_ready(const struct lw_source *source)
{
    const struct lw_spool_source *own = (const struct lw_spool_source *)(const void *)source;
    return own->turns.count > 0;
}

static size_t
receive(struct lw_source *source, struct lw_message *const out[], size_t n, uint64_t bytes_max,
        bool *ret_has_more)
{
    return lw_spool_source_receive(source_of(source), out, n, bytes_max, ret_has_more);
}

static void
limit_slots(struct lw_source *source, uint32_t *rooms)
{
    source_of(source)->rooms = rooms;
}

static void
settle(struct lw_source *source, const struct lw_settle_item *items, size_t n)
{
    lw_spool_source_settle(source_of(source), items, n);
}

static size_t
publish(struct lw_broker *base, struct lw_publication *const items[], size_t n)
{
    return lw_spool_publish(lw_spool_broker_of(base), items, n);
}

static void
release(struct lw_broker *base, struct lw_message *const messages[], size_t n)
{
    struct lw_spool_broker *broker = lw_spool_broker_of(base);
    lw_assert(broker->held >= n);
    broker->held -= n;
    for (size_t i = 0; i < n; i++) {
        lw_spool_chunk_release(messages[i]->owner);
    }
}

static bool
detach(struct lw_broker *base, struct lw_message *message)
{
    struct lw_spool_chunk *copy = lw_spool_chunk_detach(message->entry);
    (void)base;
    if (!copy) {
        return false;
    }
    lw_spool_chunk_release(message->owner);
    struct lw_spool_entry *entry = &copy->entries[0];
    message->owner = copy;
    message->entry = entry;
    message->key = entry->key;
    message->ordering_key = entry->ordering_key;
    message->value = entry->value;
    return true;
}

static const struct lw_header *
headers(struct lw_broker *base, const struct lw_message *message, size_t *ret_count)
{
    const struct lw_spool_entry *entry = message->entry;
    (void)base;
    *ret_count = entry->header_count;
    return entry->headers;
}

static void
times(struct lw_broker *base, const struct lw_message *message,
      struct lw_message_times *ret_times)
{
    const struct lw_spool_entry *entry = message->entry;
    (void)base;
    ret_times->timestamp_ms = entry->timestamp_ms;
    ret_times->event_time_ms = entry->event_time_ms;
}

static bool
lag(struct lw_source *source, struct lw_lag *ret_lag)
{
    return lw_spool_source_lag(source_of(source), ret_lag);
}

static bool
default_topic(enum lw_topic_kind kind, const char *topic, const char *subscription, char *out,
              size_t size)
{
    (void)subscription;
    int length = snprintf(out, size, "%s.%s", topic, kind == LW_TOPIC_RETRY ? "retry" : "dlq");
    return length > 0 && (size_t)length < size && lw_spool_is_topic(out);
}

static const struct lw_broker_ops ops = {
    .scheme = "spool",
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
    .describe_topics = lw_spool_describe,
    .create_topics = lw_spool_create,
    .lag = lag,
};

const struct lw_broker_ops *
lw_spool_broker_ops(void)
{
    return &ops;
}

uint64_t
lw_spool_broker_commits(struct lw_broker *broker)
{
    return lw_spool_broker_of(broker)->commits;
}
