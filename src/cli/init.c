/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `laneway init NAME [DIR]`: prints a configuration to begin with, or writes it with its handlers
 * into a folder. Nothing that is there is ever overwritten: all names are looked at before the
 * first file is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/starters.h"
#include "cli/terminal.h"

enum { PATH_BYTES = 4096 };

static const struct lw_starter *
find(const char *name)
{
    for (const struct lw_starter *row = lw_starters; row->name; row++) {
        if (strcmp(row->name, name) == 0) {
            return row;
        }
    }
    return NULL;
}

static void
append_list(struct lw_text *out)
{
    for (const struct lw_starter *row = lw_starters; row->name; row++) {
        lw_text_format(out, "%-14s %s\n", row->name, row->about);
    }
}

static int
refuse_name(struct lw_cli *cli, const char *name)
{
    const char *best = NULL;
    size_t best_distance = 4;
    for (const struct lw_starter *row = lw_starters; row->name; row++) {
        size_t distance = lw_text_distance(name, row->name);
        if (distance < best_distance) {
            best = row->name;
            best_distance = distance;
        }
    }
    return lw_cli_usage(cli, "there is no starter \"%s\"%s%s%s", name,
                        best ? "; did you mean \"" : ": laneway init lists them",
                        best ? best : "", best ? "\"?" : "");
}

static void
append_lines(const struct lw_starter_file *file, struct lw_text *out)
{
    for (const char *const *line = file->lines; *line; line++) {
        lw_text_format(out, "%s\n", *line);
    }
}

/* -- Writing ----------------------------------------------------------------------------------- */

static int
fail(const char *path, int code)
{
    lw_cli_say("laneway init: cannot write %s: %s", path, strerrordesc_np(code));
    return LW_EXIT_CANNOT_CREATE;
}

static bool
join(const char *folder, const char *name, char out[PATH_BYTES])
{
    int length = snprintf(out, PATH_BYTES, "%s/%s", folder, name);
    return length > 0 && length < PATH_BYTES;
}

/* The folder itself and those in the names of the files. */
static int
make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int result = mkdir(path, 0777);
        int code = errno;
        if (result != 0 && code != EEXIST) {
            return fail(path, code);
        }
        *slash = '/';
    }
    return LW_EXIT_OK;
}

static int
write_file(const char *folder, const struct lw_starter_file *file)
{
    char path[PATH_BYTES];
    struct lw_text text;
    if (!join(folder, file->name, path)) {
        return fail(folder, ENAMETOOLONG);
    }
    int exit_code = make_folders(path);
    if (exit_code != LW_EXIT_OK) {
        return exit_code;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                  file->is_program ? 0777 : 0666);
    if (fd < 0) {
        return fail(path, errno);
    }
    lw_text_init(&text);
    append_lines(file, &text);
    bool is_written = !text.is_failed && lw_terminal_write(fd, text.data, text.size);
    int code = errno;
    lw_text_deinit(&text);
    bool is_closed = close(fd) == 0;
    return is_written && is_closed ? LW_EXIT_OK : fail(path, is_written ? errno : code);
}

static int
write_all(const struct lw_starter *starter, const char *folder)
{
    char path[PATH_BYTES];
    for (const struct lw_starter_file *file = starter->files; file->name; file++) {
        if (!join(folder, file->name, path)) {
            return fail(folder, ENAMETOOLONG);
        }
        if (access(path, F_OK) == 0) {
            return fail(path, EEXIST);
        }
    }
    int exit_code = LW_EXIT_OK;
    for (const struct lw_starter_file *file = starter->files; file->name; file++) {
        exit_code = exit_code == LW_EXIT_OK ? write_file(folder, file) : exit_code;
    }
    return exit_code;
}

int
lw_command_init(struct lw_cli *cli)
{
    if (lw_cli_next(cli) != LW_FLAG_END) {
        return cli->exit_code;
    }
    if (cli->argument_count == 0) {
        append_list(&cli->out);
        return LW_EXIT_OK;
    }
    const struct lw_starter *starter = find(cli->arguments[0]);
    if (!starter) {
        return refuse_name(cli, cli->arguments[0]);
    }
    if (cli->argument_count > 2) {
        return lw_cli_usage(cli, "say NAME and at most one folder");
    }
    if (cli->argument_count == 1) {
        append_lines(&starter->files[0], &cli->out);
        return LW_EXIT_OK;
    }
    int exit_code = write_all(starter, cli->arguments[1]);
    for (const struct lw_starter_file *file = starter->files;
         exit_code == LW_EXIT_OK && file->name; file++) {
        lw_text_format(&cli->out, "%s/%s\n", cli->arguments[1], file->name);
    }
    return exit_code;
}
