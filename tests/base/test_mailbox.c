/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mailbox: order and double posts on one thread; then four posters against one taker that
 * sleeps in poll: nothing lost, nothing twice, order per poster kept, and no more wake-ups than
 * the taker's announced sleeps.
 */
#include "tests/support/test.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/list.h"
#include "base/mailbox.h"

struct item {
    struct lw_mail mail;
    unsigned poster;
    unsigned serial;
};

static uint64_t
read_wakes(int fd)
{
    uint64_t count = 0;
    return read(fd, &count, sizeof count) == sizeof count ? count : 0;
}

static void
mail_is_taken_in_the_order_of_posting(void **state)
{
    (void)state;
    struct lw_mailbox mailbox;
    struct item items[3];
    lw_mailbox_init(&mailbox, -1);
    for (unsigned i = 0; i < 3; i++) {
        lw_mail_init(&items[i].mail);
        assert_true(lw_mailbox_post(&mailbox, &items[i].mail));
    }
    struct lw_mail *mail = lw_mailbox_take(&mailbox);
    for (unsigned i = 0; i < 3; i++, mail = mail->next) {
        assert_ptr_equal(mail, &items[i].mail);
    }
    assert_null(mail);
    assert_null(lw_mailbox_take(&mailbox));
}

static void
second_post_is_refused_until_the_mail_is_opened(void **state)
{
    (void)state;
    struct lw_mailbox mailbox;
    struct lw_mail mail;
    lw_mailbox_init(&mailbox, -1);
    lw_mail_init(&mail);
    assert_true(lw_mailbox_post(&mailbox, &mail));
    assert_false(lw_mailbox_post(&mailbox, &mail));
    assert_ptr_equal(lw_mailbox_take(&mailbox), &mail);
    assert_false(lw_mailbox_post(&mailbox, &mail));
    lw_mail_open(&mail);
    assert_true(lw_mailbox_post(&mailbox, &mail));
}

static void
busy_taker_is_not_woken(void **state)
{
    (void)state;
    struct lw_mailbox mailbox;
    struct lw_mail mail;
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    lw_mailbox_init(&mailbox, fd);
    lw_mail_init(&mail);
    lw_mailbox_post(&mailbox, &mail);
    assert_int_equal(read_wakes(fd), 0);
    close(fd);
}

static void
sleeping_taker_is_woken_by_the_first_post_only(void **state)
{
    (void)state;
    struct lw_mailbox mailbox;
    struct lw_mail mails[2];
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    lw_mailbox_init(&mailbox, fd);
    assert_false(lw_mailbox_sleep(&mailbox));
    for (int i = 0; i < 2; i++) {
        lw_mail_init(&mails[i]);
        lw_mailbox_post(&mailbox, &mails[i]);
    }
    assert_int_equal(read_wakes(fd), 1);
    close(fd);
}

static void
taker_with_mail_must_not_sleep_and_is_not_woken_later(void **state)
{
    (void)state;
    struct lw_mailbox mailbox;
    struct lw_mail mails[2];
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    lw_mailbox_init(&mailbox, fd);
    lw_mail_init(&mails[0]);
    lw_mail_init(&mails[1]);
    lw_mailbox_post(&mailbox, &mails[0]);
    assert_true(lw_mailbox_sleep(&mailbox));
    lw_mailbox_post(&mailbox, &mails[1]);
    assert_int_equal(read_wakes(fd), 0);
    close(fd);
}

static void
awake_taker_is_not_woken(void **state)
{
    (void)state;
    struct lw_mailbox mailbox;
    struct lw_mail mail;
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    lw_mailbox_init(&mailbox, fd);
    lw_mail_init(&mail);
    assert_false(lw_mailbox_sleep(&mailbox));
    lw_mailbox_awake(&mailbox);
    lw_mailbox_post(&mailbox, &mail);
    assert_int_equal(read_wakes(fd), 0);
    close(fd);
}

/* -- Threads --------------------------------------------------------------------------------- */

enum { POSTERS = 4, POSTS = 100000, SLOTS = 64 };

struct poster {
    struct lw_mailbox *mailbox;
    unsigned index;
    struct item items[SLOTS];
};

/* Posts its items in turn; waits for one that is still on its way. */
static void *
post_many(void *argument)
{
    struct poster *poster = argument;
    for (unsigned serial = 0; serial < POSTS; serial++) {
        struct item *item = &poster->items[serial % SLOTS];
        while (atomic_load_explicit(&item->mail.is_posted, memory_order_acquire)) {
            sched_yield();
        }
        item->serial = serial;
        if (!lw_mailbox_post(poster->mailbox, &item->mail)) {
            return poster; /* shown as a loss by the checker */
        }
    }
    return NULL;
}

struct taker {
    struct lw_mailbox mailbox;
    unsigned next_serial[POSTERS];
    unsigned taken;
    unsigned sleeps; /* announced, whether or not there was mail after all */
    uint64_t wakes;
};

static void
take_all(struct taker *taker)
{
    struct lw_mail *mail = lw_mailbox_take(&taker->mailbox);
    while (mail) {
        struct lw_mail *next = mail->next;
        struct item *item = LW_CONTAINER(mail, struct item, mail);
        assert_int_equal(item->serial, taker->next_serial[item->poster]);
        taker->next_serial[item->poster]++;
        taker->taken++;
        lw_mail_open(mail);
        mail = next;
    }
}

/* A lost wake-up shows as a poll that times out though posters are at work. */
static void
sleep_until_woken(struct taker *taker)
{
    taker->sleeps++;
    if (lw_mailbox_sleep(&taker->mailbox)) {
        return;
    }
    struct pollfd poll_fd = { .fd = taker->mailbox.wake_fd, .events = POLLIN };
    assert_int_equal(poll(&poll_fd, 1, 60000), 1);
    taker->wakes += read_wakes(taker->mailbox.wake_fd);
    lw_mailbox_awake(&taker->mailbox);
}

static void
four_posters_lose_nothing_and_wake_at_most_once_a_sleep(void **state)
{
    (void)state;
    static struct poster posters[POSTERS];
    pthread_t threads[POSTERS];
    struct taker taker = { .taken = 0 };
    lw_mailbox_init(&taker.mailbox, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    for (unsigned i = 0; i < POSTERS; i++) {
        posters[i].mailbox = &taker.mailbox;
        for (unsigned slot = 0; slot < SLOTS; slot++) {
            lw_mail_init(&posters[i].items[slot].mail);
            posters[i].items[slot].poster = i;
        }
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &posters[i]), 0);
    }
    while (taker.taken < POSTERS * POSTS) {
        take_all(&taker);
        if (taker.taken < POSTERS * POSTS) {
            sleep_until_woken(&taker);
        }
    }
    for (unsigned i = 0; i < POSTERS; i++) {
        void *lost = NULL;
        pthread_join(threads[i], &lost);
        assert_null(lost);
    }
    take_all(&taker);
    assert_int_equal(taker.taken, POSTERS * POSTS);
    assert_in_range(taker.wakes + read_wakes(taker.mailbox.wake_fd), 1, taker.sleeps);
    close(taker.mailbox.wake_fd);
}

struct race {
    struct lw_mailbox *mailbox;
    struct lw_mail *mails;
    atomic_uint *accepted;
    pthread_barrier_t *start;
};

static void *
race_to_post(void *argument)
{
    struct race *race = argument;
    pthread_barrier_wait(race->start);
    for (unsigned i = 0; i < 1000; i++) {
        if (lw_mailbox_post(race->mailbox, &race->mails[i])) {
            atomic_fetch_add(race->accepted, 1);
        }
    }
    return NULL;
}

static void
only_one_of_two_racing_posts_of_a_mail_is_accepted(void **state)
{
    (void)state;
    struct lw_mailbox mailbox;
    static struct lw_mail mails[1000];
    atomic_uint accepted = 0;
    pthread_barrier_t start;
    pthread_t threads[2];
    lw_mailbox_init(&mailbox, -1);
    for (unsigned i = 0; i < 1000; i++) {
        lw_mail_init(&mails[i]);
    }
    pthread_barrier_init(&start, NULL, 2);
    struct race race = { &mailbox, mails, &accepted, &start };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, race_to_post, &race), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&start);
    unsigned taken = 0;
    for (struct lw_mail *mail = lw_mailbox_take(&mailbox); mail; mail = mail->next) {
        taken++;
    }
    assert_int_equal(atomic_load(&accepted), 1000);
    assert_int_equal(taken, 1000);
}

/* -- The end of a mailbox -------------------------------------------------------------------- */

struct last_post {
    struct lw_mailbox *mailbox; /* of the heap, freed as soon as it may be */
    struct lw_mail mail;
};

static void *
post_last(void *argument)
{
    struct last_post *post = argument;
    (void)lw_mailbox_post_counted(post->mailbox, &post->mail);
    return NULL;
}

/* The sanitizers see who looks at the memory afterwards. */
static void
a_retired_mailbox_may_go_though_its_last_poster_is_not_joined(void **state)
{
    enum { ROUNDS = 500 };
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct last_post post = { .mailbox = malloc(sizeof *post.mailbox) };
        pthread_t thread;
        assert_non_null(post.mailbox);
        lw_mailbox_init(post.mailbox, -1);
        lw_mail_init(&post.mail);
        (void)lw_mailbox_sleep(post.mailbox);
        assert_int_equal(pthread_create(&thread, NULL, post_last, &post), 0);
        while (!lw_mailbox_take(post.mailbox)) {
            sched_yield();
        }
        lw_mailbox_retire(post.mailbox);
        free(post.mailbox);
        pthread_join(thread, NULL);
    }
}

/* -- Coalescing ------------------------------------------------------------------------------ */

struct level {
    struct lw_mailbox mailbox;
    struct lw_mail mail;
    atomic_uint value; /* stored relaxed: only the post may carry it over */
    atomic_uint seen;
};

enum { LEVELS = 200000 };

static void *
raise_level(void *argument)
{
    struct level *level = argument;
    for (unsigned value = 1; value <= LEVELS; value++) {
        atomic_store_explicit(&level->value, value, memory_order_relaxed);
        lw_mailbox_post(&level->mailbox, &level->mail);
        bool must_wait = value % 2 == 0;
        for (unsigned spins = 1; must_wait; spins++) {
            must_wait = atomic_load_explicit(&level->seen, memory_order_relaxed) != value;
            if (spins % 1024 == 0) {
                sched_yield();
            }
        }
    }
    return NULL;
}

/*
 * A refused post means that the taker has not yet looked: it must see what came before it. If it
 * did not, both sides would wait for each other, and the taker's poll would end by its time.
 */
static void
what_was_written_before_a_refused_post_is_seen_by_the_taker(void **state)
{
    (void)state;
    static struct level level;
    pthread_t thread;
    lw_mailbox_init(&level.mailbox, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    lw_mail_init(&level.mail);
    assert_int_equal(pthread_create(&thread, NULL, raise_level, &level), 0);
    unsigned seen = 0;
    while (seen < LEVELS) {
        struct lw_mail *mail = lw_mailbox_take(&level.mailbox);
        if (mail) {
            lw_mail_open(mail);
            seen = atomic_load_explicit(&level.value, memory_order_relaxed);
            atomic_store_explicit(&level.seen, seen, memory_order_relaxed);
        } else if (!lw_mailbox_sleep(&level.mailbox)) {
            struct pollfd poll_fd = { .fd = level.mailbox.wake_fd, .events = POLLIN };
            assert_int_equal(poll(&poll_fd, 1, 60000), 1);
            read_wakes(level.mailbox.wake_fd);
            lw_mailbox_awake(&level.mailbox);
        }
    }
    pthread_join(thread, NULL);
    close(level.mailbox.wake_fd);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mail_is_taken_in_the_order_of_posting),
        cmocka_unit_test(second_post_is_refused_until_the_mail_is_opened),
        cmocka_unit_test(busy_taker_is_not_woken),
        cmocka_unit_test(sleeping_taker_is_woken_by_the_first_post_only),
        cmocka_unit_test(taker_with_mail_must_not_sleep_and_is_not_woken_later),
        cmocka_unit_test(awake_taker_is_not_woken),
        cmocka_unit_test(four_posters_lose_nothing_and_wake_at_most_once_a_sleep),
        cmocka_unit_test(only_one_of_two_racing_posts_of_a_mail_is_accepted),
        cmocka_unit_test(a_retired_mailbox_may_go_though_its_last_poster_is_not_joined),
        cmocka_unit_test(what_was_written_before_a_refused_post_is_seen_by_the_taker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
