/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing is allocated on the path of a message: publications come from a ring of fixed size, which
 * is also what may be on its way at a time.
 */
#include "bench/support/spool_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVENTS = 256, QUEUE = 1000, TURN_MS = 100 };
#define QUEUE_BYTES (UINT64_C(64) << 20)

const char lw_spool_bench_payload[] =
    "{\"sequence\": 1234567, \"key\": \"key-12\", \"payload\": \"0123456789000\"}";

void
lw_spool_bench_fail(const char *what)
{
    fprintf(stderr, "spool_path: %s\n", what);
    exit(70);
}

void
lw_spool_bench_remove(const char *path)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-owner", "-socket" };
    char name[400];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
}

static void
start(struct lw_spool_bench *bench, const struct lw_spool_bench_options *options)
{
    char url[400];
    struct lw_error error = { 0 };
    const struct lw_property properties[] = { { "synchronous", options->synchronous },
                                              { "keep", options->keep } };
    const struct lw_broker_ops *ops = lw_spool_broker_ops();
    const struct lw_source_options source = {
        .topic = LW_SPOOL_BENCH_TOPIC,
        .subscription = LW_SPOOL_BENCH_GROUP,
        .receiver_queue_size = options->queue_size > 0 ? options->queue_size : QUEUE,
        .queue_bytes_max = QUEUE_BYTES,
    };
    (void)snprintf(url, sizeof url, "spool:%s", bench->path);
    if (ops->create(bench->host, "bench", url, properties, options->keep ? 2 : 1,
                    &bench->broker, &error) != LW_STATUS_OK ||
        (options->is_reading &&
         ops->subscribe(bench->broker, &source, &bench->source, &error) != LW_STATUS_OK) ||
        ops->start(bench->broker, &error) != LW_STATUS_OK) {
        lw_spool_bench_fail(error.message);
    }
}

struct lw_spool_bench *
lw_spool_bench_open(const struct lw_spool_bench_options *options)
{
    struct lw_spool_bench *bench = calloc(1, sizeof *bench);
    if (!bench || lw_loop_create(1, &bench->loop) != LW_STATUS_OK) {
        lw_spool_bench_fail("no memory");
    }
    (void)snprintf(bench->path, sizeof bench->path, "%s", options->path);
    bench->host = lw_loop_host(bench->loop);
    for (size_t i = 0; i < LW_SPOOL_BENCH_OPEN; i++) {
        bench->spare[bench->spare_count++] = &bench->publications[i];
    }
    start(bench, options);
    return bench;
}

static void
take_receipt(struct lw_spool_bench *bench, const struct lw_event *event)
{
    if (event->status != LW_STATUS_OK) {
        lw_spool_bench_fail("a publication was refused");
    }
    bench->spare[bench->spare_count++] = event->publication;
    bench->receipts++;
}

static void
take_events(struct lw_spool_bench *bench)
{
    struct lw_event events[EVENTS];
    size_t count;
    do {
        count = bench->broker->ops->events(bench->broker, events, EVENTS);
        for (size_t i = 0; i < count; i++) {
            if (events[i].kind == LW_EVENT_PUBLISHED) {
                take_receipt(bench, &events[i]);
            } else if (events[i].kind == LW_EVENT_REVOKING) {
                bench->broker->ops->revoke_done(bench->broker, events[i].generation);
            }
            bench->is_closed = bench->is_closed || events[i].kind == LW_EVENT_CLOSED;
        }
    } while (count == EVENTS);
}

void
lw_spool_bench_turn(struct lw_spool_bench *bench)
{
    lw_loop_turn_until(bench->loop, bench->host->now + TURN_MS * LW_MS);
    take_events(bench);
}

uint64_t
lw_spool_bench_close(struct lw_spool_bench *bench)
{
    bench->broker->ops->stop_sources(bench->broker);
    take_events(bench);
    bench->broker->ops->close(bench->broker);
    while (!bench->is_closed) {
        lw_spool_bench_turn(bench);
    }
    uint64_t commits = lw_spool_broker_commits(bench->broker);
    bench->broker->ops->destroy(bench->broker);
    lw_loop_destroy(bench->loop);
    free(bench);
    return commits;
}

/* -- Publishing ---------------------------------------------------------------------------------- */

static struct lw_bytes
key_of(struct lw_spool_bench *bench, const struct lw_publication *publication)
{
    char *key = bench->keys[publication - bench->publications];
    if (!bench->has_own_keys) {
        return (struct lw_bytes){ "key-12", 6 };
    }
    int size = snprintf(key, sizeof bench->keys[0], "k%011llu",
                        (unsigned long long)bench->sent);
    return (struct lw_bytes){ key, (size_t)size };
}

bool
lw_spool_bench_publish(struct lw_spool_bench *bench)
{
    if (bench->spare_count == 0) {
        return false;
    }
    struct lw_publication *publication = bench->spare[bench->spare_count - 1];
    *publication = (struct lw_publication){ .kind = LW_PUBLISH_OUTPUT,
                                            .topic = LW_SPOOL_BENCH_TOPIC,
                                            .partition = -1,
                                            .key = key_of(bench, publication),
                                            .value = lw_bytes_of(lw_spool_bench_payload),
                                            .event_time_ms = -1 };
    if (bench->broker->ops->publish(bench->broker, &publication, 1) == 0) {
        return false;
    }
    bench->spare_count--;
    bench->sent++;
    return true;
}

void
lw_spool_bench_publish_all(struct lw_spool_bench *bench, uint64_t count)
{
    uint64_t end = bench->sent + count;
    while (bench->receipts < end) {
        while (bench->sent < end && lw_spool_bench_publish(bench)) {
            continue;
        }
        lw_spool_bench_turn(bench);
    }
}

/* -- Receiving ----------------------------------------------------------------------------------- */

void
lw_spool_bench_demand(struct lw_spool_bench *bench)
{
    bench->broker->ops->demand(bench->source, QUEUE, QUEUE_BYTES);
}

size_t
lw_spool_bench_receive(struct lw_spool_bench *bench, size_t most, bool is_acked)
{
    struct lw_message *out[LW_SPOOL_BENCH_BATCH];
    struct lw_settle_item items[LW_SPOOL_BENCH_BATCH];
    bool has_more = true;
    size_t n = most < LW_SPOOL_BENCH_BATCH ? most : LW_SPOOL_BENCH_BATCH;
    for (size_t i = 0; i < n; i++) {
        out[i] = &bench->messages[i];
        items[i] = (struct lw_settle_item){ out[i], true, -1 };
    }
    size_t count = bench->broker->ops->receive(bench->source, out, n, QUEUE_BYTES, &has_more);
    if (is_acked) {
        bench->broker->ops->settle(bench->source, items, count);
    }
    bench->broker->ops->release(bench->broker, out, count);
    return count;
}

void
lw_spool_bench_receive_all(struct lw_spool_bench *bench, uint64_t count, bool is_acked)
{
    uint64_t received = 0;
    lw_spool_bench_demand(bench);
    while (received < count) {
        size_t got = lw_spool_bench_receive(bench, count - received, is_acked);
        received += got;
        if (got == 0) {
            lw_spool_bench_turn(bench);
        }
    }
}
