/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers and watched descriptors of the loop for asynchronous handlers. Each is a small object in
 * the service's list, so that nothing of them is called, or leaks, once the dispatcher is gone.
 * A timer is freed before its function runs: it may start the next one, and canceling it later is
 * the caller's mistake. Loop thread only.
 */
#include "base/alloc.h"
#include "service/service.h"

struct lw_loop_timer {
    struct lw_list link;
    struct lw_timer timer;
    struct lw_host *host;
    lw_loop_timer_fn fn;
    void *user;
};

struct lw_loop_watch {
    struct lw_list link;
    struct lw_host *host;
    struct lw_watch *watch;
};

static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_loop_timer *hook = LW_CONTAINER(timer, struct lw_loop_timer, timer);
    lw_loop_timer_fn fn = hook->fn;
    void *user = hook->user;
    (void)now;
    lw_list_remove(&hook->link);
    lw_free(hook);
    fn(user);
}

struct lw_loop_timer *
lw_loop_timer(struct lw_dispatcher *dispatcher, int64_t delay_us, lw_loop_timer_fn fn,
              void *user)
{
    struct lw_loop_timer *hook = lw_alloc(sizeof *hook);
    if (!hook) {
        return NULL;
    }
    uint64_t delay_ns = delay_us > 0 ? (uint64_t)delay_us * 1000 : 0;
    hook->host = dispatcher->host;
    hook->fn = fn;
    hook->user = user;
    lw_list_push(&lw_service_of(dispatcher)->user_timers, &hook->link);
    lw_timer_init(&hook->timer, on_timer);
    lw_timers_arm(&hook->host->timers, &hook->timer,
                  hook->host->ops->refresh(hook->host) + delay_ns);
    return hook;
}

void
lw_loop_timer_cancel(struct lw_loop_timer *timer)
{
    if (timer) {
        lw_timers_disarm(&timer->host->timers, &timer->timer);
        lw_list_remove(&timer->link);
        lw_free(timer);
    }
}

struct lw_loop_watch *
lw_loop_watch(struct lw_dispatcher *dispatcher, int fd, int events, lw_loop_watch_fn fn,
              void *user)
{
    struct lw_loop_watch *hook = lw_alloc(sizeof *hook);
    if (!hook) {
        return NULL;
    }
    hook->host = dispatcher->host;
    hook->watch = hook->host->ops->watch(hook->host, fd, events, fn, user);
    if (!hook->watch) {
        lw_free(hook);
        return NULL;
    }
    lw_list_push(&lw_service_of(dispatcher)->user_watches, &hook->link);
    return hook;
}

void
lw_loop_watch_cancel(struct lw_loop_watch *watch)
{
    if (watch) {
        watch->host->ops->unwatch(watch->watch);
        lw_list_remove(&watch->link);
        lw_free(watch);
    }
}

void
lw_loop_hooks_end(struct lw_service *service)
{
    struct lw_list *link;
    while ((link = lw_list_first(&service->user_timers)) != NULL) {
        lw_loop_timer_cancel(LW_CONTAINER(link, struct lw_loop_timer, link));
    }
    while ((link = lw_list_first(&service->user_watches)) != NULL) {
        lw_loop_watch_cancel(LW_CONTAINER(link, struct lw_loop_watch, link));
    }
}
