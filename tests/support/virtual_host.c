/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moved clock. `refresh` gives the time that the test set, so lw_host_turn is the same code
 * as on the real loop. A turn that wants another one at the present time for ever is a busy loop
 * (promise P9), and ends the program with a message. Deterministic: no clock, no randomness but
 * the seeded generator of the host.
 */
#include "tests/support/virtual_host.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"

enum { TURNS_MAX = 100000 };

static int64_t
wall_ms(struct lw_host *host)
{
    return VIRTUAL_WALL_MS + (int64_t)((host->now - VIRTUAL_START) / LW_MS);
}

static uint64_t
refresh(struct lw_host *host)
{
    return host->now;
}

static struct virtual_host *
virtual_of(struct lw_host *host)
{
    return LW_CONTAINER(host, struct virtual_host, host);
}

/* -- Descriptors ------------------------------------------------------------------------------- */

struct lw_watch {
    struct lw_list link;
    int fd;
    int events;
    lw_watch_fn fn;
    void *user;
};

static struct lw_watch *
watch(struct lw_host *host, int fd, int events, lw_watch_fn fn, void *user)
{
    struct lw_watch *watched = lw_alloc(sizeof *watched);
    if (watched) {
        *watched = (struct lw_watch){ .fd = fd, .events = events, .fn = fn, .user = user };
        lw_list_push(&virtual_of(host)->watches, &watched->link);
    }
    return watched;
}

static void
rewatch(struct lw_watch *watched, int events)
{
    watched->events = events;
}

static void
unwatch(struct lw_watch *watched)
{
    lw_list_remove(&watched->link);
    lw_free(watched);
}

static int
ready_events(const struct lw_watch *watched)
{
    struct pollfd look = { .fd = watched->fd };
    look.events |= watched->events & LW_READABLE ? POLLIN : 0;
    look.events |= watched->events & LW_WRITABLE ? POLLOUT : 0;
    if (watched->events == 0 || poll(&look, 1, 0) != 1) {
        return 0;
    }
    int events = look.revents & (POLLERR | POLLNVAL) ? LW_READABLE | LW_WRITABLE : 0;
    events |= look.revents & (POLLIN | POLLHUP) ? LW_READABLE : 0;
    events |= look.revents & POLLOUT ? LW_WRITABLE : 0;
    return events;
}

/* Calls those that are ready, each once; a marker walks, since watches come and go meanwhile. */
static bool
look_at_watches(struct virtual_host *virtual_host)
{
    bool any = false;
    struct lw_list marker;
    lw_list_push_front(&virtual_host->watches, &marker);
    while (marker.next != &virtual_host->watches) {
        struct lw_list *node = marker.next;
        lw_list_remove(&marker);
        lw_list_insert(node->next, &marker);
        struct lw_watch *watched = LW_CONTAINER(node, struct lw_watch, link);
        int events = ready_events(watched);
        if (events) {
            any = true;
            watched->fn(watched->fd, events, watched->user);
        }
    }
    lw_list_remove(&marker);
    return any;
}

/* -- Names --------------------------------------------------------------------------------------- */

struct name_lookup {
    struct lw_list link;
    struct lw_deferred deferred;
    struct lw_resolve *resolve;
    const struct virtual_name *name; /* NULL: unknown */
};

static void
drop_lookup(struct name_lookup *lookup)
{
    lw_list_remove(&lookup->link);
    lw_deferred_cancel(&lookup->deferred);
    lw_free(lookup);
}

static void
answer_lookup(struct lw_deferred *deferred)
{
    struct name_lookup *lookup = LW_CONTAINER(deferred, struct name_lookup, deferred);
    struct lw_resolve *resolve = lookup->resolve;
    const struct virtual_name *name = lookup->name;
    struct sockaddr_in addresses[VIRTUAL_NAME_ADDRESSES_MAX] = { { 0 } };
    struct addrinfo infos[VIRTUAL_NAME_ADDRESSES_MAX] = { { 0 } };
    drop_lookup(lookup);
    for (int i = 0; name && i < VIRTUAL_NAME_ADDRESSES_MAX && name->addresses[i]; i++) {
        addresses[i].sin_family = AF_INET;
        inet_pton(AF_INET, name->addresses[i], &addresses[i].sin_addr);
        infos[i] = (struct addrinfo){ .ai_family = AF_INET,
                                      .ai_socktype = SOCK_STREAM,
                                      .ai_addr = (struct sockaddr *)&addresses[i],
                                      .ai_addrlen = sizeof addresses[i] };
        if (i > 0) {
            infos[i - 1].ai_next = &infos[i];
        }
    }
    lw_resolve_answer(resolve, name ? infos : NULL, name ? NULL : "unknown name");
}

static bool
resolve_name(struct lw_host *host, struct lw_resolve *resolve, const char *name)
{
    struct name_lookup *lookup = lw_alloc(sizeof *lookup);
    if (!lookup) {
        return false;
    }
    lookup->resolve = resolve;
    resolve->job = lookup;
    lw_list_push(&virtual_of(host)->lookups, &lookup->link);
    lw_deferred_init(&lookup->deferred, answer_lookup);
    const struct virtual_name *row = virtual_of(host)->names;
    for (; row && row->name && !lookup->name; row++) {
        lookup->name = strcmp(row->name, name) == 0 ? row : NULL;
    }
    if (!lookup->name || lookup->name->addresses[0]) {
        lw_host_defer(host, &lookup->deferred);
    }
    return true;
}

static void
unresolve_name(struct lw_host *host, struct lw_resolve *resolve)
{
    (void)host;
    drop_lookup(resolve->job);
}

static const struct lw_host_ops ops = {
    .wall_ms = wall_ms,
    .refresh = refresh,
    .watch = watch,
    .rewatch = rewatch,
    .unwatch = unwatch,
    .resolve = resolve_name,
    .unresolve = unresolve_name,
};

void
virtual_host_init(struct virtual_host *virtual_host, uint64_t seed)
{
    *virtual_host = (struct virtual_host){ .due = VIRTUAL_START };
    lw_list_init(&virtual_host->watches);
    lw_list_init(&virtual_host->lookups);
    lw_host_init(&virtual_host->host, &ops, VIRTUAL_START, seed ? seed : 1, -1);
}

void
virtual_host_settle(struct virtual_host *virtual_host)
{
    for (int i = 0; i < TURNS_MAX; i++) {
        virtual_host->turns++;
        bool is_busy = look_at_watches(virtual_host);
        virtual_host->due = lw_host_turn(&virtual_host->host);
        if (!is_busy && virtual_host->due > virtual_host->host.now) {
            return;
        }
    }
    const struct lw_host *host = &virtual_host->host;
    fprintf(stderr,
            "virtual_host: %d turns without rest at %llu ns: deferred work %d, timers due %d, "
            "turn wanted %d\n",
            TURNS_MAX, (unsigned long long)host->now, !lw_list_is_empty(&host->deferred),
            lw_timers_next(&host->timers) <= host->now, host->is_turn_due);
    abort();
}

bool
virtual_host_jump(struct virtual_host *virtual_host, uint64_t limit)
{
    /* what was armed or deferred since the last turn counts too */
    uint64_t due = lw_host_next(&virtual_host->host, virtual_host->due);
    if (due == LW_NEVER || due > limit) {
        return false;
    }
    virtual_host->host.now = due;
    virtual_host_settle(virtual_host);
    return true;
}

void
virtual_host_pass(struct virtual_host *virtual_host, uint64_t ns)
{
    uint64_t end = virtual_host->host.now + ns;
    virtual_host_settle(virtual_host);
    while (virtual_host_jump(virtual_host, end)) {
        continue;
    }
    virtual_host->host.now = end;
    virtual_host_settle(virtual_host);
}
