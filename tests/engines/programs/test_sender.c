/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sender.c: text and large pieces in one stream: whatever the pipe takes at a time, the bytes
 * come out in order, whether they are still where they were, have moved, or were kept.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "engines/programs/sender.h"

enum { LARGE = 300000, ROUNDS = 400, VIEWS = 24 };

struct stream {
    int ends[2];
    struct lw_programs_sender sender;
    struct lw_text expected;
    struct lw_text seen;
};

static void
open_stream(struct stream *stream)
{
    assert_int_equal(pipe2(stream->ends, O_CLOEXEC | O_NONBLOCK), 0);
    lw_programs_sender_init(&stream->sender);
    lw_text_init(&stream->expected);
    lw_text_init(&stream->seen);
}

/* Writes what the pipe takes and reads at most so much of it. */
static void
pass(struct stream *stream, size_t most)
{
    static char bytes[LARGE];
    (void)lw_programs_sender_flush(&stream->sender, stream->ends[1]);
    ssize_t got = read(stream->ends[0], bytes, most < sizeof bytes ? most : sizeof bytes);
    lw_text_append_bytes(&stream->seen, bytes, got > 0 ? (size_t)got : 0);
}

static void
close_stream(struct stream *stream)
{
    while (stream->seen.size < stream->expected.size) {
        size_t before = stream->seen.size;
        pass(stream, LARGE);
        assert_true(stream->seen.size > before);
    }
    assert_int_equal(stream->seen.size, stream->expected.size);
    assert_memory_equal(stream->seen.data, stream->expected.data, stream->seen.size);
    assert_false(lw_programs_sender_has_more(&stream->sender));
    assert_int_equal(lw_programs_sender_place(&stream->sender), stream->expected.size);
    lw_programs_sender_deinit(&stream->sender);
    lw_text_deinit(&stream->expected);
    lw_text_deinit(&stream->seen);
    (void)close(stream->ends[0]);
    (void)close(stream->ends[1]);
}

static void
append(struct stream *stream, const struct lw_bytes *view)
{
    lw_text_append_bytes(&stream->expected, view->data, view->size);
    assert_true(lw_programs_sender_append(&stream->sender, view));
}

/* Another place for the bytes of a view, as when a message is copied out of its client. */
static void
move(struct lw_bytes *view)
{
    char *copy = malloc(view->size + 1);
    memcpy(copy, view->data, view->size);
    memset((char *)(uintptr_t)view->data, '!', view->size);
    free((void *)(uintptr_t)view->data);
    view->data = copy;
}

static void
any_mixture_of_text_and_pieces_comes_out_in_order(void **state)
{
    struct stream stream;
    struct lw_bytes views[VIEWS] = { { NULL, 0 } };
    unsigned seed = 11;
    (void)state;
    open_stream(&stream);
    for (size_t i = 0; i < ROUNDS; i++) {
        struct lw_bytes *view = &views[i % VIEWS];
        if (view->data) {
            assert_true(lw_programs_sender_keep(&stream.sender, view));
            memset((char *)(uintptr_t)view->data, '?', view->size);
            free((void *)(uintptr_t)view->data);
        }
        view->size = rand_r(&seed) % 3 ? rand_r(&seed) % 200 : rand_r(&seed) % LARGE;
        view->data = malloc(view->size + 1);
        memset((char *)(uintptr_t)view->data, (int)('a' + i % 26), view->size);
        append(&stream, view);
        if (rand_r(&seed) % 2) {
            move(&views[rand_r(&seed) % (i < VIEWS ? i + 1 : VIEWS)]);
        }
        pass(&stream, rand_r(&seed) % LARGE);
    }
    close_stream(&stream);
    for (size_t i = 0; i < VIEWS; i++) {
        free((void *)(uintptr_t)views[i].data);
    }
}

static void
what_is_taken_back_was_never_there(void **state)
{
    static char large[10000];
    struct stream stream;
    struct lw_bytes small = lw_bytes_of("small");
    struct lw_bytes piece = { large, sizeof large };
    (void)state;
    open_stream(&stream);
    append(&stream, &small);
    append(&stream, &piece);
    uint64_t place = lw_programs_sender_place(&stream.sender);
    struct lw_programs_mark mark = lw_programs_sender_mark(&stream.sender);
    for (size_t i = 0; i < 20; i++) {
        assert_true(lw_programs_sender_append(&stream.sender, &small));
        assert_true(lw_programs_sender_append(&stream.sender, &piece));
    }
    assert_int_equal(lw_programs_sender_place(&stream.sender),
                     place + 20 * (piece.size + small.size));
    lw_programs_sender_rewind(&stream.sender, mark);
    assert_int_equal(lw_programs_sender_place(&stream.sender), place);
    append(&stream, &small);
    close_stream(&stream);
}

static void
lack_of_memory_leaves_the_stream_as_it_was(void **state)
{
    static char large[10000];
    struct stream stream;
    struct lw_bytes piece = { large, sizeof large };
    uint64_t live = lw_alloc_live();
    (void)state;
    open_stream(&stream);
    lw_alloc_fail_at(1);
    assert_false(lw_programs_sender_append(&stream.sender, &piece));
    assert_false(lw_programs_sender_has_more(&stream.sender));
    append(&stream, &piece);
    lw_alloc_fail_at(1);
    assert_false(lw_programs_sender_keep(&stream.sender, &piece));
    lw_alloc_fail_at(0);
    assert_true(lw_programs_sender_keep(&stream.sender, &piece));
    close_stream(&stream);
    assert_int_equal(lw_alloc_live(), live);
}

/* Its deliveries end with it: nothing may point at them any more. */
static void
the_end_of_the_reader_forgets_all_pieces(void **state)
{
    struct stream stream;
    char *large = calloc(1, LARGE);
    struct lw_bytes piece = { large, LARGE };
    (void)state;
    open_stream(&stream);
    assert_true(lw_programs_sender_append(&stream.sender, &piece));
    pass(&stream, 1000);
    lw_programs_sender_end(&stream.sender, stream.ends[1]);
    free(large);
    assert_false(lw_programs_sender_has_more(&stream.sender));
    assert_true(lw_programs_sender_is_unread(&stream.sender, stream.sender.sent_total));
    assert_false(lw_programs_sender_is_unread(&stream.sender, 999));
    lw_programs_sender_deinit(&stream.sender);
    lw_text_deinit(&stream.expected);
    lw_text_deinit(&stream.seen);
    (void)close(stream.ends[0]);
    (void)close(stream.ends[1]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_mixture_of_text_and_pieces_comes_out_in_order),
        cmocka_unit_test(what_is_taken_back_was_never_there),
        cmocka_unit_test(lack_of_memory_leaves_the_stream_as_it_was),
        cmocka_unit_test(the_end_of_the_reader_forgets_all_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
