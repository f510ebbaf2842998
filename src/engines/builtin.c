/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in handlers. Each is an ordinary handler function with its argument in `user`; only
 * io has a second form, which waits by a timer of the loop. Timers of waiting deliveries are
 * kept for reuse, so that a bench that waits allocates nothing once it runs.
 */
#include "engines/builtin.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/host.h"
#include "base/text.h"
#include "core/delivery.h"
#include "core/subscription.h"
#include "engines/builtin/sha256.h"

#define CPU_ROUNDS_MAX 1000000000

struct builtin {
    struct lw_builtin builtin;
    int64_t argument;    /* ms, rounds or runs */
    struct lw_list busy; /* struct waiting; loop thread */
    struct lw_list spare;
};

struct waiting {
    struct lw_timer timer;
    struct lw_list link;
    struct builtin *builtin;
    struct lw_host *host;
    struct lw_ticket ticket;
};

static enum lw_verdict
handle_noop(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    (void)user;
    return LW_OK;
}

static enum lw_verdict
handle_echo(struct lw_delivery *delivery, void *user)
{
    (void)user;
    enum lw_status status = lw_delivery_reply(delivery, lw_delivery_value(delivery));
    return status == LW_STATUS_OK ? LW_OK : lw_delivery_retry(delivery, "no memory", -1);
}

static enum lw_verdict
handle_sleep(struct lw_delivery *delivery, void *user)
{
    const struct builtin *builtin = user;
    (void)delivery;
    struct timespec left = { .tv_sec = builtin->argument / 1000,
                             .tv_nsec = builtin->argument % 1000 * 1000000 };
    (void)ppoll(NULL, 0, &left, NULL);
    return LW_OK;
}

static enum lw_verdict
handle_cpu(struct lw_delivery *delivery, void *user)
{
    const struct builtin *builtin = user;
    uint8_t digest[LW_SHA256_BYTES];
    struct lw_bytes value = lw_delivery_value(delivery);
    lw_sha256(value.data ? value.data : "", value.size, digest);
    for (int64_t i = 1; i < builtin->argument; i++) {
        lw_sha256(digest, sizeof digest, digest);
    }
    __asm__ volatile("" : : "r"(digest) : "memory"); /* the work is wanted, the result is not */
    return LW_OK;
}

static enum lw_verdict
handle_fail_n(struct lw_delivery *delivery, void *user)
{
    const struct builtin *builtin = user;
    char reason[64];
    int64_t run = (int64_t)lw_delivery_attempt(delivery) + lw_delivery_retries(delivery);
    if (run > builtin->argument) {
        return LW_OK;
    }
    (void)snprintf(reason, sizeof reason, "fails on purpose, run %lld of %lld", (long long)run,
                   (long long)builtin->argument);
    return lw_delivery_retry(delivery, reason, -1);
}

static void
on_waited(struct lw_timer *timer, uint64_t now)
{
    struct waiting *waiting = LW_CONTAINER(timer, struct waiting, timer);
    (void)now;
    lw_list_remove(&waiting->link);
    lw_list_push_front(&waiting->builtin->spare, &waiting->link);
    (void)lw_ticket_finish(waiting->ticket, LW_OK);
}

static struct waiting *
take_waiting(struct builtin *builtin)
{
    struct lw_list *node = lw_list_pop(&builtin->spare);
    if (node) {
        return LW_CONTAINER(node, struct waiting, link);
    }
    struct waiting *waiting = lw_alloc(sizeof *waiting);
    if (waiting) {
        lw_timer_init(&waiting->timer, on_waited);
        lw_list_init(&waiting->link);
        waiting->builtin = builtin;
    }
    return waiting;
}

static void
handle_io(struct lw_delivery *delivery, void *user)
{
    struct builtin *builtin = user;
    struct waiting *waiting = take_waiting(builtin);
    if (!waiting) {
        (void)lw_delivery_finish(delivery, lw_delivery_retry(delivery, "no memory", -1));
        return;
    }
    struct lw_host *host = delivery->completions->host;
    waiting->host = host;
    waiting->ticket = lw_delivery_ticket(delivery);
    lw_list_push(&builtin->busy, &waiting->link);
    lw_timers_arm(&host->timers, &waiting->timer,
                  host->now + (uint64_t)builtin->argument * LW_MS);
}

static size_t
handle_batch(struct lw_delivery *const deliveries[], size_t count, enum lw_verdict verdicts[],
             void *user)
{
    const struct builtin *builtin = user;
    const struct lw_engine *engine = deliveries[0]->subscription->engine;
    bool is_each = engine->batch.verdict == LW_BATCH_VERDICT_EACH;
    enum lw_verdict all = LW_OK;
    for (size_t i = 0; i < count && (is_each || all == LW_OK); i++) {
        all = builtin->builtin.handler(deliveries[i], user);
        verdicts[is_each ? i : 0] = all;
    }
    return is_each ? count : 1;
}

enum argument_kind { ARGUMENT_NONE, ARGUMENT_DURATION, ARGUMENT_COUNT };

struct kind {
    const char *name;
    enum argument_kind argument;
    lw_handler_fn handler;
    lw_handler_async_fn handler_async;
};

static const struct kind kinds[] = {
    { "echo", ARGUMENT_NONE, handle_echo, NULL },
    { "noop", ARGUMENT_NONE, handle_noop, NULL },
    { "none", ARGUMENT_NONE, handle_noop, NULL },
    { "sleep", ARGUMENT_DURATION, handle_sleep, NULL },
    { "io", ARGUMENT_DURATION, handle_sleep, handle_io },
    { "cpu", ARGUMENT_COUNT, handle_cpu, NULL },
    { "fail-n", ARGUMENT_COUNT, handle_fail_n, NULL },
};

static const struct kind *
find_kind(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, text, length) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* Answers NULL when the argument is right, else what is wrong. */
static const char *
read_argument(const struct kind *kind, const char *text, int64_t *ret_argument)
{
    const char *why = "is not a duration";
    switch (kind->argument) {
    case ARGUMENT_NONE:
        *ret_argument = 0;
        return text ? "takes no argument" : NULL;
    case ARGUMENT_DURATION:
        return text && lw_text_to_duration_ms(text, ret_argument, &why) ? NULL : why;
    case ARGUMENT_COUNT:
        return text && lw_text_to_int(text, ret_argument) && *ret_argument >= 0 &&
                       *ret_argument <= CPU_ROUNDS_MAX
                   ? NULL
                   : "needs a number";
    }
    return "is unknown";
}

static enum lw_status
refuse(const char *text, const char *why, struct lw_error *ret_error)
{
    lw_error_set(ret_error, LW_STATUS_INVALID, "E0604", "built-in handler \"%s\" %s", text,
                 why);
    lw_error_help(ret_error, "there are echo, noop, sleep:5ms, io:5ms, cpu:500 and fail-n:3");
    return LW_STATUS_INVALID;
}

enum lw_status
lw_builtin_create(const char *text, struct lw_builtin **ret_builtin, struct lw_error *ret_error)
{
    const char *colon = strchr(text, ':');
    const struct kind *kind = find_kind(text, colon ? (size_t)(colon - text) : strlen(text));
    int64_t argument = 0;
    const char *why = kind ? read_argument(kind, colon ? colon + 1 : NULL, &argument)
                           : "does not exist";
    if (why) {
        return refuse(text, why, ret_error);
    }
    struct builtin *builtin = lw_alloc(sizeof *builtin);
    if (!builtin) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a handler");
    }
    builtin->argument = argument;
    lw_list_init(&builtin->busy);
    lw_list_init(&builtin->spare);
    builtin->builtin = (struct lw_builtin){
        .handler = kind->handler,
        .handler_async = kind->handler_async,
        .handler_batch = handle_batch,
        .user = builtin,
    };
    *ret_builtin = &builtin->builtin;
    return LW_STATUS_OK;
}

static void
free_all(struct lw_list *head)
{
    for (struct lw_list *node = lw_list_pop(head); node; node = lw_list_pop(head)) {
        struct waiting *waiting = LW_CONTAINER(node, struct waiting, link);
        lw_timers_disarm(&waiting->host->timers, &waiting->timer);
        lw_free(waiting);
    }
}

void
lw_builtin_destroy(struct lw_builtin *builtin)
{
    if (builtin) {
        struct builtin *whole = LW_CONTAINER(builtin, struct builtin, builtin);
        free_all(&whole->busy);
        free_all(&whole->spare);
        lw_free(whole);
    }
}
