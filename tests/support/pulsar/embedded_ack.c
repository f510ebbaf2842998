/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acknowledgements and asking back. Ids are matched by ledger and entry alone; a receipt proves
 * only that the command was processed. One rule is kept on behalf of tests: within one connection
 * and consumer epoch no id is acknowledged twice (a batch: no command that acknowledges nothing
 * new). Breaking it is counted as a violation and changes nothing else.
 */
#include "tests/support/pulsar/embedded_state.h"

static bool
is_by_entry(const struct embedded_subscription *subscription)
{
    return subscription->type == LW_PULSAR_SUB_SHARED ||
           subscription->type == LW_PULSAR_SUB_KEY_SHARED;
}

static void
blame(const struct embedded_consumer *consumer, uint64_t number, const char *what)
{
    embedded_violation(consumer->session->broker, "%s: entry %llu of %s, consumer %s, %s",
                       consumer->subscription->name, (unsigned long long)number,
                       strrchr(consumer->subscription->topic->name, '/') + 1, consumer->name,
                       what);
}

/* -- One id ------------------------------------------------------------------------------------------- */

static void
note_strange(struct embedded_consumer *consumer, uint64_t number)
{
    const struct embedded_cell *cell = &consumer->subscription->cells[number];
    bool is_mine = number >= consumer->subscription->mark &&
                   (cell->flags & CELL_PENDING) != 0 && cell->owner == consumer->serial;
    if (!is_mine) {
        consumer->session->broker->counts.acks_strange++;
    }
}

static void
ack_whole(struct embedded_consumer *consumer, uint64_t number)
{
    struct embedded_subscription *subscription = consumer->subscription;
    bool is_acked = embedded_cell_is_acked(subscription, number);
    struct embedded_cell *cell = &subscription->cells[number];
    if (is_acked && cell->acked_scope == consumer->scope) {
        blame(consumer, number, "acknowledged twice");
    }
    note_strange(consumer, number);
    cell->acked_scope = consumer->scope;
    embedded_cell_ack(subscription, number);
}

static void
ack_members(struct embedded_consumer *consumer, uint64_t number,
            const struct lw_pulsar_list *words)
{
    struct embedded_subscription *subscription = consumer->subscription;
    struct embedded_cell *cell = &subscription->cells[number];
    bool was_here = cell->acked_scope == consumer->scope;
    bool is_new = !embedded_cell_is_acked(subscription, number) &&
                  embedded_cell_keep(subscription, number, words);
    if (!is_new && was_here) {
        blame(consumer, number, "members acknowledged twice");
    }
    subscription->cells[number].acked_scope = consumer->scope;
}

static bool
is_all_zero(const struct lw_pulsar_list *words)
{
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(words);
    uint64_t word;
    while (lw_pulsar_walk_number(&walk, &word)) {
        if (word != 0) {
            return false;
        }
    }
    return true;
}

static void
ack_one(struct embedded_consumer *consumer, const struct lw_pulsar_message_id *id)
{
    struct embedded_topic *topic = consumer->subscription->topic;
    uint64_t number;
    topic->broker->counts.acked_ids++;
    if (!embedded_number_of(topic, id->ledger, id->entry, &number)) {
        topic->broker->counts.acks_strange++;
        return;
    }
    embedded_cells_cover(consumer->subscription, topic->count);
    if (id->ack_set.count == 0 || is_all_zero(&id->ack_set)) {
        ack_whole(consumer, number);
    } else if (topic->broker->settings.is_batch_index_ack) {
        ack_members(consumer, number, &id->ack_set);
    }
}

/* -- Cumulative --------------------------------------------------------------------------------------- */

static void
ack_up_to(struct embedded_consumer *consumer, const struct lw_pulsar_message_id *id)
{
    struct embedded_subscription *subscription = consumer->subscription;
    struct embedded_topic *topic = subscription->topic;
    bool has_set = id->ack_set.count > 0 && !is_all_zero(&id->ack_set);
    uint64_t number;
    topic->broker->counts.acked_ids++;
    embedded_cells_cover(subscription, topic->count);
    if (!embedded_number_of(topic, id->ledger, id->entry, &number)) {
        return; /* before the first, beyond the last, of another ledger: no effect */
    }
    if (embedded_cell_is_acked(subscription, number)) {
        if (subscription->cells[number].acked_scope == consumer->scope) {
            blame(consumer, number, "acknowledged twice, cumulatively");
        }
        return;
    }
    uint64_t end = has_set ? number : number + 1;
    for (uint64_t i = subscription->mark; i < end; i++) {
        if (!embedded_cell_is_acked(subscription, i)) {
            const struct embedded_cell *cell = &subscription->cells[i];
            if ((cell->flags & CELL_PENDING) == 0 || cell->owner != consumer->serial) {
                blame(consumer, i, "covered by an acknowledgement though it was never given");
            }
            subscription->cells[i].acked_scope = consumer->scope;
            embedded_cell_ack(subscription, i);
        }
    }
    if (has_set && topic->broker->settings.is_batch_index_ack) {
        ack_members(consumer, number, &id->ack_set);
    }
}

static void
ack_ids(struct embedded_consumer *consumer, const struct lw_pulsar_ack *ack)
{
    bool is_cumulative = ack->ack_type == LW_PULSAR_ACK_CUMULATIVE;
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(&ack->message_ids);
    struct lw_pulsar_message_id id;
    if (is_cumulative && (is_by_entry(consumer->subscription) || ack->message_ids.count != 1)) {
        blame(consumer, 0, "a cumulative acknowledgement without effect");
        return;
    }
    while (lw_pulsar_walk_id(&walk, &id)) {
        if (is_cumulative) {
            ack_up_to(consumer, &id);
        } else {
            ack_one(consumer, &id);
        }
    }
}

void
embedded_on_ack(struct embedded_session *session, const struct lw_pulsar_ack *ack)
{
    struct embedded_counts *counts = &session->broker->counts;
    struct embedded_consumer *consumer = embedded_consumer_find(session, ack->consumer_id);
    struct lw_pulsar_command question = { .type = LW_PULSAR_ACK };
    question.ack = *ack;
    counts->ack_commands++;
    if (consumer == NULL) {
        return;
    }
    if (ack->txnid_least_bits != 0 || ack->txnid_most_bits != 0) {
        embedded_refuse(session, &question, LW_PULSAR_NOT_ALLOWED,
                        "NotAllowedException: Server don't support transaction ack!");
        return;
    }
    if ((ack->has & LW_PULSAR_ACK_HAS_VALIDATION_ERROR) != 0 && ack->validation_error >= 0 &&
        ack->validation_error < 5) {
        counts->acks_invalid[ack->validation_error]++;
    }
    counts->ack_commands_cumulative += ack->ack_type == LW_PULSAR_ACK_CUMULATIVE;
    ack_ids(consumer, ack);
    embedded_want_dispatch(consumer->subscription);
    if ((ack->has & LW_PULSAR_ACK_HAS_REQUEST_ID) != 0) {
        struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_ACK_RESPONSE);
        answer.ack_response.has = LW_PULSAR_ACK_RESPONSE_HAS_REQUEST_ID;
        answer.ack_response.consumer_id = ack->consumer_id;
        answer.ack_response.request_id = ack->request_id;
        embedded_reply(session, &answer);
    }
}

/* -- Asking back ---------------------------------------------------------------------------------------- */

static void
ask_back(struct embedded_consumer *consumer, uint64_t number)
{
    struct embedded_subscription *subscription = consumer->subscription;
    struct embedded_cell *cell = &subscription->cells[number];
    if (number >= subscription->capacity || (cell->flags & CELL_PENDING) == 0 ||
        cell->owner != consumer->serial) {
        return;
    }
    consumer->session->broker->counts.redelivered++;
    embedded_cell_unpend(subscription, number);
    cell->redeliveries++;
    embedded_cell_replay(subscription, number);
}

static void
ask_back_some(struct embedded_consumer *consumer, const struct lw_pulsar_list *ids)
{
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(ids);
    struct lw_pulsar_message_id id;
    uint64_t number;
    while (lw_pulsar_walk_id(&walk, &id)) {
        if (embedded_number_of(consumer->subscription->topic, id.ledger, id.entry, &number)) {
            ask_back(consumer, number);
        }
    }
}

static void
ask_back_all(struct embedded_consumer *consumer)
{
    struct embedded_subscription *subscription = consumer->subscription;
    for (uint64_t i = subscription->mark; i < subscription->read; i++) {
        ask_back(consumer, i);
    }
}

void
embedded_on_redeliver(struct embedded_session *session,
                      const struct lw_pulsar_redeliver *command)
{
    struct embedded_consumer *consumer = embedded_consumer_find(session, command->consumer_id);
    if (consumer == NULL) {
        return;
    }
    if (!is_by_entry(consumer->subscription)) {
        bool has_epoch = (command->has & LW_PULSAR_REDELIVER_HAS_CONSUMER_EPOCH) != 0;
        if (has_epoch && command->message_ids.count == 0) {
            consumer->scope = command->consumer_epoch == consumer->epoch && consumer->has_epoch
                                  ? consumer->scope
                                  : session->broker->next_scope++;
            consumer->has_epoch = true;
            consumer->epoch = command->consumer_epoch;
        }
        session->broker->counts.redelivered += consumer->subscription->pending;
        embedded_cells_rewind(consumer->subscription, false);
    } else if (command->message_ids.count > 0) {
        ask_back_some(consumer, &command->message_ids);
    } else {
        ask_back_all(consumer);
    }
    embedded_want_dispatch(consumer->subscription);
}
