/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the program itself on engine processes, through the public interface: for one message
 * and for several, and what is refused. main calls lw_processes_init first, as a program does.
 */
#include "tests/service/service_fixture.h"
#include "tests/support/test.h"

#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define HAS_OTHER_THREADS 1 /* the sanitizer's own */
#else
#define HAS_OTHER_THREADS 0
#endif

enum { MESSAGES = 60, SIZE = 20, TURNS_MAX = 60000 };

static pid_t program;

static enum lw_verdict
take_one(struct lw_delivery *delivery, void *user)
{
    (void)user;
    (void)lw_delivery_reply(delivery, lw_bytes_of("one"));
    return getpid() == program ? LW_DEAD : LW_OK;
}

/* Each message's reply says with how many it came. */
static size_t
take_several(struct lw_delivery *const deliveries[], size_t count, enum lw_verdict verdicts[],
             void *user)
{
    (void)user;
    for (size_t i = 0; i < count; i++) {
        (void)lw_delivery_reply(deliveries[i], lw_bytes_of(count == SIZE ? "full" : "less"));
        verdicts[i] = getpid() == program ? LW_DEAD : LW_OK;
    }
    return count;
}

static void
run_dry(struct service_fixture *fixture)
{
    service_publish(fixture, "topic", NULL, MESSAGES);
    for (int i = 0; i < TURNS_MAX && service_backlog(fixture, "topic") > 0; i++) {
        service_turn(fixture->dispatcher);
    }
    assert_int_equal(service_backlog(fixture, "topic"), 0);
}

static struct lw_subscription_options *
on_processes(struct service_fixture *fixture)
{
    struct lw_subscription_options *options = &fixture->options;
    options->engine = LW_ENGINE_PROCESSES;
    options->handler = NULL;
    options->handler_async = NULL;
    options->workers = 1;
    options->ordering = LW_ORDERING_NONE;
    options->reply.topic = "replies";
    return options;
}

struct search {
    const char *value;
    size_t count;
};

static void
compare(const struct lw_memory_view *view, void *user)
{
    struct search *search = user;
    search->count += view->value.size == strlen(search->value) &&
                     memcmp(view->value.data, search->value, view->value.size) == 0;
}

static size_t
count_replies(const struct service_fixture *fixture, const char *value)
{
    struct search search = { .value = value };
    (void)lw_memory_hub_each(fixture->hub, "replies", compare, &search);
    return search.count;
}

static void
a_function_of_the_program_takes_one_message_at_a_time(void **state)
{
    struct service_fixture *fixture = *state;
    struct lw_subscription_options *options = on_processes(fixture);
    options->handler = take_one;
    service_subscribe(fixture);
    run_dry(fixture);
    assert_int_equal(count_replies(fixture, "one"), MESSAGES);
}

static void
a_function_of_the_program_takes_several_messages_at_once(void **state)
{
    struct service_fixture *fixture = *state;
    struct lw_subscription_options *options = on_processes(fixture);
    options->handler_batch = take_several;
    options->batch.size = SIZE;
    options->batch.wait_ms = 3600000;
    service_subscribe(fixture);
    run_dry(fixture);
    assert_int_equal(count_replies(fixture, "full"), MESSAGES);
}

static void
a_function_for_one_message_is_refused_a_batch(void **state)
{
    struct service_fixture *fixture = *state;
    struct lw_subscription_options *options = on_processes(fixture);
    options->handler = take_one;
    options->batch.size = SIZE;
    assert_int_equal(lw_dispatcher_subscribe(fixture->dispatcher, options, &fixture->error),
                     LW_STATUS_INVALID);
    assert_string_equal(fixture->error.code, "E0320");
}

int
main(void)
{
    struct lw_error error = { 0 };
    program = getpid();
    if (lw_processes_init(&error) != LW_STATUS_OK) {
        print_message("left out: %s\n", error.message);
        return HAS_OTHER_THREADS ? 0 : 1;
    }
#define CASE(name) cmocka_unit_test_setup_teardown(name, service_setup, service_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_function_of_the_program_takes_one_message_at_a_time),
        CASE(a_function_of_the_program_takes_several_messages_at_once),
        CASE(a_function_for_one_message_is_refused_a_batch),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
