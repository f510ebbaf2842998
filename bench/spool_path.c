/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the spool costs on top of SQLite. Durable messages a second with group commit, against a
 * loop that makes the same rows in the same number of transactions on the same thread that waits
 * for them, in interleaved pairs; the time from a publication to its reception, one at a time; the
 * processor time of receiving, with 1,000 and with 1,000,000 messages that wait, in pairs.
 *
 * Files lie in LANEWAY_BENCH_FOLDER, else in the present folder: a disk, not memory.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "bench/support/figures.h"
#include "brokers/spool/broker.h"

enum {
    PAIRS = 9,
    DURABLE = 20000,
    OPEN = 2048,
    LATENCIES = 2000,
    RECEIVED = 1000,
    QUEUED = 1000000,
    BATCH = 256
};
#define TOPIC "bench"

/* 66 bytes, as the peers' benches send. */
static const char payload[] =
    "{\"sequence\": 1234567, \"key\": \"key-12\", \"payload\": \"0123456789000\"}";
static char folder[256];

static void
fail(const char *what)
{
    fprintf(stderr, "spool_path: %s\n", what);
    exit(70);
}

static void
remove_files(const char *path)
{
    static const char *const suffixes[] = { "", "-wal", "-shm", "-owner", "-socket" };
    char name[400];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
}

/* -- A spool ------------------------------------------------------------------------------------- */

struct bench {
    char path[320];
    struct lw_loop *loop;
    struct lw_host *host;
    struct lw_broker *broker;
    struct lw_source *source;
    struct lw_publication publications[OPEN];
    struct lw_publication *spare[OPEN];
    size_t spare_count;
    uint64_t receipts;
    uint64_t received;
    struct lw_message messages[BATCH];
    bool is_closed;
};

static struct bench *
open_bench(const char *name, bool is_reading, const char *synchronous)
{
    struct bench *bench = calloc(1, sizeof *bench);
    struct lw_error error = { 0 };
    char url[400];
    const struct lw_property property = { "synchronous", synchronous };
    const struct lw_broker_ops *ops = lw_spool_broker_ops();
    const struct lw_source_options options = { .topic = TOPIC,
                                               .subscription = "group",
                                               .receiver_queue_size = 1000,
                                               .queue_bytes_max = 64 << 20 };
    if (!bench || lw_loop_create(1, &bench->loop) != LW_STATUS_OK) {
        fail("no memory");
    }
    (void)snprintf(bench->path, sizeof bench->path, "%s/%s", folder, name);
    (void)snprintf(url, sizeof url, "spool:%s", bench->path);
    bench->host = lw_loop_host(bench->loop);
    if (ops->create(bench->host, "bench", url, &property, 1, &bench->broker, &error) !=
            LW_STATUS_OK ||
        (is_reading &&
         ops->subscribe(bench->broker, &options, &bench->source, &error) != LW_STATUS_OK) ||
        ops->start(bench->broker, &error) != LW_STATUS_OK) {
        fail(error.message);
    }
    for (size_t i = 0; i < OPEN; i++) {
        bench->spare[bench->spare_count++] = &bench->publications[i];
    }
    return bench;
}

static void
take_events(struct bench *bench)
{
    struct lw_event events[256];
    size_t count;
    do {
        count = bench->broker->ops->events(bench->broker, events, 256);
        for (size_t i = 0; i < count; i++) {
            if (events[i].kind == LW_EVENT_PUBLISHED) {
                if (events[i].status != LW_STATUS_OK) {
                    fail("a publication was refused");
                }
                bench->spare[bench->spare_count++] = events[i].publication;
                bench->receipts++;
            } else if (events[i].kind == LW_EVENT_REVOKING) {
                bench->broker->ops->revoke_done(bench->broker, events[i].generation);
            }
            bench->is_closed = bench->is_closed || events[i].kind == LW_EVENT_CLOSED;
        }
    } while (count == 256);
}

static void
turn(struct bench *bench)
{
    lw_loop_turn_until(bench->loop, bench->host->now + 100 * LW_MS);
    take_events(bench);
}

/* Returns the number of transactions. */
static uint64_t
close_bench(struct bench *bench)
{
    bench->broker->ops->stop_sources(bench->broker);
    take_events(bench);
    bench->broker->ops->close(bench->broker);
    while (!bench->is_closed) {
        turn(bench);
    }
    uint64_t commits = lw_spool_broker_commits(bench->broker);
    bench->broker->ops->destroy(bench->broker);
    lw_loop_destroy(bench->loop);
    free(bench);
    return commits;
}

static bool
publish_one(struct bench *bench)
{
    if (bench->spare_count == 0) {
        return false;
    }
    struct lw_publication *publication = bench->spare[bench->spare_count - 1];
    *publication = (struct lw_publication){ .kind = LW_PUBLISH_OUTPUT,
                                            .topic = TOPIC,
                                            .partition = -1,
                                            .key = { "key-12", 6 },
                                            .value = { payload, sizeof payload - 1 },
                                            .event_time_ms = -1 };
    if (bench->broker->ops->publish(bench->broker, &publication, 1) == 0) {
        return false;
    }
    bench->spare_count--;
    return true;
}

static void
publish_all(struct bench *bench, uint64_t count)
{
    uint64_t sent = 0;
    while (bench->receipts < count) {
        while (sent < count && publish_one(bench)) {
            sent++;
        }
        turn(bench);
    }
}

/* Receives what is there; each is acknowledged or only released. */
static size_t
receive(struct bench *bench, size_t most, bool is_acked)
{
    struct lw_message *out[BATCH];
    struct lw_settle_item items[BATCH];
    bool has_more = true;
    size_t n = most < BATCH ? most : BATCH;
    for (size_t i = 0; i < n; i++) {
        out[i] = &bench->messages[i];
        items[i] = (struct lw_settle_item){ out[i], true, -1 };
    }
    size_t count = bench->broker->ops->receive(bench->source, out, n, 64 << 20, &has_more);
    if (is_acked) {
        bench->broker->ops->settle(bench->source, items, count);
    }
    bench->broker->ops->release(bench->broker, out, count);
    return count;
}

/* -- Durable messages ---------------------------------------------------------------------------- */

static double
spool_rate(uint64_t *ret_commits)
{
    struct bench *bench = open_bench("durable.db", false, "full");
    char path[320];
    (void)snprintf(path, sizeof path, "%s", bench->path);
    uint64_t began = lw_clock_monotonic_ns();
    publish_all(bench, DURABLE);
    uint64_t took = lw_clock_monotonic_ns() - began;
    *ret_commits = close_bench(bench);
    remove_files(path);
    return DURABLE / ((double)took / 1e9);
}

static void
execute(sqlite3 *db, const char *text)
{
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK) {
        fail(sqlite3_errmsg(db));
    }
}

static void
insert(sqlite3_stmt *statement, int64_t id)
{
    (void)sqlite3_bind_int64(statement, 1, id);
    (void)sqlite3_bind_int64(statement, 2, 1700000000000 + id);
    (void)sqlite3_bind_blob(statement, 3, "key-12", 6, SQLITE_STATIC);
    (void)sqlite3_bind_blob(statement, 4, payload, sizeof payload - 1, SQLITE_STATIC);
    if (sqlite3_step(statement) != SQLITE_DONE) {
        fail("an insert failed");
    }
    (void)sqlite3_reset(statement);
}

/* The same tables, as far as they are needed. */
static sqlite3 *
open_bare(char *path, size_t size, sqlite3_stmt **ret_insert)
{
    sqlite3 *db = NULL;
    (void)snprintf(path, size, "%s/bare.db", folder);
    if (sqlite3_open(path, &db) != SQLITE_OK) {
        fail("no file for the bare loop");
    }
    execute(db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
                "PRAGMA synchronous = FULL; PRAGMA cache_size = -16384;"
                "CREATE TABLE partition (id INTEGER PRIMARY KEY, next INTEGER);"
                "INSERT INTO partition VALUES (1, 0);"
                "CREATE TABLE message (id INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, "
                "event_ms INTEGER, due_ms INTEGER, key BLOB, ordering_key BLOB, headers BLOB, "
                "value BLOB)");
    if (sqlite3_prepare_v2(db,
                           "INSERT INTO message (id, time_ms, key, value) VALUES (?, ?, ?, ?)",
                           -1, ret_insert, NULL) != SQLITE_OK) {
        fail(sqlite3_errmsg(db));
    }
    return db;
}

static void
close_bare(const char *path, sqlite3 *db, sqlite3_stmt *statement)
{
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(db);
    remove_files(path);
}

static void
write_bare(sqlite3 *db, sqlite3_stmt *statement, int64_t first, int64_t end)
{
    execute(db, "BEGIN IMMEDIATE");
    for (int64_t id = first; id < end; id++) {
        insert(statement, id);
    }
    execute(db, "UPDATE partition SET next = next + 1 WHERE id = 1; COMMIT");
}

/* The same rows, and the same row of the partition each time. */
static double
bare_rate(uint64_t commits)
{
    char path[320];
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = open_bare(path, sizeof path, &statement);
    uint64_t began = lw_clock_monotonic_ns();
    for (uint64_t i = 1; i <= commits; i++) {
        write_bare(db, statement, (int64_t)(DURABLE * (i - 1) / commits),
                   (int64_t)(DURABLE * i / commits));
    }
    uint64_t took = lw_clock_monotonic_ns() - began;
    close_bare(path, db, statement);
    return DURABLE / ((double)took / 1e9);
}

static int
compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static void
measure_durable(struct lw_figures *figures)
{
    double ratios[PAIRS];
    double rates[PAIRS];
    uint64_t commits = 0;
    for (int i = 0; i < PAIRS; i++) {
        rates[i] = spool_rate(&commits);
        ratios[i] = rates[i] / bare_rate(commits);
    }
    qsort(ratios, PAIRS, sizeof ratios[0], compare);
    qsort(rates, PAIRS, sizeof rates[0], compare);
    lw_figures_note("spool.durable", rates[PAIRS / 2], "msg/s");
    lw_figures_note("spool.commits_of_the_last_run", (double)commits, "commits");
    lw_figures_note("spool.durable_to_bare_upper_quartile", ratios[PAIRS * 3 / 4], "ratio");
    lw_figures_print(figures, "spool.durable_to_bare", ratios[PAIRS / 2], "ratio", 0.8,
                     ratios[PAIRS * 3 / 4] >= 0.8 ? 0 : 0.8, false);
}

/* -- Latency ------------------------------------------------------------------------------------- */

static void
measure_latency(void)
{
    static double latencies[LATENCIES];
    static double commits[LATENCIES];
    char path[320];
    char bare[320];
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = open_bare(bare, sizeof bare, &statement);
    struct bench *bench = open_bench("latency.db", true, "full");
    (void)snprintf(path, sizeof path, "%s", bench->path);
    bench->broker->ops->demand(bench->source, 1000, 64 << 20);
    for (int i = 0; i < LATENCIES; i++) {
        uint64_t began = lw_clock_monotonic_ns();
        publish_one(bench);
        while (receive(bench, 1, true) == 0) {
            turn(bench);
        }
        latencies[i] = (double)(lw_clock_monotonic_ns() - began) / 1e3;
        began = lw_clock_monotonic_ns();
        write_bare(db, statement, i, i + 1);
        commits[i] = (double)(lw_clock_monotonic_ns() - began) / 1e3;
    }
    (void)close_bench(bench);
    remove_files(path);
    close_bare(bare, db, statement);
    qsort(commits, LATENCIES, sizeof commits[0], compare);
    lw_figures_note("spool.bare_commit_p50", commits[LATENCIES / 2], "us");
    lw_figures_note("spool.bare_commit_p99", commits[LATENCIES * 99 / 100], "us");
    qsort(latencies, LATENCIES, sizeof latencies[0], compare);
    lw_figures_note("spool.end_to_end_p50", latencies[LATENCIES / 2], "us");
    lw_figures_note("spool.end_to_end_p99", latencies[LATENCIES * 99 / 100], "us");
}

/* -- Through ------------------------------------------------------------------------------------- */

/* Published, received and acknowledged at once. */
static void
measure_through(void)
{
    char path[320];
    uint64_t sent = 0;
    uint64_t received = 0;
    struct bench *bench = open_bench("through.db", true, "full");
    (void)snprintf(path, sizeof path, "%s", bench->path);
    bench->broker->ops->demand(bench->source, 1000, 64 << 20);
    uint64_t began = lw_clock_monotonic_ns();
    while (received < DURABLE) {
        while (sent < DURABLE && publish_one(bench)) {
            sent++;
        }
        turn(bench);
        size_t count = 0;
        while ((count = receive(bench, BATCH, true)) > 0) {
            received += count;
        }
    }
    double took = (double)(lw_clock_monotonic_ns() - began) / 1e9;
    (void)close_bench(bench);
    remove_files(path);
    lw_figures_note("spool.published_received_settled", DURABLE / took, "msg/s");
}

/* -- Receiving ------------------------------------------------------------------------------------ */

static double
processor_us(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void
fill(const char *name, uint64_t count)
{
    struct bench *bench = open_bench(name, false, "off");
    publish_all(bench, count);
    (void)close_bench(bench);
}

/* Processor time of the next RECEIVED messages. */
static double
receive_cost(const char *name)
{
    struct bench *bench = open_bench(name, true, "off");
    take_events(bench);
    double began = processor_us();
    size_t received = 0;
    bench->broker->ops->demand(bench->source, 1000, 64 << 20);
    while (received < RECEIVED) {
        turn(bench);
        received += receive(bench, RECEIVED - received, false);
    }
    double took = processor_us() - began;
    (void)close_bench(bench);
    return took / RECEIVED;
}

static void
measure_receiving(struct lw_figures *figures)
{
    enum { ROUNDS = 31 };
    double ratios[ROUNDS];
    double few[ROUNDS];
    char path[320];
    fill("few.db", RECEIVED);
    fill("many.db", QUEUED);
    for (int i = 0; i < ROUNDS; i++) {
        few[i] = receive_cost("few.db");
        ratios[i] = receive_cost("many.db") / few[i];
    }
    qsort(ratios, ROUNDS, sizeof ratios[0], compare);
    qsort(few, ROUNDS, sizeof few[0], compare);
    lw_figures_note("spool.receive_1000_queued", few[ROUNDS / 2], "us of processor/msg");
    lw_figures_print(figures, "spool.receive_1000000_to_1000", ratios[ROUNDS / 2], "ratio", 1.1,
                     ratios[ROUNDS / 4] <= 1.1 ? 1e9 : 1.1, true);
    (void)snprintf(path, sizeof path, "%s/few.db", folder);
    remove_files(path);
    (void)snprintf(path, sizeof path, "%s/many.db", folder);
    remove_files(path);
}

int
main(int argc, char **argv)
{
    struct lw_figures figures;
    const char *place = getenv("LANEWAY_BENCH_FOLDER");
    lw_figures_init(&figures, argc, argv);
    if (figures.is_instructions_only) {
        return lw_figures_exit(&figures); /* a disk decides all of it */
    }
    (void)snprintf(folder, sizeof folder, "%s/laneway-spool-XXXXXX", place ? place : ".");
    if (!mkdtemp(folder)) {
        fail("no folder for files");
    }
    measure_durable(&figures);
    measure_latency();
    measure_through();
    measure_receiving(&figures);
    (void)rmdir(folder);
    return lw_figures_exit(&figures);
}
