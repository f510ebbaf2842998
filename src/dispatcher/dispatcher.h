/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher's own structures, for the files of this folder, the service above it and tests.
 * One loop thread owns everything here. Who does what:
 *   dispatcher.c  the path of a message, top to bottom
 *   receive.c     its beginning: room, batches, admission
 *   pinned.c      what kept messages pin at the client, and its budget
 *   publish.c     what is owed to other topics: sending, receipts, sending again
 *   settle.c      the end of a delivery; acks, nacks, commits
 *   assignment.c  partitions that come and go
 *   lifecycle.c   making, starting, ending
 *   shutdown.c    drain, deadline, close
 *   stream.c      a subscription with everything that belongs to it
 *   task.c        tasks of several messages: start, end, waiting for company
 *   pace.c        how long handlers and turns take
 *   view.c        what handlers may ask that needs a clock or the origin headers
 */
#ifndef LW_DISPATCHER_DISPATCHER_H
#define LW_DISPATCHER_DISPATCHER_H

#include <laneway/plugin.h>

#include <stdio.h>

#include "base/error.h"
#include "base/host.h"
#include "base/pool.h"
#include "core/scheduler.h"
#include "dispatcher/history.h"
#include "dispatcher/stream.h"

#define LW_RECEIVE_BATCH 256
#define LW_FINISHED_BATCH 256
#define LW_COMMIT_WAIT_NS (5000 * LW_MS)
#define LW_DEAD_LETTER_DRAIN_NS (5000 * LW_MS)
#define LW_ENGINE_END_NS (5000 * LW_MS) /* for engines that hold nothing any more */
/* Before the drain's deadline, or a fifth of a shorter drain: engines shall end what they can. */
#define LW_ENGINE_HURRY_NS (2000 * LW_MS)

/*
 * NEW       nothing was started; subscriptions may be added
 * RUNNING   receives, runs, settles
 * DRAINING  receives nothing; what is here runs, is published and settled, until the deadline
 * LEAVING   unfinished ones were given back; the last commits are awaited, sources given up
 * CLOSING   brokers and engines end; handlers on threads are waited for
 * CLOSED    all is over
 */
enum lw_phase {
    LW_PHASE_NEW,
    LW_PHASE_RUNNING,
    LW_PHASE_DRAINING,
    LW_PHASE_LEAVING,
    LW_PHASE_CLOSING,
    LW_PHASE_CLOSED
};

/* The dispatcher's side of one broker. */
struct lw_link {
    struct lw_broker *broker;
    struct lw_dispatcher *dispatcher;
    struct lw_list dirty; /* lw_partition.dirty: something to commit */
    struct lw_timer commit_timer;
    uint32_t completed;           /* settled since the last commit */
    bool is_committing;           /* one is in flight */
    uint32_t commit_failures;     /* in a row */
    enum lw_status commit_status; /* of the last one */
    uint64_t commits;
    uint64_t commits_failed;
    struct lw_list revoking;  /* lw_revoke.link */
    uint64_t revoke_deadline; /* LW_NEVER: none */
    bool is_revoke_commit_sent;
    uint32_t revoke_commit_failures;
    uint64_t revoke_commit_at; /* not before: the last one failed */
    struct lw_timer revoke_timer;
    struct lw_queue waiting_room; /* lw_publishing.link: wait for PUBLISH_ROOM */
    bool has_no_room;
    bool is_up;
    bool is_started;
    bool is_close_asked;
    bool is_closed;
    uint64_t down_since;
    struct lw_error last_error;
    struct lw_message *finished[LW_FINISHED_BATCH]; /* to be released */
    uint32_t finished_count;
    struct lw_commit_item *commit_items; /* room for every slot */
    uint32_t commit_capacity;
};

struct lw_dispatcher {
    struct lw_host *host;
    void *owner; /* the service object */
    enum lw_phase phase;
    enum lw_status end_status;
    struct lw_error end_error;
    struct lw_dispatcher_options options;
    char *name;
    struct lw_turn turn;
    struct lw_completions completions;
    struct lw_scheduler scheduler;
    struct lw_ranks receivable;
    struct lw_pool deliveries;
    struct lw_pool publishings;
    struct lw_message *spare[LW_RECEIVE_BATCH]; /* of deliveries for the next receive */
    uint32_t spare_count;
    struct lw_stream **streams;
    uint32_t stream_count;
    struct lw_link **links;
    uint32_t link_count;
    struct lw_engine **engines;
    uint32_t engine_count;
    struct lw_list settling; /* streams with settle items */
    struct lw_list held;     /* lw_publishing.link of deliveries held for good */
    uint32_t held_count;     /* deliveries that are not FREE */
    uint32_t publishing_count;
    uint64_t started_at;
    uint64_t step_until;     /* when this step lets others have the thread */
    uint64_t drain_deadline; /* LW_NEVER: none or unlimited */
    struct lw_timer drain_timer;
    struct lw_timer hurry_timer;       /* before it: engines that can end a handler are told */
    struct lw_timer dead_letter_timer; /* 5 s for what is only publishing at drain */
    struct lw_timer memory_timer;      /* tries again what lack of memory held up */
    bool is_close_wanted;
    bool is_abort_wanted;
    bool is_taking_events; /* no commit by count now: an event may tell that it is not ours */
    bool is_hurry_due;     /* the drain's deadline is near */
    bool is_deadline_passed;
    bool is_pinned_tight; /* half of the budget was used when pinned_check_at was set */
    bool is_observed;     /* a history or fault points are on: every case takes the full path */
    uint32_t given_back;
    uint32_t slow_turns; /* since slow_silent_until was set, this one included */
    uint64_t transitions;
    uint32_t task_numbers;      /* given to tasks that may have several members, from 1 */
    uint64_t pinned_unchecked;  /* bytes received since the pinned ones were measured */
    uint64_t pinned_check_at;   /* so many of them: they are measured again */
    uint64_t pace_minute;       /* whose windows the streams' handler times have */
    uint64_t slow_silent_until; /* a slow turn was said aloud */
    struct lw_history *history;
    struct lw_letter close_letter;
};

/* -- Making (service/api.c) -- */
enum lw_status
lw_dispatcher_init(struct lw_dispatcher *dispatcher, struct lw_host *host, int wake_fd,
                   const struct lw_dispatcher_options *options, struct lw_error *ret_error);
/* Frees everything but the host; phase NEW or CLOSED. Destroys brokers and engines. */
void lw_dispatcher_deinit(struct lw_dispatcher *dispatcher);
/* Takes the broker or engine over. */
enum lw_status lw_dispatcher_add_broker(struct lw_dispatcher *dispatcher,
                                        struct lw_broker *broker, struct lw_link **ret_link);
enum lw_status
lw_dispatcher_add_engine(struct lw_dispatcher *dispatcher, struct lw_engine *engine);
struct lw_link *lw_dispatcher_find_link(struct lw_dispatcher *dispatcher, const char *name);
enum lw_status lw_dispatcher_add_stream(struct lw_dispatcher *dispatcher,
                                        const struct lw_subscription_options *options,
                                        struct lw_engine *engine, struct lw_error *ret_error);
/* Forgets the last stream that was added (all or nothing of a family). Phase NEW. */
void lw_dispatcher_drop_last_stream(struct lw_dispatcher *dispatcher);
/* Starts engines and brokers and joins the host's turns. */
enum lw_status
lw_dispatcher_start(struct lw_dispatcher *dispatcher, struct lw_error *ret_error);
/* One pure step: does all that is due, returns the next deadline. Called by the host's turn. */
uint64_t lw_dispatcher_step(struct lw_dispatcher *dispatcher, uint64_t now);
void
lw_dispatcher_pause(struct lw_dispatcher *dispatcher, struct lw_stream *stream, bool is_paused);

/* -- dispatcher.c, for its neighbours -- */
/* Rules over a judged delivery. */
/* Of one that was received and cannot be read: what the policy says of such. */
void lw_dispatcher_judge_fault(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery);
void lw_dispatcher_carry_out(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery,
                             struct lw_ruling ruling);
/* What follows the verdict of a JUDGED one; counted and logged, not yet done. */
struct lw_ruling lw_dispatcher_rule(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
                                    struct lw_delivery *delivery);
/* Lets a judged one wait in its lane; at a drain that ends before, it is given back. */
void lw_dispatcher_park(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery,
                        int64_t delay_ms);
/* Puts a parked one back into its lane now. */
void lw_dispatcher_unpark(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery);
/* A handler call ended, on whatever way: its slot is free, its verdict is judged once. */
void lw_dispatcher_finish_any(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
                              struct lw_delivery *delivery);
/* The timer of every delivery. */
void lw_dispatcher_on_timer(struct lw_timer *timer, uint64_t now);
/* Ends everything: a policy said stop. */
void lw_dispatcher_fail(struct lw_dispatcher *dispatcher, enum lw_status status,
                        const struct lw_error *error);

static inline struct lw_stream *
lw_stream_of(const struct lw_delivery *delivery)
{
    return LW_CONTAINER(delivery->subscription, struct lw_stream, subscription);
}

/* What the identity says for the position: `out`, filled by the broker, or NULL for the number. */
static inline const char *
lw_stream_place(const struct lw_delivery *delivery, char *out, size_t size)
{
    const struct lw_broker *broker = lw_stream_of(delivery)->link->broker;
    if (!broker->ops->place) {
        return NULL;
    }
    broker->ops->place(&delivery->message, out, size);
    return out;
}

/* The message's id as official clients write it: `out`, filled by the broker, or NULL. */
static inline const char *
lw_stream_id_text(const struct lw_delivery *delivery, char *out, size_t size)
{
    const struct lw_broker *broker = lw_stream_of(delivery)->link->broker;
    if (!broker->ops->id_text) {
        return NULL;
    }
    broker->ops->id_text(&delivery->message, out, size);
    return out;
}

/* The same for people: never NULL. */
static inline const char *
lw_stream_shown_id(const struct lw_delivery *delivery, char *out, size_t size)
{
    if (!lw_stream_place(delivery, out, size)) {
        (void)snprintf(out, size, "%lld", (long long)delivery->message.position);
    }
    return out;
}

static inline void
lw_history_note(struct lw_dispatcher *dispatcher, enum lw_history_kind kind,
                const struct lw_delivery *delivery, int detail, int action)
{
    if (__builtin_expect(dispatcher->history != NULL, 0)) {
        struct lw_history_event event = {
            .kind = kind,
            .now = dispatcher->host->now,
            .delivery = delivery,
            .partition = delivery->partition,
            .position = delivery->message.position,
            .detail = detail,
            .action = action,
        };
        dispatcher->history->record(&event, dispatcher->history->user);
    }
}

void lw_history_note_partition(struct lw_dispatcher *dispatcher, enum lw_history_kind kind,
                               const struct lw_partition *partition, int64_t position);

/* -- settle.c -- */
void lw_settle(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery,
               enum lw_settled outcome, int64_t nack_delay_ms);
/* Its generation is over: nothing is said to the broker. */
void lw_settle_drop(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery);
/* Tells the brokers what was collected and gives the memory back; once per step and when full. */
void lw_settle_flush(struct lw_dispatcher *dispatcher);
/* Commits what is safe, if anything and if none is in flight. */
void lw_settle_commit(struct lw_link *link);
void lw_settle_on_committed(struct lw_link *link, const struct lw_event *event);
void lw_settle_mark_dirty(struct lw_partition *partition);
/* Where each is settled for itself: acknowledges them; the caller releases them then. */
void lw_settle_ack_all(struct lw_stream *stream, struct lw_message *const messages[],
                       uint32_t count);
void lw_settle_init_link(struct lw_link *link);

/* -- publish.c -- */
struct lw_publishing;
/* Owes what the ruling says; sends at once if there is room. */
void lw_publish_begin(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery,
                      struct lw_ruling ruling);
void lw_publish_on_receipt(struct lw_dispatcher *dispatcher, const struct lw_event *event);
void lw_publish_on_room(struct lw_link *link);
/* The timer of a JUDGED delivery: sends again what was not confirmed. */
void lw_publish_resend(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery);
/* True when it could be let go now; false: receipts are outstanding, it goes when they came. */
bool lw_publish_abandon(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery);
bool lw_publish_is_abandoned(const struct lw_delivery *delivery);
/* Number of retries that this message has behind it, by its headers. */
uint32_t lw_publish_retries(const struct lw_delivery *delivery);

/* -- assignment.c -- */
void lw_assignment_on_event(struct lw_link *link, const struct lw_event *event);
/* After a step's events: commits and answers what is being revoked. */
void lw_assignment_continue(struct lw_link *link);
void lw_assignment_init(struct lw_dispatcher *dispatcher);
void lw_assignment_init_link(struct lw_link *link);
/* Frees an ended partition once nothing of it is held. */
void lw_assignment_release(struct lw_partition *partition);
/* Opens the position; stashes the delivery when the offsets window is full. */
bool lw_assignment_open(struct lw_delivery *delivery);
/* Keeps an admitted delivery aside, in order, until the window or memory has room for it. */
void lw_assignment_stash(struct lw_delivery *delivery, bool is_opened);
/* The end of the log was seen: positions below it that hold no message are done. */
void lw_assignment_close_tail(struct lw_partition *partition);
/* Tries stashed deliveries and receiving again after a while: there was no memory for them. */
void lw_assignment_wait_for_memory(struct lw_dispatcher *dispatcher);
/* The window moved: stashed deliveries may go on. */
void lw_assignment_unstash(struct lw_dispatcher *dispatcher, struct lw_partition *partition);

/* -- view.c -- */
/* What the headers say of where the message first appeared, and of its retries. */
void lw_view_read_origin(const struct lw_delivery *delivery, struct lw_origin *ret_origin);
extern const struct lw_view_ops lw_dispatcher_view;

/* -- shutdown.c -- */
void lw_shutdown_init(struct lw_dispatcher *dispatcher);
void lw_shutdown_step(struct lw_dispatcher *dispatcher);
void lw_shutdown_begin(struct lw_dispatcher *dispatcher, bool is_abort);
/* Settles a JUDGED delivery as given back, counted. */
void lw_shutdown_give_back(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery);

#endif
