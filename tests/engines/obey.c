/* SPDX-License-Identifier: Apache-2.0 */
/*
 * obey.c: the blocking C handler of the conformance suite, of public functions only, so that
 * tests/plugins/obey.c can carry it in a shared object. It does what the message's text says.
 * obey_async.c is the same on timers of the loop, tests/engines/data/obey.py as a program.
 */
#include "tests/engines/conformance.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

enum lw_verdict
conformance_obey(struct lw_delivery *delivery, const char *command)
{
    const char *rest = NULL;
    char *end = NULL;
    if (strcmp(command, "ok") == 0) {
        return LW_OK;
    } else if (strcmp(command, "echo") == 0) {
        lw_delivery_reply(delivery, lw_delivery_value(delivery));
        return LW_OK;
    } else if ((rest = after(command, "flaky ")) != NULL) {
        lw_delivery_reply(delivery, lw_bytes_of(rest));
        return lw_delivery_attempt(delivery) > 1 ? LW_OK : lw_delivery_retry(delivery, "", 1);
    } else if (strcmp(command, "crash") == 0) {
        (void)raise(SIGKILL);
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

void
conformance_read(const struct lw_delivery *delivery, char command[CONFORMANCE_COMMAND_MAX])
{
    struct lw_bytes value = lw_delivery_value(delivery);
    size_t size = value.size < CONFORMANCE_COMMAND_MAX - 1 ? value.size
                                                           : CONFORMANCE_COMMAND_MAX - 1;
    if (value.data) {
        memcpy(command, value.data, size);
    }
    command[value.data ? size : 0] = '\0';
    if (!value.data || (size > 0 && command[0] < ' ') || size == 0) {
        memcpy(command, "echo", sizeof "echo"); /* payloads that are no command come back */
    }
}

bool
conformance_takes_time(const char *command)
{
    return after(command, "wait ") || strcmp(command, "hold") == 0;
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
    char command[CONFORMANCE_COMMAND_MAX];
    (void)user;
    conformance_read(delivery, command);
    const char *rest = after(command, "wait ");
    if (rest) {
        char *end = NULL;
        sleep_ms(strtol(rest, &end, 10));
        return conformance_obey(delivery, end + 1);
    }
    while (strcmp(command, "hold") == 0) {
        sleep_ms(CONFORMANCE_HOLD_LOOK_MS);
        if (lw_delivery_is_cancelled(delivery)) {
            return lw_delivery_drop(delivery, "held");
        }
    }
    return conformance_obey(delivery, command);
}

size_t
conformance_handle_batch(struct lw_delivery *const deliveries[], size_t count,
                         enum lw_verdict verdicts[], void *user)
{
    for (size_t i = 0; i < count; i++) {
        verdicts[i] = conformance_handle(deliveries[i], NULL);
    }
    return user ? 1 : count;
}
