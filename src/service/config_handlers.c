/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: what is run (a program, a plug-in, a built-in, a function of the embedding program)
 * and which engine runs it. Keys that would change nothing for that kind are said aloud.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "engines/processes/engine.h"
#include "engines/processes/origin.h"
#include "service/config_bind.h"
#include "service/config_build.h"
#include "service/config_env.h"
#include "service/config_exit_codes.h"
#include "service/config_file.h"
#include "service/config_rows.h"
#include "service/handler_fit.h"
#include "service/options.h"

enum { SHOWN_BYTES_MAX = 80, HELP_BYTES_MAX = 256, KIND_COUNT = 5 };

static const char *const kind_keys[KIND_COUNT] = {
    [LW_CONFIG_PROGRAM] = "program",   [LW_CONFIG_BUILTIN] = "builtin",
    [LW_CONFIG_FUNCTION] = "function", [LW_CONFIG_PLUGIN] = "plugin",
    [LW_CONFIG_HTTP] = "http",
};

/* What follows the name of a built-in. */
enum builtin_value { VALUE_NONE, VALUE_DURATION, VALUE_COUNT };

static const struct builtin {
    const char *name;
    enum lw_config_builtin builtin;
    enum builtin_value value;
    bool is_loop_only;
    bool is_threads_only;
} builtins[] = {
    { "noop", LW_BUILTIN_NOOP, VALUE_NONE, false, false },
    { "echo", LW_BUILTIN_ECHO, VALUE_NONE, false, false },
    { "sleep", LW_BUILTIN_SLEEP, VALUE_DURATION, false, true },
    { "io", LW_BUILTIN_IO, VALUE_DURATION, true, false },
    { "cpu", LW_BUILTIN_CPU, VALUE_COUNT, false, true },
    { "fail-n", LW_BUILTIN_FAIL_N, VALUE_COUNT, false, false },
};

static const struct builtin *
find_builtin(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++) {
        if (strlen(builtins[i].name) == length &&
            strncmp(builtins[i].name, name, length) == 0) {
            return &builtins[i];
        }
    }
    return NULL;
}

static bool
read_value(const struct builtin *builtin, const char *text, int64_t *ret_value)
{
    const char *why = NULL;
    if (builtin->value == VALUE_NONE) {
        return *text == '\0';
    }
    if (*text != ':') {
        return false;
    }
    return builtin->value == VALUE_DURATION
               ? lw_text_to_duration_ms(text + 1, ret_value, &why) && *ret_value <= 3600000
               : lw_text_to_int(text + 1, ret_value) && *ret_value >= 0 &&
                     *ret_value <= 1000000000;
}

/* Reads "sleep:5ms"; NULL after reporting. */
static const struct builtin *
read_builtin(struct lw_config_build *build, struct lw_config_handler *handler)
{
    char shown[SHOWN_BYTES_MAX];
    const char *text = handler->builtin_text;
    size_t length = strcspn(text, ":");
    const struct builtin *builtin = find_builtin(text, length);
    if (builtin && read_value(builtin, text + length, &handler->builtin_value)) {
        handler->builtin = builtin->builtin;
        return builtin;
    }
    const struct lw_node *node = lw_node_child(handler->node, "builtin");
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0106", &node->place,
        "\"%s\" is not a built-in handler", lw_node_shown(node, shown, sizeof(shown)));
    lw_diagnostic_help(item, "one of noop, echo, sleep:5ms, io:5ms, cpu:500, fail-n:3");
    return NULL;
}

/* Finds the one kind that is given; false after reporting none or several. */
static bool
find_kind(struct lw_config_build *build, struct lw_config_handler *handler)
{
    const struct lw_node *given[KIND_COUNT] = { NULL };
    size_t count = 0;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const struct lw_node *node = lw_node_child(handler->node, kind_keys[i]);
        if (node) {
            handler->kind = (enum lw_config_handler_kind)i;
            given[count++] = node;
        }
    }
    if (count == 0) {
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0107", lw_node_name_place(handler->node),
            "handlers.%s needs \"program\", \"plugin\", \"http\", \"builtin\" or \"function\"",
            handler->name);
        lw_diagnostic_help(item, "such as program: [python3, handler.py]");
    }
    if (count > 1) {
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0311", lw_node_name_place(given[1]),
            "handlers.%s has both \"%s\" and \"%s\"", handler->name, given[0]->key,
            given[1]->key);
        lw_diagnostic_show(item, lw_node_name_place(given[0]));
        lw_diagnostic_help(item,
                           "a handler is one of program, plugin, http, builtin and function");
    }
    return count == 1 && !given[0]->is_bad;
}

static enum lw_handler_form
form_of(const struct lw_config_handler *handler)
{
    switch (handler->kind) {
    case LW_CONFIG_PROGRAM:
        return LW_FORM_PROGRAM;
    case LW_CONFIG_PLUGIN:
        return LW_FORM_PLUGIN;
    case LW_CONFIG_HTTP:
        return LW_FORM_SERVICE;
    case LW_CONFIG_BUILTIN:
    case LW_CONFIG_FUNCTION:
        break;
    }
    return LW_FORM_FUNCTION;
}

/* NULL when the engine can run it; else what can, perhaps written into `help`. */
static const char *
engine_fault(const struct lw_config_handler *handler, const struct builtin *builtin,
             char help[HELP_BYTES_MAX])
{
    enum lw_engine_kind engine = handler->run.engine;
    enum lw_handler_form form = form_of(handler);
    bool may_be_own = handler->kind == LW_CONFIG_FUNCTION && engine == LW_ENGINE_PROCESSES &&
                      lw_processes_has_origin();
    if (!lw_handler_fits(engine, form) && !may_be_own) {
        lw_handler_fit_help(form, help, HELP_BYTES_MAX);
        return help;
    }
    if (builtin && builtin->is_loop_only && engine != LW_ENGINE_LOOP) {
        return "io waits without blocking, on engine: loop; sleep is its like for threads";
    }
    if (builtin && builtin->is_threads_only && engine == LW_ENGINE_LOOP) {
        return "this one blocks and needs engine: threads; io is its like for the loop";
    }
    return NULL;
}

static enum lw_engine_kind
default_engine(const struct lw_config_handler *handler, const struct builtin *builtin)
{
    if (handler->kind == LW_CONFIG_PROGRAM) {
        return LW_ENGINE_PROGRAMS;
    }
    if (handler->kind == LW_CONFIG_HTTP) {
        return LW_ENGINE_HTTP;
    }
    return builtin && !builtin->is_threads_only ? LW_ENGINE_LOOP : LW_ENGINE_THREADS;
}

static void
choose_engine(struct lw_config_build *build, struct lw_config_handler *handler,
              const struct builtin *builtin)
{
    const struct lw_node *node = lw_node_child(handler->node, "engine");
    if (!node || node->is_bad) {
        handler->run.engine = default_engine(handler, builtin);
        return;
    }
    char help[HELP_BYTES_MAX];
    const char *fault = engine_fault(handler, builtin, help);
    if (fault) {
        char shown[SHOWN_BYTES_MAX];
        struct lw_diagnostic *item = lw_diagnostics_add(
            build->diagnostics, LW_SEVERITY_ERROR, "E0311", &node->place,
            "engine \"%s\" cannot run handlers.%s", lw_node_shown(node, shown, sizeof(shown)),
            handler->name);
        lw_diagnostic_show(
            item, lw_node_name_place(lw_node_child(handler->node, kind_keys[handler->kind])));
        lw_diagnostic_help(item, "%s", fault);
    }
}

/*
 * Blocking functions, built-in handlers, services and programs that are kept alive take several
 * messages. Of a plug-in that is told by its table, when it is loaded.
 */
static void
check_batch(struct lw_config_build *build, const struct lw_config_handler *handler)
{
    const struct lw_node *batch = lw_node_child(handler->node, "batch");
    bool is_io = handler->kind == LW_CONFIG_BUILTIN && handler->builtin == LW_BUILTIN_IO &&
                 handler->run.engine == LW_ENGINE_LOOP;
    bool is_told = handler->kind == LW_CONFIG_PROGRAM &&
                   handler->run.protocol != LW_PROTOCOL_ONCE;
    enum lw_handler_form form = form_of(handler);
    bool may_take = form == LW_FORM_FUNCTION || form == LW_FORM_SERVICE || is_told ||
                    handler->kind == LW_CONFIG_PLUGIN;
    bool takes_one = !may_take || is_io;
    if (!batch || handler->run.batch.size <= 1 || !takes_one) {
        return;
    }
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0320", lw_node_name_place(batch),
        "handlers.%s takes one message at a time%s", handler->name,
        handler->kind == LW_CONFIG_PROGRAM
            ? ": protocol once is one process for each message, whose exit code is the verdict"
            : "");
    lw_diagnostic_show(
        item, lw_node_name_place(lw_node_child(handler->node, kind_keys[handler->kind])));
    lw_diagnostic_help(item,
                       "leave batch out; programs of protocol lines and frames, services "
                       "behind HTTP, functions, plug-ins and the built-in handlers but io take "
                       "several");
}

/* Each key has its worker, so a batch of several has none; the start would refuse it, too. */
static void
check_lanes(struct lw_config_build *build, const struct lw_config_handler *handler)
{
    const struct lw_node *batch = lw_node_child(handler->node, "batch");
    const struct lw_node *lanes = lw_node_at(handler->node, "processes.lanes");
    if (!batch || !lanes || handler->run.engine != LW_ENGINE_PROCESSES ||
        !handler->run.processes.pins_lanes || handler->run.batch.size <= 1 ||
        handler->run.batch.keys != LW_BATCH_KEYS_MANY) {
        return;
    }
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0320", lw_node_name_place(batch),
        "the lanes of handlers.%s are pinned, and a batch of several keys belongs to no single "
        "worker",
        handler->name);
    lw_diagnostic_show(item, lw_node_name_place(lanes));
    lw_diagnostic_help(item, "use \"batch: {keys: one}\", or \"lanes: shared\"");
}

/* Keys that only some handlers have, and what a handler is that has none of them. */
static void
warn_keys(struct lw_config_build *build, const struct lw_config_handler *handler,
          const char *const *keys, const char *what)
{
    for (; *keys; keys++) {
        const struct lw_node *node = lw_node_child(handler->node, *keys);
        if (node) {
            lw_diagnostics_add(build->diagnostics, LW_SEVERITY_WARNING, "W0308",
                               lw_node_name_place(node), "\"%s\" has no effect: handlers.%s %s",
                               node->key, handler->name, what);
        }
    }
}

static void
warn_useless(struct lw_config_build *build, const struct lw_config_handler *handler)
{
    static const char *const worker_keys[] = { "workers", "window", "start_timeout",
                                               "memory_max", NULL };
    static const char *const program_keys[] = { "directory", "env",    "protocol", "exit_codes",
                                                "cpu_max",   "nofile", "user",     NULL };
    static const char *const plugin_keys[] = { "symbol", "options", NULL };
    static const char *const http_keys[] = { "method",           "headers", "connections",
                                             "http_version",     "proxy",   "connect_timeout",
                                             "max_hold",         "auth",    "tls",
                                             "max_answer_bytes", NULL };
    static const char *const processes_keys[] = { "processes", NULL };
    static const char *const threads_keys[] = { "threads", NULL };
    bool has_processes = handler->run.engine == LW_ENGINE_PROCESSES;
    if (handler->kind != LW_CONFIG_PROGRAM) {
        warn_keys(build, handler, program_keys, "is not a program");
    }
    if (handler->kind != LW_CONFIG_PROGRAM && !has_processes) {
        warn_keys(build, handler, worker_keys, "is not a program");
    }
    if (handler->kind != LW_CONFIG_HTTP) {
        warn_keys(build, handler, http_keys, "is not behind HTTP");
    }
    if (handler->kind != LW_CONFIG_PLUGIN) {
        warn_keys(build, handler, plugin_keys, "is not a plug-in");
    }
    if (!has_processes) {
        warn_keys(build, handler, processes_keys, "does not run on engine processes");
    }
    if (handler->run.engine != LW_ENGINE_THREADS) {
        warn_keys(build, handler, threads_keys, "does not run on threads");
    }
}

uint32_t
lw_config_window(const struct lw_config_handler *handler)
{
    bool has_processes = handler->run.engine == LW_ENGINE_PROCESSES;
    return handler->run.window > 0 ? handler->run.window
           : has_processes         ? LW_PROCESSES_WINDOW
                                   : 1;
}

/* Keys that are for one protocol only. */
static void
warn_protocol(struct lw_config_build *build, const struct lw_config_handler *handler)
{
    static const struct {
        const char *key;
        bool is_for_once;
    } keys[] = { { "window", false }, { "start_timeout", false }, { "exit_codes", true } };
    bool is_once = handler->run.protocol == LW_PROTOCOL_ONCE;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct lw_node *node = lw_node_child(handler->node, keys[i].key);
        if (node && is_once != keys[i].is_for_once) {
            lw_diagnostics_add(build->diagnostics, LW_SEVERITY_WARNING, "W0308",
                               lw_node_name_place(node),
                               "\"%s\" has no effect: handlers.%s %s protocol once", node->key,
                               handler->name, is_once ? "has" : "does not have");
        }
    }
}

static const char *
directory_of(const struct lw_node *node)
{
    const struct lw_document *document = node ? node->place.document : NULL;
    return document && document->directory ? document->directory : ".";
}

static void
refuse_program(struct lw_config_build *build, const struct lw_config_handler *handler,
               const struct lw_node *program)
{
    char shown[SHOWN_BYTES_MAX];
    const char *name = handler->run.program[0];
    bool is_secret = program->first && program->first->is_secret;
    const char *is = lw_config_file_not_program(name, handler->run.directory, build->arena);
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0207", &program->place, "%s\"%s\"%s%s",
        is ? "" : "there is no program ",
        is_secret ? "***" : lw_text_shown(name, shown, sizeof(shown)), is ? " " : "",
        is ? is : "");
    const char *help =
        is ? "the list begins with a program: a file that may be executed (chmod +x), "
             "or what runs it, such as [python3, FILE]"
        : strchr(name, '/') ? "the path begins at this file's folder; the file must "
                              "be executable"
                            : "it is not in PATH";
    lw_diagnostic_help(item, "%s", help);
}

/* Relative paths begin at the file that names them. */
static void
place_program(struct lw_config_build *build, struct lw_config_handler *handler)
{
    const struct lw_node *program = lw_node_child(handler->node, "program");
    const struct lw_node *directory = lw_node_child(handler->node, "directory");
    if (!handler->run.program) {
        lw_diagnostics_add(build->diagnostics, LW_SEVERITY_ERROR, "E0121",
                           lw_node_name_place(program), "handlers.%s.program is empty",
                           handler->name);
        return;
    }
    handler->run.directory = handler->run.directory
                                 ? lw_config_file_join(directory_of(directory),
                                                       handler->run.directory, build->arena)
                                 : directory_of(program);
    struct lw_config_env env = { .environment = build->source->env };
    const char *name = handler->run.program[0];
    lw_assert(program != NULL); /* it gave run.program */
    if (build->source->resolve_programs && handler->run.directory &&
        !lw_config_file_is_program(name, handler->run.directory,
                                   lw_config_env_get(&env, "PATH", 4))) {
        refuse_program(build, handler, program);
    }
}

static void
build_handler(struct lw_config_build *build, struct lw_config_handler *handler,
              struct lw_node *entry)
{
    const struct builtin *builtin = NULL;
    handler->name = entry->key;
    handler->node = entry;
    lw_subscription_options_init(&handler->run);
    lw_http_options_init(&handler->http);
    lw_config_bind(entry, lw_config_handler_rows, handler, build->arena);
    if (!find_kind(build, handler)) {
        return;
    }
    if (handler->kind == LW_CONFIG_BUILTIN && handler->builtin_text) {
        builtin = read_builtin(build, handler);
    }
    choose_engine(build, handler, builtin);
    check_batch(build, handler);
    check_lanes(build, handler);
    warn_useless(build, handler);
    if (handler->kind == LW_CONFIG_PROGRAM) {
        place_program(build, handler);
        warn_protocol(build, handler);
        handler->run.window = handler->run.protocol == LW_PROTOCOL_ONCE ? 1
                                                                        : handler->run.window;
        lw_config_exit_codes_read(build, handler);
    } else if (handler->kind == LW_CONFIG_PLUGIN) {
        lw_config_build_plugin(build, handler);
    } else if (handler->kind == LW_CONFIG_HTTP) {
        lw_config_build_http(build, handler);
    }
}

void
lw_config_build_handlers(struct lw_config_build *build)
{
    struct lw_config *config = build->config;
    struct lw_node *map = lw_node_child(config->root, "handlers");
    size_t count = lw_config_build_count(map);
    config->handlers = lw_config_arena_array(build->arena, count, sizeof(config->handlers[0]));
    for (struct lw_node *entry = map ? map->first : NULL; config->handlers && entry;
         entry = entry->next) {
        if (lw_config_build_is_usable(entry)) {
            build_handler(build, &config->handlers[config->handler_count++], entry);
        }
    }
}
