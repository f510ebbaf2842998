/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is served first while all topics have a backlog at the broker: runs one dispatcher, with its
 * default profile, over topics of a Pulsar that hold the same number of messages each, and prints
 * as one JSON object in which order their messages were started, how many starts of a lower topic
 * came while a higher one had messages that were not yet received, and the course of the receive
 * windows. bench/peers/pulsar-priority prepares the topics, judges and draws.
 *
 *   pulsar_priority --url URL --subscription NAME --messages N [--slots 20] [--work-us MIN[,MAX]]
 *                   [--seed S] TOPIC...        topics of priority 1, 2, ...; N messages on each
 *
 * A handler waits by a timer of the loop, for a time that is drawn between MIN and MAX; with 0 it
 * does nothing. What such a timer takes by itself is measured on an idle loop before and after.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <laneway/laneway.h>

#include "base/clock.h"
#include "base/loop.h"
#include "core/delivery.h"
#include "dispatcher/dispatcher.h"
#include "dispatcher/stream.h"

enum { TOPICS_MAX = 9, SAMPLES_MAX = 8192, SLOTS_MAX = 1024, STALL_S = 60 };

#define SAMPLE_NS (10 * LW_MS)

struct sample {
    uint64_t at;
    uint32_t window[TOPICS_MAX];
    uint32_t started[TOPICS_MAX];
};

struct work {
    struct lw_timer timer;
    struct lw_ticket ticket;
    struct bench *bench;
    struct work *next;
};

struct bench {
    struct lw_dispatcher *dispatcher;
    const char *url;
    const char *subscription;
    char **topics;
    uint32_t topic_count;
    uint32_t messages; /* on each topic */
    uint32_t slots;
    uint64_t work_min;
    uint64_t work_max;
    uint64_t random;
    struct work work[SLOTS_MAX];
    struct work *idle;
    uint8_t *order; /* index of the topic, by start */
    uint32_t started;
    uint32_t ended;
    uint32_t lower;    /* starts that were judged: of any but the best topic */
    uint32_t inverted; /* a better one had messages at the broker */
    uint64_t first_at;
    uint64_t last_at;
    struct sample *samples;
    uint32_t sample_count;
    struct lw_timer sampler;
    struct lw_timer stall_timer;
    uint32_t stall_mark;
};

/* Of one topic. */
struct entry {
    struct bench *bench;
    uint32_t index;
};

static void
must(enum lw_status status, const struct lw_error *error)
{
    if (status != LW_STATUS_OK) {
        fprintf(stderr, "pulsar_priority: %s %s\n", error->code, error->message);
        exit(70);
    }
}

/* splitmix64: the same times for the same seed. */
static uint64_t
draw(struct bench *bench)
{
    uint64_t z = bench->random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    return bench->work_min + z % (bench->work_max - bench->work_min + 1);
}

/* -- What a timer takes by itself ------------------------------------------------------------------ */

struct idle_timer {
    struct lw_timer timer;
    struct bench *bench;
    struct lw_host *host;
    uint64_t begun;
    uint64_t *total;
    uint32_t *count;
};

static void
rearm(struct idle_timer *idle)
{
    idle->begun = idle->host->now;
    lw_timers_arm(&idle->host->timers, &idle->timer, idle->begun + draw(idle->bench));
}

static void
on_idle(struct lw_timer *timer, uint64_t now)
{
    struct idle_timer *idle = LW_CONTAINER(timer, struct idle_timer, timer);
    (void)now;
    *idle->total += lw_clock_monotonic_ns() - idle->begun;
    *idle->count += 1;
    rearm(idle);
}

/* The mean time of as many timers at once as there are slots, over a second, in ns. */
static double
measure_timers(struct bench *bench)
{
    static struct idle_timer timers[SLOTS_MAX];
    struct lw_loop *loop;
    struct lw_error error = { 0 };
    uint64_t total = 0;
    uint32_t count = 0;
    if (bench->work_max == 0) {
        return 0;
    }
    must(lw_loop_create(1, &loop), &error);
    struct lw_host *host = lw_loop_host(loop);
    lw_loop_poll(loop);
    for (uint32_t i = 0; i < bench->slots; i++) {
        timers[i] = (struct idle_timer){
            .bench = bench, .host = host, .total = &total, .count = &count
        };
        lw_timer_init(&timers[i].timer, on_idle);
        rearm(&timers[i]);
    }
    uint64_t until = host->now + 1000 * LW_MS;
    while (host->now < until) {
        lw_loop_turn_until(loop, until);
    }
    for (uint32_t i = 0; i < bench->slots; i++) {
        lw_timers_disarm(&host->timers, &timers[i].timer);
    }
    lw_loop_destroy(loop);
    return count > 0 ? (double)total / count : 0;
}

/* -- Handlers ------------------------------------------------------------------------------------------ */

static struct lw_stream *
stream_of(const struct bench *bench, uint32_t index)
{
    return bench->dispatcher->streams[index];
}

static bool
has_each_delivered(const struct bench *bench)
{
    for (uint32_t i = 0; i < bench->topic_count; i++) {
        if (stream_of(bench, i)->counters.received == 0) {
            return false;
        }
    }
    return true;
}

/* A topic better than this one has messages at the broker and could take them. */
static bool
is_inverted(const struct bench *bench, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++) {
        const struct lw_stream *stream = stream_of(bench, i);
        if (stream->counters.received < bench->messages &&
            !stream->subscription.limits.is_stopped) {
            return true;
        }
    }
    return false;
}

static void
note_start(struct entry *entry)
{
    struct bench *bench = entry->bench;
    if (bench->started == 0) {
        bench->first_at = lw_clock_monotonic_ns();
    }
    if (entry->index > 0 && has_each_delivered(bench)) {
        bench->lower++;
        bench->inverted += is_inverted(bench, entry->index);
    }
    if (bench->started < bench->messages * bench->topic_count) {
        bench->order[bench->started] = (uint8_t)entry->index;
    }
    bench->started++;
}

static void
note_end(struct bench *bench)
{
    if (++bench->ended == bench->messages * bench->topic_count) {
        bench->last_at = lw_clock_monotonic_ns();
        lw_dispatcher_request_close(bench->dispatcher);
    }
}

static enum lw_verdict
do_nothing(struct lw_delivery *delivery, void *user)
{
    struct entry *entry = user;
    (void)delivery;
    note_start(entry);
    note_end(entry->bench);
    return LW_OK;
}

static void
on_worked(struct lw_timer *timer, uint64_t now)
{
    struct work *work = LW_CONTAINER(timer, struct work, timer);
    struct bench *bench = work->bench;
    (void)now;
    work->next = bench->idle;
    bench->idle = work;
    note_end(bench);
    (void)lw_ticket_finish(work->ticket, LW_OK);
}

static void
do_work(struct lw_delivery *delivery, void *user)
{
    struct entry *entry = user;
    struct bench *bench = entry->bench;
    struct lw_host *host = bench->dispatcher->host;
    struct work *work = bench->idle;
    note_start(entry);
    bench->idle = work->next;
    work->ticket = lw_delivery_ticket(delivery);
    lw_timers_arm(&host->timers, &work->timer, host->now + draw(bench));
}

/* -- The run ----------------------------------------------------------------------------------------- */

static void
take_sample(struct bench *bench, uint64_t now)
{
    if (bench->sample_count == SAMPLES_MAX) { /* half as many, over the double time */
        for (uint32_t i = 0; i < SAMPLES_MAX / 2; i++) {
            bench->samples[i] = bench->samples[2 * i];
        }
        bench->sample_count = SAMPLES_MAX / 2;
    }
    struct sample *sample = &bench->samples[bench->sample_count++];
    sample->at = now;
    for (uint32_t i = 0; i < bench->topic_count; i++) {
        sample->window[i] = stream_of(bench, i)->subscription.window.size;
        sample->started[i] = (uint32_t)stream_of(bench, i)->counters.started;
    }
}

static void
on_sample(struct lw_timer *timer, uint64_t now)
{
    struct bench *bench = LW_CONTAINER(timer, struct bench, sampler);
    take_sample(bench, now);
    lw_timers_arm(&bench->dispatcher->host->timers, timer, now + SAMPLE_NS);
}

static void
on_stall(struct lw_timer *timer, uint64_t now)
{
    struct bench *bench = LW_CONTAINER(timer, struct bench, stall_timer);
    if (bench->stall_mark == bench->ended) {
        fprintf(stderr, "pulsar_priority: nothing moves, %u of %u handled\n", bench->ended,
                bench->messages * bench->topic_count);
        exit(70);
    }
    bench->stall_mark = bench->ended;
    lw_timers_arm(&bench->dispatcher->host->timers, timer, now + STALL_S * 1000 * LW_MS);
}

static void
say(enum lw_log_level level, const char *event, const char *text, const char *fields,
    void *user)
{
    (void)user;
    if (level <= LW_LOG_WARN) {
        fprintf(stderr, "%s: %s %s\n", event, text, fields);
    }
}

static void
subscribe(struct bench *bench, struct entry *entry)
{
    static const struct lw_property properties[] = { { "consumer_type", "shared" },
                                                     { "initial_position", "earliest" } };
    struct lw_subscription_options options;
    struct lw_error error = { 0 };
    lw_subscription_options_init(&options);
    options.broker = "main";
    options.topic = bench->topics[entry->index];
    options.subscription = bench->subscription;
    options.priority = (int32_t)entry->index + 1;
    options.engine = LW_ENGINE_LOOP;
    options.user = entry;
    if (bench->work_max > 0) {
        options.handler_async = do_work;
    } else {
        options.handler = do_nothing;
    }
    options.properties = properties;
    options.property_count = 2;
    must(lw_dispatcher_subscribe(bench->dispatcher, &options, &error), &error);
}

static void
run(struct bench *bench)
{
    static struct entry entries[TOPICS_MAX];
    struct lw_error error = { 0 };
    struct lw_dispatcher_options options;
    lw_dispatcher_options_init(&options);
    options.concurrency = bench->slots;
    options.log = say;
    bench->dispatcher = lw_dispatcher_create(&options, &error);
    must(bench->dispatcher ? LW_STATUS_OK : error.status, &error);
    must(lw_dispatcher_connect(bench->dispatcher, "main", bench->url, NULL, 0, &error), &error);
    for (uint32_t i = 0; i < bench->topic_count; i++) {
        entries[i] = (struct entry){ bench, i };
        subscribe(bench, &entries[i]);
    }
    struct lw_timers *timers = &bench->dispatcher->host->timers;
    lw_timer_init(&bench->sampler, on_sample);
    lw_timer_init(&bench->stall_timer, on_stall);
    lw_timers_arm(timers, &bench->sampler, bench->dispatcher->host->now + SAMPLE_NS);
    lw_timers_arm(timers, &bench->stall_timer,
                  bench->dispatcher->host->now + STALL_S * 1000 * LW_MS);
    must(lw_dispatcher_run(bench->dispatcher, &error), &error);
    lw_timers_disarm(timers, &bench->sampler);
    lw_timers_disarm(timers, &bench->stall_timer);
    lw_dispatcher_destroy(bench->dispatcher);
}

/* -- Output ------------------------------------------------------------------------------------------ */

static void
print_samples(const struct bench *bench, const char *name, size_t offset)
{
    printf(",\"%s\":[", name);
    for (uint32_t topic = 0; topic < bench->topic_count; topic++) {
        printf("%s[", topic > 0 ? "," : "");
        for (uint32_t i = 0; i < bench->sample_count; i++) {
            const uint32_t *values = (const uint32_t *)((const char *)&bench->samples[i] +
                                                        offset);
            printf("%s%" PRIu32, i > 0 ? "," : "", values[topic]);
        }
        printf("]");
    }
    printf("]");
}

static void
print(const struct bench *bench, double before, double after)
{
    uint32_t count = bench->started < bench->messages * bench->topic_count
                         ? bench->started
                         : bench->messages * bench->topic_count;
    printf("{\"started\":%u,\"seconds\":%.6f,\"timer_before_us\":%.3f,\"timer_after_us\":%.3f,"
           "\"judged\":%u,\"inverted\":%u",
           bench->started, (double)(bench->last_at - bench->first_at) / 1e9, before / 1e3,
           after / 1e3, bench->lower, bench->inverted);
    printf(",\"times\":[");
    for (uint32_t i = 0; i < bench->sample_count; i++) {
        uint64_t at = bench->samples[i].at;
        printf("%s%.3f", i > 0 ? "," : "",
               at > bench->first_at ? (double)(at - bench->first_at) / 1e9 : 0.0);
    }
    printf("]");
    print_samples(bench, "windows", offsetof(struct sample, window));
    print_samples(bench, "starts", offsetof(struct sample, started));
    printf(",\"order\":\"");
    for (uint32_t i = 0; i < count; i++) {
        putchar('0' + bench->order[i]);
    }
    printf("\"}\n");
}

/* -- The command line ---------------------------------------------------------------------------------- */

static void
read_arguments(struct bench *bench, int argc, char **argv)
{
    static const struct option options[] = {
        { "url", required_argument, NULL, 'u' },
        { "subscription", required_argument, NULL, 's' },
        { "messages", required_argument, NULL, 'n' },
        { "slots", required_argument, NULL, 'c' },
        { "work-us", required_argument, NULL, 'w' },
        { "seed", required_argument, NULL, 'r' },
        { NULL, 0, NULL, 0 },
    };
    int option;
    char *end;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'u':
            bench->url = optarg;
            break;
        case 's':
            bench->subscription = optarg;
            break;
        case 'n':
            bench->messages = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'c':
            bench->slots = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'w':
            bench->work_min = bench->work_max = strtoull(optarg, &end, 10) * 1000;
            if (*end == ',') {
                bench->work_max = strtoull(end + 1, NULL, 10) * 1000;
            }
            break;
        case 'r':
            bench->random = strtoull(optarg, NULL, 10);
            break;
        default:
            exit(64);
        }
    }
    bench->topics = argv + optind;
    bench->topic_count = (uint32_t)(argc - optind);
}

static bool
is_complete(const struct bench *bench)
{
    return bench->url && bench->subscription && bench->messages > 0 && bench->slots > 0 &&
           bench->slots <= SLOTS_MAX && bench->topic_count > 0 &&
           bench->topic_count <= TOPICS_MAX && bench->work_min <= bench->work_max;
}

int
main(int argc, char **argv)
{
    static struct bench bench = { .slots = 20, .random = 1 };
    if (argc < 2 || strcmp(argv[1], "--check") == 0) {
        printf("pulsar.priority: skipped: needs topics, see bench/peers/pulsar-priority\n");
        return 0;
    }
    read_arguments(&bench, argc, argv);
    if (!is_complete(&bench)) {
        fprintf(stderr, "pulsar_priority: --url, --subscription, --messages and topics\n");
        return 64;
    }
    for (uint32_t i = 0; i < bench.slots; i++) {
        lw_timer_init(&bench.work[i].timer, on_worked);
        bench.work[i].bench = &bench;
        bench.work[i].next = bench.idle;
        bench.idle = &bench.work[i];
    }
    bench.order = calloc((size_t)bench.messages * bench.topic_count, 1);
    bench.samples = calloc(SAMPLES_MAX, sizeof *bench.samples);
    if (!bench.order || !bench.samples) {
        return 71;
    }
    double before = measure_timers(&bench);
    run(&bench);
    print(&bench, before, measure_timers(&bench));
    free(bench.order);
    free(bench.samples);
    return 0;
}
