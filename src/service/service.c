/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a dispatcher that has a loop: started by the first run or poll, driven turn by
 * turn, closed from any thread by a letter, ended once. Whoever waits in close or wait_closed
 * waits for the end on a condition; the driving thread itself may not wait (it would wait for
 * itself), nor may a handler (the drain waits for it).
 */
#include "service/service.h"

#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/inside.h"

/* -- Making and ending --------------------------------------------------------------------------- */

static void
on_close_letter(struct lw_letter *letter)
{
    struct lw_service *service = LW_CONTAINER(letter, struct lw_service, close_letter);
    service->dispatcher.is_close_wanted = true;
    lw_host_want_turn(service->dispatcher.host);
}

static void
on_abort_letter(struct lw_letter *letter)
{
    struct lw_service *service = LW_CONTAINER(letter, struct lw_service, abort_letter);
    service->dispatcher.is_close_wanted = true;
    service->dispatcher.is_abort_wanted = true;
    lw_host_want_turn(service->dispatcher.host);
}

/* Waits are measured by the monotonic clock: a clock that is set does not end them. */
static bool
init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return false;
    }
    bool is_good = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                   pthread_cond_init(condition, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return is_good;
}

static bool
init_doors(struct lw_service *service)
{
    lw_letter_init(&service->close_letter, on_close_letter);
    lw_letter_init(&service->abort_letter, on_abort_letter);
    lw_list_init(&service->user_timers);
    lw_list_init(&service->user_watches);
    if (pthread_mutex_init(&service->mutex, NULL) != 0) {
        return false;
    }
    if (!init_condition(&service->ended)) {
        (void)pthread_mutex_destroy(&service->mutex);
        return false;
    }
    return true;
}

static void
deinit_doors(struct lw_service *service)
{
    (void)pthread_cond_destroy(&service->ended);
    (void)pthread_mutex_destroy(&service->mutex);
}

enum lw_status
lw_service_create(const struct lw_dispatcher_options *options, struct lw_service **ret_service,
                  struct lw_error *ret_error)
{
    struct lw_service *service = lw_alloc(sizeof *service);
    if (!service) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    enum lw_status status = lw_loop_create(options->random_seed, &service->loop);
    if (status != LW_STATUS_OK) {
        lw_free(service);
        return lw_error_set(ret_error, status, "", "cannot make an event loop: %s",
                            lw_status_name(status));
    }
    struct lw_host *host = lw_loop_host(service->loop);
    host->log = options->log;
    host->log_user = options->log_user;
    host->log_level = LW_LOG_TRACE;
    if (!init_doors(service)) {
        status = lw_error_set(ret_error, LW_STATUS_SYSTEM, "", "cannot make a lock");
        goto fail_loop;
    }
    status = lw_dispatcher_init(&service->dispatcher, host, host->mailbox.wake_fd, options,
                                ret_error);
    if (status != LW_STATUS_OK) {
        goto fail_doors;
    }
    service->dispatcher.owner = service;
    *ret_service = service;
    return LW_STATUS_OK;
fail_doors:
    deinit_doors(service);
fail_loop:
    lw_loop_destroy(service->loop);
    lw_free(service);
    return status;
}

bool
lw_service_keep(struct lw_service *service, void (*destroy)(void *object), void *object)
{
    struct lw_kept *kept = lw_alloc(sizeof *kept);
    if (!kept) {
        return false;
    }
    *kept = (struct lw_kept){ .next = service->kept, .destroy = destroy, .object = object };
    service->kept = kept;
    return true;
}

static void
destroy_kept(struct lw_service *service)
{
    while (service->kept) {
        struct lw_kept *kept = service->kept;
        service->kept = kept->next;
        kept->destroy(kept->object);
        lw_free(kept);
    }
}

void
lw_service_destroy(struct lw_service *service)
{
    if (!service) {
        return;
    }
    lw_assert(!lw_inside_is());
    struct lw_dispatcher *dispatcher = &service->dispatcher;
    if (service->is_broken) {
        goto free_loop;
    }
    if (dispatcher->phase != LW_PHASE_NEW && dispatcher->phase != LW_PHASE_CLOSED) {
        dispatcher->is_close_wanted = true;
        dispatcher->is_abort_wanted = true;
        lw_host_want_turn(dispatcher->host);
    }
    while (dispatcher->phase != LW_PHASE_NEW && dispatcher->phase != LW_PHASE_CLOSED) {
        lw_loop_turn_until(service->loop, LW_NEVER);
    }
    lw_loop_hooks_end(service);
    lw_dispatcher_deinit(dispatcher);
free_loop:
    destroy_kept(service);
    lw_loop_destroy(service->loop);
    deinit_doors(service);
    lw_free(service);
}

/* -- Driving ----------------------------------------------------------------------------------- */

static void
lock(struct lw_service *service)
{
    int failed = pthread_mutex_lock(&service->mutex);
    lw_assert(!failed);
}

static void
unlock(struct lw_service *service)
{
    int failed = pthread_mutex_unlock(&service->mutex);
    lw_assert(!failed);
}

static void
say_end(struct lw_service *service, enum lw_status status, const struct lw_error *error)
{
    lock(service);
    if (service->state != LW_SERVICE_ENDED) {
        service->state = LW_SERVICE_ENDED;
        service->end = status;
        if (error) {
            service->end_error = *error;
        } else {
            (void)lw_error_set(&service->end_error, status, "", "the dispatcher ended: %s",
                               lw_status_name(status));
        }
        (void)pthread_cond_broadcast(&service->ended);
    }
    unlock(service);
}

static enum lw_service_state
note_driver(struct lw_service *service)
{
    lock(service);
    enum lw_service_state state = service->state;
    service->has_driver = state != LW_SERVICE_ENDED;
    service->driver = pthread_self();
    unlock(service);
    return state;
}

/* True when it became active; a close may have come meanwhile from another thread. */
static bool
enter_active(struct lw_service *service)
{
    lock(service);
    bool is_new = service->state == LW_SERVICE_NEW;
    if (is_new) {
        service->state = LW_SERVICE_ACTIVE;
    }
    unlock(service);
    return is_new;
}

bool
lw_service_is_only_waiting(const struct lw_service *service)
{
    const struct lw_dispatcher *dispatcher = &service->dispatcher;
    bool has_running = false;
    bool is_over = dispatcher->is_deadline_passed || dispatcher->is_abort_wanted;
    if (dispatcher->phase != LW_PHASE_CLOSING || !is_over) {
        return false;
    }
    for (uint32_t i = 0; i < dispatcher->engine_count; i++) {
        const struct lw_engine *engine = dispatcher->engines[i];
        bool is_running = !engine->ops->is_stopped(engine);
        if (is_running && engine->ops->can_end_early) {
            return false;
        }
        has_running = has_running || is_running;
    }
    return has_running;
}

/* Takes back what a failed start had started; handlers have none of our messages yet. */
static void
end_start(struct lw_service *service)
{
    const struct lw_dispatcher *dispatcher = &service->dispatcher;
    while (dispatcher->phase != LW_PHASE_NEW && dispatcher->phase != LW_PHASE_CLOSED &&
           !lw_service_is_only_waiting(service)) {
        lw_loop_turn_until(service->loop, LW_NEVER);
    }
}

static enum lw_status
start(struct lw_service *service, struct lw_error *ret_error)
{
    struct lw_error error = { 0 };
    if (service->is_broken) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    if (!enter_active(service)) {
        return LW_STATUS_CLOSED;
    }
    enum lw_status status = lw_dispatcher_start(&service->dispatcher, &error);
    if (status != LW_STATUS_OK) {
        end_start(service);
        say_end(service, status, &error);
        if (ret_error) {
            *ret_error = error;
        }
    }
    return status;
}

static void
note_end(struct lw_service *service)
{
    const struct lw_dispatcher *dispatcher = &service->dispatcher;
    if (dispatcher->phase == LW_PHASE_CLOSED) {
        bool is_well = dispatcher->end_status == LW_STATUS_OK;
        bool is_told = dispatcher->end_error.message[0] != '\0';
        say_end(service, dispatcher->end_status,
                is_well || !is_told ? NULL : &dispatcher->end_error);
    } else if (lw_service_is_only_waiting(service)) {
        struct lw_error error;
        enum lw_status status = lw_error_set(
            &error, LW_STATUS_UNFINISHED, "",
            "the drain deadline passed while handlers on threads are still running");
        say_end(service, status, &error);
    }
}

enum lw_status
lw_service_begin(struct lw_service *service, struct lw_error *ret_error)
{
    switch (note_driver(service)) {
    case LW_SERVICE_NEW:
        return start(service, ret_error);
    case LW_SERVICE_ACTIVE:
        note_end(service);
        return service->state == LW_SERVICE_ENDED ? LW_STATUS_CLOSED : LW_STATUS_OK;
    case LW_SERVICE_ENDED:
        break;
    }
    return LW_STATUS_CLOSED;
}

bool
lw_service_turn(struct lw_service *service)
{
    lw_loop_turn_until(service->loop, LW_NEVER);
    note_end(service);
    return service->state != LW_SERVICE_ENDED;
}

enum lw_status
lw_service_end(struct lw_service *service, struct lw_error *ret_error)
{
    lock(service);
    enum lw_status status = service->end;
    if (ret_error && status != LW_STATUS_OK) {
        *ret_error = service->end_error;
    }
    unlock(service);
    return status;
}

enum lw_status
lw_dispatcher_run(struct lw_dispatcher *dispatcher, struct lw_error *ret_error)
{
    struct lw_service *service = lw_service_of(dispatcher);
    enum lw_status status = lw_service_begin(service, ret_error);
    if (status == LW_STATUS_CLOSED) {
        return lw_service_end(service, ret_error);
    }
    if (status != LW_STATUS_OK) {
        return status;
    }
    while (lw_service_turn(service)) {
        ; /* a turn sleeps when nothing is due */
    }
    return lw_service_end(service, ret_error);
}

enum lw_status
lw_dispatcher_poll(struct lw_dispatcher *dispatcher, struct lw_error *ret_error)
{
    struct lw_service *service = lw_service_of(dispatcher);
    enum lw_status status = lw_service_begin(service, ret_error);
    if (status == LW_STATUS_OK) {
        lw_loop_poll(service->loop);
        note_end(service);
        status = service->state == LW_SERVICE_ENDED ? LW_STATUS_CLOSED : LW_STATUS_OK;
    }
    if (status == LW_STATUS_CLOSED) {
        (void)lw_service_end(service, ret_error);
    }
    return status;
}

int
lw_dispatcher_fd(struct lw_dispatcher *dispatcher)
{
    return lw_loop_fd(lw_service_of(dispatcher)->loop);
}

/* -- From other threads -------------------------------------------------------------------------- */

void
lw_dispatcher_request_close(struct lw_dispatcher *dispatcher)
{
    struct lw_service *service = lw_service_of(dispatcher);
    (void)lw_host_post(dispatcher->host, &service->close_letter);
}

void
lw_dispatcher_request_abort(struct lw_dispatcher *dispatcher)
{
    struct lw_service *service = lw_service_of(dispatcher);
    (void)lw_host_post(dispatcher->host, &service->abort_letter);
}

/* The caller drives the loop or is inside a handler: what it would wait for waits for it. */
static bool
would_deadlock(const struct lw_service *service)
{
    return lw_inside_is() || (service->state == LW_SERVICE_ACTIVE && service->has_driver &&
                              pthread_equal(service->driver, pthread_self()));
}

enum lw_status
lw_dispatcher_close(struct lw_dispatcher *dispatcher)
{
    struct lw_service *service = lw_service_of(dispatcher);
    lock(service);
    bool is_refused = would_deadlock(service);
    bool is_new = !is_refused && service->state == LW_SERVICE_NEW;
    if (is_new) {
        service->state = LW_SERVICE_ENDED;
        service->end = LW_STATUS_OK;
        (void)pthread_cond_broadcast(&service->ended);
    }
    unlock(service);
    if (is_refused) {
        return LW_STATUS_WOULD_DEADLOCK;
    }
    if (!is_new) {
        lw_dispatcher_request_close(dispatcher);
    }
    return lw_dispatcher_wait_closed(dispatcher, -1);
}

static struct timespec
deadline_in(int64_t timeout_ms)
{
    uint64_t wanted = lw_clock_monotonic_ns() + (uint64_t)timeout_ms * LW_MS;
    return (struct timespec){ .tv_sec = (time_t)(wanted / (1000 * LW_MS)),
                              .tv_nsec = (long)(wanted % (1000 * LW_MS)) };
}

enum lw_status
lw_dispatcher_wait_closed(struct lw_dispatcher *dispatcher, int64_t timeout_ms)
{
    struct lw_service *service = lw_service_of(dispatcher);
    struct timespec deadline = deadline_in(timeout_ms > 0 ? timeout_ms : 0);
    int failed = 0;
    lock(service);
    if (service->state != LW_SERVICE_ENDED && would_deadlock(service)) {
        unlock(service);
        return LW_STATUS_WOULD_DEADLOCK;
    }
    while (service->state != LW_SERVICE_ENDED && failed == 0) {
        failed = timeout_ms < 0
                     ? pthread_cond_wait(&service->ended, &service->mutex)
                     : pthread_cond_timedwait(&service->ended, &service->mutex, &deadline);
    }
    enum lw_status status = service->state == LW_SERVICE_ENDED ? service->end
                                                               : LW_STATUS_TIMEOUT;
    unlock(service);
    return status;
}
