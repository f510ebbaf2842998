/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history as a file: lines that the oracle reads, in the file as soon as they were recorded,
 * whole across the end of a mapping; when it is closed the file ends behind its last line.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/history_file.h"
#include "tests/support/virtual_host.h"

struct world {
    struct virtual_host clock;
    struct lw_dispatcher dispatcher;
    struct lw_subscription subscription;
    struct lw_partition partition;
    struct lw_delivery delivery;
    struct lw_history_file *file;
    char path[64];
};

static void
setup(struct world *world)
{
    memset(world, 0, sizeof *world);
    virtual_host_init(&world->clock, 1);
    world->dispatcher.host = &world->clock.host;
    world->subscription.priority = 7;
    world->partition = (struct lw_partition){
        .topic = "or\"ders", .number = 3, .generation = 5, .subscription = &world->subscription
    };
    world->delivery.partition = &world->partition;
    world->delivery.message.position = 42;
    world->delivery.message.key = lw_bytes_of("k");
    world->delivery.attempt = 2;
    snprintf(world->path, sizeof world->path, "/tmp/laneway-history-XXXXXX");
    int fd = mkstemp(world->path);
    assert_true(fd >= 0);
    close(fd);
    struct lw_error error;
    assert_int_equal(
        lw_history_file_open(&world->dispatcher, world->path, &world->file, &error),
        LW_STATUS_OK);
}

static void
teardown(struct world *world)
{
    lw_history_file_close(world->file);
    unlink(world->path);
}

static size_t
size_of(const struct world *world)
{
    struct stat info;
    assert_int_equal(stat(world->path, &info), 0);
    return (size_t)info.st_size;
}

static void
first_line(const struct world *world, char *out, size_t size)
{
    FILE *in = fopen(world->path, "r");
    assert_non_null(in);
    assert_non_null(fgets(out, (int)size, in));
    fclose(in);
}

static void
an_event_is_one_line_that_survives_without_closing(void **state)
{
    struct world world;
    char line[512];
    char expected[512];
    (void)state;
    setup(&world);
    lw_history_note(&world.dispatcher, LW_HISTORY_SETTLED, &world.delivery, 1, 0);
    first_line(&world, line, sizeof line);
    snprintf(expected, sizeof expected,
             "{\"t\":%lld,\"kind\":\"settled\",\"topic\":\"or\\\"ders\",\"partition\":3,"
             "\"generation\":5,\"position\":42,\"priority\":7,\"detail\":1,\"action\":0,"
             "\"attempt\":2,\"key_hash\":",
             (long long)world.clock.host.now);
    assert_memory_equal(line, expected, strlen(expected));
    teardown(&world);
}

static void
a_null_key_has_no_hash(void **state)
{
    struct world world;
    char line[512];
    (void)state;
    setup(&world);
    world.delivery.message.key = (struct lw_bytes){ NULL, 0 };
    lw_history_note(&world.dispatcher, LW_HISTORY_RECEIVED, &world.delivery, 0, 0);
    first_line(&world, line, sizeof line);
    assert_non_null(strstr(line, "\"key_hash\":-1}"));
    teardown(&world);
}

static void
closing_cuts_the_file_and_leaves_the_dispatcher(void **state)
{
    struct world world;
    char line[512];
    (void)state;
    setup(&world);
    lw_history_note(&world.dispatcher, LW_HISTORY_STARTED, &world.delivery, 0, 0);
    lw_history_file_close(world.file);
    world.file = NULL;
    assert_null(world.dispatcher.history);
    first_line(&world, line, sizeof line);
    assert_int_equal(size_of(&world), strlen(line));
    teardown(&world);
}

static void
lines_go_on_behind_the_end_of_a_mapping(void **state)
{
    enum { MANY = 200000 }; /* more than one mapping of 16 MiB holds */
    struct world world;
    char line[512];
    (void)state;
    setup(&world);
    for (int i = 0; i < MANY; i++) {
        lw_history_note(&world.dispatcher, LW_HISTORY_STARTED, &world.delivery, 0, 0);
    }
    lw_history_file_close(world.file);
    world.file = NULL;
    first_line(&world, line, sizeof line);
    assert_int_equal(size_of(&world), MANY * strlen(line));
    teardown(&world);
}

static void
a_path_that_cannot_be_written_is_refused(void **state)
{
    struct world world;
    struct lw_history_file *file = NULL;
    struct lw_error error;
    (void)state;
    setup(&world);
    assert_int_equal(
        lw_history_file_open(&world.dispatcher, "/nonexistent/history", &file, &error),
        LW_STATUS_SYSTEM);
    assert_non_null(strstr(error.message, "/nonexistent/history"));
    assert_null(file);
    teardown(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_one_line_that_survives_without_closing),
        cmocka_unit_test(a_null_key_has_no_hash),
        cmocka_unit_test(closing_cuts_the_file_and_leaves_the_dispatcher),
        cmocka_unit_test(lines_go_on_behind_the_end_of_a_mapping),
        cmocka_unit_test(a_path_that_cannot_be_written_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
