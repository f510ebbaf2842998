/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers in shared objects: where the file lies, and, when the configuration is to be checked
 * against what is there, whether the handler can be loaded and its engine can run it. Loading runs
 * the constructors of the shared object, but no function of the handler.
 */
#include <string.h>

#include "engines/common/plugin_file.h"
#include "service/config_build.h"
#include "service/config_file.h"
#include "service/handler_fit.h"

enum { HELP_BYTES_MAX = 256 };

/* The loader's own words; a path that came from a secret is not among them. */
static void
tell(struct lw_config_build *build, const struct lw_config_handler *handler,
     const struct lw_node *node, const struct lw_error *error)
{
    struct lw_diagnostic *item = NULL;
    if (node->is_secret) {
        item = lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, error->code,
                                  &node->place, "handler \"%s\" cannot be loaded from ***",
                                  handler->name);
    } else {
        item = lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, error->code,
                                  &node->place, "%s", error->message);
    }
    if (error->help[0] != '\0') {
        lw_diagnostic_help(item, "%s", error->help);
    }
}

/* "it has only handle_async" */
static const char *
lack_of(enum lw_handler_form form)
{
    const char *name = lw_handler_form_name(form);
    const char *what = strstr(name, "has ");
    return what ? what : name;
}

static void
refuse_form(struct lw_config_build *build, const struct lw_config_handler *handler,
            const struct lw_node *node, enum lw_handler_form form)
{
    char help[HELP_BYTES_MAX];
    const struct lw_node *engine = lw_node_child(handler->node, "engine");
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0311", engine ? &engine->place : &node->place,
        "engine \"%s\" cannot run handlers.%s: it %s", lw_engine_kind_name(handler->run.engine),
        handler->name, lack_of(form));
    lw_diagnostic_show(item, lw_node_name_place(node));
    lw_handler_fit_help(form, help, sizeof help);
    lw_diagnostic_help(item, "%s", help);
}

static void
refuse_batch(struct lw_config_build *build, const struct lw_config_handler *handler,
             const struct lw_node *node, const struct lw_node *batch)
{
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0320", lw_node_name_place(batch),
        "handlers.%s takes one message at a time: the plug-in has no form for several",
        handler->name);
    lw_diagnostic_show(item, lw_node_name_place(node));
    lw_diagnostic_help(item, "leave batch out, or give the plug-in handle_batch");
}

/* Only now it is known which forms it has. */
static void
check_form(struct lw_config_build *build, const struct lw_config_handler *handler,
           const struct lw_node *node, const struct lw_handler_plugin *table)
{
    bool is_several = handler->run.batch.size > 1;
    enum lw_handler_form form = lw_handler_plugin_form(table, handler->run.engine, is_several);
    const struct lw_node *batch = lw_node_child(handler->node, "batch");
    if (is_several && batch && !lw_handler_plugin_takes_several(form)) {
        refuse_batch(build, handler, node, batch);
    } else if (!lw_handler_fits(handler->run.engine, form) &&
               lw_handler_fits(handler->run.engine, LW_FORM_PLUGIN)) {
        refuse_form(build, handler, node, form);
    }
}

static void
try_loading(struct lw_config_build *build, const struct lw_config_handler *handler,
            const struct lw_node *node)
{
    struct lw_error error = { 0 };
    struct lw_plugin_file file;
    enum lw_status status = lw_plugin_file_load(handler->name, handler->run.plugin,
                                                handler->run.symbol, &file, &error);
    if (status != LW_STATUS_OK) {
        tell(build, handler, node, &error);
        return;
    }
    check_form(build, handler, node, &file.table);
    lw_plugin_file_close(&file);
}

void
lw_config_build_plugin(struct lw_config_build *build, struct lw_config_handler *handler)
{
    const struct lw_node *node = lw_node_child(handler->node, "plugin");
    const struct lw_document *document = node->place.document;
    const char *directory = document && document->directory ? document->directory : ".";
    if (!handler->run.plugin) {
        lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0121",
                           lw_node_name_place(node), "handlers.%s.plugin is empty",
                           handler->name);
        return;
    }
    bool is_here = strcmp(directory, ".") == 0;
    const char *path = handler->run.plugin;
    path += !is_here && strncmp(path, "./", 2) == 0 ? 2 : 0;
    handler->run.plugin = lw_config_file_join(directory, path, build->arena);
    if (build->source->resolve_programs && handler->run.plugin) {
        try_loading(build, handler, node);
    }
}
