/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command of `laneway` is: a row with its name, its help and its function. One file per
 * command (or per family of commands); main.c holds the table. Output is collected in `out` and
 * written at once by main, so that a reader who went away is noticed in one place; commands that
 * stream write by lw_cli_flush. Messages to the user go to standard error by lw_cli_say.
 */
#ifndef LW_CLI_COMMAND_H
#define LW_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include <laneway/laneway.h>

#include "base/text.h"
#include "cli/flags.h"

enum { LW_CLI_MANY = 64 };

/* sysexits and ours; printed by `laneway help`. */
enum lw_exit {
    LW_EXIT_OK = 0,
    LW_EXIT_FAILED = 1,
    LW_EXIT_USAGE = 64,
    LW_EXIT_DATA = 65,
    LW_EXIT_NO_INPUT = 66,
    LW_EXIT_UNAVAILABLE = 69,
    LW_EXIT_SOFTWARE = 70,
    LW_EXIT_SYSTEM = 71,
    LW_EXIT_CANNOT_CREATE = 73,
    LW_EXIT_UNFINISHED = 75,
    LW_EXIT_DENIED = 77,
    LW_EXIT_CONFIG = 78,
    LW_EXIT_STOPPED = 79,
    LW_EXIT_INTERRUPTED = 130
};

enum lw_color { LW_COLOR_AUTO, LW_COLOR_ALWAYS, LW_COLOR_NEVER };

struct lw_cli {
    const struct lw_command *command;
    char **words; /* what follows the command's name, flags and all */
    int word_count;
    int next_word;
    const char *cluster;          /* the rest of "-abc" */
    bool is_flags_end;            /* after "--" */
    const char *value;            /* of the flag just returned */
    int exit_code;                /* when lw_cli_next returned LW_FLAG_STOP */
    char *arguments[LW_CLI_MANY]; /* what is no flag */
    size_t argument_count;
    const char *files[LW_CLI_MANY]; /* -c */
    size_t file_count;
    const char *sets[LW_CLI_MANY]; /* --set */
    size_t set_count;
    const char *properties[LW_CLI_MANY]; /* -X */
    size_t property_count;
    const char *env_files[LW_CLI_MANY]; /* --env-file */
    size_t env_file_count;
    const char *url;
    bool is_json;
    bool is_quiet;
    int verbosity; /* number of -v */
    enum lw_color color;
    struct lw_text out;
    bool is_output_broken; /* the reader of standard output went away, or the disk is full */
};

struct lw_command {
    const char *name;
    const char *arguments;       /* "FILE...", shown in the usage line */
    const char *summary;         /* one line, no full stop */
    const char *details;         /* further paragraphs for its help; may be NULL */
    const struct lw_flag *flags; /* NULL: none but --help */
    int (*run)(struct lw_cli *cli);
    bool is_hidden;
    unsigned
        program_at; /* so many words, then the words of a program, flags and all; 0: none */
};

/* All commands in the order of `laneway help`; the last row has no name. */
extern const struct lw_command lw_commands[];
const struct lw_command *lw_command_find(const char *name);
/* The nearest command's name for a misspelt one, or NULL. */
const char *lw_command_nearest(const char *name);

int lw_command_run(struct lw_cli *cli);
int lw_command_check(struct lw_cli *cli);
int lw_command_plan(struct lw_cli *cli);
int lw_command_topics(struct lw_cli *cli);
int lw_command_init(struct lw_cli *cli);
int lw_command_demo(struct lw_cli *cli);
int lw_command_send(struct lw_cli *cli);
int lw_command_peek(struct lw_cli *cli);
int lw_command_status(struct lw_cli *cli);
int lw_command_explain(struct lw_cli *cli);
int lw_command_pause(struct lw_cli *cli);
int lw_command_resume(struct lw_cli *cli);
int lw_command_drain(struct lw_cli *cli);
int lw_command_handler(struct lw_cli *cli);
int lw_command_errors(struct lw_cli *cli);
int lw_command_schema(struct lw_cli *cli);
int lw_command_reference(struct lw_cli *cli);
int lw_command_version(struct lw_cli *cli);
int lw_command_help(struct lw_cli *cli);

extern const struct lw_flag lw_run_flags[];
extern const struct lw_flag lw_check_flags[];
extern const struct lw_flag lw_plan_flags[];
extern const struct lw_flag lw_topics_flags[];
extern const struct lw_flag lw_demo_flags[];
extern const struct lw_flag lw_send_flags[];
extern const struct lw_flag lw_peek_flags[];
extern const struct lw_flag lw_request_flags[]; /* status, explain, resume, drain */
extern const struct lw_flag lw_pause_flags[];
extern const struct lw_flag lw_handler_flags[];
extern const struct lw_flag lw_json_flags[]; /* those that only know --json */

/* Appends the help of one command. */
void lw_help_command(const struct lw_command *command, bool is_coloured, struct lw_text *out);

/* Writes a sentence about the user's words and gives exit code 64. */
int
lw_cli_usage(struct lw_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes one line to standard error. */
void lw_cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Shows an error as the configuration's errors are shown; returns its exit code. */
int lw_cli_fail(struct lw_cli *cli, const struct lw_error *error);
/* How much of an error's help is for a command that does not go on trying. */
size_t lw_cli_help_size(const struct lw_error *error);
/* Shows running out of memory; returns its exit code. */
int lw_cli_fail_memory(void);
/* Writes `out` to standard output and clears it; false when nobody reads any more. */
bool lw_cli_flush(struct lw_cli *cli);

#endif
