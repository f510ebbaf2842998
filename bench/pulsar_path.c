/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What receiving from Pulsar costs. Against a feeder in another process (the embedded broker):
 * instructions a message of decoding alone and of the whole receive path of our client (read, CRC,
 * decode, permits, queue, grouped ack, release), allocations, whether payloads stay where read(2)
 * put them, CPU on top of read(2), the most permits ever granted; then Laneway as a ratio to a bare
 * loop on the same client, interleaved, there and on a real broker (PULSAR_URL), where the official
 * Python client runs beside them; and how often an idle one wakes.
 *
 * Every case is a run of its own (`--run NAME N`). Lines that cannot be taken here are named as
 * skipped.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/support/figures.h"
#include "bench/support/pulsar_decode.h"
#include "bench/support/runs.h"

#if LW_WITH_PULSAR

#include <laneway/laneway.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/loop.h"
#include "bench/support/embedded.h"
#include "brokers/pulsar/pulsar.h"

#define PREFIX "persistent://public/default/"
#define SINGLE "bench-single"
#define BATCHED "bench-batched"
#define KIB "bench-kib"
#define FED 600000
#define REAL 20000 /* and ten times that in batches */
#define QUEUE 1000
#define RECEIVE 256
#define QUEUE_BYTES (64u * 1024 * 1024)

/* -- read(2), seen ------------------------------------------------------------------------------- */

enum { RANGES = 512 };

/* Where the last reads put their bytes, and the CPU time that they took. */
static struct {
    bool is_watched;
    bool is_timed;
    uint64_t cpu_ns;
    uint32_t next;
    struct lw_bytes ranges[RANGES];
} reads;

static uint64_t
cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Stands before the C library's: every read of this program comes here. */
ssize_t bench_read(int fd, void *data, size_t size) __asm__("read");

ssize_t
bench_read(int fd, void *data, size_t size)
{
    if (!reads.is_watched) {
        return syscall(SYS_read, fd, data, size);
    }
    uint64_t begin = reads.is_timed ? cpu_ns() : 0;
    ssize_t got = syscall(SYS_read, fd, data, size);
    reads.cpu_ns += reads.is_timed ? cpu_ns() - begin : 0;
    if (got > 0) {
        reads.ranges[reads.next++ % RANGES] = (struct lw_bytes){ data, (size_t)got };
    }
    return got;
}

/* Is that where a read put it? A frame may begin in one read and end in the next. */
static bool
is_in_place(struct lw_bytes value)
{
    uintptr_t at = (uintptr_t)value.data;
    for (uint32_t i = 1; i <= RANGES; i++) {
        const struct lw_bytes *range = &reads.ranges[(reads.next - i) % RANGES];
        uintptr_t begin = (uintptr_t)range->data;
        if (range->size > 0 && at >= begin && at < begin + range->size) {
            return true;
        }
    }
    return false;
}

/* -- Time from the first message to the last -------------------------------------------------------- */

struct span {
    uint64_t first;
    uint64_t last;
    uint64_t count;
};

static void
span_note(struct span *span, uint64_t count)
{
    span->last = lw_clock_monotonic_ns();
    span->first = span->count == 0 ? span->last : span->first;
    span->count += count;
}

static double
span_rate(const struct span *span)
{
    double seconds = (double)(span->last - span->first) / 1e9;
    return seconds > 0 ? (double)span->count / seconds : 0;
}

static const char *
address(void)
{
    const char *text = getenv("LANEWAY_BENCH_ADDRESS");
    if (!text) {
        fprintf(stderr, "pulsar_path: LANEWAY_BENCH_ADDRESS is not set\n");
        exit(64);
    }
    return text;
}

static void
must(enum lw_status status, const struct lw_error *error)
{
    if (status != LW_STATUS_OK) {
        fprintf(stderr, "pulsar_path: %s: %s\n", error->code, error->message);
        exit(70);
    }
}

/* A subscription of its own for each run, or the second one would find everything acknowledged. */
static const char *
own_subscription(const char *name)
{
    static char text[64];
    snprintf(text, sizeof text, "%s-%d", name, (int)getpid());
    return text;
}

/* -- The bare loop on our client ----------------------------------------------------------------------- */

struct raw {
    struct lw_loop *loop;
    struct lw_pulsar_client client;
    struct lw_pulsar_options options;
    struct lw_pulsar_client_settings client_settings;
    struct lw_pulsar_consumer_settings settings;
    struct lw_pulsar_consumer *consumer;
    struct span span;
    uint64_t copied; /* payloads that are not where read(2) put them */
    bool is_stopped;
};

static void
on_nothing(struct lw_pulsar_consumer *consumer)
{
    (void)consumer;
}

static void
on_failed(struct lw_pulsar_consumer *consumer, const struct lw_pulsar_failure *failure)
{
    (void)consumer;
    fprintf(stderr, "pulsar_path: %s\n", failure->error.message);
    exit(70);
}

static void
on_stopped(struct lw_pulsar_consumer *consumer)
{
    struct raw *raw = lw_pulsar_consumer_user(consumer);
    raw->is_stopped = true;
}

static const struct lw_pulsar_consumer_ops consumer_ops = {
    .on_begun = on_nothing,
    .on_lost = on_nothing,
    .on_ready = on_nothing,
    .on_failed = on_failed,
    .on_end_of_topic = on_nothing,
    .on_stopped = on_stopped,
};

static void
on_up(struct lw_pulsar_client *client)
{
    (void)client;
}

static void
on_down(struct lw_pulsar_client *client, const struct lw_error *error)
{
    (void)client;
    fprintf(stderr, "pulsar_path: %s\n", error->message);
    exit(70);
}

static const struct lw_pulsar_client_ops client_ops = { .on_up = on_up, .on_down = on_down };

static void
open_raw(struct raw *raw, const char *topic)
{
    struct lw_error error = { 0 };
    must(lw_loop_create(1, &raw->loop), &error);
    lw_pulsar_options_init(&raw->options);
    raw->options.consumer.consumer_type = LW_PULSAR_SUB_SHARED;
    raw->options.consumer.initial_position = LW_PULSAR_INITIAL_EARLIEST;
    raw->options.consumer.receiver_queue_size = QUEUE;
    lw_pulsar_settings_client(&raw->options.client, &raw->client_settings);
    lw_pulsar_settings_consumer(&raw->options.consumer, own_subscription("raw"), NULL,
                                &raw->settings);
    raw->settings.queue_bytes_max = QUEUE_BYTES;
    must(lw_pulsar_address_parse(address(), &raw->client.address, &error), &error);
    lw_pulsar_client_init(&raw->client, lw_loop_host(raw->loop), "bench", &raw->client_settings,
                          &client_ops);
    raw->consumer = lw_pulsar_consumer_create(&raw->client, topic, &raw->settings, 0,
                                              &consumer_ops, raw);
    if (!raw->consumer) {
        exit(71);
    }
    lw_pulsar_consumer_start(raw->consumer);
}

static void
close_raw(struct raw *raw)
{
    struct lw_host *host = lw_loop_host(raw->loop);
    lw_pulsar_consumer_stop(raw->consumer, host->now + LW_PULSAR_WAIT_NS);
    while (!raw->is_stopped) {
        lw_loop_turn_until(raw->loop, host->now + 100 * LW_MS);
    }
    lw_pulsar_consumer_destroy(raw->consumer);
    lw_pulsar_client_deinit(&raw->client);
    lw_loop_destroy(raw->loop);
}

static void
finish_all(struct raw *raw, struct lw_message *messages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (__builtin_expect(reads.is_watched && !reads.is_timed, 0)) {
            raw->copied += !is_in_place(messages[i].value);
        }
        lw_pulsar_consumer_ack(raw->consumer, &messages[i]);
    }
    for (size_t i = 0; i < count; i++) {
        lw_pulsar_message_release(&messages[i]);
    }
}

/* Receives until `n` came in all: takes, acknowledges and releases in portions, asks for more. */
static void
receive_raw(struct raw *raw, uint64_t n)
{
    struct lw_message messages[RECEIVE];
    struct lw_message *out[RECEIVE];
    struct lw_host *host = lw_loop_host(raw->loop);
    for (size_t i = 0; i < RECEIVE; i++) {
        out[i] = &messages[i];
    }
    while (raw->span.count < n) {
        lw_pulsar_consumer_demand(raw->consumer, QUEUE, QUEUE_BYTES);
        lw_loop_turn_until(raw->loop, host->now + 1000 * LW_MS);
        while (lw_pulsar_consumer_is_ready(raw->consumer)) {
            uint64_t bytes = UINT64_MAX;
            size_t count = lw_pulsar_consumer_receive(raw->consumer, out, RECEIVE, &bytes);
            finish_all(raw, messages, count);
            span_note(&raw->span, count);
        }
    }
}

static void
run_raw(const char *topic, uint64_t n)
{
    static struct raw raw;
    open_raw(&raw, topic);
    receive_raw(&raw, n);
    printf("%.6f 0\n", span_rate(&raw.span));
    close_raw(&raw);
}

/* Allocations a message once it runs, and payloads that were copied. */
static void
run_memory(const char *topic, uint64_t n)
{
    static struct raw raw;
    open_raw(&raw, topic);
    reads.is_watched = true;
    receive_raw(&raw, n / 2);
    uint64_t before = lw_alloc_count();
    uint64_t half = raw.span.count;
    raw.copied = 0;
    receive_raw(&raw, n);
    uint64_t count = raw.span.count - half;
    printf("%.9f %.9f\n", (double)(lw_alloc_count() - before) / (double)count,
           (double)raw.copied / (double)count);
    close_raw(&raw);
}

/* CPU of the loop thread a message, without what read(2) took; and read(2) itself. */
static void
run_cpu(const char *topic, uint64_t n)
{
    static struct raw raw;
    open_raw(&raw, topic);
    receive_raw(&raw, n / 5);
    uint64_t before = raw.span.count;
    reads.is_watched = reads.is_timed = true;
    uint64_t begin = cpu_ns();
    receive_raw(&raw, n);
    uint64_t all = cpu_ns() - begin;
    double count = (double)(raw.span.count - before);
    printf("%.6f %.6f\n", (double)(all - reads.cpu_ns) / count, (double)reads.cpu_ns / count);
    close_raw(&raw);
}

/* -- Laneway ----------------------------------------------------------------------------------------------- */

struct bench {
    struct lw_dispatcher *dispatcher;
    uint64_t n;
    struct span span;
};

static enum lw_verdict
do_nothing(struct lw_delivery *delivery, void *user)
{
    struct bench *bench = user;
    (void)delivery;
    if (bench->span.count == bench->n) {
        return LW_OK; /* what is here is still handled in the drain, and not counted */
    }
    if (++bench->span.count == 1) {
        bench->span.first = lw_clock_monotonic_ns();
    }
    if (bench->span.count == bench->n) {
        bench->span.last = lw_clock_monotonic_ns();
        lw_dispatcher_request_close(bench->dispatcher);
    }
    return LW_OK;
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
run_laneway(const char *topic, uint64_t n)
{
    static struct bench bench;
    struct lw_error error = { 0 };
    struct lw_dispatcher_options dispatcher;
    struct lw_subscription_options options;
    const struct lw_property properties[] = { { "consumer_type", "shared" },
                                              { "initial_position", "earliest" } };
    lw_dispatcher_options_init(&dispatcher);
    dispatcher.concurrency = 64;
    dispatcher.log = say;
    bench.n = n;
    bench.dispatcher = lw_dispatcher_create(&dispatcher, &error);
    must(bench.dispatcher ? LW_STATUS_OK : error.status, &error);
    must(lw_dispatcher_connect(bench.dispatcher, "main", address(), NULL, 0, &error), &error);
    lw_subscription_options_init(&options);
    options.engine = LW_ENGINE_LOOP;
    options.handler = do_nothing;
    options.user = &bench;
    options.broker = "main";
    options.topic = topic;
    options.subscription = own_subscription("laneway");
    options.receiver_queue_size = QUEUE;
    options.properties = properties;
    options.property_count = 2;
    must(lw_dispatcher_subscribe(bench.dispatcher, &options, &error), &error);
    enum lw_status status = lw_dispatcher_run(bench.dispatcher, &error);
    if (status != LW_STATUS_UNFINISHED) {
        must(status, &error);
    }
    printf("%.6f 0\n", span_rate(&bench.span));
    lw_dispatcher_destroy(bench.dispatcher);
}

/* -- Figures ---------------------------------------------------------------------------------------------- */

struct view {
    struct lw_figures figures;
    const char *argv0;
    struct lw_embedded embedded;
    bool has_laneway; /* the product offers pulsar:// */
};

static void
skip(const char *name, const char *why)
{
    printf("%-44s %12s %-14s - skipped: %s\n", name, "", "", why);
    fflush(stdout);
}

/* The least of three: on a busy machine a loop turns more often for the same messages. */
static double
least_instructions(const char *argv0, const char *name, uint64_t n, int rounds)
{
    double least = -1;
    for (int i = 0; i < rounds; i++) {
        double value = lw_figures_instructions(argv0, name, n, true);
        least = value > 0 && (least < 0 || value < least) ? value : least;
    }
    return least;
}

static void
show_instructions(struct view *view)
{
    const uint64_t n = 50000;
    struct lw_figures *figures = &view->figures;
    lw_figures_print(figures, "pulsar.decode", least_instructions(view->argv0, "decode", n, 1),
                     "instr/msg", 700, 770, true);
    lw_figures_print(figures, "pulsar.decode_batched_100",
                     least_instructions(view->argv0, "decode-batched", n, 1), "instr/msg", 700,
                     770, true);
    lw_figures_print(figures, "pulsar.receive", least_instructions(view->argv0, "raw", n, 3),
                     "instr/msg", 1100, 1210, true);
    lw_figures_print(figures, "pulsar.receive_batched_100",
                     least_instructions(view->argv0, "raw-batched", n, 3), "instr/msg", 1100,
                     1210, true);
    if (view->has_laneway) {
        lw_figures_note("pulsar.laneway", least_instructions(view->argv0, "laneway", n, 3),
                        "instr/msg");
    } else {
        skip("pulsar.laneway", "this build has no pulsar://");
    }
}

static void
show_memory(struct view *view, const char *run, const char *name)
{
    char text[64];
    double allocations = -1;
    double copied = -1;
    if (!lw_runs_one(view->argv0, run, 200000, &allocations, &copied)) {
        allocations = copied = -1;
    }
    snprintf(text, sizeof text, "pulsar.allocations%s", name);
    lw_figures_print(&view->figures, text, allocations, "/msg", 0, 0.0001, true);
    snprintf(text, sizeof text, "pulsar.payloads_copied%s", name);
    /* A frame that is cut by the end of what was read is moved: one in a read at most. */
    lw_figures_print(&view->figures, text, copied, "/msg", 0.02, 0.02, true);
}

static void
show_cpu(struct view *view)
{
    double own = -1;
    double in_read = -1;
    (void)lw_runs_median(view->argv0, "cpu", 200000, 5, &own, &in_read);
    lw_figures_note("pulsar.read_call_1KiB", in_read, "ns/msg");
    lw_figures_print(&view->figures, "pulsar.cpu_over_read_1KiB", own, "ns/msg", 250, 250,
                     true);
}

/* Judged by the upper quartile, as all ratios of wall time are. */
static void
show_ratio(struct view *view, const char *name, struct lw_ratio ratio, double goal)
{
    char text[64];
    snprintf(text, sizeof text, "%s_upper_quartile", name);
    lw_figures_note(text, ratio.upper, "ratio");
    lw_figures_print(&view->figures, name, ratio.median, "ratio", goal,
                     ratio.upper >= goal ? ratio.median : goal, false);
}

/*
 * Two in 120 s, and three for each interval of the keep-alive (30 s): the broker's PING, ours, and
 * its PONG. What else is asked from time to time is asked at the same moments.
 */
static void
show_idle(struct view *view)
{
    const double allowed = 2 + 3 * 120 / 30;
    if (!view->has_laneway) {
        skip("pulsar.idle_wakes_in_120s", "this build has no pulsar://");
        return;
    }
    lw_figures_print(&view->figures, "pulsar.idle_wakes_in_120s",
                     lw_runs_idle_wakes(view->argv0, "idle"), "switches", allowed, allowed,
                     true);
}

static void
show_permits(struct view *view)
{
    lw_figures_print(&view->figures, "pulsar.permits_granted_at_most",
                     lw_embedded_stat(&view->embedded, "permits_max"), "permits", QUEUE, QUEUE,
                     true);
    lw_figures_print(&view->figures, "pulsar.protocol_errors",
                     lw_embedded_stat(&view->embedded, "protocol_errors"), "frames", 0, 0,
                     true);
    lw_figures_print(&view->figures, "pulsar.violations",
                     lw_embedded_stat(&view->embedded, "violations"), "times", 0, 0, true);
}

/* -- The real broker, when PULSAR_URL names one --------------------------------------------------------- */

#define PYTHON_RUN                                                                             \
    "import os, pulsar, sys, time\n"                                                           \
    "client = pulsar.Client(os.environ['PULSAR_URL'],"                                         \
    " logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull))\n"                       \
    "verb, n = sys.argv[1], int(sys.argv[2])\n"                                                \
    "topics = {'python': '" PREFIX SINGLE "', 'python-batched': '" PREFIX BATCHED "'}\n"       \
    "if verb == 'python-fill':\n"                                                              \
    "    for name, topic in topics.items():\n"                                                 \
    "        producer = client.create_producer(topic, batching_enabled=name != 'python',"      \
    " batching_max_messages=100, batching_max_publish_delay_ms=100,"                           \
    " block_if_queue_full=True)\n"                                                             \
    "        for i in range(n if name == 'python' else 10 * n):\n"                             \
    "            producer.send_async(b'x' * 100, None, partition_key='k%d' % (i % 1000))\n"    \
    "        producer.flush()\n"                                                               \
    "    print('1 0')\n"                                                                       \
    "else:\n"                                                                                  \
    "    consumer = client.subscribe(topics[verb], 'python-%d' % os.getpid(),"                 \
    " consumer_type=pulsar.ConsumerType.Shared,"                                               \
    " initial_position=pulsar.InitialPosition.Earliest)\n"                                     \
    "    consumer.acknowledge(consumer.receive())\n"                                           \
    "    begin = time.monotonic()\n"                                                           \
    "    for i in range(n - 1):\n"                                                             \
    "        consumer.acknowledge(consumer.receive())\n"                                       \
    "    print('%.6f 0' % (n / (time.monotonic() - begin)))\n"                                 \
    "client.close()\n"

/* Becomes the interpreter of PULSAR_PYTHON (or python3), with the official client in it. */
static void
run_python(const char *verb, uint64_t n)
{
    const char *python = getenv("PULSAR_PYTHON");
    char count[32];
    snprintf(count, sizeof count, "%llu", (unsigned long long)n);
    python = python ? python : "python3";
    execlp(python, python, "-c", PYTHON_RUN, verb, count, (char *)NULL);
    fprintf(stderr, "pulsar_path: cannot run %s\n", python);
    exit(70);
}

/* Ratios on one of the two topics; `suffix` of the runs that read it. */
static void
show_real_topic(struct view *view, const char *suffix, uint64_t n)
{
    char names[3][64];
    char runs[3][32];
    snprintf(names[0], sizeof names[0], "pulsar.real_bare_loop_to_python%s", suffix);
    snprintf(names[1], sizeof names[1], "pulsar.real_to_bare_loop%s", suffix);
    snprintf(names[2], sizeof names[2], "pulsar.real_to_python%s", suffix);
    snprintf(runs[0], sizeof runs[0], "raw%s", suffix);
    snprintf(runs[1], sizeof runs[1], "python%s", suffix);
    snprintf(runs[2], sizeof runs[2], "laneway%s", suffix);
    lw_figures_note(names[0], lw_runs_ratio(view->argv0, runs[0], runs[1], n).median, "ratio");
    if (!view->has_laneway) {
        skip(names[1], "this build has no pulsar://");
        skip(names[2], "this build has no pulsar://");
        return;
    }
    show_ratio(view, names[1], lw_runs_ratio(view->argv0, runs[2], runs[0], n), 0.90);
    show_ratio(view, names[2], lw_runs_ratio(view->argv0, runs[2], runs[1], n), 1.0);
}

static void
show_real(struct view *view)
{
    const char *url = getenv("PULSAR_URL");
    double unused;
    if (!url) {
        skip("pulsar.real_to_bare_loop", "PULSAR_URL is not set");
        skip("pulsar.real_to_python", "PULSAR_URL is not set");
        return;
    }
    setenv("LANEWAY_BENCH_ADDRESS", url, 1);
    if (!lw_runs_one(view->argv0, "python-fill", REAL + QUEUE, &unused, &unused)) {
        skip("pulsar.real_to_bare_loop", "the official client cannot fill (PULSAR_PYTHON?)");
        skip("pulsar.real_to_python", "the official client cannot fill (PULSAR_PYTHON?)");
        return;
    }
    show_real_topic(view, "", REAL);
    show_real_topic(view, "-batched", 10 * REAL);
}

/* -- The program ----------------------------------------------------------------------------------------- */

static int
run_case(const char *name, uint64_t n)
{
    if (strcmp(name, "raw") == 0) {
        run_raw(PREFIX SINGLE, n);
    } else if (strcmp(name, "raw-batched") == 0) {
        run_raw(PREFIX BATCHED, n);
    } else if (strcmp(name, "memory") == 0) {
        run_memory(PREFIX SINGLE, n);
    } else if (strcmp(name, "memory-batched") == 0) {
        run_memory(PREFIX BATCHED, n);
    } else if (strcmp(name, "cpu") == 0) {
        run_cpu(PREFIX KIB, n);
    } else if (strcmp(name, "decode") == 0 || strcmp(name, "decode-batched") == 0) {
        lw_bench_decode(name[6] ? 100 : 0, n);
    } else if (strcmp(name, "laneway-batched") == 0) {
        run_laneway(PREFIX BATCHED, n);
    } else if (strcmp(name, "laneway") == 0 || strcmp(name, "idle") == 0) {
        run_laneway(PREFIX SINGLE, n > 0 ? n : UINT64_MAX);
    } else if (strncmp(name, "python", 6) == 0) {
        run_python(name, n);
    } else {
        fprintf(stderr, "pulsar_path: no case \"%s\"\n", name);
        return 64;
    }
    return 0;
}

static bool
feed(struct lw_embedded *embedded)
{
    char lines[3][128];
    snprintf(lines[0], sizeof lines[0], "feed %s %d 100 1000", PREFIX SINGLE, FED);
    snprintf(lines[1], sizeof lines[1], "feed %s %d 100 1000 100", PREFIX BATCHED, FED);
    snprintf(lines[2], sizeof lines[2], "feed %s %d 1024 1000", PREFIX KIB, FED);
    for (size_t i = 0; i < 3; i++) {
        if (!lw_embedded_tell(embedded, lines[i], NULL, 0)) {
            return false;
        }
    }
    return true;
}

static bool
has_laneway(void)
{
    struct lw_error error = { 0 };
    struct lw_dispatcher_options options;
    lw_dispatcher_options_init(&options);
    struct lw_dispatcher *dispatcher = lw_dispatcher_create(&options, &error);
    bool has_it = dispatcher && lw_dispatcher_connect(dispatcher, "main", "pulsar://127.0.0.1",
                                                      NULL, 0, &error) == LW_STATUS_OK;
    lw_dispatcher_destroy(dispatcher);
    return has_it;
}

static void
show_times(struct view *view)
{
    show_cpu(view);
    if (view->has_laneway) {
        show_ratio(view, "pulsar.feeder_to_bare_loop",
                   lw_runs_ratio(view->argv0, "laneway", "raw", FED), 0.97);
    } else {
        skip("pulsar.feeder_to_bare_loop", "this build has no pulsar://");
    }
    show_idle(view);
    show_real(view);
}

int
main(int argc, char **argv)
{
    struct view view = { .argv0 = argv[0] };
    if (argc == 4 && strcmp(argv[1], "--run") == 0) {
        return run_case(argv[2], strtoull(argv[3], NULL, 10));
    }
    lw_figures_init(&view.figures, argc, argv);
    if (!lw_embedded_start(&view.embedded, argv[0])) {
        skip("pulsar", "the embedded broker is not built");
        return 0;
    }
    if (!feed(&view.embedded)) {
        return 70;
    }
    setenv("LANEWAY_BENCH_ADDRESS", view.embedded.address, 1);
    view.has_laneway = has_laneway();
    show_instructions(&view);
    show_memory(&view, "memory", "");
    show_memory(&view, "memory-batched", "_batched_100");
    show_permits(&view);
    if (!view.figures.is_instructions_only) {
        show_times(&view);
    }
    lw_embedded_stop(&view.embedded);
    return lw_figures_exit(&view.figures);
}

#else

int
main(void)
{
    printf("pulsar: skipped, this build is without Pulsar\n");
    return 0;
}

#endif
