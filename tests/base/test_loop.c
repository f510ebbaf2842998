/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libuv host on a real clock. Tests wait for events with poll or by turns and have a deadline
 * far away, so a slow machine makes them slower and not wrong; how often the thread slept is
 * counted by the kernel (voluntary context switches).
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/loop.h"

enum { PATIENCE_MS = 20000 };

static struct lw_loop *loop;
static struct lw_host *host;

static int
set_up(void **state)
{
    (void)state;
    if (lw_loop_create(1, &loop) != LW_STATUS_OK) {
        return 1;
    }
    host = lw_loop_host(loop);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    lw_loop_destroy(loop);
    return 0;
}

static bool
is_readable(int wait_ms)
{
    struct pollfd poll_fd = { .fd = lw_loop_fd(loop), .events = POLLIN };
    return poll(&poll_fd, 1, wait_ms) == 1;
}

/* Polls until the descriptor is quiet: the state of a foreign loop that waits. */
static void
settle(void)
{
    for (int i = 0; i < 10 && is_readable(0); i++) {
        lw_loop_poll(loop);
    }
    assert_false(is_readable(0));
}

struct probe {
    struct lw_timer timer;
    uint64_t fired_at;
    bool is_stopping;
};

static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    struct probe *probe = LW_CONTAINER(timer, struct probe, timer);
    probe->fired_at = now;
    if (probe->is_stopping) {
        lw_loop_stop(loop);
    }
}

static void
arm_probe(struct probe *probe, uint64_t delay)
{
    lw_timer_init(&probe->timer, on_timer);
    lw_timers_arm(&host->timers, &probe->timer, lw_clock_monotonic_ns() + delay);
}

static void
run_sleeps_until_a_timer_is_due(void **state)
{
    (void)state;
    struct probe probe = { .is_stopping = true };
    arm_probe(&probe, 30 * LW_MS);
    uint64_t due = probe.timer.due;
    lw_loop_run(loop);
    assert_true(probe.fired_at >= due);
    assert_true(lw_clock_monotonic_ns() >= due);
}

/* The best of many: one that the machine did not disturb is at most a tick and a wake-up late. */
static void
five_millisecond_timer_is_less_than_half_a_millisecond_late(void **state)
{
    (void)state;
    uint64_t best = LW_NEVER;
    for (int i = 0; i < 2000 && best >= LW_MS / 2; i++) {
        struct probe probe = { .is_stopping = true };
        arm_probe(&probe, 5 * LW_MS);
        uint64_t due = probe.timer.due;
        lw_loop_run(loop);
        best = probe.fired_at - due < best ? probe.fired_at - due : best;
    }
    assert_true(best < LW_MS / 2);
}

static void
stop_before_run_makes_it_return_at_once(void **state)
{
    (void)state;
    lw_loop_stop(loop);
    lw_loop_run(loop);
    struct probe probe = { .is_stopping = true };
    arm_probe(&probe, LW_MS);
    lw_loop_run(loop);
    assert_true(probe.fired_at > 0);
}

static void
turn_until_returns_at_its_deadline(void **state)
{
    (void)state;
    uint64_t deadline = lw_clock_monotonic_ns() + 20 * LW_MS;
    unsigned turns = 0;
    while (lw_clock_monotonic_ns() < deadline) {
        lw_loop_turn_until(loop, deadline);
        turns++;
    }
    assert_in_range(turns, 1, 5);
}

struct pipe_watch {
    int fds[2];
    int events;
    unsigned calls;
    uint64_t now;
    struct lw_watch *watch;
};

static void
on_ready(int fd, int events, void *user)
{
    struct pipe_watch *pipe_watch = user;
    char byte;
    pipe_watch->events = events;
    pipe_watch->calls++;
    pipe_watch->now = host->now;
    if (events & LW_READABLE && read(fd, &byte, 1) == 0) {
        host->ops->rewatch(pipe_watch->watch, 0);
    }
}

static void
open_pipe(struct pipe_watch *pipe_watch, int events)
{
    memset(pipe_watch, 0, sizeof *pipe_watch);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipe_watch->fds), 0);
    pipe_watch->watch = host->ops->watch(host, pipe_watch->fds[0], events, on_ready,
                                         pipe_watch);
    assert_non_null(pipe_watch->watch);
}

static void
close_pipe(struct pipe_watch *pipe_watch)
{
    host->ops->unwatch(pipe_watch->watch);
    close(pipe_watch->fds[0]);
    close(pipe_watch->fds[1]);
}

static void
write_byte(struct pipe_watch *pipe_watch)
{
    assert_int_equal(write(pipe_watch->fds[1], "x", 1), 1);
}

static void
watched_descriptor_is_told_ready_with_a_fresh_clock(void **state)
{
    (void)state;
    struct pipe_watch pipe_watch;
    open_pipe(&pipe_watch, LW_READABLE);
    lw_loop_poll(loop);
    assert_int_equal(pipe_watch.calls, 0);
    uint64_t before = lw_clock_monotonic_ns();
    write_byte(&pipe_watch);
    lw_loop_turn_until(loop, LW_NEVER);
    assert_int_equal(pipe_watch.events, LW_READABLE);
    assert_true(pipe_watch.now >= before);
    close_pipe(&pipe_watch);
}

static void
watch_is_level_triggered_and_can_be_paused(void **state)
{
    (void)state;
    struct pipe_watch pipe_watch;
    open_pipe(&pipe_watch, LW_READABLE);
    write_byte(&pipe_watch);
    write_byte(&pipe_watch);
    write_byte(&pipe_watch);
    lw_loop_poll(loop);
    lw_loop_poll(loop);
    assert_int_equal(pipe_watch.calls, 2);
    host->ops->rewatch(pipe_watch.watch, 0);
    lw_loop_poll(loop);
    assert_int_equal(pipe_watch.calls, 2);
    host->ops->rewatch(pipe_watch.watch, LW_WRITABLE);
    lw_loop_poll(loop);
    assert_int_equal(pipe_watch.events, LW_WRITABLE);
    close_pipe(&pipe_watch);
}

static void
end_of_a_stream_is_readable(void **state)
{
    (void)state;
    struct pipe_watch pipe_watch;
    open_pipe(&pipe_watch, LW_READABLE);
    shutdown(pipe_watch.fds[1], SHUT_RDWR);
    lw_loop_turn_until(loop, LW_NEVER);
    assert_int_equal(pipe_watch.events & LW_READABLE, LW_READABLE);
    unsigned calls = pipe_watch.calls;
    lw_loop_poll(loop);
    assert_int_equal(pipe_watch.calls, calls);
    close_pipe(&pipe_watch);
}

static void
unwatched_descriptor_is_silent_and_can_be_watched_again(void **state)
{
    (void)state;
    struct pipe_watch pipe_watch;
    open_pipe(&pipe_watch, LW_READABLE);
    write_byte(&pipe_watch);
    host->ops->unwatch(pipe_watch.watch);
    pipe_watch.watch = host->ops->watch(host, pipe_watch.fds[0], LW_WRITABLE, on_ready,
                                        &pipe_watch);
    assert_non_null(pipe_watch.watch);
    lw_loop_poll(loop);
    assert_int_equal(pipe_watch.calls, 1);
    assert_int_equal(pipe_watch.events, LW_WRITABLE);
    close_pipe(&pipe_watch);
}

static void
what_cannot_be_watched_is_refused(void **state)
{
    (void)state;
    int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    struct pipe_watch pipe_watch;
    open_pipe(&pipe_watch, LW_READABLE);
    assert_null(host->ops->watch(host, fd, LW_READABLE, on_ready, NULL));
    assert_null(host->ops->watch(host, pipe_watch.fds[0], LW_READABLE, on_ready, NULL));
    lw_alloc_fail_at(1);
    assert_null(host->ops->watch(host, pipe_watch.fds[1], LW_READABLE, on_ready, NULL));
    close_pipe(&pipe_watch);
    close(fd);
}

/* -- Other threads ----------------------------------------------------------------------------- */

enum { LETTERS = 2000 };

struct sender {
    struct lw_letter letter;
    unsigned received;
    atomic_uint opened; /* as many letters as the receiver has read */
};

static void
on_letter(struct lw_letter *letter)
{
    struct sender *sender = LW_CONTAINER(letter, struct sender, letter);
    sender->received++;
    atomic_store(&sender->opened, sender->received);
    if (sender->received == LETTERS) {
        lw_loop_stop(loop);
    }
}

/* Posts one letter again and again, each time after it was read: every post meets a sleeper. */
static void *
send_letters(void *argument)
{
    struct sender *sender = argument;
    for (unsigned i = 0; i < LETTERS; i++) {
        while (atomic_load(&sender->opened) < i) {
            sched_yield();
        }
        lw_host_post(host, &sender->letter);
    }
    return NULL;
}

static void
letters_of_another_thread_wake_the_loop_and_none_is_lost(void **state)
{
    (void)state;
    struct sender sender = { .received = 0 };
    struct probe patience = { .is_stopping = true };
    pthread_t thread;
    lw_letter_init(&sender.letter, on_letter);
    arm_probe(&patience, PATIENCE_MS * LW_MS);
    assert_int_equal(pthread_create(&thread, NULL, send_letters, &sender), 0);
    lw_loop_run(loop);
    pthread_join(thread, NULL);
    assert_int_equal(sender.received, LETTERS);
    lw_timers_disarm(&host->timers, &patience.timer);
}

static void *
send_one_letter(void *argument)
{
    struct sender *sender = argument;
    lw_host_post(host, &sender->letter);
    return NULL;
}

static void
letter_makes_the_descriptor_readable_for_a_foreign_loop(void **state)
{
    (void)state;
    struct sender sender = { .received = 0 };
    pthread_t thread;
    lw_letter_init(&sender.letter, on_letter);
    settle();
    assert_int_equal(pthread_create(&thread, NULL, send_one_letter, &sender), 0);
    assert_true(is_readable(PATIENCE_MS));
    lw_loop_poll(loop);
    pthread_join(thread, NULL);
    assert_int_equal(sender.received, 1);
    settle();
}

/* -- A foreign loop ---------------------------------------------------------------------------- */

static void
descriptor_is_readable_for_the_first_turn_and_then_quiet(void **state)
{
    (void)state;
    assert_true(is_readable(0));
    settle();
}

static void
timer_makes_the_descriptor_readable(void **state)
{
    (void)state;
    struct probe probe = { .fired_at = 0 };
    settle();
    arm_probe(&probe, 500 * LW_MS);
    lw_host_want_turn(host);
    settle();
    assert_int_equal(probe.fired_at, 0);
    assert_true(is_readable(PATIENCE_MS));
    lw_loop_poll(loop);
    assert_true(probe.fired_at > 0);
}

static unsigned deferred_calls;

static void
on_deferred(struct lw_deferred *deferred)
{
    deferred_calls++;
    if (deferred_calls < 3) {
        lw_host_defer(host, deferred);
    }
}

static void
deferred_work_keeps_the_descriptor_readable_until_it_is_done(void **state)
{
    (void)state;
    struct lw_deferred deferred;
    deferred_calls = 0;
    lw_deferred_init(&deferred, on_deferred);
    settle();
    lw_host_defer(host, &deferred);
    for (unsigned i = 1; i <= 3; i++) {
        assert_true(is_readable(0));
        lw_loop_poll(loop);
        assert_int_equal(deferred_calls, i);
    }
    settle();
}

static void
watch_that_is_added_between_turns_reaches_a_foreign_loop(void **state)
{
    (void)state;
    struct pipe_watch pipe_watch;
    settle();
    open_pipe(&pipe_watch, LW_READABLE);
    settle();
    write_byte(&pipe_watch);
    assert_true(is_readable(PATIENCE_MS));
    lw_loop_poll(loop);
    assert_int_equal(pipe_watch.calls, 1);
    close_pipe(&pipe_watch);
}

static struct pipe_watch late_pipe;

static void
on_deferred_open_pipe(struct lw_deferred *deferred)
{
    (void)deferred;
    open_pipe(&late_pipe, LW_READABLE);
}

static void
watch_that_is_added_in_a_turn_reaches_a_foreign_loop(void **state)
{
    (void)state;
    struct lw_deferred deferred;
    lw_deferred_init(&deferred, on_deferred_open_pipe);
    lw_host_defer(host, &deferred);
    settle();
    write_byte(&late_pipe);
    assert_true(is_readable(PATIENCE_MS));
    lw_loop_poll(loop);
    assert_int_equal(late_pipe.calls, 1);
    close_pipe(&late_pipe);
}

/* -- Idle -------------------------------------------------------------------------------------- */

static long
sleeps_so_far(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static uint64_t
on_far_turn(struct lw_turn *turn, uint64_t now)
{
    (void)turn;
    return now + 3600 * 1000 * LW_MS;
}

static unsigned turn_count;

static uint64_t
on_counted_turn(struct lw_turn *turn, uint64_t now)
{
    (void)turn;
    (void)now;
    turn_count++;
    return LW_NEVER;
}

static void
fired_timer_does_not_keep_the_loop_turning(void **state)
{
    (void)state;
    struct lw_turn turn = { .fn = on_counted_turn };
    struct probe first = { .fired_at = 0 };
    struct probe end = { .is_stopping = true };
    lw_host_add_turn(host, &turn);
    settle();
    arm_probe(&first, 10 * LW_MS);
    arm_probe(&end, 50 * LW_MS);
    turn_count = 0;
    lw_loop_run(loop);
    assert_in_range(turn_count, 1, 5);
    lw_host_remove_turn(&turn);
}

/* Far timers, hooks and watches are there; only the end of the wait may wake the thread. */
static void
idle_loop_sleeps_once(void **state)
{
    (void)state;
    struct lw_turn turn = { .fn = on_far_turn };
    struct probe far = { .fired_at = 0 };
    struct probe end = { .is_stopping = true };
    struct pipe_watch pipe_watch;
    open_pipe(&pipe_watch, LW_READABLE);
    lw_host_add_turn(host, &turn);
    arm_probe(&far, 60000 * LW_MS);
    settle();
    arm_probe(&end, 1000 * LW_MS);
    long before = sleeps_so_far();
    lw_loop_run(loop);
    assert_in_range(sleeps_so_far() - before, 1, 3);
    lw_timers_disarm(&host->timers, &far.timer);
    lw_host_remove_turn(&turn);
    close_pipe(&pipe_watch);
}

static uint64_t
on_busy_turn(struct lw_turn *turn, uint64_t now)
{
    static unsigned count;
    (void)turn;
    if (++count == 1000) {
        lw_loop_stop(loop);
    }
    return now;
}

static void
busy_loop_does_not_sleep(void **state)
{
    (void)state;
    struct lw_turn turn = { .fn = on_busy_turn };
    lw_host_add_turn(host, &turn);
    long before = sleeps_so_far();
    lw_loop_run(loop);
    assert_in_range(sleeps_so_far() - before, 0, 20);
    lw_host_remove_turn(&turn);
}

static void
deadline_that_moves_away_does_not_wake_for_ever(void **state)
{
    (void)state;
    struct probe often = { .fired_at = 0 };
    struct probe end = { .is_stopping = true };
    settle();
    for (int i = 0; i < 100; i++) {
        arm_probe(&often, 50 * LW_MS);
        lw_loop_poll(loop);
        lw_timers_disarm(&host->timers, &often.timer);
    }
    arm_probe(&end, 500 * LW_MS);
    long before = sleeps_so_far();
    lw_loop_run(loop);
    assert_in_range(sleeps_so_far() - before, 1, 4);
}

/* -- Process ----------------------------------------------------------------------------------- */

static void
driving_thread_has_sigpipe_blocked(void **state)
{
    (void)state;
    sigset_t set;
    lw_loop_poll(loop);
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    assert_true(sigismember(&set, SIGPIPE));
}

static void
loop_leaves_no_descriptor_open_and_none_inheritable(void **state)
{
    (void)state;
    struct lw_loop *other = NULL;
    int first = dup(0);
    close(first);
    assert_int_equal(lw_loop_create(0, &other), LW_STATUS_OK);
    for (int fd = first; fd < first + 16; fd++) {
        int flags = fcntl(fd, F_GETFD);
        assert_true(flags < 0 || flags & FD_CLOEXEC);
    }
    lw_loop_destroy(other);
    int again = dup(0);
    close(again);
    assert_int_equal(again, first);
}

static void
lack_of_memory_at_creation_is_told(void **state)
{
    (void)state;
    struct lw_loop *other = NULL;
    lw_alloc_fail_at(1);
    assert_int_equal(lw_loop_create(1, &other), LW_STATUS_NO_MEMORY);
    assert_null(other);
    lw_loop_destroy(NULL);
}

/* -- Names ------------------------------------------------------------------------------------- */

struct name {
    struct lw_resolve resolve;
    int count;
    bool is_found;
};

static void
on_name(struct lw_resolve *resolve, const struct addrinfo *addresses, const char *failure)
{
    struct name *name = LW_CONTAINER(resolve, struct name, resolve);
    name->count++;
    name->is_found = addresses != NULL;
    assert_true((addresses == NULL) == (failure != NULL));
}

static void
wait_for_name(struct name *name)
{
    uint64_t limit = host->now + PATIENCE_MS * LW_MS;
    while (name->count == 0 && host->now < limit) {
        lw_loop_turn_until(loop, limit);
    }
    assert_int_equal(name->count, 1);
}

static void
name_is_looked_up_off_the_thread_and_answered_later(void **state)
{
    (void)state;
    struct name local = { 0 };
    struct name none = { 0 };
    assert_true(lw_host_resolve(host, &local.resolve, "localhost", on_name));
    assert_int_equal(local.count, 0);
    wait_for_name(&local);
    assert_true(local.is_found);
    assert_true(lw_host_resolve(host, &none.resolve, "not a name", on_name));
    wait_for_name(&none);
    assert_false(none.is_found);
}

static void
name_that_nobody_waits_for_any_more_is_not_answered(void **state)
{
    (void)state;
    struct name left = { 0 };
    struct name local = { 0 };
    assert_true(lw_host_resolve(host, &left.resolve, "localhost", on_name));
    lw_host_resolve_cancel(host, &left.resolve);
    lw_host_resolve_cancel(host, &left.resolve);
    assert_true(lw_host_resolve(host, &local.resolve, "localhost", on_name));
    wait_for_name(&local);
    assert_int_equal(left.count, 0);
    /* The loop may end while one is on its way. */
    assert_true(lw_host_resolve(host, &left.resolve, "localhost", on_name));
    lw_host_resolve_cancel(host, &left.resolve);
}

#define LOOP_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        LOOP_TEST(run_sleeps_until_a_timer_is_due),
        LOOP_TEST(five_millisecond_timer_is_less_than_half_a_millisecond_late),
        LOOP_TEST(stop_before_run_makes_it_return_at_once),
        LOOP_TEST(turn_until_returns_at_its_deadline),
        LOOP_TEST(watched_descriptor_is_told_ready_with_a_fresh_clock),
        LOOP_TEST(watch_is_level_triggered_and_can_be_paused),
        LOOP_TEST(end_of_a_stream_is_readable),
        LOOP_TEST(unwatched_descriptor_is_silent_and_can_be_watched_again),
        LOOP_TEST(what_cannot_be_watched_is_refused),
        LOOP_TEST(letters_of_another_thread_wake_the_loop_and_none_is_lost),
        LOOP_TEST(letter_makes_the_descriptor_readable_for_a_foreign_loop),
        LOOP_TEST(descriptor_is_readable_for_the_first_turn_and_then_quiet),
        LOOP_TEST(timer_makes_the_descriptor_readable),
        LOOP_TEST(deferred_work_keeps_the_descriptor_readable_until_it_is_done),
        LOOP_TEST(watch_that_is_added_between_turns_reaches_a_foreign_loop),
        LOOP_TEST(watch_that_is_added_in_a_turn_reaches_a_foreign_loop),
        LOOP_TEST(fired_timer_does_not_keep_the_loop_turning),
        LOOP_TEST(idle_loop_sleeps_once),
        LOOP_TEST(busy_loop_does_not_sleep),
        LOOP_TEST(deadline_that_moves_away_does_not_wake_for_ever),
        LOOP_TEST(driving_thread_has_sigpipe_blocked),
        LOOP_TEST(loop_leaves_no_descriptor_open_and_none_inheritable),
        LOOP_TEST(name_is_looked_up_off_the_thread_and_answered_later),
        LOOP_TEST(name_that_nobody_waits_for_any_more_is_not_answered),
        cmocka_unit_test(lack_of_memory_at_creation_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
