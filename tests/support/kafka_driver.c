/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver of kafka_driver.h. One thread; the clock is the loop's. A condition is looked at once
 * a turn, so nothing here sleeps to be safe.
 */
#include "tests/support/test.h"

#include "tests/support/kafka_driver.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "brokers/kafka/broker.h"

extern char **environ;

/* -- Events -------------------------------------------------------------------------------------- */

static struct driver_slot *
find_slot(struct driver *driver, uint64_t generation)
{
    for (size_t i = 0; i < driver->slot_count; i++) {
        if (driver->slots[i].generation == generation) {
            return &driver->slots[i];
        }
    }
    return NULL;
}

static struct driver_slot *
slot_of(struct driver *driver, struct lw_source *source, uint32_t slot)
{
    for (size_t i = 0; i < driver->slot_count; i++) {
        struct driver_slot *at = &driver->slots[i];
        if (at->generation && at->source == source && at->slot == slot) {
            return at;
        }
    }
    return NULL;
}

static void
on_assigned(struct driver *driver, const struct lw_event *event)
{
    struct driver_slot *slot = find_slot(driver, 0);
    if (!slot) {
        assert_true(driver->slot_count < DRIVER_SLOTS_MAX);
        slot = &driver->slots[driver->slot_count++];
    }
    struct driver_slot *older = slot_of(driver, event->source, event->slot);
    if (older) {
        assert_true(older->is_revoking); /* its deadline passed unanswered */
        slot = older;
    }
    memset(slot, 0, sizeof *slot);
    slot->source = event->source;
    slot->slot = event->slot;
    slot->generation = event->generation;
    slot->partition = event->partition;
    slot->is_companion = event->is_companion;
    slot->next = -1;
    slot->committed = -1;
    (void)snprintf(slot->topic, sizeof slot->topic, "%s", event->topic);
    driver->assigned++;
}

static void
on_committed(struct driver *driver, const struct lw_event *event)
{
    assert_true(driver->is_committing);
    driver->is_committing = false;
    driver->commits++;
    driver->commit_status = event->status;
    driver->commits_failed += event->status != LW_STATUS_OK ? 1 : 0;
    for (size_t i = 0; event->status == LW_STATUS_OK && i < driver->slot_count; i++) {
        driver->slots[i].committed = driver->slots[i].next;
    }
}

static void
on_event(struct driver *driver, const struct lw_event *event)
{
    struct driver_slot *slot = event->generation ? find_slot(driver, event->generation) : NULL;
    switch (event->kind) {
    case LW_EVENT_ASSIGNED:
        on_assigned(driver, event);
        break;
    case LW_EVENT_REVOKING:
        assert_non_null(slot);
        slot->is_revoking = true;
        driver->revoked++;
        break;
    case LW_EVENT_LOST:
        assert_non_null(slot);
        slot->generation = 0;
        driver->lost++;
        break;
    case LW_EVENT_POSITION:
        assert_non_null(slot);
        /* Messages that came after that end was seen may have been received already. */
        slot->next = event->position > slot->next ? event->position : slot->next;
        driver->positions++;
        driver->last_position = event->position;
        break;
    case LW_EVENT_PUBLISHED:
        driver->receipts[event->status]++;
        driver->receipt_count++;
        driver->last_receipt = event->publication;
        break;
    case LW_EVENT_PUBLISH_ROOM:
        driver->rooms++;
        break;
    case LW_EVENT_COMMITTED:
        on_committed(driver, event);
        break;
    case LW_EVENT_BROKER_UP:
        driver->ups++;
        break;
    case LW_EVENT_BROKER_DOWN:
        driver->downs++;
        driver->last_error = *event->error;
        break;
    case LW_EVENT_SOURCE_ERROR:
        driver->source_errors++;
        driver->last_error = *event->error;
        break;
    case LW_EVENT_CLOSED:
        driver->is_closed = true;
        break;
    }
}

/* -- One step ------------------------------------------------------------------------------------- */

static void
take_events(struct driver *driver)
{
    struct lw_event events[64];
    size_t count = 0;
    do {
        count = driver->broker->ops->events(driver->broker, events, 64);
        for (size_t i = 0; i < count; i++) {
            on_event(driver, &events[i]);
        }
    } while (count == 64);
}

static void
on_received(struct driver *driver, struct lw_source *source, struct lw_message *message)
{
    struct driver_slot *slot = slot_of(driver, source, message->slot);
    assert_non_null(slot);
    assert_false(slot->is_revoking);
    driver->jumps += message->position < slot->next ? 1 : 0;
    slot->next = message->position + 1;
    driver->received++;
}

static bool
receive_from(struct driver *driver, struct lw_source *source)
{
    static struct lw_message messages[DRIVER_BATCH];
    struct lw_message *out[DRIVER_BATCH];
    struct lw_message *done[DRIVER_BATCH];
    bool has_more = false;
    size_t kept = 0;
    for (size_t i = 0; i < DRIVER_BATCH; i++) {
        out[i] = &messages[i];
    }
    size_t count = driver->broker->ops->receive(source, out, driver->batch_max,
                                                driver->bytes_max, &has_more);
    driver->receives++;
    for (size_t i = 0; i < count; i++) {
        on_received(driver, source, out[i]);
        if (!driver->on_message || !driver->on_message(driver, source, out[i], driver->user)) {
            done[kept++] = out[i];
        }
    }
    driver->broker->ops->release(driver->broker, done, kept);
    return has_more;
}

static bool
receive_all(struct driver *driver)
{
    bool has_more = false;
    uint64_t before = driver->received;
    for (size_t i = 0; i < driver->source_count; i++) {
        if (driver->broker->ops->is_ready(driver->sources[i])) {
            has_more = receive_from(driver, driver->sources[i]) || has_more;
        }
    }
    if (driver->received > before) {
        int64_t gap = (int64_t)(driver->host->now - driver->received_at);
        bool is_first = driver->received_at == 0;
        driver->longest_gap_ns = !is_first && gap > driver->longest_gap_ns
                                     ? gap
                                     : driver->longest_gap_ns;
        driver->received_at = driver->host->now;
    }
    return has_more;
}

static bool
is_revoking(const struct driver *driver)
{
    for (size_t i = 0; i < driver->slot_count; i++) {
        if (driver->slots[i].generation && driver->slots[i].is_revoking) {
            return true;
        }
    }
    return false;
}

/* Commits once for all that is being taken away, then answers. */
static void
answer_revoke(struct driver *driver)
{
    if (driver->keeps_revoke || driver->is_committing || !is_revoking(driver)) {
        return;
    }
    if (!driver->is_revoke_sent && driver_commit_begin(driver) == LW_STATUS_OK) {
        driver->is_revoke_sent = true;
        return;
    }
    driver->is_revoke_sent = false;
    for (size_t i = 0; i < driver->slot_count; i++) {
        struct driver_slot *slot = &driver->slots[i];
        if (slot->generation && slot->is_revoking) {
            uint64_t generation = slot->generation;
            slot->generation = 0;
            driver->broker->ops->revoke_done(driver->broker, generation);
        }
    }
}

static uint64_t
step(struct lw_turn *turn, uint64_t now)
{
    struct driver *driver = LW_CONTAINER(turn, struct driver, turn);
    take_events(driver);
    bool has_more = !driver->is_paused && receive_all(driver);
    answer_revoke(driver);
    return has_more ? now : LW_NEVER;
}

/* -- Life ------------------------------------------------------------------------------------------ */

static void
on_log(enum lw_log_level level, const char *event, const char *text, const char *fields,
       void *user)
{
    struct driver *driver = user;
    if (getenv("DRIVER_LOG")) {
        (void)fprintf(stderr, "[%d] %s: %s %s\n", (int)level, event, text, fields);
    }
    if (level <= LW_LOG_WARN) {
        driver->warnings++;
        (void)snprintf(driver->last_warning, sizeof driver->last_warning, "%s", event);
    }
}

static size_t
count_properties(const struct lw_property *properties)
{
    size_t count = 0;
    while (properties && properties[count].name) {
        count++;
    }
    return count;
}

void
driver_open(struct driver *driver, const char *address, const struct lw_property *properties)
{
    char url[256];
    struct lw_error error = { .message = "" };
    memset(driver, 0, sizeof *driver);
    driver->bytes_max = UINT64_MAX;
    driver->batch_max = DRIVER_BATCH;
    assert_int_equal(lw_loop_create(1, &driver->loop), LW_STATUS_OK);
    driver->host = lw_loop_host(driver->loop);
    driver->host->log = on_log;
    driver->host->log_user = driver;
    driver->host->log_level = getenv("DRIVER_LOG") ? LW_LOG_TRACE : LW_LOG_WARN;
    (void)snprintf(url, sizeof url, "kafka://%s", address);
    enum lw_status status = lw_kafka_broker_ops()->create(driver->host, "main", url, properties,
                                                          count_properties(properties),
                                                          &driver->broker, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(status, LW_STATUS_OK);
    driver->turn.fn = step;
    lw_list_init(&driver->turn.link);
    lw_host_add_turn(driver->host, &driver->turn);
}

struct lw_source *
driver_subscribe_with(struct driver *driver, const struct lw_source_options *options)
{
    struct lw_error error = { .message = "" };
    struct lw_source *source = NULL;
    enum lw_status status = driver->broker->ops->subscribe(driver->broker, options, &source,
                                                           &error);
    assert_string_equal(error.message, "");
    assert_int_equal(status, LW_STATUS_OK);
    driver->broker->ops->demand(source, 1000, UINT64_C(64) << 20);
    driver->sources[driver->source_count++] = source;
    return source;
}

struct lw_source *
driver_subscribe(struct driver *driver, const char *topic, const char *group,
                 const struct lw_property *properties)
{
    struct lw_source_options options = {
        .topic = topic,
        .subscription = group,
        .priority = 100,
        .receiver_queue_size = 1000,
        .queue_bytes_max = UINT64_C(64) << 20,
        .properties = properties,
        .property_count = count_properties(properties),
    };
    return driver_subscribe_with(driver, &options);
}

void
driver_start(struct driver *driver)
{
    struct lw_error error = { .message = "" };
    assert_int_equal(driver->broker->ops->start(driver->broker, &error), LW_STATUS_OK);
}

void
driver_run(struct driver *driver, bool (*is_done)(struct driver *driver, void *user),
           void *user, int64_t timeout_ms)
{
    uint64_t deadline = driver->host->ops->refresh(driver->host) + (uint64_t)timeout_ms * LW_MS;
    while (!is_done(driver, user)) {
        if (driver->host->now >= deadline) {
            fail_msg("not within %lld ms: received %llu, owned %zu, receipts %llu, last error "
                     "\"%s\", last warning %s",
                     (long long)timeout_ms, (unsigned long long)driver->received,
                     driver_owned(driver), (unsigned long long)driver->receipt_count,
                     driver->last_error.message, driver->last_warning);
        }
        lw_loop_turn_until(driver->loop, deadline);
    }
}

void
driver_pass(struct driver *driver, int64_t ms)
{
    uint64_t deadline = driver->host->ops->refresh(driver->host) + (uint64_t)ms * LW_MS;
    while (driver->host->now < deadline) {
        lw_loop_turn_until(driver->loop, deadline);
    }
}

void
driver_resume(struct driver *driver)
{
    driver->is_paused = false;
    lw_host_want_turn(driver->host);
}

static bool
has_received(struct driver *driver, void *user)
{
    return driver->received >= *(uint64_t *)user;
}

void
driver_run_received(struct driver *driver, uint64_t count, int64_t timeout_ms)
{
    driver_run(driver, has_received, &count, timeout_ms);
}

static bool
has_downs(struct driver *driver, void *user)
{
    return driver->downs >= *(uint64_t *)user;
}

void
driver_run_downs(struct driver *driver, uint64_t count, int64_t timeout_ms)
{
    driver_run(driver, has_downs, &count, timeout_ms);
}

static bool
has_ups(struct driver *driver, void *user)
{
    return driver->ups >= *(uint64_t *)user;
}

void
driver_run_ups(struct driver *driver, uint64_t count, int64_t timeout_ms)
{
    driver_run(driver, has_ups, &count, timeout_ms);
}

static bool
has_receipts(struct driver *driver, void *user)
{
    return driver->receipt_count >= *(uint64_t *)user;
}

void
driver_run_receipts(struct driver *driver, uint64_t count, int64_t timeout_ms)
{
    driver_run(driver, has_receipts, &count, timeout_ms);
}

static bool
has_slots(struct driver *driver, void *user)
{
    return driver_owned(driver) == *(size_t *)user;
}

void
driver_run_assigned(struct driver *driver, size_t slots, int64_t timeout_ms)
{
    driver_run(driver, has_slots, &slots, timeout_ms);
}

enum lw_status
driver_commit_begin(struct driver *driver)
{
    struct lw_commit_item items[DRIVER_SLOTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < driver->slot_count; i++) {
        struct driver_slot *slot = &driver->slots[i];
        if (slot->generation && slot->next >= 0) {
            items[count++] = (struct lw_commit_item){ slot->source, slot->slot, slot->next };
        }
    }
    enum lw_status status = driver->broker->ops->commit(driver->broker, items, count);
    driver->is_committing = driver->is_committing || status == LW_STATUS_OK;
    return status;
}

static bool
is_commit_over(struct driver *driver, void *user)
{
    (void)user;
    return !driver->is_committing;
}

void
driver_commit(struct driver *driver)
{
    assert_int_equal(driver_commit_begin(driver), LW_STATUS_OK);
    driver_run(driver, is_commit_over, NULL, DRIVER_PATIENCE_MS);
}

size_t
driver_owned(const struct driver *driver)
{
    size_t count = 0;
    for (size_t i = 0; i < driver->slot_count; i++) {
        count += driver->slots[i].generation && !driver->slots[i].is_revoking ? 1 : 0;
    }
    return count;
}

struct driver_slot *
driver_find(struct driver *driver, const char *topic, int32_t partition)
{
    for (size_t i = 0; i < driver->slot_count; i++) {
        struct driver_slot *slot = &driver->slots[i];
        if (slot->generation && slot->partition == partition &&
            strcmp(slot->topic, topic) == 0) {
            return slot;
        }
    }
    return NULL;
}

void
driver_publish(struct driver *driver, struct lw_publication *publication)
{
    assert_int_equal(driver->broker->ops->publish(driver->broker, &publication, 1), 1);
}

static bool
is_closed(struct driver *driver, void *user)
{
    (void)user;
    return driver->is_closed;
}

void
driver_close(struct driver *driver)
{
    driver->is_paused = true;
    driver->broker->ops->stop_sources(driver->broker);
    driver->broker->ops->close(driver->broker);
    driver_run(driver, is_closed, NULL, DRIVER_PATIENCE_MS);
    driver->broker->ops->destroy(driver->broker);
    lw_host_remove_turn(&driver->turn);
    lw_loop_destroy(driver->loop);
}

/* -- The mock --------------------------------------------------------------------------------------- */

static void
read_line(struct mock *mock, char *line, size_t size)
{
    size_t length = 0;
    char c = 0;
    while (read(mock->out, &c, 1) == 1 && c != '\n' && length + 1 < size) {
        line[length++] = c;
    }
    line[length] = '\0';
}

void
mock_open(struct mock *mock, const char *topics)
{
    int in[2];
    int out[2];
    char line[256];
    static char program[] = LW_BINARY_DIR "/tests/support/mock_kafka";
    static char option[] = "--topics";
    char list[256];
    char *arguments[] = { program, option, list, NULL };
    (void)snprintf(list, sizeof list, "%s", topics);
    assert_int_equal(pipe2(in, 02000000), 0); /* O_CLOEXEC */
    assert_int_equal(pipe2(out, 02000000), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    assert_int_equal(posix_spawn(&mock->pid, arguments[0], &actions, NULL, arguments, environ),
                     0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    mock->in = in[1];
    mock->out = out[0];
    read_line(mock, line, sizeof line);
    assert_int_equal(sscanf(line, "READY %63s", mock->address), 1);
}

void
mock_command(struct mock *mock, const char *command)
{
    char line[256];
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(dprintf(mock->in, "%s\n", command), (int)strlen(command) + 1);
    read_line(mock, line, sizeof line);
    assert_string_equal(line, "ok");
}

void
mock_close(struct mock *mock)
{
    int status = 0;
    close(mock->in);
    close(mock->out);
    assert_int_equal(waitpid(mock->pid, &status, 0), mock->pid);
}
