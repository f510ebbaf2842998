/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes to the worker in bunches. A command is filled until the next turn, or until it is full;
 * those that came back are used again, so the path of a message allocates nothing after the start.
 * A receipt's event is reserved when its publication is accepted. Loop thread.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "brokers/spool/spool.h"

enum { PUBLICATIONS_MAX = 10000 };
#define PUBLICATION_BYTES_MAX (UINT64_C(64) << 20)

/* -- Publications --------------------------------------------------------------------------------- */

static size_t
size_of(const struct lw_publication *publication)
{
    return publication->key.size + publication->value.size;
}

static void
give_receipt(struct lw_spool_broker *broker, const struct lw_spool_item *item)
{
    struct lw_event event = {
        .kind = LW_EVENT_PUBLISHED,
        .publication = item->publication,
        .status = item->status,
    };
    broker->publications--;
    broker->publication_bytes -= size_of(item->publication);
    lw_events_push_reserved(&broker->events, &event);
}

static bool
has_room(const struct lw_spool_broker *broker)
{
    return broker->publications < PUBLICATIONS_MAX &&
           broker->publication_bytes < PUBLICATION_BYTES_MAX;
}

static void
on_published(struct lw_letter *letter)
{
    struct lw_spool_command *command = LW_CONTAINER(letter, struct lw_spool_command, letter);
    struct lw_spool_publishing *own = LW_CONTAINER(command, struct lw_spool_publishing,
                                                   command);
    struct lw_spool_broker *broker = own->broker;
    for (uint32_t i = 0; i < command->count; i++) {
        give_receipt(broker, &own->items[i]);
    }
    command->count = 0;
    lw_list_push(&broker->spare_publishing, &command->link);
    if (broker->owes_room && broker->publications <= PUBLICATIONS_MAX / 2 &&
        broker->publication_bytes <= PUBLICATION_BYTES_MAX / 2) {
        broker->owes_room = false;
        struct lw_event event = { .kind = LW_EVENT_PUBLISH_ROOM };
        lw_events_push(&broker->events, &event);
    }
}

static struct lw_spool_publishing *
take_publishing(struct lw_spool_broker *broker)
{
    struct lw_list *node = lw_list_pop(&broker->spare_publishing);
    if (node) {
        return LW_CONTAINER(node, struct lw_spool_publishing, command.link);
    }
    struct lw_spool_publishing *own = lw_alloc(sizeof *own);
    if (own) {
        lw_spool_command_init(&own->command, LW_SPOOL_COMMAND_PUBLISH, on_published);
        lw_list_init(&own->batch.link);
        own->broker = broker;
    }
    return own;
}

static void
post_publishing(struct lw_spool_broker *broker)
{
    struct lw_spool_publishing *own = broker->publishing;
    broker->publishing = NULL;
    lw_spool_worker_post(broker->worker, &own->command);
}

/* False: no room, or no memory. */
static bool
accept(struct lw_spool_broker *broker, struct lw_publication *publication)
{
    if (!has_room(broker) || !lw_events_reserve(&broker->events, 1)) {
        return false;
    }
    if (!broker->publishing) {
        broker->publishing = take_publishing(broker);
    }
    if (!broker->publishing) {
        lw_events_unreserve(&broker->events, 1);
        return false;
    }
    struct lw_spool_publishing *own = broker->publishing;
    own->items[own->command.count++] = (struct lw_spool_item){ .publication = publication };
    broker->publications++;
    broker->publication_bytes += size_of(publication);
    if (own->command.count == LW_SPOOL_BATCH) {
        post_publishing(broker);
    }
    return true;
}

size_t
lw_spool_publish(struct lw_spool_broker *broker, struct lw_publication *const items[], size_t n)
{
    size_t taken = 0;
    if (broker->state != LW_SPOOL_UP) {
        return 0;
    }
    while (taken < n && accept(broker, items[taken])) {
        taken++;
    }
    if (taken < n) {
        broker->owes_room = true;
    }
    if (broker->publishing || broker->owes_room) {
        lw_host_defer(broker->base.host, &broker->flush);
    }
    return taken;
}

/* -- Verdicts ------------------------------------------------------------------------------------ */

static void
on_settled(struct lw_letter *letter)
{
    struct lw_spool_command *command = LW_CONTAINER(letter, struct lw_spool_command, letter);
    struct lw_spool_settling *own = LW_CONTAINER(command, struct lw_spool_settling, command);
    command->count = 0;
    lw_list_push(&own->broker->spare_settling, &command->link);
}

static struct lw_spool_settling *
take_settling(struct lw_spool_broker *broker)
{
    struct lw_list *node = lw_list_pop(&broker->spare_settling);
    if (node) {
        return LW_CONTAINER(node, struct lw_spool_settling, command.link);
    }
    struct lw_spool_settling *own = lw_alloc(sizeof *own);
    if (own) {
        lw_spool_command_init(&own->command, LW_SPOOL_COMMAND_SETTLE, on_settled);
        own->broker = broker;
    }
    return own;
}

static void
post_settling(struct lw_spool_broker *broker)
{
    struct lw_spool_settling *own = broker->settling;
    broker->settling = NULL;
    lw_spool_worker_post(broker->worker, &own->command);
}

/* Without memory for a command the verdict is lost, and the message comes again after a restart. */
void
lw_spool_add_verdict(struct lw_spool_broker *broker, const struct lw_spool_verdict *verdict)
{
    if (broker->state != LW_SPOOL_UP) {
        return;
    }
    if (!broker->settling) {
        broker->settling = take_settling(broker);
        lw_host_defer(broker->base.host, &broker->flush);
    }
    if (!broker->settling) {
        lw_host_log(broker->base.host, LW_LOG_ERROR, "spool.no_memory",
                    "a verdict was lost for lack of memory; the message comes again",
                    "broker=%s", broker->name);
        return;
    }
    struct lw_spool_settling *own = broker->settling;
    own->items[own->command.count++] = *verdict;
    if (own->command.count == LW_SPOOL_BATCH) {
        post_settling(broker);
    }
}

/* -- Both ---------------------------------------------------------------------------------------- */

void
lw_spool_flush(struct lw_spool_broker *broker)
{
    if (broker->settling) {
        post_settling(broker);
    }
    if (broker->publishing) {
        post_publishing(broker);
    }
    if (broker->owes_room && broker->publications == 0) {
        broker->owes_room = false; /* memory was short, and nothing is out that would say so */
        struct lw_event event = { .kind = LW_EVENT_PUBLISH_ROOM };
        lw_events_push(&broker->events, &event);
    }
}

void
lw_spool_free_commands(struct lw_spool_broker *broker)
{
    struct lw_list *node;
    lw_assert(!broker->publishing && !broker->settling);
    while ((node = lw_list_pop(&broker->spare_publishing)) != NULL) {
        lw_free(LW_CONTAINER(node, struct lw_spool_publishing, command.link));
    }
    while ((node = lw_list_pop(&broker->spare_settling)) != NULL) {
        lw_free(LW_CONTAINER(node, struct lw_spool_settling, command.link));
    }
}
