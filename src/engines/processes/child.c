/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's loop. Before a handler is called its request is marked as started in shared memory,
 * so that the owner can tell after a death what was touched. Each answer is published at once; the
 * owner is woken only when it said that it sleeps, which under load it does not. A worker without
 * work looks for a moment, then sleeps until it is woken or the owner is gone.
 *
 * The delivery that a handler sees reads straight from the ring: the request's bytes are given
 * back after the answer.
 */
#include "engines/processes/child.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "core/partition.h"
#include "core/subscription.h"
#include "engines/handler.h"
#include "engines/processes/answer.h"
#include "engines/processes/shared.h"

enum { LOOKS_BEFORE_SLEEP = 200, EXIT_REFUSED = 78, EXIT_BROKEN = 70 };

static const char closed_text[] = "its handler closed descriptors that it had not opened";

struct context {
    char *texts;
    size_t capacity;
    const char *topic;
    const char *subscription;
    const char *pipeline;
    const char *prefix;
    size_t prefix_size;
    int32_t partition;
};

struct child {
    struct lw_processes_shared shared;
    struct lw_plugin_file *file;
    lw_handler_fn handler;
    void *user;
    bool has_function;
    int wake; /* each wakes the other by it */
    int socket;
    uint64_t request_tail;
    uint64_t answer_head;
    size_t item_bytes_max;
    int64_t timeout_ms;
    uint64_t now; /* of the last look at the clock; a handler's begin is the end before */
    struct lw_processes_request request;
    const unsigned char *identity; /* of the request, behind its head */
    const unsigned char *packed_headers;
    struct lw_header *headers;
    size_t header_capacity;
    bool has_headers; /* unpacked */
    const struct context *context;
    struct context contexts[LW_PROCESSES_CONTEXTS];
    struct lw_delivery delivery;
    struct lw_subscription subscription;
    struct lw_partition partition;
    struct lw_broker broker;
};

/* One per process; too large for a stack. */
static struct child the_child;

static const struct child *
child_of(const struct lw_delivery *delivery)
{
    return LW_CONTAINER_CONST(delivery, struct child, delivery);
}

/* -- What the handler sees ----------------------------------------------------------------------- */

static uint32_t
retries(const struct lw_delivery *delivery)
{
    return child_of(delivery)->request.retries;
}

static size_t
message_id(const struct lw_delivery *delivery, char *out, size_t size)
{
    const struct child *child = child_of(delivery);
    const struct lw_processes_request *request = &child->request;
    const unsigned char *place = child->identity + request->identity_size;
    int length = 0;
    if (request->identity_size > 0) {
        length = snprintf(out, size, "%.*s", (int)request->identity_size, child->identity);
    } else if (request->place_size > 0) {
        length = snprintf(out, size, "%.*s%.*s", (int)child->context->prefix_size,
                          child->context->prefix, (int)request->place_size, place);
    } else {
        length = snprintf(out, size, "%.*s%lld", (int)child->context->prefix_size,
                          child->context->prefix, (long long)request->position);
    }
    return length > 0 ? (size_t)length : 0;
}

static bool
is_cancelled(const struct lw_delivery *delivery)
{
    const struct child *child = child_of(delivery);
    uint64_t cancelled = atomic_load_explicit(&child->shared.words->cancelled,
                                              memory_order_relaxed);
    return cancelled == child->request.seq || lw_delivery_deadline_ms(delivery) == 0;
}

static const struct lw_view_ops view_ops = {
    .retries = retries,
    .message_id = message_id,
    .now = lw_clock_monotonic_ns,
    .is_cancelled = is_cancelled,
};

static bool
reserve_headers(struct child *child, size_t count)
{
    if (count <= child->header_capacity) {
        return true;
    }
    struct lw_header *grown = lw_resize_array(child->headers, count, sizeof *grown);
    if (grown) {
        child->headers = grown;
        child->header_capacity = count;
    }
    return grown != NULL;
}

static void
unpack_headers(struct child *child)
{
    const unsigned char *at = child->packed_headers;
    for (uint32_t i = 0; i < child->request.header_count; i++) {
        uint32_t sizes[2];
        memcpy(sizes, at, sizeof sizes);
        at += sizeof sizes;
        bool has_value = sizes[1] != UINT32_MAX;
        child->headers[i].name = (struct lw_bytes){ at, sizes[0] };
        at += sizes[0];
        child->headers[i].value = (struct lw_bytes){ has_value ? at : NULL,
                                                     has_value ? sizes[1] : 0 };
        at += has_value ? sizes[1] : 0;
    }
    child->has_headers = true;
}

static const struct lw_header *
headers(struct lw_broker *broker, const struct lw_message *message, size_t *ret_count)
{
    struct child *child = LW_CONTAINER(broker, struct child, broker);
    (void)message;
    if (!child->has_headers && reserve_headers(child, child->request.header_count)) {
        unpack_headers(child);
    }
    *ret_count = child->has_headers ? child->request.header_count : 0;
    return child->headers;
}

static void
times(struct lw_broker *broker, const struct lw_message *message,
      struct lw_message_times *ret_times)
{
    const struct child *child = LW_CONTAINER(broker, struct child, broker);
    (void)message;
    ret_times->timestamp_ms = child->request.timestamp_ms;
    ret_times->event_time_ms = child->request.event_time_ms;
}

static const struct lw_broker_ops broker_ops = {
    .scheme = "worker",
    .headers = headers,
    .times = times,
};

/* -- Sleeping ------------------------------------------------------------------------------------ */

static inline void
relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

_Noreturn static void
leave(struct child *child)
{
    lw_plugin_file_close(child->file);
    if (child->has_function) {
        (void)fflush(NULL);
        _exit(0); /* what the program does at its end is not for its workers */
    }
    exit(0); /* NOLINT(concurrency-mt-unsafe): its own thread is the only one of ours */
}

_Noreturn static void
break_off(const char *what)
{
    (void)fprintf(stderr, "laneway-zygote: a worker cannot go on: %s\n", what);
    _exit(EXIT_BROKEN);
}

static void
sleep_until_woken(struct child *child)
{
    struct pollfd fds[2] = { { .fd = child->wake, .events = POLLIN },
                             { .fd = child->socket, .events = 0 } };
    bool is_closed = false;
    (void)poll(fds, 2, -1);
    if ((fds[0].revents | fds[1].revents) & POLLNVAL) {
        break_off(closed_text); /* nobody could wake it any more */
    }
    if (fds[1].revents & (POLLHUP | POLLERR)) {
        leave(child); /* the owner is gone */
    }
    (void)lw_processes_take_wakes(child->wake, &is_closed);
}

/* Waits for `is_due`, first awake for a moment. */
static void
wait_for(struct child *child, bool (*is_due)(const struct child *child, size_t size),
         size_t size)
{
    struct lw_processes_words *words = child->shared.words;
    for (int i = 0; i < LOOKS_BEFORE_SLEEP; i++) {
        if (is_due(child, size)) {
            return;
        }
        relax();
    }
    while (!is_due(child, size)) {
        (void)atomic_exchange_explicit(&words->worker_sleeps, 1, memory_order_seq_cst);
        if (!is_due(child, size)) {
            sleep_until_woken(child);
        }
        atomic_store_explicit(&words->worker_sleeps, 0, memory_order_relaxed);
    }
}

static bool
has_work(const struct child *child, size_t size)
{
    const struct lw_processes_words *words = child->shared.words;
    (void)size;
    return atomic_load_explicit(&words->request_head, memory_order_seq_cst) !=
               child->request_tail ||
           atomic_load_explicit(&words->is_leaving, memory_order_seq_cst) != 0;
}

static bool
has_room(const struct child *child, size_t size)
{
    uint64_t tail = atomic_load_explicit(&child->shared.words->answer_tail,
                                         memory_order_seq_cst);
    return child->answer_head + size - tail <= child->shared.answer_bytes;
}

/* -- Answering ----------------------------------------------------------------------------------- */

static void
wake_owner(struct child *child)
{
    struct lw_processes_words *words = child->shared.words;
    if (atomic_load_explicit(&words->owner_sleeps, memory_order_seq_cst) != 0 &&
        atomic_exchange_explicit(&words->owner_sleeps, 0, memory_order_seq_cst) != 0) {
        int failed = lw_processes_wake(child->wake);
        if (failed == EBADF || failed == ENOTSOCK) {
            break_off(closed_text); /* our end is seen, and what was answered counts */
        }
    }
}

static void
publish(struct child *child, size_t size)
{
    child->answer_head += size;
    (void)atomic_exchange_explicit(&child->shared.words->answer_head, child->answer_head,
                                   memory_order_seq_cst);
    wake_owner(child);
}

/* Hands a body over in memory of its own; 0 or an errno. */
static int
send_body(struct child *child, const struct lw_outcome *outcome, size_t size)
{
    struct lw_processes_note note = { .kind = LW_PROCESSES_ITEM, .serial = child->request.seq };
    unsigned char *body = lw_alloc(size);
    if (!body) {
        return ENOMEM;
    }
    lw_processes_answer_write(outcome, body);
    int fd = lw_processes_item_create(body, size);
    int failed = fd < 0 ? errno : lw_processes_send(child->socket, &note, sizeof note, &fd, 1);
    if (fd >= 0) {
        (void)close(fd);
    }
    lw_free(body);
    return failed;
}

/* What its handler said cannot be handed over: that is its answer then. */
static size_t
answer_instead(struct lw_processes_answer *answer, struct lw_outcome *outcome,
               enum lw_verdict verdict, size_t size, const char *why)
{
    char reason[LW_REASON_MAX];
    (void)snprintf(reason, sizeof reason, "what the handler answered, %zu bytes, %s", size,
                   why);
    lw_outcome_clear(outcome);
    lw_outcome_set_reason(outcome, reason, strlen(reason));
    answer->verdict = (uint16_t)verdict;
    return lw_processes_answer_measure(outcome);
}

/* The body's size, once it is clear how it goes. */
static size_t
prepare_body(struct child *child, struct lw_processes_answer *answer)
{
    struct lw_outcome *outcome = child->delivery.outcome;
    size_t size = lw_processes_answer_measure(outcome);
    size_t share = child->shared.answer_bytes / LW_PROCESSES_RING_SHARE;
    if (size + sizeof *answer <= share) {
        return size;
    }
    if (size > child->item_bytes_max) {
        return answer_instead(answer, outcome, LW_DEAD, size,
                              "is more than `item_max` lets pass");
    }
    int failed = send_body(child, outcome, size);
    if (failed) {
        return answer_instead(answer, outcome, LW_ERROR, size, strerrordesc_np(failed));
    }
    answer->flags |= LW_PROCESSES_IS_EXTERNAL;
    return size;
}

static void
answer(struct child *child, enum lw_verdict verdict, uint64_t began_at)
{
    const struct lw_outcome *outcome = child->delivery.outcome;
    struct lw_processes_answer head = { .verdict = (uint16_t)verdict,
                                        .seq = child->request.seq,
                                        .delay_ms = -1,
                                        .began_at = began_at,
                                        .ended_at = child->now };
    if (outcome) {
        head.body_size = prepare_body(child, &head);
        head.flags |= outcome->has_code ? LW_PROCESSES_HAS_CODE : 0;
        head.code = outcome->code;
        head.delay_ms = outcome->delay_ms;
        head.reason_size = (uint32_t)strlen(outcome->reason);
        head.output_count = outcome->output_count;
    }
    bool is_here = !(head.flags & LW_PROCESSES_IS_EXTERNAL);
    size_t size = lw_processes_round(sizeof head + (is_here ? (size_t)head.body_size : 0));
    head.size = (uint32_t)size;
    wait_for(child, has_room, size);
    unsigned char *out = child->shared.answers +
                         (child->answer_head & (child->shared.answer_bytes - 1));
    memcpy(out, &head, sizeof head);
    if (is_here && head.body_size > 0) {
        lw_processes_answer_write(outcome, out + sizeof head);
    }
    publish(child, size);
}

/* -- Running ------------------------------------------------------------------------------------- */

static struct lw_bytes
view(const unsigned char **at, bool is_there, size_t size)
{
    struct lw_bytes bytes = { is_there ? *at : NULL, size };
    *at += size;
    return bytes;
}

/* Makes the delivery one of this record. */
static void
open_request(struct child *child, const unsigned char *record)
{
    struct lw_processes_request *request = &child->request;
    struct lw_delivery *delivery = &child->delivery;
    struct lw_message *message = &delivery->message;
    memcpy(request, record, sizeof *request);
    const unsigned char *at = record + sizeof *request;
    child->context = &child->contexts[request->context % LW_PROCESSES_CONTEXTS];
    child->has_headers = request->header_count == 0;
    message->key = view(&at, request->flags & LW_PROCESSES_HAS_KEY, request->key_size);
    message->ordering_key = view(&at, request->flags & LW_PROCESSES_HAS_ORDERING_KEY,
                                 request->ordering_key_size);
    child->identity = at;
    at += request->identity_size + request->place_size;
    child->packed_headers = at;
    at += request->headers_size;
    message->value = view(&at, request->flags & LW_PROCESSES_HAS_VALUE,
                          (size_t)request->value_size);
    message->position = request->position;
    message->redeliveries = request->redeliveries;
    delivery->attempt = request->attempt;
    child->partition.topic = child->context->topic;
    child->partition.number = child->context->partition;
    child->subscription.topic = child->context->topic;
    child->subscription.name = child->context->subscription;
    child->subscription.pipeline = child->context->pipeline;
}

static void
run(struct child *child, const unsigned char *record)
{
    struct lw_delivery *delivery = &child->delivery;
    uint64_t began_at = child->now;
    open_request(child, record);
    delivery->started_at = began_at;
    delivery->deadline = lw_run_deadline(began_at, child->timeout_ms);
    if (delivery->outcome) {
        lw_outcome_clear(delivery->outcome);
    }
    atomic_store_explicit(&child->shared.words->started, child->request.seq,
                          memory_order_release);
    enum lw_verdict verdict = lw_run_judge(delivery, child->handler(delivery, child->user));
    child->now = lw_clock_monotonic_ns();
    answer(child, verdict, began_at);
}

static void
run_external(struct child *child)
{
    struct lw_processes_note note;
    int fd = -1;
    size_t fd_count = 0;
    ssize_t got = lw_processes_receive(child->socket, &note, sizeof note, &fd, 1, &fd_count);
    if (got <= 0) {
        leave(child);
    }
    struct lw_processes_request head;
    if (got != (ssize_t)sizeof note || fd_count != 1 ||
        pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head) {
        break_off("a large message did not come as announced");
    }
    void *item = mmap(NULL, head.size, PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (item == MAP_FAILED) {
        break_off("a large message cannot be mapped");
    }
    run(child, item);
    (void)munmap(item, head.size);
}

/* -- Contexts ------------------------------------------------------------------------------------ */

static void
keep_context(struct child *child, const unsigned char *record)
{
    struct lw_processes_context head;
    memcpy(&head, record, sizeof head);
    struct context *context = &child->contexts[head.place % LW_PROCESSES_CONTEXTS];
    size_t size = head.size - sizeof head;
    if (size > context->capacity) {
        char *grown = lw_resize_array(context->texts, size, 1);
        if (!grown) {
            break_off("out of memory");
        }
        context->texts = grown;
        context->capacity = size;
    }
    memcpy(context->texts, record + sizeof head, size);
    context->topic = context->texts;
    context->subscription = context->topic + head.topic_size + 1;
    context->pipeline = context->subscription + head.subscription_size + 1;
    context->prefix = context->pipeline + head.pipeline_size + 1;
    context->prefix_size = head.prefix_size;
    context->partition = head.partition;
}

/* -- The loop ------------------------------------------------------------------------------------ */

/* Works one record off; its bytes are given back. */
static void
work_off(struct child *child)
{
    const struct lw_processes_shared *shared = &child->shared;
    const unsigned char *record = shared->requests +
                                  (child->request_tail & (shared->request_bytes - 1));
    struct {
        uint32_t size;
        uint16_t kind;
    } head;
    memcpy(&head.size, record, sizeof head.size);
    memcpy(&head.kind, record + sizeof head.size, sizeof head.kind);
    if (head.kind == LW_PROCESSES_CONTEXT) {
        keep_context(child, record);
    } else if (head.kind == LW_PROCESSES_EXTERNAL) {
        run_external(child);
    } else {
        run(child, record);
    }
    child->request_tail += head.size;
    atomic_store_explicit(&shared->words->request_tail, child->request_tail,
                          memory_order_release);
}

_Noreturn static void
work(struct child *child)
{
    struct lw_processes_words *words = child->shared.words;
    for (;;) {
        wait_for(child, has_work, 0);
        child->now = lw_clock_monotonic_ns();
        uint64_t head = atomic_load_explicit(&words->request_head, memory_order_acquire);
        if (head == child->request_tail) {
            leave(child);
        }
        while (child->request_tail != head) {
            work_off(child);
        }
    }
}

/* -- Starting ------------------------------------------------------------------------------------ */

static void
init(struct child *child, const struct lw_processes_child_setup *setup)
{
    child->file = setup->file;
    child->wake = setup->fds[LW_PROCESSES_FD_WAKE];
    child->socket = setup->fds[LW_PROCESSES_FD_SOCKET];
    child->timeout_ms = setup->order.timeout_ms;
    child->item_bytes_max = (size_t)setup->order.item_bytes_max;
    child->broker.ops = &broker_ops;
    child->subscription.broker = &child->broker;
    child->subscription.view = &view_ops;
    child->partition.subscription = &child->subscription;
    child->delivery.subscription = &child->subscription;
    child->delivery.partition = &child->partition;
    child->delivery.state = LW_STATE_RUNNING;
    atomic_init(&child->delivery.serial, 1); /* claimed: nobody may finish it */
}

_Noreturn static void
refuse(struct child *child, const struct lw_error *error)
{
    struct lw_processes_note note = { .kind = LW_PROCESSES_REFUSED, .error = *error };
    (void)lw_processes_send(child->socket, &note, sizeof note, NULL, 0);
    exit(EXIT_REFUSED); /* NOLINT(concurrency-mt-unsafe): as in leave */
}

_Noreturn void
lw_processes_child_run(const struct lw_processes_child_setup *setup)
{
    struct child *child = &the_child;
    struct lw_error error = { 0 };
    struct lw_processes_note note = { .kind = LW_PROCESSES_READY };
    init(child, setup);
    int failed = lw_processes_shared_open(setup->fds[LW_PROCESSES_FD_MEMORY],
                                          (size_t)setup->order.ring_bytes, &child->shared);
    (void)close(setup->fds[LW_PROCESSES_FD_MEMORY]);
    if (failed) {
        break_off(strerrordesc_np(failed));
    }
    if (lw_plugin_file_open(child->file, &setup->plugin, &error) != LW_STATUS_OK) {
        refuse(child, &error);
    }
    child->handler = child->file->table.handle;
    child->has_function = setup->has_function;
    child->user = setup->has_function ? setup->user : child->file->user;
    if (lw_processes_send(child->socket, &note, sizeof note, NULL, 0) != 0) {
        leave(child);
    }
    work(child);
}
