/* SPDX-License-Identifier: Apache-2.0 */
/*
 * obey_once: the handler of the engine tests under protocol once. It does what its standard input
 * says: the commands of tests/engines/conformance.h, and some of its own:
 *   exit CODE | env NAME | print BYTES | descriptors | child | stubborn | first-time FILE CODE
 * `obey_once deaf` does not read its input and exits with 0. In C, since a test runs it hundreds
 * of times.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { INPUT_BYTES_MAX = 1 << 23 };

static char *
after(char *command, const char *word)
{
    size_t length = strlen(word);
    return strncmp(command, word, length) == 0 ? command + length : NULL;
}

static int
complain(const char *text, int code)
{
    (void)fprintf(stderr, "first line\n%s\n", text);
    return code;
}

static void
sleep_ms(long ms)
{
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    (void)nanosleep(&left, NULL);
}

static int
print_many(long count)
{
    for (long i = 0; i < count; i++) {
        (void)putchar('y');
    }
    return 0;
}

static int
print_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    for (int fd = 0; fd < 64; fd++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (fd != dirfd(folder) && access(path, F_OK) == 0) {
            (void)printf("%d ", fd);
        }
    }
    (void)closedir(folder);
    return 0;
}

/* A child that holds all descriptors open. */
static int
leave_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        sleep_ms(3600000);
        _exit(0);
    }
    (void)printf("%d", (int)pid);
    return 0;
}

static int
first_time(char *rest)
{
    char *code = strchr(rest, ' ');
    *code++ = '\0';
    if (access(rest, F_OK) == 0) {
        return 0;
    }
    FILE *marker = fopen(rest, "w");
    (void)fclose(marker);
    return (int)strtol(code, NULL, 10);
}

static int
stop_never(void)
{
    (void)signal(SIGTERM, SIG_IGN);
    (void)fprintf(stderr, "stubborn\n");
    sleep_ms(3600000);
    return 0;
}

static int
obey_odd(char *command)
{
    char *rest = NULL;
    if ((rest = after(command, "env ")) != NULL) {
        const char *value = getenv(rest);
        (void)printf("%s", value ? value : "(unset)");
        return 0;
    }
    if ((rest = after(command, "print ")) != NULL) {
        return print_many(strtol(rest, NULL, 10));
    }
    if ((rest = after(command, "first-time ")) != NULL) {
        return first_time(rest);
    }
    if (strcmp(command, "descriptors") == 0) {
        return print_descriptors();
    }
    if (strcmp(command, "child") == 0) {
        return leave_child();
    }
    return strcmp(command, "stubborn") == 0 ? stop_never() : complain("unknown command", 70);
}

static int
obey(char *command)
{
    char *rest = NULL;
    if (strcmp(command, "ok") == 0) {
        return 0;
    }
    if ((rest = after(command, "reply ")) != NULL) {
        (void)printf("%s", rest);
        return 0;
    }
    if ((rest = after(command, "dead ")) != NULL) {
        return complain(rest, 100);
    }
    if ((rest = after(command, "drop ")) != NULL) {
        return complain(rest, 99);
    }
    if ((rest = after(command, "retry ")) != NULL) {
        (void)strtol(rest, &rest, 10);
        return complain(rest + 1, 75);
    }
    if ((rest = after(command, "error ")) != NULL) {
        long code = strtol(rest, &rest, 10);
        return complain(rest + 1, (int)code);
    }
    if ((rest = after(command, "exit ")) != NULL) {
        return (int)strtol(rest, NULL, 10);
    }
    if (strcmp(command, "hold") == 0) {
        sleep_ms(3600000);
    }
    if (strcmp(command, "crash") == 0) {
        (void)fprintf(stderr, "about to crash\n");
        (void)raise(SIGKILL);
    }
    return obey_odd(command);
}

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "deaf") == 0) {
        return 0;
    }
    static char input[INPUT_BYTES_MAX + 1];
    size_t size = fread(input, 1, INPUT_BYTES_MAX, stdin);
    input[size] = '\0';
    if (size == 0 || (unsigned char)input[0] < ' ') {
        (void)fwrite(input, 1, size, stdout); /* payloads that are no command come back */
        return 0;
    }
    char *command = input;
    while (after(command, "wait ")) {
        sleep_ms(strtol(command + strlen("wait "), &command, 10));
        command++;
    }
    return obey(command);
}
