/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with a file is said in words with a code and help, and nothing that was confirmed is
 * lost by it: a second owner, another program's file, damage, a newer version, missing rights, a
 * full file; and publishing through an owner, also one that goes.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "brokers/spool/broker.h"
#include "brokers/spool/lock.h"
#include "brokers/spool/socket.h"
#include "tests/brokers/spool/fixture.h"

static void
expect_refused(struct spool *spool, const char *code, const char *words)
{
    struct lw_error error = { 0 };
    struct client *client = client_create(spool->host, lw_spool_broker_ops(), "x", spool->url);
    client_subscribe(client, "orders", "group");
    assert_int_not_equal(client->ops->start(client->broker, &error), LW_STATUS_OK);
    assert_string_equal(error.code, code);
    if (!strstr(error.message, words)) {
        fail_msg("\"%s\" is not in \"%s\"", words, error.message);
    }
    assert_true(strlen(error.help) > 0);
    client_destroy(client);
}

/* A file with three messages of topic "orders". */
static void
fill(struct spool *spool)
{
    struct client *client = spool_open(spool, NULL);
    spool_publish(spool, client, "orders", "key", 0, 3);
    spool_close(spool, client);
}

static void
write_over(const struct spool *spool, off_t place, const char *bytes, size_t size)
{
    int fd = open(spool->path, O_WRONLY);
    assert_int_equal(pwrite(fd, bytes, size, place), (ssize_t)size);
    close(fd);
}

static void
a_second_broker_of_one_process_is_told_so(void **state)
{
    struct client *first = spool_open(*state, "orders");
    expect_refused(*state, "E0520", "in use by this process, as another broker");
    spool_publish(*state, first, "orders", "key", 0, 1);
    spool_close(*state, first);
}

static void
another_program_s_file_is_left_alone(void **state)
{
    struct spool *spool = *state;
    spool_sql(spool, "CREATE TABLE mine (a)");
    expect_refused(spool, "E0521", "no spool of Laneway");
    assert_int_equal(spool_sql(spool, "SELECT count(*) FROM sqlite_schema"), 1);
}

static void
a_file_that_is_no_database_is_refused(void **state)
{
    struct spool *spool = *state;
    fill(spool);
    write_over(spool, 0, "This is a letter, not a database at all", 40);
    expect_refused(spool, "E0521", "no spool of Laneway");
}

static void
a_damaged_file_is_refused(void **state)
{
    struct spool *spool = *state;
    char noise[4096];
    memset(noise, 0xA5, sizeof noise);
    fill(spool);
    write_over(spool, 4096, noise, sizeof noise);
    expect_refused(spool, "E0521", "is damaged");
}

static void
a_newer_file_is_refused_and_left_alone(void **state)
{
    struct spool *spool = *state;
    fill(spool);
    spool_sql(spool, "PRAGMA user_version = 99");
    expect_refused(spool, "E0522", "version 99");
    assert_int_equal(spool_sql(spool, "PRAGMA user_version"), 99);
    assert_int_equal(spool_sql(spool, "SELECT count(*) FROM message"), 3);
}

/* As a user without rights, since root may write everything. */
static void
run_as_nobody(struct spool *spool, const char *code, const char *words)
{
    pid_t child = fork();
    if (child == 0) {
        bool is_nobody = setresgid(65534, 65534, 65534) == 0 &&
                         setresuid(65534, 65534, 65534) == 0;
        struct lw_error error = { 0 };
        struct client *client = client_create(spool->host, lw_spool_broker_ops(), "x",
                                              spool->url);
        bool is_refused = client->ops->start(client->broker, &error) != LW_STATUS_OK;
        _exit(is_nobody && is_refused && strcmp(error.code, code) == 0 &&
                      strstr(error.message, words)
                  ? 0
                  : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void
a_file_that_may_not_be_written_is_refused(void **state)
{
    struct spool *spool = *state;
    char owner[200];
    fill(spool);
    if (geteuid() != 0) {
        chmod(spool->path, 0400);
        expect_refused(spool, "E0523", "Permission denied");
        return;
    }
    snprintf(owner, sizeof owner, "%s-owner", spool->path);
    chmod(spool->folder, 0777);
    chmod(owner, 0666);
    chmod(spool->path, 0444);
    run_as_nobody(spool, "E0523", "Permission denied");
    assert_int_equal(spool_sql(spool, "SELECT count(*) FROM message"), 3);
}

static void
a_folder_that_is_not_there_is_named(void **state)
{
    struct spool *spool = *state;
    char url[sizeof spool->url];
    memcpy(url, spool->url, sizeof url);
    snprintf(spool->url, sizeof spool->url, "spool:%s/none/orders.db", spool->folder);
    expect_refused(spool, "E0523", "No such file or directory");
    memcpy(spool->url, url, sizeof url);
}

static bool
has_come(struct client *client, enum lw_status status)
{
    for (size_t i = 0; i < client->sent_count; i++) {
        if (client->sent[i].receipts > 0 && client->sent[i].status == status) {
            return true;
        }
    }
    return false;
}

/* Publishes until the file is full; returns how many were confirmed. */
static size_t
fill_up(struct spool *spool, struct client *client, const char *value)
{
    size_t confirmed = 0;
    while (!has_come(client, LW_STATUS_UNAVAILABLE)) {
        client_publish(client, "orders", "key", value);
        spool_await_receipts(spool, client, client->sent_count);
        assert_true(client->sent_count < CLIENT_SENT_MAX);
    }
    for (size_t i = 0; i < client->sent_count; i++) {
        confirmed += client->sent[i].status == LW_STATUS_OK;
    }
    return confirmed;
}

static void
a_full_file_refuses_what_is_new_and_keeps_what_is_there(void **state)
{
    struct spool *spool = *state;
    const struct lw_property small = { "file_bytes_max", "256KiB" };
    static char value[4001];
    memset(value, 'v', 4000);
    struct client *client = spool_open_with(spool, "orders", &small, 1);
    size_t confirmed = fill_up(spool, client, value);
    assert_true(confirmed > 20);
    assert_false(client->is_up);
    assert_string_equal(client->last_error.code, "E0524");
    spool_receive(spool, client, confirmed);
    for (size_t i = 0; i < confirmed; i++) {
        client_ack(client, i);
    }
    while (!client->is_up || client->sent[client->sent_count - 1].status != LW_STATUS_OK) {
        spool_pump(spool, 20);
        client_publish(client, "orders", "key", "again"); /* settling made room */
        spool_await_receipts(spool, client, client->sent_count);
    }
    spool_receive(spool, client, confirmed + 1);
    spool_close(spool, client);
}

/* Refused together, they would be tried together again, for ever. */
static void
of_what_does_not_fit_as_a_whole_as_much_is_taken_as_fits(void **state)
{
    enum { COUNT = 600 };
    struct spool *spool = *state;
    const struct lw_property small = { "file_bytes_max", "256KiB" };
    static char value[4001];
    size_t confirmed = 0;
    memset(value, 'v', 4000);
    struct client *client = spool_open_with(spool, "orders", &small, 1);
    for (int i = 0; i < COUNT; i++) {
        client_publish(client, "orders", "key", value);
    }
    spool_await_receipts(spool, client, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(client->sent[i].status == LW_STATUS_OK ||
                    client->sent[i].status == LW_STATUS_UNAVAILABLE);
        confirmed += client->sent[i].status == LW_STATUS_OK;
    }
    assert_in_range(confirmed, 20, 65); /* of 4,000 bytes, in 256 KiB */
    assert_false(client->is_up);
    assert_string_equal(client->last_error.code, "E0524");
    spool_receive(spool, client, confirmed);
    spool_close(spool, client);
    assert_int_equal(spool_sql(spool, "SELECT count(*) FROM message"), (long long)confirmed);
}

static void
publish_until_confirmed(struct spool *spool, struct client *client, const char *value)
{
    for (int i = 0; i < 1000; i++) {
        size_t index = client_publish(client, "orders", "key", value);
        spool_await_receipts(spool, client, client->sent_count);
        if (index != SIZE_MAX && client->sent[index].status == LW_STATUS_OK) {
            return;
        }
        spool_pump(spool, 10);
    }
    fail_msg("it was not taken again");
}

static void
receive_and_acknowledge(struct spool *spool, struct client *client, size_t count)
{
    spool_receive(spool, client, count);
    for (size_t i = 0; i < count; i++) {
        client_ack(client, i);
    }
}

/* They must not put off the deleting of what was settled. */
static void
a_full_file_gets_room_though_publishers_never_rest(void **state)
{
    struct spool *spool = *state;
    const struct lw_property small = { "file_bytes_max", "256KiB" };
    static char value[4001];
    memset(value, 'v', 4000);
    struct client *client = spool_open_with(spool, "orders", &small, 1);
    receive_and_acknowledge(spool, client, fill_up(spool, client, value));
    publish_until_confirmed(spool, client, value);
    spool_close(spool, client);
}

/* No file can grow, SQLite's log neither, which must not keep what is settled from being written. */
static void
a_full_disk_gets_room_by_what_is_settled(void **state)
{
    struct spool *spool = *state;
    static char value[4001];
    struct rlimit limit;
    memset(value, 'v', 4000);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct rlimit small = { 1 << 20, limit.rlim_max };
    struct client *client = spool_open(spool, "orders");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    receive_and_acknowledge(spool, client, fill_up(spool, client, value));
    publish_until_confirmed(spool, client, value);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    spool_close(spool, client);
}

/* Each needs a row of its own before what was acknowledged can be written. */
static void
a_full_file_with_many_delayed_messages_gets_room(void **state)
{
    enum { AHEAD = 100, DELAYED = 1500 };
    struct spool *spool = *state;
    const struct lw_property small = { "file_bytes_max", "1MiB" };
    const struct lw_publication late = { .kind = LW_PUBLISH_OUTPUT,
                                         .topic = "orders",
                                         .partition = -1,
                                         .value = lw_bytes_of("late"),
                                         .event_time_ms = -1,
                                         .delay_ms = 3600000 };
    static char value[4001];
    memset(value, 'v', 4000);
    struct client *client = spool_open_with(spool, NULL, &small, 1);
    for (int i = 0; i < AHEAD; i++) {
        client_publish(client, "orders", "key", value);
    }
    for (int i = 0; i < DELAYED; i++) {
        client_offer(client, &late);
    }
    spool_await_receipts(spool, client, AHEAD + DELAYED);
    size_t confirmed = fill_up(spool, client, value) - DELAYED;
    spool_close(spool, client);
    client = spool_open_with(spool, "orders", &small, 1);
    receive_and_acknowledge(spool, client, confirmed);
    publish_until_confirmed(spool, client, value);
    spool_close(spool, client);
}

/* A process that was killed left a file that is full, and rows for it are to be made. */
static void
a_full_file_can_be_opened_after_a_crash(void **state)
{
    enum { BUNCH = 50 };
    struct spool *spool = *state;
    const struct lw_property small = { "file_bytes_max", "256KiB" };
    char value[61];
    char crash[64];
    size_t confirmed = 0;
    memset(value, 'v', 60);
    value[60] = '\0';
    struct client *client = spool_open_with(spool, "orders", &small, 1);
    while (!has_come(client, LW_STATUS_UNAVAILABLE)) {
        for (int i = 0; i < BUNCH; i++) {
            client_publish(client, "orders", "key", value);
        }
        spool_await_receipts(spool, client, client->sent_count);
    }
    for (size_t i = 0; i < client->sent_count; i++) {
        confirmed += client->sent[i].status == LW_STATUS_OK;
    }
    spool_close(spool, client);
    snprintf(crash, sizeof crash, "UPDATE position SET given = %zu", confirmed);
    spool_sql(spool, crash);
    client = spool_open_with(spool, "orders", &small, 1);
    receive_and_acknowledge(spool, client, confirmed);
    assert_int_equal(client->messages[confirmed - 1].redeliveries, 1);
    publish_until_confirmed(spool, client, value);
    spool_close(spool, client);
}

static void
publishing_without_the_file_goes_through_its_owner(void **state)
{
    struct spool *spool = *state;
    struct client *owner = spool_open(spool, "orders");
    struct client *guest = spool_open(spool, NULL);
    spool_publish(spool, guest, "orders", "key", 0, 100);
    client_publish(guest, "no such/name", "key", "value");
    spool_await_receipts(spool, guest, 101);
    assert_int_equal(guest->sent[100].status, LW_STATUS_INVALID);
    spool_receive(spool, owner, 100);
    assert_int_equal(owner->messages[99].position, 99);
    spool_close(spool, guest);
    spool_close(spool, owner);
}

static void
a_guest_goes_on_without_its_owner_and_with_the_next(void **state)
{
    struct spool *spool = *state;
    struct client *owner = spool_open(spool, "orders");
    struct client *guest = spool_open(spool, NULL);
    spool_publish(spool, guest, "orders", "key", 0, 1);
    spool_close(spool, owner);
    spool_publish(spool, guest, "orders", "key", 1, 2);
    owner = spool_open(spool, "orders");
    spool_publish(spool, guest, "orders", "key", 3, 1);
    spool_receive(spool, owner, 4);
    assert_int_equal(owner->messages[3].position, 3);
    spool_close(spool, guest);
    spool_close(spool, owner);
}

/* As long as somebody has the file who serves nobody. */
static void
a_guest_without_an_owner_is_refused_until_there_is_one(void **state)
{
    struct spool *spool = *state;
    struct lw_spool_lock lock;
    struct lw_error error = { 0 };
    struct client *owner = spool_open(spool, "orders");
    struct client *guest = spool_open(spool, NULL);
    spool_close(spool, owner);
    assert_int_equal(lw_spool_lock_take(&lock, spool->path, NULL, &error), LW_STATUS_OK);
    client_publish(guest, "orders", "key", "value");
    spool_await_receipts(spool, guest, 1);
    assert_int_equal(guest->sent[0].status, LW_STATUS_UNAVAILABLE);
    assert_false(guest->is_up);
    assert_string_equal(guest->last_error.code, "E0520");
    lw_spool_lock_release(&lock);
    owner = spool_open(spool, "orders");
    publish_until_confirmed(spool, guest, "value");
    assert_true(guest->is_up);
    spool_receive(spool, owner, 1);
    spool_close(spool, guest);
    spool_close(spool, owner);
}

/* Somebody has the file and does not answer, as a process that was stopped. */
static void
a_guest_of_an_owner_that_does_not_answer_can_be_closed(void **state)
{
    struct spool *spool = *state;
    struct lw_spool_lock lock;
    struct lw_error error = { 0 };
    assert_int_equal(lw_spool_lock_take(&lock, spool->path, NULL, &error), LW_STATUS_OK);
    int fd = lw_spool_socket_listen(spool->path);
    assert_true(fd >= 0);
    struct client *guest = spool_open(spool, NULL);
    client_publish(guest, "orders", "key", "value");
    spool_pump(spool, 50);
    spool_close(spool, guest);
    close(fd);
    lw_spool_lock_release(&lock);
}

/* Has the file for a moment without serving anybody, as one that begins or ends. */
static pid_t
own_for_a_moment(const struct spool *spool)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct lw_spool_lock lock;
        if (lw_spool_lock_take(&lock, spool->path, NULL, NULL) != LW_STATUS_OK ||
            write(ends[1], "!", 1) != 1) {
            _exit(1);
        }
        poll(NULL, 0, 100);
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return child;
}

static void
a_start_waits_for_somebody_who_is_just_going(void **state)
{
    struct spool *spool = *state;
    for (int i = 0; i < 2; i++) {
        pid_t child = own_for_a_moment(spool);
        struct client *client = spool_open(spool, i == 0 ? NULL : "orders");
        spool_publish(spool, client, "orders", "key", i, 1);
        spool_close(spool, client);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
}

static void
a_file_that_another_program_reads_is_said_so(void **state)
{
    struct spool *spool = *state;
    sqlite3 *db = NULL;
    fill(spool);
    assert_int_equal(sqlite3_open(spool->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT * FROM message", NULL, NULL, NULL),
                     SQLITE_OK);
    expect_refused(spool, "E0520", "open in another program");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    struct client *client = spool_open(spool, "orders");
    spool_receive(spool, client, 3);
    spool_close(spool, client);
}

/* SQLite has names that mean no file. */
static void
any_name_is_a_file(void **state)
{
    static const char *const names[] = { ":memory:", "file:a?mode=memory", "a b%20c'\"#\n.db" };
    struct spool *spool = *state;
    int before = open(".", O_RDONLY | O_DIRECTORY);
    assert_int_equal(chdir(spool->folder), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(spool->url, sizeof spool->url, "spool:%s", names[i]);
        fill(spool);
        assert_int_equal(access(names[i], F_OK), 0);
        struct client *client = spool_open(spool, "orders");
        spool_receive(spool, client, 3);
        spool_close(spool, client);
    }
    assert_int_equal(fchdir(before), 0);
    close(before);
}

int
main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, spool_setup, spool_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_second_broker_of_one_process_is_told_so),
        TEST(another_program_s_file_is_left_alone),
        TEST(a_file_that_is_no_database_is_refused),
        TEST(a_damaged_file_is_refused),
        TEST(a_newer_file_is_refused_and_left_alone),
        TEST(a_file_that_may_not_be_written_is_refused),
        TEST(a_folder_that_is_not_there_is_named),
        TEST(a_full_file_refuses_what_is_new_and_keeps_what_is_there),
        TEST(of_what_does_not_fit_as_a_whole_as_much_is_taken_as_fits),
        TEST(a_full_file_gets_room_though_publishers_never_rest),
        TEST(a_full_disk_gets_room_by_what_is_settled),
        TEST(a_full_file_with_many_delayed_messages_gets_room),
        TEST(a_full_file_can_be_opened_after_a_crash),
        TEST(publishing_without_the_file_goes_through_its_owner),
        TEST(a_guest_goes_on_without_its_owner_and_with_the_next),
        TEST(a_guest_without_an_owner_is_refused_until_there_is_one),
        TEST(a_guest_of_an_owner_that_does_not_answer_can_be_closed),
        TEST(a_start_waits_for_somebody_who_is_just_going),
        TEST(a_file_that_another_program_reads_is_said_so),
        TEST(any_name_is_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
