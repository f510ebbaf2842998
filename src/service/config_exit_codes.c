/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading `exit_codes`: keys are codes of 0 to 255 or ranges of them, values verdicts, or
 * `broken`. A single code stands before the ranges that hold it, so that an exception to a range
 * needs no order.
 */
#include "service/config_exit_codes.h"

#include <string.h>

#include "service/config_bind.h"
#include "service/config_errors.h"

enum { SHOWN_BYTES_MAX = 80, CODE_MAX = 255, BROKEN = LW_ERROR + 1 };

static bool
read_word(const char *text, struct lw_exit_class *class)
{
    static const char *const words[] = {
        [LW_OK] = "ok",     [LW_RETRY] = "retry", [LW_DEAD] = "dead",
        [LW_DROP] = "drop", [LW_ERROR] = "error", [BROKEN] = "broken",
    };
    for (int i = 0; i <= BROKEN; i++) {
        if (text && strcmp(text, words[i]) == 0) {
            class->is_broken = i == BROKEN;
            class->verdict = i == BROKEN ? LW_ERROR : (enum lw_verdict)i;
            return true;
        }
    }
    return false;
}

static void
refuse(struct lw_config_build *build, const struct lw_place *place, const char *shown,
       const char *what)
{
    struct lw_diagnostic *item = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0103", place, "\"%s\" is %s", shown, what);
    lw_diagnostic_help(item, "write such as 3: dead, or 10-19: retry; one of ok, retry, dead, "
                             "drop, error, broken");
}

static bool
read_entry(struct lw_config_build *build, const struct lw_node *entry,
           struct lw_exit_class *class)
{
    char shown[SHOWN_BYTES_MAX];
    bool is_code = lw_config_codes_read(entry->key, &class->from, &class->to) &&
                   class->from >= 0 && class->to <= CODE_MAX;
    if (!is_code) {
        refuse(build, lw_node_name_place(entry), entry->key,
               "no exit code from 0 to 255, and no range of them");
        return false;
    }
    if (entry->kind != LW_NODE_SCALAR || !read_word(entry->text, class)) {
        refuse(build, &entry->place, lw_node_shown(entry, shown, sizeof(shown)),
               "not what an exit code can mean");
        return false;
    }
    return true;
}

void
lw_config_exit_codes_read(struct lw_config_build *build, struct lw_config_handler *handler)
{
    const struct lw_node *map = lw_node_child(handler->node, "exit_codes");
    size_t room = 0;
    for (const struct lw_node *entry = map ? map->first : NULL; entry; entry = entry->next) {
        room++;
    }
    struct lw_exit_class *classes = lw_config_arena_array(build->arena, room + 1,
                                                          sizeof(classes[0]));
    size_t count = 0;
    if (!map || !classes || map->kind != LW_NODE_MAP) {
        return;
    }
    for (const struct lw_node *entry = map->first; entry; entry = entry->next) {
        struct lw_exit_class class = { .from = 0 };
        if (!read_entry(build, entry, &class)) {
            continue;
        }
        size_t at = class.from == class.to ? 0 : count;
        memmove(&classes[at + 1], &classes[at], (count - at) * sizeof(classes[0]));
        classes[at] = class;
        count++;
    }
    handler->run.exit_codes = classes;
    handler->run.exit_code_count = count;
}
