/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture. The loop is real, since the worker is a thread; nothing is asserted about how long
 * something takes, only that it comes within the patience.
 */
#include "tests/support/test.h"

#include "tests/brokers/spool/fixture.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "brokers/spool/broker.h"

enum { PUMP_MS = 5 };

void
spool_make(struct spool *spool)
{
    snprintf(spool->folder, sizeof spool->folder, "/tmp/laneway-spool-XXXXXX");
    assert_non_null(mkdtemp(spool->folder));
    snprintf(spool->path, sizeof spool->path, "%s/orders.db", spool->folder);
    snprintf(spool->url, sizeof spool->url, "spool:%s", spool->path);
    assert_int_equal(lw_loop_create(1, &spool->loop), LW_STATUS_OK);
    spool->host = lw_loop_host(spool->loop);
}

void
spool_remove(struct spool *spool)
{
    DIR *folder = opendir(spool->folder);
    char path[512];
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        snprintf(path, sizeof path, "%s/%s", spool->folder, entry->d_name);
        (void)unlink(path);
    }
    closedir(folder);
    rmdir(spool->folder);
    lw_loop_destroy(spool->loop);
}

int
spool_setup(void **state)
{
    struct spool *spool = calloc(1, sizeof *spool);
    assert_non_null(spool);
    spool_make(spool);
    *state = spool;
    return 0;
}

int
spool_teardown(void **state)
{
    spool_remove(*state);
    free(*state);
    return 0;
}

void
spool_pump(struct spool *spool, uint64_t ms)
{
    uint64_t deadline = spool->host->ops->refresh(spool->host) + ms * LW_MS;
    while (spool->host->now < deadline) {
        lw_loop_turn_until(spool->loop, deadline);
    }
}

struct client *
spool_open_with(struct spool *spool, const char *topic, const struct lw_property *properties,
                size_t count)
{
    struct client *client = client_create_with(spool->host, lw_spool_broker_ops(), "spool",
                                               spool->url, properties, count);
    if (topic) {
        client_subscribe(client, topic, "group");
    }
    client_start(client);
    client_events(client);
    assert_true(client->is_up);
    return client;
}

struct client *
spool_open(struct spool *spool, const char *topic)
{
    return spool_open_with(spool, topic, NULL, 0);
}

void
spool_close(struct spool *spool, struct client *client)
{
    client->ops->stop_sources(client->broker);
    client_events(client);
    client_answer(client);
    client_release_all(client);
    client->ops->close(client->broker);
    for (uint64_t waited = 0; !client->is_closed && waited < SPOOL_PATIENCE_MS;
         waited += PUMP_MS) {
        spool_pump(spool, PUMP_MS);
        client_events(client);
    }
    assert_true(client->is_closed);
    for (size_t i = 0; i < client->sent_count; i++) {
        assert_int_equal(client->sent[i].receipts, 1);
    }
    client_destroy(client);
}

void
spool_receive(struct spool *spool, struct client *client, size_t count)
{
    for (uint64_t waited = 0; waited < SPOOL_PATIENCE_MS; waited += PUMP_MS) {
        client_events(client);
        for (size_t i = 0; i < client->source_count; i++) {
            client_receive(client, client->sources[i], count - client->message_count);
        }
        if (client->message_count >= count) {
            return;
        }
        spool_pump(spool, PUMP_MS);
    }
    fail_msg("%zu of %zu messages came", client->message_count, count);
}

void
spool_await_receipts(struct spool *spool, struct client *client, size_t count)
{
    for (uint64_t waited = 0; waited < SPOOL_PATIENCE_MS; waited += PUMP_MS) {
        size_t receipts = 0;
        client_events(client);
        for (size_t i = 0; i < client->sent_count; i++) {
            receipts += client->sent[i].receipts > 0;
        }
        if (receipts >= count) {
            return;
        }
        spool_pump(spool, PUMP_MS);
    }
    fail_msg("receipts did not come");
}

void
spool_publish(struct spool *spool, struct client *client, const char *topic, const char *key,
              int first, int count)
{
    static char numbers[10000][12];
    size_t before = client->sent_count;
    for (int i = first; i < first + count; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%d", i);
        assert_int_not_equal(client_publish(client, topic, key, numbers[i]), SIZE_MAX);
    }
    spool_await_receipts(spool, client, before + (size_t)count);
    for (size_t i = before; i < client->sent_count; i++) {
        assert_int_equal(client->sent[i].status, LW_STATUS_OK);
    }
}

long long
spool_sql(const struct spool *spool, const char *text)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    long long value = -1;
    assert_int_equal(sqlite3_open(spool->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &statement, NULL), SQLITE_OK);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        value = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}
