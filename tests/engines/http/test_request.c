/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_request.c: the headers of a request, line by line: CloudEvents that are passed on, every
 * byte that a message may hold, memory that is kept, and lack of memory.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "engines/http/request.h"
#include "tests/engines/world.h"

struct stage {
    struct world *world;
    struct lw_http_request request;
    struct lw_http_fixed fixed;
    struct lw_curl_line *lines;
};

static void
write_all(struct stage *stage, struct lw_header *headers, size_t count)
{
    stage->world->headers = headers;
    stage->world->header_count = count;
    stage->fixed.content_type = lw_bytes_of("application/octet-stream");
    struct lw_delivery *delivery = world_delivery(stage->world, "v");
    stage->lines = lw_http_request_write(&stage->request, delivery, &stage->fixed, 5000);
    assert_non_null(stage->lines);
}

static void
begin(struct stage *stage)
{
    memset(stage, 0, sizeof *stage);
    stage->world = world_create();
    lw_http_request_init(&stage->request);
}

static void
end(struct stage *stage)
{
    lw_http_request_deinit(&stage->request);
    world_destroy(stage->world);
}

/* The line that begins with `name`, or NULL; fails when there are two. */
static const char *
line_of(const struct stage *stage, const char *name)
{
    const char *found = NULL;
    for (const struct lw_curl_line *line = stage->lines; line; line = line->next) {
        if (strncmp(line->data, name, strlen(name)) == 0) {
            assert_null(found);
            found = line->data;
        }
    }
    return found;
}

static void
an_event_keeps_its_own_attributes(void **state)
{
    struct stage stage;
    struct lw_header headers[] = {
        { lw_bytes_of("ce_specversion"), lw_bytes_of("1.0") },
        { lw_bytes_of("ce_id"), lw_bytes_of("A-7") },
        { lw_bytes_of("ce_source"), lw_bytes_of("/shop one") },
        { lw_bytes_of("ce_type"), lw_bytes_of("order.\"new\"") },
    };
    (void)state;
    begin(&stage);
    write_all(&stage, headers, 4);
    assert_string_equal(line_of(&stage, "ce-id"), "ce-id: A-7");
    assert_string_equal(line_of(&stage, "ce-source"), "ce-source: /shop%20one");
    assert_string_equal(line_of(&stage, "ce-type"), "ce-type: order.%22new%22");
    assert_string_equal(line_of(&stage, "ce-specversion"), "ce-specversion: 1.0");
    assert_string_equal(line_of(&stage, "x-laneway-message-id"),
                        "x-laneway-message-id: main/orders/3/0");
    assert_null(line_of(&stage, "x-msg-ce"));
    end(&stage);
}

static void
no_byte_of_a_name_or_value_breaks_out_of_its_line(void **state)
{
    struct stage stage;
    (void)state;
    begin(&stage);
    for (int i = 0; i < 256; i++) {
        char bytes[] = { 'a', (char)i, 'b' };
        struct lw_header header = { { bytes, sizeof bytes }, { bytes, sizeof bytes } };
        write_all(&stage, &header, 1);
        const char *line = line_of(&stage, "x-msg-");
        assert_non_null(line);
        for (const char *at = line; *at; at++) {
            assert_true(*at >= ' ' && *at < 0x7f);
        }
        assert_non_null(strstr(line, ": a"));
        assert_int_equal(strchr(line, ':') - line < 12, 1);
    }
    end(&stage);
}

static void
repeated_empty_and_null_headers_are_kept(void **state)
{
    struct stage stage;
    struct lw_header headers[] = {
        { lw_bytes_of("a"), lw_bytes_of("1") },
        { lw_bytes_of("a"), lw_bytes_of("") },
        { lw_bytes_of(""), { NULL, 0 } },
        { lw_bytes_of("b"), lw_bytes_of(" x ") },
        { lw_bytes_of("traceparent"), lw_bytes_of("00-\n") },
    };
    static const char *const expected[] = { "x-msg-a: 1", "x-msg-a;", "x-msg-;",
                                            "x-msg-b: %20x%20", "x-msg-traceparent: 00-%0A" };
    size_t count = 0;
    (void)state;
    begin(&stage);
    write_all(&stage, headers, 5);
    for (const struct lw_curl_line *line = stage.lines; line; line = line->next) {
        if (strncmp(line->data, "x-msg-", 6) == 0) {
            assert_string_equal(line->data, expected[count++]);
        }
    }
    assert_int_equal(count, 5);
    assert_null(line_of(&stage, "traceparent"));
    end(&stage);
}

static void
what_is_fixed_comes_behind(void **state)
{
    struct stage stage;
    char text[] = "x-tenant: 7";
    struct lw_curl_line fixed = { text, NULL };
    (void)state;
    begin(&stage);
    stage.fixed.lines = &fixed;
    stage.fixed.authorization = lw_bytes_of("authorization: Bearer abc");
    write_all(&stage, NULL, 0);
    assert_string_equal(line_of(&stage, "x-tenant"), "x-tenant: 7");
    assert_string_equal(line_of(&stage, "authorization"), "authorization: Bearer abc");
    assert_string_equal(line_of(&stage, "x-laneway-deadline"), "x-laneway-deadline: 5000");
    end(&stage);
}

static void
once_grown_a_request_allocates_nothing(void **state)
{
    struct stage stage;
    struct lw_header header = { lw_bytes_of("a"), lw_bytes_of("1") };
    (void)state;
    begin(&stage);
    write_all(&stage, &header, 1);
    uint64_t before = lw_alloc_count();
    for (int i = 0; i < 100; i++) {
        write_all(&stage, &header, 1);
    }
    assert_int_equal(lw_alloc_count(), before);
    end(&stage);
}

static void
lack_of_memory_is_told_and_passes(void **state)
{
    struct lw_header header = { lw_bytes_of("a"), lw_bytes_of("1") };
    (void)state;
    for (uint64_t n = 1;; n++) {
        struct stage stage;
        begin(&stage);
        stage.world->headers = &header;
        stage.world->header_count = 1;
        stage.fixed.content_type = lw_bytes_of("text/plain");
        struct lw_delivery *delivery = world_delivery(stage.world, "v");
        lw_alloc_fail_at(n);
        uint64_t before = lw_alloc_count();
        struct lw_curl_line *lines = lw_http_request_write(&stage.request, delivery,
                                                           &stage.fixed, -1);
        bool has_failed = lw_alloc_count() - before >= n;
        lw_alloc_fail_at(0);
        assert_int_equal(has_failed, lines == NULL);
        assert_non_null(lw_http_request_write(&stage.request, delivery, &stage.fixed, -1));
        end(&stage);
        if (!has_failed) {
            assert_true(n > 1);
            return;
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_keeps_its_own_attributes),
        cmocka_unit_test(no_byte_of_a_name_or_value_breaks_out_of_its_line),
        cmocka_unit_test(repeated_empty_and_null_headers_are_kept),
        cmocka_unit_test(what_is_fixed_comes_behind),
        cmocka_unit_test(once_grown_a_request_allocates_nothing),
        cmocka_unit_test(lack_of_memory_is_told_and_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
