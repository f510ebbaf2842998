/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_programs PROTOCOL WINDOW SEED MESSAGES KILLS: workers of a program killed at random moments
 * while messages flow through a service on a broker in memory, and what became of each message.
 *
 * Every worker appends to one journal, atomically, what it starts and what it has done; a message
 * of a hundred thousand kills whoever works on it. From the journal, the kills that were sent and
 * the dead letters follow: nothing is lost; keys stay in order; an attempt is charged only where a
 * killed worker had that message alone, and always where it surely had it alone; there are no more
 * charges than such kills; a dead letter stands exactly where the third attempt was charged. Prints
 * counts as JSON; exit status 1 when one of these is not so.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <laneway/laneway.h>

#include "brokers/memory/hub.h"

enum {
    KEYS = 997,
    ATTEMPTS_MAX = 3,
    WORKERS = 2,
    POISON_EVERY = 1999,
    LARGE_EVERY = 97,
    LARGE_BYTES = 9000,
    SECONDS_MAX = 500,
    WINDOW_MAX = 16,
    DEATHS_MAX = 65536
};

_Noreturn static void
give_up(const char *what, const char *why)
{
    (void)fprintf(stderr, "kill_programs: %s: %s\n", what, why);
    exit(1);
}

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* -- The worker --------------------------------------------------------------------------------- */

static struct {
    char data[1 << 20];
    size_t begin;
    size_t end;
    bool is_framed;
    int journal;
} worker;

struct unit {
    json_int_t id;
    int attempt;
    unsigned sequence;
    bool is_poison;
    bool is_hello;
};

static bool
fill(void)
{
    if (worker.begin > 0) {
        memmove(worker.data, worker.data + worker.begin, worker.end - worker.begin);
        worker.end -= worker.begin;
        worker.begin = 0;
    }
    ssize_t got = read(STDIN_FILENO, worker.data + worker.end, sizeof worker.data - worker.end);
    worker.end += got > 0 ? (size_t)got : 0;
    return got > 0;
}

static bool
ensure(size_t size)
{
    while (worker.end - worker.begin < size) {
        if (!fill()) {
            return false;
        }
    }
    return true;
}

static size_t
int_in(const json_t *object, const char *name)
{
    return (size_t)json_integer_value(json_object_get(object, name));
}

/* The object of the next line or frame, and where its value lies; NULL at the end. */
static json_t *
next_object(char value[16])
{
    value[0] = '\0';
    if (!worker.is_framed) {
        const char *newline = NULL;
        while (
            !(newline = memchr(worker.data + worker.begin, '\n', worker.end - worker.begin))) {
            if (!fill()) {
                return NULL;
            }
        }
        const char *line = worker.data + worker.begin;
        json_t *root = json_loadb(line, (size_t)(newline - line), 0, NULL);
        const char *text = json_string_value(json_object_get(root, "value"));
        (void)snprintf(value, 16, "%.15s", text ? text : "");
        worker.begin += (size_t)(newline - line) + 1;
        return root;
    }
    if (!ensure(4)) {
        return NULL;
    }
    const unsigned char *length = (unsigned char *)worker.data + worker.begin;
    size_t size = (size_t)length[1] << 16 | (size_t)length[2] << 8 | length[3];
    if (!ensure(4 + size)) {
        return NULL;
    }
    json_t *root = json_loadb(worker.data + worker.begin + 4, size, 0, NULL);
    size_t key = int_in(root, "key_len");
    size_t whole = 4 + size + key + int_in(root, "value_len");
    if (!ensure(whole)) {
        json_decref(root);
        return NULL;
    }
    size_t shown = int_in(root, "value_len") < 15 ? int_in(root, "value_len") : 15;
    memcpy(value, worker.data + worker.begin + 4 + size + key, shown);
    value[shown] = '\0';
    worker.begin += whole;
    return root;
}

static bool
next_unit(struct unit *ret_unit)
{
    char value[16];
    json_t *root = next_object(value);
    if (!root) {
        return false;
    }
    *ret_unit = (struct unit){
        .id = json_integer_value(json_object_get(root, "id")),
        .attempt = (int)int_in(root, "attempt"),
        .is_hello = json_object_get(root, "hello") != NULL,
        .is_poison = value[0] == 'p',
        .sequence = (unsigned)strtoul(value + (value[0] == 'p' ? 1 : 0), NULL, 10),
    };
    json_decref(root);
    return true;
}

static void
note(char what, const struct unit *unit)
{
    char line[64];
    int size = snprintf(line, sizeof line, "%c %u %d %d\n", what, unit->sequence, unit->attempt,
                        (int)getpid());
    if (write(worker.journal, line, (size_t)size) != size) {
        _exit(70);
    }
}

/* The text begins at its fifth byte: it has room for a length before it and a newline behind it. */
static void
say(char text[128], int size)
{
    memcpy(text, "\0\0\0", 3);
    text[3] = (char)size;
    text[4 + size] = '\n';
    const char *from = worker.is_framed ? text : text + 4;
    size_t length = worker.is_framed ? 4 + (size_t)size : (size_t)size + 1;
    if (write(STDOUT_FILENO, from, length) != (ssize_t)length) {
        _exit(70);
    }
}

static bool
has_input(void)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    return worker.begin < worker.end || poll(&input, 1, 0) > 0;
}

static void
say_ready(void)
{
    char text[128];
    say(text, snprintf(text + 4, 100, "{\"ready\":{\"protocol\":1,\"concurrent\":true}}"));
}

static void
say_done(json_int_t id)
{
    char text[128];
    say(text,
        snprintf(text + 4, 100, "{\"id\":%" JSON_INTEGER_FORMAT ",\"result\":\"ok\"}", id));
}

static int
work(const char *journal, int window)
{
    struct unit held[WINDOW_MAX];
    int count = 0;
    const char *protocol = getenv("LANEWAY_PROTOCOL");
    worker.is_framed = protocol && strcmp(protocol, "frames") == 0;
    worker.journal = open(journal, O_WRONLY | O_APPEND | O_CLOEXEC);
    while (next_unit(&held[count])) {
        if (held[count].is_hello) {
            say_ready();
            continue;
        }
        note('S', &held[count]);
        if (held[count].is_poison) {
            (void)raise(SIGKILL);
        }
        count++;
        if (count < window && has_input()) {
            continue;
        }
        for (int i = 0; i < count; i++) {
            note('D', &held[i]);
            say_done(held[i].id);
        }
        count = 0;
    }
    return 0;
}

/* -- The service and its killer ------------------------------------------------------------------ */

struct death {
    int pid;
    bool is_sent; /* by us */
};

static struct {
    struct lw_memory_hub *hub;
    struct lw_dispatcher *dispatcher;
    unsigned messages;
    unsigned kills;
    int window;
    uint64_t seed;
    pthread_mutex_t mutex;
    int pidfds[WORKERS]; /* of those that live, by worker; -1 */
    int pids[WORKERS];
    atomic_uint done;
    atomic_bool is_over;
    struct death *deaths;
    unsigned death_count;
    bool *is_dead; /* a dead letter was published */
    unsigned dead_count;
    unsigned faults;
} run = { .mutex = PTHREAD_MUTEX_INITIALIZER, .pidfds = { -1, -1 } };

static int
field_in(const char *fields, const char *name)
{
    const char *at = strstr(fields, name);
    return at ? atoi(at + strlen(name)) : -1;
}

static void
on_log(enum lw_log_level level, const char *event, const char *text, const char *fields,
       void *user)
{
    (void)level;
    (void)user;
    (void)text;
    bool has_started = strcmp(event, "handler.started") == 0;
    int index = field_in(fields, "worker=");
    if ((!has_started && strcmp(event, "handler.ended") != 0) || index < 0 ||
        index >= WORKERS) {
        return;
    }
    (void)pthread_mutex_lock(&run.mutex);
    if (run.pidfds[index] >= 0) {
        (void)close(run.pidfds[index]);
        run.pidfds[index] = -1;
    }
    if (has_started) {
        run.pids[index] = field_in(fields, "pid=");
        run.pidfds[index] = (int)syscall(SYS_pidfd_open, run.pids[index], 0);
    }
    (void)pthread_mutex_unlock(&run.mutex);
}

static bool
kill_one(int index)
{
    bool is_sent = false;
    (void)pthread_mutex_lock(&run.mutex);
    if (run.pidfds[index] >= 0 &&
        syscall(SYS_pidfd_send_signal, run.pidfds[index], SIGKILL, NULL, 0) == 0) {
        is_sent = true;
        run.deaths[run.death_count++] = (struct death){ run.pids[index], true };
        (void)close(run.pidfds[index]);
        run.pidfds[index] = -1;
    }
    (void)pthread_mutex_unlock(&run.mutex);
    return is_sent;
}

static void
wait_ns(long ns)
{
    struct timespec time = { .tv_nsec = ns };
    (void)nanosleep(&time, NULL);
}

/* Kills are spread over the messages, each at a random moment behind its place. */
static void *
kill_all(void *user)
{
    uint64_t state = run.seed * 0x9e3779b97f4a7c15u + 1;
    unsigned next = 0;
    unsigned step = 2 * run.messages / (run.kills + 1) + 1;
    (void)user;
    while (run.death_count < run.kills && !atomic_load(&run.is_over)) {
        if (atomic_load(&run.done) < next) {
            wait_ns(20000);
            continue;
        }
        wait_ns((long)(next_random(&state) % 400000));
        if (kill_one((int)(next_random(&state) % WORKERS))) {
            next = atomic_load(&run.done) + (unsigned)(next_random(&state) % step) / 2;
        }
    }
    return NULL;
}

static void
on_appended(const struct lw_memory_view *view, void *user)
{
    char value[16] = "";
    (void)user;
    if (strcmp(view->topic, "dead") != 0) {
        return;
    }
    memcpy(value, view->value.data, view->value.size < 15 ? view->value.size : 15);
    unsigned sequence = (unsigned)strtoul(value + (value[0] == 'p' ? 1 : 0), NULL, 10);
    run.faults += run.is_dead[sequence] ? 1 : 0;
    run.is_dead[sequence] = true;
    run.dead_count++;
}

static bool
is_poison(unsigned sequence)
{
    return sequence % POISON_EVERY == POISON_EVERY / 2;
}

static void
publish_all(void)
{
    static char value[LARGE_BYTES];
    memset(value, 'x', sizeof value);
    for (unsigned i = 0; i < run.messages; i++) {
        char key[16];
        char text[17];
        (void)snprintf(key, sizeof key, "k%u", i % KEYS);
        int size = snprintf(text, sizeof text, "%s%u ", is_poison(i) ? "p" : "", i);
        memcpy(value, text, (size_t)size);
        struct lw_memory_item item = lw_memory_item_of("jobs", key, NULL);
        item.value = (struct lw_bytes){ value, i % LARGE_EVERY == 0 ? LARGE_BYTES : 40 };
        if (lw_memory_hub_publish(run.hub, &item, NULL, NULL) != LW_STATUS_OK) {
            give_up("publish", "refused");
        }
        memset(value, 'x', sizeof text);
    }
}

static void
open_service(const char *self, const char *protocol, const char *journal)
{
    static const struct lw_property properties[] = { { "mode", "individual" },
                                                     { "partitions", "4" } };
    struct lw_error error = { 0 };
    struct lw_dispatcher_options options;
    struct lw_subscription_options jobs;
    struct lw_memory_options hub;
    char window[16];
    (void)snprintf(window, sizeof window, "%d", run.window);
    const char *program[] = { self, "worker", journal, window, NULL };
    lw_memory_options_init(&hub);
    hub.mode = LW_MEMORY_INDIVIDUAL;
    hub.default_partitions = 4;
    run.hub = lw_memory_hub_open("kills", &hub);
    lw_dispatcher_options_init(&options);
    options.log = on_log;
    options.concurrency = (uint32_t)(WORKERS * run.window);
    run.dispatcher = lw_dispatcher_create(&options, &error);
    lw_subscription_options_init(&jobs);
    jobs.broker = "main";
    jobs.topic = "jobs";
    jobs.subscription = "group";
    jobs.ordering = LW_ORDERING_KEY;
    jobs.engine = LW_ENGINE_PROGRAMS;
    jobs.program = program;
    jobs.protocol = strcmp(protocol, "frames") == 0 ? LW_PROTOCOL_FRAMES : LW_PROTOCOL_LINES;
    jobs.workers = WORKERS;
    jobs.window = (uint32_t)run.window;
    jobs.retry.in_place = LW_YES;
    jobs.retry.max_attempts = ATTEMPTS_MAX;
    jobs.retry.in_place_backoff.initial_ms = 1;
    jobs.retry.in_place_backoff.jitter_ms = 0;
    jobs.dead_letter.topic = "dead";
    jobs.on_error = LW_ON_ERROR_RETRY;
    if (!run.hub || !run.dispatcher ||
        lw_dispatcher_connect(run.dispatcher, "main", "memory:kills", properties, 2, &error) !=
            LW_STATUS_OK ||
        lw_dispatcher_subscribe(run.dispatcher, &jobs, &error) != LW_STATUS_OK) {
        give_up("start", error.message);
    }
}

static time_t
seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void
run_dry(void)
{
    struct lw_error error = { 0 };
    struct pollfd wake = { .fd = lw_dispatcher_fd(run.dispatcher), .events = POLLIN };
    time_t deadline = seconds() + SECONDS_MAX;
    enum lw_status status = LW_STATUS_OK;
    while ((status = lw_dispatcher_poll(run.dispatcher, &error)) == LW_STATUS_OK) {
        uint64_t left = lw_memory_hub_backlog(run.hub, "group", "jobs");
        atomic_store(&run.done, run.messages - (unsigned)left);
        if (left == 0) {
            lw_dispatcher_request_close(run.dispatcher);
        }
        if (seconds() > deadline) {
            give_up("messages are left", "no end in sight");
        }
        (void)poll(&wake, 1, 200);
    }
    if (status != LW_STATUS_CLOSED) {
        give_up("run", error.message);
    }
}

/* -- The judge ------------------------------------------------------------------------------------ */

struct message {
    int attempt; /* of the last start */
    int pid;     /* that started it last */
    bool is_done;
};

struct process {
    int pid;
    unsigned open[WINDOW_MAX];
    int open_count;
    unsigned last_done;
    bool has_done;
    bool is_killed;
};

static struct {
    struct message *messages;
    struct process *processes;
    unsigned process_count;
    unsigned last_of_key[KEYS];
    bool has_last[KEYS];
    uint64_t starts;
    unsigned charged;
    unsigned unseen;      /* charged where the message was read and not noted */
    unsigned idle_deaths; /* kills of workers that had nothing noted: each may charge one */
    unsigned suspects;
} judge;

static void
fault(const char *what, unsigned sequence)
{
    if (run.faults++ < 20) {
        (void)fprintf(stderr, "kill_programs: %s: message %u\n", what, sequence);
    }
}

static struct process *
process_of(int pid)
{
    for (unsigned i = judge.process_count; i > 0; i--) {
        if (judge.processes[i - 1].pid == pid) {
            return &judge.processes[i - 1];
        }
    }
    if (judge.process_count == DEATHS_MAX) {
        give_up("judge", "too many processes");
    }
    judge.processes[judge.process_count] = (struct process){ .pid = pid };
    return &judge.processes[judge.process_count++];
}

static bool
was_killed(int pid)
{
    for (unsigned i = 0; i < run.death_count; i++) {
        if (run.deaths[i].pid == pid) {
            return true;
        }
    }
    return false;
}

/* The run before of a message did not end well: was it charged exactly as it had to be? */
static void
judge_rerun(unsigned sequence, const struct message *message, int attempt)
{
    const struct process *before = process_of(message->pid);
    bool is_charged = attempt > message->attempt;
    bool was_poison = is_poison(sequence);
    bool is_open = before->open_count > 0;
    bool was_alone = before->open_count == 1 && before->open[0] == sequence;
    bool may_be_done = !is_open && before->has_done && before->last_done == sequence;
    judge.suspects += is_charged ? 0 : 1;
    if (!was_killed(message->pid) && !was_poison && before->open_count <= 1) {
        fault("run again although its process was not killed", sequence);
    }
    if (is_charged && attempt == message->attempt + 1 && !was_alone && !may_be_done) {
        judge.unseen++; /* it ran once more, alone, and was killed before it noted that */
    }
    if (!is_charged && was_alone && run.window == 1) {
        fault("not charged although it ran alone", sequence);
    }
}

static void
on_start(unsigned sequence, int attempt, int pid)
{
    struct message *message = &judge.messages[sequence];
    unsigned key = sequence % KEYS;
    unsigned last = judge.last_of_key[key];
    judge.starts++;
    if (judge.has_last[key] && sequence < last) {
        fault("started after a later one of its key", sequence);
    }
    if (judge.has_last[key] && sequence > last && !judge.messages[last].is_done &&
        !run.is_dead[last]) {
        fault("started before an earlier one of its key was done", sequence);
    }
    if (message->attempt > 0) {
        judge_rerun(sequence, message, attempt);
    }
    if (attempt < message->attempt || attempt > ATTEMPTS_MAX) {
        fault("its attempts do not ascend", sequence);
    }
    int skipped = attempt - message->attempt - 1;
    judge.charged += (unsigned)(attempt - (message->attempt ? message->attempt : 1));
    judge.unseen += skipped > 0 ? (unsigned)skipped : 0;
    judge.last_of_key[key] = sequence;
    judge.has_last[key] = true;
    message->attempt = attempt;
    message->pid = pid;
    struct process *process = process_of(pid);
    if (process->open_count == WINDOW_MAX) {
        give_up("judge", "a worker holds too many");
    }
    process->open[process->open_count++] = sequence;
}

static void
on_done(unsigned sequence, int pid)
{
    struct process *process = process_of(pid);
    judge.messages[sequence].is_done = true;
    process->last_done = sequence;
    process->has_done = true;
    for (int i = 0; i < process->open_count; i++) {
        if (process->open[i] == sequence) {
            process->open[i] = process->open[--process->open_count];
            return;
        }
    }
    fault("done without a start", sequence);
}

static void
judge_ends(void)
{
    for (unsigned i = 0; i < run.messages; i++) {
        const struct message *message = &judge.messages[i];
        if (!message->is_done && !run.is_dead[i]) {
            fault("lost", i);
        }
        if (is_poison(i) && !run.is_dead[i]) {
            fault("killed every worker and has no dead letter", i);
        }
        if (run.is_dead[i] && message->attempt != ATTEMPTS_MAX) {
            judge.unseen++;
        }
    }
    judge.charged += run.dead_count; /* the last attempt of each */
    for (unsigned i = 0; i < run.death_count; i++) {
        judge.idle_deaths += process_of(run.deaths[i].pid)->open_count == 0 ? 1 : 0;
    }
    if (judge.unseen > judge.idle_deaths) {
        fault("more was charged than was killed: unseen", judge.unseen);
    }
}

static void
read_journal(const char *path)
{
    char what = 0;
    unsigned sequence = 0;
    int attempt = 0;
    int pid = 0;
    FILE *file = fopen(path, "re");
    if (!file) {
        give_up(path, "cannot be read");
    }
    while (fscanf(file, "%c %u %d %d\n", &what, &sequence, &attempt, &pid) == 4) {
        if (sequence >= run.messages) {
            give_up("journal", "an unknown message");
        }
        if (what == 'S') {
            on_start(sequence, attempt, pid);
        } else {
            on_done(sequence, pid);
        }
    }
    (void)fclose(file);
}

static unsigned
number(const char *text)
{
    return (unsigned)strtoul(text, NULL, 10);
}

int
main(int argc, char **argv)
{
    char journal[] = "/tmp/laneway-kills-XXXXXX";
    char self[4096];
    pthread_t killer;
    struct lw_memory_observer observer = { .appended = on_appended };
    if (argc == 4 && strcmp(argv[1], "worker") == 0) {
        return work(argv[2], atoi(argv[3]));
    }
    if (argc != 6 || atoi(argv[2]) < 1 || atoi(argv[2]) > WINDOW_MAX) {
        give_up("usage", "kill_programs lines|frames WINDOW SEED MESSAGES KILLS");
    }
    run.window = atoi(argv[2]);
    run.seed = number(argv[3]);
    run.messages = number(argv[4]);
    run.kills = number(argv[5]);
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    int fd = mkstemp(journal);
    run.deaths = calloc(run.kills + 1, sizeof *run.deaths);
    run.is_dead = calloc(run.messages, sizeof *run.is_dead);
    judge.messages = calloc(run.messages, sizeof *judge.messages);
    judge.processes = calloc(DEATHS_MAX, sizeof *judge.processes);
    if (length <= 0 || fd < 0 || !run.deaths || !run.is_dead || !judge.messages ||
        !judge.processes) {
        give_up("start", "no memory or no file");
    }
    self[length] = '\0';
    (void)close(fd);
    open_service(self, argv[1], journal);
    publish_all();
    lw_memory_hub_observe(run.hub, &observer);
    if (pthread_create(&killer, NULL, kill_all, NULL) != 0) {
        give_up("start", "no thread");
    }
    run_dry();
    atomic_store(&run.is_over, true);
    (void)pthread_join(killer, NULL);
    lw_dispatcher_destroy(run.dispatcher);
    lw_memory_hub_close(run.hub);
    read_journal(journal);
    (void)unlink(journal);
    judge_ends();
    (void)printf("{\"protocol\": \"%s\", \"window\": %d, \"seed\": %u, \"messages\": %u, "
                 "\"kills\": %u, \"starts\": %llu, \"charged\": %u, \"unseen\": %u, "
                 "\"suspects\": %u, \"dead\": %u, \"faults\": %u}\n",
                 argv[1], run.window, number(argv[3]), run.messages, run.death_count,
                 (unsigned long long)judge.starts, judge.charged, judge.unseen, judge.suspects,
                 run.dead_count, run.faults);
    return run.faults > 0 ? 1 : 0;
}
