/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded broker as a program, for benches and for clients in other processes. Prints
 * "READY pulsar://127.0.0.1:PORT" and then obeys lines on stdin; each is answered by one line,
 * "ok", "error: ..." or the numbers that were asked for. It ends with its stdin.
 *
 *   create TOPIC [PARTITIONS]                  subscribe TOPIC NAME TYPE
 *   fill TOPIC MESSAGES BYTES KEYS [BATCH]     feed TOPIC MESSAGES BYTES KEYS [BATCH]
 *   unload TOPIC    terminate TOPIC    drop    pass MS    stats [TOPIC NAME]
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "tests/support/pulsar/embedded_state.h"

enum { WORDS = 6, LINE_BYTES = 1024 };

struct program {
    struct lw_loop *loop;
    struct embedded *broker;
    char line[LINE_BYTES];
    size_t size;
};

static uint64_t
number(const char *text)
{
    int64_t value = 0;
    return text != NULL && lw_text_to_int(text, &value) && value >= 0 ? (uint64_t)value : 0;
}

static void
print_stats(struct program *program, const char *topic, const char *name)
{
    const struct embedded_counts *counts = embedded_counts(program->broker);
    struct embedded_subscription_info info = { .mark = 0 };
    if (topic != NULL && name != NULL) {
        (void)embedded_subscription(program->broker, topic, name, &info);
        printf("backlog=%" PRIu64 " mark=%" PRIu64 " pending=%" PRIu64 " consumers=%" PRIu32
               " permits=%" PRId64 " ",
               info.backlog, info.mark, info.pending, info.consumers, info.permits);
    }
    printf("connections=%" PRIu32 " stored=%" PRIu64 " sent=%" PRIu64 " acked=%" PRIu64
           " ack_commands=%" PRIu64 " granted=%" PRIu64 " permits_max=%" PRId64
           " redelivered=%" PRIu64 " violations=%" PRIu64 " protocol_errors=%" PRIu64 "\n",
           embedded_connections(program->broker), counts->messages_stored,
           counts->messages_sent, counts->acked_ids, counts->ack_commands,
           counts->permits_granted, counts->permits_max, counts->redelivered,
           counts->violations, counts->protocol_errors);
}

static int32_t
type_of(const char *text)
{
    static const char *const names[] = { "exclusive", "shared", "failover", "key_shared" };
    for (int32_t i = 0; i < 4; i++) {
        if (strcmp(text, names[i]) == 0) {
            return i;
        }
    }
    return LW_PULSAR_SUB_SHARED;
}

/* False: it is no command. */
static bool
obey_topic(struct embedded *broker, char *const *words)
{
    if (strcmp(words[0], "create") == 0) {
        if (words[2] != NULL) {
            embedded_set_partitions(broker, words[1], (uint32_t)number(words[2]));
        } else {
            embedded_create_topic(broker, words[1]);
        }
    } else if (strcmp(words[0], "subscribe") == 0 && words[3] != NULL) {
        embedded_create_subscription(broker, words[1], words[2], type_of(words[3]), false);
    } else if (strcmp(words[0], "fill") == 0 && words[4] != NULL) {
        embedded_fill(broker, words[1], number(words[2]), (size_t)number(words[3]),
                      (uint32_t)number(words[4]), (uint32_t)number(words[5]));
    } else if (strcmp(words[0], "feed") == 0 && words[4] != NULL) {
        embedded_feed(broker, words[1], number(words[2]), (size_t)number(words[3]),
                      (uint32_t)number(words[4]), (uint32_t)number(words[5]));
    } else if (strcmp(words[0], "unload") == 0) {
        embedded_unload(broker, words[1], 0, false);
    } else if (strcmp(words[0], "terminate") == 0) {
        embedded_terminate(broker, words[1]);
    } else {
        return false;
    }
    return true;
}

static void
obey(struct program *program)
{
    char *words[WORDS + 1] = { NULL };
    char *state = NULL;
    size_t count = 0;
    for (char *word = strtok_r(program->line, " \t\r", &state); word != NULL && count < WORDS;
         word = strtok_r(NULL, " \t\r", &state)) {
        words[count++] = word;
    }
    bool is_known = true;
    if (count == 0) {
        return;
    }
    if (strcmp(words[0], "stats") == 0) {
        print_stats(program, words[1], words[2]);
        fflush(stdout);
        return;
    }
    if (strcmp(words[0], "drop") == 0) {
        embedded_drop_all(program->broker);
    } else if (strcmp(words[0], "pass") == 0) {
        embedded_pass_ms(program->broker, (int64_t)number(words[1]));
    } else {
        is_known = count > 1 && obey_topic(program->broker, words);
    }
    printf(is_known ? "ok\n" : "error: no such command\n");
    fflush(stdout);
}

static void
take_lines(struct program *program)
{
    char *end;
    while ((end = memchr(program->line, '\n', program->size)) != NULL) {
        char rest[LINE_BYTES];
        size_t used = (size_t)(end - program->line) + 1;
        size_t left = program->size - used;
        memcpy(rest, end + 1, left);
        *end = '\0';
        obey(program);
        memcpy(program->line, rest, left);
        program->size = left;
    }
    if (program->size == sizeof program->line) {
        program->size = 0;
    }
}

static void
on_stdin(int fd, int events, void *user)
{
    struct program *program = user;
    (void)events;
    ssize_t count = read(fd, program->line + program->size,
                         sizeof program->line - program->size);
    if (count > 0) {
        program->size += (size_t)count;
        take_lines(program);
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        lw_loop_stop(program->loop);
    }
}

int
main(void)
{
    struct program program = { .size = 0 };
    struct embedded_settings settings;
    embedded_settings_init(&settings);
    if (lw_loop_create(lw_clock_seed(), &program.loop) != LW_STATUS_OK) {
        return 1;
    }
    struct lw_host *host = lw_loop_host(program.loop);
    program.broker = embedded_create(host, &settings);
    (void)fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    struct lw_watch *watch = host->ops->watch(host, STDIN_FILENO, LW_READABLE, on_stdin,
                                              &program);
    if (watch == NULL) {
        return 1;
    }
    printf("READY %s\n", embedded_url(program.broker, 0));
    fflush(stdout);
    lw_loop_run(program.loop);
    host->ops->unwatch(watch);
    embedded_destroy(program.broker);
    lw_loop_destroy(program.loop);
    return 0;
}
