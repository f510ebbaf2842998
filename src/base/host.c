/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both hosts share: the order of a turn, deferred work, letters, randomness (xoshiro256**,
 * seeded by splitmix64), log lines. Neither clock nor descriptor is touched here: those come in
 * through lw_host_ops. Invariants: work that is deferred during a turn waits for the next one,
 * so that a turn ends; a hook or deferral may remove itself or any other while it runs. Loop
 * thread, except lw_host_post.
 */
#include "base/host.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"

enum { LOG_FIELDS_MAX = 4096 };

static uint64_t
split_mix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void
lw_host_init(struct lw_host *host, const struct lw_host_ops *ops, uint64_t now, uint64_t seed,
             int wake_fd)
{
    host->ops = ops;
    host->now = now;
    lw_timers_init(&host->timers, now);
    lw_mailbox_init(&host->mailbox, wake_fd);
    lw_list_init(&host->deferred);
    lw_list_init(&host->turns);
    for (int i = 0; i < 4; i++) {
        host->random_state[i] = split_mix(&seed);
    }
    host->is_turn_due = true;
    host->is_in_turn = false;
    host->faults = NULL;
    host->log = NULL;
    host->log_user = NULL;
    host->log_level = LW_LOG_INFO;
}

static uint64_t
rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

uint64_t
lw_host_random(struct lw_host *host)
{
    uint64_t *s = host->random_state;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t
lw_host_random_to(struct lw_host *host, uint64_t bound)
{
    if (bound == UINT64_MAX) {
        return lw_host_random(host);
    }
    uint64_t count = bound + 1;
    uint64_t reject_below = -count % count; /* 2^64 mod count: what would make a bias */
    uint64_t value = 0;
    do {
        value = lw_host_random(host);
    } while (value < reject_below);
    return value % count;
}

void
lw_deferred_init(struct lw_deferred *deferred, void (*fn)(struct lw_deferred *))
{
    lw_list_init(&deferred->link);
    deferred->fn = fn;
}

/* In a turn the host looks by itself; between turns it must be told. */
static void
wake(struct lw_host *host)
{
    if (!host->is_in_turn && host->ops->wake) {
        host->ops->wake(host);
    }
}

void
lw_host_defer(struct lw_host *host, struct lw_deferred *deferred)
{
    if (lw_list_is_empty(&deferred->link)) {
        lw_list_push(&host->deferred, &deferred->link);
        wake(host);
    }
}

void
lw_deferred_cancel(struct lw_deferred *deferred)
{
    lw_list_remove(&deferred->link);
}

void
lw_host_add_turn(struct lw_host *host, struct lw_turn *turn)
{
    lw_list_push(&host->turns, &turn->link);
    lw_host_want_turn(host);
}

void
lw_host_remove_turn(struct lw_turn *turn)
{
    lw_list_remove(&turn->link);
}

void
lw_host_want_turn(struct lw_host *host)
{
    host->is_turn_due = true;
    wake(host);
}

bool
lw_host_resolve(struct lw_host *host, struct lw_resolve *resolve, const char *name,
                lw_resolve_fn fn)
{
    lw_assert(!resolve->fn);
    resolve->fn = fn;
    resolve->job = NULL;
    if (!host->ops->resolve || !host->ops->resolve(host, resolve, name)) {
        resolve->fn = NULL;
        return false;
    }
    return true;
}

void
lw_host_resolve_cancel(struct lw_host *host, struct lw_resolve *resolve)
{
    if (resolve->fn) {
        resolve->fn = NULL;
        host->ops->unresolve(host, resolve);
    }
}

void
lw_resolve_answer(struct lw_resolve *resolve, const struct addrinfo *addresses,
                  const char *failure)
{
    lw_resolve_fn fn = resolve->fn;
    resolve->fn = NULL;
    fn(resolve, addresses, failure);
}

void
lw_letter_init(struct lw_letter *letter, void (*fn)(struct lw_letter *))
{
    lw_mail_init(&letter->mail);
    letter->fn = fn;
}

bool
lw_host_post(struct lw_host *host, struct lw_letter *letter)
{
    return lw_mailbox_post(&host->mailbox, &letter->mail);
}

/* Opens each letter before it is read: what arrives while it is read makes it come again. */
static void
read_letters(struct lw_host *host)
{
    struct lw_mail *mail = lw_mailbox_take(&host->mailbox);
    while (mail) {
        struct lw_mail *next = mail->next;
        struct lw_letter *letter = LW_CONTAINER(mail, struct lw_letter, mail);
        lw_mail_open(mail);
        letter->fn(letter);
        mail = next;
    }
}

/* A marker bounds the round: what is deferred meanwhile lies behind it. */
static void
run_deferred(struct lw_host *host)
{
    if (lw_list_is_empty(&host->deferred)) {
        return;
    }
    struct lw_list marker;
    lw_list_push(&host->deferred, &marker);
    struct lw_list *node = lw_list_pop(&host->deferred);
    while (node != &marker) {
        lw_assert(node != NULL); /* the marker is still in the list */
        struct lw_deferred *deferred = LW_CONTAINER(node, struct lw_deferred, link);
        deferred->fn(deferred);
        node = lw_list_pop(&host->deferred);
    }
}

/* Walks with a marker in the list, so that hooks may remove themselves and others. */
static uint64_t
run_turns(struct lw_host *host)
{
    uint64_t due = LW_NEVER;
    struct lw_list marker;
    lw_list_push_front(&host->turns, &marker);
    while (marker.next != &host->turns) {
        struct lw_list *node = marker.next;
        lw_list_remove(&marker);
        lw_list_insert(node->next, &marker);
        struct lw_turn *turn = LW_CONTAINER(node, struct lw_turn, link);
        uint64_t wanted = turn->fn(turn, host->now);
        due = wanted < due ? wanted : due;
    }
    lw_list_remove(&marker);
    return due;
}

uint64_t
lw_host_turn(struct lw_host *host)
{
    lw_assert(!host->is_in_turn);
    host->is_in_turn = true;
    host->is_turn_due = false;
    host->ops->refresh(host);
    lw_timers_advance(&host->timers, host->now);
    read_letters(host);
    run_deferred(host);
    uint64_t due = run_turns(host);
    host->is_in_turn = false;
    return lw_host_next(host, due);
}

uint64_t
lw_host_next(const struct lw_host *host, uint64_t due)
{
    if (due <= host->now || host->is_turn_due || !lw_list_is_empty(&host->deferred)) {
        return host->now;
    }
    uint64_t timer_due = lw_timers_next(&host->timers);
    due = timer_due < due ? timer_due : due;
    return due > host->now ? due : host->now;
}

void
lw_host_log(struct lw_host *host, enum lw_log_level level, const char *event, const char *text,
            const char *fields_format, ...)
{
    if (!host->log || level > host->log_level) {
        return;
    }
    char fields[LOG_FIELDS_MAX];
    va_list arguments;
    va_start(arguments, fields_format);
    (void)vsnprintf(fields, sizeof fields, fields_format, arguments);
    va_end(arguments);
    host->log(level, event, text, fields, host->log_user);
}
