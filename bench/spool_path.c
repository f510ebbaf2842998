/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the spool costs on top of SQLite. Durable messages a second with group commit, against a
 * loop that makes the same rows in as many transactions, with the same pragmas and statements that
 * are prepared once, on the thread that waits for them: in interleaved pairs, and in instructions.
 * The time from a publication to its reception, one at a time, beside that of a bare commit. What
 * receiving costs with 1,000 and with 1,000,000 messages in the file (spool_queue.h).
 *
 * Files lie in LANEWAY_BENCH_FOLDER, else in the present folder: a disk, not memory.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/support/figures.h"
#include "bench/support/spool_client.h"
#include "bench/support/spool_queue.h"

enum { PAIRS = 9, DURABLE = 20000, LATENCIES = 2000, BARE_BATCH = 1024, COUNTED = 5000 };

static struct lw_spool_bench *
open_bench(const char *folder, bool is_reading, const char *synchronous)
{
    char path[320];
    (void)snprintf(path, sizeof path, "%s/bench.db", folder);
    return lw_spool_bench_open(&(struct lw_spool_bench_options){
        .path = path, .synchronous = synchronous, .is_reading = is_reading });
}

/* Returns the number of transactions. */
static uint64_t
end_bench(struct lw_spool_bench *bench)
{
    char path[320];
    (void)snprintf(path, sizeof path, "%s", bench->path);
    uint64_t commits = lw_spool_bench_close(bench);
    lw_spool_bench_remove(path);
    return commits;
}

/* -- A bare loop --------------------------------------------------------------------------------- */

struct bare {
    char path[320];
    sqlite3 *db;
    sqlite3_stmt *begin;
    sqlite3_stmt *insert;
    sqlite3_stmt *update;
    sqlite3_stmt *commit;
};

/* The same tables, as far as they are needed; %s: synchronous. */
static const char bare_tables[] =
    "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = %s;"
    "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384;"
    "PRAGMA journal_size_limit = 67108864;"
    "CREATE TABLE partition (id INTEGER PRIMARY KEY, next INTEGER, bytes INTEGER);"
    "INSERT INTO partition VALUES (1, 0, 0);"
    "CREATE TABLE message (id INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, event_ms INTEGER,"
    " due_ms INTEGER, key BLOB, ordering_key BLOB, headers BLOB, value BLOB)";

static void
prepare(struct bare *bare, const char *text, sqlite3_stmt **ret_statement)
{
    if (sqlite3_prepare_v3(bare->db, text, -1, SQLITE_PREPARE_PERSISTENT, ret_statement,
                           NULL) != SQLITE_OK) {
        lw_spool_bench_fail(sqlite3_errmsg(bare->db));
    }
}

static void
open_bare(struct bare *bare, const char *folder, const char *synchronous)
{
    char text[sizeof bare_tables + 16];
    (void)snprintf(bare->path, sizeof bare->path, "%s/bare.db", folder);
    (void)snprintf(text, sizeof text, bare_tables, synchronous);
    if (sqlite3_open_v2(bare->path, &bare->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK ||
        sqlite3_exec(bare->db, text, NULL, NULL, NULL) != SQLITE_OK) {
        lw_spool_bench_fail("no file for the bare loop");
    }
    prepare(bare, "BEGIN IMMEDIATE", &bare->begin);
    prepare(bare, "INSERT INTO message (id, time_ms, key, value) VALUES (?, ?, ?, ?)",
            &bare->insert);
    prepare(bare, "UPDATE partition SET next = ?, bytes = ? WHERE id = 1", &bare->update);
    prepare(bare, "COMMIT", &bare->commit);
}

static void
close_bare(struct bare *bare)
{
    (void)sqlite3_finalize(bare->begin);
    (void)sqlite3_finalize(bare->insert);
    (void)sqlite3_finalize(bare->update);
    (void)sqlite3_finalize(bare->commit);
    (void)sqlite3_close(bare->db);
    lw_spool_bench_remove(bare->path);
}

static void
run(sqlite3_stmt *statement)
{
    if (sqlite3_step(statement) != SQLITE_DONE) {
        lw_spool_bench_fail("a statement of the bare loop failed");
    }
    (void)sqlite3_reset(statement);
}

/* One transaction: the messages from `first` to `end`, and the row of their partition. */
static void
write_bare(struct bare *bare, int64_t first, int64_t end)
{
    size_t size = strlen(lw_spool_bench_payload);
    run(bare->begin);
    for (int64_t id = first; id < end; id++) {
        (void)sqlite3_bind_int64(bare->insert, 1, (INT64_C(1) << 44) + id);
        (void)sqlite3_bind_int64(bare->insert, 2, 1700000000000 + id);
        (void)sqlite3_bind_blob(bare->insert, 3, "key-12", 6, SQLITE_STATIC);
        (void)sqlite3_bind_blob(bare->insert, 4, lw_spool_bench_payload, (int)size,
                                SQLITE_STATIC);
        run(bare->insert);
    }
    (void)sqlite3_bind_int64(bare->update, 1, end);
    (void)sqlite3_bind_int64(bare->update, 2, end * (int64_t)(size + 6));
    run(bare->update);
    run(bare->commit);
}

/* -- Durable messages ---------------------------------------------------------------------------- */

static double
spool_rate(const char *folder, uint64_t *ret_commits)
{
    struct lw_spool_bench *bench = open_bench(folder, false, "full");
    uint64_t began = lw_clock_monotonic_ns();
    lw_spool_bench_publish_all(bench, DURABLE);
    uint64_t took = lw_clock_monotonic_ns() - began;
    *ret_commits = end_bench(bench);
    return DURABLE / ((double)took / 1e9);
}

static double
bare_rate(const char *folder, uint64_t commits)
{
    struct bare bare;
    open_bare(&bare, folder, "FULL");
    uint64_t began = lw_clock_monotonic_ns();
    for (uint64_t i = 1; i <= commits; i++) {
        write_bare(&bare, (int64_t)(DURABLE * (i - 1) / commits),
                   (int64_t)(DURABLE * i / commits));
    }
    uint64_t took = lw_clock_monotonic_ns() - began;
    close_bare(&bare);
    return DURABLE / ((double)took / 1e9);
}

static void
measure_durable(struct lw_figures *figures, const char *folder)
{
    double ratios[PAIRS];
    double rates[PAIRS];
    uint64_t commits = 0;
    for (int i = 0; i < PAIRS; i++) {
        rates[i] = spool_rate(folder, &commits);
        ratios[i] = rates[i] / bare_rate(folder, commits);
    }
    lw_figures_note("spool.durable", lw_figures_sort(rates, PAIRS).median, "msg/s");
    lw_figures_note("spool.commits_of_the_last_run", (double)commits, "commits");
    lw_figures_quartiles(figures, "spool.durable_to_bare", lw_figures_sort(ratios, PAIRS),
                         "ratio", 0.8);
}

/* The file system is not called to wait, so that all that is counted is work. */
static void
run_bare(const char *folder, uint64_t n)
{
    struct bare bare;
    open_bare(&bare, folder, "OFF");
    for (uint64_t first = 0; first < n; first += BARE_BATCH) {
        uint64_t end = first + BARE_BATCH < n ? first + BARE_BATCH : n;
        write_bare(&bare, (int64_t)first, (int64_t)end);
    }
    close_bare(&bare);
}

static void
run_publish(const char *folder, uint64_t n)
{
    struct lw_spool_bench *bench = open_bench(folder, false, "off");
    lw_spool_bench_publish_all(bench, n);
    (void)end_bench(bench);
}

static void
count_durable(const char *argv0, const char *folder)
{
    char name[320];
    (void)snprintf(name, sizeof name, "publish:%s", folder);
    lw_figures_note("spool.publish", lw_figures_instructions(argv0, name, COUNTED, false),
                    "instr/msg");
    (void)snprintf(name, sizeof name, "bare:%s", folder);
    lw_figures_note("spool.bare_publish", lw_figures_instructions(argv0, name, COUNTED, false),
                    "instr/msg");
}

/* -- Latency ------------------------------------------------------------------------------------- */

static void
show_latencies(const char *name, double *values)
{
    char shown[64];
    (void)lw_figures_sort(values, LATENCIES);
    (void)snprintf(shown, sizeof shown, "spool.%s_p50", name);
    lw_figures_note(shown, values[LATENCIES / 2], "us");
    (void)snprintf(shown, sizeof shown, "spool.%s_p99", name);
    lw_figures_note(shown, values[LATENCIES * 99 / 100], "us");
}

static void
measure_latency(const char *folder)
{
    static double latencies[LATENCIES];
    static double commits[LATENCIES];
    struct bare bare;
    open_bare(&bare, folder, "FULL");
    struct lw_spool_bench *bench = open_bench(folder, true, "full");
    lw_spool_bench_demand(bench);
    for (int i = 0; i < LATENCIES; i++) {
        uint64_t began = lw_clock_monotonic_ns();
        lw_spool_bench_publish(bench);
        while (lw_spool_bench_receive(bench, 1, true) == 0) {
            lw_spool_bench_turn(bench);
        }
        latencies[i] = (double)(lw_clock_monotonic_ns() - began) / 1e3;
        began = lw_clock_monotonic_ns();
        write_bare(&bare, i, i + 1);
        commits[i] = (double)(lw_clock_monotonic_ns() - began) / 1e3;
    }
    (void)end_bench(bench);
    close_bare(&bare);
    show_latencies("bare_commit", commits);
    show_latencies("end_to_end", latencies);
}

/* -- Through ------------------------------------------------------------------------------------- */

/* Published, received and acknowledged at once. */
static void
measure_through(const char *folder)
{
    uint64_t received = 0;
    struct lw_spool_bench *bench = open_bench(folder, true, "full");
    lw_spool_bench_demand(bench);
    uint64_t began = lw_clock_monotonic_ns();
    while (received < DURABLE) {
        while (bench->sent < DURABLE && lw_spool_bench_publish(bench)) {
            continue;
        }
        lw_spool_bench_turn(bench);
        size_t count = 0;
        while ((count = lw_spool_bench_receive(bench, LW_SPOOL_BENCH_BATCH, true)) > 0) {
            received += count;
        }
    }
    double took = (double)(lw_clock_monotonic_ns() - began) / 1e9;
    (void)end_bench(bench);
    lw_figures_note("spool.published_received_settled", DURABLE / took, "msg/s");
}

static int
run_case(const char *name, uint64_t n)
{
    if (strncmp(name, "publish:", 8) == 0) {
        run_publish(name + 8, n);
    } else if (strncmp(name, "bare:", 5) == 0) {
        run_bare(name + 5, n);
    } else if (!lw_spool_queue_run(name, n)) {
        fprintf(stderr, "spool_path: no case \"%s\"\n", name);
        return 64;
    }
    return 0;
}

int
main(int argc, char **argv)
{
    char folder[256];
    struct lw_figures figures;
    const char *place = getenv("LANEWAY_BENCH_FOLDER");
    if (argc == 4 && strcmp(argv[1], "--run") == 0) {
        return run_case(argv[2], strtoull(argv[3], NULL, 10));
    }
    lw_figures_init(&figures, argc, argv);
    (void)snprintf(folder, sizeof folder, "%s/laneway-spool-XXXXXX", place ? place : ".");
    if (!mkdtemp(folder)) {
        lw_spool_bench_fail("no folder for files");
    }
    count_durable(argv[0], folder);
    if (!figures.is_instructions_only) {
        measure_durable(&figures, folder);
        measure_latency(folder);
        measure_through(folder);
    }
    lw_spool_queue_measure(&figures, argv[0], folder);
    (void)rmdir(folder);
    return lw_figures_exit(&figures);
}
