/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds, loads and reports the configuration for run, check, plan, topics, send and peek: the
 * files of -c, of arguments or of LANEWAY_CONFIG, with .env files, environment, --set and -X over
 * them.
 */
#include "cli/config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/terminal.h"
#include "service/registry.h"

/* "a.yaml,b.yaml" */
static void
split_variable(struct lw_cli_files *files)
{
    const char *value = getenv("LANEWAY_CONFIG");
    files->copy = value && value[0] ? lw_copy_text(value) : NULL;
    char *rest = files->copy;
    while (rest && files->count < LW_CLI_MANY) {
        char *comma = strchr(rest, ',');
        if (comma) {
            *comma = '\0';
        }
        if (rest[0]) {
            files->names[files->count++] = rest;
        }
        rest = comma ? comma + 1 : NULL;
    }
}

/* BROKER:NAME=VALUE; the name may hold dots, the value anything. */
static bool
is_property(const char *text)
{
    size_t broker = strcspn(text, ":=");
    size_t name = text[broker] == ':' ? strcspn(text + broker + 1, ":=") : 0;
    return broker > 0 && name > 0 && text[broker + 1 + name] == '=';
}

static bool
check_properties(struct lw_cli *cli)
{
    for (size_t i = 0; i < cli->property_count; i++) {
        if (!is_property(cli->properties[i])) {
            cli->exit_code = lw_cli_usage(
                cli, "-X \"%s\" is not BROKER:NAME=VALUE, such as main:ssl.ca.location=ca.pem",
                cli->properties[i]);
            return false;
        }
    }
    return true;
}

bool
lw_cli_files_find(struct lw_cli *cli, size_t first, struct lw_cli_files *ret_files)
{
    memset(ret_files, 0, sizeof *ret_files);
    for (size_t i = 0; i < cli->file_count; i++) {
        ret_files->names[ret_files->count++] = cli->files[i];
    }
    for (size_t i = first; i < cli->argument_count; i++) {
        ret_files->names[ret_files->count++] = cli->arguments[i];
    }
    if (ret_files->count == 0) {
        split_variable(ret_files);
    }
    if (!check_properties(cli)) {
        lw_cli_files_deinit(ret_files);
        return false;
    }
    if (ret_files->count == 0) {
        cli->exit_code = lw_cli_usage(cli,
                                      "no configuration: give -c FILE, or set LANEWAY_CONFIG");
        lw_cli_files_deinit(ret_files);
        return false;
    }
    return true;
}

void
lw_cli_files_deinit(struct lw_cli_files *files)
{
    lw_free(files->copy);
    files->copy = NULL;
}

/* What is set from the command line: --set as it is, then -X as the path that it stands for. */
struct settings {
    const char *sets[2 * LW_CLI_MANY];
    size_t count;
    struct lw_text paths[LW_CLI_MANY];
};

static void
settings_init(struct settings *settings, const struct lw_cli *cli)
{
    memset(settings, 0, sizeof *settings);
    for (size_t i = 0; i < cli->set_count; i++) {
        settings->sets[settings->count++] = cli->sets[i];
    }
    for (size_t i = 0; i < cli->property_count; i++) {
        const char *text = cli->properties[i];
        struct lw_text *path = &settings->paths[i];
        int broker = (int)strcspn(text, ":");
        lw_text_init(path);
        lw_text_format(path, "brokers.%.*s.properties.%s", broker, text, text + broker + 1);
        settings->sets[settings->count++] = path->is_failed ? "" : path->data;
    }
}

static void
settings_deinit(struct settings *settings, const struct lw_cli *cli)
{
    for (size_t i = 0; i < cli->property_count; i++) {
        lw_text_deinit(&settings->paths[i]);
    }
}

struct lw_config *
lw_cli_config_load(const struct lw_cli *cli, const struct lw_cli_files *files,
                   struct lw_diagnostics *diagnostics)
{
    struct settings settings;
    settings_init(&settings, cli);
    struct lw_config_source source = {
        .files = files->names,
        .file_count = files->count,
        .env_files = cli->env_files,
        .env_file_count = cli->env_file_count,
        .env = (const char *const *)environ,
        .sets = settings.sets,
        .set_count = settings.count,
        .resolve_programs = true,
    };
    lw_registry_clients(&source);
    lw_diagnostics_init(diagnostics);
    struct lw_config *config = lw_config_load(&source, diagnostics);
    lw_diagnostics_sort(diagnostics);
    settings_deinit(&settings, cli);
    return config;
}

void
lw_cli_config_tell(const struct lw_cli *cli, const struct lw_diagnostics *diagnostics)
{
    struct lw_text text;
    bool is_coloured = lw_terminal_is_coloured(STDERR_FILENO, cli->color);
    lw_text_init(&text);
    if (!cli->is_quiet) {
        lw_diagnostics_print(diagnostics, is_coloured, &text);
    }
    for (size_t i = 0; cli->is_quiet && i < diagnostics->count; i++) {
        if (diagnostics->items[i].severity == LW_SEVERITY_ERROR) {
            lw_diagnostic_print(&diagnostics->items[i], is_coloured, &text);
        }
    }
    if (text.size > 0) {
        (void)lw_terminal_write(STDERR_FILENO, text.data, text.size);
    }
    lw_text_deinit(&text);
}

static bool
is_file_missing(const struct lw_diagnostics *diagnostics)
{
    for (size_t i = 0; i < diagnostics->count; i++) {
        if (strcmp(diagnostics->items[i].code, "E0116") == 0) {
            return true;
        }
    }
    return false;
}

int
lw_cli_config_exit_code(const struct lw_diagnostics *diagnostics)
{
    struct lw_error error = { 0 };
    if (diagnostics->is_out_of_memory) {
        return lw_cli_fail_memory();
    }
    (void)lw_diagnostics_error(diagnostics, &error);
    return is_file_missing(diagnostics) ? LW_EXIT_NO_INPUT : lw_error_exit_code(&error);
}

struct lw_config *
lw_cli_config_require(struct lw_cli *cli, size_t first)
{
    struct lw_cli_files files;
    struct lw_diagnostics diagnostics;
    if (!lw_cli_files_find(cli, first, &files)) {
        return NULL;
    }
    struct lw_config *config = lw_cli_config_load(cli, &files, &diagnostics);
    lw_cli_config_tell(cli, &diagnostics);
    if (!config) {
        cli->exit_code = lw_cli_config_exit_code(&diagnostics);
    }
    lw_diagnostics_deinit(&diagnostics);
    lw_cli_files_deinit(&files);
    return config;
}
