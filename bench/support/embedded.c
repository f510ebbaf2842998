/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts, tells and ends the embedded Pulsar broker of embedded.h. Lines go one by one: the next
 * is not sent before the last was answered, so that a bench knows that a topic is filled.
 */
#include "bench/support/embedded.h"

#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void
program_path(const char *argv0, char *out, size_t size)
{
    char own[1024];
    snprintf(own, sizeof own, "%s", argv0);
    snprintf(out, size, "%s/../tests/support/embedded_pulsar", dirname(own));
}

static void
become_broker(const char *path, const int input[2], const int output[2])
{
    dup2(input[0], STDIN_FILENO);
    dup2(output[1], STDOUT_FILENO);
    execl(path, path, (char *)NULL);
    _exit(127);
}

bool
lw_embedded_start(struct lw_embedded *embedded, const char *argv0)
{
    int input[2];
    int output[2];
    char path[1200];
    char line[256];
    *embedded = (struct lw_embedded){ .pid = -1 };
    program_path(argv0, path, sizeof path);
    if (access(path, X_OK) != 0 || pipe2(input, O_CLOEXEC) != 0 ||
        pipe2(output, O_CLOEXEC) != 0) {
        return false;
    }
    embedded->pid = fork();
    if (embedded->pid == 0) {
        become_broker(path, input, output);
    }
    close(input[0]);
    close(output[1]);
    embedded->input = fdopen(input[1], "w");
    embedded->output = fdopen(output[0], "r");
    if (embedded->pid > 0 && embedded->input && embedded->output &&
        fgets(line, sizeof line, embedded->output) &&
        sscanf(line, "READY %127s", embedded->address) == 1) {
        return true;
    }
    fprintf(stderr, "bench: the embedded broker did not start\n");
    lw_embedded_stop(embedded);
    return false;
}

bool
lw_embedded_tell(struct lw_embedded *embedded, const char *line, char *reply, size_t size)
{
    char own[1024];
    char *text = reply ? reply : own;
    size_t room = reply ? size : sizeof own;
    fprintf(embedded->input, "%s\n", line);
    fflush(embedded->input);
    if (!fgets(text, (int)room, embedded->output)) {
        return false;
    }
    return reply ? strncmp(text, "error", 5) != 0 : strcmp(text, "ok\n") == 0;
}

double
lw_embedded_stat(struct lw_embedded *embedded, const char *name)
{
    char reply[1024];
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%s=", name);
    if (!lw_embedded_tell(embedded, "stats", reply, sizeof reply)) {
        return -1;
    }
    const char *found = strstr(reply, wanted);
    return found ? strtod(found + strlen(wanted), NULL) : -1;
}

void
lw_embedded_stop(struct lw_embedded *embedded)
{
    if (embedded->input) {
        fclose(embedded->input);
    }
    if (embedded->output) {
        fclose(embedded->output);
    }
    if (embedded->pid > 0) {
        kill(embedded->pid, SIGTERM);
        waitpid(embedded->pid, NULL, 0);
    }
}
