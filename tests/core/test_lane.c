/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: one of a key runs, in order; heads that block a commit are urgent. And their table, whose
 * keys are exact, against a naive list of keys over a million random operations.
 */
#include "tests/support/test.h"

#include "tests/core/stage.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static struct lw_lanes
make_lanes(void)
{
    struct lw_lanes lanes;
    assert_int_equal(lw_lanes_init(&lanes, 100000, 42), LW_STATUS_OK);
    return lanes;
}

static struct lw_lane *
find(struct lw_lanes *lanes, struct stage_topic *topic, struct lw_bytes key)
{
    return lw_lanes_find(lanes, &topic->subscription, topic->partition.place, key);
}

static void
init_topic(struct stage_topic *topic, uint32_t index)
{
    stage_topic_init(topic, index, 0, LW_ORDERING_KEY, LW_KEYLESS_SHARED, true);
}

/* -- the table --------------------------------------------------------------------------------- */

static void
the_same_key_is_the_same_lane_and_another_place_another(void **state)
{
    struct lw_lanes lanes = make_lanes();
    struct stage_topic a;
    struct stage_topic b;
    (void)state;
    init_topic(&a, 0);
    init_topic(&b, 1);
    struct lw_lane *lane = find(&lanes, &a, lw_bytes_of("key"));
    char copy[] = "key";
    assert_ptr_equal(find(&lanes, &a, lw_bytes_of(copy)), lane);
    assert_ptr_not_equal(find(&lanes, &b, lw_bytes_of("key")), lane);
    a.partition.place = lw_lane_place(&a.subscription, 1);
    assert_ptr_not_equal(find(&lanes, &a, lw_bytes_of("key")), lane);
    assert_int_equal(lanes.count, 3);
    lw_lanes_deinit(&lanes);
}

static void
null_empty_and_zero_bytes_are_three_keys(void **state)
{
    struct lw_lanes lanes = make_lanes();
    struct stage_topic topic;
    (void)state;
    init_topic(&topic, 0);
    struct lw_lane *null = find(&lanes, &topic, (struct lw_bytes){ NULL, 0 });
    struct lw_lane *empty = find(&lanes, &topic, (struct lw_bytes){ "", 0 });
    struct lw_lane *zero = find(&lanes, &topic, (struct lw_bytes){ "", 1 });
    assert_ptr_not_equal(null, empty);
    assert_ptr_not_equal(empty, zero);
    assert_ptr_equal(find(&lanes, &topic, (struct lw_bytes){ NULL, 0 }), null);
    assert_ptr_equal(find(&lanes, &topic, (struct lw_bytes){ "x", 0 }), empty);
    lw_lanes_deinit(&lanes);
}

static void
keys_that_differ_in_any_one_byte_differ(void **state)
{
    struct lw_lanes lanes = make_lanes();
    struct stage_topic topic;
    char key[100] = { 0 };
    (void)state;
    init_topic(&topic, 0);
    for (size_t size = 1; size <= sizeof(key); size++) {
        struct lw_lane *lane = find(&lanes, &topic, (struct lw_bytes){ key, size });
        for (size_t i = 0; i < size; i++) {
            key[i] = 1;
            assert_ptr_not_equal(find(&lanes, &topic, (struct lw_bytes){ key, size }), lane);
            key[i] = 0;
        }
        assert_ptr_equal(find(&lanes, &topic, (struct lw_bytes){ key, size }), lane);
    }
    lw_lanes_deinit(&lanes);
}

/*
 * The hash of 16 bytes multiplies two words, so exchanging the factors gives another key with the
 * same hash: a collision of all 64 bits, made with the seed in hand.
 */
static void
collide(const struct lw_lanes *lanes, uint64_t place, const char key[16], char ret_key[16])
{
    uint64_t seed = lanes->seed + place * LW_HASH_P1;
    uint64_t swap = (seed ^ LW_HASH_P1) ^ (seed ^ LW_HASH_P0);
    uint64_t words[2];
    memcpy(words, key, 16);
    uint64_t other[2] = { words[1] ^ swap, words[0] ^ swap };
    memcpy(ret_key, other, 16);
}

static void
different_keys_of_one_hash_are_different_lanes(void **state)
{
    struct lw_lanes lanes = make_lanes();
    struct stage_topic topic;
    char other[16];
    (void)state;
    init_topic(&topic, 3);
    collide(&lanes, topic.partition.place, "0123456789abcdef", other);
    struct lw_bytes a = { "0123456789abcdef", 16 };
    struct lw_bytes b = { other, 16 };
    struct lw_lane *first = find(&lanes, &topic, a);
    struct lw_lane *second = find(&lanes, &topic, b);
    assert_int_equal(first->hash, second->hash);
    assert_ptr_not_equal(first, second);
    assert_ptr_equal(find(&lanes, &topic, a), first);
    assert_ptr_equal(find(&lanes, &topic, b), second);
    lw_lanes_deinit(&lanes);
}

static void
freeing_one_of_two_colliding_keys_leaves_the_other_found(void **state)
{
    struct lw_lanes lanes = make_lanes();
    struct stage_topic topic;
    char other[16];
    (void)state;
    init_topic(&topic, 0);
    collide(&lanes, topic.partition.place, "0123456789abcdef", other);
    struct lw_lane *first = find(&lanes, &topic, (struct lw_bytes){ "0123456789abcdef", 16 });
    struct lw_lane *second = find(&lanes, &topic, (struct lw_bytes){ other, 16 });
    second->place = LW_LANE_BUSY;
    lw_lanes_trim(&lanes);
    assert_int_equal(lanes.count, 1);
    assert_ptr_equal(find(&lanes, &topic, (struct lw_bytes){ other, 16 }), second);
    assert_ptr_not_equal(find(&lanes, &topic, (struct lw_bytes){ "0123456789abcdef", 16 }),
                         second);
    (void)first;
    lw_lanes_deinit(&lanes);
}

enum { MODEL_KEYS = 4000, MODEL_STEPS = 1000000 };

struct model_key {
    char bytes[160];
    struct lw_bytes view;
    struct lw_lane *lane; /* while it is kept busy */
    uint32_t topic;
};

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Keys of many lengths with long common parts; two of them are null and empty. */
static void
make_keys(struct model_key *keys)
{
    for (uint32_t i = 0; i < MODEL_KEYS; i++) {
        memset(keys[i].bytes, 'k', sizeof(keys[i].bytes));
        int digits = snprintf(keys[i].bytes + (i % 2 ? 90 : 0), 16, "%u", i / 4);
        keys[i].bytes[(i % 2 ? 90 : 0) + digits] = 'k';
        size_t size = i % 2 ? 160 : (size_t)digits + i % 40;
        keys[i].view = (struct lw_bytes){ keys[i].bytes, size };
        keys[i].topic = i % 4;
        keys[i].lane = NULL;
    }
    keys[0].view = (struct lw_bytes){ NULL, 0 };
    keys[4].view = (struct lw_bytes){ "", 0 };
}

static bool
is_key(const struct lw_lane *lane, const struct model_key *key)
{
    if (!key->view.data) {
        return lane->key_size == LW_LANE_NULL_KEY;
    }
    return lane->key_size == key->view.size &&
           memcmp(lane->key, key->view.data, key->view.size) == 0;
}

static void
a_million_operations_find_exactly_their_keys(void **state)
{
    static struct model_key keys[MODEL_KEYS];
    struct lw_lanes lanes = make_lanes();
    struct stage_topic topics[4];
    uint64_t random = 88172645463325252;
    uint32_t busy = 0;
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        init_topic(&topics[i], i);
    }
    make_keys(keys);
    lanes.kept_max = 500;
    for (int step = 0; step < MODEL_STEPS; step++) {
        struct model_key *key = &keys[next_random(&random) % MODEL_KEYS];
        struct lw_lane *lane = find(&lanes, &topics[key->topic], key->view);
        assert_true(lane && is_key(lane, key));
        assert_true(lane->place_id == topics[key->topic].partition.place);
        assert_true(!key->lane || key->lane == lane); /* a busy one is never freed */
        bool is_busy = busy < 1000 && next_random(&random) % 3 == 0;
        busy += (uint32_t)is_busy - (uint32_t)(key->lane != NULL);
        lane->place = is_busy ? LW_LANE_BUSY : LW_LANE_IDLE;
        key->lane = is_busy ? lane : NULL;
        assert_true(lanes.count <= lanes.kept_max + busy + 64);
        if (step % 100000 == 0) {
            lw_lanes_trim(&lanes);
            assert_int_equal(lanes.count, busy);
        }
    }
    lw_lanes_deinit(&lanes);
}

static void
without_memory_nothing_is_inserted_and_later_it_works(void **state)
{
    struct lw_lanes lanes = make_lanes();
    struct stage_topic topic;
    char key[100] = { 0 };
    (void)state;
    init_topic(&topic, 0);
    (void)find(&lanes, &topic, lw_bytes_of("warm"));
    lw_alloc_fail_at(1); /* the copy of a long key */
    assert_null(find(&lanes, &topic, (struct lw_bytes){ key, sizeof(key) }));
    assert_int_equal(lanes.count, 1);
    struct lw_lane *lane = find(&lanes, &topic, (struct lw_bytes){ key, sizeof(key) });
    assert_non_null(lane);
    assert_ptr_equal(find(&lanes, &topic, (struct lw_bytes){ key, sizeof(key) }), lane);
    lw_lanes_deinit(&lanes);
}

static void
a_failed_init_leaves_nothing_behind(void **state)
{
    struct lw_lanes lanes;
    uint64_t live = lw_alloc_live();
    (void)state;
    for (uint64_t n = 1;; n++) {
        lw_alloc_fail_at(n);
        enum lw_status status = lw_lanes_init(&lanes, 1000, 1);
        lw_alloc_fail_at(0);
        if (status == LW_STATUS_OK) {
            break;
        }
        assert_int_equal(status, LW_STATUS_NO_MEMORY);
        assert_int_equal(lw_alloc_live(), live);
    }
    lw_lanes_deinit(&lanes);
    assert_int_equal(lw_alloc_live(), live);
}

/* -- one lane ----------------------------------------------------------------------------------- */

struct scene {
    struct lw_lanes lanes;
    struct stage_topic topic;
    struct lw_lane *lane;
    struct lw_delivery *deliveries[4];
};

/* Three messages of the key "k" in its lane, and one of "other" that is not pushed. */
static void
set_scene(struct scene *scene)
{
    scene->lanes = make_lanes();
    init_topic(&scene->topic, 0);
    scene->lane = find(&scene->lanes, &scene->topic, lw_bytes_of("k"));
    for (int i = 0; i < 4; i++) {
        scene->deliveries[i] = stage_make(&scene->topic, i < 3 ? "k" : "other");
    }
    for (int i = 0; i < 3; i++) {
        scene->deliveries[i]->lane = scene->lane;
        lw_lane_push(scene->lane, scene->deliveries[i]);
    }
}

static void
strike_scene(struct scene *scene)
{
    for (int i = 0; i < 4; i++) {
        if (scene->deliveries[i]) {
            scene->deliveries[i]->lane = NULL;
            stage_free(scene->deliveries[i]);
        }
    }
    lw_lanes_deinit(&scene->lanes);
}

static void
a_lane_gives_its_messages_in_order_one_at_a_time(void **state)
{
    struct scene scene;
    (void)state;
    set_scene(&scene);
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(lw_lane_take(scene.lane), scene.deliveries[i]);
        assert_int_equal(scene.lane->place, LW_LANE_BUSY);
        assert_true(lw_list_is_empty(&scene.topic.subscription.ready));
        assert_int_equal(lw_lane_release(scene.lane), i < 2);
    }
    assert_int_equal(scene.lane->place, LW_LANE_IDLE);
    strike_scene(&scene);
}

static void
a_lane_keeps_order_when_its_head_comes_back(void **state)
{
    struct scene scene;
    (void)state;
    set_scene(&scene);
    struct lw_delivery *head = lw_lane_take(scene.lane);
    lw_lane_put_back(scene.lane, head);
    assert_ptr_equal(lw_lane_take(scene.lane), head);
    strike_scene(&scene);
}

static void
a_head_that_blocks_a_commit_is_urgent(void **state)
{
    struct scene scene;
    (void)state;
    set_scene(&scene);
    assert_int_equal(scene.lane->place, LW_LANE_URGENT);
    (void)lw_lane_take(scene.lane);
    (void)lw_lane_release(scene.lane); /* its second does not: the first is still held */
    assert_int_equal(scene.lane->place, LW_LANE_READY);
    scene.deliveries[0]->lane = NULL;
    stage_free(scene.deliveries[0]);
    scene.deliveries[0] = NULL;
    assert_int_equal(scene.lane->place, LW_LANE_URGENT);
    assert_false(lw_list_is_empty(&scene.topic.subscription.urgent));
    strike_scene(&scene);
}

static void
nothing_is_urgent_without_a_ledger(void **state)
{
    struct stage_topic topic;
    struct lw_lanes lanes = make_lanes();
    (void)state;
    stage_topic_init(&topic, 0, 0, LW_ORDERING_KEY, LW_KEYLESS_SHARED, false);
    struct lw_delivery *delivery = stage_make(&topic, "k");
    delivery->lane = find(&lanes, &topic, lw_bytes_of("k"));
    lw_lane_push(delivery->lane, delivery);
    assert_int_equal(delivery->lane->place, LW_LANE_READY);
    stage_free(delivery);
    lw_lanes_deinit(&lanes);
}

static void
removing_a_waiting_one_keeps_the_others_in_order(void **state)
{
    struct scene scene;
    (void)state;
    set_scene(&scene);
    lw_lane_remove(scene.lane, scene.deliveries[1]);
    assert_ptr_equal(lw_lane_take(scene.lane), scene.deliveries[0]);
    lw_lane_remove(scene.lane, scene.deliveries[2]); /* while it is busy */
    assert_int_equal(scene.lane->place, LW_LANE_BUSY);
    assert_false(lw_lane_release(scene.lane));
    strike_scene(&scene);
}

static void
removing_the_last_one_makes_a_lane_idle_and_free(void **state)
{
    struct scene scene;
    (void)state;
    set_scene(&scene);
    for (int i = 0; i < 3; i++) {
        lw_lane_remove(scene.lane, scene.deliveries[i]);
    }
    assert_int_equal(scene.lane->place, LW_LANE_IDLE);
    assert_true(lw_list_is_empty(&scene.topic.subscription.ready));
    assert_true(lw_list_is_empty(&scene.topic.subscription.urgent));
    lw_lanes_trim(&scene.lanes);
    assert_int_equal(scene.lanes.count, 0);
    strike_scene(&scene);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_key_is_the_same_lane_and_another_place_another),
        cmocka_unit_test(null_empty_and_zero_bytes_are_three_keys),
        cmocka_unit_test(keys_that_differ_in_any_one_byte_differ),
        cmocka_unit_test(different_keys_of_one_hash_are_different_lanes),
        cmocka_unit_test(freeing_one_of_two_colliding_keys_leaves_the_other_found),
        cmocka_unit_test(a_million_operations_find_exactly_their_keys),
        cmocka_unit_test(without_memory_nothing_is_inserted_and_later_it_works),
        cmocka_unit_test(a_failed_init_leaves_nothing_behind),
        cmocka_unit_test(a_lane_gives_its_messages_in_order_one_at_a_time),
        cmocka_unit_test(a_lane_keeps_order_when_its_head_comes_back),
        cmocka_unit_test(a_head_that_blocks_a_commit_is_urgent),
        cmocka_unit_test(nothing_is_urgent_without_a_ledger),
        cmocka_unit_test(removing_a_waiting_one_keeps_the_others_in_order),
        cmocka_unit_test(removing_the_last_one_makes_a_lane_idle_and_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
