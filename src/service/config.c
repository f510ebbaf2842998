/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading, top to bottom: read the sources, lay them over each other, put references in, hang
 * the schema on the tree, build, check the rules. Every step reports what it can and leaves the
 * rest usable, so that one run tells everything that is wrong.
 */
#include "service/config.h"

#include <string.h>

#include "base/alloc.h"
#include "service/config_bind.h"
#include "service/config_build.h"
#include "service/config_check.h"
#include "service/config_env.h"
#include "service/config_file.h"
#include "service/config_override.h"
#include "service/config_rows.h"
#include "service/config_substitute.h"
#include "service/config_yaml.h"

enum { SHOWN_BYTES_MAX = 80 };

/* Reads a document and lays it over the tree; false when it cannot be used. */
static bool
add_document(struct lw_config_build *build, const struct lw_document *document)
{
    struct lw_node *tree = lw_config_yaml_read(document, build->arena, build->diagnostics);
    if (!tree) {
        return false;
    }
    if (build->config->root) {
        lw_node_merge(build->config->root, tree);
    } else {
        build->config->root = tree;
    }
    return true;
}

static bool
add_file(struct lw_config_build *build, const char *path)
{
    struct lw_config_file file;
    struct lw_document *document = lw_config_arena_take(build->arena, sizeof(*document));
    char *name = lw_config_arena_text(build->arena, path, strlen(path));
    const char *directory = lw_config_file_directory(path, build->arena);
    if (!document || !name || !directory) {
        return false;
    }
    if (!lw_config_file_read(path, LW_YAML_BYTES_MAX + 1, build->arena, &file)) {
        struct lw_place place = { .name = path };
        if (!build->arena->is_failed) {
            lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0116", &place,
                               "the file cannot be read: %s", file.why);
        }
        return false;
    }
    *document = (struct lw_document){
        .name = name, .directory = directory, .text = file.text, .size = file.size
    };
    return add_document(build, document);
}

static bool
add_text(struct lw_config_build *build, const struct lw_config_text *text)
{
    struct lw_document *document = lw_config_arena_take(build->arena, sizeof(*document));
    char *copy = lw_config_arena_text(build->arena, text->text, text->size);
    char *name = lw_config_arena_text(build->arena, text->name, strlen(text->name));
    if (!document || !copy || !name) {
        return false;
    }
    document->name = name;
    document->directory = lw_config_file_directory(name, build->arena);
    document->text = copy;
    document->size = text->size;
    return document->directory && add_document(build, document);
}

static bool
read_documents(struct lw_config_build *build)
{
    const struct lw_config_source *source = build->source;
    bool is_fine = true;
    for (size_t i = 0; i < source->file_count; i++) {
        is_fine = add_file(build, source->files[i]) && is_fine;
    }
    for (size_t i = 0; i < source->text_count; i++) {
        is_fine = add_text(build, &source->texts[i]) && is_fine;
    }
    if (!build->config->root && is_fine) {
        lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0116", NULL,
                           "no configuration file is given");
    }
    return is_fine && build->config->root;
}

/* Turns the scalar `orders` into the section `{ name: orders }`. */
static void
unfold_topic(struct lw_config_build *build, struct lw_node *item)
{
    struct lw_node *name = lw_node_create(build->arena, LW_NODE_SCALAR);
    if (!name) {
        return;
    }
    *name = *item;
    name->key = "name";
    name->key_place = item->place;
    item->kind = LW_NODE_MAP;
    item->first = NULL;
    item->last = NULL;
    lw_node_append(item, name);
}

static void
unfold_list(struct lw_config_build *build, struct lw_node *list)
{
    for (struct lw_node *item = list->first; item; item = item->next) {
        if (item->kind == LW_NODE_SCALAR && !lw_node_is_empty(item)) {
            unfold_topic(build, item);
        }
    }
}

/* Lists of topics may hold bare names. */
static void
unfold_topics(struct lw_config_build *build)
{
    struct lw_node *pipelines = lw_node_child(build->config->root, "pipelines");
    struct lw_node *entry = pipelines ? pipelines->first : NULL;
    for (; entry; entry = entry->next) {
        struct lw_node *topics = lw_node_child(entry, "topics");
        if (topics && topics->kind == LW_NODE_LIST) {
            unfold_list(build, topics);
        }
    }
}

static void
check_version(struct lw_config_build *build)
{
    char shown[SHOWN_BYTES_MAX];
    const struct lw_node *root = build->config->root;
    const struct lw_node *node = lw_node_child(root, "version");
    if (node && node->kind == LW_NODE_SCALAR && !node->is_bad && strcmp(node->text, "1") != 0) {
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0112", &node->place,
            "version \"%s\" of the format is not known",
            lw_node_shown(node, shown, sizeof(shown)));
        lw_diagnostic_help(item, "write version: 1");
    }
}

static void
read_env(struct lw_config_build *build, struct lw_config_env *env)
{
    const struct lw_config_source *source = build->source;
    env->environment = source->env;
    for (size_t i = 0; i < source->env_file_count; i++) {
        lw_config_env_read(env, source->env_files[i], build->arena, build->diagnostics);
    }
}

static void
lay_over(struct lw_config_build *build)
{
    struct lw_config_env env = { .first = NULL };
    struct lw_node *root = build->config->root;
    read_env(build, &env);
    lw_config_override_env(root, &env, build->arena, build->diagnostics);
    lw_config_override_set(root, build->source->sets, build->source->set_count, build->arena,
                           build->diagnostics);
    lw_config_substitute(root, &env, build->arena, build->diagnostics);
}

static void
build_all(struct lw_config_build *build)
{
    lw_config_build_service(build);
    lw_config_build_brokers(build);
    lw_config_build_handlers(build);
    lw_config_build_pipelines(build);
}

static void
check_all(struct lw_config_build *build)
{
    lw_config_check_topics(build);
    lw_config_check_retry(build);
    lw_config_check_pulsar(build);
    lw_config_check_limits(build);
    lw_config_check_client(build);
    lw_config_check_spool(build);
}

/* Runs the steps one after another; without memory the next one has nothing to stand on. */
static void
load(struct lw_config_build *build)
{
    static void (*const steps[])(struct lw_config_build *) = { unfold_topics, lay_over,
                                                               check_version };
    static void (*const later_steps[])(struct lw_config_build *) = { build_all, check_all };
    if (!read_documents(build)) {
        return;
    }
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (!build->arena->is_failed) {
            steps[i](build);
        }
    }
    if (!build->arena->is_failed) {
        lw_config_bind_check(build->config->root, &lw_config_root, build->diagnostics);
    }
    for (size_t i = 0; i < sizeof(later_steps) / sizeof(later_steps[0]); i++) {
        if (!build->arena->is_failed) {
            later_steps[i](build);
        }
    }
}

struct lw_config *
lw_config_load(const struct lw_config_source *source, struct lw_diagnostics *diagnostics)
{
    struct lw_config *config = lw_alloc(sizeof(*config));
    if (!config) {
        diagnostics->is_out_of_memory = true;
        return NULL;
    }
    lw_config_arena_init(&config->arena);
    struct lw_config_build build = {
        .config = config, .arena = &config->arena, .diagnostics = diagnostics, .source = source
    };
    load(&build);
    diagnostics->is_out_of_memory |= config->arena.is_failed;
    lw_diagnostics_sort(diagnostics);
    if (lw_diagnostics_has_error(diagnostics)) {
        lw_config_destroy(config);
        return NULL;
    }
    return config;
}

void
lw_config_destroy(struct lw_config *config)
{
    if (config) {
        lw_config_arena_deinit(&config->arena);
        lw_free(config);
    }
}
