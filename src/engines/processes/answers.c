/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking answers back. Everything here reads what a worker wrote, who may be hostile or broken:
 * its place is held against ours, a record's head is copied once and checked, a body is copied
 * before it is looked at, and an answer must be that of the oldest open message. Memory of its own
 * is taken only when it is sealed and of the size that was said, and read, never mapped.
 */
#include "engines/processes/processes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "engines/processes/answer.h"

enum { AGAIN_AFTER_MS = 1000, NOTES_AT_ONCE = 16 };

static struct lw_host *
host_of(const struct lw_processes_worker *worker)
{
    return worker->owner->engine.host;
}

/* What came too late stays so: its attempt was charged as the timeout when the kill was sent. */
static bool
is_believed(const struct lw_processes_worker *worker)
{
    return worker->state == LW_PROCESSES_TAKING || worker->state == LW_PROCESSES_LEAVING ||
           (worker->state == LW_PROCESSES_ENDING && worker->end.was_ready &&
            worker->end.cause != LW_PROCESSES_BY_BREACH &&
            worker->end.cause != LW_PROCESSES_BY_TIMEOUT);
}

/* -- Notes over the socket ------------------------------------------------------------------------- */

/* One note, and the descriptor that came along, lost or -1; false when there is none now. */
static bool
receive_note(struct lw_processes_worker *worker, struct lw_processes_note *ret_note,
             int *ret_fd)
{
    size_t fd_count = 0;
    *ret_fd = -1;
    ssize_t got = lw_processes_receive(worker->socket, ret_note, sizeof *ret_note, ret_fd, 1,
                                       &fd_count);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (got <= 0) {
        lw_processes_worker_on_closed(worker);
        return false;
    }
    if (got != (ssize_t)sizeof *ret_note) {
        ret_note->kind = UINT32_MAX; /* none that may be said */
    }
    return true;
}

/* The later one becomes the next when there is none. */
static void
move_item_up(struct lw_processes_worker *worker)
{
    if (worker->item_fd == -1) {
        worker->item_fd = worker->later_fd;
        worker->item_number = worker->later_number;
        worker->later_fd = -1;
    }
}

/*
 * Keeps memory that came before its answer; false when it is none, or two are kept already: behind
 * one whose answer is published, but not read yet, there may be the next.
 */
static bool
keep_item(struct lw_processes_worker *worker, const struct lw_processes_note *note, int fd)
{
    if (note->kind != LW_PROCESSES_ITEM || fd == -1 || worker->later_fd != -1) {
        return false;
    }
    worker->later_fd = fd;
    worker->later_number = note->serial;
    move_item_up(worker);
    return true;
}

static void
refuse_note(struct lw_processes_worker *worker, int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
    lw_processes_worker_breach(worker, "it said what it must not say now");
}

static void
on_refused(struct lw_processes_worker *worker, struct lw_processes_note *note)
{
    note->error.message[sizeof note->error.message - 1] = '\0';
    note->error.help[sizeof note->error.help - 1] = '\0';
    note->error.code[sizeof note->error.code - 1] = '\0';
    worker->refusal = note->error;
    lw_processes_worker_end(worker, LW_PROCESSES_BY_START, 0, "it refused to start");
}

/* What it says of itself; false when that may not be said now. */
static bool
take_word(struct lw_processes_worker *worker, struct lw_processes_note *note)
{
    bool is_ready = note->kind == LW_PROCESSES_READY;
    if (!is_ready && note->kind != LW_PROCESSES_REFUSED) {
        return false;
    }
    if (worker->state != LW_PROCESSES_STARTING || worker->is_over) {
        return worker->state == LW_PROCESSES_ENDING || worker->is_over;
    }
    if (is_ready) {
        lw_processes_on_ready(worker);
    } else {
        on_refused(worker, note);
    }
    return true;
}

/* A few at once: a worker that only talks must not keep us from everything else. */
void
lw_processes_worker_on_socket(struct lw_processes_worker *worker)
{
    struct lw_processes_note note;
    int fd = -1;
    for (int i = 0; i < NOTES_AT_ONCE && worker->state != LW_PROCESSES_IDLE; i++) {
        if (!receive_note(worker, &note, &fd)) {
            break;
        }
        bool is_taken = fd != -1 ? keep_item(worker, &note, fd) : take_word(worker, &note);
        if (is_taken && worker->later_fd != -1) {
            /* The answer of the one before was published before this one was sent. */
            (void)lw_processes_worker_drain(worker);
            move_item_up(worker);
            is_taken = worker->later_fd == -1 || !is_believed(worker);
            fd = -1; /* kept either way */
        }
        if (!is_taken) {
            refuse_note(worker, fd);
            break;
        }
    }
    lw_processes_worker_look_for_end(worker);
    lw_processes_go_on(worker->owner);
}

/* -- Bodies ---------------------------------------------------------------------------------------- */

static bool
read_all(int fd, unsigned char *out, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(fd, out + done, size - done, (off_t)done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

static bool
has_item(struct lw_processes_worker *worker, uint64_t number)
{
    struct lw_processes_note note;
    int fd = -1;
    move_item_up(worker);
    if (worker->item_fd == -1 && receive_note(worker, &note, &fd) &&
        !keep_item(worker, &note, fd)) {
        refuse_note(worker, fd);
    }
    return worker->item_fd != -1 && worker->item_number == number;
}

static enum lw_processes_read
read_item(struct lw_processes_worker *worker, const struct lw_processes_answer *head,
          unsigned char *body)
{
    int fd = worker->item_fd;
    worker->item_fd = -1;
    if (fd == LW_PROCESSES_FD_LOST) {
        return LW_PROCESSES_READ_NO_MEMORY;
    }
    bool is_read = lw_processes_item_is_sound(fd, (size_t)head->body_size) &&
                   read_all(fd, body, (size_t)head->body_size);
    (void)close(fd);
    return is_read ? LW_PROCESSES_READ_OK : LW_PROCESSES_READ_BROKEN;
}

static enum lw_processes_read
read_body(struct lw_processes_worker *worker, const struct lw_processes_answer *head,
          const unsigned char *in_ring, struct lw_delivery *delivery)
{
    bool is_item = head->flags & LW_PROCESSES_IS_EXTERNAL;
    if (is_item && !has_item(worker, head->seq)) {
        return LW_PROCESSES_READ_BROKEN;
    }
    unsigned char *body = lw_alloc((size_t)head->body_size);
    if (!body) {
        return LW_PROCESSES_READ_NO_MEMORY;
    }
    enum lw_processes_read read = LW_PROCESSES_READ_OK;
    if (is_item) {
        read = read_item(worker, head, body);
    } else {
        lw_processes_copy_once(body, in_ring, (size_t)head->body_size);
    }
    if (read == LW_PROCESSES_READ_OK) {
        read = lw_processes_answer_read(head, body, delivery);
    }
    lw_free(body);
    return read;
}

/* -- Answers --------------------------------------------------------------------------------------- */

/* The head of the next record, checked; false: it is against the rules. */
static bool
read_head(const struct lw_processes_worker *worker, uint64_t available,
          struct lw_processes_answer *ret_head, const unsigned char **ret_body)
{
    const struct lw_processes_shared *shared = &worker->shared;
    const unsigned char *at = shared->answers +
                              (worker->answer_tail & (shared->answer_bytes - 1));
    if (available < sizeof *ret_head) {
        return false;
    }
    lw_processes_copy_once(ret_head, at, sizeof *ret_head);
    /* Members of a batch may have none. */
    unsigned verdict_max = worker->owner->engine.batch.size > 0 ? LW_PENDING : LW_ERROR;
    bool is_item = ret_head->flags & LW_PROCESSES_IS_EXTERNAL;
    uint64_t body_max = is_item ? worker->owner->options.tune.item_bytes_max
                                : ret_head->size - sizeof *ret_head;
    *ret_body = at + sizeof *ret_head;
    return ret_head->size >= sizeof *ret_head && ret_head->size % 8 == 0 &&
           ret_head->size <= available && ret_head->body_size <= body_max &&
           ret_head->seq == worker->first && worker->first < worker->published_next &&
           ret_head->verdict <= verdict_max;
}

static void
take_times(struct lw_processes_worker *worker, const struct lw_processes_answer *head)
{
    struct lw_processes *processes = worker->owner;
    struct lw_processes_figures *figures = &processes->figures;
    uint64_t execution = head->ended_at - head->began_at;
    execution = head->ended_at < head->began_at ? 0 : execution;
    processes->execution_ns = processes->execution_ns == 0
                                  ? execution + 1
                                  : (processes->execution_ns * 7 + execution + 1) / 8;
    if (head->seq != worker->probe) {
        return;
    }
    uint64_t now = host_of(worker)->ops->refresh(host_of(worker));
    worker->probe = 0;
    if (head->began_at >= worker->probe_published_at && now >= head->ended_at &&
        head->ended_at >= head->began_at) {
        figures->timed++;
        figures->last_handover_ns = head->began_at - worker->probe_published_at;
        figures->last_execution_ns = execution;
        figures->last_return_ns = now - head->ended_at;
        figures->handover_ns += figures->last_handover_ns;
        figures->execution_ns += figures->last_execution_ns;
        figures->return_ns += figures->last_return_ns;
    }
}

/* What it said is lost for lack of memory or descriptors, which is nobody's fault: it runs again. */
static void
put_off(struct lw_delivery *delivery)
{
    static const char reason[] = "there was no room for what the handler answered";
    struct lw_outcome *outcome = lw_delivery_outcome(delivery);
    delivery->verdict = LW_RETRY;
    if (outcome) {
        lw_outcome_clear(outcome);
        lw_outcome_set_reason(outcome, reason, sizeof reason - 1);
        outcome->is_uncharged = true;
        outcome->delay_ms = AGAIN_AFTER_MS;
    }
}

/* What is said beside the verdict; false: against the form. */
static bool
take_outcome(struct lw_processes_worker *worker, const struct lw_processes_answer *head,
             const unsigned char *in_ring, struct lw_delivery *delivery)
{
    bool says_more = head->body_size > 0 || head->output_count > 0 || head->reason_size > 0 ||
                     head->delay_ms >= 0 || (head->flags & LW_PROCESSES_HAS_CODE);
    enum lw_processes_read read = LW_PROCESSES_READ_OK;
    if (says_more) {
        read = read_body(worker, head, in_ring, delivery);
    }
    if (read == LW_PROCESSES_READ_BROKEN && delivery->outcome) {
        lw_outcome_clear(delivery->outcome); /* it runs again: half an answer must not stay */
    } else if (read == LW_PROCESSES_READ_NO_MEMORY) {
        put_off(delivery);
    }
    return read != LW_PROCESSES_READ_BROKEN;
}

/* Of one verdict for all: what a member said cannot be kept, so it was not said of any. */
static void
take_back(struct lw_delivery *first)
{
    static const char reason[] =
        "what the handler said of a message of the batch cannot be kept";
    struct lw_outcome *outcome = lw_delivery_outcome(first);
    if (outcome) {
        lw_outcome_clear(outcome);
        lw_outcome_set_reason(outcome, reason, sizeof reason - 1);
    }
    first->verdict = LW_ERROR;
}

/* One answer of a batch; true: it was the last one. */
static bool
take_member(struct lw_processes_worker *worker, const struct lw_processes_answer *head,
            struct lw_delivery *first, struct lw_delivery *member)
{
    if (member == first) {
        first->task_answers = head->verdicts;
        first->is_each = worker->owner->engine.batch.verdict == LW_BATCH_VERDICT_EACH;
    } else if (!first->is_each && member->verdict != LW_PENDING) {
        take_back(first);
    }
    worker->unanswered = member->task_next;
    return worker->unanswered == NULL;
}

/* Takes the next record; false when it is against the rules. */
static bool
take_answer(struct lw_processes_worker *worker, uint64_t available)
{
    struct lw_processes_answer head;
    const unsigned char *body = NULL;
    if (!read_head(worker, available, &head, &body)) {
        return false;
    }
    struct lw_delivery *first = *lw_processes_open_at(worker, worker->first);
    struct lw_delivery *delivery = worker->unanswered ? worker->unanswered : first;
    delivery->verdict = (uint8_t)head.verdict;
    if (!take_outcome(worker, &head, body, delivery)) {
        return false;
    }
    take_times(worker, &head);
    worker->answer_tail += head.size;
    if (first->is_batch && !take_member(worker, &head, first, delivery)) {
        return true;
    }
    worker->first++;
    worker->answered++;
    first->engine_data = NULL;
    lw_engine_done(&worker->owner->engine, first);
    return true;
}

/* After answers were taken: room for more of them, the clock of the next message. */
static void
give_room_back(struct lw_processes_worker *worker, uint32_t count)
{
    struct lw_processes_words *words = worker->shared.words;
    (void)atomic_exchange_explicit(&words->answer_tail, worker->answer_tail,
                                   memory_order_seq_cst);
    /* A worker that sleeps while it still has requests waits for room. */
    if (worker->first < worker->published_next &&
        atomic_load_explicit(&words->worker_sleeps, memory_order_seq_cst) != 0) {
        (void)lw_processes_wake(worker->wake);
    }
    worker->front_since = host_of(worker)->now;
    worker->owner->good_answers += count;
    if (worker->first < worker->published_next) {
        const struct lw_delivery *front = *lw_processes_open_at(worker, worker->first);
        if (lw_processes_is_cancelled(front)) {
            atomic_store_explicit(&words->cancelled, worker->first, memory_order_relaxed);
        }
        lw_processes_worker_watch_clock(worker);
    }
}

uint32_t
lw_processes_worker_drain(struct lw_processes_worker *worker)
{
    uint32_t count = 0;
    if (!worker->shared.words || !is_believed(worker)) {
        return 0;
    }
    uint64_t head = atomic_load_explicit(&worker->shared.words->answer_head,
                                         memory_order_acquire);
    if (head - worker->answer_tail > worker->shared.answer_bytes) {
        lw_processes_worker_breach(worker, "its place among the answers is impossible");
        return 0;
    }
    while (worker->answer_tail != head) {
        if (!take_answer(worker, head - worker->answer_tail)) {
            lw_processes_worker_breach(worker, "its answer is against the form");
            break;
        }
        count++;
    }
    if (count > 0) {
        give_room_back(worker, count);
        lw_processes_on_drained(worker);
    }
    return count;
}

bool
lw_processes_worker_fall_asleep(struct lw_processes_worker *worker)
{
    struct lw_processes_words *words = worker->shared.words;
    if (worker->is_owner_asleep || !words || worker->first >= worker->published_next) {
        return false;
    }
    worker->is_owner_asleep = true;
    (void)atomic_exchange_explicit(&words->owner_sleeps, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&words->answer_head, memory_order_seq_cst) ==
        worker->answer_tail) {
        return false;
    }
    atomic_store_explicit(&words->owner_sleeps, 0, memory_order_relaxed);
    worker->is_owner_asleep = false;
    return true;
}
