/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A value from outside the files becomes a scalar node (or, for a list option, the list that it
 * spells) with the variable or --set as its place; types are checked with everything else.
 */
#include "service/config_override.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "service/config_path.h"
#include "service/config_rows.h"
#include "service/config_yaml.h"
#include "service/source_line.h"

#define PREFIX "LANEWAY_"

enum { NAME_BYTES_MAX = 160, SHOWN_BYTES_MAX = 80 };

/* Variables that are read elsewhere, or that we set for handlers. */
static const char *const other_variables[] = {
    "CONFIG",       "URL",         "PROTOCOL",    "SERVICE", "HANDLER",   "TOPIC",
    "PARTITION",    "OFFSET",      "KEY",         "ATTEMPT", "TIMESTAMP", "MESSAGE_ID",
    "FD",           "HISTORY",     "TEST_STRICT", "CACHE",   "REPLAY_MS", "BROKER_DIR",
    "BROKER_OWNER", "WRITE_PAGES", NULL,
};

struct override {
    struct lw_node *root;
    struct lw_config_arena *arena;
    struct lw_diagnostics *diagnostics;
    enum lw_origin_kind origin;
    struct lw_place place;
};

static bool
is_list(const struct lw_option *row)
{
    return row->type == LW_OPTION_TEXTS || row->type == LW_OPTION_DURATIONS;
}

static struct lw_node *
make_value(struct override *work, const struct lw_config_path *path, const char *text)
{
    struct lw_node *value = NULL;
    if (is_list(path->row) && text[0] == '[') {
        value = lw_config_yaml_value(text, &work->place, work->arena, work->diagnostics);
    } else {
        value = lw_node_create(work->arena, LW_NODE_SCALAR);
        char *copy = lw_config_arena_text(work->arena, text, strlen(text));
        if (value && copy) {
            value->text = copy;
            value->is_quoted = true;
        }
        value = copy ? value : NULL;
    }
    if (value) {
        const char *key = path->keys[path->count - 1];
        value->place = work->place;
        value->origin = work->origin;
        value->is_secret = key && lw_name_is_secret(key, strlen(key));
    }
    return value;
}

static void
put(struct override *work, const struct lw_config_path *path, const char *text)
{
    struct lw_node *value = make_value(work, path, text);
    if (value) {
        (void)lw_config_path_put(path, work->root, value, work->arena);
    }
}

static const char *
nearest(const struct lw_config_path *path)
{
    return path->allowed ? lw_option_nearest(path->allowed, path->parts[path->bad]) : NULL;
}

static void
append_upper(struct lw_text *out, const char *text)
{
    for (; *text; text++) {
        lw_text_append_char(out, (char)toupper((unsigned char)*text));
    }
}

/* The variable as it should have been written: the wrong part replaced. */
static void
help_variable(const struct lw_config_path *path, struct lw_diagnostic *item)
{
    const char *better = nearest(path);
    struct lw_text name;
    lw_text_init(&name);
    for (size_t i = 0; better && i < path->count; i++) {
        char part[SHOWN_BYTES_MAX];
        lw_text_append(&name, i > 0 ? "__" : PREFIX);
        append_upper(&name, i == path->bad ? better
                                           : lw_text_shown(path->parts[i], part, sizeof(part)));
    }
    if (name.size > 0 && !name.is_failed) {
        lw_diagnostic_help(item, "did you mean %s?", name.data);
    }
    lw_text_deinit(&name);
}

static bool
is_other(const char *name)
{
    for (const char *const *other = other_variables; *other; other++) {
        if (strcmp(*other, name) == 0) {
            return true;
        }
    }
    return strncmp(name, "HEADER_", 7) == 0;
}

/* LANEWAY_CONCURRENCY: most likely a key of service; else one of the names that are known. */
static void
help_short(const char *name, struct lw_diagnostic *item)
{
    char lower[NAME_BYTES_MAX];
    size_t length = strlen(name);
    for (size_t i = 0; i <= length && length < sizeof(lower); i++) {
        lower[i] = (char)tolower((unsigned char)name[i]);
    }
    const char *key = length < sizeof(lower) ? lw_option_nearest(lw_service_rows, lower) : NULL;
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (const char *const *other = other_variables; *other; other++) {
        size_t distance = 0;
        if (lw_option_is_near(name, *other, &distance) && distance < best_distance) {
            best = *other;
            best_distance = distance;
        }
    }
    if (key) {
        char upper[NAME_BYTES_MAX];
        size_t size = 0;
        for (; size < sizeof(upper) - 1 && key[size]; size++) {
            upper[size] = (char)toupper((unsigned char)key[size]);
        }
        upper[size] = '\0';
        lw_diagnostic_help(item, "did you mean " PREFIX "SERVICE__%s?", upper);
    } else if (best) {
        lw_diagnostic_help(item, "did you mean " PREFIX "%s?", best);
    } else {
        lw_diagnostic_help(item, "a value is set by " PREFIX "SECTION__KEY, such as " PREFIX
                                 "SERVICE__CONCURRENCY");
    }
}

static void
apply_variable(struct override *work, const char *name, const char *value)
{
    char shown[SHOWN_BYTES_MAX];
    struct lw_config_path path;
    bool has_parts = strstr(name, "__") != NULL;
    if (!has_parts && is_other(name)) {
        return;
    }
    if (has_parts && lw_config_path_split_variable(&path, name) &&
        lw_config_path_find(&path, work->root, work->arena)) {
        put(work, &path, value);
        return;
    }
    if (work->arena->is_failed) {
        return;
    }
    struct lw_diagnostic *item = lw_diagnostics_add(
        work->diagnostics, LW_SEVERITY_WARNING, "W0302", &work->place,
        "the variable " PREFIX "%s sets nothing", lw_text_shown(name, shown, sizeof(shown)));
    if (has_parts) {
        help_variable(&path, item);
    } else {
        help_short(name, item);
    }
}

static void
apply_env_files(struct override *work, const struct lw_config_var *var)
{
    /* The list begins with the latest; what comes later must win, so it goes in last. */
    size_t count = 0;
    for (const struct lw_config_var *each = var; each; each = each->next) {
        count++;
    }
    const struct lw_config_var **order = lw_config_arena_array(work->arena, count + 1,
                                                               sizeof(void *));
    for (size_t i = count; order && i > 0; i--, var = var->next) {
        order[i - 1] = var;
    }
    for (size_t i = 0; order && i < count; i++) {
        if (strncmp(order[i]->name, PREFIX, strlen(PREFIX)) == 0) {
            work->place = order[i]->place;
            apply_variable(work, order[i]->name + strlen(PREFIX), order[i]->value);
        }
    }
}

void
lw_config_override_env(struct lw_node *root, const struct lw_config_env *env,
                       struct lw_config_arena *arena, struct lw_diagnostics *diagnostics)
{
    struct override work = {
        .root = root, .arena = arena, .diagnostics = diagnostics, .origin = LW_ORIGIN_ENV_FILE
    };
    apply_env_files(&work, env->first);
    work.origin = LW_ORIGIN_ENVIRONMENT;
    for (const char *const *entry = env->environment; entry && *entry; entry++) {
        const char *equals = strchr(*entry, '=');
        if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0 || !equals) {
            continue;
        }
        char *name = lw_config_arena_text(arena, *entry, (size_t)(equals - *entry));
        if (name) {
            char shown[SHOWN_BYTES_MAX];
            lw_text_shown(name, shown, sizeof(shown));
            work.place = (struct lw_place){ .name = lw_config_arena_text(arena, shown,
                                                                         strlen(shown)) };
            apply_variable(&work, name + strlen(PREFIX), equals + 1);
        }
    }
}

static void
refuse_set(struct override *work, const struct lw_config_path *path)
{
    struct lw_text where;
    char shown[SHOWN_BYTES_MAX];
    const char *better = nearest(path);
    lw_text_init(&where);
    lw_config_path_print(path, path->bad, &where);
    char in[SHOWN_BYTES_MAX] = "";
    if (where.size > 0) {
        lw_text_shown(where.data, in, sizeof(in));
    }
    struct lw_diagnostic *item = lw_diagnostics_add(
        work->diagnostics, LW_SEVERITY_ERROR, "E0118", &work->place, "\"%s\" %s%s%s",
        lw_text_shown(path->parts[path->bad], shown, sizeof(shown)), path->problem,
        in[0] != '\0' ? ", in " : "", in);
    if (better) {
        lw_diagnostic_help(item, "did you mean \"%s\"?", better);
    }
    lw_text_deinit(&where);
}

static void
apply_set(struct override *work, const char *set)
{
    struct lw_config_path path;
    const char *equals = strchr(set, '=');
    char *text = lw_config_arena_text(work->arena, set, equals ? (size_t)(equals - set) : 0);
    if (!text) {
        return;
    }
    char shown[SHOWN_BYTES_MAX];
    work->place.name = lw_config_arena_format(work->arena, "--set %s",
                                              lw_text_shown(text, shown, sizeof(shown)));
    if (!equals || !lw_config_path_split(&path, text)) {
        work->place.name = "--set";
        struct lw_diagnostic *item = lw_diagnostics_add(work->diagnostics, LW_SEVERITY_ERROR,
                                                        "E0118", &work->place,
                                                        "this is not PATH=VALUE");
        lw_diagnostic_help(item, "write it as in --set service.concurrency=40");
        return;
    }
    if (lw_config_path_find(&path, work->root, work->arena)) {
        put(work, &path, equals + 1);
    } else if (!work->arena->is_failed) {
        refuse_set(work, &path);
    }
}

void
lw_config_override_set(struct lw_node *root, const char *const *sets, size_t count,
                       struct lw_config_arena *arena, struct lw_diagnostics *diagnostics)
{
    struct override work = {
        .root = root, .arena = arena, .diagnostics = diagnostics, .origin = LW_ORIGIN_SET
    };
    for (size_t i = 0; i < count; i++) {
        apply_set(&work, sets[i]);
    }
}
