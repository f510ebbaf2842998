/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's turn: take, write, read, answer, wait. A transaction that fails is undone; its
 * publications are refused (the dispatcher sends them again), its verdicts stay. What makes room
 * (verdicts, deleting) is written alone at once, since a full disk must not keep it back, then
 * with growing pauses. Acknowledgements alone wait SETTLE_MS for company: a crash delivers those
 * again, which it may. What only a crash would want to know (how far was received, what was taken
 * again) waits for the next transaction, or LAZY_MS.
 */
#include "brokers/spool/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/error.h"
#include "brokers/spool/client.h"
#include "brokers/spool/remote.h"
#include "brokers/spool/server.h"

enum {
    LAZY_MS = 200,
    SETTLE_MS = 10,
    SETTLE_WORTH = 2048,
    RETRY_MS = 100,
    RETRY_MAX_MS = 5000,
    QUIET_MS = 10000, /* more than the pause before a publication is sent again */
    TRIM_WORTH = 256,
    TRIM_SHARE = 1024,
    TRIM_IDLE_MS = 1000,
    RETENTION_MS = 30000,
    CLOSING_MS = 3000,
    REACH_TURNS = 50,
    REACH_PAUSE_MS = 25 /* more than whoever starts pauses, or it would not get the file */
};

struct part {
    uint32_t first;
    uint32_t count;
};

struct lw_spool_worker {
    pthread_t thread;
    struct lw_mailbox mailbox;
    int wake_fd;
    struct lw_host *host; /* for posting only */
    struct lw_spool_store *store;
    struct lw_spool_client client; /* without a store */
    const char *path;
    const struct lw_spool_options *file_options;
    struct lw_spool_server *server;
    void (*on_notice)(struct lw_letter *letter);
    void *user;
    struct lw_list batches; /* publications for the next commit */
    struct lw_list asking;  /* fetches that wait */
    struct lw_spool_command *close;
    uint64_t now; /* ns */
    int64_t now_ms;
    uint64_t lazy_at;   /* NEVER: nothing is to be written */
    uint64_t settle_at; /* acknowledgements have waited long enough; NEVER: none waits */
    uint64_t retry_at;  /* after a failure: not before */
    uint64_t retry_ms;
    uint64_t trim_at;      /* the settled few are looked at then; NEVER */
    uint64_t retention_at; /* if there is one */
    uint64_t read_at;      /* a read failed: not before */
    uint64_t commits;
    uint64_t refused_at; /* the last refusal of publications */
    bool is_refusing;    /* and none was taken since */
    struct part part;    /* of what waits in batches, in their order */
    bool is_down;
    bool is_unknown;           /* the last failure was that of a commit */
    _Atomic(uint64_t) ends_at; /* CLOSE was posted: no answer of an owner is awaited longer */
};

/* -- Going back ---------------------------------------------------------------------------------- */

void
lw_spool_command_init(struct lw_spool_command *command, enum lw_spool_command_kind kind,
                      void (*on_return)(struct lw_letter *letter))
{
    lw_mail_init(&command->mail);
    lw_letter_init(&command->letter, on_return);
    lw_list_init(&command->link);
    command->kind = kind;
    command->count = 0;
}

static void
give_back(struct lw_spool_worker *worker, struct lw_spool_command *command)
{
    lw_list_remove(&command->link);
    bool is_posted = lw_host_post(worker->host, &command->letter);
    lw_assert(is_posted);
}

/* Lack of memory makes it a matter of the next failure or success. */
static void
notify(struct lw_spool_worker *worker, bool is_down, const struct lw_error *error)
{
    if (worker->is_down == is_down) {
        return;
    }
    struct lw_spool_notice *notice = lw_alloc(sizeof *notice);
    if (!notice) {
        return;
    }
    worker->is_down = is_down;
    lw_letter_init(&notice->letter, worker->on_notice);
    notice->user = worker->user;
    notice->is_down = is_down;
    notice->error = *error;
    (void)lw_host_post(worker->host, &notice->letter);
}

/* Up again only once publications are taken, or nobody tried for a while. */
static void
note_refusal(struct lw_spool_worker *worker)
{
    worker->is_refusing = true;
    worker->refused_at = worker->now;
}

/* -- Taking -------------------------------------------------------------------------------------- */

static void
take_settling(struct lw_spool_worker *worker, struct lw_spool_settling *settling)
{
    for (uint32_t i = 0; i < settling->command.count; i++) {
        const struct lw_spool_verdict *item = &settling->items[i];
        int64_t delay_ms = item->delay_ms >= 0 ? item->delay_ms
                                               : worker->store->options.redelivery_ms;
        lw_spool_judge(worker->store, item->out, item->is_ack, worker->now_ms + delay_ms);
    }
    give_back(worker, &settling->command);
}

static void
take_asking(struct lw_spool_worker *worker, struct lw_spool_asking *asking)
{
    lw_spool_note_seen(worker->store, asking->position, asking->seen);
    lw_list_push(&worker->asking, &asking->command.link);
}

static void
take_counting(struct lw_spool_worker *worker, struct lw_spool_counting *counting)
{
    counting->waiting = lw_spool_fetch_waiting(counting->position);
    give_back(worker, &counting->command);
}

static void
take_command(struct lw_spool_worker *worker, struct lw_spool_command *command)
{
    switch (command->kind) {
    case LW_SPOOL_COMMAND_PUBLISH: {
        struct lw_spool_publishing *own = LW_CONTAINER(command, struct lw_spool_publishing,
                                                       command);
        own->batch = (struct lw_spool_batch){ .items = own->items,
                                              .count = command->count,
                                              .is_own = true };
        lw_list_push(&worker->batches, &own->batch.link);
        return;
    }
    case LW_SPOOL_COMMAND_SETTLE:
        take_settling(worker, LW_CONTAINER(command, struct lw_spool_settling, command));
        return;
    case LW_SPOOL_COMMAND_FETCH:
        take_asking(worker, LW_CONTAINER(command, struct lw_spool_asking, command));
        return;
    case LW_SPOOL_COMMAND_COUNT:
        take_counting(worker, LW_CONTAINER(command, struct lw_spool_counting, command));
        return;
    case LW_SPOOL_COMMAND_CLOSE:
        worker->close = command;
        return;
    }
}

static void
take(struct lw_spool_worker *worker)
{
    struct lw_mail *mail = lw_mailbox_take(&worker->mailbox);
    while (mail) {
        struct lw_spool_command *command = LW_CONTAINER(mail, struct lw_spool_command, mail);
        mail = mail->next;
        lw_mail_open(&command->mail);
        take_command(worker, command);
    }
}

/* -- Writing ------------------------------------------------------------------------------------- */

/* Topics are made before the transaction, each in one of its own. */
static void
find_topic(struct lw_spool_worker *worker, struct lw_spool_item *item)
{
    const char *name = item->publication->topic;
    item->status = LW_STATUS_OK;
    item->topic = lw_spool_find_topic(worker->store, name);
    if (item->topic) {
        return;
    }
    if (!lw_spool_is_topic(name)) {
        item->status = LW_STATUS_INVALID;
        return;
    }
    if (!worker->is_refusing) { /* in this turn; the next one would fail alike */
        item->topic = lw_spool_make_topic(worker->store, name, 0, -1);
    }
    if (!item->topic) {
        item->status = LW_STATUS_UNAVAILABLE;
        note_refusal(worker);
        notify(worker, true, &worker->store->error);
    }
}

typedef bool (*item_fn)(struct lw_spool_worker *worker, struct lw_spool_item *item);

/* Of those of worker->part. */
static bool
each_item(struct lw_spool_worker *worker, item_fn fn)
{
    bool is_good = true;
    uint32_t at = 0;
    struct lw_list *head = &worker->batches;
    for (struct lw_list *node = head->next; is_good && node != head; node = node->next) {
        struct lw_spool_batch *batch = LW_CONTAINER(node, struct lw_spool_batch, link);
        for (uint32_t i = 0; is_good && i < batch->count; i++, at++) {
            bool is_in = at >= worker->part.first &&
                         at - worker->part.first < worker->part.count;
            is_good = !is_in || fn(worker, &batch->items[i]);
        }
    }
    return is_good;
}

static bool
prepare_item(struct lw_spool_worker *worker, struct lw_spool_item *item)
{
    find_topic(worker, item);
    return true;
}

static bool
append_item(struct lw_spool_worker *worker, struct lw_spool_item *item)
{
    if (item->status != LW_STATUS_OK) {
        return true;
    }
    enum lw_status status = lw_spool_append(worker->store, item->topic, item->publication,
                                            worker->now_ms);
    bool is_written = status != LW_STATUS_SYSTEM;
    item->status = status == LW_STATUS_NO_MEMORY || !is_written ? LW_STATUS_UNAVAILABLE
                                                                : status;
    return is_written;
}

static bool
refuse_item(struct lw_spool_worker *worker, struct lw_spool_item *item)
{
    if (item->status == LW_STATUS_OK || item->status == LW_STATUS_UNAVAILABLE) {
        item->status = worker->is_unknown ? LW_STATUS_UNKNOWN : LW_STATUS_UNAVAILABLE;
    }
    return true;
}

static bool
is_trim_due(const struct lw_spool_worker *worker)
{
    return worker->store->worn_count >= TRIM_WORTH || worker->trim_at <= worker->now;
}

/* As much as is settled meanwhile, or the file would grow for as long as there is work. */
static bool
trim(struct lw_spool_worker *worker)
{
    bool is_good = true;
    uint64_t steps = is_trim_due(worker) ? 1 + worker->store->judged_count / TRIM_SHARE : 0;
    for (; is_good && steps > 0 && lw_spool_has_worn(worker->store); steps--) {
        is_good = lw_spool_trim(worker->store, worker->now_ms);
    }
    return is_good;
}

/* One transaction; nothing is changed when it fails. What is deleted makes room for the rest. */
static bool
write_all(struct lw_spool_worker *worker, bool has_items)
{
    struct lw_spool_store *store = worker->store;
    worker->is_unknown = false;
    bool is_good = lw_spool_begin(store) && trim(worker) &&
                   (!has_items || each_item(worker, append_item)) &&
                   lw_spool_settle_write(store) && lw_spool_log_write(store);
    if (is_good && !lw_spool_commit(store)) {
        is_good = false;
        worker->is_unknown = store->error.status != LW_STATUS_UNAVAILABLE; /* it had no room */
    }
    if (!is_good) {
        lw_spool_rollback(store);
        lw_spool_log_revert(store);
        lw_spool_wear(store);
        return false;
    }
    worker->commits++;
    lw_spool_log_apply(store);
    lw_spool_settle_apply(store);
    return true;
}

/* Receipts of the loop's go back; those of guests are answered by the server. */
static void
give_receipts(struct lw_spool_worker *worker)
{
    struct lw_list *node;
    while ((node = lw_list_pop(&worker->batches)) != NULL) {
        struct lw_spool_batch *batch = LW_CONTAINER(node, struct lw_spool_batch, link);
        if (batch->is_own) {
            give_back(worker, &LW_CONTAINER(batch, struct lw_spool_publishing, batch)->command);
        }
    }
}

static void
on_written(struct lw_spool_worker *worker)
{
    bool was_trimmed = is_trim_due(worker);
    worker->lazy_at = LW_NEVER;
    worker->settle_at = LW_NEVER;
    worker->retry_ms = RETRY_MS;
    worker->retry_at = 0;
    if (!lw_spool_has_worn(worker->store)) {
        worker->trim_at = LW_NEVER;
    } else if (was_trimmed) {
        worker->trim_at = worker->now; /* there is more of it */
    } else if (worker->trim_at == LW_NEVER) {
        worker->trim_at = worker->now + TRIM_IDLE_MS * LW_MS;
    }
    if (!worker->is_refusing || worker->now - worker->refused_at > QUIET_MS * LW_MS) {
        worker->is_refusing = false;
        notify(worker, false, &worker->store->error);
    }
}

static void
on_failed(struct lw_spool_worker *worker)
{
    worker->retry_at = worker->now + worker->retry_ms * LW_MS;
    worker->retry_ms = worker->retry_ms * 2 < RETRY_MAX_MS ? worker->retry_ms * 2
                                                           : RETRY_MAX_MS;
    notify(worker, true, &worker->store->error);
    if (worker->store->error.status == LW_STATUS_UNAVAILABLE) {
        lw_spool_checkpoint(worker->store); /* on a full disk the log cannot grow either */
    }
}

/* Publishers that try again and again must not put off what they wait for. */
static void
make_room(struct lw_spool_worker *worker)
{
    worker->trim_at = worker->now;
    if (write_all(worker, false)) {
        worker->retry_at = 0;
    }
}

/* True when the last transaction failed for want of room, and surely. */
static bool
had_no_room(const struct lw_spool_worker *worker)
{
    return !worker->is_unknown && worker->store->error.status == LW_STATUS_UNAVAILABLE;
}

/*
 * Everything that came at once found no room: as much of it as fits is taken, in parts that are
 * halved until they do, or many large ones would be refused together for ever.
 */
static void
write_apart(struct lw_spool_worker *worker)
{
    uint32_t total = 0;
    uint32_t at = 0;
    struct lw_list *head = &worker->batches;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        total += LW_CONTAINER(node, struct lw_spool_batch, link)->count;
    }
    for (uint32_t size = total / 2; at < total && size > 0;) {
        worker->part = (struct part){ at, size };
        (void)each_item(worker, prepare_item);
        if (write_all(worker, true)) {
            on_written(worker);
            at += size;
        } else {
            (void)each_item(worker, refuse_item);
            size = had_no_room(worker) ? size / 2 : 0;
        }
    }
    worker->part = (struct part){ 0, UINT32_MAX };
}

/* True when a transaction is worth its commit now. */
static bool
is_due(struct lw_spool_worker *worker, bool has_items)
{
    struct lw_spool_store *store = worker->store;
    bool is_ripe = store->returned_count > 0 || store->judged_count >= SETTLE_WORTH ||
                   worker->settle_at <= worker->now || worker->lazy_at <= worker->now ||
                   worker->trim_at <= worker->now;
    return has_items || worker->close || (is_ripe && worker->retry_at <= worker->now);
}

static void
write_turn(struct lw_spool_worker *worker)
{
    struct lw_spool_store *store = worker->store;
    bool has_items = !lw_list_is_empty(&worker->batches);
    if (store->has_retention && worker->retention_at <= worker->now) {
        worker->retention_at = worker->now + RETENTION_MS * LW_MS;
        lw_spool_wear(store);
        worker->trim_at = worker->now;
    }
    if (!lw_list_is_empty(&store->dirty_positions) && worker->lazy_at == LW_NEVER) {
        worker->lazy_at = worker->now + LAZY_MS * LW_MS;
    }
    if (store->judged_count > 0 && worker->settle_at == LW_NEVER) {
        worker->settle_at = worker->now + SETTLE_MS * LW_MS;
    }
    if (!is_due(worker, has_items)) {
        return;
    }
    if (has_items) {
        worker->is_refusing = false;
        (void)each_item(worker, prepare_item);
    }
    if (write_all(worker, has_items)) {
        on_written(worker);
    } else {
        bool is_apart = has_items && had_no_room(worker);
        (void)each_item(worker, refuse_item);
        on_failed(worker);
        if (has_items) {
            note_refusal(worker);
            make_room(worker);
        }
        if (is_apart) {
            write_apart(worker);
        }
    }
    give_receipts(worker);
}

/* -- Reading ------------------------------------------------------------------------------------- */

static void
read_one(struct lw_spool_worker *worker, struct lw_spool_asking *asking)
{
    bool is_failed = false;
    if (!lw_spool_fetch_is_due(asking->position, worker->now_ms)) {
        return;
    }
    worker->store->error.status = LW_STATUS_OK; /* not one of long ago */
    bool has_some = lw_spool_fetch_read(worker->store, asking->position, &asking->fetch,
                                        worker->now_ms, &is_failed);
    if (has_some) {
        give_back(worker, &asking->command);
    } else if (is_failed) {
        worker->read_at = worker->now + RETRY_MS * LW_MS;
        if (worker->store->error.status != LW_STATUS_OK) {
            notify(worker, true, &worker->store->error);
        }
    }
}

static void
read_turn(struct lw_spool_worker *worker)
{
    struct lw_list *head = &worker->asking;
    if (worker->read_at > worker->now) {
        return;
    }
    worker->read_at = 0;
    for (struct lw_list *node = head->next; node != head;) {
        struct lw_spool_command *command = LW_CONTAINER(node, struct lw_spool_command, link);
        node = node->next;
        read_one(worker, LW_CONTAINER(command, struct lw_spool_asking, command));
    }
}

/* -- Waiting ------------------------------------------------------------------------------------- */

static uint64_t
earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* When something is due by itself. */
static uint64_t
next_due(const struct lw_spool_worker *worker)
{
    const struct lw_spool_store *store = worker->store;
    uint64_t due = lw_spool_server_due(worker->server);
    due = store->has_retention ? earlier(due, worker->retention_at) : due;
    uint64_t writing = earlier(worker->lazy_at, worker->trim_at);
    writing = earlier(writing, worker->settle_at);
    writing = store->returned_count > 0 ? worker->now : writing;
    due = earlier(due, writing > worker->retry_at ? writing
                       : worker->retry_at > 0     ? worker->retry_at
                                                  : writing);
    const struct lw_list *head = &worker->asking;
    for (const struct lw_list *node = head->next; node != head; node = node->next) {
        const struct lw_spool_command *command = LW_CONTAINER_CONST(
            node, struct lw_spool_command, link);
        const struct lw_spool_position *position =
            LW_CONTAINER_CONST(command, struct lw_spool_asking, command)->position;
        if (lw_spool_fetch_is_due(position, worker->now_ms)) {
            due = earlier(due, worker->read_at > worker->now ? worker->read_at : worker->now);
        } else if (position->due_ms != LW_SPOOL_NEVER_MS) {
            due = earlier(due,
                          worker->now + (uint64_t)(position->due_ms - worker->now_ms) * LW_MS);
        }
    }
    return due;
}

static int
timeout_until(uint64_t due, uint64_t now)
{
    uint64_t wait_ms = due > now ? (due - now + LW_MS - 1) / LW_MS : 0;
    return due == LW_NEVER ? -1 : wait_ms > INT32_MAX ? INT32_MAX : (int)wait_ms;
}

static void
refresh(struct lw_spool_worker *worker)
{
    worker->now = lw_clock_monotonic_ns();
    worker->now_ms = lw_clock_wall_ms();
}

static void
sleep_until(struct lw_spool_worker *worker, uint64_t due)
{
    struct pollfd fds[LW_SPOOL_GUESTS_MAX + 2] = { { .fd = worker->wake_fd,
                                                     .events = POLLIN } };
    eventfd_t drained;
    size_t count = 1 + lw_spool_server_poll(worker->server, fds + 1);
    bool has_mail = lw_mailbox_sleep(&worker->mailbox);
    int timeout = has_mail ? 0 : timeout_until(due, worker->now);
    if (poll(fds, count, timeout) > 0 && (fds[0].revents & POLLIN) != 0) {
        (void)eventfd_read(worker->wake_fd, &drained);
    }
    lw_mailbox_awake(&worker->mailbox);
    refresh(worker);
}

/* -- The end ------------------------------------------------------------------------------------- */

/* What is judged is written, or will be delivered again; then the file is closed, or left. */
static void
leave(struct lw_spool_worker *worker)
{
    struct lw_list *node;
    struct lw_spool_store *store = worker->store;
    while ((node = lw_list_first(&worker->asking)) != NULL) {
        give_back(worker, LW_CONTAINER(node, struct lw_spool_command, link));
    }
    if (store->judged_count == 0 && lw_spool_begin(store)) {
        if (!lw_spool_settle_leave(store) || !lw_spool_trim(store, worker->now_ms) ||
            !lw_spool_log_write(store) || !lw_spool_commit(store)) {
            lw_spool_rollback(store);
        }
    }
    lw_spool_server_destroy(worker->server);
    lw_spool_store_close(store);
    worker->server = NULL;
    worker->store = NULL;
}

static void
work_on_file(struct lw_spool_worker *worker)
{
    while (!worker->close && !lw_spool_server_has_yielded(worker->server)) {
        sleep_until(worker, next_due(worker));
        take(worker);
        lw_spool_server_read(worker->server, &worker->batches, worker->now);
        write_turn(worker);
        if (!worker->close) {
            read_turn(worker); /* what is put aside there would not be written any more */
        }
        lw_spool_server_answer(worker->server, worker->store,
                               worker->is_down ? worker->store->error.message : "",
                               worker->now);
    }
    leave(worker);
}

/* Nobody has the file: it is ours for one transaction. ALREADY: somebody has it after all. */
static enum lw_status
own_for_a_moment(struct lw_spool_worker *worker, struct lw_spool_batch *batch,
                 struct lw_error *ret_error)
{
    struct lw_spool_opening opening = { worker->path, worker->file_options, true, 0 };
    enum lw_status status = lw_spool_store_open(&opening, &worker->store, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    worker->store->has_retention = false; /* whoever reads it looks after that */
    worker->store->keeps_settled = true;
    lw_list_push(&worker->batches, &batch->link);
    refresh(worker);
    write_turn(worker);
    lw_spool_store_close(worker->store);
    worker->store = NULL;
    worker->trim_at = LW_NEVER;
    (void)poll(NULL, 0, REACH_PAUSE_MS);
    return LW_STATUS_OK;
}

static void
publish_remotely(struct lw_spool_worker *worker, struct lw_spool_batch *batch)
{
    struct lw_error error = { 0 };
    bool is_taken = false;
    bool is_heard = false;
    enum lw_status status = LW_STATUS_ALREADY;
    for (int turn = 0; status == LW_STATUS_ALREADY && turn < REACH_TURNS; turn++) {
        if (turn > 0) {
            (void)poll(NULL, 0, REACH_PAUSE_MS);
        }
        is_heard = lw_spool_remote_publish(&worker->client, batch, &is_taken, &error);
        if (is_taken || atomic_load(&worker->ends_at) <= lw_clock_monotonic_ns()) {
            break;
        }
        status = own_for_a_moment(worker, batch, &error);
    }
    if (status != LW_STATUS_OK) {
        notify(worker, !is_heard, &error);
        give_back(worker, &LW_CONTAINER(batch, struct lw_spool_publishing, batch)->command);
    }
}

/* Without the file: publications go to whoever has it, a command at a time. */
static void
work_remotely(struct lw_spool_worker *worker)
{
    struct lw_list *node;
    struct lw_list batches;
    lw_list_init(&batches);
    while (!worker->close) {
        sleep_until(worker, LW_NEVER);
        take(worker);
        while ((node = lw_list_pop(&worker->batches)) != NULL) {
            lw_list_push(&batches, node);
        }
        while ((node = lw_list_pop(&batches)) != NULL) {
            publish_remotely(worker, LW_CONTAINER(node, struct lw_spool_batch, link));
        }
    }
}

static void *
work(void *user)
{
    struct lw_spool_worker *worker = user;
    refresh(worker);
    if (worker->store) {
        work_on_file(worker);
    }
    if (!worker->close) {
        work_remotely(worker); /* from the start, or the file was left to a reader */
    }
    give_back(worker, worker->close);
    return NULL;
}

/* -- Life ---------------------------------------------------------------------------------------- */

static void
destroy(struct lw_spool_worker *worker)
{
    lw_spool_server_destroy(worker->server);
    lw_spool_store_close(worker->store);
    lw_spool_client_close(&worker->client);
    if (worker->wake_fd >= 0) {
        (void)close(worker->wake_fd);
    }
    lw_free(worker);
}

static bool
start_thread(struct lw_spool_worker *worker)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_started = pthread_create(&worker->thread, NULL, work, worker) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_started;
}

static void
init(struct lw_spool_worker *worker, const struct lw_spool_worker_options *options)
{
    worker->host = options->host;
    worker->on_notice = options->on_notice;
    worker->user = options->user;
    worker->store = options->store;
    worker->path = options->path;
    worker->file_options = options->file_options;
    lw_spool_client_init(&worker->client, options->path);
    worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    worker->lazy_at = LW_NEVER;
    worker->trim_at = options->store && lw_spool_has_worn(options->store) ? 0 : LW_NEVER;
    worker->settle_at = LW_NEVER;
    worker->retry_ms = RETRY_MS;
    atomic_init(&worker->ends_at, UINT64_MAX);
    lw_mailbox_init(&worker->mailbox, worker->wake_fd);
    lw_list_init(&worker->batches);
    worker->part.count = UINT32_MAX;
    lw_list_init(&worker->asking);
}

/* An owner whom nobody can reach works all the same. */
static void
serve(struct lw_spool_worker *worker, const char *path, bool is_reader)
{
    worker->server = lw_spool_server_create(path, is_reader);
    if (!worker->server) {
        lw_host_log(worker->host, LW_LOG_WARN, "spool.no_socket",
                    "no other process can reach this spool", "path=%s error=%s", path,
                    strerrordesc_np(errno));
    }
}

enum lw_status
lw_spool_worker_create(const struct lw_spool_worker_options *options,
                       struct lw_spool_worker **ret_worker, struct lw_error *ret_error)
{
    struct lw_spool_worker *worker = lw_alloc(sizeof *worker);
    if (!worker) {
        lw_spool_store_close(options->store);
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a spool");
    }
    init(worker, options);
    enum lw_status status = LW_STATUS_OK;
    if (!options->store) {
        status = lw_spool_client_connect(&worker->client, options->path, options->owner_pid,
                                         ret_error);
    } else if (options->is_serving) {
        serve(worker, options->path, options->is_reader);
    }
    worker->client.ends_at = &worker->ends_at;
    if (status == LW_STATUS_OK && (worker->wake_fd < 0 || !start_thread(worker))) {
        status = lw_error_set(ret_error, LW_STATUS_SYSTEM, "E0523",
                              "no thread or descriptor for the spool \"%s\"", options->path);
    }
    if (status != LW_STATUS_OK) {
        destroy(worker);
        return status;
    }
    *ret_worker = worker;
    return LW_STATUS_OK;
}

void
lw_spool_worker_post(struct lw_spool_worker *worker, struct lw_spool_command *command)
{
    if (command->kind == LW_SPOOL_COMMAND_CLOSE) {
        atomic_store(&worker->ends_at, lw_clock_monotonic_ns() + CLOSING_MS * LW_MS);
    }
    bool is_posted = lw_mailbox_post(&worker->mailbox, &command->mail);
    lw_assert(is_posted);
}

uint64_t
lw_spool_worker_destroy(struct lw_spool_worker *worker)
{
    (void)pthread_join(worker->thread, NULL);
    uint64_t commits = worker->commits;
    destroy(worker);
    return commits;
}
