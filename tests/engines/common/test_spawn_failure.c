/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said of a process that could not be started: for the errno that posix_spawn gives for a
 * real file, the words that tell what to change.
 */
#include "tests/support/test.h"

#include "engines/common/spawn_failure.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct folder {
    char path[64];
    char file[80];
};

static int
make_folder(void **state)
{
    struct folder *folder = calloc(1, sizeof *folder);
    (void)snprintf(folder->path, sizeof folder->path, "/tmp/laneway-spawn-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    (void)snprintf(folder->file, sizeof folder->file, "%s/x", folder->path);
    *state = folder;
    return 0;
}

static int
remove_folder(void **state)
{
    struct folder *folder = *state;
    (void)unlink(folder->file);
    (void)rmdir(folder->file);
    (void)rmdir(folder->path);
    free(folder);
    return 0;
}

static void
write_file(const struct folder *folder, const char *text, mode_t mode)
{
    FILE *file = fopen(folder->file, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(folder->file, mode), 0);
}

/*
 * The words about what the system says when it is run in that directory: the errno is the one that
 * we think, but under an emulator, whose posix_spawn does not learn what became of the child.
 */
static const char *
said(const char *program, const char *directory, int expected)
{
    static char out[PATH_MAX];
    char name[PATH_MAX];
    pid_t pid = 0;
    posix_spawn_file_actions_t actions;
    (void)snprintf(name, sizeof name, "%s", program);
    char *argv[] = { name, NULL };
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    if (directory) {
        assert_int_equal(posix_spawn_file_actions_addchdir_np(&actions, directory), 0);
    }
    int failed = posix_spawnp(&pid, name, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (failed == 0) {
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    assert_true(failed == 0 || failed == expected);
    return lw_spawn_failure_program(program, directory, expected, out, sizeof out);
}

static void
a_script_without_a_first_line_is_told_what_it_needs(void **state)
{
    struct folder *folder = *state;
    write_file(folder, "echo hello\n", 0755);
    assert_non_null(strstr(said(folder->file, NULL, ENOEXEC), "#!"));
    assert_non_null(strstr(said("./x", folder->path, ENOEXEC), "#!"));
}

static void
an_interpreter_that_is_not_there_is_not_a_file_that_is_not_there(void **state)
{
    struct folder *folder = *state;
    write_file(folder, "#!/none/at/all\n", 0755);
    assert_non_null(strstr(said("./x", folder->path, ENOENT), "the file is there"));
    assert_int_equal(unlink(folder->file), 0);
    assert_string_equal(said("./x", folder->path, ENOENT), "");
}

static void
what_may_not_be_executed_and_a_folder_are_told_apart(void **state)
{
    struct folder *folder = *state;
    write_file(folder, "#!/bin/sh\n", 0644);
    assert_non_null(strstr(said("./x", folder->path, EACCES), "chmod +x"));
    assert_int_equal(unlink(folder->file), 0);
    assert_int_equal(mkdir(folder->file, 0755), 0);
    assert_string_equal(said("./x", folder->path, EACCES), "it is a folder");
}

static void
a_working_directory_that_is_not_there_is_named(void **state)
{
    const struct folder *folder = *state;
    char words[128];
    (void)snprintf(words, sizeof words, "its working directory %s is not there", folder->file);
    assert_non_null(strstr(said("sh", folder->file, ENOENT), words));
}

static void
a_limit_of_the_system_is_named_with_what_raises_it(void **state)
{
    static const struct {
        int code;
        const char *word;
    } cases[] = { { EAGAIN, "ulimit -u" }, { EMFILE, "ulimit -n" }, { ENFILE, "fs.file-max" },
                  { ENOMEM, "memory" },    { ENOSPC, "ring" },      { EFBIG, "ulimit -f" },
                  { E2BIG, "environment" } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_non_null(strstr(lw_spawn_failure_help(cases[i].code), cases[i].word));
    }
    assert_string_equal(lw_spawn_failure_help(EIO), "");
    assert_string_equal(lw_spawn_failure_help(0), "");
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(a_script_without_a_first_line_is_told_what_it_needs),
        WITH_FOLDER(an_interpreter_that_is_not_there_is_not_a_file_that_is_not_there),
        WITH_FOLDER(what_may_not_be_executed_and_a_folder_are_told_apart),
        WITH_FOLDER(a_working_directory_that_is_not_there_is_named),
        cmocka_unit_test(a_limit_of_the_system_is_named_with_what_raises_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
