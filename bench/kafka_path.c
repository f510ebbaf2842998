/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Laneway costs on top of librdkafka, against the client's mock cluster in another process.
 * Instructions of the loop thread a message minus those of the leanest loop that can be written
 * on the client (one queue, batches of 1,000, destroy); the whole process as a ratio. Then, in
 * time: throughput as a ratio, interleaved; handlers of 5 ms on the loop and on threads against
 * what the same waiting can reach; a consumer that stands still for 10 s; an idle one.
 *
 * Every case is a run of its own (`--run NAME N`), since a client library never forgets.
 */
#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <laneway/laneway.h>

#include "base/clock.h"
#include "bench/support/figures.h"
#include "bench/support/mock.h"

#define TOPIC "bench"
#define TOPIC_100_KEYS "waits"
#define TOPIC_200_KEYS "threads"
#define PARTITIONS 32
#define FILLED 600000
#define BATCH 1000
#define STEADY 80000 /* of 100,000: keys are of uneven length, the last ones run alone */
#define SLOTS 100
#define WAIT_US 5000
#define PAIRS 9
#define IDLE_SETTLE_S 15
#define IDLE_S 120

static const char *
address(void)
{
    const char *text = getenv("LANEWAY_BENCH_ADDRESS");
    if (!text) {
        fprintf(stderr, "kafka_path: LANEWAY_BENCH_ADDRESS is not set\n");
        exit(64);
    }
    return text;
}

/* Time from the first message to the last, printed for the parent. */
struct span {
    uint64_t first;
    uint64_t last;
    uint64_t gap_max; /* the longest time between two */
    uint64_t count;
};

static void
span_note(struct span *span, uint64_t now)
{
    if (span->count == 0) {
        span->first = now;
    } else if (now - span->last > span->gap_max) {
        span->gap_max = now - span->last;
    }
    span->last = now;
    span->count++;
}

static void
span_print(const struct span *span)
{
    double seconds = (double)(span->last - span->first) / 1e9;
    printf("%.6f %.6f\n", seconds > 0 ? (double)span->count / seconds : 0,
           (double)span->gap_max / 1e6);
}

/* -- the raw loop -------------------------------------------------------------------------------- */

static void
set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char reason[256];
    if (rd_kafka_conf_set(conf, name, value, reason, sizeof(reason)) != RD_KAFKA_CONF_OK) {
        fprintf(stderr, "kafka_path: %s\n", reason);
        exit(70);
    }
}

static rd_kafka_t *
open_raw(void)
{
    char reason[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", address());
    set(conf, "group.id", "raw");
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "fetch.wait.max.ms", "50");
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason, sizeof(reason));
    if (!client) {
        fprintf(stderr, "kafka_path: %s\n", reason);
        exit(70);
    }
    rd_kafka_poll_set_consumer(client);
    return client;
}

static void
assign_all(rd_kafka_t *client)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTITIONS);
    for (int32_t i = 0; i < PARTITIONS; i++) {
        rd_kafka_topic_partition_list_add(list, TOPIC, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    }
    rd_kafka_assign(client, list);
    rd_kafka_topic_partition_list_destroy(list);
}

static void
run_raw(uint64_t n)
{
    rd_kafka_t *client = open_raw();
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(client);
    rd_kafka_message_t *batch[BATCH];
    struct span span = { 0 };
    uint64_t one = 1;
    uint64_t count = 0;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rd_kafka_queue_io_event_enable(queue, fd, &one, sizeof(one));
    assign_all(client);
    while (count < n) {
        ssize_t got = rd_kafka_consume_batch_queue(queue, 0, batch, BATCH);
        for (ssize_t i = 0; i < got; i++) {
            count += batch[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR;
            rd_kafka_message_destroy(batch[i]);
        }
        if (got > 0) {
            span_note(&span, lw_clock_monotonic_ns());
        } else {
            struct pollfd wait = { .fd = fd, .events = POLLIN };
            poll(&wait, 1, 100);
            (void)!read(fd, &one, sizeof(one));
            one = 1;
        }
    }
    span.count = count;
    span_print(&span);
    rd_kafka_queue_destroy(queue);
    rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
    close(fd);
}

/* -- Laneway ---------------------------------------------------------------------------------------- */

struct bench {
    struct lw_dispatcher *dispatcher;
    uint64_t n;
    struct span span;
    atomic_ullong started;
    bool is_stopped; /* slow consumer: nothing is finished */
    struct lw_delivery *kept[2048];
    uint32_t kept_count;
};

static void
must(enum lw_status status, const struct lw_error *error)
{
    if (status != LW_STATUS_OK) {
        fprintf(stderr, "kafka_path: %s: %s\n", error->code, error->message);
        exit(70);
    }
}

static void
count_one(struct bench *bench)
{
    if (bench->span.count == bench->n) {
        return; /* what is here is still handled in the drain, and not counted */
    }
    if (++bench->span.count == 1) {
        bench->span.first = lw_clock_monotonic_ns();
    }
    if (bench->span.count == bench->n) {
        bench->span.last = lw_clock_monotonic_ns();
        lw_dispatcher_request_close(bench->dispatcher);
    }
}

static enum lw_verdict
do_nothing(struct lw_delivery *delivery, void *user)
{
    (void)delivery;
    count_one(user);
    return LW_OK;
}

static void
finish_later(void *user)
{
    (void)lw_delivery_finish(user, LW_OK);
}

/* 5 ms of waiting on the loop, as a handler that waits for an answer would. */
static void
wait_on_loop(struct lw_delivery *delivery, void *user)
{
    struct bench *bench = user;
    count_one(bench);
    if (!lw_loop_timer(bench->dispatcher, WAIT_US, finish_later, delivery)) {
        exit(71);
    }
}

static enum lw_verdict
wait_on_thread(struct lw_delivery *delivery, void *user)
{
    struct bench *bench = user;
    struct timespec wait = { .tv_nsec = WAIT_US * 1000 };
    unsigned long long started = atomic_fetch_add(&bench->started, 1) + 1;
    (void)delivery;
    if (started == 1) {
        bench->span.first = lw_clock_monotonic_ns();
    }
    if (started == bench->n) {
        bench->span.last = lw_clock_monotonic_ns();
        bench->span.count = bench->n;
        lw_dispatcher_request_close(bench->dispatcher);
    }
    nanosleep(&wait, NULL);
    return LW_OK;
}

/* Keeps everything until it is released, then finishes at once. */
static void
keep(struct lw_delivery *delivery, void *user)
{
    struct bench *bench = user;
    if (bench->is_stopped && bench->kept_count < 2048) {
        bench->kept[bench->kept_count++] = delivery;
        return;
    }
    span_note(&bench->span, lw_clock_monotonic_ns());
    (void)lw_delivery_finish(delivery, LW_OK);
    if (bench->span.count == bench->n) {
        lw_dispatcher_request_close(bench->dispatcher);
    }
}

static void
release_all(void *user)
{
    struct bench *bench = user;
    bench->is_stopped = false;
    for (uint32_t i = 0; i < bench->kept_count; i++) {
        (void)lw_delivery_finish(bench->kept[i], LW_OK);
    }
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

static struct bench *
open_laneway(const char *topic, const char *group, uint32_t slots,
             struct lw_subscription_options *options)
{
    static struct bench bench;
    char own_group[64];
    struct lw_error error = { 0 };
    struct lw_dispatcher_options dispatcher;
    const struct lw_property reset = { "auto.offset.reset", "earliest" };
    char url[160];
    lw_dispatcher_options_init(&dispatcher);
    dispatcher.concurrency = slots;
    dispatcher.log = say;
    bench.dispatcher = lw_dispatcher_create(&dispatcher, &error);
    must(bench.dispatcher ? LW_STATUS_OK : error.status, &error);
    snprintf(url, sizeof(url), "kafka://%s", address());
    must(lw_dispatcher_connect(bench.dispatcher, "main", url, NULL, 0, &error), &error);
    options->broker = "main";
    options->topic = topic;
    /* A group of its own for each run, or the second one would find everything committed. */
    snprintf(own_group, sizeof(own_group), "%s-%d", group, (int)getpid());
    options->subscription = own_group;
    options->user = &bench;
    options->properties = &reset;
    options->property_count = 1;
    must(lw_dispatcher_subscribe(bench.dispatcher, options, &error), &error);
    return &bench;
}

static void
run_to_end(struct bench *bench, uint64_t n)
{
    struct lw_error error = { 0 };
    bench->n = n;
    enum lw_status status = lw_dispatcher_run(bench->dispatcher, &error);
    if (status != LW_STATUS_OK && status != LW_STATUS_UNFINISHED) {
        must(status, &error);
    }
    span_print(&bench->span);
    lw_dispatcher_destroy(bench->dispatcher);
}

static void
run_laneway(uint64_t n)
{
    struct lw_subscription_options options;
    lw_subscription_options_init(&options);
    options.engine = LW_ENGINE_LOOP;
    options.handler = do_nothing;
    run_to_end(open_laneway(TOPIC, "noop", 64, &options), n);
}

static void
run_waiting(bool on_threads, uint64_t n)
{
    struct lw_subscription_options options;
    lw_subscription_options_init(&options);
    options.engine = on_threads ? LW_ENGINE_THREADS : LW_ENGINE_LOOP;
    options.handler = on_threads ? wait_on_thread : NULL;
    options.handler_async = on_threads ? NULL : wait_on_loop;
    options.threads = on_threads ? SLOTS : 0;
    run_to_end(
        open_laneway(on_threads ? TOPIC_200_KEYS : TOPIC_100_KEYS, "waiting", SLOTS, &options),
        n);
}

static void
run_slow(uint64_t n)
{
    struct lw_subscription_options options;
    lw_subscription_options_init(&options);
    options.engine = LW_ENGINE_LOOP;
    options.handler_async = keep;
    options.ordering = LW_ORDERING_NONE;
    struct bench *bench = open_laneway(TOPIC, "slow", 1000, &options);
    bench->is_stopped = true;
    (void)lw_loop_timer(bench->dispatcher, INT64_C(13000000), release_all, bench);
    run_to_end(bench, n);
}

/* Reads all, then stands idle until it is killed; the parent counts its wake-ups. */
static void
run_idle(void)
{
    struct lw_error error = { 0 };
    struct lw_subscription_options options;
    lw_subscription_options_init(&options);
    options.engine = LW_ENGINE_LOOP;
    options.handler = do_nothing;
    struct bench *bench = open_laneway(TOPIC, "idle", 64, &options);
    bench->n = UINT64_MAX;
    must(lw_dispatcher_run(bench->dispatcher, &error), &error);
    lw_dispatcher_destroy(bench->dispatcher);
}

/* How often the first thread of that process went to sleep by itself. */
static double
voluntary_switches(pid_t pid)
{
    char path[64];
    char line[128];
    double count = -1;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0) {
            count = strtod(line + 24, NULL);
        }
    }
    if (file) {
        fclose(file);
    }
    return count;
}

static double
idle_wakes(const char *argv0)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl(argv0, argv0, "--run", "idle", "0", (char *)NULL);
        _exit(127);
    }
    sleep(IDLE_SETTLE_S);
    double before = voluntary_switches(pid);
    sleep(IDLE_S);
    double after = voluntary_switches(pid);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return before < 0 || after < 0 ? -1 : after - before;
}

/* -- what waiting can reach ---------------------------------------------------------------------------- */

struct waits {
    struct lw_dispatcher *dispatcher;
    uint64_t armed;
    uint64_t sum;
    int left;
};

static void
on_wait(void *user)
{
    struct waits *waits = user;
    uint64_t now = lw_clock_monotonic_ns();
    waits->sum += now - waits->armed;
    if (--waits->left == 0) {
        lw_dispatcher_request_close(waits->dispatcher);
        return;
    }
    waits->armed = now;
    (void)lw_loop_timer(waits->dispatcher, WAIT_US, on_wait, waits);
}

/* Mean time that one wait of 5 ms really takes on an idle loop, in ms. */
static double
loop_wait_ms(void)
{
    struct lw_error error = { 0 };
    struct lw_dispatcher_options options;
    struct waits waits = { .left = 200 };
    lw_dispatcher_options_init(&options);
    waits.dispatcher = lw_dispatcher_create(&options, &error);
    waits.armed = lw_clock_monotonic_ns();
    (void)lw_loop_timer(waits.dispatcher, WAIT_US, on_wait, &waits);
    must(lw_dispatcher_run(waits.dispatcher, &error), &error);
    lw_dispatcher_destroy(waits.dispatcher);
    return (double)waits.sum / 200 / 1e6;
}

static double
thread_wait_ms(void)
{
    uint64_t start = lw_clock_monotonic_ns();
    for (int i = 0; i < 200; i++) {
        struct timespec wait = { .tv_nsec = WAIT_US * 1000 };
        nanosleep(&wait, NULL);
    }
    return (double)(lw_clock_monotonic_ns() - start) / 200 / 1e6;
}

/* -- figures ------------------------------------------------------------------------------------------------ */

static bool
run_child(const char *argv0, const char *name, uint64_t n, double *ret_first,
          double *ret_second)
{
    char command[1024];
    snprintf(command, sizeof(command), "timeout 300 %s --run %s %llu", argv0, name,
             (unsigned long long)n);
    FILE *file = popen(command, "r");
    bool is_ok = file && fscanf(file, "%lf %lf", ret_first, ret_second) == 2;
    return (file && pclose(file) == 0) && is_ok;
}

/* The least of three: on a busy machine a loop turns more often for the same messages. */
static double
least_instructions(const char *argv0, const char *name, uint64_t n)
{
    double least = -1;
    for (int i = 0; i < 3; i++) {
        double value = lw_figures_instructions(argv0, name, n, true);
        least = value > 0 && (least < 0 || value < least) ? value : least;
    }
    return least;
}

static void
show_instructions(struct lw_figures *figures, const char *argv0)
{
    const uint64_t n = 100000;
    double raw = least_instructions(argv0, "raw", n);
    double own = least_instructions(argv0, "laneway", n);
    double raw_all = lw_figures_instructions(argv0, "raw", n, false);
    double own_all = lw_figures_instructions(argv0, "laneway", n, false);
    bool is_ok = raw > 0 && own > 0 && raw_all > 0 && own_all > 0;
    lw_figures_note("kafka.raw_loop_thread", raw, "instr/msg");
    lw_figures_note("kafka.loop_thread", own, "instr/msg");
    lw_figures_print(figures, "kafka.loop_thread_over_raw",
                     !is_ok      ? -1
                     : own > raw ? own - raw
                                 : 0,
                     "instr/msg", 250, 340, true);
    lw_figures_note("kafka.whole_process_to_raw", is_ok ? own_all / raw_all : -1, "ratio");
}

static int
by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static void
show_throughput(struct lw_figures *figures, const char *argv0)
{
    double ratios[PAIRS];
    double own;
    double raw;
    double gap;
    int count = 0;
    for (int i = 0; i < PAIRS; i++) {
        bool is_ok = run_child(argv0, "raw", FILLED, &raw, &gap) &&
                     run_child(argv0, "laneway", FILLED, &own, &gap);
        if (is_ok && raw > 0) {
            ratios[count++] = own / raw;
        }
    }
    qsort(ratios, (size_t)count, sizeof(double), by_value);
    double median = count > 0 ? ratios[count / 2] : -1;
    double upper = count > 0 ? ratios[count * 3 / 4] : -1;
    lw_figures_note("kafka.throughput_to_raw_upper_quartile", upper, "ratio");
    lw_figures_print(figures, "kafka.throughput_to_raw_median", median, "ratio", 0.92,
                     upper >= 0.92 ? median : 0.92, false);
}

static void
show_waiting(struct lw_figures *figures, const char *argv0)
{
    double rate;
    double gap;
    double before = loop_wait_ms();
    bool is_ok = run_child(argv0, "waits", STEADY, &rate, &gap);
    double wait = (before + loop_wait_ms()) / 2;
    lw_figures_note("kafka.loop_wait", wait, "ms");
    lw_figures_print(figures, "kafka.waits_5ms_100_slots",
                     is_ok ? rate * wait / 1e3 / SLOTS : -1, "of 100/T", 0.97, 0.97, false);
    before = thread_wait_ms();
    is_ok = run_child(argv0, "threads", STEADY, &rate, &gap);
    wait = (before + thread_wait_ms()) / 2;
    lw_figures_note("kafka.thread_wait", wait, "ms");
    lw_figures_print(figures, "kafka.threads_5ms_100", is_ok ? rate * wait / 1e3 / SLOTS : -1,
                     "of 100/T", 0.93, 0.93, false);
}

static void
show_quiet(struct lw_figures *figures, const char *argv0)
{
    double rate = -1;
    double value = -1;
    bool is_ok = run_child(argv0, "slow", 200000, &rate, &value);
    lw_figures_print(figures, "kafka.gap_after_backpressure", is_ok ? value : -1, "ms", 100,
                     100, true);
    lw_figures_print(figures, "kafka.idle_wakes_in_120s", idle_wakes(argv0), "switches", 2, 2,
                     true);
}

static int
run_case(const char *name, uint64_t n)
{
    if (strcmp(name, "raw") == 0) {
        run_raw(n);
    } else if (strcmp(name, "laneway") == 0) {
        run_laneway(n);
    } else if (strcmp(name, "waits") == 0 || strcmp(name, "threads") == 0) {
        run_waiting(name[0] == 't', n);
    } else if (strcmp(name, "slow") == 0) {
        run_slow(n);
    } else if (strcmp(name, "idle") == 0) {
        run_idle();
    } else {
        fprintf(stderr, "kafka_path: no case \"%s\"\n", name);
        return 64;
    }
    return 0;
}

int
main(int argc, char **argv)
{
    static const char *const fills[] = { TOPIC ":600000:100:1000",
                                         TOPIC_100_KEYS ":100000:100:100",
                                         TOPIC_200_KEYS ":100000:100:200" };
    struct lw_figures figures;
    struct lw_mock mock;
    if (argc == 4 && strcmp(argv[1], "--run") == 0) {
        return run_case(argv[2], strtoull(argv[3], NULL, 10));
    }
    lw_figures_init(&figures, argc, argv);
    if (!lw_mock_start(&mock, argv[0], TOPIC ":32," TOPIC_100_KEYS ":32," TOPIC_200_KEYS ":32",
                       fills, 3)) {
        return 70;
    }
    setenv("LANEWAY_BENCH_ADDRESS", mock.address, 1);
    show_instructions(&figures, argv[0]);
    if (!figures.is_instructions_only) {
        show_throughput(&figures, argv[0]);
        show_waiting(&figures, argv[0]);
        show_quiet(&figures, argv[0]);
    }
    lw_mock_stop(&mock);
    return lw_figures_exit(&figures);
}
