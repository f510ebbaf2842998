/* SPDX-License-Identifier: Apache-2.0 */
/*
 * e2e.c: tests/support/e2e_handler.py as a plug-in, for end-to-end tests of engine processes. It
 * does what rules say, and writes down when, in the same form.
 *
 * Options: `log`, a folder: one file per worker, named by the service's pid and its own, opened with
 * O_APPEND, one write for the begin of a run and one before its end; `work_ms`; `rules`, such as
 * "1000 13 retry;100 7 retry,ok": modulus, remainder, results of attempt 1, 2, ..., the last one
 * repeated. A value may carry results of its own under "do". Results: ok, retry, dead, drop, error,
 * reply, sleep:SECONDS, crash (says so, and dies by SIGSEGV).
 */
#include <laneway/handler.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 1024, WORD_MAX = 64, KEY_BYTES_MAX = 100, LINE_MAX_BYTES = 1024 };

struct e2e {
    int log; /* -1: none */
    long work_us;
    char rules[TEXT_MAX];
};

struct run {
    const struct lw_delivery *delivery;
    long number; /* "i" of the value; -1 without one */
    char result[WORD_MAX];
};

/* -- What is to be done -------------------------------------------------------------------------- */

/* Result number `index` (from 1) of a list with commas; the last one is repeated. */
static void
pick(const char *list, size_t size, uint32_t index, char out[WORD_MAX])
{
    const char *end = list + size;
    const char *comma = memchr(list, ',', size);
    for (uint32_t i = 1; i < index && comma; i++) {
        list = comma + 1;
        comma = memchr(list, ',', (size_t)(end - list));
    }
    size_t length = (size_t)((comma ? comma : end) - list);
    length = length < WORD_MAX ? length : WORD_MAX - 1;
    memcpy(out, list, length);
    out[length] = '\0';
}

/* The results under "do", as a list with commas; false without them. */
static bool
find_own(const char *value, char out[TEXT_MAX])
{
    const char *at = strstr(value, "\"do\":");
    size_t size = 0;
    if (!at) {
        return false;
    }
    for (at += strlen("\"do\":"); *at && *at != ']' && size < TEXT_MAX - 1; at++) {
        if (*at != '[' && *at != '"' && *at != ' ') {
            out[size++] = *at;
        }
    }
    out[size] = '\0';
    return true;
}

static void
find_result(const struct e2e *e2e, const char *value, struct run *run)
{
    uint32_t index = lw_delivery_attempt(run->delivery) + lw_delivery_retries(run->delivery);
    char own[TEXT_MAX];
    (void)snprintf(run->result, sizeof run->result, "ok");
    if (find_own(value, own)) {
        if (own[0]) {
            pick(own, strlen(own), index, run->result);
        }
        return;
    }
    for (const char *rule = e2e->rules; rule && *rule && run->number >= 0;) {
        char *rest = NULL;
        long modulus = strtol(rule, &rest, 10);
        long remainder = strtol(rest, &rest, 10);
        const char *end = strchr(rest, ';');
        rest += *rest == ' ';
        if (modulus > 0 && run->number % modulus == remainder) {
            pick(rest, end ? (size_t)(end - rest) : strlen(rest), index, run->result);
            return;
        }
        rule = end ? end + 1 : NULL;
    }
}

static void
read_run(const struct e2e *e2e, struct run *run)
{
    struct lw_bytes value = lw_delivery_value(run->delivery);
    char text[TEXT_MAX] = "";
    size_t size = value.size < sizeof text - 1 ? value.size : sizeof text - 1;
    if (value.data) {
        memcpy(text, value.data, size);
    }
    const char *number = strstr(text, "\"i\":");
    run->number = number ? strtol(number + strlen("\"i\":"), NULL, 10) : -1;
    find_result(e2e, text, run);
}

/* -- What was done ------------------------------------------------------------------------------- */

static long long
monotonic_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void
note(const struct e2e *e2e, const char *what, const struct run *run)
{
    const struct lw_delivery *delivery = run->delivery;
    struct lw_bytes key = lw_delivery_key(delivery);
    char shown[KEY_BYTES_MAX + 1] = "<null>";
    char line[LINE_MAX_BYTES];
    if (key.data && key.size <= KEY_BYTES_MAX) {
        (void)snprintf(shown, sizeof shown, "%.*s", (int)key.size, (const char *)key.data);
    } else if (key.data) {
        (void)snprintf(shown, sizeof shown, "<%zu>", key.size);
    }
    int size = snprintf(line, sizeof line,
                        "%s\t%s\t%" PRId32 "\t%" PRId64 "\t%" PRIu32 "\t%" PRIu32
                        "\t%lld\t%s\t%s\t%ld\t%" PRIu32 "\n",
                        what, lw_delivery_topic(delivery), lw_delivery_partition(delivery),
                        lw_delivery_offset(delivery), lw_delivery_attempt(delivery),
                        lw_delivery_retries(delivery), monotonic_ns(), run->result, shown,
                        run->number, lw_delivery_redeliveries(delivery));
    bool is_whole = size > 0 && (size_t)size < sizeof line;
    if (e2e->log >= 0 && (!is_whole || write(e2e->log, line, (size_t)size) != size)) {
        abort(); /* what is not written down cannot be judged */
    }
}

/* -- The handler --------------------------------------------------------------------------------- */

static void
pause_us(long us)
{
    struct timespec left = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
    while (us > 0 && nanosleep(&left, &left) != 0) {
    }
}

static enum lw_verdict
obey(struct lw_delivery *delivery, const struct run *run)
{
    char text[WORD_MAX + 32];
    if (strcmp(run->result, "reply") == 0) {
        (void)snprintf(text, sizeof text, "{\"done\": %ld}", run->number);
        return lw_delivery_reply(delivery, lw_bytes_of(text)) == LW_STATUS_OK ? LW_OK
                                                                              : LW_RETRY;
    }
    (void)snprintf(text, sizeof text, "as told: %s", run->result);
    if (strcmp(run->result, "retry") == 0) {
        return lw_delivery_retry(delivery, text, -1);
    } else if (strcmp(run->result, "dead") == 0) {
        return lw_delivery_dead(delivery, text);
    } else if (strcmp(run->result, "drop") == 0) {
        return lw_delivery_drop(delivery, text);
    } else if (strcmp(run->result, "error") == 0) {
        return lw_delivery_error(delivery, -1, text);
    }
    return LW_OK;
}

static void
misbehave(const char *result)
{
    if (strncmp(result, "sleep:", strlen("sleep:")) == 0) {
        pause_us((long)(strtod(result + strlen("sleep:"), NULL) * 1e6));
    } else if (strcmp(result, "crash") == 0) {
        (void)prctl(PR_SET_DUMPABLE, 0);
        (void)fputs("going down\n", stderr);
        (void)signal(SIGSEGV, SIG_DFL);
        (void)raise(SIGSEGV);
    }
}

static enum lw_verdict
handle(struct lw_delivery *delivery, void *user)
{
    const struct e2e *e2e = user;
    struct run run = { .delivery = delivery };
    read_run(e2e, &run);
    note(e2e, "S", &run);
    pause_us(e2e->work_us);
    misbehave(run.result);
    note(e2e, "E", &run);
    return obey(delivery, &run);
}

/* -- An instance --------------------------------------------------------------------------------- */

static long
parent_of(long pid)
{
    char path[64];
    char text[TEXT_MAX] = "";
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        (void)fclose(file);
    }
    const char *behind_name = strrchr(text, ')');
    return behind_name && strlen(behind_name) > 4 ? strtol(behind_name + 4, NULL, 10) : -1;
}

/* A worker's parent is the process that forks, whose parent is the service. */
static bool
open_log(struct e2e *e2e, const struct lw_handler_setup *setup, const char *folder)
{
    char path[TEXT_MAX];
    bool is_forked = setup->engine == LW_ENGINE_PROCESSES;
    long service = is_forked ? parent_of(getppid()) : getpid();
    (void)snprintf(path, sizeof path, "%s/%ld-%ld.runs", folder, service, (long)getpid());
    e2e->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return e2e->log >= 0;
}

static enum lw_status
open_e2e(const struct lw_handler_setup *setup, void **ret_user, struct lw_error *error)
{
    const char *folder = lw_handler_option(setup, "log", NULL);
    struct e2e *e2e = calloc(1, sizeof *e2e);
    if (!e2e) {
        return LW_STATUS_NO_MEMORY;
    }
    e2e->log = -1;
    e2e->work_us = (long)(strtod(lw_handler_option(setup, "work_ms", "0"), NULL) * 1000);
    (void)snprintf(e2e->rules, sizeof e2e->rules, "%s", lw_handler_option(setup, "rules", ""));
    if (folder && !open_log(e2e, setup, folder)) {
        (void)snprintf(error->message, sizeof error->message, "no log in \"%s\"", folder);
        free(e2e);
        return LW_STATUS_SYSTEM;
    }
    *ret_user = e2e;
    return LW_STATUS_OK;
}

static void
close_e2e(void *user)
{
    struct e2e *e2e = user;
    if (e2e->log >= 0) {
        (void)close(e2e->log);
    }
    free(e2e);
}

LW_HANDLER(lw_handler) = {
    LW_HANDLER_HEAD,  .about = "as tests say", .handle = handle,
    .open = open_e2e, .close = close_e2e,
};
