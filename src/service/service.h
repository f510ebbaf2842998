/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dispatcher with the loop that drives it and the doors for other threads: what the public
 * `struct lw_dispatcher *` is when it came from lw_dispatcher_create. The dispatcher itself knows
 * no threads; everything that may be called from elsewhere is here and in service.c.
 *
 * States: NEW (subscriptions may be added) -> ACTIVE (run or poll was called and it started) ->
 * ENDED (closed, failed or never started). ENDED is said once and stays; `end` says how.
 * `mutex` guards state, has_driver, driver and end; the rest belongs to the driving thread.
 */
#ifndef LW_SERVICE_SERVICE_H
#define LW_SERVICE_SERVICE_H

#include <pthread.h>

#include "base/loop.h"
#include "dispatcher/dispatcher.h"

/* Something that lives as long as the dispatcher and its engines. */
struct lw_kept {
    struct lw_kept *next;
    void (*destroy)(void *object);
    void *object;
};

enum lw_service_state { LW_SERVICE_NEW, LW_SERVICE_ACTIVE, LW_SERVICE_ENDED };

struct lw_service {
    struct lw_dispatcher dispatcher; /* first: it is what users hold */
    struct lw_loop *loop;
    bool is_broken; /* a load ran out of memory and left no dispatcher: only destroy remains */
    struct lw_kept *kept;
    struct lw_list user_timers; /* see loop_hooks.c */
    struct lw_list user_watches;
    struct lw_letter close_letter;
    struct lw_letter abort_letter;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    enum lw_service_state state;
    bool has_driver;
    pthread_t driver; /* who called run or poll last */
    enum lw_status end;
    struct lw_error end_error; /* when `end` is not OK */
};

static inline struct lw_service *
lw_service_of(struct lw_dispatcher *dispatcher)
{
    return dispatcher->owner;
}

enum lw_status lw_service_create(const struct lw_dispatcher_options *options,
                                 struct lw_service **ret_service, struct lw_error *ret_error);
/* Ends what still runs, waits for handlers, frees. NULL is fine. */
void lw_service_destroy(struct lw_service *service);
/* Starts on first use; CLOSED when it has ended (ret_error: how, if not well). Never blocks. */
enum lw_status lw_service_begin(struct lw_service *service, struct lw_error *ret_error);
/* One turn that may sleep; false when it has ended. Between begin and the end only. */
bool lw_service_turn(struct lw_service *service);
/* Returns how it ended and fills ret_error if that was not well. */
enum lw_status lw_service_end(struct lw_service *service, struct lw_error *ret_error);
/* True when only handlers on threads, which nobody can end, are still running after the
 * deadline. Driving thread. */
bool lw_service_is_only_waiting(const struct lw_service *service);

/* Destroys `object` after the engines; false without memory (then it stays the caller's). */
bool lw_service_keep(struct lw_service *service, void (*destroy)(void *object), void *object);

/* loop_hooks.c: frees timers and watches that the user left. */
void lw_loop_hooks_end(struct lw_service *service);

#endif
