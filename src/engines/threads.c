/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads engine. Each worker has one word that says what is in its slot: EMPTY (awake,
 * looks for work), SLEEPING, FULL, LEAVE. The loop thread fills slots of idle workers by one
 * exchange each and wakes, once per flush, only those that slept (a futex; a wake of somebody
 * awake would cost more than a whole dispatch). The worker that became idle last is filled
 * first: its stack and caches are warm and often it does not sleep yet.
 *
 * Results come by one mailbox of the engine and one letter to the host; `is_announced` makes
 * all results that gather before the loop looks share that letter. A shared locked queue was
 * rejected: it costs a wake and a contended lock per message.
 */
#include "engines/threads.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/host.h"
#include "base/inside.h"
#include "core/subscription.h"
#include "engines/common/batch.h"

enum slot_word { SLOT_EMPTY, SLOT_SLEEPING, SLOT_FULL, SLOT_LEAVE };

struct worker {
    _Alignas(64) _Atomic uint32_t word;
    bool is_late;
    struct lw_delivery *task; /* the loop's before FULL, the worker's after */
    struct threads_engine *threads;
    struct worker *next_idle;
    struct worker *next_sleeper; /* to be woken by flush */
    struct lw_list running;      /* in the order of starts, or in no list */
    struct lw_batch_room room;   /* where tasks have several members */
    pthread_t thread;
};

struct threads_engine {
    struct lw_engine engine;
    struct lw_handler_options options;
    struct worker *workers;
    uint32_t started; /* threads that exist */
    struct worker *idle;
    struct worker *sleepers;
    struct lw_list running;
    struct lw_mailbox results;
    struct lw_letter letter;
    atomic_bool is_announced;
    struct lw_timer timer;
    struct lw_timer stop_timer;
    bool is_stopping;
    char *name;
};

static struct threads_engine *
threads_of(struct lw_engine *engine)
{
    return LW_CONTAINER(engine, struct threads_engine, engine);
}

static void
futex_wait(_Atomic uint32_t *word, uint32_t while_it_is)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_it_is, NULL, NULL, 0);
}

static void
futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* -- On a worker's thread ------------------------------------------------------------------ */

/* Waits until the slot is filled; NULL: leave. */
static struct lw_delivery *
take_task(struct worker *worker)
{
    uint32_t word = SLOT_EMPTY;
    atomic_compare_exchange_strong_explicit(&worker->word, &word, SLOT_SLEEPING,
                                            memory_order_acquire, memory_order_acquire);
    word = atomic_load_explicit(&worker->word, memory_order_acquire);
    while (word == SLOT_SLEEPING) {
        futex_wait(&worker->word, SLOT_SLEEPING);
        word = atomic_load_explicit(&worker->word, memory_order_acquire);
    }
    if (word == SLOT_LEAVE) {
        return NULL;
    }
    atomic_store_explicit(&worker->word, SLOT_EMPTY, memory_order_relaxed);
    return worker->task;
}

/* The exchanges on is_announced order the post before the take that it leads to. */
static void
report(struct threads_engine *threads, struct lw_delivery *delivery)
{
    lw_mailbox_post(&threads->results, &delivery->mail);
    if (!atomic_exchange_explicit(&threads->is_announced, true, memory_order_acq_rel)) {
        lw_host_post(threads->engine.host, &threads->letter);
    }
}

static void
call(struct worker *worker, struct lw_delivery *delivery)
{
    const struct lw_handler_options *options = &worker->threads->options;
    const void *before = lw_inside_enter(delivery);
    if (options->handler) {
        enum lw_verdict verdict = options->handler(delivery, options->user);
        delivery->verdict = (uint8_t)lw_run_judge(delivery, verdict);
    } else {
        lw_batch_call(options, &worker->room, delivery);
    }
    lw_inside_leave(before);
}

static void *
work(void *user)
{
    struct worker *worker = user;
    struct threads_engine *threads = worker->threads;
    struct lw_delivery *delivery = take_task(worker);
    while (delivery) {
        call(worker, delivery);
        report(threads, delivery);
        delivery = take_task(worker);
    }
    return NULL;
}

/* -- On the loop thread -------------------------------------------------------------------- */

static void
set_room(struct threads_engine *threads, uint32_t room)
{
    threads->engine.room = threads->is_stopping ? 0 : room;
    threads->engine.has_changed = true;
}

static void
push_idle(struct threads_engine *threads, struct worker *worker)
{
    worker->next_idle = threads->idle;
    threads->idle = worker;
}

static void
on_result(struct threads_engine *threads, struct lw_delivery *delivery)
{
    struct worker *worker = delivery->engine_data;
    lw_list_remove(&worker->running);
    push_idle(threads, worker);
    delivery->engine_data = NULL;
    lw_engine_done(&threads->engine, delivery);
}

static void
on_letter(struct lw_letter *letter)
{
    struct threads_engine *threads = LW_CONTAINER(letter, struct threads_engine, letter);
    (void)atomic_exchange_explicit(&threads->is_announced, false, memory_order_acq_rel);
    struct lw_mail *mail = lw_mailbox_take(&threads->results);
    uint32_t count = 0;
    while (mail) {
        struct lw_mail *next = mail->next;
        on_result(threads, LW_CONTAINER(mail, struct lw_delivery, mail));
        mail = next;
        count++;
    }
    set_room(threads, threads->engine.room + count);
}

static void
tell_late(struct threads_engine *threads, struct worker *worker)
{
    struct lw_delivery *delivery = worker->task;
    const char *topic = delivery->subscription ? delivery->subscription->topic : NULL;
    worker->is_late = true;
    lw_batch_set_late(delivery);
    lw_host_log(
        threads->engine.host, LW_LOG_WARN, "handler.thread_late",
        "a handler runs longer than its timeout and cannot be ended; it keeps its thread",
        "handler=%s topic=%s offset=%" PRId64 " attempt=%" PRIu32, threads->name,
        topic ? topic : "", delivery->message.position, delivery->attempt);
}

/* All have the same timeout, so the list is in the order of deadlines. */
static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    struct threads_engine *threads = LW_CONTAINER(timer, struct threads_engine, timer);
    for (struct lw_list *node = threads->running.next; node != &threads->running;
         node = node->next) {
        struct worker *worker = LW_CONTAINER(node, struct worker, running);
        if (worker->is_late) {
            continue;
        }
        if (worker->task->deadline > now) {
            lw_timers_arm(&threads->engine.host->timers, timer, worker->task->deadline);
            return;
        }
        tell_late(threads, worker);
    }
}

static void
hand_over(struct threads_engine *threads, struct worker *worker, struct lw_delivery *delivery,
          uint64_t deadline)
{
    delivery->engine_data = worker;
    worker->task = delivery;
    worker->is_late = false;
    lw_list_push(&threads->running, &worker->running);
    lw_batch_claim(delivery, deadline);
    uint32_t word = atomic_exchange_explicit(&worker->word, SLOT_FULL, memory_order_acq_rel);
    if (word == SLOT_SLEEPING) {
        worker->next_sleeper = threads->sleepers;
        threads->sleepers = worker;
    }
}

static size_t
submit(struct lw_engine *engine, struct lw_delivery *const tasks[], size_t n)
{
    struct threads_engine *threads = threads_of(engine);
    uint64_t deadline = lw_run_deadline(engine->host->now, threads->options.timeout_ms);
    size_t taken = 0;
    for (; taken < n && engine->room > 0; taken++) {
        struct worker *worker = threads->idle;
        threads->idle = worker->next_idle;
        hand_over(threads, worker, tasks[taken], deadline);
        engine->room--;
    }
    if (deadline != LW_NEVER && taken > 0 && !lw_timer_is_armed(&threads->timer)) {
        lw_timers_arm(&engine->host->timers, &threads->timer, deadline);
    }
    return taken;
}

static void
flush(struct lw_engine *engine)
{
    struct threads_engine *threads = threads_of(engine);
    while (threads->sleepers) {
        struct worker *worker = threads->sleepers;
        threads->sleepers = worker->next_sleeper;
        futex_wake(&worker->word);
    }
}

static void
cancel(struct lw_engine *engine, struct lw_delivery *task)
{
    (void)engine;
    lw_batch_set_cancelled(task);
}

static void
on_stop_timer(struct lw_timer *timer, uint64_t now)
{
    struct threads_engine *threads = LW_CONTAINER(timer, struct threads_engine, stop_timer);
    (void)now;
    for (struct lw_list *node = threads->running.next; node != &threads->running;
         node = node->next) {
        cancel(&threads->engine, LW_CONTAINER(node, struct worker, running)->task);
    }
}

/* What can be ended at the deadline is nothing; handlers that ask are told to end. */
static void
stop(struct lw_engine *engine, uint64_t deadline)
{
    struct threads_engine *threads = threads_of(engine);
    threads->is_stopping = true;
    set_room(threads, 0);
    flush(engine);
    if (deadline != LW_NEVER) {
        lw_timers_arm(&engine->host->timers, &threads->stop_timer, deadline);
    }
}

static bool
is_stopped(const struct lw_engine *engine)
{
    const struct threads_engine *threads = (const void *)engine;
    return threads->is_stopping && lw_list_is_empty(&threads->running);
}

/* A full slot is left alone until its worker has taken the task, which it does at once. */
static void
tell_to_leave(struct worker *worker)
{
    uint32_t word = atomic_load_explicit(&worker->word, memory_order_relaxed);
    while (word == SLOT_FULL ||
           !atomic_compare_exchange_weak(&worker->word, &word, SLOT_LEAVE)) {
        (void)sched_yield();
        word = atomic_load_explicit(&worker->word, memory_order_relaxed);
    }
    if (word == SLOT_SLEEPING) {
        futex_wake(&worker->word);
    }
}

static void
join_all(struct threads_engine *threads)
{
    for (uint32_t i = 0; i < threads->started; i++) {
        tell_to_leave(&threads->workers[i]);
    }
    for (uint32_t i = 0; i < threads->started; i++) {
        (void)pthread_join(threads->workers[i].thread, NULL);
    }
    threads->started = 0;
}

/* Signals are for the program's own threads: workers are made with all of them blocked. */
static bool
make_threads(struct threads_engine *threads)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_made = true;
    while (is_made && threads->started < threads->options.threads) {
        struct worker *worker = &threads->workers[threads->started];
        is_made = pthread_create(&worker->thread, NULL, work, worker) == 0;
        threads->started += is_made ? 1 : 0;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_made;
}

static enum lw_status
start(struct lw_engine *engine, struct lw_error *ret_error)
{
    struct threads_engine *threads = threads_of(engine);
    if (!make_threads(threads)) {
        uint32_t made = threads->started;
        join_all(threads);
        lw_error_set(ret_error, LW_STATUS_SYSTEM, "E0610",
                     "handler \"%s\" cannot start: only %" PRIu32 " of %" PRIu32
                     " threads could be made",
                     threads->name, made, threads->options.threads);
        lw_error_help(ret_error, "lower `threads` or raise the limit of processes (ulimit -u)");
        return LW_STATUS_SYSTEM;
    }
    for (uint32_t i = threads->started; i > 0; i--) {
        push_idle(threads, &threads->workers[i - 1]);
    }
    set_room(threads, threads->started);
    return LW_STATUS_OK;
}

/* The last worker may have posted the letter after its result was taken: no host may keep it. */
static void
take_letter_back(struct threads_engine *threads)
{
    struct lw_mailbox *mailbox = &threads->engine.host->mailbox;
    struct lw_mail *mail = lw_mailbox_take(mailbox);
    while (mail) {
        struct lw_mail *next = mail->next;
        lw_mail_open(mail);
        if (mail != &threads->letter.mail) {
            lw_mailbox_post(mailbox, mail);
        }
        mail = next;
    }
}

static void
free_all(struct threads_engine *threads)
{
    for (uint32_t i = 0; threads->workers && i < threads->options.threads; i++) {
        lw_batch_room_deinit(&threads->workers[i].room);
    }
    lw_free(threads->workers);
    lw_free(threads->name);
    lw_free(threads);
}

static void
destroy(struct lw_engine *engine)
{
    struct threads_engine *threads = threads_of(engine);
    flush(engine);
    join_all(threads);
    take_letter_back(threads);
    lw_timers_disarm(&engine->host->timers, &threads->timer);
    lw_timers_disarm(&engine->host->timers, &threads->stop_timer);
    free_all(threads);
}

static const struct lw_engine_ops threads_ops = {
    .name = "threads",
    .reads_in_place = true,
    .can_end_early = false,
    .start = start,
    .submit = submit,
    .flush = flush,
    .cancel = cancel,
    .stop = stop,
    .is_stopped = is_stopped,
    .destroy = destroy,
};

static enum lw_status
init_workers(struct threads_engine *threads)
{
    uint32_t count = threads->options.threads;
    threads->workers = lw_alloc_array(count, sizeof *threads->workers);
    if (!threads->workers) {
        return LW_STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        atomic_init(&threads->workers[i].word, SLOT_EMPTY);
        threads->workers[i].threads = threads;
        lw_list_init(&threads->workers[i].running);
        if (threads->options.handler_batch &&
            !lw_batch_room_init(&threads->workers[i].room, threads->options.batch.size)) {
            return LW_STATUS_NO_MEMORY;
        }
    }
    return LW_STATUS_OK;
}

enum lw_status
lw_threads_engine_create(struct lw_host *host, struct lw_completions *completions,
                         const char *name, const struct lw_handler_options *options,
                         struct lw_engine **ret_engine)
{
    if (!options->handler == !options->handler_batch || options->handler_async ||
        options->handler_batch_async || options->threads == 0 ||
        (options->handler_batch && options->batch.size == 0)) {
        return LW_STATUS_INVALID;
    }
    struct threads_engine *threads = lw_alloc(sizeof *threads);
    if (!threads) {
        return LW_STATUS_NO_MEMORY;
    }
    threads->options = *options;
    threads->name = lw_copy_text(name);
    if (!threads->name || init_workers(threads) != LW_STATUS_OK) {
        free_all(threads);
        return LW_STATUS_NO_MEMORY;
    }
    threads->engine.ops = &threads_ops;
    threads->engine.host = host;
    threads->engine.completions = completions;
    threads->engine.name = threads->name;
    if (options->handler_batch) {
        threads->engine.batch = options->batch;
    }
    lw_list_init(&threads->running);
    lw_mailbox_init(&threads->results, -1);
    lw_letter_init(&threads->letter, on_letter);
    atomic_init(&threads->is_announced, false);
    lw_timer_init(&threads->timer, on_timer);
    lw_timer_init(&threads->stop_timer, on_stop_timer);
    *ret_engine = &threads->engine;
    return LW_STATUS_OK;
}
