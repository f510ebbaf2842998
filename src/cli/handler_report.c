/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of `laneway handler check`, as text and as JSON: a line a step, and under what went
 * wrong why, the lines that were exchanged, what it printed, and how to mend it.
 */
#include <stdio.h>
#include <string.h>

#include "cli/handler_check.h"

enum { TITLE_WIDTH = 44 };

/* -- Text -------------------------------------------------------------------------------------- */

static const char *
color(const struct lw_check_report *report, const char *code)
{
    return report->is_coloured ? code : "";
}

static const char *
mark(const struct lw_check_report *report, enum lw_finding_result result)
{
    switch (result) {
    case LW_FINDING_OK:
        return report->is_coloured ? "\033[32mok\033[0m  " : "ok  ";
    case LW_FINDING_WARNING:
        return report->is_coloured ? "\033[1;33mwarn\033[0m" : "warn";
    case LW_FINDING_FAILED:
        return report->is_coloured ? "\033[1;31mFAIL\033[0m" : "FAIL";
    }
    return "?";
}

/* Bytes that fit into a line: between words, else after whole characters. */
static size_t
fit(const char *text, size_t room)
{
    size_t size = strcspn(text, "\n");
    size_t cut = room;
    if (size <= room) {
        return size;
    }
    while (cut > room / 2 && text[cut] != ' ') {
        cut--;
    }
    if (text[cut] != ' ') {
        cut = room;
        while (cut > 1 && ((unsigned char)text[cut] & 0xC0) == 0x80) {
            cut--;
        }
    }
    return cut;
}

/* The text after a word in the margin. */
static void
append_block(const struct lw_check_report *report, const char *word, const char *text)
{
    enum { INDENT = 16, LEAST = 30 };
    struct lw_text *out = &report->check->cli->out;
    size_t room = report->columns > INDENT + LEAST ? report->columns - INDENT - 1 : LEAST;
    lw_text_format(out, "        %s%-7s%s ", color(report, "\033[2m"), word,
                   color(report, "\033[0m"));
    while (text[0]) {
        size_t size = fit(text, room);
        lw_text_append_bytes(out, text, size);
        text += size;
        text += text[0] == ' ' || text[0] == '\n' ? 1 : 0;
        lw_text_format(out, "\n%*s", text[0] ? INDENT : 0, "");
    }
}

static void
append_details(const struct lw_check_report *report, const struct lw_finding *finding)
{
    bool is_bad = finding->result != LW_FINDING_OK;
    if (is_bad) {
        append_block(report, "why", finding->why);
    }
    if (finding->sent[0]) {
        append_block(report, "sent", finding->sent);
    }
    if (finding->got[0]) {
        append_block(report, "got", finding->got);
    }
    if (is_bad && finding->printed[0]) {
        append_block(report, "stderr", finding->printed);
    }
    if (is_bad && finding->help && finding->help[0]) {
        append_block(report, "help", finding->help);
    }
}

static void
append_took(uint64_t took_ns, char *out, size_t size)
{
    double ms = (double)took_ns / 1e6;
    if (ms < 0.05) {
        lw_text_copy(out, size, "");
    } else {
        (void)snprintf(out, size,
                       ms < 10    ? "%.1f ms"
                       : ms < 1e4 ? "%.0f ms"
                                  : "%.0f s",
                       ms < 1e4 ? ms : ms / 1e3);
    }
}

static void
append_finding(struct lw_check_report *report, const struct lw_finding *finding)
{
    struct lw_cli *cli = report->check->cli;
    char took[32];
    char line[160];
    bool is_bad = finding->result != LW_FINDING_OK;
    if (report->is_live) {
        lw_text_append(&cli->out, "\r\033[K");
    }
    if (cli->is_quiet && !is_bad) {
        return;
    }
    append_took(finding->took_ns, took, sizeof took);
    const char *note = is_bad ? "" : finding->note;
    int length = snprintf(line, sizeof line, "%-*s %8s%s%s", TITLE_WIDTH, finding->title, took,
                          note[0] ? "  " : "", note);
    while (length > 0 && length < (int)sizeof line && line[length - 1] == ' ') {
        line[--length] = '\0';
    }
    lw_text_format(&cli->out, "  %s  %s\n", mark(report, finding->result), line);
    if (is_bad || cli->verbosity > 0) {
        append_details(report, finding);
    }
}

static void
append_head(struct lw_check_report *report)
{
    struct lw_text *out = &report->check->cli->out;
    if (report->check->cli->is_quiet) {
        return;
    }
    lw_text_format(out, "%slaneway handler check%s", color(report, "\033[1m"),
                   color(report, "\033[0m"));
    for (const char *const *word = report->check->command.program; *word; word++) {
        lw_text_format(out, " %s", *word);
    }
    lw_text_format(out, " (protocol %s)\n", report->check->protocol_name);
}

static const char *
plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

static void
append_summary(const struct lw_check_report *report, bool is_whole)
{
    struct lw_text *out = &report->check->cli->out;
    const uint32_t *counts = report->check->counts;
    uint32_t failed = counts[LW_FINDING_FAILED];
    uint32_t warned = counts[LW_FINDING_WARNING];
    if (report->check->cli->is_quiet && failed + warned == 0) {
        return;
    }
    lw_text_format(out, "%s%s%s: %u passed, %u warning%s, %u failed%s\n",
                   color(report, failed ? "\033[1;31m" : "\033[1;32m"),
                   failed ? "not fit yet" : "fit to run", color(report, "\033[0m"),
                   counts[LW_FINDING_OK], warned, plural(warned), failed,
                   is_whole ? "" : "; the rest was not tried");
    if (failed > 0) {
        lw_text_append(out, "what a handler must do: docs/protocol.md\n");
    }
}

/* -- JSON -------------------------------------------------------------------------------------- */

static void
put(struct lw_json *json, const char *key, const char *value)
{
    if (value && value[0]) {
        lw_json_key(json, key);
        lw_json_string(json, value);
    }
}

static void
put_head(struct lw_check_report *report)
{
    struct lw_json *json = &report->json;
    lw_json_init(json, &report->check->cli->out);
    lw_json_object(json);
    lw_json_key(json, "command");
    lw_json_array(json);
    for (const char *const *word = report->check->command.program; *word; word++) {
        lw_json_string(json, *word);
    }
    lw_json_array_end(json);
    put(json, "protocol", report->check->protocol_name);
    lw_json_key(json, "checks");
    lw_json_array(json);
}

static void
put_finding(struct lw_json *json, const struct lw_finding *finding)
{
    static const char *const results[] = {
        [LW_FINDING_OK] = "ok", [LW_FINDING_WARNING] = "warning", [LW_FINDING_FAILED] = "failed"
    };
    bool is_bad = finding->result != LW_FINDING_OK;
    lw_json_object(json);
    put(json, "id", finding->id);
    put(json, "title", finding->title);
    put(json, "result", results[finding->result]);
    lw_json_key(json, "took_ms");
    lw_json_double(json, (double)finding->took_ns / 1e6);
    put(json, "note", finding->note);
    if (is_bad) {
        put(json, "why", finding->why);
        put(json, "sent", finding->sent);
        put(json, "got", finding->got);
        put(json, "stderr", finding->printed);
        put(json, "help", finding->help);
    }
    lw_json_object_end(json);
}

static void
put_tail(struct lw_check_report *report)
{
    struct lw_json *json = &report->json;
    const uint32_t *counts = report->check->counts;
    lw_json_array_end(json);
    lw_json_key(json, "passed");
    lw_json_int(json, counts[LW_FINDING_OK]);
    lw_json_key(json, "warnings");
    lw_json_int(json, counts[LW_FINDING_WARNING]);
    lw_json_key(json, "failed");
    lw_json_int(json, counts[LW_FINDING_FAILED]);
    lw_json_key(json, "ok");
    lw_json_bool(json, counts[LW_FINDING_FAILED] == 0);
    lw_json_object_end(json);
    lw_text_append_char(&report->check->cli->out, '\n');
}

/* -- Either ------------------------------------------------------------------------------------ */

void
lw_check_report_begin(struct lw_check_report *report)
{
    if (report->check->cli->is_json) {
        put_head(report);
    } else {
        append_head(report);
    }
}

void
lw_check_report_step(struct lw_check_report *report, const struct lw_check_step *step)
{
    if (report->is_live) {
        lw_text_format(&report->check->cli->out, "  ...   %s", step->title);
        (void)lw_cli_flush(report->check->cli);
    }
}

void
lw_check_report_finding(struct lw_check_report *report)
{
    if (report->check->cli->is_json) {
        put_finding(&report->json, &report->check->finding);
        return;
    }
    append_finding(report, &report->check->finding);
    (void)lw_cli_flush(report->check->cli);
}

void
lw_check_report_end(struct lw_check_report *report, bool is_whole)
{
    if (report->check->cli->is_json) {
        put_tail(report);
    } else {
        append_summary(report, is_whole);
    }
}
