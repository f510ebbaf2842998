/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool own|drain|write PATH JOURNAL FIRST SEED: a process that is to be killed while it works on a
 * spool, through plugin.h only. Every line of the journal is one write, so it outlives the process:
 *
 *   T id   will be published       P id   its receipt said ok
 *   R id   was received            A id   is about to be acknowledged
 *
 * own publishes, receives, acknowledges in no order, gives some back; drain only acknowledges, until
 * nothing comes; write publishes through the owner. SIGTERM ends them in order. A message that is
 * not bit for bit what its id says is "B id".
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/loop.h"
#include "brokers/spool/broker.h"

enum { OPEN_MAX_COUNT = 64, HELD_MAX = 512, VALUE_MAX = 3000, BURST = 8 };
#define QUIET_NS (1500 * LW_MS)
#define TOPIC "crash"

struct sent {
    struct lw_publication publication;
    long id;
    bool is_open;
    char key[16];
    char value[VALUE_MAX + 32];
};

struct job {
    struct lw_loop *loop;
    struct lw_host *host;
    struct lw_broker *broker;
    struct lw_source *source;
    int journal;
    long next_id;
    bool publishes;
    bool is_draining;
    bool is_stopping;
    bool is_closed;
    uint64_t heard_at;
    struct sent sent[OPEN_MAX_COUNT];
    struct lw_message held[HELD_MAX];
    bool is_held[HELD_MAX];
};

static volatile sig_atomic_t is_ended;

static void
on_term(int number)
{
    (void)number;
    is_ended = 1;
}

static void
note(struct job *job, char what, long id)
{
    char line[32];
    int size = snprintf(line, sizeof line, "%c %ld\n", what, id);
    if (write(job->journal, line, (size_t)size) != size) {
        abort();
    }
}

/* What the message of that id is. */
static size_t
fill_value(long id, char *out)
{
    int head = snprintf(out, 32, "%ld:", id);
    size_t size = (size_t)head + (size_t)(id * 7919) % VALUE_MAX;
    memset(out + head, 'a' + (char)(id % 26), size - (size_t)head);
    return size;
}

static void
publish(struct job *job)
{
    for (int i = 0, burst = 0; i < OPEN_MAX_COUNT && burst < BURST; i++) {
        struct sent *sent = &job->sent[i];
        struct lw_publication *publication = &sent->publication;
        if (sent->is_open) {
            continue;
        }
        sent->id = job->next_id++;
        snprintf(sent->key, sizeof sent->key, "k%ld", sent->id % 10);
        size_t size = fill_value(sent->id, sent->value);
        *publication = (struct lw_publication){ .kind = LW_PUBLISH_OUTPUT,
                                                .topic = TOPIC,
                                                .partition = -1,
                                                .key = lw_bytes_of(sent->key),
                                                .value = { sent->value, size },
                                                .event_time_ms = -1,
                                                .delay_ms = sent->id % 11 == 0 ? 30 : 0,
                                                .user = sent };
        note(job, 'T', sent->id);
        if (job->broker->ops->publish(job->broker, &publication, 1) == 0) {
            return;
        }
        sent->is_open = true;
        burst++;
    }
}

static void
settle(struct job *job, int index, bool is_ack)
{
    struct lw_message *message = &job->held[index];
    struct lw_settle_item item = { message, is_ack, (int64_t)lw_host_random_to(job->host, 40) };
    if (is_ack) {
        note(job, 'A', strtol(message->value.data, NULL, 10));
    }
    job->broker->ops->settle(job->source, &item, 1);
    job->broker->ops->release(job->broker, &message, 1);
    job->is_held[index] = false;
}

static void
take(struct job *job, int index)
{
    char wanted[VALUE_MAX + 32];
    const struct lw_message *message = &job->held[index];
    long id = strtol(message->value.data, NULL, 10);
    size_t size = fill_value(id, wanted);
    bool is_right = size == message->value.size &&
                    memcmp(wanted, message->value.data, size) == 0;
    job->is_held[index] = true;
    job->heard_at = job->host->now;
    note(job, is_right ? 'R' : 'B', id);
}

static void
receive(struct job *job)
{
    bool has_more = true;
    for (int i = 0; i < HELD_MAX && has_more && job->broker->ops->is_ready(job->source); i++) {
        struct lw_message *out = &job->held[i];
        if (!job->is_held[i] &&
            job->broker->ops->receive(job->source, &out, 1, 1 << 20, &has_more) == 1) {
            take(job, i);
        }
    }
}

/* Six of ten are acknowledged, one is given back, the others wait. */
static void
judge(struct job *job)
{
    for (int i = 0; i < HELD_MAX; i++) {
        uint64_t dice = lw_host_random_to(job->host, 9);
        if (job->is_held[i] && (job->is_draining || dice < 6)) {
            settle(job, i, true);
        } else if (job->is_held[i] && dice == 6) {
            settle(job, i, false);
        }
    }
}

static void
on_event(struct job *job, const struct lw_event *event)
{
    if (event->kind == LW_EVENT_PUBLISHED) {
        struct sent *sent = event->publication->user;
        sent->is_open = false;
        if (event->status == LW_STATUS_OK) {
            note(job, 'P', sent->id);
        }
    } else if (event->kind == LW_EVENT_REVOKING) {
        job->broker->ops->revoke_done(job->broker, event->generation);
    } else if (event->kind == LW_EVENT_CLOSED) {
        job->is_closed = true;
    }
}

static void
take_events(struct job *job)
{
    struct lw_event events[64];
    size_t count;
    do {
        count = job->broker->ops->events(job->broker, events, 64);
        for (size_t i = 0; i < count; i++) {
            on_event(job, &events[i]);
        }
    } while (count == 64);
}

static void
end(struct job *job)
{
    for (int i = 0; i < HELD_MAX; i++) {
        struct lw_message *message = &job->held[i];
        if (job->is_held[i]) {
            job->broker->ops->release(job->broker, &message, 1);
        }
    }
    job->broker->ops->stop_sources(job->broker);
    take_events(job);
    job->broker->ops->close(job->broker);
    while (!job->is_closed) {
        lw_loop_turn_until(job->loop, job->host->now + 50 * LW_MS);
        take_events(job);
    }
    job->broker->ops->destroy(job->broker);
    lw_loop_destroy(job->loop);
}

static void
work(struct job *job)
{
    job->heard_at = job->host->ops->refresh(job->host);
    while (!is_ended && !(job->is_draining && job->host->now - job->heard_at > QUIET_NS)) {
        if (job->publishes) {
            publish(job);
        }
        lw_loop_turn_until(job->loop, job->host->now + 2 * LW_MS);
        take_events(job);
        if (job->source) {
            receive(job);
            judge(job);
        }
    }
}

static int
start(struct job *job, const char *path, bool is_reading)
{
    char url[4096];
    struct lw_error error = { 0 };
    const struct lw_broker_ops *ops = lw_spool_broker_ops();
    const struct lw_source_options options = {
        .topic = TOPIC,
        .subscription = "group",
        .receiver_queue_size = 256,
        .queue_bytes_max = 1 << 20,
    };
    snprintf(url, sizeof url, "spool:%s", path);
    enum lw_status status = ops->create(job->host, "crash", url, NULL, 0, &job->broker, &error);
    if (status == LW_STATUS_OK && is_reading) {
        status = ops->subscribe(job->broker, &options, &job->source, &error);
    }
    if (status == LW_STATUS_OK) {
        status = ops->start(job->broker, &error);
    }
    if (status != LW_STATUS_OK) {
        fprintf(stderr, "spool: %s\n", error.message);
        return lw_error_exit_code(&error);
    }
    if (job->source) {
        ops->demand(job->source, 256, 1 << 20);
    }
    return 0;
}

int
main(int argc, char **argv)
{
    static struct job job;
    if (argc != 6 || lw_loop_create(strtoull(argv[5], NULL, 10), &job.loop) != LW_STATUS_OK) {
        return 64;
    }
    job.host = lw_loop_host(job.loop);
    job.journal = open(argv[3], O_WRONLY | O_CREAT | O_APPEND, 0600);
    job.next_id = strtol(argv[4], NULL, 10);
    job.is_draining = strcmp(argv[1], "drain") == 0;
    job.publishes = !job.is_draining;
    signal(SIGTERM, on_term);
    int failed = start(&job, argv[2], strcmp(argv[1], "write") != 0);
    if (failed || job.journal < 0) {
        return failed ? failed : 71;
    }
    printf("up\n");
    fflush(stdout);
    work(&job);
    end(&job);
    return 0;
}
