/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking for messages again: after a negative ack and its delay, and when one is held longer than
 * the ack time-out. Shared and Key_Shared name the entries; on Exclusive and Failover the broker
 * rewinds to the first unacknowledged one under a new epoch, and copies of what is still held here
 * are dropped as they come. What waits stays while there is no session: a copy that a new session
 * brings is dropped until its time has come.
 */
#include "base/alloc.h"
#include "brokers/pulsar/consumer_state.h"

#define STEP_MAX_NS (256 * LW_MS)

enum { IDS_MAX = 1000, BUFFER_BYTES = 64 * 1024, ID_ROOM = 64, STEPS = 64 };

/* -- Sending --------------------------------------------------------------------------------------- */

struct asking {
    struct lw_proto_writer writer;
    uint32_t count;
};

static void
send_redeliver(struct lw_pulsar_consumer *consumer, struct asking *asking)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_REDELIVER_UNACKNOWLEDGED);
    if (asking->count == 0) {
        return;
    }
    command.redeliver.consumer_id = consumer->user.id;
    command.redeliver.message_ids = lw_pulsar_list_of(&asking->writer);
    (void)lw_pulsar_connection_send(consumer->connection, &command);
    asking->writer.size = 0;
    asking->count = 0;
}

static void
put_one(struct lw_pulsar_consumer *consumer, struct asking *asking,
        const struct lw_pulsar_chunk_id *id)
{
    struct lw_pulsar_message_id full = lw_pulsar_message_id_of(id->ledger, id->entry);
    if (asking->count == IDS_MAX || asking->writer.size + ID_ROOM > asking->writer.capacity) {
        send_redeliver(consumer, asking);
    }
    lw_pulsar_list_put_id(&asking->writer, &full);
    asking->count++;
}

static void
put_entry(struct lw_pulsar_consumer *consumer, struct asking *asking,
          const struct lw_pulsar_entry *entry)
{
    for (uint32_t i = 0; i < entry->chunk_count; i++) {
        put_one(consumer, asking, &entry->chunks[i]);
    }
    struct lw_pulsar_chunk_id own = { entry->ledger, entry->id };
    put_one(consumer, asking, &own);
}

/* False: no memory; it is tried again by the timer. */
static bool
begin_asking(struct lw_pulsar_consumer *consumer, struct asking *asking)
{
    if (!consumer->ids_buffer) {
        consumer->ids_buffer = lw_alloc(BUFFER_BYTES);
    }
    *asking = (struct asking){ .count = 0 };
    asking->writer = lw_proto_writer_of(consumer->ids_buffer, BUFFER_BYTES);
    return consumer->ids_buffer != NULL;
}

void
lw_pulsar_consumer_rewind(struct lw_pulsar_consumer *consumer)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_REDELIVER_UNACKNOWLEDGED);
    consumer->has_horizon = false;           /* what was let go for this must not be covered */
    lw_pulsar_consumer_flush_acks(consumer); /* before it reads anew */
    lw_pulsar_consumer_clear_queue(consumer);
    lw_pulsar_chunks_clear(&consumer->chunks);
    lw_pulsar_consumer_expect_copies(consumer);
    consumer->epoch++;
    consumer->has_rewound = true;
    lw_pulsar_consumer_read_anew(consumer);
    command.redeliver.consumer_id = consumer->user.id;
    command.redeliver.consumer_epoch = consumer->epoch;
    command.redeliver.has |= LW_PULSAR_REDELIVER_HAS_CONSUMER_EPOCH;
    if (lw_pulsar_connection_send(consumer->connection, &command)) {
        lw_pulsar_consumer_flow(consumer);
    }
}

/* -- Negative acks --------------------------------------------------------------------------------- */

/* What waited is not here any more: its next copy is welcome. */
static void
free_nacked(struct lw_pulsar_entry *entry)
{
    for (uint32_t i = 0; i < entry->word_count; i++) {
        entry->here[i] &= ~entry->nacked[i];
        entry->nacked[i] = 0;
    }
    lw_pulsar_entry_tidy(entry);
}

void
lw_pulsar_consumer_drop_nack(struct lw_pulsar_consumer *consumer, struct lw_pulsar_entry *entry)
{
    lw_pulsar_nacks_remove(&consumer->nacks, entry);
    free_nacked(entry);
}

static void
arm(struct lw_pulsar_consumer *consumer)
{
    struct lw_host *host = consumer->client->host;
    lw_timers_arm(&host->timers, &consumer->nack_timer, lw_pulsar_nacks_next(&consumer->nacks));
}

void
lw_pulsar_consumer_on_nack_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_consumer *consumer = LW_CONTAINER(timer, struct lw_pulsar_consumer,
                                                       nack_timer);
    struct lw_pulsar_entry *entry;
    struct asking asking;
    bool rewinds = lw_pulsar_consumer_rewinds(consumer);
    bool is_due = lw_pulsar_nacks_next(&consumer->nacks) <= now;
    if (!lw_pulsar_consumer_has_session(consumer) || consumer->is_seeking) {
        return; /* the next session looks again */
    }
    if (!begin_asking(consumer, &asking)) {
        lw_timers_arm(&consumer->client->host->timers, timer, now + STEP_MAX_NS);
        return;
    }
    while ((entry = lw_pulsar_nacks_pop(&consumer->nacks, now)) != NULL) {
        if (!rewinds) {
            put_entry(consumer, &asking, entry);
        }
        free_nacked(entry);
    }
    if (rewinds && is_due) {
        lw_pulsar_consumer_rewind(consumer);
    } else {
        send_redeliver(consumer, &asking);
    }
    arm(consumer);
}

/* Times are rounded up a little, so that many become one command. */
static uint64_t
due_after(uint64_t now, uint64_t delay_ns)
{
    uint64_t step = delay_ns / STEPS;
    step = step < STEP_MAX_NS ? step : STEP_MAX_NS;
    uint64_t due = delay_ns < UINT64_MAX / 2 - now ? now + delay_ns : UINT64_MAX / 2;
    return step > 1 && due % step > 0 ? due + step - due % step : due;
}

void
lw_pulsar_consumer_plan_nack(struct lw_pulsar_consumer *consumer, struct lw_pulsar_entry *entry,
                             uint64_t delay_ns)
{
    uint64_t due = due_after(consumer->client->host->now, delay_ns);
    if (!lw_pulsar_nacks_add(&consumer->nacks, entry, due)) {
        free_nacked(entry); /* no memory to wait: another session brings it again */
        if (lw_pulsar_consumer_has_session(consumer)) {
            lw_pulsar_connection_close(consumer->connection, NULL);
        }
        return;
    }
    arm(consumer);
}

static bool
all_wait(const struct lw_pulsar_entry *entry)
{
    uint64_t held = 0;
    for (uint32_t i = 0; i < entry->word_count; i++) {
        held |= entry->here[i] & ~entry->nacked[i];
    }
    return held == 0;
}

void
lw_pulsar_consumer_nack(struct lw_pulsar_consumer *consumer, const struct lw_message *message,
                        uint64_t delay_ns)
{
    const struct lw_pulsar_consumer_settings *options = consumer->options;
    struct lw_pulsar_received *member = message->owner;
    struct lw_pulsar_entry *entry = member->arrival->entry;
    if (entry->is_fenced || member->state != LW_PULSAR_HELD) {
        return;
    }
    member->state = LW_PULSAR_SETTLED;
    lw_pulsar_bit_set(entry->nacked, lw_pulsar_received_bit(member));
    if (all_wait(entry)) {
        lw_list_remove(&entry->timeout_link);
    }
    if (delay_ns == UINT64_MAX) {
        delay_ns = lw_pulsar_nacks_delay(options->nack_delay_ns, options->nack_delay_max_ns,
                                         options->nack_multiplier, message->redeliveries);
    }
    lw_pulsar_consumer_plan_nack(consumer, entry, delay_ns);
}

/* -- Ack time-out ---------------------------------------------------------------------------------- */

void
lw_pulsar_consumer_watch(struct lw_pulsar_consumer *consumer, struct lw_pulsar_entry *entry)
{
    struct lw_host *host = consumer->client->host;
    entry->timeout_due = host->now + consumer->options->ack_timeout_ns;
    lw_list_remove(&entry->timeout_link);
    lw_list_push(&consumer->timeouts, &entry->timeout_link);
    if (!lw_timer_is_armed(&consumer->timeout_timer)) {
        lw_timers_arm(&host->timers, &consumer->timeout_timer, entry->timeout_due);
    }
}

static struct lw_pulsar_entry *
oldest_held(const struct lw_pulsar_consumer *consumer)
{
    struct lw_list *link = lw_list_first(&consumer->timeouts);
    return link ? LW_CONTAINER(link, struct lw_pulsar_entry, timeout_link) : NULL;
}

void
lw_pulsar_consumer_on_timeout_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_consumer *consumer = LW_CONTAINER(timer, struct lw_pulsar_consumer,
                                                       timeout_timer);
    struct lw_host *host = consumer->client->host;
    bool rewinds = lw_pulsar_consumer_rewinds(consumer);
    bool has_expired = false;
    struct lw_pulsar_entry *entry;
    struct asking asking;
    if (!lw_pulsar_consumer_has_session(consumer) || !begin_asking(consumer, &asking)) {
        lw_timers_arm(&host->timers, timer, now + STEP_MAX_NS);
        return;
    }
    entry = oldest_held(consumer);
    if (entry && entry->timeout_due <= now) {
        lw_pulsar_consumer_flush_acks(consumer); /* what of them is done need not come again */
    }
    while ((entry = oldest_held(consumer)) != NULL && entry->timeout_due <= now) {
        has_expired = true;
        if (!rewinds) {
            put_entry(consumer, &asking, entry);
        }
        lw_pulsar_nacks_remove(&consumer->nacks, entry);
        lw_pulsar_entry_fence(entry);
    }
    if (rewinds && has_expired) {
        lw_pulsar_consumer_rewind(consumer);
    } else {
        send_redeliver(consumer, &asking);
    }
    entry = oldest_held(consumer);
    lw_timers_arm(&host->timers, timer, entry ? entry->timeout_due : LW_NEVER);
}
