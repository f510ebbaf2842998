/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two members of a real group: partitions change hands with a last commit, nothing is read twice
 * or skipped, companions follow their source, a member that commits all the time keeps its
 * assignment through a cooperative rebalance.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "tests/kafka/cluster.h"

static const struct lw_property eager[] = { { "session.timeout.ms", "10000" },
                                            { "heartbeat.interval.ms", "300" },
                                            { NULL, NULL } };
/* As long as a machine with other work may keep a client from its heartbeats. */
static const struct lw_property brief[] = { { "session.timeout.ms", "3000" },
                                            { "heartbeat.interval.ms", "300" },
                                            { NULL, NULL } };
static const struct lw_property cooperative[] = { { "session.timeout.ms", "10000" },
                                                  { "heartbeat.interval.ms", "300" },
                                                  { "partition.assignment.strategy",
                                                    "cooperative-sticky" },
                                                  { NULL, NULL } };

static void
join(struct driver *driver, const char *topic, const struct lw_property *properties)
{
    driver_open(driver, cluster_address(), NULL);
    driver_subscribe(driver, topic, topic, properties);
    driver_start(driver);
}

static bool
are_shared(struct driver *a, struct driver *b)
{
    return driver_owned(a) == 4 && driver_owned(b) == 4;
}

static uint64_t wanted;

static bool
have_received(struct driver *a, struct driver *b)
{
    return a->received + b->received >= wanted;
}

static void
hand_over(const struct lw_property *properties)
{
    struct driver a;
    struct driver b;
    char topic[64];
    cluster_name("shared", topic);
    cluster_create(topic, 8);
    cluster_fill(topic, 8000, 100);
    join(&a, topic, properties);
    driver_run_received(&a, 8000, DRIVER_PATIENCE_MS);
    join(&b, topic, properties);
    cluster_run_two(&a, &b, are_shared, DRIVER_PATIENCE_MS);
    cluster_fill(topic, 8000, 100);
    wanted = 16000;
    cluster_run_two(&a, &b, have_received, DRIVER_PATIENCE_MS);
    driver_pass(&a, 200);
    driver_pass(&b, 200);
    assert_int_equal(a.received + b.received, 16000);
    assert_true(a.received > 8000 && b.received > 0);
    assert_int_equal(a.lost + b.lost, 0);
    assert_int_equal(a.jumps + b.jumps, 0);
    driver_close(&b);
    driver_run_assigned(&a, 8, DRIVER_PATIENCE_MS);
    driver_close(&a);
}

static void
an_eager_rebalance_repeats_nothing_and_skips_nothing(void **state)
{
    (void)state;
    hand_over(eager);
}

static void
a_cooperative_rebalance_repeats_nothing_and_skips_nothing(void **state)
{
    (void)state;
    hand_over(cooperative);
}

/* -- Commits all the time ------------------------------------------------------------------------- */

static bool
are_shared_committing(struct driver *a, struct driver *b)
{
    if (!a->is_committing) {
        (void)driver_commit_begin(a);
    }
    return are_shared(a, b);
}

static uint64_t stay_until;

static bool
have_stayed(struct driver *a, struct driver *b)
{
    if (!a->is_committing) {
        (void)driver_commit_begin(a);
    }
    (void)b;
    return a->host->now >= stay_until;
}

static bool
has_answer(struct driver *driver, void *user)
{
    (void)user;
    return !driver->is_committing;
}

/*
 * One that the client had taken before it sent its JoinGroup may come behind it at the cluster and
 * be refused for its old generation. It is committed again; the assignment must not be lost.
 */
static void
commits_during_a_cooperative_rebalance_do_not_lose_the_assignment(void **state)
{
    (void)state;
    struct driver a;
    struct driver b;
    char topic[64];
    cluster_name("busy", topic);
    cluster_create(topic, 8);
    cluster_fill(topic, 800, 100);
    join(&a, topic, cooperative);
    driver_run_received(&a, 800, DRIVER_PATIENCE_MS);
    join(&b, topic, cooperative);
    cluster_run_two(&a, &b, are_shared_committing, DRIVER_PATIENCE_MS);
    stay_until = a.host->now + 2000 * LW_MS;
    cluster_run_two(&a, &b, have_stayed, DRIVER_PATIENCE_MS);
    assert_int_equal(a.lost, 0);
    assert_int_equal(b.lost, 0);
    assert_int_equal(a.received + b.received, 800);
    if (a.is_committing) {
        driver_run(&a, has_answer, NULL, DRIVER_PATIENCE_MS);
    }
    driver_commit(&a);
    assert_int_equal(a.commit_status, LW_STATUS_OK);
    driver_close(&b);
    driver_close(&a);
}

/* -- Companions ---------------------------------------------------------------------------------------- */

static void
join_tiered(struct driver *driver, const char *topic, const char *retry,
            const struct lw_property *properties, size_t property_count)
{
    static const int64_t tiers[] = { 1000 };
    struct lw_source_options options = { .topic = topic,
                                         .subscription = topic,
                                         .retry_topic = retry,
                                         .tiers_ms = tiers,
                                         .tier_count = 1,
                                         .reads_tiers = true,
                                         .properties = properties,
                                         .property_count = property_count };
    driver_open(driver, cluster_address(), NULL);
    driver_subscribe_with(driver, &options);
    driver_start(driver);
}

/* Every partition of the source and of the tier has one owner, the same for both. */
static void
check_companions(struct driver *a, struct driver *b, const char *topic, const char *tier)
{
    for (int32_t i = 0; i < 4; i++) {
        bool is_of_a = driver_find(a, topic, i) != NULL;
        assert_int_equal(is_of_a, driver_find(a, tier, i) != NULL);
        assert_int_equal(!is_of_a, driver_find(b, topic, i) != NULL);
        assert_int_equal(!is_of_a, driver_find(b, tier, i) != NULL);
    }
}

static void
follow(const struct lw_property *properties, size_t property_count)
{
    struct driver a;
    struct driver b;
    char topic[64];
    char retry[80];
    char tier[96];
    cluster_name("led", topic);
    (void)snprintf(retry, sizeof retry, "%s.retry", topic);
    (void)snprintf(tier, sizeof tier, "%s.1s", retry);
    cluster_create(topic, 4);
    cluster_create(tier, 4);
    cluster_fill(tier, 100, 20);
    join_tiered(&a, topic, retry, properties, property_count);
    driver_run_received(&a, 100, DRIVER_PATIENCE_MS);
    driver_run_assigned(&a, 8, DRIVER_PATIENCE_MS);
    join_tiered(&b, topic, retry, properties, property_count);
    cluster_run_two(&a, &b, are_shared, DRIVER_PATIENCE_MS);
    check_companions(&a, &b, topic, tier);
    cluster_fill(tier, 100, 20);
    wanted = 200;
    cluster_run_two(&a, &b, have_received, DRIVER_PATIENCE_MS);
    driver_close(&b);
    driver_run_assigned(&a, 8, DRIVER_PATIENCE_MS);
    driver_pass(&a, 500);
    assert_int_equal(a.jumps + b.jumps, 0);
    assert_int_equal(a.received + b.received, 200);
    driver_close(&a);
}

static void
companions_go_with_their_source_under_the_eager_protocol(void **state)
{
    (void)state;
    follow(eager, 2);
}

static void
companions_go_with_their_source_under_the_cooperative_protocol(void **state)
{
    (void)state;
    follow(cooperative, 3);
}

/* -- Members that are late ------------------------------------------------------------------------------- */

static bool
has_all(struct driver *a, struct driver *b)
{
    return driver_owned(a) + driver_owned(b) == 8 && driver_owned(b) > 0;
}

static void
an_unanswered_revoke_is_answered_for_the_dispatcher_after_the_deadline(void **state)
{
    (void)state;
    struct driver a;
    struct driver b;
    char topic[64];
    cluster_name("late", topic);
    cluster_create(topic, 8);
    join(&a, topic, eager);
    driver_run_assigned(&a, 8, DRIVER_PATIENCE_MS);
    a.keeps_revoke = true;
    join(&b, topic, eager);
    cluster_run_two(&a, &b, has_all, DRIVER_PATIENCE_MS);
    a.keeps_revoke = false;
    driver_close(&b);
    driver_close(&a);
}

static void
a_slow_consumer_keeps_its_membership_for_many_sessions(void **state)
{
    (void)state;
    struct driver a;
    char topic[64];
    cluster_name("slow", topic);
    cluster_create(topic, 4);
    cluster_fill(topic, 20000, 100);
    join(&a, topic, brief);
    driver_run_assigned(&a, 4, DRIVER_PATIENCE_MS);
    a.is_paused = true;
    driver_pass(&a, 9500);
    driver_resume(&a);
    driver_run_received(&a, 20000, DRIVER_PATIENCE_MS);
    assert_int_equal(a.lost + a.revoked, 0);
    driver_close(&a);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_eager_rebalance_repeats_nothing_and_skips_nothing),
        cmocka_unit_test(a_cooperative_rebalance_repeats_nothing_and_skips_nothing),
        cmocka_unit_test(commits_during_a_cooperative_rebalance_do_not_lose_the_assignment),
        cmocka_unit_test(companions_go_with_their_source_under_the_eager_protocol),
        cmocka_unit_test(companions_go_with_their_source_under_the_cooperative_protocol),
        cmocka_unit_test(
            an_unanswered_revoke_is_answered_for_the_dispatcher_after_the_deadline),
        cmocka_unit_test(a_slow_consumer_keeps_its_membership_for_many_sessions),
    };
    (void)cluster_address();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
