/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files are made natively, by publishing and, for what a queue becomes in the course of its life,
 * by SQL; the counted run opens one, receives n messages, and settles them where that is looked at.
 * Positions are set back at both ends of a run and `keep` leaves the messages, so a file serves all
 * runs. A small queue keeps what is read ahead within the 1,000 of the smallest file.
 */
#include "bench/support/spool_queue.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/support/spool_client.h"

enum {
    FEW = 1000,
    MANY = 1000000,
    GONE = 980000, /* settled, or with a delay, in the file of MANY */
    HELD = 20000,
    COUNTED_FEW = 300,
    COUNTED = 3000,
    QUEUE = 128,
    ROUNDS = 31
};
#define GOAL 1.1

/* A message that is due then has a delay, which outlasts every run. */
#define FAR_MS "9000000000000"

struct queue_case {
    const char *name;
    const char *base; /* the case that it is compared with; NULL: none */
    uint64_t made;    /* messages of a new file; 0: that of the case before goes on */
    uint64_t first;   /* the first that waits */
    uint64_t held;    /* received and not settled, before the counted ones */
    uint64_t counted;
    bool has_own_keys;
    bool is_acked;
    const char *change; /* of the file; NULL: none */
};

static const struct queue_case cases[] = {
    { "receive_1000", NULL, FEW, 0, 0, COUNTED_FEW, false, false, NULL },
    { "receive_1000000", "receive_1000", MANY, 0, 0, COUNTED_FEW, false, false, NULL },
    { "settle_1000000", NULL, 0, 0, 0, COUNTED, false, true, NULL },
    { "settle_20000_held", "settle_1000000", 0, 0, HELD, COUNTED, false, true, NULL },
    { "settle_980000_settled", "settle_1000000", 0, GONE, 0, COUNTED, false, true, NULL },
    { "settle_980000_delayed", "settle_1000000", 0, GONE, 0, COUNTED, false, true,
      "INSERT INTO unsettled SELECT 1, m.id & 0xfffffffffff, 0, " FAR_MS
      " FROM message m WHERE (m.id & 0xfffffffffff) < 980000" },
    { "settle_1000000_keys", "settle_1000000", MANY, 0, 0, COUNTED, true, true, NULL },
    { "settle_1000_groups", "settle_1000000", 0, 0, 0, COUNTED, false, true,
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
      "INSERT INTO position (partition_id, group_name, next, given) "
      "SELECT 1, 'other' || i, 1000000, 1000000 FROM n" },
};

enum { CASES = sizeof cases / sizeof cases[0] };

static const struct queue_case *
find_case(const char *name, size_t size)
{
    for (size_t i = 0; i < CASES; i++) {
        if (strlen(cases[i].name) == size && strncmp(cases[i].name, name, size) == 0) {
            return &cases[i];
        }
    }
    return NULL;
}

static void
execute(const char *path, const char *text)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK) {
        lw_spool_bench_fail(sqlite3_errmsg(db));
    }
    (void)sqlite3_close(db);
}

/* As nobody has received anything: the group's position, and no rows but those of the file's case. */
static void
set_back(const struct queue_case *what, const char *path)
{
    char text[256];
    (void)snprintf(
        text, sizeof text,
        "DELETE FROM unsettled WHERE position_id = 1 AND (due_ms IS NULL OR due_ms < "
        "%s); UPDATE position SET next = %llu, given = %llu WHERE id = 1",
        FAR_MS, (unsigned long long)what->first, (unsigned long long)what->first);
    execute(path, text);
}

static struct lw_spool_bench *
open_file(const char *path, bool is_reading, uint32_t queue_size)
{
    return lw_spool_bench_open(&(struct lw_spool_bench_options){ .path = path,
                                                                 .synchronous = "off",
                                                                 .keep = "1h",
                                                                 .is_reading = is_reading,
                                                                 .queue_size = queue_size });
}

static void
make_file(const struct queue_case *what, const char *path)
{
    lw_spool_bench_remove(path);
    struct lw_spool_bench *bench = open_file(path, true, 0);
    bench->has_own_keys = what->has_own_keys;
    lw_spool_bench_publish_all(bench, what->made);
    (void)lw_spool_bench_close(bench);
}

bool
lw_spool_queue_run(const char *name, uint64_t n)
{
    const char *colon = strchr(name, ':');
    const struct queue_case *what = colon ? find_case(name, (size_t)(colon - name)) : NULL;
    if (!what) {
        return false;
    }
    set_back(what, colon + 1);
    struct lw_spool_bench *bench = open_file(colon + 1, true, QUEUE);
    lw_spool_bench_receive_all(bench, what->held, false);
    lw_spool_bench_receive_all(bench, n, what->is_acked);
    (void)lw_spool_bench_close(bench);
    set_back(what, colon + 1); /* what this run leaves is no work of the next one */
    return true;
}

/* -- Instructions -------------------------------------------------------------------------------- */

static double
count_case(const struct queue_case *what, const char *argv0, const char *path)
{
    char name[512];
    (void)snprintf(name, sizeof name, "%s:%s", what->name, path);
    return lw_figures_instructions(argv0, name, what->counted, false);
}

static void
show_case(struct lw_figures *figures, const struct queue_case *what, const double *counts)
{
    char name[96];
    double own = counts[what - cases];
    (void)snprintf(name, sizeof name, "spool.%s", what->name);
    lw_figures_note(name, own, "instr/msg");
    if (what->base) {
        double base = counts[find_case(what->base, strlen(what->base)) - cases];
        (void)snprintf(name, sizeof name, "spool.%s_to_%s", what->name,
                       strchr(what->base, '_') + 1);
        lw_figures_print(figures, name, own > 0 && base > 0 ? own / base : -1, "instr ratio",
                         GOAL, GOAL, true);
    }
}

static void
show_instructions(struct lw_figures *figures, const char *argv0, const char *folder)
{
    double counts[CASES];
    char path[320];
    (void)snprintf(path, sizeof path, "%s/queue.db", folder);
    for (size_t i = 0; i < CASES; i++) {
        if (cases[i].made > 0) {
            make_file(&cases[i], path);
        }
        if (cases[i].change) {
            execute(path, cases[i].change);
        }
        counts[i] = count_case(&cases[i], argv0, path);
        show_case(figures, &cases[i], counts);
    }
    lw_spool_bench_remove(path);
}

/* -- Time ---------------------------------------------------------------------------------------- */

static double
processor_us(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Processor time of the next FEW messages, which are only received. */
static double
receive_us(const char *path)
{
    struct lw_spool_bench *bench = open_file(path, true, 0);
    lw_spool_bench_turn(bench);
    double began = processor_us();
    lw_spool_bench_receive_all(bench, FEW, false);
    double took = processor_us() - began;
    (void)lw_spool_bench_close(bench);
    return took / FEW;
}

static void
show_time(struct lw_figures *figures, const char *folder)
{
    double ratios[ROUNDS];
    double few[ROUNDS];
    char few_path[320];
    char many_path[320];
    (void)snprintf(few_path, sizeof few_path, "%s/few.db", folder);
    (void)snprintf(many_path, sizeof many_path, "%s/many.db", folder);
    make_file(find_case("receive_1000", 12), few_path);
    make_file(find_case("receive_1000000", 15), many_path);
    for (int i = 0; i < ROUNDS; i++) {
        few[i] = receive_us(few_path);
        ratios[i] = receive_us(many_path) / few[i];
    }
    lw_spool_bench_remove(few_path);
    lw_spool_bench_remove(many_path);
    lw_figures_note("spool.receive_1000_queued_time", lw_figures_sort(few, ROUNDS).median,
                    "us of processor/msg");
    double ratio = lw_figures_sort(ratios, ROUNDS).median;
    lw_figures_print(figures, "spool.receive_1000000_to_1000_time", ratio, "ratio", GOAL,
                     ratios[ROUNDS / 4] <= GOAL ? 1e9 : GOAL, true);
}

void
lw_spool_queue_measure(struct lw_figures *figures, const char *argv0, const char *folder)
{
    show_instructions(figures, argv0, folder);
    if (!figures->is_instructions_only) {
        show_time(figures, folder);
    }
}
