/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command: finds the row of the wanted command, lets it run, writes what it collected. Its
 * exit codes are those of sysexits where one fits. Nothing happens before main but what the
 * linked libraries do, so that `laneway version` stays at a few milliseconds.
 */
#include <signal.h>
#include <string.h>

#include "cli/command.h"

static int
no_command(struct lw_cli *cli)
{
    const char *wanted = "help";
    cli->command = lw_command_find(wanted);
    (void)cli->command->run(cli);
    return LW_EXIT_USAGE;
}

static int
unknown_command(struct lw_cli *cli, const char *name)
{
    const char *near = lw_command_nearest(name);
    if (name[0] == '-') {
        return lw_cli_usage(cli, "options come after the command; see: laneway help");
    }
    if (near) {
        return lw_cli_usage(cli, "unknown command \"%s\"; did you mean \"%s\"?", name, near);
    }
    return lw_cli_usage(cli, "unknown command \"%s\"; see: laneway help", name);
}

/* `laneway --help` and `laneway --version` are what everybody tries first. */
static const char *
command_of(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        return "help";
    }
    return strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 ? "version" : word;
}

/*
 * A reader of our output that went away is an error of write, not the end of the process; so is a
 * limit of file sizes, which holds for a spool and for shared memory.
 */
static void
block_signals_of_writes(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    sigaddset(&set, SIGXFSZ);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
}

static int
run(struct lw_cli *cli, int argc, char **argv)
{
    if (argc < 2) {
        return no_command(cli);
    }
    const char *name = command_of(argv[1]);
    const struct lw_command *command = lw_command_find(name);
    if (!command) {
        return unknown_command(cli, name);
    }
    cli->command = command;
    cli->words = argv + 2;
    cli->word_count = argc - 2;
    return command->run(cli);
}

int
main(int argc, char **argv)
{
    struct lw_cli cli = { 0 };
    block_signals_of_writes();
    lw_text_init(&cli.out);
    int exit_code = run(&cli, argc, argv);
    bool is_written = lw_cli_flush(&cli);
    lw_text_deinit(&cli.out);
    return is_written || exit_code != LW_EXIT_OK ? exit_code : LW_EXIT_FAILED;
}
