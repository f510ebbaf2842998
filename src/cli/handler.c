/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway handler check CMD...`: the conformance test of a handler program. What is tried is in
 * handler_steps.c, how it is shown in handler_report.c. What fails here fails in a service, too,
 * since lines are written and read by the code of the engine.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/handler_check.h"
#include "cli/terminal.h"

enum { FLAG_PROTOCOL = LW_FLAG_OWN, FLAG_TIMEOUT, FLAG_VALUE, FLAG_NAME, FLAG_STRICT };
enum { VALUE_BYTES_MAX = 8 * 1024 * 1024 };

const struct lw_flag lw_handler_flags[] = {
    { FLAG_PROTOCOL, "protocol", "NAME",
      "how it is spoken to: lines (default), frames or once" },
    { FLAG_TIMEOUT, "timeout", "DURATION", "how long an answer may take (5s)" },
    { FLAG_VALUE, "value", "TEXT",
      "a value that it must say ok to; @FILE reads it from a file" },
    { FLAG_NAME, "name", "NAME", "its name, for a program with several handlers (check)" },
    { FLAG_STRICT, "strict", NULL, "warnings give exit code 1" },
    LW_ROW_JSON,
    LW_ROW_QUIET,
    LW_ROW_VERBOSE,
    LW_ROW_COLOR,
    LW_ROW_END,
};

struct job {
    struct lw_check check;
    struct lw_check_report report;
    bool is_strict;
    const char *value;
    struct lw_text value_text;
    char protocol[40];        /* LANEWAY_PROTOCOL=... */
    struct lw_text name_text; /* a variable of its environment */
};

/* -- The run ----------------------------------------------------------------------------------- */

static void
run_step(struct job *job, const struct lw_check_step *step)
{
    struct lw_check *check = &job->check;
    uint64_t began = lw_clock_monotonic_ns();
    check->finding = (struct lw_finding){ .id = step->id, .title = step->title };
    check->is_late = false;
    check->retired = 0;
    lw_check_report_step(&job->report, step);
    step->run(check);
    check->finding.took_ns = lw_clock_monotonic_ns() - began;
    check->counts[check->finding.result]++;
    lw_check_report_finding(&job->report);
}

/* True when all were tried: nothing is, once it does not start or answers nothing at all. */
static bool
run_steps(struct job *job)
{
    struct lw_check *check = &job->check;
    const struct lw_check_step *step = check->protocol ? lw_check_steps : lw_check_once_steps;
    for (; step->id; step++) {
        run_step(job, step);
        bool is_hopeless = step->is_basic && check->finding.result == LW_FINDING_FAILED;
        if (is_hopeless || check->cli->is_output_broken) {
            return false;
        }
    }
    return true;
}

static int
run_check(struct job *job)
{
    struct lw_check *check = &job->check;
    check->samples = lw_samples_create();
    if (!check->samples) {
        return lw_cli_fail_memory();
    }
    lw_talk_guard();
    lw_check_report_begin(&job->report);
    bool is_whole = run_steps(job);
    lw_check_end(check);
    lw_check_report_end(&job->report, is_whole);
    lw_samples_destroy(check->samples);
    bool is_bad = check->counts[LW_FINDING_FAILED] > 0 ||
                  (job->is_strict && check->counts[LW_FINDING_WARNING] > 0);
    return is_bad ? LW_EXIT_FAILED : LW_EXIT_OK;
}

/* -- Flags ------------------------------------------------------------------------------------- */

static bool
set_protocol(struct job *job)
{
    struct lw_cli *cli = job->check.cli;
    static const struct lw_programs_protocol *const protocols[] = { &lw_programs_lines,
                                                                    &lw_programs_frames };
    job->check.protocol_name = cli->value;
    job->check.protocol = NULL;
    for (size_t i = 0; i < sizeof protocols / sizeof protocols[0]; i++) {
        if (strcmp(cli->value, protocols[i]->name) == 0) {
            job->check.protocol = protocols[i];
        }
    }
    if (job->check.protocol || strcmp(cli->value, "once") == 0) {
        return true;
    }
    cli->exit_code = lw_cli_usage(cli, "--protocol \"%s\" is none of lines, frames, once",
                                  cli->value);
    return false;
}

static bool
set_timeout(struct job *job)
{
    struct lw_cli *cli = job->check.cli;
    const char *why = NULL;
    int64_t *timeout_ms = &job->check.timeout_ms;
    if (lw_text_to_duration_ms(cli->value, timeout_ms, &why) && *timeout_ms > 0) {
        return true;
    }
    cli->exit_code = lw_cli_usage(cli, "--timeout \"%s\" is no duration such as 5s",
                                  cli->value);
    return false;
}

static bool
read_flags(struct job *job)
{
    struct lw_cli *cli = job->check.cli;
    int id;
    while ((id = lw_cli_next(cli)) != LW_FLAG_END) {
        bool is_right = id != LW_FLAG_STOP;
        if (id == FLAG_STRICT) {
            job->is_strict = true;
        } else if (id == FLAG_VALUE) {
            job->value = cli->value;
        } else if (id == FLAG_NAME) {
            job->check.name = cli->value;
        } else if (id == FLAG_PROTOCOL) {
            is_right = set_protocol(job);
        } else if (id == FLAG_TIMEOUT) {
            is_right = set_timeout(job);
        }
        if (!is_right) {
            return false;
        }
    }
    return true;
}

static bool
read_value_file(struct job *job, const char *path)
{
    char part[16384];
    size_t got = 0;
    struct lw_text *text = &job->value_text;
    FILE *file = fopen(path, "re");
    while (file && text->size <= VALUE_BYTES_MAX &&
           (got = fread(part, 1, sizeof part, file)) > 0) {
        lw_text_append_bytes(text, part, got);
    }
    bool is_read = file && !ferror(file);
    if (file) {
        (void)fclose(file);
    }
    if (!is_read || text->size > VALUE_BYTES_MAX) {
        lw_cli_say("laneway handler check: %s %s",
                   is_read ? "more than 8 MiB in" : "cannot read", path);
        job->check.cli->exit_code = LW_EXIT_NO_INPUT;
        return false;
    }
    if (text->is_failed) {
        job->check.cli->exit_code = lw_cli_fail_memory();
        return false;
    }
    job->check.value = (struct lw_bytes){ text->data ? text->data : "", text->size };
    return true;
}

static bool
set_value(struct job *job)
{
    if (!job->value) {
        return true;
    }
    if (job->value[0] == '@') {
        return read_value_file(job, job->value + 1);
    }
    job->check.value = (struct lw_bytes){ job->value, strlen(job->value) };
    return true;
}

/* "check" comes first, so that there may be more to do with handlers. */
static bool
read_words(struct job *job)
{
    struct lw_cli *cli = job->check.cli;
    static const char *words[LW_CLI_MANY + 1];
    if (cli->argument_count == 0 || strcmp(cli->arguments[0], "check") != 0) {
        cli->exit_code = lw_cli_usage(cli, "say: laneway handler check CMD...");
        return false;
    }
    if (cli->argument_count == 1) {
        cli->exit_code = lw_cli_usage(
            cli, "say which program, as in: laneway handler check python3 handler.py");
        return false;
    }
    for (size_t i = 1; i < cli->argument_count; i++) {
        words[i - 1] = cli->arguments[i];
    }
    job->check.command.program = words;
    return true;
}

/* As the engine sets it. False without memory. */
static bool
set_environment(struct job *job)
{
    static const char *environment[5] = { "LANEWAY_SERVICE=check" };
    (void)snprintf(job->protocol, sizeof job->protocol, "LANEWAY_PROTOCOL=%s",
                   job->check.protocol_name);
    lw_text_append(&job->name_text, "LANEWAY_HANDLER=");
    lw_text_append(&job->name_text, job->check.name);
    environment[1] = job->protocol;
    environment[2] = job->name_text.data;
    environment[3] = job->check.protocol ? "LANEWAY_FD=3" : "LANEWAY_FD"; /* taken away */
    job->check.command.environment = environment;
    return !job->name_text.is_failed;
}

int
lw_command_handler(struct lw_cli *cli)
{
    unsigned rows = 0;
    struct job job = { .check = { .cli = cli,
                                  .timeout_ms = 5000,
                                  .name = "check",
                                  .protocol_name = "lines",
                                  .protocol = &lw_programs_lines } };
    job.check.command.has_answers = true;
    job.check.command.has_pidfd = lw_programs_process_has_pidfd();
    lw_text_init(&job.value_text);
    lw_text_init(&job.name_text);
    int exit_code = LW_EXIT_USAGE;
    if (!read_flags(&job) || !read_words(&job) || !set_value(&job)) {
        exit_code = cli->exit_code;
    } else if (!set_environment(&job)) {
        exit_code = lw_cli_fail_memory();
    } else {
        job.report.check = &job.check;
        job.report.is_live = !cli->is_json && !cli->is_quiet && lw_terminal_is(STDOUT_FILENO);
        job.report.is_coloured = lw_terminal_is_coloured(STDOUT_FILENO, cli->color);
        lw_terminal_size(STDOUT_FILENO, &job.report.columns, &rows);
        exit_code = run_check(&job);
    }
    lw_text_deinit(&job.value_text);
    lw_text_deinit(&job.name_text);
    return exit_code;
}
