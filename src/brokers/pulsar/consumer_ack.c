/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acknowledgements on their way: grouped by count and time, each ACK kept until its receipt (if
 * receipts are wanted and the broker gives them). What a session leaves unconfirmed is sent again
 * by the next one, and until then the broker's copies are known and dropped. A receipt that does
 * not come, or is a refusal, ends the session: no id goes twice within one.
 */
#include "base/alloc.h"
#include "base/log.h"
#include "brokers/pulsar/consumer_state.h"

enum { PROTOCOL_WITH_RECEIPTS = 17, SLOTS_PER_ACK = 64 };

void
lw_pulsar_consumer_plan_acks(struct lw_pulsar_consumer *consumer)
{
    struct lw_host *host = consumer->client->host;
    bool is_full = consumer->acks.pending_count >= consumer->options->ack_group_max &&
                   !consumer->options->reads_compacted; /* they may have to wait for long */
    if (__builtin_expect(is_full || consumer->options->ack_group_ns == 0, 0)) {
        lw_host_defer(host, &consumer->ack_flush);
    } else if (!lw_timer_is_armed(&consumer->ack_timer)) {
        lw_timers_arm(&host->timers, &consumer->ack_timer,
                      host->now + consumer->options->ack_group_ns);
    }
}

static struct lw_pulsar_ack_flight *
take_flight(struct lw_pulsar_consumer *consumer)
{
    struct lw_list *link = lw_list_pop(&consumer->spare_flights);
    struct lw_pulsar_ack_flight *flight = link ? LW_CONTAINER(link, struct lw_pulsar_ack_flight,
                                                              link)
                                               : lw_alloc(sizeof *flight);
    if (flight) {
        flight->consumer = consumer;
        flight->request = (struct lw_pulsar_request){ .connection = NULL };
        lw_list_init(&flight->link);
        lw_list_init(&flight->entries);
    }
    return flight;
}

static void
give_flight(struct lw_pulsar_consumer *consumer, struct lw_pulsar_ack_flight *flight)
{
    lw_list_remove(&flight->link);
    lw_list_push(&consumer->spare_flights, &flight->link);
}

static void
land(struct lw_pulsar_ack_flight *flight, bool is_confirmed)
{
    struct lw_pulsar_consumer *consumer = flight->consumer;
    if (is_confirmed) {
        lw_pulsar_acks_confirm(&consumer->acks, &flight->entries);
    } else {
        lw_pulsar_acks_return(&consumer->acks, &flight->entries);
    }
    give_flight(consumer, flight);
    if (consumer->acks.pending_count > 0) {
        lw_pulsar_consumer_plan_acks(consumer);
    }
    if (consumer->state == LW_PULSAR_CONSUMER_STOPPING) {
        lw_pulsar_consumer_go_on_stopping(consumer);
    }
}

/* The session is no use any more: begin another, unless the connection ended and says so itself. */
static void
give_up_session(struct lw_pulsar_consumer *consumer, const char *why)
{
    char quoted[512];
    if (!lw_pulsar_consumer_has_session(consumer) ||
        lw_pulsar_connection_state(consumer->connection) == LW_PULSAR_CLOSED) {
        return;
    }
    lw_host_log(consumer->client->host, LW_LOG_WARN, "pulsar.ack_unconfirmed",
                "an acknowledgement was not confirmed; subscribing again", "topic=%s reason=%s",
                consumer->topic, lw_log_quote(why, quoted, sizeof quoted));
    lw_pulsar_consumer_restart(consumer, false);
}

static void
on_receipt(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
           const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_ack_flight *flight = LW_CONTAINER(request, struct lw_pulsar_ack_flight,
                                                       request);
    struct lw_pulsar_consumer *consumer = flight->consumer;
    bool is_refused = answer &&
                      (answer->ack_response.has & LW_PULSAR_ACK_RESPONSE_HAS_ERROR) != 0;
    if (answer && !is_refused) {
        land(flight, true);
        return;
    }
    lw_pulsar_acks_return(&consumer->acks, &flight->entries);
    give_flight(consumer, flight);
    give_up_session(consumer, failure ? failure->error.message : "the broker refused it");
}

bool
lw_pulsar_consumer_on_ack_response(struct lw_pulsar_consumer *consumer,
                                   const struct lw_pulsar_command *command)
{
    struct lw_list *flights = &consumer->flights;
    for (struct lw_list *at = flights->next; at != flights; at = at->next) {
        struct lw_pulsar_ack_flight *flight = LW_CONTAINER(at, struct lw_pulsar_ack_flight,
                                                           link);
        if (flight->request.id == command->ack_response.request_id) {
            lw_pulsar_request_cancel(&flight->request);
            on_receipt(&flight->request, command, NULL);
            return true;
        }
    }
    return false;
}

static bool
wants_receipts(const struct lw_pulsar_consumer *consumer)
{
    return consumer->options->wants_ack_receipts &&
           lw_pulsar_connection_protocol(consumer->connection) >= PROTOCOL_WITH_RECEIPTS;
}

static bool
send_ack(struct lw_pulsar_consumer *consumer, struct lw_pulsar_ack_flight *flight,
         struct lw_pulsar_command *command)
{
    struct lw_pulsar_ack *ack = &command->ack;
    ack->consumer_id = consumer->user.id;
    if (!wants_receipts(consumer)) {
        bool is_sent = lw_pulsar_connection_send(consumer->connection, command);
        land(flight, is_sent);
        return is_sent;
    }
    ack->has |= LW_PULSAR_ACK_HAS_REQUEST_ID;
    lw_list_push(&consumer->flights, &flight->link);
    ack->request_id = lw_pulsar_request_begin(consumer->connection, &flight->request,
                                              on_receipt, "acknowledge",
                                              consumer->client->options.operation_timeout_ns);
    return lw_pulsar_connection_send(consumer->connection, command);
}

static bool
send_group(struct lw_pulsar_consumer *consumer, struct lw_pulsar_ack_flight *flight)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_ACK);
    struct lw_pulsar_ack *ack = &command.ack;
    int32_t validation = LW_PULSAR_NOT_INVALID;
    if (!lw_pulsar_acks_take(&consumer->acks, &flight->entries, &ack->message_ids,
                             &validation)) {
        give_flight(consumer, flight);
        return false;
    }
    ack->ack_type = LW_PULSAR_ACK_INDIVIDUAL;
    if (validation != LW_PULSAR_NOT_INVALID) {
        ack->has |= LW_PULSAR_ACK_HAS_VALIDATION_ERROR;
        ack->validation_error = validation;
    }
    return send_ack(consumer, flight, &command);
}

/* -- All before a place ----------------------------------------------------------------------------- */

/*
 * Where the messages come in order, the broker has sent everything up to the last one that came;
 * what of it is not open here, nor let go, is acknowledged. Looking costs a walk over the table,
 * so there must be enough to win.
 *
 * A reader of the compacted view has no other way: entries that compaction left out stay
 * unacknowledged, and the broker gives all that is behind the first of them to each new session.
 */
static bool
find_end(struct lw_pulsar_consumer *consumer, struct lw_pulsar_place *ret_end)
{
    const struct lw_pulsar_entries *entries = &consumer->entries;
    bool is_only_way = consumer->options->reads_compacted;
    uint32_t least = is_only_way ? 1 : 2;
    bool is_worth_it = is_only_way || (uint64_t)consumer->acks.pending_count * SLOTS_PER_ACK >=
                                          entries->held.capacity;
    if (!consumer->has_horizon || consumer->acks.pending_count < least || !is_worth_it) {
        return false;
    }
    struct lw_pulsar_place end = { consumer->horizon.ledger, consumer->horizon.entry + 1 };
    struct lw_pulsar_place open = lw_pulsar_entries_first_open(entries, !is_only_way);
    lw_pulsar_chunks_first_open(&consumer->chunks, &open);
    *ret_end = lw_pulsar_place_is_before(open, end) ? open : end;
    return lw_pulsar_acks_are_before(&consumer->acks, *ret_end, least);
}

/* There was no memory, or no room. */
static void
try_later(struct lw_pulsar_consumer *consumer)
{
    struct lw_host *host = consumer->client->host;
    if (!lw_timer_is_armed(&consumer->ack_timer)) {
        lw_timers_arm(&host->timers, &consumer->ack_timer, host->now + 100 * LW_MS);
    }
}

static void
send_cumulative(struct lw_pulsar_consumer *consumer)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_ACK);
    uint8_t buffer[LW_PULSAR_ACK_ID_BYTES];
    struct lw_pulsar_place end;
    if (!find_end(consumer, &end)) {
        return;
    }
    struct lw_pulsar_ack_flight *flight = take_flight(consumer);
    if (!flight) {
        try_later(consumer);
        return;
    }
    lw_pulsar_acks_take_before(&consumer->acks, end, &flight->entries, buffer,
                               &command.ack.message_ids);
    command.ack.ack_type = LW_PULSAR_ACK_CUMULATIVE;
    (void)send_ack(consumer, flight, &command);
}

void
lw_pulsar_consumer_flush_acks(struct lw_pulsar_consumer *consumer)
{
    struct lw_host *host = consumer->client->host;
    bool goes_on = true;
    lw_timers_disarm(&host->timers, &consumer->ack_timer);
    if (consumer->is_in_order && lw_pulsar_consumer_has_session(consumer)) {
        send_cumulative(consumer);
    }
    if (__builtin_expect(consumer->options->reads_compacted, 0)) {
        return; /* the others wait for the first open one */
    }
    while (goes_on && consumer->acks.pending_count > 0 &&
           lw_pulsar_consumer_has_session(consumer)) {
        struct lw_pulsar_ack_flight *flight = take_flight(consumer);
        goes_on = flight && send_group(consumer, flight);
    }
    if (consumer->acks.pending_count > 0 && lw_pulsar_consumer_has_session(consumer)) {
        try_later(consumer);
    }
}

/* What this one leaves goes to another: it shall get the members that are settled no second time,
 * though others of their batch are open. Brokers without sets of members ignore such acks. */
void
lw_pulsar_consumer_ack_parts(struct lw_pulsar_consumer *consumer)
{
    struct lw_list *remembered = &consumer->entries.remembered;
    for (struct lw_list *at = remembered->next, *next; at != remembered; at = next) {
        struct lw_pulsar_entry *entry = LW_CONTAINER(at, struct lw_pulsar_entry, ack_link);
        next = at->next;
        if (!entry->is_fenced && lw_pulsar_entry_has_unacked(entry)) {
            lw_pulsar_acks_add(&consumer->acks, entry);
        }
    }
}

void
lw_pulsar_consumer_return_acks(struct lw_pulsar_consumer *consumer)
{
    for (struct lw_list *link; (link = lw_list_first(&consumer->flights)) != NULL;) {
        struct lw_pulsar_ack_flight *flight = LW_CONTAINER(link, struct lw_pulsar_ack_flight,
                                                           link);
        lw_pulsar_request_cancel(&flight->request);
        lw_pulsar_acks_return(&consumer->acks, &flight->entries);
        give_flight(consumer, flight);
    }
}

void
lw_pulsar_consumer_drop_acks(struct lw_pulsar_consumer *consumer)
{
    struct lw_pulsar_list ids;
    struct lw_list group;
    int32_t validation = 0;
    lw_list_init(&group);
    lw_pulsar_consumer_return_acks(consumer);
    while (lw_pulsar_acks_take(&consumer->acks, &group, &ids, &validation)) {
        lw_pulsar_acks_confirm(&consumer->acks, &group);
    }
}

void
lw_pulsar_consumer_free_flights(struct lw_pulsar_consumer *consumer)
{
    lw_pulsar_consumer_return_acks(consumer);
    for (struct lw_list *link; (link = lw_list_pop(&consumer->spare_flights)) != NULL;) {
        lw_free(LW_CONTAINER(link, struct lw_pulsar_ack_flight, link));
    }
}

void
lw_pulsar_consumer_on_ack_timer(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    lw_pulsar_consumer_flush_acks(LW_CONTAINER(timer, struct lw_pulsar_consumer, ack_timer));
}

void
lw_pulsar_consumer_on_ack_deferred(struct lw_deferred *deferred)
{
    lw_pulsar_consumer_flush_acks(LW_CONTAINER(deferred, struct lw_pulsar_consumer, ack_flush));
}

/* -- Settling -------------------------------------------------------------------------------------- */

/* One that waits for its negative ack may be acknowledged after all; what was settled else may not. */
static bool
takes_back_nack(struct lw_pulsar_consumer *consumer, struct lw_pulsar_received *member)
{
    struct lw_pulsar_entry *entry = member->arrival->entry;
    uint32_t bit = lw_pulsar_received_bit(member);
    if (member->state != LW_PULSAR_SETTLED || !lw_pulsar_bit_is_set(entry->nacked, bit)) {
        return false;
    }
    lw_pulsar_bit_clear(entry->nacked, bit);
    uint64_t left = 0;
    for (uint32_t i = 0; i < entry->word_count; i++) {
        left |= entry->nacked[i];
    }
    if (left == 0) {
        lw_pulsar_nacks_remove(&consumer->nacks, entry);
    }
    return true;
}

/* True: the entry is to be acknowledged now. */
__attribute__((noinline)) static bool
settle_member(struct lw_pulsar_consumer *consumer, struct lw_pulsar_entry *entry, uint32_t bit)
{
    lw_pulsar_bit_clear(entry->unacked, bit);
    lw_pulsar_bit_clear(entry->here, bit);
    if (!lw_pulsar_entry_has_here(entry)) {
        lw_pulsar_entry_unwatch(entry);
    }
    if (!lw_pulsar_entry_has_unacked(entry) || consumer->options->acks_batch_index) {
        return true;
    }
    if (entry->ack_state == LW_PULSAR_ACK_NONE) {
        lw_pulsar_entry_remember(entry);
    }
    return false;
}

LW_INLINE bool
settle_single(struct lw_pulsar_entry *entry)
{
    entry->unacked[0] = 0;
    entry->here[0] = 0;
    lw_pulsar_entry_unwatch(entry);
    return true;
}

void
lw_pulsar_consumer_ack(struct lw_pulsar_consumer *consumer, const struct lw_message *message)
{
    struct lw_pulsar_received *member = message->owner;
    struct lw_pulsar_entry *entry = member->arrival->entry;
    if (entry->is_fenced || (__builtin_expect(member->state != LW_PULSAR_HELD, 0) &&
                             !takes_back_nack(consumer, member))) {
        return;
    }
    member->state = LW_PULSAR_SETTLED;
    if (entry->batch_size == 0
            ? settle_single(entry)
            : settle_member(consumer, entry, lw_pulsar_received_bit(member))) {
        lw_pulsar_acks_add(&consumer->acks, entry);
        if (consumer->acks.pending_count >= consumer->options->ack_group_max ||
            !lw_timer_is_armed(&consumer->ack_timer)) {
            lw_pulsar_consumer_plan_acks(consumer);
        }
    }
}
