/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handler reads of a delivery, against a broker that counts what it was asked. What needs
 * a clock or the origin headers is tested with the dispatcher.
 */
#include "tests/support/test.h"

#include <string.h>

#include "core/delivery.h"
#include "core/partition.h"
#include "core/subscription.h"

struct scene {
    struct lw_broker broker;
    struct lw_subscription subscription;
    struct lw_partition partition;
    struct lw_delivery delivery;
    struct lw_header headers[3];
    uint32_t asked;
};

static const struct lw_header *
headers(struct lw_broker *broker, const struct lw_message *message, size_t *ret_count)
{
    struct scene *scene = LW_CONTAINER(broker, struct scene, broker);
    assert_ptr_equal(message, &scene->delivery.message);
    scene->asked++;
    *ret_count = 3;
    return scene->headers;
}

static void
times(struct lw_broker *broker, const struct lw_message *message,
      struct lw_message_times *ret_times)
{
    (void)broker;
    (void)message;
    *ret_times = (struct lw_message_times){ 111, 222 };
}

static const struct lw_broker_ops ops = { .headers = headers, .times = times };

static void
set_scene(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    scene->broker.ops = &ops;
    lw_subscription_init(&scene->subscription, 0);
    scene->subscription.broker = &scene->broker;
    scene->subscription.name = "group";
    scene->subscription.pipeline = "shop";
    scene->partition.topic = "orders.retry.1s";
    scene->partition.number = 7;
    scene->headers[0] = (struct lw_header){ lw_bytes_of("h"), lw_bytes_of("first") };
    scene->headers[1] = (struct lw_header){ lw_bytes_of("h"), lw_bytes_of("last") };
    scene->headers[2] = (struct lw_header){ lw_bytes_of("hh"), { NULL, 0 } };
    scene->delivery.subscription = &scene->subscription;
    scene->delivery.partition = &scene->partition;
    scene->delivery.message.key = lw_bytes_of("key");
    scene->delivery.message.value = lw_bytes_of("value");
    scene->delivery.message.position = 42;
    scene->delivery.message.redeliveries = 3;
    scene->delivery.attempt = 2;
}

static void
every_field_is_that_of_the_message(void **state)
{
    struct scene scene;
    (void)state;
    set_scene(&scene);
    const struct lw_delivery *delivery = &scene.delivery;
    assert_true(lw_text_is_equal(lw_delivery_key(delivery), "key"));
    assert_true(lw_text_is_equal(lw_delivery_value(delivery), "value"));
    assert_string_equal(lw_delivery_topic(delivery), "orders.retry.1s"); /* the tier's own */
    assert_string_equal(lw_delivery_subscription(delivery), "group");
    assert_string_equal(lw_delivery_pipeline(delivery), "shop");
    assert_int_equal(lw_delivery_partition(delivery), 7);
    assert_int_equal(lw_delivery_offset(delivery), 42);
    assert_int_equal(lw_delivery_attempt(delivery), 2);
    assert_int_equal(lw_delivery_redeliveries(delivery), 3);
    assert_int_equal(lw_delivery_timestamp_ms(delivery), 111);
    assert_int_equal(lw_delivery_event_time_ms(delivery), 222);
}

static void
the_key_orders_unless_there_is_an_ordering_key(void **state)
{
    struct scene scene;
    (void)state;
    set_scene(&scene);
    assert_true(lw_text_is_equal(lw_delivery_ordering_key(&scene.delivery), "key"));
    scene.delivery.message.ordering_key = (struct lw_bytes){ "", 0 }; /* empty is not none */
    assert_non_null(lw_delivery_ordering_key(&scene.delivery).data);
    assert_int_equal(lw_delivery_ordering_key(&scene.delivery).size, 0);
}

static void
null_keys_and_values_stay_null(void **state)
{
    struct scene scene;
    (void)state;
    set_scene(&scene);
    scene.delivery.message.key = (struct lw_bytes){ NULL, 0 };
    scene.delivery.message.value = (struct lw_bytes){ NULL, 0 };
    assert_null(lw_delivery_key(&scene.delivery).data);
    assert_null(lw_delivery_value(&scene.delivery).data);
    assert_null(lw_delivery_ordering_key(&scene.delivery).data);
}

static void
of_two_headers_the_last_counts_and_a_null_value_is_null(void **state)
{
    struct scene scene;
    (void)state;
    set_scene(&scene);
    assert_true(lw_text_is_equal(lw_delivery_header(&scene.delivery, "h"), "last"));
    assert_null(lw_delivery_header(&scene.delivery, "hh").data);
    assert_null(lw_delivery_header(&scene.delivery, "H").data);
    assert_null(lw_delivery_header(&scene.delivery, "").data);
}

static void
headers_are_asked_for_only_when_somebody_asks(void **state)
{
    struct scene scene;
    size_t count = 0;
    (void)state;
    set_scene(&scene);
    (void)lw_delivery_value(&scene.delivery);
    assert_int_equal(scene.asked, 0);
    assert_ptr_equal(lw_delivery_headers(&scene.delivery, &count), scene.headers);
    assert_int_equal(count, 3);
    assert_int_equal(scene.asked, 1);
}

static void
a_cancelled_delivery_says_so(void **state)
{
    struct scene scene;
    (void)state;
    set_scene(&scene);
    assert_false(lw_delivery_is_cancelled(&scene.delivery));
    atomic_store(&scene.delivery.is_cancelled, true);
    assert_true(lw_delivery_is_cancelled(&scene.delivery));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_that_of_the_message),
        cmocka_unit_test(the_key_orders_unless_there_is_an_ordering_key),
        cmocka_unit_test(null_keys_and_values_stay_null),
        cmocka_unit_test(of_two_headers_the_last_counts_and_a_null_value_is_null),
        cmocka_unit_test(headers_are_asked_for_only_when_somebody_asks),
        cmocka_unit_test(a_cancelled_delivery_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
