/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal, and how a command speaks to its user: see command.h for the contract. Output is
 * written whole or not at all as far as the reader lets us; messages go to standard error at once.
 */
#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool
lw_terminal_is(int fd)
{
    return isatty(fd) == 1;
}

bool
lw_terminal_is_coloured(int fd, enum lw_color color)
{
    const char *no = getenv("NO_COLOR");
    const char *force = getenv("FORCE_COLOR");
    const char *term = getenv("TERM");
    if (color != LW_COLOR_AUTO) {
        return color == LW_COLOR_ALWAYS;
    }
    if (no && no[0]) {
        return false;
    }
    if (force && force[0] && strcmp(force, "0") != 0) {
        return true;
    }
    return lw_terminal_is(fd) && !(term && strcmp(term, "dumb") == 0);
}

static unsigned
number_of(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    int64_t value = 0;
    bool is_good = text && lw_text_to_int(text, &value) && value >= 1 && value <= 10000;
    return is_good ? (unsigned)value : otherwise;
}

void
lw_terminal_size(int fd, unsigned *ret_columns, unsigned *ret_rows)
{
    struct winsize size = { 0 };
    bool is_known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    *ret_columns = is_known ? size.ws_col : number_of("COLUMNS", 80);
    *ret_rows = is_known ? size.ws_row : number_of("LINES", 24);
}

/* After a failed write: true when it is worth another try. */
static bool
may_try_again(int fd)
{
    struct pollfd item = { .fd = fd, .events = POLLOUT };
    if (errno == EAGAIN) {
        return poll(&item, 1, -1) >= 0 || errno == EINTR;
    }
    return errno == EINTR;
}

bool
lw_terminal_write(int fd, const void *data, size_t size)
{
    const char *next = data;
    while (size > 0) {
        ssize_t written = write(fd, next, size);
        if (written < 0 && !may_try_again(fd)) {
            return false;
        }
        if (written > 0) {
            next += written;
            size -= (size_t)written;
        }
    }
    return true;
}

bool
lw_cli_flush(struct lw_cli *cli)
{
    if (!cli->is_output_broken && cli->out.size > 0) {
        cli->is_output_broken = !lw_terminal_write(STDOUT_FILENO, cli->out.data, cli->out.size);
        if (cli->is_output_broken && errno != EPIPE) {
            lw_cli_say("laneway: cannot write the output: %s", strerrordesc_np(errno));
        }
    }
    lw_text_clear(&cli->out);
    return !cli->is_output_broken;
}

static void
say_text(struct lw_text *text)
{
    lw_text_append_char(text, '\n');
    if (text->data && !text->is_failed) {
        (void)lw_terminal_write(STDERR_FILENO, text->data, text->size);
    }
    lw_text_deinit(text);
}

void
lw_cli_say(const char *format, ...)
{
    struct lw_text text;
    va_list arguments;
    lw_text_init(&text);
    va_start(arguments, format);
    lw_text_format_v(&text, format, arguments);
    va_end(arguments);
    say_text(&text);
}

int
lw_cli_usage(struct lw_cli *cli, const char *format, ...)
{
    struct lw_text text;
    va_list arguments;
    lw_text_init(&text);
    lw_text_format(&text, "laneway%s%s: ", cli->command ? " " : "",
                   cli->command ? cli->command->name : "");
    va_start(arguments, format);
    lw_text_format_v(&text, format, arguments);
    va_end(arguments);
    if (cli->command) {
        lw_text_format(&text, "\nhelp: laneway help %s", cli->command->name);
    }
    say_text(&text);
    return LW_EXIT_USAGE;
}

/* The clients speak to a service that tries for ever; a command that ends does not. */
size_t
lw_cli_help_size(const struct lw_error *error)
{
    const char *promise = strstr(error->help, "Still trying");
    size_t size = promise ? (size_t)(promise - error->help) : strlen(error->help);
    while (size > 0 && error->help[size - 1] == ' ') {
        size--;
    }
    return size;
}

int
lw_cli_fail(struct lw_cli *cli, const struct lw_error *error)
{
    struct lw_text text;
    int help_size = (int)lw_cli_help_size(error);
    bool is_coloured = lw_terminal_is_coloured(STDERR_FILENO, cli->color);
    const char *mark = is_coloured ? "\033[1;31m" : "";
    const char *plain = is_coloured ? "\033[0m" : "";
    lw_text_init(&text);
    if (error->file[0] && error->line > 0) {
        lw_text_format(&text, "%s:%d:%d: ", error->file, error->line, error->column);
    } else if (error->file[0]) {
        lw_text_format(&text, "%s: ", error->file);
    }
    lw_text_format(&text, "%serror%s%s%s%s: %s", mark, error->code[0] ? "[" : "", error->code,
                   error->code[0] ? "]" : "", plain, error->message);
    if (help_size > 0) {
        lw_text_format(&text, "\nhelp: %.*s", help_size, error->help);
    }
    say_text(&text);
    return lw_error_exit_code(error);
}

int
lw_cli_fail_memory(void)
{
    lw_cli_say("laneway: out of memory");
    return LW_EXIT_SYSTEM;
}
