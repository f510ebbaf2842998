/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge. For every place a byte of flags per position; for every (member, place) the present
 * ownership with one small record per position, and a table of keys: how many run, and the queue
 * of what was received and is not over, in order. An event costs a few array accesses.
 *
 * What P3 asks of a start: its position is the first of its key's queue, nothing of the key runs,
 * in any generation. What P4 asks: no better subscription of the member has a lane where something
 * was received, was never started, and has nothing before it, while it may start something.
 */
#include "tests/support/oracle_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/judge.h"

static void *
grown(void *pointer, int64_t capacity, size_t size)
{
    void *result = realloc(pointer, (size_t)capacity * size);
    if (!result) {
        abort();
    }
    return result;
}

/* -- Violations ---------------------------------------------------------------------------------- */

const char *
oracle_promise_name(enum oracle_promise promise)
{
    static const char *const names[ORACLE_PROMISES] = {
        [ORACLE_P1] = "P1",   [ORACLE_P2] = "P2",     [ORACLE_P3] = "P3",
        [ORACLE_P4] = "P4",   [ORACLE_P5] = "P5",     [ORACLE_P6] = "P6",
        [ORACLE_P10] = "P10", [ORACLE_LOST] = "lost", [ORACLE_DUPLICATES] = "duplicates",
    };
    return names[promise];
}

void
oracle_violation(struct oracle *oracle, enum oracle_promise promise, const char *format, ...)
{
    struct oracle_report *report = &oracle->report;
    report->violations[promise]++;
    if (report->violation_count++ > 0) {
        return;
    }
    int used = snprintf(report->first, sizeof report->first,
                        "%s at %llu ns: ", oracle_promise_name(promise),
                        (unsigned long long)oracle->now);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->first + used, sizeof report->first - (size_t)used, format, arguments);
    va_end(arguments);
}

static void
blame(struct oracle *oracle, enum oracle_promise promise, const struct oracle_event *event,
      const char *what)
{
    oracle_violation(oracle, promise, "member %u place %u generation %llu position %lld: %s",
                     event->member, event->place, (unsigned long long)event->generation,
                     (long long)event->position, what);
}

/* -- Making -------------------------------------------------------------------------------------- */

struct oracle *
oracle_create(void)
{
    struct oracle *oracle = calloc(1, sizeof *oracle);
    if (!oracle) {
        abort();
    }
    return oracle;
}

static void
destroy_seat(struct seat *seat)
{
    while (seat->ownership) {
        struct ownership *older = seat->ownership->older;
        free(seat->ownership->runs);
        free(seat->ownership);
        seat->ownership = older;
    }
    free(seat->keys);
    free(seat);
}

void
oracle_destroy(struct oracle *oracle)
{
    for (uint32_t i = 0; i < oracle->place_count; i++) {
        for (uint32_t m = 0; m < ORACLE_MEMBERS_MAX; m++) {
            if (oracle->places[i].seats[m]) {
                destroy_seat(oracle->places[i].seats[m]);
            }
        }
        free(oracle->places[i].flags);
        free(oracle->places[i].accounts);
    }
    for (uint32_t m = 0; m < ORACLE_MEMBERS_MAX; m++) {
        while (oracle->lanes[m]) {
            struct lane *next = oracle->lanes[m]->next;
            free(oracle->lanes[m]);
            oracle->lanes[m] = next;
        }
    }
    free(oracle->places);
    free(oracle->subscriptions);
    free(oracle->loads);
    free(oracle);
}

uint32_t
oracle_add_subscription(struct oracle *oracle, const struct oracle_subscription *subscription)
{
    uint32_t index = oracle->subscription_count++;
    oracle->subscriptions = grown(oracle->subscriptions, index + 1, sizeof *subscription);
    oracle->subscriptions[index] = *subscription;
    free(oracle->loads); /* before any event */
    oracle->loads = calloc((size_t)(index + 1) * ORACLE_MEMBERS_MAX, sizeof *oracle->loads);
    return index;
}

uint32_t
oracle_add_place(struct oracle *oracle, uint32_t subscription)
{
    uint32_t index = oracle->place_count++;
    oracle->places = grown(oracle->places, index + 1, sizeof *oracle->places);
    oracle->places[index] = (struct place){ .subscription = subscription,
                                            .group = index,
                                            .committed = -1 };
    return index;
}

void
oracle_share_lanes(struct oracle *oracle, uint32_t place, uint32_t other)
{
    oracle->places[place].group = oracle->places[other].group;
}

void
oracle_set_blocked(struct oracle *oracle,
                   bool (*is_blocked)(void *user, uint32_t member, uint32_t subscription),
                   void *user)
{
    oracle->is_blocked = is_blocked;
    oracle->user = user;
}

const struct oracle_report *
oracle_report(const struct oracle *oracle)
{
    return &oracle->report;
}

/* -- Places ---------------------------------------------------------------------------------------- */

uint8_t *
oracle_flags_at(struct oracle *oracle, uint32_t index, int64_t position)
{
    struct place *place = &oracle->places[index];
    if (position >= place->capacity) {
        int64_t capacity = place->capacity ? place->capacity : 64;
        while (capacity <= position) {
            capacity *= 2;
        }
        size_t added = (size_t)(capacity - place->capacity);
        place->flags = grown(place->flags, capacity, 1);
        place->accounts = grown(place->accounts, capacity, sizeof *place->accounts);
        memset(place->flags + place->capacity, 0, added);
        memset(place->accounts + place->capacity, 0, added * sizeof *place->accounts);
        place->capacity = capacity;
    }
    place->count = position >= place->count ? position + 1 : place->count;
    return &place->flags[position];
}

void
oracle_produced(struct oracle *oracle, uint32_t place, int64_t position)
{
    *oracle_flags_at(oracle, place, position) |= FLAG_PRODUCED;
}

void
oracle_deleted(struct oracle *oracle, uint32_t place, int64_t position)
{
    *oracle_flags_at(oracle, place, position) |= FLAG_DELETED;
}

bool
oracle_is_done(const struct oracle *oracle, uint32_t index, int64_t position)
{
    const struct place *place = &oracle->places[index];
    return position < place->count && (place->flags[position] & FLAG_DONE) != 0;
}

/* Every message below `end` must have been handled by somebody. */
static void
check_below(struct oracle *oracle, uint32_t index, int64_t end)
{
    struct place *place = &oracle->places[index];
    end = end < place->count ? end : place->count;
    for (; place->checked < end; place->checked++) {
        uint8_t flags = place->flags[place->checked];
        if ((flags & (FLAG_PRODUCED | FLAG_DELETED | FLAG_DONE)) == FLAG_PRODUCED) {
            oracle_violation(oracle, ORACLE_LOST, "place %u position %lld was never handled",
                             index, (long long)place->checked);
        }
    }
}

void
oracle_committed(struct oracle *oracle, uint32_t index, int64_t position)
{
    struct place *place = &oracle->places[index];
    if (position < place->committed) {
        oracle_violation(oracle, ORACLE_P6, "place %u: committed %lld after %lld", index,
                         (long long)position, (long long)place->committed);
    }
    place->committed = position;
    check_below(oracle, index, position);
}

void
oracle_allow_duplicates(struct oracle *oracle, uint64_t count)
{
    oracle->allowed += count;
}

/* The order's key of an event; false when nothing orders it. */
static bool
order_of(const struct oracle_subscription *subscription, const struct oracle_event *event,
         uint64_t *ret_hash)
{
    switch (subscription->order) {
    case ORACLE_UNORDERED:
        return false;
    case ORACLE_BY_PARTITION:
        *ret_hash = 1;
        return true;
    case ORACLE_BY_KEY:
        *ret_hash = event->key_hash;
        return event->key_hash != 0 || !subscription->is_keyless_loose;
    }
    return false;
}

/* -- Ownerships -------------------------------------------------------------------------------------- */

static struct seat *
seat_of(struct oracle *oracle, const struct oracle_event *event)
{
    struct seat **seat = &oracle->places[event->place].seats[event->member];
    if (!*seat) {
        *seat = calloc(1, sizeof **seat);
        if (!*seat) {
            abort();
        }
        (*seat)->member = event->member;
        (*seat)->place = event->place;
    }
    return *seat;
}

static struct ownership *
find_ownership(const struct seat *seat, uint64_t generation)
{
    struct ownership *ownership = seat->ownership;
    while (ownership && ownership->generation != generation) {
        ownership = ownership->older;
    }
    return ownership;
}

static struct run *
run_at(struct ownership *ownership, int64_t position)
{
    int64_t at = position - ownership->base;
    if (at < 0) {
        return NULL;
    }
    if (at >= ownership->capacity) {
        int64_t capacity = ownership->capacity ? ownership->capacity : 64;
        while (capacity <= at) {
            capacity *= 2;
        }
        ownership->runs = grown(ownership->runs, capacity, sizeof *ownership->runs);
        ownership->capacity = capacity;
    }
    for (; ownership->count <= at; ownership->count++) {
        ownership->runs[ownership->count] = (struct run){ .key = NONE, .next = NONE };
    }
    return &ownership->runs[at];
}

/* What a lost ownership may cause: all that was received and is not covered by a commit. */
static void
end_ownership(struct oracle *oracle, struct seat *seat, struct ownership *ownership)
{
    const struct place *place = &oracle->places[seat->place];
    bool is_individual = oracle->subscriptions[place->subscription].is_individual;
    ownership->is_ended = true;
    for (int64_t i = 0; i < ownership->count; i++) {
        struct run *run = &ownership->runs[i];
        bool is_covered = is_individual ? (run->flags & RUN_FINISHED) != 0
                                        : ownership->base + i < place->committed;
        oracle->report.duplicates_max += (run->flags & RUN_RECEIVED) && !is_covered;
        oracle_stale_fresh(oracle, seat, run);
    }
    for (uint32_t i = 0; i < seat->key_capacity; i++) {
        if (seat->keys[i].is_waiting) {
            oracle_update_key(oracle, seat, &seat->keys[i]);
        }
    }
}

static void
on_assigned(struct oracle *oracle, const struct oracle_event *event)
{
    struct seat *seat = seat_of(oracle, event);
    if (seat->ownership && !seat->ownership->is_ended) {
        blame(oracle, ORACLE_P6, event, "assigned while it is owned");
        end_ownership(oracle, seat, seat->ownership);
    }
    struct ownership *ownership = calloc(1, sizeof *ownership);
    if (!ownership) {
        abort();
    }
    ownership->generation = event->generation;
    ownership->base = event->position > 0 ? event->position : 0;
    ownership->low = ownership->base;
    ownership->older = seat->ownership;
    seat->ownership = ownership;
}

/* -- Events ------------------------------------------------------------------------------------------- */

/* What an event is about; run NULL: about no position, or one that cannot be. */
struct subject {
    struct seat *seat;
    struct ownership *ownership;
    struct run *run;
    struct load *load;
    const struct oracle_subscription *subscription;
};

static void
on_received(struct oracle *oracle, const struct oracle_event *event, struct subject *subject)
{
    struct run *run = subject->run;
    uint8_t *flags = oracle_flags_at(oracle, event->place, event->position);
    oracle->report.received++;
    if (!(run->flags & RUN_RECEIVED) && (*flags & FLAG_SEEN)) {
        oracle->report.duplicates++;
    }
    *flags |= FLAG_SEEN;
    subject->ownership->open++;
    if (run->open++ > 0) {
        return; /* the client gave it twice; the second has no place in the order */
    }
    if (run->key != NONE) {
        oracle_unlink_key(subject->seat, run->key,
                          (int32_t)(event->position - subject->ownership->base));
    }
    uint16_t kept = run->flags & (RUN_SETTLED | RUN_FINISHED);
    *run = (struct run){ .flags = kept | RUN_RECEIVED, .open = 1, .key = NONE, .next = NONE };
    uint64_t hash = 0;
    if (order_of(subject->subscription, event, &hash)) {
        int32_t key = oracle_find_key(oracle, subject->seat, hash);
        run = run_at(subject->ownership, event->position);
        run->key = key;
        oracle_push_key(oracle, subject->seat, key,
                        (int32_t)(event->position - subject->ownership->base));
    } else {
        run->flags |= RUN_FRESH;
        subject->load->fresh++;
    }
}

static void
check_priority(struct oracle *oracle, const struct oracle_event *event,
               const struct subject *subject)
{
    for (uint32_t i = 0; i < oracle->subscription_count; i++) {
        const struct oracle_subscription *other = &oracle->subscriptions[i];
        const struct load *load =
            &oracle->loads[event->member * oracle->subscription_count + i];
        bool is_full = other->concurrency > 0 && load->running >= other->concurrency;
        if (other->priority < subject->subscription->priority && load->fresh > 0 && !is_full &&
            !(oracle->is_blocked && oracle->is_blocked(oracle->user, event->member, i))) {
            oracle_violation(
                oracle, ORACLE_P4,
                "member %u place %u position %lld of subscription %u started while "
                "subscription %u had %u waiting and %u running",
                event->member, event->place, (long long)event->position,
                oracle->places[event->place].subscription, i, load->fresh, load->running);
            return;
        }
    }
}

/* The first of the key's queue that does not run in company of this one. */
static int32_t
first_outside(const struct oracle_event *event, const struct subject *subject,
              const struct key *key)
{
    const struct run *runs = subject->ownership->runs;
    int64_t own = event->position - subject->ownership->base;
    int32_t at = key->head;
    while (event->task != 0 && at != NONE && at != own && runs[at].running > 0 &&
           runs[at].task == event->task) {
        at = runs[at].next;
    }
    return at;
}

static void
check_order(struct oracle *oracle, const struct oracle_event *event,
            const struct subject *subject)
{
    if (subject->run->key == NONE) {
        return;
    }
    const struct key *key = &subject->seat->keys[subject->run->key];
    if (key->lane->running > 0 && (event->task == 0 || key->lane->task != event->task)) {
        blame(oracle, ORACLE_P3, event, "started while another of its key runs");
    }
    if (first_outside(event, subject, key) != event->position - subject->ownership->base) {
        blame(oracle, ORACLE_P3, event, "started before an earlier one of its key is over");
    }
}

/* What is to run again goes before all that is behind it, whatever ran in its company. */
static void
check_before(struct oracle *oracle, const struct oracle_event *event,
             const struct subject *subject)
{
    const struct ownership *ownership = subject->ownership;
    if (subject->run->key == NONE) {
        return;
    }
    int32_t at = subject->seat->keys[subject->run->key].head;
    while (at != NONE && at < event->position - ownership->base) {
        if (ownership->runs[at].open > 0 && (ownership->runs[at].flags & RUN_WAITS)) {
            blame(oracle, ORACLE_P3, event, "settled before an earlier one that runs again");
        }
        at = ownership->runs[at].next;
    }
}

static void
on_started(struct oracle *oracle, const struct oracle_event *event, struct subject *subject)
{
    struct run *run = subject->run;
    oracle->report.started++;
    if (run->open == 0) {
        blame(oracle, ORACLE_P5, event, "started after its end");
        return;
    }
    bool is_charged = (run->flags & RUN_JUDGED) != 0 && run->open == 1;
    if (event->attempt < run->attempt + is_charged || event->attempt == 0) {
        blame(oracle, ORACLE_P10, event, "the attempt did not go up");
    }
    if (run->open == 1 && run->attempt > 0 && event->attempt > run->attempt + is_charged) {
        blame(oracle, ORACLE_P10, event, "charged for a run that was not judged");
    }
    run->flags &= (uint16_t) ~(RUN_JUDGED | RUN_WAITS);
    check_order(oracle, event, subject);
    if (subject->subscription->has_keys_apart && run->key != NONE) {
        oracle_check_apart(oracle, event, subject->seat->keys[run->key].hash);
    }
    check_priority(oracle, event, subject);
    oracle_stale_fresh(oracle, subject->seat, run);
    bool is_first = run->attempt == 0;
    run->attempt = event->attempt;
    run->task = event->task;
    if (run->key != NONE) {
        struct key *key = &subject->seat->keys[run->key];
        key->lane->running++;
        key->lane->task = event->task;
        key->lane->held += is_first;
        oracle_update_key(oracle, subject->seat, key);
    }
    run->running++;
    if (run->open == 1) { /* else it is not told which of them returned */
        run->flags &= (uint16_t)~RUN_RETURNED;
    }
    subject->load->running++;
}

static void
on_returned(struct oracle *oracle, const struct oracle_event *event, struct subject *subject)
{
    struct run *run = subject->run;
    if (run->running == 0) {
        blame(oracle, ORACLE_P5, event, "returned without running");
        return;
    }
    run->running--;
    run->flags |= RUN_RETURNED;
    subject->load->running--;
    oracle->report.stale += subject->ownership->is_ended;
    if (run->key != NONE) {
        subject->seat->keys[run->key].lane->running--;
    }
}

/* One of several deliveries of the same position is over: the next one begins from nothing. */
static void
begin_next_copy(struct oracle *oracle, struct subject *subject)
{
    struct run *run = subject->run;
    bool was_held = run->attempt > 0;
    run->attempt = 0;
    run->flags &= (uint16_t)~RUN_JUDGED;
    if (run->key != NONE) {
        struct key *key = &subject->seat->keys[run->key];
        key->lane->held -= was_held;
        oracle_update_key(oracle, subject->seat, key);
    }
}

static void
close_run(struct oracle *oracle, const struct oracle_event *event, struct subject *subject)
{
    struct run *run = subject->run;
    if (run->open == 0) {
        blame(oracle, ORACLE_P5, event, "ended twice");
        return;
    }
    run->open--;
    subject->ownership->open--;
    if (run->open > 0) {
        if (event->kind == LW_HISTORY_SETTLED) {
            begin_next_copy(oracle, subject);
        }
        return;
    }
    oracle_stale_fresh(oracle, subject->seat, run);
    if (run->key != NONE) {
        struct key *key = &subject->seat->keys[run->key];
        key->lane->held -= run->attempt > 0;
        oracle_trim_key(oracle, subject->seat, key);
    }
}

static const char *
missing_effect(const struct run *run, enum lw_settled outcome)
{
    bool has_returned = (run->flags & RUN_RETURNED) != 0;
    switch (outcome) {
    case LW_SETTLED_GIVEN_BACK:
        return NULL;
    case LW_SETTLED_RETRIED:
        return run->flags & RUN_RETRY_CONFIRMED ? NULL
                                                : "settled before its copy was confirmed";
    case LW_SETTLED_DEAD_LETTERED:
        return run->flags & RUN_DEAD_CONFIRMED ? NULL
                                               : "settled before its dead letter was confirmed";
    case LW_SETTLED_ACKED:
    case LW_SETTLED_DROPPED:
    case LW_SETTLED_REDELIVERED:
        return has_returned ? NULL : "settled before its handler returned";
    }
    return "settled in an unknown way";
}

static void
on_settled(struct oracle *oracle, const struct oracle_event *event, struct subject *subject)
{
    enum lw_settled outcome = (enum lw_settled)event->detail;
    struct run *run = subject->run;
    const char *missing = missing_effect(run, outcome);
    bool is_final = outcome != LW_SETTLED_GIVEN_BACK && outcome != LW_SETTLED_REDELIVERED;
    oracle->report.settled++;
    if (missing) {
        blame(oracle, ORACLE_P1, event, missing);
    }
    if (run->running >= run->open) {
        blame(oracle, ORACLE_P5, event, "settled while its handler runs");
    }
    if ((run->flags & RUN_SETTLED) && !subject->subscription->is_individual) {
        blame(oracle, ORACLE_P5, event, "settled twice");
    }
    if (outcome == LW_SETTLED_ACKED) {
        check_before(oracle, event, subject);
    }
    run->flags |= RUN_SETTLED | (is_final ? RUN_FINISHED : 0);
    if (subject->subscription->is_individual) {
        oracle_owe(oracle, event, is_final);
        oracle->report.duplicates_max += !is_final; /* it is to be given again, to anybody */
    }
    if (is_final) {
        *oracle_flags_at(oracle, event->place, event->position) |= FLAG_DONE;
    }
    close_run(oracle, event, subject);
}

/* The lowest position that is received and not finished, or past all. */
static int64_t
first_unfinished(struct ownership *ownership)
{
    while (ownership->low < ownership->base + ownership->count) {
        const struct run *run = &ownership->runs[ownership->low - ownership->base];
        if ((run->flags & (RUN_RECEIVED | RUN_FINISHED)) == RUN_RECEIVED) {
            break;
        }
        ownership->low++;
    }
    return ownership->low;
}

static void
on_committed(struct oracle *oracle, const struct oracle_event *event, struct subject *subject)
{
    struct ownership *ownership = subject->ownership;
    struct place *place = &oracle->places[event->place];
    int64_t low = first_unfinished(ownership);
    if (event->position > low && low < ownership->base + ownership->count) {
        blame(oracle, ORACLE_P2, event, "committed beyond the first unfinished one");
    }
    place->committed = event->position > place->committed ? event->position : place->committed;
    check_below(oracle, event->place, event->position);
}

static void
on_published(const struct oracle_event *event, struct subject *subject)
{
    if (event->detail == LW_PUBLISH_RETRY) {
        subject->run->flags |= RUN_RETRY_CONFIRMED;
    } else if (event->detail == LW_PUBLISH_DEAD_LETTER) {
        subject->run->flags |= RUN_DEAD_CONFIRMED;
    }
}

/* After the end of an ownership only late returns, drops and receipts may come. */
static bool
is_allowed_after_end(enum lw_history_kind kind)
{
    return kind == LW_HISTORY_RETURNED || kind == LW_HISTORY_DROPPED ||
           kind == LW_HISTORY_PUBLISHED;
}

static void
dispatch(struct oracle *oracle, const struct oracle_event *event, struct subject *subject)
{
    switch (event->kind) {
    case LW_HISTORY_ASSIGNED:
        break;
    case LW_HISTORY_RECEIVED:
        on_received(oracle, event, subject);
        break;
    case LW_HISTORY_STARTED:
        on_started(oracle, event, subject);
        break;
    case LW_HISTORY_RETURNED:
        on_returned(oracle, event, subject);
        break;
    case LW_HISTORY_JUDGED:
        if (!(subject->run->flags & RUN_RETURNED)) {
            blame(oracle, ORACLE_P1, event, "judged before its handler returned");
        }
        subject->run->flags |= RUN_JUDGED;
        if (event->action == LW_ACTION_PARK || event->action == LW_ACTION_HOLD) {
            subject->run->flags |= RUN_WAITS;
        }
        break;
    case LW_HISTORY_PUBLISHED:
        on_published(event, subject);
        break;
    case LW_HISTORY_SETTLED:
        on_settled(oracle, event, subject);
        break;
    case LW_HISTORY_DROPPED:
        oracle->report.dropped++;
        oracle_write_off(oracle, event->place, event->position, 1);
        close_run(oracle, event, subject);
        break;
    case LW_HISTORY_COMMITTED:
        on_committed(oracle, event, subject);
        break;
    case LW_HISTORY_REVOKED:
        end_ownership(oracle, subject->seat, subject->ownership);
        break;
    }
}

void
oracle_record(struct oracle *oracle, const struct oracle_event *event)
{
    if (event->now > oracle->now && oracle->overlap_count > 0) {
        oracle_judge_overlaps(oracle);
    }
    oracle->now = event->now;
    if (oracle->is_dead[event->member]) {
        return;
    }
    if (event->kind == LW_HISTORY_ASSIGNED) {
        on_assigned(oracle, event);
        return;
    }
    struct subject subject = { .seat = seat_of(oracle, event) };
    subject.ownership = find_ownership(subject.seat, event->generation);
    if (!subject.ownership) {
        blame(oracle, ORACLE_P6, event, "of an ownership that never began");
        return;
    }
    if (subject.ownership->is_ended && !is_allowed_after_end(event->kind)) {
        blame(oracle, ORACLE_P6, event, "after the end of its ownership");
        return;
    }
    bool is_about_one = event->kind != LW_HISTORY_COMMITTED &&
                        event->kind != LW_HISTORY_REVOKED;
    subject.run = is_about_one ? run_at(subject.ownership, event->position) : NULL;
    subject.load = oracle_load_of(oracle, subject.seat);
    subject.subscription = &oracle->subscriptions[oracle->places[event->place].subscription];
    if (is_about_one && !subject.run) {
        blame(oracle, ORACLE_P6, event, "below the position of its assignment");
        return;
    }
    dispatch(oracle, event, &subject);
}

/* Its deliveries end unheard: nobody settles them. */
static void
write_off_seat(struct oracle *oracle, const struct seat *seat)
{
    for (const struct ownership *at = seat->ownership; at; at = at->older) {
        for (int64_t i = 0; i < at->count && at->open > 0; i++) {
            oracle_write_off(oracle, seat->place, at->base + i, at->runs[i].open);
        }
    }
}

void
oracle_died(struct oracle *oracle, uint32_t member)
{
    for (uint32_t i = 0; i < oracle->place_count; i++) {
        struct seat *seat = oracle->places[i].seats[member];
        if (seat) {
            write_off_seat(oracle, seat);
        }
        if (seat && seat->ownership && !seat->ownership->is_ended) {
            end_ownership(oracle, seat, seat->ownership);
        }
    }
    oracle->is_dead[member] = true;
}

static void
finish_seat(struct oracle *oracle, const struct seat *seat)
{
    for (const struct ownership *at = seat->ownership; at; at = at->older) {
        if (at->open > 0) {
            oracle_violation(oracle, ORACLE_P5,
                             "member %u place %u generation %llu: %llu deliveries never ended",
                             seat->member, seat->place, (unsigned long long)at->generation,
                             (unsigned long long)at->open);
        }
    }
}

void
oracle_finish(struct oracle *oracle, bool is_complete)
{
    oracle_judge_overlaps(oracle);
    for (uint32_t i = 0; i < oracle->place_count; i++) {
        for (uint32_t m = 0; m < ORACLE_MEMBERS_MAX; m++) {
            if (oracle->places[i].seats[m] && !oracle->is_dead[m]) {
                finish_seat(oracle, oracle->places[i].seats[m]);
            }
        }
        if (is_complete) {
            check_below(oracle, i, oracle->places[i].count);
        }
    }
    struct oracle_report *report = &oracle->report;
    report->duplicates_max += oracle->allowed;
    oracle->allowed = 0;
    if (report->duplicates > report->duplicates_max) {
        oracle_violation(oracle, ORACLE_DUPLICATES, "%llu duplicates, %llu are explained",
                         (unsigned long long)report->duplicates,
                         (unsigned long long)report->duplicates_max);
    }
}
