/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .env files: KEY=VALUE lines, `export` allowed, comments, single quotes (as they stand) and
 * double quotes (with \n \t \" \\ \$). What such a file holds may be secret: its lines are never
 * shown in a message.
 */
#include "service/config_env.h"

#include <ctype.h>
#include <string.h>

#include "service/config_file.h"

enum { ENV_BYTES_MAX = 256 * 1024 };

/* One line being read; `at` moves. */
struct line {
    const char *at;
    const char *end;
};

static void
skip_blanks(struct line *line)
{
    while (line->at < line->end && (*line->at == ' ' || *line->at == '\t')) {
        line->at++;
    }
}

static size_t
take_name(struct line *line, const char **ret_name)
{
    const char *begin = line->at;
    while (line->at < line->end &&
           (isalnum((unsigned char)*line->at) || *line->at == '_' || *line->at == '.')) {
        line->at++;
    }
    *ret_name = begin;
    return isdigit((unsigned char)*begin) ? 0 : (size_t)(line->at - begin);
}

/* Skips `export ` before a name. */
static void
skip_export(struct line *line)
{
    static const char word[] = "export ";
    size_t left = (size_t)(line->end - line->at);
    if (left > sizeof(word) - 1 && memcmp(line->at, word, sizeof(word) - 1) == 0) {
        line->at += sizeof(word) - 1;
        skip_blanks(line);
    }
}

static char
unescape(char c)
{
    return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}

/* Reads up to the closing quote into `out`; false when there is none. */
static bool
take_quoted(struct line *line, char *out)
{
    char quote = *line->at++;
    size_t used = 0;
    while (line->at < line->end && *line->at != quote) {
        char c = *line->at++;
        if (c == '\\' && quote == '"' && line->at < line->end) {
            c = unescape(*line->at++);
        }
        out[used++] = c;
    }
    if (line->at == line->end) {
        return false;
    }
    line->at++;
    skip_blanks(line);
    return line->at == line->end || *line->at == '#';
}

static void
take_plain(struct line *line, char *out)
{
    const char *begin = line->at;
    const char *end = begin;
    for (; line->at < line->end; line->at++) {
        bool is_blank = *line->at == ' ' || *line->at == '\t';
        if (*line->at == '#' && line->at > begin &&
            (line->at[-1] == ' ' || line->at[-1] == '\t')) {
            break;
        }
        end = is_blank ? end : line->at + 1;
    }
    memcpy(out, begin, (size_t)(end - begin));
}

static bool
take_value(struct line *line, char *out)
{
    skip_blanks(line);
    if (line->at < line->end && (*line->at == '"' || *line->at == '\'')) {
        return take_quoted(line, out);
    }
    take_plain(line, out);
    return true;
}

static void
refuse(const struct lw_place *place, const char *what, struct lw_diagnostics *diagnostics)
{
    struct lw_place hidden = *place;
    hidden.document = NULL;
    struct lw_diagnostic *item = lw_diagnostics_add(diagnostics, LW_SEVERITY_ERROR, "E0119",
                                                    &hidden, "%s", what);
    lw_diagnostic_help(item, "write NAME=VALUE, NAME='as it stands' or NAME=\"with \\n\"; # "
                             "begins a comment");
}

static void
parse_line(struct lw_config_env *env, struct line line, const struct lw_place *place,
           struct lw_config_arena *arena, struct lw_diagnostics *diagnostics)
{
    const char *name = NULL;
    skip_blanks(&line);
    if (line.at == line.end || *line.at == '#') {
        return;
    }
    skip_export(&line);
    size_t length = line.at < line.end ? take_name(&line, &name) : 0;
    skip_blanks(&line);
    if (length == 0 || line.at == line.end || *line.at != '=') {
        refuse(place, "this line is not NAME=VALUE", diagnostics);
        return;
    }
    line.at++;
    struct lw_config_var *var = lw_config_arena_take(arena, sizeof(*var));
    char *copy = lw_config_arena_text(arena, name, length);
    char *value = lw_config_arena_take(arena, (size_t)(line.end - line.at) + 1);
    if (!var || !copy || !value) {
        return;
    }
    if (!take_value(&line, value)) {
        refuse(place, "the quote of this value is not closed", diagnostics);
        return;
    }
    *var = (struct lw_config_var){
        .next = env->first, .name = copy, .value = value, .place = *place
    };
    env->first = var;
}

void
lw_config_env_parse(struct lw_config_env *env, const struct lw_document *document,
                    struct lw_config_arena *arena, struct lw_diagnostics *diagnostics)
{
    struct lw_place place = { .name = document->name, .column = 1, .length = 1 };
    const char *at = document->text;
    const char *end = at + document->size;
    if (memchr(at, '\0', document->size)) {
        refuse(&place, "a .env file must not contain a zero byte", diagnostics);
        return;
    }
    while (at < end) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        struct line line = { .at = at, .end = next ? next : end };
        if (line.end > line.at && line.end[-1] == '\r') {
            line.end--;
        }
        place.line++;
        parse_line(env, line, &place, arena, diagnostics);
        at = next ? next + 1 : end;
    }
}

void
lw_config_env_read(struct lw_config_env *env, const char *path, struct lw_config_arena *arena,
                   struct lw_diagnostics *diagnostics)
{
    struct lw_document document = { .name = lw_config_arena_text(arena, path, strlen(path)) };
    struct lw_config_file file;
    if (!document.name) {
        return;
    }
    if (lw_config_file_read(path, ENV_BYTES_MAX, arena, &file)) {
        document.text = file.text;
        document.size = file.size;
        lw_config_env_parse(env, &document, arena, diagnostics);
    } else if (!arena->is_failed) {
        struct lw_place place = { .name = path };
        lw_diagnostics_add(diagnostics, LW_SEVERITY_ERROR, "E0116", &place,
                           "the file cannot be read: %s", file.why);
    }
}

const char *
lw_config_env_get(const struct lw_config_env *env, const char *name, size_t length)
{
    for (const char *const *entry = env->environment; entry && *entry; entry++) {
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
            return *entry + length + 1;
        }
    }
    for (const struct lw_config_var *var = env->first; var; var = var->next) {
        if (strlen(var->name) == length && strncmp(var->name, name, length) == 0) {
            return var->value;
        }
    }
    return NULL;
}
