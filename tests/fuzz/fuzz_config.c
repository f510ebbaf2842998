/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a configuration: loaded and, if it is right, planned. An input may have up to
 * three parts, separated by a line "%%%": the file, a .env file, and lines of --set. Holds that a
 * result and errors exclude each other, and that nothing leaks.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "service/config.h"
#include "service/config_env.h"
#include "service/config_override.h"
#include "service/registry.h"

enum { SETS_MAX = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char *
property_check(const char *name, const char *value)
{
    (void)value;
    return name[0] == 'x' ? "No such configuration property: \"x\"" : NULL;
}

/* Ends the part that begins at `at` and returns the next one, or the end of the text. */
static char *
cut(char *at)
{
    char *mark = strstr(at, "\n%%%\n");
    if (!mark) {
        return at + strlen(at);
    }
    mark[1] = '\0';
    return mark + strlen("\n%%%\n");
}

static size_t
split_lines(char *text, const char *lines[SETS_MAX])
{
    size_t count = 0;
    while (*text && count < SETS_MAX) {
        char *end = text + strcspn(text, "\n");
        bool is_last = *end == '\0';
        *end = '\0';
        lines[count++] = text;
        text = is_last ? end : end + 1;
    }
    return count;
}

static void
print_all(const struct lw_config *config)
{
    struct lw_text out;
    struct lw_json json;
    lw_text_init(&out);
    lw_config_plan_print(config, &out);
    lw_text_clear(&out);
    lw_json_init(&json, &out);
    lw_config_plan_json(config, &json);
    lw_text_deinit(&out);
}

static void
read_env_file(const char *text)
{
    struct lw_config_arena arena;
    struct lw_diagnostics diagnostics;
    struct lw_config_env env = { .first = NULL };
    struct lw_document document = { .name = ".env", .text = text, .size = strlen(text) };
    lw_config_arena_init(&arena);
    lw_diagnostics_init(&diagnostics);
    struct lw_node *root = lw_node_create(&arena, LW_NODE_MAP);
    lw_config_env_parse(&env, &document, &arena, &diagnostics);
    lw_config_override_env(root, &env, &arena, &diagnostics);
    lw_diagnostics_deinit(&diagnostics);
    lw_config_arena_deinit(&arena);
}

static void
load(const char *file, size_t size, const char *const *sets, size_t set_count)
{
    static const char *const env[] = { "NAME=value", "LANEWAY_SERVICE__CONCURRENCY=3", NULL };
    const struct lw_config_client client = { .check = property_check };
    struct lw_config_text document = { "fuzz.yaml", file, size };
    struct lw_diagnostics diagnostics;
    struct lw_text print;
    struct lw_config_source source = { .texts = &document,
                                       .text_count = 1,
                                       .env = env,
                                       .sets = sets,
                                       .set_count = set_count,
                                       .clients = { [LW_CONFIG_KAFKA] = &client,
                                                    [LW_CONFIG_PULSAR] = lw_registry_client(
                                                        LW_CONFIG_PULSAR) } };
    lw_diagnostics_init(&diagnostics);
    lw_text_init(&print);
    struct lw_config *config = lw_config_load(&source, &diagnostics);
    lw_assert((config == NULL) == lw_diagnostics_has_error(&diagnostics));
    lw_diagnostics_print(&diagnostics, false, &print);
    lw_assert(print.size == 0 || lw_text_is_utf8(print.data, print.size));
    if (config) {
        print_all(config);
    }
    lw_text_deinit(&print);
    lw_config_destroy(config);
    lw_diagnostics_deinit(&diagnostics);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *sets[SETS_MAX];
    uint64_t live = lw_alloc_live();
    char *text = lw_copy_text_n((const char *)bytes, size);
    char *env_file = cut(text);
    char *set_lines = cut(env_file);
    size_t file_size = *env_file ? strlen(text) : size;
    read_env_file(env_file);
    load(text, file_size, sets, split_lines(set_lines, sets));
    lw_free(text);
    lw_assert(lw_alloc_live() == live);
    return 0;
}
