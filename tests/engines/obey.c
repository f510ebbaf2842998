/* SPDX-License-Identifier: Apache-2.0 */
/*
 * obey.c: the C handlers of the conformance suite. They do what the message's text says: at once,
 * blocking, or asynchronously by timers of the loop. tests/engines/data/obey.py is the same as a
 * program.
 */
#include "tests/engines/conformance.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/host.h"

enum { HOLD_LOOK_MS = 2, COMMAND_BYTES_MAX = 256 };

struct waiting {
    struct lw_timer timer;
    struct lw_delivery *delivery;
    struct world *world;
    const char *rest; /* NULL: holds */
    char command[COMMAND_BYTES_MAX];
};

static const char *
after(const char *command, const char *word)
{
    size_t length = strlen(word);
    return strncmp(command, word, length) == 0 ? command + length : NULL;
}

static enum lw_verdict
publish(struct lw_delivery *delivery, const char *rest)
{
    char topic[64] = "";
    int used = 0;
    struct lw_header header = { lw_bytes_of("h"), lw_bytes_of("1") };
    (void)sscanf(rest, "%63s %n", topic, &used);
    struct lw_output output = {
        .topic = topic,
        .key = lw_bytes_of("out"),
        .value = lw_bytes_of(rest + used),
        .headers = &header,
        .header_count = 1,
        .delay_ms = 1500,
    };
    return lw_delivery_publish(delivery, &output) == LW_STATUS_OK ? LW_OK : LW_ERROR;
}

static enum lw_verdict
obey(struct lw_delivery *delivery, const char *command)
{
    const char *rest = NULL;
    char *end = NULL;
    if (strcmp(command, "ok") == 0) {
        return LW_OK;
    } else if (strcmp(command, "echo") == 0) {
        lw_delivery_reply(delivery, lw_delivery_value(delivery));
        return LW_OK;
    } else if (strcmp(command, "reply-null") == 0) {
        lw_delivery_reply(delivery, lw_bytes_of(NULL));
        return LW_OK;
    } else if ((rest = after(command, "reply ")) != NULL) {
        lw_delivery_reply(delivery, lw_bytes_of(rest));
        return LW_OK;
    } else if ((rest = after(command, "output ")) != NULL) {
        return publish(delivery, rest);
    } else if ((rest = after(command, "dead ")) != NULL) {
        return lw_delivery_dead(delivery, rest);
    } else if ((rest = after(command, "drop ")) != NULL) {
        return lw_delivery_drop(delivery, rest);
    } else if ((rest = after(command, "retry ")) != NULL) {
        long delay_ms = strtol(rest, &end, 10);
        return lw_delivery_retry(delivery, end + 1, delay_ms);
    } else if ((rest = after(command, "error ")) != NULL) {
        long code = strtol(rest, &end, 10);
        return lw_delivery_error(delivery, (int)code, end + 1);
    }
    return lw_delivery_error(delivery, -1, "unknown command");
}

static void
copy_command(const struct lw_delivery *delivery, char command[COMMAND_BYTES_MAX])
{
    struct lw_bytes value = lw_delivery_value(delivery);
    size_t size = value.size < COMMAND_BYTES_MAX - 1 ? value.size : COMMAND_BYTES_MAX - 1;
    if (value.data) {
        memcpy(command, value.data, size);
    }
    command[value.data ? size : 0] = '\0';
    if (!value.data || (size > 0 && command[0] < ' ') || size == 0) {
        memcpy(command, "echo", sizeof "echo"); /* payloads that are no command come back */
    }
}

static void
sleep_ms(long ms)
{
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    ppoll(NULL, 0, &left, NULL);
}

enum lw_verdict
conformance_handle(struct lw_delivery *delivery, void *user)
{
    char command[COMMAND_BYTES_MAX];
    (void)user;
    copy_command(delivery, command);
    const char *rest = after(command, "wait ");
    if (rest) {
        char *end = NULL;
        sleep_ms(strtol(rest, &end, 10));
        return obey(delivery, end + 1);
    }
    while (strcmp(command, "hold") == 0) {
        sleep_ms(HOLD_LOOK_MS);
        if (lw_delivery_is_cancelled(delivery)) {
            return lw_delivery_drop(delivery, "held");
        }
    }
    return obey(delivery, command);
}

static void
on_waited(struct lw_timer *timer, uint64_t now)
{
    struct waiting *waiting = LW_CONTAINER(timer, struct waiting, timer);
    struct lw_delivery *delivery = waiting->delivery;
    if (!waiting->rest && !lw_delivery_is_cancelled(delivery)) {
        lw_timers_arm(&waiting->world->host->timers, timer, now + HOLD_LOOK_MS * LW_MS);
        return;
    }
    enum lw_verdict verdict = waiting->rest ? obey(delivery, waiting->rest)
                                            : lw_delivery_drop(delivery, "held");
    free(waiting);
    lw_delivery_finish(delivery, verdict);
}

void
conformance_handle_async(struct lw_delivery *delivery, void *user)
{
    char command[COMMAND_BYTES_MAX];
    copy_command(delivery, command);
    const char *rest = after(command, "wait ");
    if (!rest && strcmp(command, "hold") != 0) {
        lw_delivery_finish(delivery, obey(delivery, command));
        return;
    }
    struct waiting *waiting = calloc(1, sizeof *waiting);
    waiting->world = user;
    waiting->delivery = delivery;
    lw_timer_init(&waiting->timer, on_waited);
    memcpy(waiting->command, command, sizeof command);
    long ms = HOLD_LOOK_MS;
    if (rest) {
        char *end = NULL;
        ms = strtol(waiting->command + strlen("wait "), &end, 10);
        waiting->rest = end + 1;
    }
    lw_timers_arm(&waiting->world->host->timers, &waiting->timer,
                  waiting->world->host->now + (uint64_t)ms * LW_MS);
}
