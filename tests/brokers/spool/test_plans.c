/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What SQLite does for each statement that runs while the spool works: a point or a range of a key or
 * of the index, never a scan, never a sort. So no cost grows with what lies in the file; the figures
 * of bench/spool_path say the same in instructions.
 */
#include "tests/support/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "brokers/spool/store.h"
#include "tests/brokers/spool/fixture.h"

static struct lw_spool_store *
open_store(struct spool *spool)
{
    struct lw_spool_options options;
    struct lw_spool_store *store = NULL;
    struct lw_error error = { 0 };
    assert_int_equal(lw_spool_read(lw_spool_rows, &options, NULL, 0, &error), LW_STATUS_OK);
    struct lw_spool_opening opening = { spool->path, &options, true, 0 };
    assert_int_equal(lw_spool_store_open(&opening, &store, &error), LW_STATUS_OK);
    return store;
}

/* Counts the steps of a plan that look at one thing after the other; *ret_steps: all of them. */
static int
count_slow(struct sqlite3 *db, const char *text, int *ret_steps)
{
    char query[1024];
    struct sqlite3_stmt *plan = NULL;
    int slow = 0;
    snprintf(query, sizeof query, "EXPLAIN QUERY PLAN %s", text);
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &plan, NULL), SQLITE_OK);
    while (sqlite3_step(plan) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(plan, 3);
        bool is_slow = strstr(step, "SCAN") || strstr(step, "TEMP B-TREE");
        if (is_slow) {
            print_message("%s: %s\n", text, step);
        }
        slow += is_slow;
        (*ret_steps)++;
    }
    sqlite3_finalize(plan);
    return slow;
}

static bool
has_plan(const char *text)
{
    return strncmp(text, "SELECT", 6) == 0 || strncmp(text, "UPDATE", 6) == 0 ||
           strncmp(text, "DELETE", 6) == 0;
}

static void
no_statement_scans_or_sorts(void **state)
{
    struct lw_spool_store *store = open_store(*state);
    for (int i = 0; i < LW_SPOOL_STATEMENTS; i++) {
        const char *text = sqlite3_sql(store->statements[i]);
        int steps = 0;
        int slow = has_plan(text) ? count_slow(store->db, text, &steps) : 0;
        assert_int_equal(slow, 0);
        assert_true(steps > 0 || !has_plan(text));
    }
    lw_spool_store_close(store);
}

static void
a_scan_and_a_sort_would_be_seen(void **state)
{
    struct lw_spool_store *store = open_store(*state);
    int steps = 0;
    assert_int_equal(count_slow(store->db, "SELECT id FROM message WHERE time_ms < 1", &steps),
                     1);
    assert_int_equal(count_slow(store->db,
                                "SELECT offset FROM unsettled WHERE position_id = 1 "
                                "ORDER BY redeliveries",
                                &steps),
                     1);
    lw_spool_store_close(store);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_statement_scans_or_sorts, spool_setup,
                                        spool_teardown),
        cmocka_unit_test_setup_teardown(a_scan_and_a_sort_would_be_seen, spool_setup,
                                        spool_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
