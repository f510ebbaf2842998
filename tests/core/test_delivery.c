/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of a delivery: the table against the drawing, every move that the path makes without the
 * table against the table, and the beginning of a run.
 */
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/host.h"
#include "core/delivery.h"

enum { STATES = LW_STATE_DROPPED + 1 };

/* The drawing of the architecture, row by row: from, then all that may follow. */
static const char *const drawing[] = {
    "free queued settled",
    "queued running judged settled dropped",
    "running judged dropped queued",
    "judged publishing parked settled dropped",
    "parked queued judged settled dropped",
    "publishing settled judged dropped",
    "settled free",
    "dropped free",
};

static bool
is_drawn(enum lw_state from, enum lw_state to)
{
    char word[32] = " ";
    strncat(word, lw_state_name(to), sizeof(word) - 2);
    const char *row = drawing[from];
    assert_memory_equal(row, lw_state_name(from), strlen(lw_state_name(from)));
    const char *at = strstr(row, word);
    return at && (at[strlen(word)] == ' ' || at[strlen(word)] == '\0');
}

static void
every_move_is_allowed_exactly_as_drawn(void **state)
{
    (void)state;
    for (int from = 0; from < STATES; from++) {
        for (int to = 0; to < STATES; to++) {
            assert_int_equal(lw_state_may_follow((enum lw_state)from, (enum lw_state)to),
                             is_drawn((enum lw_state)from, (enum lw_state)to));
        }
    }
}

/* True when fn(delivery) aborts the process. */
static bool
aborts(void (*fn)(struct lw_delivery *delivery, enum lw_state to), enum lw_state from,
       enum lw_state to)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct lw_delivery delivery = { .state = (uint8_t)from };
        (void)signal(SIGABRT, SIG_DFL);
        (void)close(STDERR_FILENO);
        fn(&delivery, to);
        _exit(delivery.state == (uint8_t)to ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void
move_from_queued(struct lw_delivery *delivery, enum lw_state to)
{
    lw_delivery_move(delivery, LW_STATE_QUEUED, to);
}

static void
a_forbidden_move_stops_the_process_and_an_allowed_one_does_not(void **state)
{
    (void)state;
    for (int from = 0; from < STATES; from++) {
        for (int to = 0; to < STATES; to++) {
            bool is_allowed = lw_state_may_follow((enum lw_state)from, (enum lw_state)to);
            assert_int_equal(
                aborts(lw_delivery_set_state, (enum lw_state)from, (enum lw_state)to),
                !is_allowed);
        }
    }
}

static void
a_move_from_another_state_than_it_says_stops_the_process(void **state)
{
    (void)state;
    assert_false(aborts(move_from_queued, LW_STATE_QUEUED, LW_STATE_RUNNING));
    assert_true(aborts(move_from_queued, LW_STATE_PARKED, LW_STATE_RUNNING));
}

/* What the path of a message does by lw_delivery_move; all of src/ is searched for others. */
static const struct {
    enum lw_state from, to;
    const char *source;
} moves[] = {
    { LW_STATE_FREE, LW_STATE_QUEUED,
      "lw_delivery_move(delivery, LW_STATE_FREE, LW_STATE_QUEUED)" },
    { LW_STATE_QUEUED, LW_STATE_RUNNING,
      "lw_delivery_move(delivery, LW_STATE_QUEUED, LW_STATE_RUNNING)" },
    { LW_STATE_QUEUED, LW_STATE_JUDGED,
      "lw_delivery_move(delivery, LW_STATE_QUEUED, LW_STATE_JUDGED)" },
    { LW_STATE_RUNNING, LW_STATE_JUDGED,
      "lw_delivery_move(delivery, LW_STATE_RUNNING, LW_STATE_JUDGED)" },
    { LW_STATE_JUDGED, LW_STATE_SETTLED,
      "lw_delivery_move(delivery, LW_STATE_JUDGED, LW_STATE_SETTLED)" },
};

/* RUNNING to SETTLED at once is JUDGED on the way, which nobody could see. */
static const char *const shortcuts[] = {
    "lw_delivery_move(delivery, LW_STATE_RUNNING, LW_STATE_SETTLED)",
};

static bool
is_known(const char *call)
{
    for (size_t i = 0; i < sizeof(moves) / sizeof(*moves); i++) {
        if (strncmp(call, moves[i].source, strlen(moves[i].source)) == 0) {
            return lw_state_may_follow(moves[i].from, moves[i].to);
        }
    }
    return strncmp(call, shortcuts[0], strlen(shortcuts[0])) == 0 &&
           lw_state_may_follow(LW_STATE_RUNNING, LW_STATE_JUDGED) &&
           lw_state_may_follow(LW_STATE_JUDGED, LW_STATE_SETTLED);
}

static void
moves_without_the_table_are_moves_of_the_table(void **state)
{
    static const char *const files[] = { "core/delivery.h",          "core/delivery.c",
                                         "dispatcher/dispatcher.c",  "dispatcher/settle.c",
                                         "dispatcher/direct.c",      "dispatcher/direct.h",
                                         "dispatcher/settle_plain.h" };
    static char text[200000];
    uint32_t found = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char path[512];
        snprintf(path, sizeof(path), "%s/src/%s", LW_SOURCE_DIR, files[i]);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        (void)fclose(file);
        for (const char *at = text; (at = strstr(at, "lw_delivery_move(delivery,")) != NULL;
             at++) {
            assert_true(is_known(at));
            found++;
        }
    }
    assert_in_range(found, 4, 20);
}

/* -- runs ----------------------------------------------------------------------------------------- */

static void
a_run_has_a_new_serial_and_the_next_attempt(void **state)
{
    struct lw_delivery delivery = { .state = LW_STATE_QUEUED, .is_late = true };
    (void)state;
    atomic_store(&delivery.is_cancelled, true);
    lw_delivery_begin_run(&delivery, 500);
    uint32_t first = atomic_load(&delivery.serial);
    assert_int_equal(delivery.attempt, 1);
    assert_int_equal(delivery.started_at, 500);
    assert_int_equal(first & 1, 0); /* an answer is owed */
    assert_false(delivery.is_late);
    assert_false(lw_delivery_is_cancelled(&delivery));
    delivery.state = LW_STATE_QUEUED;
    lw_delivery_begin_run(&delivery, 600);
    assert_int_equal(delivery.attempt, 2);
    assert_int_not_equal(atomic_load(&delivery.serial), first);
    assert_int_equal(atomic_load(&delivery.serial) & 1, 0);
}

static void
serials_of_runs_never_repeat_soon(void **state)
{
    struct lw_delivery delivery = { .state = LW_STATE_QUEUED };
    uint32_t previous = atomic_load(&delivery.serial);
    (void)state;
    for (int i = 0; i < 100000; i++) {
        delivery.state = LW_STATE_QUEUED;
        lw_delivery_begin_run(&delivery, 1);
        uint32_t serial = atomic_load(&delivery.serial);
        assert_true(serial > previous); /* claimed or not, a ticket of before never matches */
        atomic_store(&delivery.serial, i % 2 ? serial : serial | 1);
        previous = serial;
    }
}

static void
a_run_forgets_what_the_run_before_said(void **state)
{
    struct lw_delivery delivery = { .state = LW_STATE_QUEUED };
    (void)state;
    assert_int_equal(lw_delivery_error(&delivery, 12, "broken"), LW_ERROR);
    assert_string_equal(lw_delivery_reason(&delivery), "broken");
    lw_delivery_begin_run(&delivery, 1);
    assert_string_equal(lw_delivery_reason(&delivery), "");
    assert_false(delivery.outcome->has_code);
    lw_outcome_destroy(delivery.outcome);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_move_is_allowed_exactly_as_drawn),
        cmocka_unit_test(a_forbidden_move_stops_the_process_and_an_allowed_one_does_not),
        cmocka_unit_test(a_move_from_another_state_than_it_says_stops_the_process),
        cmocka_unit_test(moves_without_the_table_are_moves_of_the_table),
        cmocka_unit_test(a_run_has_a_new_serial_and_the_next_attempt),
        cmocka_unit_test(serials_of_runs_never_repeat_soon),
        cmocka_unit_test(a_run_forgets_what_the_run_before_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
