/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table. A new engine is one row; a new form is a bit in the rows that can run it and a name.
 * What a configuration calls a function may turn out to be either kind when it is bound, so a rule
 * that depends on it is asked again then.
 */
#include "service/handler_fit.h"

#include <stdio.h>

#define BIT(form) (1U << (form))

static const struct engine_row {
    const char *name;
    unsigned forms;
} engines[] = {
    [LW_ENGINE_LOOP] = { "loop", BIT(LW_FORM_FUNCTION) | BIT(LW_FORM_ASYNC) |
                                     BIT(LW_FORM_BATCH) | BIT(LW_FORM_BATCH_ASYNC) |
                                     BIT(LW_FORM_PLUGIN) | BIT(LW_FORM_PLUGIN_ASYNC) |
                                     BIT(LW_FORM_PLUGIN_BATCH) |
                                     BIT(LW_FORM_PLUGIN_BATCH_ASYNC) },
    [LW_ENGINE_THREADS] = { "threads", BIT(LW_FORM_FUNCTION) | BIT(LW_FORM_BATCH) |
                                           BIT(LW_FORM_PLUGIN) | BIT(LW_FORM_PLUGIN_BATCH) },
    [LW_ENGINE_PROGRAMS] = { "programs", BIT(LW_FORM_PROGRAM) },
    [LW_ENGINE_HTTP] = { "http", BIT(LW_FORM_SERVICE) },
    [LW_ENGINE_PROCESSES] = { "processes", BIT(LW_FORM_PLUGIN) | BIT(LW_FORM_PLUGIN_BATCH) },
};

enum { ENGINE_COUNT = sizeof engines / sizeof engines[0] };

static const char *const forms[] = {
    [LW_FORM_FUNCTION] = "a function that returns its verdict",
    [LW_FORM_ASYNC] = "an asynchronous function",
    [LW_FORM_BATCH] = "a function that takes several messages at once",
    [LW_FORM_BATCH_ASYNC] = "an asynchronous function that takes several messages at once",
    [LW_FORM_PROGRAM] = "a program",
    [LW_FORM_PLUGIN] = "a plug-in",
    [LW_FORM_PLUGIN_ASYNC] = "a plug-in that has only handle_async",
    [LW_FORM_PLUGIN_BATCH] = "a plug-in that has only handle_batch",
    [LW_FORM_PLUGIN_BATCH_ASYNC] = "a plug-in that has only handle_batch_async",
    [LW_FORM_SERVICE] = "a service behind HTTP",
};
_Static_assert(sizeof forms / sizeof forms[0] == LW_HANDLER_FORMS, "a name per form");

const char *
lw_engine_kind_name(enum lw_engine_kind engine)
{
    return (unsigned)engine < ENGINE_COUNT ? engines[engine].name : NULL;
}

bool
lw_handler_fits(enum lw_engine_kind engine, enum lw_handler_form form)
{
    return (unsigned)engine < ENGINE_COUNT && (engines[engine].forms & BIT(form)) != 0;
}

const char *
lw_handler_form_name(enum lw_handler_form form)
{
    return forms[form];
}

void
lw_handler_fit_help(enum lw_handler_form form, char *out, size_t size)
{
    const char *fitting[ENGINE_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < ENGINE_COUNT; i++) {
        if (lw_handler_fits((enum lw_engine_kind)i, form)) {
            fitting[count++] = engines[i].name;
        }
    }
    int used = snprintf(out, size, "%s runs on engine", forms[form]);
    for (size_t i = 0; i < count && used > 0 && (size_t)used < size; i++) {
        const char *between = i == 0 ? " " : i + 1 == count ? " or " : ", ";
        used += snprintf(out + used, size - (size_t)used, "%s%s", between, fitting[i]);
    }
}

static bool
has_form(const struct lw_handler_plugin *table, enum lw_handler_form form)
{
    return form == LW_FORM_PLUGIN         ? table->handle != NULL
           : form == LW_FORM_PLUGIN_ASYNC ? table->handle_async != NULL
           : form == LW_FORM_PLUGIN_BATCH ? table->handle_batch != NULL
                                          : table->handle_batch_async != NULL;
}

/* The first that the plug-in has and the engine runs, else the first that it has, else none. */
static enum lw_handler_form
first_of(const enum lw_handler_form order[2], const struct lw_handler_plugin *table,
         enum lw_engine_kind engine)
{
    enum lw_handler_form found = LW_HANDLER_FORMS;
    for (size_t i = 0; i < 2; i++) {
        bool is_better = found == LW_HANDLER_FORMS || !lw_handler_fits(engine, found);
        if (has_form(table, order[i]) && is_better &&
            (found == LW_HANDLER_FORMS || lw_handler_fits(engine, order[i]))) {
            found = order[i];
        }
    }
    return found;
}

enum lw_handler_form
lw_handler_plugin_form(const struct lw_handler_plugin *table, enum lw_engine_kind engine,
                       bool is_several)
{
    static const enum lw_handler_form for_several[] = { LW_FORM_PLUGIN_BATCH_ASYNC,
                                                        LW_FORM_PLUGIN_BATCH };
    static const enum lw_handler_form for_one[] = { LW_FORM_PLUGIN_ASYNC, LW_FORM_PLUGIN };
    enum lw_handler_form several = first_of(for_several, table, engine);
    enum lw_handler_form one = first_of(for_one, table, engine);
    if (is_several) {
        return several != LW_HANDLER_FORMS ? several : one;
    }
    bool is_one = one != LW_HANDLER_FORMS &&
                  (lw_handler_fits(engine, one) || !lw_handler_fits(engine, several));
    return is_one ? one : several;
}

bool
lw_handler_plugin_takes_several(enum lw_handler_form form)
{
    return form == LW_FORM_PLUGIN_BATCH || form == LW_FORM_PLUGIN_BATCH_ASYNC;
}
