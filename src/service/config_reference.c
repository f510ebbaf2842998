/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference page of the configuration, in Markdown: a table for every section, made from
 * the same rows that read the file. What rows cannot say (where values come from, how they are
 * written) is the text around them.
 */
#include <string.h>

#include "service/config.h"
#include "service/config_rows.h"
#include "service/options.h"

static const char introduction[] =
    "# Configuration\n"
    "\n"
    "Made by `laneway config-reference`; do not edit. `laneway check FILE` tells what is "
    "wrong\n"
    "with a file, `laneway plan FILE` prints every value and where it came from, and\n"
    "`laneway schema` prints a JSON Schema for editors.\n"
    "\n"
    "## A small file\n"
    "\n"
    "```yaml\n"
    "version: 1\n"
    "brokers: { main: { url: kafka://localhost:9092 } }\n"
    "handlers: { hello: { program: [python3, hello.py] } }\n"
    "pipelines:\n"
    "  hello: { broker: main, handler: hello, consumer: { group: hello }, topics: [greetings] "
    "}\n"
    "```\n"
    "\n"
    "## How values are written\n"
    "\n"
    "- The file is YAML without anchors, aliases, tags and duplicate keys. Unknown keys are\n"
    "  errors.\n"
    "- A duration needs a unit (`250ms`, `30s`, `5m`, `1h30m`, `1d`), a size too (`64KiB`,\n"
    "  `1MB`). Only `0` needs none. True and false are `true` and `false`.\n"
    "- `${NAME}` and `${NAME:-default}` put an environment variable in, `${file:PATH}` the "
    "text\n"
    "  of a file (one line end at its end is dropped), `$$` is a dollar sign. This is done "
    "after\n"
    "  parsing, in values only. What was put in is secret: it is shown as `***` everywhere.\n"
    "- Relative paths begin at the folder of the file that names them.\n"
    "- A text that is blank counts as not given.\n"
    "\n"
    "## Where values come from\n"
    "\n"
    "Later ones win:\n"
    "\n"
    "1. defaults\n"
    "2. configuration files, in the order given: sections are joined, values and lists "
    "replaced\n"
    "3. files given by `--env-file` (`NAME=VALUE` lines), for names as in 4\n"
    "4. environment variables `LANEWAY_SECTION__KEY`, with `__` between the parts of a path "
    "and\n"
    "   `_` for `-`: `LANEWAY_PIPELINES__ORDERS__RETRY__MAX_RETRIES=3`\n"
    "5. `--set PATH=VALUE`: `--set pipelines.orders.retry.max_retries=3`; for a property of a\n"
    "   broker's client also `-X BROKER:NAME=VALUE`: `-X main:ssl.ca.location=ca.pem`\n"
    "\n"
    "Both reach every single value, and lists of texts and durations (`a, b` or `[a, b]`).\n"
    "Entries of a list are numbered from 0. A variable that sets nothing is a warning. In a\n"
    "variable for a property of Kafka's client `_` stands for `.`; in one for Pulsar's it "
    "stays,\n"
    "and `__` is the dot: `LANEWAY_BROKERS__MAIN__PROPERTIES__ADMIN_URL=http://a:8080`.\n";

static void
append_escaped(struct lw_text *out, const char *text)
{
    for (; text && *text; text++) {
        if (*text == '|' || *text == '<' || *text == '*' || *text == '_') {
            lw_text_append_char(out, '\\');
        }
        lw_text_append_char(out, *text);
    }
}

static void
print_default(const struct lw_option *row, struct lw_text *out)
{
    if (row->is_required) {
        lw_text_append(out, "required");
    } else if (row->initial_note) {
        append_escaped(out, row->initial_note);
    } else if (row->initial) {
        lw_text_format(out, "`%s`", row->initial);
    }
}

static void
print_row(const struct lw_option_walk *walk, struct lw_text *out)
{
    const struct lw_option *row = walk->row;
    struct lw_text type;
    lw_text_init(&type);
    lw_option_type_name(row, &type);
    lw_text_append(out, "| ");
    if (row->name[0] == '*') {
        lw_text_append(out, "any other name");
    } else {
        lw_text_append_char(out, '`');
        lw_option_walk_path(walk, out);
        lw_text_append_char(out, '`');
    }
    if (row->alias) {
        lw_text_format(out, " (or `%s`)", row->alias);
    }
    lw_text_append(out, " | ");
    append_escaped(out, type.data);
    lw_text_append(out, " | ");
    print_default(row, out);
    lw_text_append(out, " | ");
    append_escaped(out, row->doc);
    lw_text_append(out, " |\n");
    out->is_failed |= type.is_failed;
    lw_text_deinit(&type);
}

static void
print_later(const struct lw_option *rows, struct lw_text *out)
{
    struct lw_option_walk walk;
    const char *separator = "\nNot in this version: ";
    lw_option_walk_start(&walk, rows, LW_WALK_STRUCT);
    while (lw_option_walk_next(&walk)) {
        if (walk.row->type == LW_OPTION_LATER) {
            lw_text_format(out, "%s`", separator);
            lw_option_walk_path(&walk, out);
            lw_text_append_char(out, '`');
            separator = ", ";
        }
    }
    lw_text_append(out, separator[0] == ',' ? ".\n" : "");
}

static void
print_table(const struct lw_option *rows, struct lw_text *out)
{
    struct lw_option_walk walk;
    lw_text_append(out, "\n| key | type | default | meaning |\n|---|---|---|---|\n");
    lw_option_walk_start(&walk, rows, LW_WALK_STRUCT);
    while (lw_option_walk_next(&walk)) {
        if (walk.row->type != LW_OPTION_LATER) {
            print_row(&walk, out);
        }
    }
    print_later(rows, out);
}

/* The lists of a section get tables of their own behind it. */
static void
print_lists(const char *prefix, const struct lw_option *rows, struct lw_text *out)
{
    struct lw_option_walk walk;
    lw_option_walk_start(&walk, rows, LW_WALK_STRUCT);
    while (lw_option_walk_next(&walk)) {
        if (walk.row->type != LW_OPTION_LIST) {
            continue;
        }
        lw_text_format(out, "\n### %s.%s, each entry\n", prefix, walk.row->name);
        print_table(walk.row->rows, out);
        if (walk.row->alternative) {
            lw_text_format(out, "\n### %s.%s, as a family\n", prefix, walk.row->name);
            print_table(walk.row->alternative, out);
        }
    }
}

static void
print_section(const struct lw_option *row, struct lw_text *out)
{
    struct lw_text title;
    lw_text_init(&title);
    lw_text_format(&title, "%s%s", row->name, row->type == LW_OPTION_MAP ? ".NAME" : "");
    lw_text_format(out, "\n## %s\n\n%s\n", title.data ? title.data : "", row->doc);
    print_table(row->rows, out);
    print_lists(title.data ? title.data : "", row->rows, out);
    out->is_failed |= title.is_failed;
    lw_text_deinit(&title);
}

static void
print_profiles(struct lw_text *out)
{
    size_t count = 0;
    const struct lw_profile_row *profiles = lw_profile_rows(&count);
    lw_text_append(out,
                   "\n## Profiles\n\nA profile sets these values of a pipeline or topic; a "
                   "value that is given by itself wins.\n\n"
                   "| profile | receiver_queue_size | window | max_in_flight | meaning |\n"
                   "|---|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        const struct lw_profile_row *profile = &profiles[i];
        lw_text_format(out, "| `%s` | %u | %s | %u | %s |\n", profile->name,
                       profile->receiver_queue_size,
                       profile->is_window_fixed ? "fixed" : "by demand", profile->max_in_flight,
                       profile->doc);
    }
}

void
lw_config_reference(struct lw_text *out)
{
    lw_text_append(out, introduction);
    for (const struct lw_option *row = lw_config_root.rows; row->type != LW_OPTION_END; row++) {
        if (row->rows) {
            print_section(row, out);
        }
    }
    print_profiles(out);
}
