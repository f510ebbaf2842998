/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of the demo. Orders come in bursts: three seconds of more than the slots can do, three
 * of less. The handler waits 5 to 25 ms; 1 message in 25 fails once and asks for a retry, 1 in
 * 400 fails every time, 1 in 200 has no id and is dead. What happens to a message follows from its
 * number alone, so that the summary can be checked.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/demo.h"

enum { BURST_MS = 3000, RETRY_EVERY = 25, HOPELESS_EVERY = 400, DEAD_EVERY = 200 };

struct demo_call {
    struct demo_call *next;
    struct demo *demo;
    struct lw_delivery *delivery;
    struct demo_lane *lane;
    unsigned key;
    uint64_t id;
};

/* -- Sending ----------------------------------------------------------------------------------- */

static uint64_t
next_random(struct demo *demo)
{
    demo->random ^= demo->random << 13;
    demo->random ^= demo->random >> 7;
    demo->random ^= demo->random << 17;
    return demo->random;
}

static bool
send_one(struct demo *demo, struct demo_lane *lane)
{
    char key[16];
    char value[64];
    uint64_t id = demo->next_id + 1;
    (void)snprintf(key, sizeof key, "c-%u", (unsigned)(next_random(demo) % DEMO_KEYS));
    (void)snprintf(value, sizeof value, "{\"id\": %llu}", (unsigned long long)id);
    struct lw_memory_item item = lw_memory_item_of(lane->topic, key, value);
    if (lw_memory_hub_publish(demo->hub, &item, NULL, NULL) != LW_STATUS_OK) {
        return false;
    }
    demo->next_id = id;
    lane->sent++;
    return true;
}

static uint64_t
lane_backlog(const struct demo *demo, const struct demo_lane *lane)
{
    return lw_memory_hub_backlog(demo->hub, DEMO_PREFIX, lane->topic);
}

uint64_t
demo_backlog(const struct demo *demo)
{
    uint64_t sum = demo->dispatcher->held_count;
    for (int i = 0; i < DEMO_LANES; i++) {
        sum += lane_backlog(demo, &demo->lanes[i]);
    }
    return sum;
}

void
demo_send(struct demo *demo)
{
    uint64_t now = demo->dispatcher->host->now;
    double seconds = (double)(now - demo->sent_at) / 1e9;
    bool is_burst = (now - demo->started_at) / LW_MS / BURST_MS % 2 == 0;
    demo->sent_at = now;
    for (int i = 0; i < DEMO_LANES; i++) {
        struct demo_lane *lane = &demo->lanes[i];
        double factor = !lane->is_live ? 1.0 : is_burst ? 2.4 : 0.2;
        lane->owed += seconds * factor * (double)demo->options.rate * lane->share / 100.0;
        if (lane_backlog(demo, lane) > DEMO_BACKLOG_MAX) {
            lane->owed = 0;
        }
        while (lane->owed >= 1 && send_one(demo, lane)) {
            lane->owed -= 1;
        }
    }
}

/* -- Handling ---------------------------------------------------------------------------------- */

static struct demo_lane *
lane_of(struct demo *demo, const char *topic)
{
    for (int i = 0; i < DEMO_LANES; i++) {
        if (strcmp(demo->lanes[i].topic, topic) == 0) {
            return &demo->lanes[i];
        }
    }
    return NULL;
}

/* The number after the first digit of "c-17" or {"id": 42}. */
static uint64_t
number_in(struct lw_bytes bytes)
{
    const char *text = bytes.data;
    uint64_t number = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            number = number * 10 + (uint64_t)(text[i] - '0');
        }
    }
    return number;
}

static enum lw_verdict
decide(const struct demo_call *call)
{
    struct lw_delivery *delivery = call->delivery;
    char reply[64];
    if (call->id % DEAD_EVERY == 0) {
        return lw_delivery_dead(delivery, "bad order: 'id'");
    }
    bool is_hopeless = call->id % HOPELESS_EVERY == 7;
    bool fails_once = call->id % RETRY_EVERY == 3 && lw_delivery_retries(delivery) == 0;
    if (is_hopeless || fails_once) {
        return lw_delivery_retry(delivery,
                                 is_hopeless ? "no such customer" : "database timeout", -1);
    }
    (void)snprintf(reply, sizeof reply, "{\"confirmed\": %llu}", (unsigned long long)call->id);
    (void)lw_delivery_reply(delivery, lw_bytes_of(reply));
    return LW_OK;
}

static void
count(struct demo_lane *lane, enum lw_verdict verdict)
{
    lane->handled++;
    lane->retried += verdict == LW_RETRY;
}

static void
on_done(void *user)
{
    struct demo_call *call = user;
    struct demo *demo = call->demo;
    enum lw_verdict verdict = decide(call);
    count(call->lane, verdict);
    call->lane->running[call->key] = NULL;
    (void)lw_delivery_finish(call->delivery, verdict);
    call->next = demo->calls;
    demo->calls = call;
}

static void
note_start(struct demo *demo, struct demo_call *call)
{
    struct lw_host *host = demo->dispatcher->host;
    int64_t sent_ms = lw_delivery_timestamp_ms(call->delivery);
    int64_t waited_ms = host->ops->wall_ms(host) - sent_ms;
    lw_histogram_add(&call->lane->wait_ms, waited_ms > 0 ? (uint64_t)waited_ms : 0);
    demo->overlaps += call->lane->running[call->key] != NULL;
    call->lane->running[call->key] = call;
}

void
demo_handle(struct lw_delivery *delivery, void *user)
{
    struct demo *demo = user;
    struct demo_call *call = demo->calls;
    struct demo_lane *lane = lane_of(demo, lw_delivery_topic(delivery));
    if (!call || !lane) {
        (void)lw_delivery_finish(delivery,
                                 lw_delivery_error(delivery, 0, "no room in the demo"));
        return;
    }
    demo->calls = call->next;
    call->delivery = delivery;
    call->lane = lane;
    call->key = (unsigned)(number_in(lw_delivery_key(delivery)) % DEMO_KEYS);
    call->id = number_in(lw_delivery_value(delivery));
    note_start(demo, call);
    int64_t wait_us = 5000 + (int64_t)(next_random(demo) % 20000);
    if (!lw_loop_timer(demo->dispatcher, wait_us, on_done, call)) {
        on_done(call);
    }
}

/* -- Making ------------------------------------------------------------------------------------ */

static void
init_lane(struct demo_lane *lane, int index)
{
    static const char *const levels[] = { "live", "batch" };
    static const char *const sublevels[] = { "high", "low", "retry" };
    static const int sublevel_values[] = { 10, 20, 50 };
    static const unsigned shares[DEMO_LANES] = { 15, 25, 0, 25, 35, 0 };
    (void)snprintf(lane->topic, sizeof lane->topic, DEMO_PREFIX "_%s_%s", levels[index / 3],
                   sublevels[index % 3]);
    lane->priority = 100 * (index / 3 + 1) + sublevel_values[index % 3];
    lane->share = shares[index];
    lane->is_live = index < 3;
}

bool
demo_load_init(struct demo *demo)
{
    demo->random = (uint64_t)demo->options.seed * 2654435761U + 88172645463325252U;
    for (int i = 0; i < DEMO_LANES; i++) {
        init_lane(&demo->lanes[i], i);
    }
    for (long long i = 0; i < demo->options.slots; i++) {
        struct demo_call *call = lw_alloc(sizeof *call);
        if (!call) {
            return false;
        }
        call->demo = demo;
        call->next = demo->calls;
        demo->calls = call;
    }
    return true;
}

/* After the dispatcher: no call is running any more. */
void
demo_load_deinit(struct demo *demo)
{
    while (demo->calls) {
        struct demo_call *call = demo->calls;
        demo->calls = call->next;
        lw_free(call);
    }
}
