/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naughty.c: a handler that does to its worker process what the message's text says:
 *   ok | see | pid | worker (replies its number) | big N (replies N bytes) | size (replies the payload's size)
 *   spin MS | until-cancelled | crash WORDS (printed first) | exit N | flood N
 *   scribble SEED | words SEED (random bytes over the shared memory, or over its first page)
 *   unmark | unmark-crash (writes over its mark of what it began, then hangs or crashes)
 *   clog (makes its descriptors block whoever writes to them, asks to be woken, and hangs)
 *   leak MB | leak-child MB (takes so much, or has a child take it, and waits)
 *   hang-once PATH (if there is no file PATH: makes it and hangs)
 *   hold-room (from then on gives no room back among the requests)
 *   close-all (descriptors that it did not open)
 *   forge PATH (if there is no file PATH, makes it, and answers with outputs and rubbish)
 * Those that wait for something from outside say "it has begun" when they do.
 */
#include <laneway/handler.h>

#include "engines/processes/record.h"
#include "engines/processes/shared.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 4096, WORDS_BYTES = 512, RING_BYTES = 65536 };

static enum lw_verdict
reply(struct lw_delivery *delivery, const char *text)
{
    return lw_delivery_reply(delivery, lw_bytes_of(text)) == LW_STATUS_OK ? LW_OK : LW_ERROR;
}

static enum lw_verdict
see(struct lw_delivery *delivery)
{
    char id[128];
    char text[TEXT_MAX];
    struct lw_bytes key = lw_delivery_key(delivery);
    struct lw_bytes header = lw_delivery_header(delivery, "h");
    int64_t deadline_ms = lw_delivery_deadline_ms(delivery);
    (void)lw_delivery_message_id(delivery, id, sizeof id);
    (void)snprintf(
        text, sizeof text,
        "id=%s topic=%s partition=%d offset=%lld subscription=%s pipeline=%s key=%.*s "
        "h=%.*s timestamp=%lld event=%lld attempt=%u retries=%u redeliveries=%u "
        "deadline=%d dispatcher=%d",
        id, lw_delivery_topic(delivery), lw_delivery_partition(delivery),
        (long long)lw_delivery_offset(delivery), lw_delivery_subscription(delivery),
        lw_delivery_pipeline(delivery), (int)key.size, (const char *)key.data, (int)header.size,
        header.data ? (const char *)header.data : "",
        (long long)lw_delivery_timestamp_ms(delivery),
        (long long)lw_delivery_event_time_ms(delivery), lw_delivery_attempt(delivery),
        lw_delivery_retries(delivery), lw_delivery_redeliveries(delivery),
        deadline_ms > 0 && deadline_ms <= 10000, lw_delivery_dispatcher(delivery) != NULL);
    return reply(delivery, text);
}

static enum lw_verdict
big(struct lw_delivery *delivery, size_t size)
{
    char *bytes = malloc(size + 1);
    if (!bytes) {
        return LW_ERROR;
    }
    memset(bytes, 'b', size);
    enum lw_status status = lw_delivery_reply(delivery, (struct lw_bytes){ bytes, size });
    free(bytes);
    return status == LW_STATUS_OK ? LW_OK : LW_ERROR;
}

static enum lw_verdict
tell_size(struct lw_delivery *delivery)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%zu", lw_delivery_value(delivery).size);
    return reply(delivery, text);
}

static enum lw_verdict
tell_pid(struct lw_delivery *delivery)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%d", (int)getpid());
    return reply(delivery, text);
}

static unsigned worker_number;

static enum lw_verdict
tell_worker(struct lw_delivery *delivery)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%u", worker_number);
    return reply(delivery, text);
}

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Random bytes over what the worker shares with its owner, as a broken handler could do. */
static void
scribble(uint64_t seed, int only_words)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long from = 0;
        unsigned long to = 0;
        if (!strstr(line, "laneway-worker") || sscanf(line, "%lx-%lx", &from, &to) != 2) {
            continue;
        }
        to = only_words ? from + WORDS_BYTES : to;
        for (unsigned long at = from; at < to; at += sizeof(uint64_t)) {
            uint64_t value = next_random(&state);
            /* Small numbers do more harm than large ones: they are nearly right. */
            *(volatile uint64_t *)at = value & 1 ? value >> (value >> 58) : value & 0xff;
        }
        if (only_words) {
            break;
        }
    }
    if (maps) {
        (void)fclose(maps);
    }
}

static void
spin(long ms)
{
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    (void)nanosleep(&left, NULL);
}

static void
say_begun(void)
{
    (void)fputs("it has begun\n", stderr);
}

/* -- What only who knows our memory can do ------------------------------------------------------- */

static struct lw_processes_words *
shared_words(void)
{
    char line[512];
    unsigned long from = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && from == 0 && fgets(line, sizeof line, maps)) {
        if (strstr(line, "laneway-worker")) {
            (void)sscanf(line, "%lx-", &from);
        }
    }
    if (maps) {
        (void)fclose(maps);
    }
    return (struct lw_processes_words *)from; /* NOLINT(performance-no-int-to-ptr) */
}

/* Those that carry whole messages are left alone. */
static bool
carries_wakes(int fd)
{
    int kind = 0;
    socklen_t size = sizeof kind;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &size) != 0 || kind == SOCK_STREAM;
}

/* It looks for answers then. */
static void
wake_owner(void)
{
    for (int fd = 3; fd < 64; fd++) {
        int kind = 0;
        socklen_t size = sizeof kind;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 && kind == SOCK_STREAM) {
            (void)send(fd, "w", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
    }
}

static void
clog_all(void)
{
    const uint64_t most = UINT64_MAX - 1;
    for (int fd = 3; fd < 64; fd++) {
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || !carries_wakes(fd)) {
            continue;
        }
        (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
        while (write(fd, &most, sizeof most) > 0) {
        }
        (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    }
    atomic_store(&shared_words()->worker_sleeps, 1);
}

static atomic_bool is_holding;

_Noreturn static void *
claim_to_be_at_the_beginning(void *user)
{
    struct lw_processes_words *words = user;
    atomic_store(&is_holding, true);
    for (;;) {
        atomic_store(&words->request_tail, 0);
    }
}

static enum lw_verdict
hold_room(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, claim_to_be_at_the_beginning, shared_words()) != 0) {
        return LW_ERROR;
    }
    while (!atomic_load(&is_holding)) {
        spin(1);
    }
    return LW_OK;
}

static void
close_all(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        (void)close(fd);
    }
}

static void
write_over_mark(void)
{
    atomic_store(&shared_words()->started, UINT64_C(0xdeadbeef));
}

/* Answers in the handler's place: one good output, and behind it what is none. */
static void
forge(void)
{
    struct lw_processes_words *words = shared_words();
    unsigned char *answers = (unsigned char *)words + LW_PROCESSES_PAGE + 2 * RING_BYTES;
    uint64_t head = atomic_load(&words->answer_head);
    struct {
        struct lw_processes_answer answer;
        struct lw_processes_output output;
        char text[16]; /* topic, value; the rest is too much */
    } record = { .text = "stolengoods" };
    record.answer = (struct lw_processes_answer){ .size = sizeof record,
                                                  .verdict = LW_OK,
                                                  .seq = atomic_load(&words->started),
                                                  .delay_ms = -1,
                                                  .output_count = 1,
                                                  .body_size = sizeof record -
                                                               sizeof record.answer };
    record.output = (struct lw_processes_output){
        .flags = LW_PROCESSES_HAS_VALUE, .topic_size = 6, .delay_ms = -1, .value_size = 5
    };
    memcpy(answers + (head & (RING_BYTES - 1)), &record, sizeof record);
    atomic_store(&words->answer_head, head + sizeof record);
    wake_owner();
}

_Noreturn static void
crash(const char *words)
{
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)fprintf(stderr, "%s\n", words);
    (void)signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
    abort();
}

static const char *
after(const char *command, const char *word)
{
    size_t length = strlen(word);
    return strncmp(command, word, length) == 0 ? command + length : NULL;
}

_Noreturn static void
leak(unsigned long megabytes)
{
    enum { MEGABYTE = 1 << 20 };
    for (; megabytes > 0; megabytes--) {
        char *taken = malloc(MEGABYTE);
        if (taken) {
            memset(taken, 'x', MEGABYTE);
            __asm__ volatile("" : : "r"(taken) : "memory"); /* nobody reads it */
        }
    }
    for (;;) {
        spin(60000);
    }
}

_Noreturn static void
leak_in_child(unsigned long megabytes)
{
    if (fork() == 0) {
        leak(megabytes);
    }
    for (;;) {
        spin(60000);
    }
}

/* False when there is one. */
static int
makes_file(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd >= 0 && close(fd) == 0;
}

static enum lw_verdict
forge_once(const char *path)
{
    if (makes_file(path)) {
        forge();
        spin(60000);
    }
    return LW_OK;
}

static enum lw_verdict
hang_once(const char *path)
{
    if (makes_file(path)) {
        say_begun();
        spin(60000);
    }
    return LW_OK;
}

static enum lw_verdict
do_harm(const char *command)
{
    const char *rest = NULL;
    if (strcmp(command, "unmark") == 0) {
        write_over_mark();
        spin(60000);
        return LW_OK;
    } else if (strcmp(command, "unmark-crash") == 0) {
        write_over_mark();
        crash("nobody saw me begin");
    } else if (strcmp(command, "clog") == 0) {
        clog_all();
        say_begun();
        spin(60000);
        return LW_OK;
    } else if (strcmp(command, "hold-room") == 0) {
        return hold_room();
    } else if (strcmp(command, "close-all") == 0) {
        close_all();
        return LW_OK;
    } else if ((rest = after(command, "forge ")) != NULL) {
        return forge_once(rest);
    } else if ((rest = after(command, "hang-once ")) != NULL) {
        return hang_once(rest);
    } else if ((rest = after(command, "leak ")) != NULL) {
        leak(strtoul(rest, NULL, 10));
    } else if ((rest = after(command, "leak-child ")) != NULL) {
        leak_in_child(strtoul(rest, NULL, 10));
    } else if ((rest = after(command, "crash ")) != NULL) {
        crash(rest);
    } else if ((rest = after(command, "exit ")) != NULL) {
        exit((int)strtol(rest, NULL, 10));
    } else if ((rest = after(command, "flood ")) != NULL) {
        for (long left = strtol(rest, NULL, 10); left > 0; left--) {
            (void)fprintf(stderr, "line %ld of a flood that nobody wants to read\n", left);
        }
        return LW_OK;
    } else if ((rest = after(command, "scribble ")) != NULL) {
        scribble(strtoull(rest, NULL, 10), 0);
        return LW_OK;
    } else if ((rest = after(command, "words ")) != NULL) {
        scribble(strtoull(rest, NULL, 10), 1);
        return LW_OK;
    }
    return LW_ERROR;
}

static enum lw_verdict
handle(struct lw_delivery *delivery, void *user)
{
    char command[128];
    struct lw_bytes value = lw_delivery_value(delivery);
    size_t size = value.size < sizeof command - 1 ? value.size : sizeof command - 1;
    const char *rest = NULL;
    (void)user;
    memcpy(command, value.data, size);
    command[size] = '\0';
    if (strcmp(command, "ok") == 0) {
        return LW_OK;
    } else if (strcmp(command, "see") == 0) {
        return see(delivery);
    } else if (strcmp(command, "pid") == 0) {
        return tell_pid(delivery);
    } else if (strcmp(command, "worker") == 0) {
        return tell_worker(delivery);
    } else if (after(command, "size")) {
        return tell_size(delivery);
    } else if ((rest = after(command, "big ")) != NULL) {
        return big(delivery, strtoul(rest, NULL, 10));
    } else if ((rest = after(command, "spin ")) != NULL) {
        spin(strtol(rest, NULL, 10));
        return LW_OK;
    } else if (strcmp(command, "until-cancelled") == 0) {
        say_begun();
        while (!lw_delivery_is_cancelled(delivery)) {
            spin(2);
        }
        return lw_delivery_drop(delivery, "cancelled");
    }
    return do_harm(command);
}

/* A verdict each, or the first one with option `verdict`; one too few when the first is `short`. */
static size_t
handle_batch(struct lw_delivery *const deliveries[], size_t count, enum lw_verdict verdicts[],
             void *user)
{
    struct lw_bytes first = lw_delivery_value(deliveries[0]);
    bool is_one = user != NULL;
    for (size_t i = 0; i < count; i++) {
        verdicts[i] = handle(deliveries[i], user);
    }
    if (is_one) {
        return 1;
    }
    return first.size == 5 && memcmp(first.data, "short", 5) == 0 ? count - 1 : count;
}

static enum lw_status
start(const struct lw_handler_setup *setup, void **ret_user, struct lw_error *error)
{
    *ret_user = NULL;
    worker_number = setup->worker;
    if (strcmp(lw_handler_option(setup, "open", "yes"), "no") == 0) {
        (void)snprintf(error->message, sizeof error->message, "the moon is in the wrong place");
        return LW_STATUS_UNAVAILABLE;
    }
    if (strcmp(lw_handler_option(setup, "open", "yes"), "crash") == 0) {
        crash("the constructor of everything failed");
    }
    if (strcmp(lw_handler_option(setup, "verdict", "each"), "one") == 0) {
        static char one;
        *ret_user = &one;
    }
    return LW_STATUS_OK;
}

LW_HANDLER(lw_handler) = { LW_HANDLER_HEAD, .handle = handle, .open = start,
                           .handle_batch = handle_batch };
