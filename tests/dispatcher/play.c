/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moves of a random play and the book-keeping that all judges share. Every random number comes
 * from the seed, so that a failing play repeats. See play.h.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/play.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"

uint32_t
play_dice(struct play *play, uint32_t sides)
{
    play->random = lw_hash_u64(play->random, play->plan.seed);
    return (uint32_t)(play->random >> 33) % sides;
}

const char *
play_topic_name(uint32_t topic)
{
    static const char *const names[] = { "t0", "t1", "t2" };
    return names[topic];
}

uint32_t
play_topic(const struct lw_partition *partition)
{
    return (uint32_t)(partition->topic[1] - '0');
}

struct play_message *
play_message_of(struct play *play, const struct lw_history_event *event)
{
    const struct lw_partition *partition = event->partition;
    assert_in_range(event->position, 0, PLAY_POSITIONS - 1);
    return &play->messages[play_topic(partition)][partition->number][event->position];
}

struct play_delivery *
play_delivery_of(struct play *play, const struct lw_delivery *delivery)
{
    uint32_t i = 0;
    while (play->deliveries[i].delivery && play->deliveries[i].delivery != delivery) {
        assert_true(++i < PLAY_HELD);
    }
    play->deliveries[i].delivery = delivery;
    return &play->deliveries[i];
}

/* -- what every judge may know --------------------------------------------------------------- */

static uint32_t
owed_by(const struct lw_history_event *event)
{
    const struct lw_outcome *outcome = event->delivery->outcome;
    switch ((enum lw_action)event->action) {
    case LW_ACTION_DONE:
        return outcome ? outcome->output_count : 0;
    case LW_ACTION_REPUBLISH:
    case LW_ACTION_DEAD:
        return 1;
    case LW_ACTION_PARK:
    case LW_ACTION_DROP:
    case LW_ACTION_NACK:
    case LW_ACTION_HOLD:
    case LW_ACTION_STOP:
        return 0;
    }
    return 0;
}

static void
note_delivery(struct play *play, const struct lw_history_event *event)
{
    struct play_message *message = play_message_of(play, event);
    struct play_delivery *delivery = play_delivery_of(play, event->delivery);
    switch (event->kind) {
    case LW_HISTORY_RECEIVED:
        message->held++;
        *delivery = (struct play_delivery){ .delivery = event->delivery, .is_held = true };
        return;
    case LW_HISTORY_STARTED:
        message->running++;
        delivery->attempt = event->delivery->attempt;
        return;
    case LW_HISTORY_RETURNED:
        message->running--;
        delivery->was_uncharged = event->delivery->outcome &&
                                  event->delivery->outcome->is_uncharged;
        return;
    case LW_HISTORY_JUDGED:
        delivery->owed = owed_by(event);
        delivery->published = 0;
        return;
    case LW_HISTORY_PUBLISHED:
        delivery->published++;
        return;
    case LW_HISTORY_SETTLED:
        message->is_done = message->is_done || (event->detail != LW_SETTLED_REDELIVERED &&
                                                event->detail != LW_SETTLED_GIVEN_BACK);
        play->effects += event->detail == LW_SETTLED_ACKED ||
                                 event->detail == LW_SETTLED_DEAD_LETTERED
                             ? delivery->owed
                             : 0;
        message->held--;
        delivery->is_held = false;
        return;
    case LW_HISTORY_DROPPED:
        message->held--;
        delivery->is_held = false;
        return;
    case LW_HISTORY_ASSIGNED:
    case LW_HISTORY_COMMITTED:
    case LW_HISTORY_REVOKED:
        return;
    }
}

static void
on_event(const struct lw_history_event *event, void *user)
{
    struct play *play = user;
    play->events++;
    if (play->plan.on_event) {
        play->plan.on_event(play, event); /* sees the state before the event */
    }
    if (event->delivery) {
        note_delivery(play, event);
    }
}

/* -- moves ------------------------------------------------------------------------------------ */

static void
send_some(struct play *play)
{
    char key[16];
    uint32_t topic = play_dice(play, PLAY_TOPICS);
    int32_t partition = (int32_t)play_dice(play, PLAY_PARTITIONS);
    snprintf(key, sizeof(key), "k%u", play_dice(play, PLAY_KEYS));
    if (lw_memory_hub_end(play->world.hub, play_topic_name(topic), partition) <
        PLAY_POSITIONS - 32) {
        world_send(&play->world, play_topic_name(topic), partition,
                   play_dice(play, 8) ? key : NULL, 1 + play_dice(play, 6));
    }
    world_turn(&play->world);
}

static enum lw_verdict
failing_verdict(struct play *play, struct lw_delivery *delivery)
{
    switch (play_dice(play, 6)) {
    case 0:
        return lw_delivery_retry(delivery, NULL, play_dice(play, 500));
    case 1:
        return lw_delivery_dead(delivery, "bad");
    case 2:
        return LW_DROP;
    case 3: {
        struct lw_outcome *outcome = lw_delivery_outcome(delivery);
        outcome->is_uncharged = true; /* the engine was at fault, or wants it later */
        if (play_dice(play, 2) == 0) {
            return LW_ERROR;
        }
        outcome->delay_ms = play_dice(play, 500);
        return LW_RETRY;
    }
    default:
        return LW_ERROR;
    }
}

static void
end_one(struct play *play)
{
    struct world *world = &play->world;
    if (world->running_count == 0) {
        return;
    }
    uint32_t i = play_dice(play, world->running_count);
    struct lw_delivery *delivery = world->running[i];
    enum lw_verdict verdict = LW_OK;
    if (play_dice(play, 100) < play->plan.fail_percent) {
        verdict = failing_verdict(play, delivery);
    } else if (play_dice(play, 100) < play->plan.reply_percent) {
        (void)lw_delivery_reply(delivery, lw_delivery_value(delivery));
    }
    world_finish(world, i, verdict);
}

static void
make_trouble(struct play *play)
{
    struct world *world = &play->world;
    struct lw_stream *stream = world->dispatcher.streams[play_dice(play, PLAY_TOPICS)];
    switch (play_dice(play, 7)) {
    case 0:
        lw_memory_hub_rebalance(world->hub, "group");
        break;
    case 1:
        lw_memory_hub_lose(world->hub, "main");
        break;
    case 2:
        world_fault(world, LW_MEMORY_FAIL_COMMIT, 1 + play_dice(play, 3),
                    LW_STATUS_UNAVAILABLE);
        break;
    case 3:
        world_fault(world, LW_MEMORY_REFUSE_PUBLISH, 1 + play_dice(play, 3),
                    play_dice(play, 2) ? LW_STATUS_UNAVAILABLE : LW_STATUS_DENIED);
        break;
    case 4:
        lw_memory_hub_set_room(world->hub, play_dice(play, 2) == 0);
        break;
    case 5:
        lw_memory_hub_options(world->hub)->commit_latency_ns = play_dice(play, 200) * LW_MS;
        lw_memory_hub_options(world->hub)->publish_latency_ns = play_dice(play, 200) * LW_MS;
        break;
    default:
        lw_dispatcher_pause(&world->dispatcher, stream, !stream->subscription.is_paused);
        break;
    }
    world_turn(world);
}

static void
move(struct play *play)
{
    if (play_dice(play, 100) < play->plan.fault_percent) {
        make_trouble(play);
        return;
    }
    switch (play_dice(play, 8)) {
    case 0:
    case 1:
        send_some(play);
        return;
    case 2:
        world_pass(&play->world, play_dice(play, 150));
        return;
    default:
        end_one(play);
        return;
    }
}

/* -- the whole play --------------------------------------------------------------------------- */

static void
begin(struct play *play)
{
    struct lw_memory_options hub;
    lw_memory_options_init(&hub);
    hub.mode = play->plan.is_individual ? LW_MEMORY_INDIVIDUAL : LW_MEMORY_POSITION;
    hub.nack_delay_ns = 300 * LW_MS;
    world_init(&play->world, play->plan.slots, &hub);
    play->world.clock->host.log = NULL;
    play->history = (struct lw_history){ on_event, play };
    play->world.dispatcher.history = &play->history;
    for (uint32_t i = 0; i < PLAY_TOPICS; i++) {
        struct lw_subscription_options options = world_options(play_topic_name(i),
                                                               (int32_t)i / 2);
        options.ordering = i == 2 ? LW_ORDERING_PARTITION : LW_ORDERING_KEY;
        options.keyless = i == 1 ? LW_KEYLESS_ROTATE : LW_KEYLESS_SHARED;
        options.retry.in_place_backoff = (struct lw_backoff_options){ 50, 2, 400, 50 };
        options.reply.topic = "replies";
        options.dead_letter.topic = "dead";
        options.max_in_flight = 40;
        options.max_uncommitted = 128;
        options.concurrency = i == 0 ? play->plan.slots / 2 : 0;
        world_topic(&play->world, play_topic_name(i), PLAY_PARTITIONS);
        world_add(&play->world, &options);
    }
    world_start(&play->world);
}

static uint64_t
backlog(const struct play *play)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < PLAY_TOPICS; i++) {
        count += lw_memory_hub_backlog(play->world.hub, "group", play_topic_name(i));
    }
    return count;
}

/* All troubles stop, every handler says ok: then everything ends. */
static void
calm_down(struct play *play)
{
    struct world *world = &play->world;
    lw_memory_hub_clear_faults(world->hub);
    lw_memory_hub_set_room(world->hub, true);
    for (uint32_t i = 0; i < PLAY_TOPICS; i++) {
        lw_dispatcher_pause(&world->dispatcher, world->dispatcher.streams[i], false);
    }
    for (int i = 0; i < 4000 && backlog(play) + world->dispatcher.held_count > 0; i++) {
        while (world->running_count > 0) {
            world_finish(world, 0, LW_OK);
        }
        world_pass(world, 100);
        if (play->plan.after_move) {
            play->plan.after_move(play);
        }
    }
    assert_int_equal(backlog(play), 0);
    assert_int_equal(world->dispatcher.held_count, 0);
}

static void
expect_all_done(const struct play *play)
{
    for (uint32_t t = 0; t < PLAY_TOPICS; t++) {
        for (int32_t p = 0; p < PLAY_PARTITIONS; p++) {
            int64_t end = lw_memory_hub_end(play->world.hub, play_topic_name(t), p);
            for (int64_t i = 0; i < end; i++) {
                assert_true(play->messages[t][p][i].is_done);
                assert_int_equal(play->messages[t][p][i].running, 0);
            }
        }
    }
}

void
play_run(const struct play_plan *plan)
{
    static struct play play;
    memset(&play, 0, sizeof(play));
    play.plan = *plan;
    play.random = plan->seed;
    begin(&play);
    for (uint32_t i = 0; i < plan->steps; i++) {
        move(&play);
        play.moves++;
        if (plan->after_move) {
            plan->after_move(&play);
        }
    }
    calm_down(&play);
    expect_all_done(&play);
    assert_true(play.events > plan->steps);
    world_deinit(&play.world);
}
