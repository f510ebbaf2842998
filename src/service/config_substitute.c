/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over all scalars. A reference is never looked at twice: a value that contains "${" by
 * itself stays as it is. One line end at the end of a secret file is dropped, since editors put
 * it there; all other blanks are part of the secret.
 */
#include "service/config_substitute.h"

#include <ctype.h>
#include <string.h>

#include "service/config_file.h"

enum { SECRET_BYTES_MAX = 64 * 1024, VALUE_BYTES_MAX = 256 * 1024, SHOWN_BYTES_MAX = 80 };

struct substitution {
    struct lw_node *node;
    const struct lw_config_env *env;
    struct lw_config_arena *arena;
    struct lw_diagnostics *diagnostics;
    struct lw_text text;
    bool is_failed;
};

static struct lw_diagnostic *
refuse(struct substitution *work, const char *code, const char *what)
{
    work->is_failed = true;
    return lw_diagnostics_add(work->diagnostics, LW_SEVERITY_ERROR, code, &work->node->place,
                              "%s", what);
}

static void
put_file(struct substitution *work, const char *path)
{
    char shown[SHOWN_BYTES_MAX];
    const struct lw_document *document = work->node->place.document;
    const char *from = document && document->directory ? document->directory : ".";
    const char *where = lw_config_file_join(from, path, work->arena);
    struct lw_config_file file;
    if (!where) {
        work->is_failed = true;
        return;
    }
    if (!lw_config_file_read(where, SECRET_BYTES_MAX, work->arena, &file)) {
        work->is_failed = true;
        if (!work->arena->is_failed) {
            lw_diagnostics_add(work->diagnostics, LW_SEVERITY_ERROR, "E0115",
                               &work->node->place, "cannot read \"%s\": %s",
                               lw_text_shown(path, shown, sizeof(shown)), file.why);
        }
        return;
    }
    if (memchr(file.text, '\0', file.size)) {
        refuse(work, "E0115", "a file for a value must be text without zero bytes");
        return;
    }
    size_t size = file.size;
    size -= size > 0 && file.text[size - 1] == '\n' ? 1 : 0;
    size -= size > 0 && size < file.size && file.text[size - 1] == '\r' ? 1 : 0;
    lw_text_append_bytes(&work->text, file.text, size);
}

static size_t
name_length(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') {
        length++;
    }
    return isdigit((unsigned char)text[0]) ? 0 : length;
}

static void
put_variable(struct substitution *work, const char *reference)
{
    size_t length = name_length(reference);
    const char *rest = reference + length;
    bool has_default = strncmp(rest, ":-", 2) == 0;
    if (length == 0 || (*rest != '\0' && !has_default)) {
        struct lw_diagnostic *item = refuse(
            work, "E0120", "a reference is ${NAME}, ${NAME:-default} or ${file:path}");
        lw_diagnostic_help(item, "write $$ for a dollar sign");
        return;
    }
    const char *value = lw_config_env_get(work->env, reference, length);
    if (has_default && (!value || *value == '\0')) {
        value = rest + 2;
    }
    if (value) {
        lw_text_append(&work->text, value);
        return;
    }
    char shown[SHOWN_BYTES_MAX];
    work->is_failed = true;
    struct lw_diagnostic *item = lw_diagnostics_add(
        work->diagnostics, LW_SEVERITY_ERROR, "E0114", &work->node->place,
        "the environment variable \"%s\" is not set",
        lw_text_shown(reference, shown, sizeof(shown)));
    lw_diagnostic_help(item, "set it, or give a default: ${%s:-value}", shown);
}

/* Puts what stands between the braces of a reference; `at` is behind "${". */
static const char *
put_reference(struct substitution *work, const char *at)
{
    const char *end = strchr(at, '}');
    if (!end) {
        struct lw_diagnostic *item = refuse(work, "E0120", "\"${\" has no closing brace");
        lw_diagnostic_help(item, "write $$ for a dollar sign");
        return at + strlen(at);
    }
    const char *reference = lw_config_arena_text(work->arena, at, (size_t)(end - at));
    work->node->is_secret = true;
    if (!reference) {
        work->is_failed = true;
    } else if (strncmp(reference, "file:", 5) == 0) {
        put_file(work, reference + 5);
    } else {
        put_variable(work, reference);
    }
    return end + 1;
}

static void
substitute_node(struct substitution *work)
{
    const char *at = work->node->text;
    lw_text_clear(&work->text);
    while (*at && !work->is_failed) {
        size_t length = strcspn(at, "$");
        lw_text_append_bytes(&work->text, at, length);
        at += length;
        if (at[0] == '$' && at[1] == '{') {
            at = put_reference(work, at + 2);
        } else if (at[0] == '$') {
            lw_text_append_char(&work->text, '$');
            at += at[1] == '$' ? 2 : 1;
        }
    }
    if (work->text.size > VALUE_BYTES_MAX && !work->is_failed) {
        refuse(work, "E0120", "the value is longer than 256KiB");
    }
    work->node->is_bad |= work->is_failed;
    work->arena->is_failed |= work->text.is_failed;
    char *value = work->is_failed
                      ? NULL
                      : lw_config_arena_text(work->arena, work->text.data, work->text.size);
    if (value) {
        work->node->text = value;
        work->node->is_quoted = true;
    }
}

void
lw_config_substitute(struct lw_node *root, const struct lw_config_env *env,
                     struct lw_config_arena *arena, struct lw_diagnostics *diagnostics)
{
    struct substitution work = { .env = env, .arena = arena, .diagnostics = diagnostics };
    lw_text_init(&work.text);
    for (struct lw_node *node = root; node && !arena->is_failed;
         node = lw_node_next(root, node)) {
        if (node->kind == LW_NODE_SCALAR && node->origin == LW_ORIGIN_FILE && node->text &&
            strchr(node->text, '$')) {
            work.node = node;
            work.is_failed = false;
            substitute_node(&work);
        }
    }
    lw_text_deinit(&work.text);
}
