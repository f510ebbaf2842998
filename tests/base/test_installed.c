/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_installed.c: helper programs are found in the build folder, and near a file upwards; one
 * that others may write is not taken.
 */
#include "tests/support/test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/installed.h"

/* A prefix with libexec/laneway/tool in it. */
struct prefix {
    char root[64];
    char tool[PATH_MAX];
    char command[PATH_MAX];
};

static int
setup(void **state)
{
    static struct prefix prefix;
    char path[PATH_MAX];
    static const char *const folders[] = { "/bin", "/libexec", "/libexec/laneway" };
    (void)snprintf(prefix.root, sizeof prefix.root, "/tmp/laneway-test-XXXXXX");
    assert_non_null(mkdtemp(prefix.root));
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s%s", prefix.root, folders[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    (void)snprintf(prefix.command, sizeof prefix.command, "%s/bin/command", prefix.root);
    (void)snprintf(prefix.tool, sizeof prefix.tool, "%s/libexec/laneway/tool", prefix.root);
    FILE *file = fopen(prefix.tool, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(prefix.tool, 0755), 0);
    *state = &prefix;
    return 0;
}

static int
teardown(void **state)
{
    struct prefix *prefix = *state;
    static const char *const parts[] = { "/libexec/laneway/tool", "/libexec/laneway",
                                         "/libexec", "/bin", "" };
    for (size_t i = 0; i < 5; i++) {
        char path[PATH_MAX];
        (void)snprintf(path, sizeof path, "%s%s", prefix->root, parts[i]);
        assert_int_equal(remove(path), 0);
    }
    return 0;
}

static void
a_helper_is_found_beside_the_command(void **state)
{
    struct prefix *prefix = *state;
    char path[PATH_MAX];
    assert_true(lw_installed_find_near(prefix->command, "tool", path, sizeof path));
    assert_string_equal(path, prefix->tool);
    assert_false(lw_installed_find_near(prefix->command, "other", path, sizeof path));
    assert_false(lw_installed_find_near("command", "tool", path, sizeof path));
    assert_false(lw_installed_find_near(prefix->command, "tool", path, 8));
}

static void
a_helper_that_everybody_may_write_or_nobody_may_run_is_not_taken(void **state)
{
    struct prefix *prefix = *state;
    char path[PATH_MAX];
    assert_int_equal(chmod(prefix->tool, 0757), 0);
    assert_false(lw_installed_find_near(prefix->command, "tool", path, sizeof path));
    assert_int_equal(chmod(prefix->tool, 0644), 0);
    assert_false(lw_installed_find_near(prefix->command, "tool", path, sizeof path));
}

static void
a_helper_of_somebody_else_is_not_taken(void **state)
{
    struct prefix *prefix = *state;
    char path[PATH_MAX];
    if (geteuid() != 0) {
        print_message("left out: only root may give a file away\n");
        return;
    }
    assert_int_equal(chown(prefix->tool, 4711, 4711), 0);
    assert_false(lw_installed_find_near(prefix->command, "tool", path, sizeof path));
}

/* Whoever may change the folder, or the link, decides what is run later. */
static void
a_helper_in_a_folder_that_everybody_may_write_is_not_taken(void **state)
{
    struct prefix *prefix = *state;
    char path[PATH_MAX];
    char folder[PATH_MAX];
    static const char *const folders[] = { "/libexec", "/libexec/laneway" };
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(folder, sizeof folder, "%s%s", prefix->root, folders[i]);
        assert_int_equal(chmod(folder, 01777), 0);
        assert_false(lw_installed_find_near(prefix->command, "tool", path, sizeof path));
        assert_int_equal(chmod(folder, 0755), 0);
        assert_true(lw_installed_find_near(prefix->command, "tool", path, sizeof path));
    }
}

static void
a_helper_by_a_link_of_somebody_else_is_not_taken(void **state)
{
    struct prefix *prefix = *state;
    char path[PATH_MAX];
    char link[PATH_MAX];
    if (geteuid() != 0) {
        print_message("left out: only root may give a link away\n");
        return;
    }
    (void)snprintf(link, sizeof link, "%s/libexec/laneway/link", prefix->root);
    assert_int_equal(symlink("tool", link), 0);
    bool is_found = lw_installed_find_near(prefix->command, "link", path, sizeof path);
    assert_int_equal(lchown(link, 4711, 4711), 0);
    bool is_found_still = lw_installed_find_near(prefix->command, "link", path, sizeof path);
    assert_int_equal(remove(link), 0);
    assert_true(is_found);
    assert_false(is_found_still);
}

static void
the_build_folder_has_its_helpers(void **state)
{
    char path[PATH_MAX];
    (void)state;
    assert_true(lw_installed_find("laneway-exec", path, sizeof path));
    assert_non_null(strstr(path, "/libexec/laneway/laneway-exec"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_helper_is_found_beside_the_command, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_helper_that_everybody_may_write_or_nobody_may_run_is_not_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(a_helper_of_somebody_else_is_not_taken, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            a_helper_in_a_folder_that_everybody_may_write_is_not_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(a_helper_by_a_link_of_somebody_else_is_not_taken, setup,
                                        teardown),
        cmocka_unit_test(the_build_folder_has_its_helpers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
