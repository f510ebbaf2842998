/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets: what counts as a file, what is said of one that cannot be read, and what is taken off
 * and refused in a token.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"

static void
three_spellings_of_a_file_are_one_path(void **state)
{
    (void)state;
    assert_string_equal(lw_secret_path("file:///a/b"), "/a/b");
    assert_string_equal(lw_secret_path("file:/a/b"), "/a/b");
    assert_string_equal(lw_secret_path("file:b"), "b");
    assert_null(lw_secret_path("env:FILE"));
    assert_null(lw_secret_path("abc"));
}

static const char *
read_of(size_t bytes, struct lw_text *out, char *why, size_t size)
{
    char path[] = "/tmp/laneway-secret-XXXXXX";
    char *text = calloc(1, bytes + 1);
    int fd = mkstemp(path);
    memset(text, 'x', bytes);
    assert_int_equal(write(fd, text, bytes), bytes);
    close(fd);
    free(text);
    const char *fault = lw_secret_read_file(path, out, why, size);
    unlink(path);
    return fault;
}

static void
a_file_is_read_up_to_its_bound(void **state)
{
    (void)state;
    char why[128];
    struct lw_text text;
    lw_text_init(&text);
    assert_null(read_of(LW_SECRET_BYTES_MAX, &text, why, sizeof why));
    assert_int_equal(text.size, LW_SECRET_BYTES_MAX);
    lw_text_clear(&text);
    assert_string_equal(read_of(LW_SECRET_BYTES_MAX + 1, &text, why, sizeof why),
                        "is larger than 64 KiB");
    lw_text_deinit(&text);
}

static void
a_file_that_cannot_be_read_says_why(void **state)
{
    (void)state;
    char why[128];
    struct lw_text text;
    lw_text_init(&text);
    assert_string_equal(lw_secret_read_file("/nowhere/at/all", &text, why, sizeof why),
                        "cannot be read: No such file or directory");
    assert_string_equal(lw_secret_read_file("/tmp", &text, why, sizeof why), "cannot be read");
    lw_text_deinit(&text);
}

static const char *
fault_of(const char *text, const char *left)
{
    struct lw_text token;
    lw_text_init(&token);
    lw_text_append(&token, text);
    const char *fault = lw_secret_tidy_token(&token);
    if (left) {
        assert_string_equal(token.data, left);
    }
    lw_text_deinit(&token);
    return fault;
}

static void
a_token_loses_the_white_space_around_it_and_has_none_within(void **state)
{
    (void)state;
    assert_null(fault_of(" \ta.b.c\r\n", "a.b.c"));
    assert_string_equal(fault_of(" \n", ""), "is empty");
    assert_string_equal(fault_of("", NULL), "is empty");
    assert_string_equal(fault_of("a b", "a b"), "holds blanks or control characters");
    assert_string_equal(fault_of("a\xc3\xa4", NULL), "holds blanks or control characters");
    assert_non_null(strstr(fault_of("BEARER abc", NULL), "\"Bearer\""));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_spellings_of_a_file_are_one_path),
        cmocka_unit_test(a_file_is_read_up_to_its_bound),
        cmocka_unit_test(a_file_that_cannot_be_read_says_why),
        cmocka_unit_test(a_token_loses_the_white_space_around_it_and_has_none_within),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
