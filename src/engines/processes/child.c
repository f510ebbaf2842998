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

struct child;

/* A message as its handler sees it. */
struct member {
    struct lw_delivery delivery;
    struct child *child;
    struct lw_processes_request request;
    const unsigned char *identity; /* of the request, behind its head */
    const unsigned char *packed_headers;
    struct lw_header *headers;
    size_t header_capacity;
    bool has_headers; /* unpacked */
    const struct context *context;
    struct context own; /* in a batch */
    struct lw_partition partition;
};

struct child {
    struct lw_processes_shared shared;
    struct lw_plugin_file *file;
    lw_handler_fn handler;
    lw_handler_batch_fn handler_batch;
    void *user;
    bool has_function;
    int wake; /* each wakes the other by it */
    int socket;
    uint64_t request_tail;
    uint64_t answer_head;
    size_t item_bytes_max;
    int64_t timeout_ms;
    uint64_t now; /* of the last look at the clock; a handler's begin is the end before */
    struct context contexts[LW_PROCESSES_CONTEXTS];
    struct member one;
    struct member **members; /* of a batch; they never move */
    struct lw_delivery **deliveries;
    enum lw_verdict *verdicts;
    uint32_t capacity;
    bool is_one;          /* the first verdict of a batch is that of all */
    bool has_one_verdict; /* for several messages: what is said of one would be said of all */
    struct lw_subscription subscription;
    struct lw_broker broker;
};

/* One per process; too large for a stack. */
static struct child the_child;

static const struct member *
member_of(const struct lw_delivery *delivery)
{
    return LW_CONTAINER_CONST(delivery, struct member, delivery);
}

/* -- What the handler sees ----------------------------------------------------------------------- */

static uint32_t
retries(const struct lw_delivery *delivery)
{
    return member_of(delivery)->request.retries;
}

static size_t
message_id(const struct lw_delivery *delivery, char *out, size_t size)
{
    const struct member *member = member_of(delivery);
    const struct lw_processes_request *request = &member->request;
    const unsigned char *place = member->identity + request->identity_size;
    const struct context *context = member->context;
    int length = 0;
    if (request->identity_size > 0) {
        length = snprintf(out, size, "%.*s", (int)request->identity_size, member->identity);
    } else if (request->place_size > 0) {
        length = snprintf(out, size, "%.*s%.*s", (int)context->prefix_size, context->prefix,
                          (int)request->place_size, place);
    } else {
        length = snprintf(out, size, "%.*s%lld", (int)context->prefix_size, context->prefix,
                          (long long)request->position);
    }
    return length > 0 ? (size_t)length : 0;
}

static bool
is_cancelled(const struct lw_delivery *delivery)
{
    const struct member *member = member_of(delivery);
    uint64_t cancelled = atomic_load_explicit(&member->child->shared.words->cancelled,
                                              memory_order_relaxed);
    return cancelled == member->request.seq || lw_delivery_deadline_ms(delivery) == 0;
}

static const struct lw_view_ops view_ops = {
    .retries = retries,
    .message_id = message_id,
    .now = lw_clock_monotonic_ns,
    .is_cancelled = is_cancelled,
};

static bool
reserve_headers(struct member *member, size_t count)
{
    if (count <= member->header_capacity) {
        return true;
    }
    struct lw_header *grown = lw_resize_array(member->headers, count, sizeof *grown);
    if (grown) {
        member->headers = grown;
        member->header_capacity = count;
    }
    return grown != NULL;
}

static void
unpack_headers(struct member *member)
{
    const unsigned char *at = member->packed_headers;
    for (uint32_t i = 0; i < member->request.header_count; i++) {
        uint32_t sizes[2];
        memcpy(sizes, at, sizeof sizes);
        at += sizeof sizes;
        bool has_value = sizes[1] != UINT32_MAX;
        member->headers[i].name = (struct lw_bytes){ at, sizes[0] };
        at += sizes[0];
        member->headers[i].value = (struct lw_bytes){ has_value ? at : NULL,
                                                      has_value ? sizes[1] : 0 };
        at += has_value ? sizes[1] : 0;
    }
    member->has_headers = true;
}

static struct member *
member_of_message(const struct lw_message *message)
{
    struct lw_message *own = (struct lw_message *)(uintptr_t)message; /* it is ours */
    return LW_CONTAINER(LW_CONTAINER(own, struct lw_delivery, message), struct member,
                        delivery);
}

static const struct lw_header *
headers(struct lw_broker *broker, const struct lw_message *message, size_t *ret_count)
{
    struct member *member = member_of_message(message);
    (void)broker;
    if (!member->has_headers && reserve_headers(member, member->request.header_count)) {
        unpack_headers(member);
    }
    *ret_count = member->has_headers ? member->request.header_count : 0;
    return member->headers;
}

static void
times(struct lw_broker *broker, const struct lw_message *message,
      struct lw_message_times *ret_times)
{
    const struct member *member = member_of_message(message);
    (void)broker;
    ret_times->timestamp_ms = member->request.timestamp_ms;
    ret_times->event_time_ms = member->request.event_time_ms;
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
send_body(struct child *child, uint64_t seq, const struct lw_outcome *outcome, size_t size)
{
    struct lw_processes_note note = { .kind = LW_PROCESSES_ITEM, .serial = seq };
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
prepare_body(struct child *child, struct lw_processes_answer *answer,
             struct lw_outcome *outcome)
{
    size_t size = lw_processes_answer_measure(outcome);
    size_t share = child->shared.answer_bytes / LW_PROCESSES_RING_SHARE;
    if (size + sizeof *answer <= share) {
        return size;
    }
    if (size > child->item_bytes_max) {
        return answer_instead(answer, outcome, child->has_one_verdict ? LW_ERROR : LW_DEAD,
                              size, "is more than `item_max` lets pass");
    }
    int failed = send_body(child, answer->seq, outcome, size);
    if (failed) {
        return answer_instead(answer, outcome, LW_ERROR, size, strerrordesc_np(failed));
    }
    answer->flags |= LW_PROCESSES_IS_EXTERNAL;
    return size;
}

/* `head` says what is true of the call and the verdict. */
static void
answer(struct child *child, struct lw_outcome *outcome, struct lw_processes_answer head)
{
    head.delay_ms = -1;
    if (outcome) {
        head.body_size = prepare_body(child, &head, outcome);
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

/* Makes the member one of what is behind the head of its record, read with that context. */
static void
open_request(struct member *member, const unsigned char *at, const struct context *context)
{
    const struct lw_processes_request *request = &member->request;
    struct lw_delivery *delivery = &member->delivery;
    struct lw_message *message = &delivery->message;
    member->context = context;
    member->has_headers = request->header_count == 0;
    message->key = view(&at, request->flags & LW_PROCESSES_HAS_KEY, request->key_size);
    message->ordering_key = view(&at, request->flags & LW_PROCESSES_HAS_ORDERING_KEY,
                                 request->ordering_key_size);
    member->identity = at;
    at += request->identity_size + request->place_size;
    member->packed_headers = at;
    at += request->headers_size;
    message->value = view(&at, request->flags & LW_PROCESSES_HAS_VALUE,
                          (size_t)request->value_size);
    message->position = request->position;
    message->redeliveries = request->redeliveries;
    delivery->attempt = request->attempt;
    member->partition.topic = context->topic;
    member->partition.number = context->partition;
    if (delivery->outcome) {
        lw_outcome_clear(delivery->outcome);
    }
}

static void
begin(struct child *child, struct member *member, uint64_t now)
{
    member->delivery.started_at = now;
    member->delivery.deadline = lw_run_deadline(now, child->timeout_ms);
}

/* From here on a death is that of these messages. The subscription is one for all of a call. */
static void
mark_started(struct child *child, const struct member *member)
{
    child->subscription.topic = member->context->topic;
    child->subscription.name = member->context->subscription;
    child->subscription.pipeline = member->context->pipeline;
    atomic_store_explicit(&child->shared.words->started, member->request.seq,
                          memory_order_release);
}

static void
run(struct child *child, const unsigned char *record)
{
    struct member *member = &child->one;
    struct lw_delivery *delivery = &member->delivery;
    struct lw_processes_request *head = &member->request;
    uint64_t began_at = child->now;
    memcpy(head, record, sizeof *head);
    open_request(member, record + sizeof *head,
                 &child->contexts[head->context % LW_PROCESSES_CONTEXTS]);
    begin(child, member, began_at);
    mark_started(child, member);
    child->has_one_verdict = false;
    enum lw_verdict verdict = lw_run_judge(delivery, child->handler(delivery, child->user));
    child->now = lw_clock_monotonic_ns();
    answer(child, delivery->outcome,
           (struct lw_processes_answer){ .verdict = (uint16_t)verdict,
                                         .seq = head->seq,
                                         .began_at = began_at,
                                         .ended_at = child->now });
}

/* -- Contexts ------------------------------------------------------------------------------------ */

/* What the texts behind its head say, where they lie. */
static void
read_context(const struct lw_processes_context *head, const char *texts,
             struct context *ret_context)
{
    ret_context->topic = texts;
    ret_context->subscription = ret_context->topic + head->topic_size + 1;
    ret_context->pipeline = ret_context->subscription + head->subscription_size + 1;
    ret_context->prefix = ret_context->pipeline + head->pipeline_size + 1;
    ret_context->prefix_size = head->prefix_size;
    ret_context->partition = head->partition;
}

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
    read_context(&head, context->texts, context);
}

/* -- Several messages ---------------------------------------------------------------------------- */

static void
init_member(struct child *child, struct member *member)
{
    member->child = child;
    member->partition.subscription = &child->subscription;
    member->delivery.subscription = &child->subscription;
    member->delivery.partition = &member->partition;
    member->delivery.state = LW_STATE_RUNNING;
    atomic_init(&member->delivery.serial, 1); /* claimed: nobody may finish it */
}

static bool
add_member(struct child *child)
{
    struct member *member = lw_alloc(sizeof *member);
    if (!member) {
        return false;
    }
    init_member(child, member);
    child->deliveries[child->capacity] = &member->delivery;
    child->members[child->capacity++] = member;
    return true;
}

static void
reserve_members(struct child *child, uint32_t count)
{
    if (count <= child->capacity) {
        return;
    }
    void *members = lw_resize_array(child->members, count, sizeof(struct member *));
    child->members = members ? members : child->members;
    void *deliveries = lw_resize_array(child->deliveries, count, sizeof(struct lw_delivery *));
    child->deliveries = deliveries ? deliveries : child->deliveries;
    void *verdicts = lw_resize_array(child->verdicts, count, sizeof *child->verdicts);
    child->verdicts = verdicts ? verdicts : child->verdicts;
    bool is_made = members && deliveries && verdicts;
    while (is_made && child->capacity < count) {
        is_made = add_member(child);
    }
    if (!is_made) {
        break_off("out of memory");
    }
}

/* The messages of a batch; their contexts lie in it, and are read where they lie. */
static void
open_batch(struct child *child, const unsigned char *record,
           const struct lw_processes_batch *batch)
{
    const unsigned char *at = record + sizeof *batch;
    struct context context = { .texts = NULL };
    for (uint32_t count = 0; count < batch->count;) {
        struct lw_processes_context head; /* not larger than a request, which begins so, too */
        memcpy(&head, at, sizeof head);
        if (head.kind == LW_PROCESSES_CONTEXT) {
            read_context(&head, (const char *)at + sizeof head, &context);
        } else {
            struct member *member = child->members[count];
            memcpy(&member->request, at, sizeof member->request);
            member->own = context;
            open_request(member, at + sizeof member->request, &member->own);
            begin(child, member, child->now);
            child->verdicts[count++] = LW_PENDING;
        }
        at += head.size;
    }
}

static uint16_t
judge_member(struct child *child, uint32_t i, size_t given)
{
    enum lw_verdict verdict = child->verdicts[i];
    bool is_asked = i == 0 || !child->is_one;
    bool has_one = is_asked && i < given && verdict != LW_PENDING;
    return (uint16_t)(has_one ? lw_run_judge(child->deliveries[i], verdict) : LW_PENDING);
}

static void
run_batch(struct child *child, const unsigned char *record)
{
    struct lw_processes_batch batch;
    uint64_t began_at = child->now;
    memcpy(&batch, record, sizeof batch);
    reserve_members(child, batch.count);
    open_batch(child, record, &batch);
    mark_started(child, child->members[0]);
    size_t given = child->handler_batch(child->deliveries, batch.count, child->verdicts,
                                        child->user);
    child->now = lw_clock_monotonic_ns();
    child->has_one_verdict = child->is_one && batch.count > 1;
    for (uint32_t i = 0; i < batch.count; i++) {
        struct lw_processes_answer head = {
            .verdict = judge_member(child, i, given),
            .seq = batch.seq,
            .began_at = began_at,
            .ended_at = child->now,
            .verdicts = given < UINT32_MAX ? (uint32_t)given : UINT32_MAX,
        };
        answer(child, child->deliveries[i]->outcome, head);
    }
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
    struct lw_processes_batch head; /* begins as a request does */
    if (got != (ssize_t)sizeof note || fd_count != 1 ||
        pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head) {
        break_off("a large message did not come as announced");
    }
    void *item = mmap(NULL, head.size, PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (item == MAP_FAILED) {
        break_off("a large message cannot be mapped");
    }
    if (head.kind == LW_PROCESSES_BATCH) {
        run_batch(child, item);
    } else {
        run(child, item);
    }
    (void)munmap(item, head.size);
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
    } else if (head.kind == LW_PROCESSES_BATCH) {
        run_batch(child, record);
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
    child->is_one = setup->order.is_one != 0;
    child->broker.ops = &broker_ops;
    child->subscription.broker = &child->broker;
    child->subscription.view = &view_ops;
    init_member(child, &child->one);
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
    child->handler_batch = child->file->table.handle_batch;
    child->has_function = setup->has_function;
    child->user = setup->has_function ? setup->user : child->file->user;
    if (lw_processes_send(child->socket, &note, sizeof note, NULL, 0) != 0) {
        leave(child);
    }
    work(child);
}
