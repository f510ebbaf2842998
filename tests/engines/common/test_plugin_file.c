/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plugin_file.c: what is loaded, and what everything that cannot be loaded is told. The shared
 * objects are those of tests/plugins.
 */
#include "tests/support/test.h"

#include "engines/common/plugin_file.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLUGIN(name) LW_BINARY_DIR "/tests/plugins/" name ".so"

struct folder {
    char path[64];
    char file[80];
};

static int
make_folder(void **state)
{
    struct folder *folder = calloc(1, sizeof *folder);
    snprintf(folder->path, sizeof folder->path, "/tmp/laneway-plugin-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->file, sizeof folder->file, "%s/x.so", folder->path);
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
write_file(const struct folder *folder, const void *data, size_t size)
{
    FILE *file = fopen(folder->file, "w");
    assert_true(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

/* Loads, expecting a refusal with these parts of its text and of its help. */
static void
refused(const char *path, const char *symbol, const char *code, const char *says,
        const char *help)
{
    struct lw_error error = { 0 };
    struct lw_plugin_file file;
    assert_int_equal(lw_plugin_file_load("orders", path, symbol, &file, &error),
                     LW_STATUS_CONFIG);
    assert_string_equal(error.code, code);
    if (!strstr(error.message, says) || !strstr(error.help, help) ||
        !strstr(error.message, "handler \"orders\"")) {
        fail_msg("%s\nhelp: %s", error.message, error.help);
    }
}

static struct lw_plugin_file
loaded(const char *path, const char *symbol)
{
    struct lw_error error = { 0 };
    struct lw_plugin_file file;
    enum lw_status status = lw_plugin_file_load("orders", path, symbol, &file, &error);
    if (status != LW_STATUS_OK) {
        fail_msg("%s", error.message);
    }
    return file;
}

/* -- Files --------------------------------------------------------------------------------------- */

static void
a_file_that_is_not_there_is_said_so(void **state)
{
    (void)state;
    refused("/nonexistent/x.so", NULL, "E0601", "/nonexistent/x.so: No such file or directory",
            "begins at the folder of the configuration file");
    refused("/dev/null/x.so", NULL, "E0601", "Not a directory", "correct `plugin`");
}

static void
a_folder_or_a_device_is_no_plugin(void **state)
{
    struct folder *folder = *state;
    assert_int_equal(mkdir(folder->file, 0700), 0);
    refused(folder->file, NULL, "E0601", "it is not a file", "");
    refused("/dev/null", NULL, "E0601", "it is not a file", "");
}

static void
a_file_that_may_not_be_read_is_said_so(void **state)
{
    struct folder *folder = *state;
    write_file(folder, "x", 1);
    assert_int_equal(chmod(folder->file, 0), 0);
    bool is_root = geteuid() == 0; /* who may read everything */
    assert_true(!is_root || seteuid(65534) == 0);
    refused(folder->file, NULL, "E0601", "Permission denied", "must be allowed to read");
    assert_true(!is_root || seteuid(0) == 0);
}

static void
other_kinds_of_files_are_told_apart(void **state)
{
    struct folder *folder = *state;
    ElfW(Ehdr) head = { .e_type = ET_REL };
    write_file(folder, "#!/bin/sh\n", 10);
    refused(folder->file, NULL, "E0601", "it is not a shared object", "cc -shared -fPIC");
    write_file(folder, "", 0);
    refused(folder->file, NULL, "E0601", "it is not a shared object", "cc -shared -fPIC");
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASSNONE;
    write_file(folder, &head, sizeof head);
    refused(folder->file, NULL, "E0601", "another kind of machine", "on this machine");
}

/* The object file of a source, and the program itself, are what people give by mistake. */
static void
a_program_is_no_plugin(void **state)
{
    (void)state;
    struct lw_error error = { 0 };
    struct lw_plugin_file file;
    assert_int_equal(lw_plugin_file_load("orders", "/proc/self/exe", NULL, &file, &error),
                     LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0601");
}

static char *
read_plugin(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *ret_size = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*ret_size);
    assert_int_equal(fread(data, 1, *ret_size, file), *ret_size);
    fclose(file);
    return data;
}

/* The loader would end the process over some of these lengths. */
static void
a_plugin_that_was_cut_short_is_refused_at_every_length(void **state)
{
    struct folder *folder = *state;
    size_t size = 0;
    char *data = read_plugin(PLUGIN("journal"), &size);
    const ElfW(Ehdr) *head = (const void *)data;
    const ElfW(Phdr) *parts = (const void *)(data + head->e_phoff);
    size_t needed = 0;
    for (size_t i = 0; i < head->e_phnum; i++) {
        size_t end = parts[i].p_offset + parts[i].p_filesz;
        needed = parts[i].p_type == PT_LOAD && end > needed ? end : needed;
    }
    for (size_t length = 4; length < needed; length += 97) {
        write_file(folder, data, length);
        refused(folder->file, NULL, "E0601", "cut short", "build it");
    }
    free(data);
}

/* -- What the loader refuses --------------------------------------------------------------------- */

static void
an_undefined_function_is_named(void **state)
{
    (void)state;
    refused(PLUGIN("undefined"), NULL, "E0601",
            "it uses \"nobody_defines_this\", which nobody defines", "-lNAME");
    refused(PLUGIN("undefined_of_ours"), NULL, "E0601",
            "it uses \"lw_delivery_from_the_future\"",
            "no function of Laneway " LW_VERSION_STRING);
}

static void
a_library_that_is_not_found_is_named(void **state)
{
    (void)state;
    refused(PLUGIN("needs_absent"), NULL, "E0601",
            "it needs the library \"liblaneway_absent.so\", which is not there", "rpath");
}

/* -- What is under the name ---------------------------------------------------------------------- */

static void
a_name_that_is_no_handler_is_refused(void **state)
{
    (void)state;
    refused(PLUGIN("forms"), NULL, "E0607", "\"lw_handler\" is not among what it exports",
            "LW_HANDLER(lw_handler)");
    refused(PLUGIN("forms"), "typo", "E0607", "\"typo\" is not among", "LW_HANDLER(typo)");
    refused(PLUGIN("forms"), "function", "E0607", "\"function\" is not a handler", "`symbol`");
    refused(PLUGIN("forms"), "number", "E0607", "\"number\" is not a handler", "");
    refused(PLUGIN("journal"), "fopen", "E0607", "\"fopen\" is not a handler", "");
    refused(PLUGIN("forms"), "no_size", "E0607", "is not a handler", "");
    refused(PLUGIN("forms"), "too_large", "E0607", "is not a handler", "");
    refused(PLUGIN("forms"), "neither", "E0607", "has none of handle, handle_async", "");
}

static void
another_abi_is_refused_with_both_numbers(void **state)
{
    (void)state;
    refused(PLUGIN("forms"), "other_abi", "E0608", "it was built for handler ABI 2; this is 1",
            "build it again with laneway/handler.h");
}

static void
a_newer_handler_is_taken_when_it_needs_nothing_new(void **state)
{
    (void)state;
    struct lw_plugin_file file = loaded(PLUGIN("forms"), "newer_unused");
    assert_non_null(file.table.handle);
    lw_plugin_file_close(&file);
    refused(PLUGIN("forms"), "newer_used", "E0607", "needs a newer version of Laneway", "");
}

static void
what_an_older_handler_does_not_have_is_null(void **state)
{
    (void)state;
    struct lw_plugin_file file = loaded(PLUGIN("forms"), "older");
    assert_non_null(file.table.handle);
    assert_null(file.table.handle_async);
    assert_null(file.table.open);
    assert_null(file.table.close);
    assert_string_equal(file.table.about, "older");
    lw_plugin_file_close(&file);
}

/* -- Its life ------------------------------------------------------------------------------------ */

static void
read_journal(const struct folder *folder, char *out, size_t size)
{
    FILE *file = fopen(folder->file, "r");
    assert_non_null(file);
    out[fread(out, 1, size - 1, file)] = '\0';
    fclose(file);
}

static void
a_handler_is_opened_with_its_options_and_closed_once(void **state)
{
    struct folder *folder = *state;
    char text[512];
    const struct lw_property options[] = { { "journal", folder->file }, { "table", "orders" } };
    struct lw_handler_setup setup = { .size = sizeof setup,
                                      .service = "shop",
                                      .handler = "orders",
                                      .engine = LW_ENGINE_THREADS,
                                      .worker = 3,
                                      .options = options,
                                      .option_count = 2 };
    struct lw_plugin_file file = loaded(PLUGIN("journal"), NULL);
    assert_string_equal(file.table.about, "journal 1");
    assert_int_equal(lw_plugin_file_open(&file, &setup, NULL), LW_STATUS_OK);
    assert_non_null(file.user);
    lw_plugin_file_close(&file);
    lw_plugin_file_close(&file);
    read_journal(folder, text, sizeof text);
    assert_non_null(strstr(text, "open orders of shop on threads, worker 3, no dispatcher\n"));
    assert_non_null(strstr(text, "option table=orders\nclose\n"));
    assert_null(strstr(strstr(text, "close") + 1, "close"));
}

static void
a_refused_start_is_told_in_the_plugins_words(void **state)
{
    (void)state;
    const struct lw_property options[] = { { "refuse", "the database \"shop\" is away" } };
    struct lw_error error = { 0 };
    struct lw_handler_setup setup = {
        .size = sizeof setup, .handler = "orders", .options = options, .option_count = 1
    };
    struct lw_plugin_file file = loaded(PLUGIN("journal"), NULL);
    assert_int_equal(lw_plugin_file_open(&file, &setup, &error), LW_STATUS_UNAVAILABLE);
    assert_string_equal(error.code, "E0609");
    assert_string_equal(error.message,
                        "handler \"orders\" cannot start: the database \"shop\" is away");
    assert_string_equal(error.help, "take `refuse` away");
    assert_false(file.is_open);
    lw_plugin_file_close(
        &file); /* and its close is not called: it would crash without a journal */
}

static void
one_object_may_be_loaded_for_several_handlers(void **state)
{
    (void)state;
    struct lw_plugin_file first = loaded(PLUGIN("forms"), "blocking");
    struct lw_plugin_file second = loaded(PLUGIN("forms"), "asynchronous");
    lw_plugin_file_close(&first);
    assert_null(second.table.handle);
    assert_non_null(second.table.handle_async);
    lw_plugin_file_close(&second);
}

static void
a_path_without_a_slash_is_a_file_here(void **state)
{
    struct folder *folder = *state;
    char before[512];
    size_t size = 0;
    char *data = read_plugin(PLUGIN("forms"), &size);
    write_file(folder, data, size);
    free(data);
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder->path), 0);
    struct lw_plugin_file file = loaded("x.so", "both");
    lw_plugin_file_close(&file);
    assert_int_equal(chdir(before), 0);
}

int
main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_not_there_is_said_so),
        IN_FOLDER(a_folder_or_a_device_is_no_plugin),
        IN_FOLDER(a_file_that_may_not_be_read_is_said_so),
        IN_FOLDER(other_kinds_of_files_are_told_apart),
        cmocka_unit_test(a_program_is_no_plugin),
        IN_FOLDER(a_plugin_that_was_cut_short_is_refused_at_every_length),
        cmocka_unit_test(an_undefined_function_is_named),
        cmocka_unit_test(a_library_that_is_not_found_is_named),
        cmocka_unit_test(a_name_that_is_no_handler_is_refused),
        cmocka_unit_test(another_abi_is_refused_with_both_numbers),
        cmocka_unit_test(a_newer_handler_is_taken_when_it_needs_nothing_new),
        cmocka_unit_test(what_an_older_handler_does_not_have_is_null),
        IN_FOLDER(a_handler_is_opened_with_its_options_and_closed_once),
        cmocka_unit_test(a_refused_start_is_told_in_the_plugins_words),
        cmocka_unit_test(one_object_may_be_loaded_for_several_handlers),
        IN_FOLDER(a_path_without_a_slash_is_a_file_here),
    };
#undef IN_FOLDER
    return cmocka_run_group_tests(tests, NULL, NULL);
}
