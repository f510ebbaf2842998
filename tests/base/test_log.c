/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines, read back from a pipe: both forms exactly, fields with anything in them, folding by
 * a moved clock, levels, lines of several threads that do not mix, a descriptor that is full.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

static int pipe_fds[2];
static int64_t wall_ms;
static struct lw_log *sink;
static char output[65536];

static int64_t
read_moved_clock(void *user)
{
    (void)user;
    return wall_ms;
}

static void
create(enum lw_log_format format)
{
    struct lw_log_options options;
    lw_log_options_init(&options);
    options.fd = pipe_fds[1];
    options.format = format;
    options.service = "orders";
    options.wall_ms = read_moved_clock;
    assert_int_equal(lw_log_create(&options, &sink), LW_STATUS_OK);
}

static int
set_up(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    wall_ms = 1767323045678; /* 2026-01-02T03:04:05.678Z */
    return pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK);
}

static int
tear_down(void **state)
{
    (void)state;
    lw_log_destroy(sink);
    sink = NULL;
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    return 0;
}

/* Returns all that was written since the last call. */
static const char *
written(void)
{
    size_t used = 0;
    ssize_t got = 0;
    while ((got = read(pipe_fds[0], output + used, sizeof output - used - 1)) > 0) {
        used += (size_t)got;
    }
    output[used] = '\0';
    return output;
}

static void
say(enum lw_log_level level, const char *event, const char *text, const char *fields)
{
    lw_log_write(level, event, text, fields, sink);
}

static void
text_form_has_time_level_sentence_and_fields(void **state)
{
    (void)state;
    create(LW_LOG_FORMAT_TEXT);
    say(LW_LOG_INFO, "service.ready", "ready: 1 pipeline, 6 topics", "");
    say(LW_LOG_WARN, "retry", "retry 1/5 in 1.1s: timeout", "pipeline=orders id=1042");
    assert_string_equal(written(), "03:04:05 info  ready: 1 pipeline, 6 topics\n"
                                   "03:04:05 warn  retry 1/5 in 1.1s: timeout  pipeline=orders "
                                   "id=1042\n");
}

static void
json_form_has_all_names_and_keeps_types(void **state)
{
    (void)state;
    create(LW_LOG_FORMAT_JSON);
    say(LW_LOG_WARN, "retry", "retry 1/5", "code=W0701 attempt=1 id=\"1042\" is_late=true");
    assert_string_equal(written(),
                        "{\"ts\":\"2026-01-02T03:04:05.678Z\",\"level\":\"warn\","
                        "\"event\":\"retry\",\"msg\":\"retry 1/5\",\"service\":\"orders\","
                        "\"code\":\"W0701\",\"attempt\":1,\"id\":\"1042\",\"is_late\":true}\n");
}

static void
format_is_json_where_nobody_looks(void **state)
{
    (void)state;
    create(LW_LOG_FORMAT_AUTO);
    say(LW_LOG_INFO, "a", "b", "");
    assert_int_equal(written()[0], '{');
}

/* Expects that these fields come out as this end of a JSON line. */
static void
check_fields(const char *fields, const char *expected)
{
    say(LW_LOG_DEBUG, "e", "m", fields);
    const char *found = strstr(written(), "\"service\":\"orders\"");
    assert_non_null(found);
    found += strlen("\"service\":\"orders\"");
    assert_memory_equal(found, expected, strlen(expected));
    assert_string_equal(found + strlen(expected), "}\n");
}

static void
fields_may_hold_anything(void **state)
{
    (void)state;
    create(LW_LOG_FORMAT_JSON);
    lw_log_set_level(sink, LW_LOG_DEBUG);
    check_fields("", "");
    check_fields("reason=no such host b=2", ",\"reason\":\"no such host\",\"b\":2");
    check_fields("a= b=", ",\"a\":\"\",\"b\":\"\"");
    check_fields("a=\"x y=z\" b=1", ",\"a\":\"x y=z\",\"b\":1");
    check_fields("a=\"q\\\"b\\\\n\\n\"", ",\"a\":\"q\\\"b\\\\n\\n\"");
    check_fields("stray words a=1", ",\"detail\":\"stray words\",\"a\":1");
    check_fields("a=\"cut off", ",\"a\":\"cut off\"");
    check_fields("a=007 b=-5 c=1e3 d=12345678901234567",
                 ",\"a\":\"007\",\"b\":-5,\"c\":\"1e3\","
                 "\"d\":\"12345678901234567\"");
    check_fields("a=x=y b=-", ",\"a\":\"x=y\",\"b\":\"-\"");
}

static void
quoting_and_reading_back_gives_the_same(void **state)
{
    (void)state;
    char fields[64] = "a=";
    create(LW_LOG_FORMAT_JSON);
    lw_log_set_level(sink, LW_LOG_DEBUG);
    lw_log_quote("say \"hi\" c:\\x\n5", fields + 2, sizeof fields - 2);
    check_fields(fields, ",\"a\":\"say \\\"hi\\\" c:\\\\x\\n5\"");
    lw_log_quote("1042", fields + 2, sizeof fields - 2);
    check_fields(fields, ",\"a\":\"1042\"");
    lw_log_quote(NULL, fields + 2, sizeof fields - 2);
    check_fields(fields, ",\"a\":\"\"");
}

static void
quoting_is_cut_with_its_closing_quote(void **state)
{
    (void)state;
    char out[8];
    assert_string_equal(lw_log_quote("abcdefghij", out, 8), "\"abcde\"");
    assert_string_equal(lw_log_quote("abcd\"fghij", out, 8), "\"abcd\"");
    assert_string_equal(lw_log_quote("abc", out, 2), "");
    assert_string_equal(lw_log_quote_bytes((struct lw_bytes){ "a\0b", 3 }, out, 8), "\"a?b\"");
}

static void
text_form_stays_one_line_and_shows_control_characters(void **state)
{
    (void)state;
    create(LW_LOG_FORMAT_TEXT);
    say(LW_LOG_INFO, "e", "bad\x1b[31m \xff\n end",
        "a=\"two words\" b=\"x\" c=\"q\\\"\\n\" d=\"\"");
    assert_string_equal(written(),
                        "03:04:05 info  bad\\x1b[31m \\xff\\n end  a=\"two words\" b=x "
                        "c=\"q\\\"\\n\" d=\"\"\n");
}

static void
journal_form_begins_with_the_priority(void **state)
{
    (void)state;
    struct lw_log_options options;
    lw_log_options_init(&options);
    options.fd = pipe_fds[1];
    options.is_journal = true;
    options.format = LW_LOG_FORMAT_TEXT;
    options.wall_ms = read_moved_clock;
    assert_int_equal(lw_log_create(&options, &sink), LW_STATUS_OK);
    say(LW_LOG_ERROR, "e", "m", "");
    say(LW_LOG_WARN, "e", "m", "");
    assert_string_equal(written(), "<3>03:04:05 error m\n<4>03:04:05 warn  m\n");
}

static void
lines_below_the_level_are_not_written(void **state)
{
    (void)state;
    create(LW_LOG_FORMAT_TEXT);
    say(LW_LOG_DEBUG, "e", "quiet", "");
    assert_string_equal(written(), "");
    lw_log_set_level(sink, LW_LOG_DEBUG);
    say(LW_LOG_DEBUG, "e", "loud", "");
    say(LW_LOG_TRACE, "e", "quiet", "");
    assert_string_equal(written(), "03:04:05 debug loud\n");
}

/* -- Folding ------------------------------------------------------------------------------------ */

static void
say_many(unsigned count, const char *event)
{
    for (unsigned i = 0; i < count; i++) {
        say(LW_LOG_WARN, event, "again", "code=W0702");
    }
}

static unsigned
lines_in(const char *text)
{
    unsigned lines = 0;
    for (; *text; text++) {
        lines += *text == '\n';
    }
    return lines;
}

static void
repeats_are_folded_and_counted_when_their_window_ends(void **state)
{
    (void)state;
    create(LW_LOG_FORMAT_TEXT);
    say_many(43, "retry");
    assert_int_equal(lines_in(written()), 5);
    wall_ms += 9999;
    assert_int_equal(lw_log_flush(sink), 1);
    wall_ms += 1;
    assert_int_equal(lw_log_flush(sink), -1);
    assert_string_equal(written(), "03:04:15 warn  38 more like this in the last 10s  "
                                   "code=W0702\n");
    say_many(5, "retry");
    assert_int_equal(lines_in(written()), 5);
}

static void
another_event_says_the_fold_of_the_first_when_it_is_over(void **state)
{
    (void)state;
    create(LW_LOG_FORMAT_JSON);
    say_many(6, "retry");
    written();
    wall_ms += 10000;
    say(LW_LOG_INFO, "other", "m", "");
    assert_non_null(strstr(written(),
                           "\"event\":\"retry\",\"msg\":\"1 more like this in the last "
                           "10s\",\"service\":\"orders\",\"code\":\"W0702\","
                           "\"folded\":1}\n{"));
}

static void
events_are_folded_each_on_its_own(void **state)
{
    (void)state;
    create(LW_LOG_FORMAT_TEXT);
    say_many(5, "one");
    say_many(5, "two");
    assert_int_equal(lines_in(written()), 10);
}

static void
fold_without_a_code_names_its_event(void **state)
{
    (void)state;
    create(LW_LOG_FORMAT_TEXT);
    for (int i = 0; i < 6; i++) {
        say(LW_LOG_WARN, "broker.down", "down", "");
    }
    written();
    wall_ms += 10000;
    lw_log_flush(sink);
    assert_non_null(strstr(written(), "1 more like this in the last 10s  event=broker.down\n"));
}

static void
debug_lines_and_exempt_events_are_never_folded(void **state)
{
    (void)state;
    static const char *const unfolded[] = { "handler.output", NULL };
    struct lw_log_options options;
    lw_log_options_init(&options);
    options.fd = pipe_fds[1];
    options.level = LW_LOG_DEBUG;
    options.unfolded = unfolded;
    assert_int_equal(lw_log_create(&options, &sink), LW_STATUS_OK);
    say_many(20, "handler.output");
    for (int i = 0; i < 20; i++) {
        say(LW_LOG_DEBUG, "message", "one", "");
    }
    assert_int_equal(lines_in(written()), 40);
}

static void
clock_that_is_set_back_ends_the_window(void **state)
{
    (void)state;
    create(LW_LOG_FORMAT_TEXT);
    say_many(8, "retry");
    written();
    wall_ms -= 3600000;
    lw_log_flush(sink);
    assert_non_null(strstr(written(), "3 more like this"));
}

/* 500 events share 64 places; together the lines and the counts are all that was said. */
static void
no_repeat_is_lost_when_events_push_each_other_out(void **state)
{
    (void)state;
    unsigned told = 0;
    create(LW_LOG_FORMAT_TEXT);
    for (int i = 0; i < 500; i++) {
        char event[32];
        snprintf(event, sizeof event, "event.%d", i);
        say_many(7, event);
        for (const char *at = written(); *at; at = strchr(at, '\n') + 1) {
            const char *more = strstr(at, " more like this");
            const char *end = strchr(at, '\n');
            told += more && more < end ? (unsigned)atoi(more - 2) : 1;
        }
    }
    wall_ms += 10000;
    lw_log_flush(sink);
    for (const char *at = written(); *at; at = strchr(at, '\n') + 1) {
        told += (unsigned)atoi(strstr(at, " more like this") - 2);
    }
    assert_int_equal(told, 3500);
}

static void
destroying_says_what_is_still_folded(void **state)
{
    (void)state;
    create(LW_LOG_FORMAT_TEXT);
    say_many(7, "retry");
    written();
    lw_log_destroy(sink);
    sink = NULL;
    assert_non_null(strstr(written(), "2 more like this in the last 1s"));
}

/* -- Trouble ------------------------------------------------------------------------------------ */

static void
lines_that_a_full_descriptor_refused_are_counted(void **state)
{
    (void)state;
    char filler[4096] = { 0 };
    create(LW_LOG_FORMAT_TEXT);
    while (write(pipe_fds[1], filler, sizeof filler) > 0) {
    }
    say(LW_LOG_WARN, "one", "lost", "");
    say(LW_LOG_WARN, "two", "lost", "");
    while (read(pipe_fds[0], filler, sizeof filler) > 0) {
    }
    say(LW_LOG_WARN, "three", "seen", "");
    assert_string_equal(written(), "03:04:05 warn  log lines could not be written  lines=2\n"
                                   "03:04:05 warn  seen\n");
}

static void
lack_of_memory_still_names_the_event(void **state)
{
    (void)state;
    create(LW_LOG_FORMAT_TEXT);
    lw_alloc_fail_at(1);
    say(LW_LOG_ERROR, "broker.down", "down", "");
    assert_string_equal(written(), "laneway: out of memory, event broker.down\n");
    struct lw_log *other = NULL;
    struct lw_log_options options;
    lw_log_options_init(&options);
    options.service = "x";
    for (uint64_t nth = 1; nth <= 2; nth++) {
        lw_alloc_fail_at(nth);
        assert_int_equal(lw_log_create(&options, &other), LW_STATUS_NO_MEMORY);
    }
}

static void *
say_from_thread(void *argument)
{
    (void)argument;
    for (int i = 0; i < 100; i++) {
        lw_log_write(LW_LOG_DEBUG, "thread", "a sentence of some length", "a=1 b=2", sink);
    }
    return NULL;
}

static void
lines_of_several_threads_do_not_mix(void **state)
{
    (void)state;
    pthread_t threads[4];
    create(LW_LOG_FORMAT_TEXT);
    lw_log_set_level(sink, LW_LOG_DEBUG);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, say_from_thread, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    const char line[] = "03:04:05 debug a sentence of some length  a=1 b=2\n";
    const char *at = written();
    assert_int_equal(strlen(at), 400 * strlen(line));
    for (; *at; at += strlen(line)) {
        assert_memory_equal(at, line, strlen(line));
    }
}

static void
level_names_are_read_and_written(void **state)
{
    (void)state;
    enum lw_log_level level = LW_LOG_ERROR;
    for (int i = LW_LOG_ERROR; i <= LW_LOG_TRACE; i++) {
        assert_true(lw_log_level_parse(lw_log_level_name((enum lw_log_level)i), &level));
        assert_int_equal(level, i);
    }
    assert_false(lw_log_level_parse("loud", &level));
}

#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(text_form_has_time_level_sentence_and_fields),
        LOG_TEST(json_form_has_all_names_and_keeps_types),
        LOG_TEST(format_is_json_where_nobody_looks),
        LOG_TEST(fields_may_hold_anything),
        LOG_TEST(quoting_and_reading_back_gives_the_same),
        LOG_TEST(quoting_is_cut_with_its_closing_quote),
        LOG_TEST(text_form_stays_one_line_and_shows_control_characters),
        LOG_TEST(journal_form_begins_with_the_priority),
        LOG_TEST(lines_below_the_level_are_not_written),
        LOG_TEST(repeats_are_folded_and_counted_when_their_window_ends),
        LOG_TEST(another_event_says_the_fold_of_the_first_when_it_is_over),
        LOG_TEST(events_are_folded_each_on_its_own),
        LOG_TEST(fold_without_a_code_names_its_event),
        LOG_TEST(debug_lines_and_exempt_events_are_never_folded),
        LOG_TEST(clock_that_is_set_back_ends_the_window),
        LOG_TEST(no_repeat_is_lost_when_events_push_each_other_out),
        LOG_TEST(destroying_says_what_is_still_folded),
        LOG_TEST(lines_that_a_full_descriptor_refused_are_counted),
        LOG_TEST(lack_of_memory_still_names_the_event),
        LOG_TEST(lines_of_several_threads_do_not_mix),
        cmocka_unit_test(level_names_are_read_and_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
