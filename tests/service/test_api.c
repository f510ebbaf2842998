/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions: making a dispatcher, running it, closing it from everywhere, its end, and
 * driving it from a loop of one's own.
 */
#include "tests/support/test.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dispatcher/dispatcher.h"
#include "tests/service/service_fixture.h"

/* Counts, and closes at the wanted number. */
struct counter {
    struct lw_dispatcher *dispatcher;
    atomic_uint count;
    unsigned wanted;
    enum lw_status close_status;
    char topic[32];
};

static enum lw_verdict
count(struct lw_delivery *delivery, void *user)
{
    struct counter *counter = user;
    (void)snprintf(counter->topic, sizeof counter->topic, "%s", lw_delivery_topic(delivery));
    if (atomic_fetch_add(&counter->count, 1) + 1 == counter->wanted) {
        lw_dispatcher_request_close(counter->dispatcher);
    }
    return LW_OK;
}

static struct counter
counter_of(struct service_fixture *fixture, unsigned wanted)
{
    fixture->options.handler = count;
    fixture->options.engine = LW_ENGINE_LOOP;
    return (struct counter){ .dispatcher = fixture->dispatcher, .wanted = wanted };
}

static void
run_ends_well_after_a_close_was_requested(void **state)
{
    struct service_fixture *fixture = *state;
    struct counter counter = counter_of(fixture, 3);
    fixture->options.user = &counter;
    service_subscribe(fixture);
    service_publish(fixture, "topic", "k", 3);
    assert_int_equal(lw_dispatcher_run(fixture->dispatcher, &fixture->error), LW_STATUS_OK);
    assert_int_equal(counter.count, 3);
    assert_int_equal(service_backlog(fixture, "topic"), 0);
}

static void
close_before_run_leaves_all_messages_at_the_broker(void **state)
{
    struct service_fixture *fixture = *state;
    struct counter counter = counter_of(fixture, 1);
    fixture->options.user = &counter;
    service_subscribe(fixture);
    service_publish(fixture, "topic", "k", 3);
    assert_int_equal(lw_dispatcher_close(fixture->dispatcher), LW_STATUS_OK);
    assert_int_equal(lw_dispatcher_run(fixture->dispatcher, &fixture->error), LW_STATUS_OK);
    assert_int_equal(counter.count, 0);
    assert_int_equal(lw_memory_hub_end(fixture->hub, "topic", 0), 3);
    assert_int_equal(lw_memory_hub_stats(fixture->hub).received, 0);
}

static void
nothing_can_be_added_after_run(void **state)
{
    struct service_fixture *fixture = *state;
    struct counter counter = counter_of(fixture, 1);
    fixture->options.user = &counter;
    service_subscribe(fixture);
    service_publish(fixture, "topic", "k", 1);
    assert_int_equal(lw_dispatcher_run(fixture->dispatcher, &fixture->error), LW_STATUS_OK);
    fixture->options.topic = "other";
    assert_int_equal(
        lw_dispatcher_subscribe(fixture->dispatcher, &fixture->options, &fixture->error),
        LW_STATUS_STATE);
    assert_int_equal(lw_dispatcher_connect(fixture->dispatcher, "second", "memory:", NULL, 0,
                                           &fixture->error),
                     LW_STATUS_STATE);
    assert_non_null(strstr(fixture->error.message, "before run"));
}

static void
options_that_nobody_started_are_refused(void **state)
{
    struct service_fixture *fixture = *state;
    struct lw_dispatcher_options options = { .concurrency = 4 };
    struct lw_subscription_options subscription = { .broker = "main" };
    assert_null(lw_dispatcher_create(&options, &fixture->error));
    assert_int_equal(fixture->error.status, LW_STATUS_INVALID);
    assert_int_equal(
        lw_dispatcher_subscribe(fixture->dispatcher, &subscription, &fixture->error),
        LW_STATUS_INVALID);
}

static void
a_shorter_struct_of_an_older_program_gets_the_defaults(void **state)
{
    struct service_fixture *fixture = *state;
    struct counter counter = counter_of(fixture, 1);
    fixture->options.user = &counter;
    fixture->options.size = offsetof(struct lw_subscription_options, retry);
    fixture->options.retry.max_attempts = 0; /* would be refused if it were read */
    service_subscribe(fixture);
}

static void
a_function_on_processes_is_refused_without_lw_processes_init(void **state)
{
    struct service_fixture *fixture = *state;
    struct counter counter = counter_of(fixture, 1);
    fixture->options.user = &counter;
    fixture->options.engine = LW_ENGINE_PROCESSES;
    assert_int_equal(
        lw_dispatcher_subscribe(fixture->dispatcher, &fixture->options, &fixture->error),
        LW_STATUS_INVALID);
    assert_string_equal(fixture->error.code, "E0606");
    assert_non_null(strstr(fixture->error.message, "lw_processes_init"));
}

static void
unknown_brokers_and_addresses_are_refused(void **state)
{
    struct service_fixture *fixture = *state;
    struct counter counter = counter_of(fixture, 1);
    fixture->options.user = &counter;
    fixture->options.broker = "man";
    assert_int_equal(
        lw_dispatcher_subscribe(fixture->dispatcher, &fixture->options, &fixture->error),
        LW_STATUS_NOT_FOUND);
    assert_int_equal(
        lw_dispatcher_connect(fixture->dispatcher, "x", "amqp://h", NULL, 0, &fixture->error),
        LW_STATUS_INVALID);
    assert_string_equal(fixture->error.code, "E0508");
    assert_int_equal(
        lw_dispatcher_connect(fixture->dispatcher, "main", "memory:", NULL, 0, &fixture->error),
        LW_STATUS_INVALID);
}

/* -- Handlers and engines ------------------------------------------------------------------------ */

static void
finish_at_once(struct lw_delivery *delivery, void *user)
{
    (void)user;
    (void)lw_delivery_finish(delivery, LW_OK);
}

static enum lw_status
try_handler(struct service_fixture *fixture, enum lw_engine_kind engine, lw_handler_fn handler,
            lw_handler_async_fn handler_async, const char *const *program)
{
    fixture->options.engine = engine;
    fixture->options.handler = handler;
    fixture->options.handler_async = handler_async;
    fixture->options.program = program;
    return lw_dispatcher_subscribe(fixture->dispatcher, &fixture->options, &fixture->error);
}

static void
a_handler_that_its_engine_cannot_run_is_refused(void **state)
{
    struct service_fixture *fixture = *state;
    static const char *const program[] = { "cat", NULL };
    assert_int_equal(try_handler(fixture, LW_ENGINE_THREADS, NULL, finish_at_once, NULL),
                     LW_STATUS_INVALID);
    assert_int_equal(try_handler(fixture, LW_ENGINE_LOOP, NULL, NULL, program),
                     LW_STATUS_INVALID);
    assert_int_equal(try_handler(fixture, LW_ENGINE_PROGRAMS, count, NULL, NULL),
                     LW_STATUS_INVALID);
    assert_int_equal(try_handler(fixture, LW_ENGINE_LOOP, NULL, NULL, NULL), LW_STATUS_INVALID);
    assert_int_equal(try_handler(fixture, LW_ENGINE_LOOP, count, finish_at_once, NULL),
                     LW_STATUS_INVALID);
    assert_string_equal(fixture->error.code, "E0606");
    assert_int_equal(fixture->dispatcher->stream_count, 0);
    assert_int_equal(fixture->dispatcher->engine_count, 0);
}

static void
three_subscriptions_see_only_their_own_messages(void **state)
{
    struct service_fixture *fixture = *state;
    static const char *const topics[] = { "a", "b", "c" };
    struct counter counters[3];
    for (int i = 0; i < 3; i++) {
        counters[i] = counter_of(fixture, i == 2 ? 2 : 0);
        fixture->options.topic = topics[i];
        fixture->options.priority = 10 * (i + 1);
        fixture->options.user = &counters[i];
        service_subscribe(fixture);
        service_publish(fixture, topics[i], "k", 2);
    }
    assert_int_equal(lw_dispatcher_run(fixture->dispatcher, &fixture->error), LW_STATUS_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(counters[i].count, 2);
        assert_string_equal(counters[i].topic, topics[i]);
    }
}

static void
two_dispatchers_in_one_process_do_not_meet(void **state)
{
    struct service_fixture *fixture = *state;
    struct counter first = counter_of(fixture, 2);
    struct counter second = { .wanted = 2 };
    struct lw_dispatcher *other = service_create(fixture, NULL);
    fixture->options.user = &first;
    service_subscribe(fixture);
    second.dispatcher = other;
    fixture->options.topic = "other";
    fixture->options.user = &second;
    assert_int_equal(lw_dispatcher_subscribe(other, &fixture->options, &fixture->error), 0);
    service_publish(fixture, "topic", "k", 2);
    service_publish(fixture, "other", "k", 2);
    assert_int_equal(lw_dispatcher_run(other, &fixture->error), LW_STATUS_OK);
    assert_int_equal(first.count, 0);
    assert_int_equal(lw_dispatcher_run(fixture->dispatcher, &fixture->error), LW_STATUS_OK);
    assert_int_equal(first.count, 2);
    assert_int_equal(second.count, 2);
    lw_dispatcher_destroy(other);
}

/* -- Closing --------------------------------------------------------------------------------------- */

static enum lw_verdict
close_inside(struct lw_delivery *delivery, void *user)
{
    struct counter *counter = user;
    (void)delivery;
    counter->close_status = lw_dispatcher_close(counter->dispatcher);
    lw_dispatcher_request_close(counter->dispatcher);
    return LW_OK;
}

static void
closing_inside_a_handler_is_refused(void **state)
{
    struct service_fixture *fixture = *state;
    struct counter counter = counter_of(fixture, 1);
    fixture->options.handler = close_inside;
    fixture->options.user = &counter;
    fixture->options.engine = LW_ENGINE_THREADS;
    service_subscribe(fixture);
    service_publish(fixture, "topic", "k", 1);
    assert_int_equal(lw_dispatcher_run(fixture->dispatcher, &fixture->error), LW_STATUS_OK);
    assert_int_equal(counter.close_status, LW_STATUS_WOULD_DEADLOCK);
}

static void
close_from_timer(void *user)
{
    struct counter *counter = user;
    counter->close_status = lw_dispatcher_close(counter->dispatcher);
    assert_int_equal(lw_dispatcher_wait_closed(counter->dispatcher, -1),
                     LW_STATUS_WOULD_DEADLOCK);
    lw_dispatcher_request_close(counter->dispatcher);
}

static void
closing_on_the_loop_thread_is_refused(void **state)
{
    struct service_fixture *fixture = *state;
    struct counter counter = counter_of(fixture, 1);
    fixture->options.user = &counter;
    service_subscribe(fixture);
    assert_non_null(lw_loop_timer(fixture->dispatcher, 0, close_from_timer, &counter));
    assert_int_equal(lw_dispatcher_run(fixture->dispatcher, &fixture->error), LW_STATUS_OK);
    assert_int_equal(counter.close_status, LW_STATUS_WOULD_DEADLOCK);
}

static void *
close_elsewhere(void *user)
{
    return (void *)(uintptr_t)lw_dispatcher_close(user);
}

static void
many_threads_close_and_all_wait_for_the_same_end(void **state)
{
    struct service_fixture *fixture = *state;
    struct counter counter = counter_of(fixture, 0);
    pthread_t threads[4];
    fixture->options.user = &counter;
    service_subscribe(fixture);
    service_publish(fixture, "topic", "k", 5);
    assert_int_equal(lw_dispatcher_poll(fixture->dispatcher, &fixture->error), LW_STATUS_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, close_elsewhere, fixture->dispatcher), 0);
    }
    assert_int_equal(lw_dispatcher_run(fixture->dispatcher, &fixture->error), LW_STATUS_OK);
    for (int i = 0; i < 4; i++) {
        void *status = NULL;
        assert_int_equal(pthread_join(threads[i], &status), 0);
        assert_int_equal((uintptr_t)status, LW_STATUS_OK);
    }
    assert_int_equal(service_backlog(fixture, "topic"), 0);
    assert_int_equal(lw_dispatcher_wait_closed(fixture->dispatcher, 0), LW_STATUS_OK);
}

static void
waiting_for_the_end_has_a_limit(void **state)
{
    struct service_fixture *fixture = *state;
    assert_int_equal(lw_dispatcher_wait_closed(fixture->dispatcher, 5), LW_STATUS_TIMEOUT);
    assert_int_equal(lw_dispatcher_close(fixture->dispatcher), LW_STATUS_OK);
    assert_int_equal(lw_dispatcher_wait_closed(fixture->dispatcher, 5), LW_STATUS_OK);
}

/* A handler that holds its thread until it is let go. */
struct gate {
    struct lw_dispatcher *dispatcher;
    sem_t open;
    atomic_bool has_returned;
};

static enum lw_verdict
wait_at_gate(struct lw_delivery *delivery, void *user)
{
    struct gate *gate = user;
    (void)delivery;
    lw_dispatcher_request_close(gate->dispatcher);
    while (sem_wait(&gate->open) != 0) {
        ;
    }
    atomic_store(&gate->has_returned, true);
    return LW_OK;
}

static void *
open_gate(void *user)
{
    struct gate *gate = user;
    assert_false(gate->has_returned);
    sem_post(&gate->open);
    return NULL;
}

static void
run_returns_at_the_drain_deadline_and_destroy_waits_for_the_handler(void **state)
{
    struct service_fixture *fixture = *state;
    struct lw_dispatcher_options options;
    struct gate gate = { .has_returned = false };
    pthread_t thread;
    lw_dispatcher_options_init(&options);
    options.drain_timeout_ms = 20;
    gate.dispatcher = service_create(fixture, &options);
    assert_int_equal(sem_init(&gate.open, 0, 0), 0);
    fixture->options.engine = LW_ENGINE_THREADS;
    fixture->options.handler = wait_at_gate;
    fixture->options.user = &gate;
    assert_int_equal(lw_dispatcher_subscribe(gate.dispatcher, &fixture->options, NULL), 0);
    service_publish(fixture, "topic", "k", 1);
    assert_int_equal(lw_dispatcher_run(gate.dispatcher, &fixture->error), LW_STATUS_UNFINISHED);
    assert_false(gate.has_returned);
    assert_int_equal(pthread_create(&thread, NULL, open_gate, &gate), 0);
    lw_dispatcher_destroy(gate.dispatcher);
    assert_true(gate.has_returned);
    assert_int_equal(pthread_join(thread, NULL), 0);
    sem_destroy(&gate.open);
}

/* -- Embedding ------------------------------------------------------------------------------------- */

static void
a_foreign_loop_drives_it_by_descriptor_and_poll(void **state)
{
    struct service_fixture *fixture = *state;
    struct counter counter = counter_of(fixture, 2);
    struct pollfd item = { .fd = lw_dispatcher_fd(fixture->dispatcher), .events = POLLIN };
    enum lw_status status = LW_STATUS_OK;
    fixture->options.user = &counter;
    service_subscribe(fixture);
    service_publish(fixture, "topic", "k", 2);
    status = lw_dispatcher_poll(fixture->dispatcher, &fixture->error);
    while (status == LW_STATUS_OK) {
        assert_int_equal(poll(&item, 1, 60000), 1);
        status = lw_dispatcher_poll(fixture->dispatcher, &fixture->error);
    }
    assert_int_equal(status, LW_STATUS_CLOSED);
    assert_int_equal(counter.count, 2);
    assert_int_equal(lw_dispatcher_poll(fixture->dispatcher, &fixture->error),
                     LW_STATUS_CLOSED);
}

static void
note_time(void *user)
{
    struct counter *counter = user;
    counter->count++;
    lw_dispatcher_request_close(counter->dispatcher);
}

static void
a_loop_timer_runs_once_unless_it_was_canceled(void **state)
{
    struct service_fixture *fixture = *state;
    struct counter fired = counter_of(fixture, 0);
    struct counter canceled = counter_of(fixture, 0);
    struct counter left = counter_of(fixture, 0);
    fixture->options.user = &fired;
    service_subscribe(fixture);
    assert_non_null(lw_loop_timer(fixture->dispatcher, 2000, note_time, &fired));
    struct lw_loop_timer *timer = lw_loop_timer(fixture->dispatcher, 1000, note_time,
                                                &canceled);
    assert_non_null(lw_loop_timer(fixture->dispatcher, 3600000000, note_time, &left));
    lw_loop_timer_cancel(timer);
    assert_int_equal(lw_dispatcher_run(fixture->dispatcher, &fixture->error), LW_STATUS_OK);
    assert_int_equal(fired.count, 1);
    assert_int_equal(canceled.count, 0);
    assert_int_equal(left.count, 0);
}

static void
on_pipe(int fd, int events, void *user)
{
    struct counter *counter = user;
    char byte;
    assert_int_equal(events, LW_READABLE);
    assert_int_equal(read(fd, &byte, 1), 1);
    counter->count++;
    lw_dispatcher_request_close(counter->dispatcher);
}

static void
a_loop_watch_is_called_when_its_descriptor_is_ready(void **state)
{
    struct service_fixture *fixture = *state;
    struct counter counter = counter_of(fixture, 0);
    int fds[2];
    fixture->options.user = &counter;
    service_subscribe(fixture);
    assert_int_equal(pipe(fds), 0);
    struct lw_loop_watch *watch = lw_loop_watch(fixture->dispatcher, fds[0], LW_READABLE,
                                                on_pipe, &counter);
    assert_non_null(watch);
    assert_int_equal(write(fds[1], "x", 1), 1);
    assert_int_equal(lw_dispatcher_run(fixture->dispatcher, &fixture->error), LW_STATUS_OK);
    assert_int_equal(counter.count, 1);
    lw_loop_watch_cancel(watch);
    close(fds[0]);
    close(fds[1]);
}

/* -- Finishing from other threads -------------------------------------------------------------------- */

enum { FOREIGN = 20000, FOREIGN_RING = 64 };

/* Deliveries on their way to the thread that finishes them; a ring, one reader, one writer. */
struct foreign {
    struct counter counter;
    struct lw_ticket tickets[FOREIGN_RING];
    sem_t filled;
    sem_t empty;
    unsigned next;
    unsigned twice; /* second finishes that were not refused */
};

static void
hand_over(struct lw_delivery *delivery, void *user)
{
    struct foreign *foreign = user;
    while (sem_wait(&foreign->empty) != 0) {
        ;
    }
    foreign->tickets[foreign->next++ % FOREIGN_RING] = lw_delivery_ticket(delivery);
    sem_post(&foreign->filled);
}

static void *
finish_all(void *user)
{
    struct foreign *foreign = user;
    for (unsigned i = 0; i < FOREIGN; i++) {
        while (sem_wait(&foreign->filled) != 0) {
            ;
        }
        struct lw_ticket ticket = foreign->tickets[i % FOREIGN_RING];
        sem_post(&foreign->empty);
        assert_int_equal(lw_ticket_finish(ticket, LW_OK), LW_STATUS_OK);
        foreign->twice += lw_ticket_finish(ticket, LW_OK) != LW_STATUS_ALREADY;
    }
    lw_dispatcher_request_close(foreign->counter.dispatcher);
    return NULL;
}

static void
deliveries_are_finished_from_another_thread_exactly_once(void **state)
{
    struct service_fixture *fixture = *state;
    static struct foreign foreign;
    pthread_t thread;
    foreign.counter = counter_of(fixture, 0);
    assert_int_equal(sem_init(&foreign.filled, 0, 0), 0);
    assert_int_equal(sem_init(&foreign.empty, 0, FOREIGN_RING), 0);
    fixture->options.handler = NULL;
    fixture->options.handler_async = hand_over;
    fixture->options.engine = LW_ENGINE_LOOP;
    fixture->options.ordering = LW_ORDERING_NONE;
    fixture->options.user = &foreign;
    service_subscribe(fixture);
    service_publish(fixture, "topic", NULL, FOREIGN);
    assert_int_equal(pthread_create(&thread, NULL, finish_all, &foreign), 0);
    assert_int_equal(lw_dispatcher_run(fixture->dispatcher, &fixture->error), LW_STATUS_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(foreign.twice, 0);
    assert_int_equal(service_backlog(fixture, "topic"), 0);
    sem_destroy(&foreign.filled);
    sem_destroy(&foreign.empty);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, service_setup, service_teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(run_ends_well_after_a_close_was_requested),
        TEST(close_before_run_leaves_all_messages_at_the_broker),
        TEST(nothing_can_be_added_after_run),
        TEST(options_that_nobody_started_are_refused),
        TEST(a_shorter_struct_of_an_older_program_gets_the_defaults),
        TEST(a_function_on_processes_is_refused_without_lw_processes_init),
        TEST(unknown_brokers_and_addresses_are_refused),
        TEST(a_handler_that_its_engine_cannot_run_is_refused),
        TEST(three_subscriptions_see_only_their_own_messages),
        TEST(two_dispatchers_in_one_process_do_not_meet),
        TEST(closing_inside_a_handler_is_refused),
        TEST(closing_on_the_loop_thread_is_refused),
        TEST(many_threads_close_and_all_wait_for_the_same_end),
        TEST(waiting_for_the_end_has_a_limit),
        TEST(run_returns_at_the_drain_deadline_and_destroy_waits_for_the_handler),
        TEST(a_foreign_loop_drives_it_by_descriptor_and_poll),
        TEST(a_loop_timer_runs_once_unless_it_was_canceled),
        TEST(a_loop_watch_is_called_when_its_descriptor_is_ready),
        TEST(deliveries_are_finished_from_another_thread_exactly_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
