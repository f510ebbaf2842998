/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_reader.c: lines out of a pipe, however the bytes arrive, within bounds; and the sender on
 * the other side, which knows what was never read.
 */
#include "tests/support/test.h"

#include "engines/programs/reader.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "engines/programs/sender.h"

struct pipe_pair {
    int read_fd;
    int write_fd;
};

static struct pipe_pair
open_pipe(void)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    return (struct pipe_pair){ .read_fd = ends[0], .write_fd = ends[1] };
}

static void
put(struct pipe_pair pair, const char *text)
{
    assert_int_equal(write(pair.write_fd, text, strlen(text)), strlen(text));
}

static void
expect_line(struct lw_programs_reader *reader, const char *text)
{
    struct lw_bytes line;
    assert_true(lw_programs_reader_next(reader, &line));
    assert_true(lw_text_is_equal(line, text));
}

static void
expect_none(struct lw_programs_reader *reader)
{
    struct lw_bytes line;
    assert_false(lw_programs_reader_next(reader, &line));
}

static void
lines_come_whole_however_they_arrive(void **state)
{
    struct pipe_pair pair = open_pipe();
    struct lw_programs_reader reader;
    (void)state;
    lw_programs_reader_init(&reader, 100, false);
    put(pair, "one\ntwo\r\n\nthr");
    assert_int_equal(lw_programs_reader_fill(&reader, pair.read_fd), LW_PROGRAMS_READ_SOME);
    expect_line(&reader, "one");
    expect_line(&reader, "two");
    expect_line(&reader, "");
    expect_none(&reader);
    assert_int_equal(lw_programs_reader_fill(&reader, pair.read_fd), LW_PROGRAMS_READ_NOTHING);
    put(pair, "ee\nrest");
    lw_programs_reader_fill(&reader, pair.read_fd);
    expect_line(&reader, "three");
    expect_none(&reader);
    close(pair.write_fd);
    assert_int_equal(lw_programs_reader_fill(&reader, pair.read_fd), LW_PROGRAMS_READ_END);
    struct lw_bytes rest;
    assert_true(lw_programs_reader_rest(&reader, &rest));
    assert_true(lw_text_is_equal(rest, "rest"));
    assert_false(lw_programs_reader_rest(&reader, &rest));
    lw_programs_reader_deinit(&reader);
    close(pair.read_fd);
}

static void
a_line_beyond_the_bound_is_an_error_or_cut(void **state)
{
    struct pipe_pair pair = open_pipe();
    struct lw_programs_reader strict;
    struct lw_programs_reader cutting;
    (void)state;
    lw_programs_reader_init(&strict, 8, false);
    lw_programs_reader_init(&cutting, 8, true);
    put(pair, "12345678\n123456789\n");
    lw_programs_reader_fill(&strict, pair.read_fd);
    expect_line(&strict, "12345678");
    expect_none(&strict);
    assert_true(strict.is_overlong);
    put(pair, "abcdefghijklmnopqr\nend\n");
    lw_programs_reader_fill(&cutting, pair.read_fd);
    expect_line(&cutting, "abcdefgh");
    expect_line(&cutting, "ijklmnop");
    expect_line(&cutting, "qr");
    expect_line(&cutting, "end");
    assert_false(cutting.is_overlong);
    lw_programs_reader_deinit(&strict);
    lw_programs_reader_deinit(&cutting);
    close(pair.read_fd);
    close(pair.write_fd);
}

/* Writes pieces of random sizes; the same lines must come out. */
static void
any_cutting_of_the_stream_gives_the_same_lines(void **state)
{
    struct pipe_pair pair = open_pipe();
    struct lw_programs_reader reader;
    struct lw_text stream;
    struct lw_text seen;
    unsigned seed = 7;
    (void)state;
    lw_programs_reader_init(&reader, 1 << 20, false);
    lw_text_init(&stream);
    lw_text_init(&seen);
    for (size_t i = 0; i < 300; i++) {
        for (size_t k = rand_r(&seed) % 2000; k > 0; k--) {
            lw_text_append_char(&stream, (char)('a' + i % 26));
        }
        lw_text_append_char(&stream, '\n');
    }
    for (size_t at = 0; at < stream.size;) {
        size_t piece = 1 + rand_r(&seed) % 5000;
        piece = piece < stream.size - at ? piece : stream.size - at;
        assert_int_equal(write(pair.write_fd, stream.data + at, piece), piece);
        at += piece;
        lw_programs_reader_fill(&reader, pair.read_fd);
        struct lw_bytes line;
        while (lw_programs_reader_next(&reader, &line)) {
            lw_text_append_bytes(&seen, line.data, line.size);
            lw_text_append_char(&seen, '\n');
        }
    }
    assert_int_equal(seen.size, stream.size);
    assert_memory_equal(seen.data, stream.data, stream.size);
    lw_programs_reader_deinit(&reader);
    lw_text_deinit(&stream);
    lw_text_deinit(&seen);
    close(pair.read_fd);
    close(pair.write_fd);
}

static void
the_buffer_shrinks_after_a_long_line(void **state)
{
    enum { SIZE = 1 << 21 };
    struct pipe_pair pair = open_pipe();
    struct lw_programs_reader reader;
    char *block = malloc(4096);
    (void)state;
    memset(block, 'x', 4096);
    lw_programs_reader_init(&reader, SIZE + 1, false);
    for (size_t at = 0; at < SIZE; at += 4096) {
        assert_int_equal(write(pair.write_fd, block, 4096), 4096);
        lw_programs_reader_fill(&reader, pair.read_fd);
        expect_none(&reader);
    }
    put(pair, "\n");
    lw_programs_reader_fill(&reader, pair.read_fd);
    struct lw_bytes line;
    assert_true(lw_programs_reader_next(&reader, &line));
    assert_int_equal(line.size, SIZE);
    assert_true(reader.capacity >= SIZE);
    put(pair, "short\n");
    lw_programs_reader_fill(&reader, pair.read_fd);
    expect_line(&reader, "short");
    assert_true(reader.capacity < SIZE / 4);
    free(block);
    lw_programs_reader_deinit(&reader);
    close(pair.read_fd);
    close(pair.write_fd);
}

static void
the_sender_waits_for_room_and_goes_on(void **state)
{
    struct pipe_pair pair = open_pipe();
    struct lw_programs_sender sender;
    size_t total = 0;
    char sink[8192];
    (void)state;
    lw_programs_sender_init(&sender);
    lw_programs_sender_begin(&sender);
    for (size_t i = 0; i < 40000; i++) {
        lw_text_format(&sender.text, "line %zu\n", i);
    }
    size_t size = sender.text.size;
    assert_int_equal(lw_programs_sender_flush(&sender, pair.write_fd), LW_PROGRAMS_SENT_SOME);
    while (total < size) {
        ssize_t got = read(pair.read_fd, sink, sizeof sink);
        assert_true(got > 0);
        total += (size_t)got;
        lw_programs_sender_flush(&sender, pair.write_fd);
    }
    assert_int_equal(total, size);
    assert_false(lw_programs_sender_has_more(&sender));
    assert_int_equal(sender.sent_total, size);
    lw_programs_sender_deinit(&sender);
    close(pair.read_fd);
    close(pair.write_fd);
}

static void
what_lay_in_the_pipe_when_the_reader_died_was_never_read(void **state)
{
    struct pipe_pair pair = open_pipe();
    struct lw_programs_sender sender;
    char sink[10];
    (void)state;
    lw_programs_sender_init(&sender);
    lw_programs_sender_begin(&sender);
    uint64_t first = lw_programs_sender_place(&sender);
    lw_text_append(&sender.text, "0123456789");
    uint64_t second = lw_programs_sender_place(&sender);
    lw_text_append(&sender.text, "0123456789");
    lw_programs_sender_flush(&sender, pair.write_fd);
    uint64_t third = lw_programs_sender_place(&sender);
    lw_text_append(&sender.text, "0123456789");
    assert_int_equal(read(pair.read_fd, sink, sizeof sink), sizeof sink);
    close(pair.read_fd);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(lw_programs_sender_flush(&sender, pair.write_fd), LW_PROGRAMS_SENT_CLOSED);
    lw_programs_sender_end(&sender, pair.write_fd);
    assert_false(lw_programs_sender_is_unread(&sender, first));
    assert_true(lw_programs_sender_is_unread(&sender, second));
    assert_true(lw_programs_sender_is_unread(&sender, third));
    lw_programs_sender_deinit(&sender);
    close(pair.write_fd);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole_however_they_arrive),
        cmocka_unit_test(a_line_beyond_the_bound_is_an_error_or_cut),
        cmocka_unit_test(any_cutting_of_the_stream_gives_the_same_lines),
        cmocka_unit_test(the_buffer_shrinks_after_a_long_line),
        cmocka_unit_test(the_sender_waits_for_room_and_goes_on),
        cmocka_unit_test(what_lay_in_the_pipe_when_the_reader_died_was_never_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
