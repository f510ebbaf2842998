/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the words of a command line by the command's rows. Not getopt: we suggest the nearest
 * flag, name the command in every message, and need no global state.
 */
#include "cli/flags.h"

#include <string.h>

#include "base/text.h"
#include "cli/command.h"

static const struct lw_flag help_row = { 'h', "help", NULL, "shows this help" };

static int
stop(struct lw_cli *cli, int exit_code)
{
    cli->exit_code = exit_code;
    return LW_FLAG_STOP;
}

static const struct lw_flag *
find(const struct lw_cli *cli, const char *name, size_t length, int letter)
{
    const struct lw_flag *row = cli->command->flags;
    for (; row && row->id; row++) {
        if (name ? strlen(row->name) == length && !memcmp(row->name, name, length)
                 : row->id == letter) {
            return row;
        }
    }
    if (name ? length == 4 && !memcmp(name, "help", 4) : letter == 'h') {
        return &help_row;
    }
    return NULL;
}

static const char *
nearest(const struct lw_cli *cli, const char *name)
{
    const char *best = NULL;
    size_t best_distance = 3;
    const struct lw_flag *row = cli->command->flags;
    for (; row && row->id; row++) {
        size_t distance = lw_text_distance(name, row->name);
        if (row->doc && distance < best_distance) {
            best = row->name;
            best_distance = distance;
        }
    }
    return lw_text_distance(name, help_row.name) < best_distance ? help_row.name : best;
}

static int
unknown_name(struct lw_cli *cli, const char *name, size_t length)
{
    char copy[64];
    lw_text_copy(copy, length < sizeof copy ? length + 1 : sizeof copy, name);
    const char *near = nearest(cli, copy);
    if (near) {
        return stop(cli, lw_cli_usage(cli, "unknown option \"--%s\"; did you mean \"--%s\"?",
                                      copy, near));
    }
    return stop(cli, lw_cli_usage(cli, "unknown option \"--%s\"", copy));
}

static bool
keep(struct lw_cli *cli, const char **list, size_t *count)
{
    if (*count == LW_CLI_MANY) {
        (void)stop(cli, lw_cli_usage(cli, "more than %d of one option", LW_CLI_MANY));
        return false;
    }
    list[(*count)++] = cli->value;
    return true;
}

static bool
set_color(struct lw_cli *cli)
{
    static const char *const words[] = { "auto", "always", "never" };
    for (int i = 0; i < 3; i++) {
        if (cli->value && strcmp(words[i], cli->value) == 0) {
            cli->color = (enum lw_color)i;
            return true;
        }
    }
    (void)stop(cli,
               lw_cli_usage(cli, "--color \"%s\" is none of auto, always, never", cli->value));
    return false;
}

/* Stores a shared flag; false when it is wrong. *ret_is_shared: else it is the command's own. */
static bool
take_shared(struct lw_cli *cli, const struct lw_flag *row, bool *ret_is_shared)
{
    *ret_is_shared = true;
    switch (row->id) {
    case 'c':
        if (row->argument && strcmp(row->name, "config") == 0) {
            return keep(cli, cli->files, &cli->file_count);
        }
        break;
    case 'q':
        cli->is_quiet = true;
        return true;
    case 'v':
        cli->verbosity++;
        return true;
    case 'X':
        return keep(cli, cli->properties, &cli->property_count);
    case LW_FLAG_SET:
        return keep(cli, cli->sets, &cli->set_count);
    case LW_FLAG_ENV_FILE:
        return keep(cli, cli->env_files, &cli->env_file_count);
    case LW_FLAG_URL:
        cli->url = cli->value;
        return true;
    case LW_FLAG_JSON:
        cli->is_json = true;
        return true;
    case LW_FLAG_COLOR:
        return set_color(cli);
    default:
        break;
    }
    *ret_is_shared = false;
    return true;
}

/* Gives the flag its value, from the same word or from the next one. */
static bool
take_value(struct lw_cli *cli, const struct lw_flag *row, const char *attached)
{
    if (!row->argument) {
        cli->value = NULL;
        if (attached) {
            (void)stop(cli, lw_cli_usage(cli, "option \"--%s\" takes no value", row->name));
        }
        return !attached;
    }
    if (!attached && cli->next_word < cli->word_count) {
        attached = cli->words[cli->next_word++];
    }
    cli->value = attached;
    if (!attached) {
        (void)stop(cli, lw_cli_usage(cli, "option \"--%s\" needs a value: %s", row->name,
                                     row->argument));
    }
    return attached != NULL;
}

/* Ends with the command's own id, 0 for a shared flag, or LW_FLAG_STOP. */
static int
take(struct lw_cli *cli, const struct lw_flag *row, const char *attached)
{
    bool is_shared = false;
    if (row == &help_row) {
        lw_help_command(cli->command, false, &cli->out);
        return stop(cli, LW_EXIT_OK);
    }
    if (!take_value(cli, row, attached) || !take_shared(cli, row, &is_shared)) {
        return LW_FLAG_STOP;
    }
    return is_shared ? 0 : row->id;
}

static int
take_long(struct lw_cli *cli, const char *name)
{
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct lw_flag *row = find(cli, name, length, 0);
    if (!row) {
        return unknown_name(cli, name, length);
    }
    return take(cli, row, equals ? equals + 1 : NULL);
}

static int
take_letter(struct lw_cli *cli)
{
    char letter = *cli->cluster++;
    const struct lw_flag *row = find(cli, NULL, 0, letter);
    const char *rest = *cli->cluster ? cli->cluster : NULL;
    if (!row) {
        return stop(cli, lw_cli_usage(cli, "unknown option \"-%c\"", letter));
    }
    if (!rest || row->argument) {
        cli->cluster = NULL;
    }
    return take(cli, row, row->argument ? rest : NULL);
}

static int
take_word(struct lw_cli *cli, char *word)
{
    if (cli->is_flags_end || word[0] != '-' || word[1] == '\0') {
        if (cli->argument_count == LW_CLI_MANY) {
            return stop(cli, lw_cli_usage(cli, "more than %d arguments", LW_CLI_MANY));
        }
        cli->arguments[cli->argument_count++] = word;
        unsigned program_at = cli->command->program_at;
        cli->is_flags_end |= program_at > 0 && cli->argument_count > program_at;
        return 0;
    }
    if (word[1] != '-') {
        cli->cluster = word + 1;
        return 0;
    }
    if (word[2] == '\0') {
        cli->is_flags_end = true;
        return 0;
    }
    return take_long(cli, word + 2);
}

int
lw_cli_next(struct lw_cli *cli)
{
    while (cli->cluster || cli->next_word < cli->word_count) {
        int id = cli->cluster ? take_letter(cli) : take_word(cli, cli->words[cli->next_word++]);
        if (id != 0) {
            return id;
        }
    }
    return LW_FLAG_END;
}

_Bool
lw_cli_number(struct lw_cli *cli, const char *name, long long min, long long max,
              long long *ret_value)
{
    int64_t value = 0;
    if (!lw_text_to_int(cli->value, &value) || value < min || value > max) {
        (void)stop(cli, lw_cli_usage(cli, "--%s \"%s\" is no whole number from %lld to %lld",
                                     name, cli->value, min, max));
        return false;
    }
    *ret_value = value;
    return true;
}
