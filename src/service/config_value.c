/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages for values. Each quotes the value (or ***), says what was expected, and where it can
 * offers the likely intention.
 */
#include "service/config_value.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES_MAX = 320, SHOWN_BYTES_MAX = 80, MEASURE_BYTES_MAX = 64 };

static const struct lw_option number_row = {
    .name = "*", .type = LW_OPTION_INT, .size = sizeof(int32_t), .doc = "A whole number."
};

static void
refuse_unit(struct lw_node *node, const struct lw_option *row, const char *shown,
            struct lw_diagnostics *diagnostics)
{
    bool is_size = row->type == LW_OPTION_BYTES;
    struct lw_diagnostic *item = lw_diagnostics_add(
        diagnostics, LW_SEVERITY_ERROR, "E0104", &node->place, "\"%s\" needs a unit: %s", shown,
        is_size ? "a size such as 64KiB, 1MiB or 1MB" : "a duration such as 30s, 500ms or 5m");
    if (is_size) {
        lw_diagnostic_help(item, "write %sMiB if you meant mebibytes", shown);
    } else {
        lw_diagnostic_help(item, "write %ss if you meant seconds", shown);
    }
}

static void
format_limit(const struct lw_option *row, double limit, char out[MEASURE_BYTES_MAX])
{
    if (row->type == LW_OPTION_DURATION) {
        lw_text_from_duration_ms((int64_t)limit, out, MEASURE_BYTES_MAX);
    } else if (row->type == LW_OPTION_BYTES) {
        lw_text_from_size((int64_t)limit, out, MEASURE_BYTES_MAX);
    } else {
        (void)snprintf(out, MEASURE_BYTES_MAX, "%.15g", limit);
    }
}

static void
refuse_range(struct lw_node *node, const struct lw_option *row, const char *shown,
             struct lw_diagnostics *diagnostics)
{
    char path[PATH_BYTES_MAX];
    char low[MEASURE_BYTES_MAX];
    char high[MEASURE_BYTES_MAX];
    bool has_range = row->min < row->max;
    format_limit(row, has_range ? row->min : (double)INT32_MIN, low);
    format_limit(row, has_range ? row->max : (double)INT32_MAX, high);
    lw_diagnostics_add(diagnostics, LW_SEVERITY_ERROR, "E0105", &node->place,
                       "\"%s\" is out of range: %s is from %s to %s", shown,
                       lw_node_path(node, path, sizeof(path)), low, high);
}

static const char *
nearest_word(const struct lw_option *row, const char *text)
{
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (const struct lw_option_word *word = row->words; word && word->word; word++) {
        size_t distance = 0;
        if (!word->is_later && lw_option_is_near(text, word->word, &distance) &&
            distance < best_distance) {
            best = word->word;
            best_distance = distance;
        }
    }
    return best;
}

static void
refuse_word(struct lw_node *node, const struct lw_option *row, const char *shown,
            struct lw_diagnostics *diagnostics)
{
    char path[PATH_BYTES_MAX];
    struct lw_text words;
    lw_text_init(&words);
    lw_option_type_name(row, &words);
    struct lw_diagnostic *item = lw_diagnostics_add(
        diagnostics, LW_SEVERITY_ERROR, "E0106", &node->place,
        "\"%s\" is not a value of %s: %s", shown, lw_node_path(node, path, sizeof(path)),
        words.data ? words.data : "");
    const char *better = node->is_secret ? NULL : nearest_word(row, node->text);
    if (better) {
        lw_diagnostic_help(item, "did you mean \"%s\"?", better);
    }
    lw_text_deinit(&words);
}

static bool
is_yaml_bool(const char *text)
{
    static const char *const words[] = { "yes",  "no",    "on",   "off",   "Yes", "No",
                                         "True", "False", "TRUE", "FALSE", "1",   "0" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static const char *
expectation(const struct lw_option *row)
{
    if (row->type == LW_OPTION_BOOL || row->type == LW_OPTION_TRISTATE) {
        return "true or false";
    }
    if (row->type == LW_OPTION_DURATION || row->type == LW_OPTION_DURATIONS) {
        return "a duration such as 30s, 500ms or 5m";
    }
    if (row->type == LW_OPTION_BYTES) {
        return "a size such as 64KiB, 1MiB or 1MB";
    }
    return row->type == LW_OPTION_DOUBLE ? "a number" : "a whole number";
}

static void
refuse_type(struct lw_node *node, const struct lw_option *row, const char *shown,
            struct lw_diagnostics *diagnostics)
{
    struct lw_diagnostic *item = lw_diagnostics_add(diagnostics, LW_SEVERITY_ERROR, "E0103",
                                                    &node->place, "\"%s\" is not %s", shown,
                                                    expectation(row));
    if ((row->type == LW_OPTION_BOOL || row->type == LW_OPTION_TRISTATE) &&
        is_yaml_bool(node->text)) {
        bool is_true = strchr("yYtT1", node->text[0]) || strcmp(node->text, "on") == 0;
        lw_diagnostic_help(item, "write %s", is_true ? "true" : "false");
    } else if (row->words && row->type != LW_OPTION_ENUM) {
        lw_diagnostic_help(item, "or the word \"%s\"", row->words[0].word);
    }
}

static void
report(struct lw_node *node, const struct lw_option *row, enum lw_option_fault fault,
       struct lw_diagnostics *diagnostics)
{
    char shown[SHOWN_BYTES_MAX];
    lw_node_shown(node, shown, sizeof(shown));
    node->is_bad = true;
    switch (fault) {
    case LW_OPTION_FINE:
        break;
    case LW_OPTION_NEEDS_UNIT:
        refuse_unit(node, row, shown, diagnostics);
        break;
    case LW_OPTION_WRONG_TYPE:
        refuse_type(node, row, shown, diagnostics);
        break;
    case LW_OPTION_OUT_OF_RANGE:
        refuse_range(node, row, shown, diagnostics);
        break;
    case LW_OPTION_UNKNOWN_WORD:
        refuse_word(node, row, shown, diagnostics);
        break;
    case LW_OPTION_LATER_WORD:
        lw_diagnostics_add(diagnostics, LW_SEVERITY_ERROR, "E0113", &node->place,
                           "%s \"%s\" is not in this version", row->name, shown);
        break;
    }
}

static void
check_scalar(struct lw_node *node, const struct lw_option *row,
             struct lw_diagnostics *diagnostics)
{
    char path[PATH_BYTES_MAX];
    union lw_option_value value;
    if (lw_node_is_empty(node)) {
        node->is_bad = true;
        struct lw_diagnostic *item = lw_diagnostics_add(
            diagnostics, LW_SEVERITY_ERROR, "E0121", lw_node_name_place(node),
            "%s has no value", lw_node_path(node, path, sizeof(path)));
        lw_diagnostic_help(item, "give it one, or leave the key out");
        return;
    }
    enum lw_option_fault fault = lw_option_parse(row, node->text, &value);
    if (fault != LW_OPTION_FINE) {
        report(node, row, fault, diagnostics);
    }
}

static void
refuse_item(struct lw_node *node, struct lw_diagnostics *diagnostics)
{
    char path[PATH_BYTES_MAX];
    node->is_bad = true;
    lw_diagnostics_add(diagnostics, LW_SEVERITY_ERROR, "E0103", lw_node_name_place(node),
                       "%s must be a single value", lw_node_path(node, path, sizeof(path)));
}

static const struct lw_option *
item_row(const struct lw_option *row)
{
    static const struct lw_option text_row = { .name = "*", .type = LW_OPTION_TEXT };
    static const struct lw_option duration_row = {
        .name = "*", .type = LW_OPTION_DURATION, .size = sizeof(int64_t), .max = 31536000000.0
    };
    if (row->type == LW_OPTION_DURATIONS) {
        return &duration_row;
    }
    return row->type == LW_OPTION_NUMBERS ? &number_row : &text_row;
}

/* An empty property is one that is not set, so that ${NAME:-} can leave it out. */
static bool
may_be_empty(const struct lw_option *row)
{
    return row->type == LW_OPTION_PROPERTIES;
}

static void
check_items(struct lw_node *node, struct lw_diagnostics *diagnostics)
{
    for (struct lw_node *item = node->first; item; item = item->next) {
        if (item->is_bad) {
            node->is_bad |= node->row->type != LW_OPTION_PROPERTIES;
        } else if (item->kind != LW_NODE_SCALAR) {
            refuse_item(item, diagnostics);
        } else if (!(may_be_empty(node->row) && lw_node_is_empty(item))) {
            check_scalar(item, item_row(node->row), diagnostics);
        }
        node->is_bad |= item->is_bad && node->row->type != LW_OPTION_PROPERTIES;
    }
}

/* "1s, 5s" from a variable: every part is looked at, the first bad one is told. */
static void
check_joined(struct lw_node *node, struct lw_diagnostics *diagnostics)
{
    const struct lw_option *row = item_row(node->row);
    char part[MEASURE_BYTES_MAX];
    for (const char *at = node->text; *at;) {
        union lw_option_value value;
        at += strspn(at, " ,");
        size_t length = strcspn(at, ",");
        size_t kept = length < sizeof(part) - 1 ? length : sizeof(part) - 1;
        at += length;
        memcpy(part, at - length, kept);
        while (kept > 0 && part[kept - 1] == ' ') {
            kept--;
        }
        part[kept] = '\0';
        enum lw_option_fault fault = kept > 0 ? lw_option_parse(row, part, &value)
                                              : LW_OPTION_FINE;
        if (fault != LW_OPTION_FINE) {
            report(node, row, fault, diagnostics);
            return;
        }
    }
}

void
lw_config_value_check(struct lw_node *node, struct lw_diagnostics *diagnostics)
{
    const struct lw_option *row = node->row;
    if (lw_option_is_scalar(row)) {
        check_scalar(node, row, diagnostics);
    } else if (node->kind != LW_NODE_SCALAR) {
        check_items(node, diagnostics);
    } else if (row->type == LW_OPTION_DURATIONS) {
        check_joined(node, diagnostics);
    }
}
