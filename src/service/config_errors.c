/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codes are numbers ("2") and ranges ("10-19"), also of negative numbers ("-5--1"). The array is
 * ordered by strength, so that the first match is the one that counts.
 */
#include "service/config_errors.h"

#include <string.h>

#include "service/config_bind.h"

enum { SHOWN_BYTES_MAX = 80, CODE_BYTES_MAX = 32 };

static bool
read_code(const char *text, size_t length, int *ret_code)
{
    char copy[CODE_BYTES_MAX];
    int64_t value = 0;
    if (length >= sizeof(copy)) {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (!lw_text_to_int(copy, &value) || value > INT32_MAX || value < INT32_MIN) {
        return false;
    }
    *ret_code = (int)value;
    return true;
}

bool
lw_config_codes_read(const char *text, int *ret_from, int *ret_to)
{
    const char *dash = text[0] == '\0' ? NULL : strchr(text + 1, '-');
    if (!dash) {
        bool is_code = read_code(text, strlen(text), ret_from);
        *ret_to = *ret_from;
        return is_code;
    }
    return read_code(text, (size_t)(dash - text), ret_from) &&
           read_code(dash + 1, strlen(dash + 1), ret_to) && *ret_from <= *ret_to;
}

static bool
verdict_of(const struct lw_node *entry, enum lw_verdict *ret_verdict)
{
    union lw_option_value value;
    const struct lw_node *node = lw_node_child(entry, "verdict");
    if (!node || node->is_bad || !node->row || node->kind != LW_NODE_SCALAR ||
        lw_option_parse(node->row, node->text, &value) != LW_OPTION_FINE) {
        return false;
    }
    *ret_verdict = (enum lw_verdict)value.number;
    return true;
}

static void
read_item(struct lw_config_build *build, const struct lw_node *item, enum lw_verdict verdict,
          struct lw_error_class *classes, size_t *count)
{
    char shown[SHOWN_BYTES_MAX];
    struct lw_error_class class = { .verdict = verdict };
    if (lw_config_codes_read(item->text, &class.from, &class.to)) {
        classes[(*count)++] = class;
        return;
    }
    struct lw_diagnostic *diagnostic = lw_diagnostics_add(
        build->diagnostics, LW_SEVERITY_ERROR, "E0103", &item->place,
        "\"%s\" is not a code or a range of codes", lw_node_shown(item, shown, sizeof(shown)));
    lw_diagnostic_help(diagnostic, "write 2, or 10-19 with the smaller number first");
}

static void
read_classes(struct lw_config_build *build, const struct lw_node *list, enum lw_verdict wanted,
             struct lw_error_class *classes, size_t *count)
{
    for (const struct lw_node *entry = list->first; entry; entry = entry->next) {
        enum lw_verdict verdict = LW_OK;
        const struct lw_node *codes = lw_node_child(entry, "codes");
        if (!lw_config_build_is_usable(entry) || !verdict_of(entry, &verdict) ||
            verdict != wanted || !codes || codes->is_bad) {
            continue;
        }
        if (codes->kind == LW_NODE_SCALAR) {
            read_item(build, codes, verdict, classes, count);
        }
        for (const struct lw_node *item = codes->first; item; item = item->next) {
            read_item(build, item, verdict, classes, count);
        }
    }
}

void
lw_config_errors_read(struct lw_config_build *build, const struct lw_node *pipeline,
                      struct lw_subscription_options *options)
{
    static const enum lw_verdict strength[] = { LW_DEAD, LW_RETRY, LW_ERROR };
    const struct lw_node *list = lw_node_child(pipeline, "errors");
    size_t room = 0;
    if (!list || list->is_bad) {
        return;
    }
    for (const struct lw_node *node = list; node; node = lw_node_next(list, node)) {
        room++;
    }
    struct lw_error_class *classes = lw_config_arena_array(build->arena, room,
                                                           sizeof(classes[0]));
    size_t count = 0;
    for (size_t i = 0; classes && i < sizeof(strength) / sizeof(strength[0]); i++) {
        read_classes(build, list, strength[i], classes, &count);
    }
    options->errors = count > 0 ? classes : NULL;
    options->error_count = count;
}
