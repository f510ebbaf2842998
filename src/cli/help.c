/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The help: all commands, one command with its options, the exit codes. Everything comes from the
 * rows of the commands, which live here, so that none can be listed and missing.
 */
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/terminal.h"

const struct lw_command lw_commands[] = {
    { .name = "run",
      .arguments = "[-c FILE]...",
      .summary = "runs the pipelines in the foreground",
      .details =
          "Runs until SIGTERM or SIGINT, then drains: finishes what is in hand and gives the\n"
          "rest back. A second signal stops at once. Logs go to standard error, as text on a\n"
          "terminal and as JSON lines otherwise. Without -c, LANEWAY_CONFIG names the files.\n",
      .flags = lw_run_flags,
      .run = lw_command_run },
    { .name = "check",
      .arguments = "FILE...",
      .summary = "looks for errors in a configuration",
      .details =
          "Prints all errors with their place and what to do; exit code 78 if there are\n"
          "any. Warnings change the exit code only with --strict.\n",
      .flags = lw_check_flags,
      .run = lw_command_check },
    { .name = "plan",
      .arguments = "FILE...",
      .summary = "prints what run would do: serving order, retries, dead letters, values",
      .flags = lw_plan_flags,
      .run = lw_command_plan },
    { .name = "topics",
      .arguments = "plan|create FILE...",
      .summary = "lists or makes the topics that a configuration needs",
      .details =
          "\"plan\" compares with the broker and changes nothing; \"create\" makes what is\n"
          "missing: retry tiers and dead-letter topics with the partitions of their\n"
          "source, and the consumed and reply topics with --all.\n",
      .flags = lw_topics_flags,
      .run = lw_command_topics },
    { .name = "init",
      .arguments = "[NAME [DIR]]",
      .summary = "prints a configuration to begin with, or lists them",
      .details =
          "With DIR it is written there with its handlers and a README; nothing that exists\n"
          "is overwritten.\n",
      .run = lw_command_init },
    { .name = "demo",
      .arguments = "",
      .summary = "six lanes on a broker in memory, with retries and dead letters",
      .details =
          "Needs no file and no broker. On a terminal it shows a live table until Ctrl-C;\n"
          "otherwise it ends by itself and prints a summary.\n",
      .flags = lw_demo_flags,
      .run = lw_command_demo },
    { .name = "send",
      .arguments = "TOPIC",
      .summary = "publishes lines from standard input",
      .details =
          "One message per line. The broker comes from -b URL or from a configuration.\n",
      .flags = lw_send_flags,
      .run = lw_command_send },
    { .name = "peek",
      .arguments = "TOPIC",
      .summary = "prints messages of a topic without joining a group",
      .details = "Formats know %t topic, %p partition, %o offset (Pulsar: id), %k key, %s "
                 "value, %h headers,\n"
                 "%T timestamp in ms, %K and %S sizes (-1 for null), \\n, \\t and %%.\n",
      .flags = lw_peek_flags,
      .run = lw_command_peek },
    { .name = "status",
      .arguments = "",
      .summary = "reports from the running service",
      .flags = lw_request_flags,
      .run = lw_command_status },
    { .name = "explain",
      .arguments = "[TOPIC]",
      .summary = "says of every message in hand what it waits for",
      .flags = lw_request_flags,
      .run = lw_command_explain },
    { .name = "pause",
      .arguments = "PIPELINE[/TOPIC]",
      .summary = "stops starting handlers for a pipeline or one of its topics",
      .flags = lw_pause_flags,
      .run = lw_command_pause },
    { .name = "resume",
      .arguments = "PIPELINE[/TOPIC]",
      .summary = "starts them again",
      .flags = lw_request_flags,
      .run = lw_command_resume },
    { .name = "drain",
      .arguments = "",
      .summary = "asks the running service to finish and end, as SIGTERM does",
      .flags = lw_request_flags,
      .run = lw_command_drain },
    { .name = "handler",
      .arguments = "check CMD...",
      .summary = "tries whether a program is a handler: starts it, asks it, says what is wrong",
      .details =
          "Options come before the program: laneway handler check --value @order.json python3\n"
          "confirm.py. Each step is a line; under what went wrong are the lines that were\n"
          "exchanged and how to mend it. Exit code 1 if something failed.\n",
      .flags = lw_handler_flags,
      .run = lw_command_handler,
      .program_at = 1 },
    { .name = "errors",
      .arguments = "[CODE]",
      .summary = "explains an error code, or lists all",
      .flags = lw_json_flags,
      .run = lw_command_errors },
    { .name = "schema",
      .arguments = "",
      .summary = "prints the JSON Schema of the configuration",
      .run = lw_command_schema },
    { .name = "config-reference",
      .arguments = "[errors]",
      .summary = "prints the reference page of the configuration, or of the errors",
      .run = lw_command_reference,
      .is_hidden = true },
    { .name = "version",
      .arguments = "",
      .summary = "prints the version",
      .flags = lw_json_flags,
      .run = lw_command_version },
    { .name = "help",
      .arguments = "[COMMAND]",
      .summary = "shows help",
      .run = lw_command_help },
    { .name = NULL },
};

static const struct {
    int code;
    const char *meaning;
} exit_codes[] = {
    { LW_EXIT_OK, "done; run: drained completely" },
    { LW_EXIT_FAILED, "failed: warnings with --strict, output that could not be written" },
    { LW_EXIT_USAGE, "wrong use: unknown command or option" },
    { LW_EXIT_DATA, "input data that cannot be read" },
    { LW_EXIT_NO_INPUT, "a file, topic or subscription that is not there" },
    { LW_EXIT_UNAVAILABLE, "a broker or the running service cannot be reached" },
    { LW_EXIT_SOFTWARE, "a defect of laneway" },
    { LW_EXIT_SYSTEM, "the operating system refused: memory, sockets, processes" },
    { LW_EXIT_CANNOT_CREATE, "an output file or the control socket cannot be made" },
    { LW_EXIT_UNFINISHED, "the drain deadline passed; unfinished messages were given back" },
    { LW_EXIT_DENIED, "the broker refused the credentials" },
    { LW_EXIT_CONFIG, "the configuration is wrong" },
    { LW_EXIT_STOPPED,
      "stopped by a handler policy: on_error, on_exhausted or on_undecodable: stop" },
    { LW_EXIT_INTERRUPTED, "a second Ctrl-C" },
};

const struct lw_command *
lw_command_find(const char *name)
{
    for (const struct lw_command *row = lw_commands; row->name; row++) {
        if (strcmp(row->name, name) == 0) {
            return row;
        }
    }
    return NULL;
}

const char *
lw_command_nearest(const char *name)
{
    const char *best = NULL;
    size_t best_distance = 3;
    for (const struct lw_command *row = lw_commands; row->name; row++) {
        size_t distance = lw_text_distance(name, row->name);
        if (!row->is_hidden && distance < best_distance && distance < strlen(row->name)) {
            best = row->name;
            best_distance = distance;
        }
    }
    return best;
}

static const char *
bold(bool is_coloured)
{
    return is_coloured ? "\033[1m" : "";
}

static const char *
plain(bool is_coloured)
{
    return is_coloured ? "\033[0m" : "";
}

static void
append_flag(const struct lw_flag *flag, struct lw_text *out)
{
    char name[64];
    struct lw_text left;
    bool has_letter = flag->id < LW_FLAG_OWN;
    lw_text_init(&left);
    lw_text_format(&left, "%s%c%s --%s", has_letter ? "-" : " ", has_letter ? flag->id : ' ',
                   has_letter ? "," : " ", flag->name);
    if (flag->argument) {
        lw_text_format(&left, " %s", flag->argument);
    }
    lw_text_copy(name, sizeof name, left.data ? left.data : "");
    lw_text_deinit(&left);
    lw_text_format(out, "  %-26s %s\n", name, flag->doc);
}

void
lw_help_command(const struct lw_command *command, bool is_coloured, struct lw_text *out)
{
    static const struct lw_flag help_row = { 'h', "help", NULL, "shows this help" };
    lw_text_format(out, "%slaneway %s%s%s%s%s\n", bold(is_coloured), command->name,
                   plain(is_coloured), command->arguments[0] ? " " : "", command->arguments,
                   command->flags ? " [OPTION]..." : "");
    lw_text_format(out, "  %s\n\n", command->summary);
    if (command->details) {
        lw_text_format(out, "%s\n", command->details);
    }
    lw_text_format(out, "%sOptions%s\n", bold(is_coloured), plain(is_coloured));
    for (const struct lw_flag *flag = command->flags; flag && flag->id; flag++) {
        if (flag->doc) {
            append_flag(flag, out);
        }
    }
    append_flag(&help_row, out);
}

static void
append_all(bool is_coloured, struct lw_text *out)
{
    lw_text_format(
        out,
        "%slaneway%s: messages from Kafka and Pulsar to handlers, by priority and in key "
        "order\n\n"
        "%sCommands%s\n",
        bold(is_coloured), plain(is_coloured), bold(is_coloured), plain(is_coloured));
    for (const struct lw_command *row = lw_commands; row->name; row++) {
        if (!row->is_hidden) {
            lw_text_format(out, "  %-10s %s\n", row->name, row->summary);
        }
    }
    lw_text_format(out, "\n%sExit codes%s\n", bold(is_coloured), plain(is_coloured));
    for (size_t i = 0; i < sizeof exit_codes / sizeof exit_codes[0]; i++) {
        lw_text_format(out, "  %3d  %s\n", exit_codes[i].code, exit_codes[i].meaning);
    }
    lw_text_append(out,
                   "\nlaneway help COMMAND shows a command's options. Try: laneway demo\n");
}

int
lw_command_help(struct lw_cli *cli)
{
    bool is_coloured = lw_terminal_is_coloured(STDOUT_FILENO, cli->color);
    if (lw_cli_next(cli) == LW_FLAG_STOP) {
        return cli->exit_code;
    }
    if (cli->argument_count == 0) {
        append_all(is_coloured, &cli->out);
        return LW_EXIT_OK;
    }
    const struct lw_command *command = lw_command_find(cli->arguments[0]);
    if (!command) {
        const char *near = lw_command_nearest(cli->arguments[0]);
        return lw_cli_usage(cli, "unknown command \"%s\"%s%s%s", cli->arguments[0],
                            near ? "; did you mean \"" : "", near ? near : "",
                            near ? "\"?" : "");
    }
    lw_help_command(command, is_coloured, &cli->out);
    return LW_EXIT_OK;
}
