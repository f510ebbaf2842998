/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of crew.h: it keeps tasks in the order of their starts, answers when told, and counts
 * what it was told to end. It is part of the crew, so its destroy frees nothing.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/crew.h"

#include <stdio.h>
#include <string.h>

static struct crew *
crew_of(struct lw_engine *engine)
{
    return (struct crew *)(void *)engine;
}

static enum lw_status
start(struct lw_engine *engine, struct lw_error *ret_error)
{
    (void)ret_error;
    engine->room = CREW_TASKS;
    return LW_STATUS_OK;
}

static size_t
submit(struct lw_engine *engine, struct lw_delivery *const tasks[], size_t n)
{
    struct crew *crew = crew_of(engine);
    if (crew->refuse > 0) {
        crew->refuse--;
        return 0;
    }
    assert_int_equal(n, 1);
    assert_true(crew->count < CREW_TASKS);
    crew->tasks[crew->count++] = tasks[0];
    engine->room--;
    return 1;
}

static void
flush(struct lw_engine *engine)
{
    (void)engine;
}

static void
cancel(struct lw_engine *engine, struct lw_delivery *task)
{
    (void)task;
    crew_of(engine)->cancelled++;
}

static void
stop(struct lw_engine *engine, uint64_t deadline)
{
    (void)deadline;
    crew_of(engine)->is_stopping = true;
}

static bool
is_stopped(const struct lw_engine *engine)
{
    return ((const struct crew *)(const void *)engine)->count == 0;
}

static void
destroy(struct lw_engine *engine)
{
    (void)engine;
}

static const struct lw_engine_ops ops = {
    .name = "crew",
    .reads_in_place = true,
    .start = start,
    .submit = submit,
    .flush = flush,
    .cancel = cancel,
    .stop = stop,
    .is_stopped = is_stopped,
    .destroy = destroy,
};

struct lw_batch_options
crew_batch(void)
{
    return (struct lw_batch_options){ .size = 3, .wait_ms = 10, .bytes = 1 << 20 };
}

void
crew_begin(struct crew *crew, uint32_t slots, int32_t partitions,
           const struct lw_subscription_options *options, const struct lw_batch_options *batch)
{
    struct lw_error error = { 0 };
    memset(crew, 0, sizeof(*crew));
    world_init(&crew->world, slots, NULL);
    world_topic(&crew->world, options->topic, partitions);
    crew->engine = (struct lw_engine){
        .ops = &ops,
        .host = &crew->world.clock->host,
        .completions = &crew->world.dispatcher.completions,
        .name = "crew",
        .batch = *batch,
    };
    assert_int_equal(lw_dispatcher_add_engine(&crew->world.dispatcher, &crew->engine),
                     LW_STATUS_OK);
    enum lw_status status = lw_dispatcher_add_stream(&crew->world.dispatcher, options,
                                                     &crew->engine, &error);
    if (status != LW_STATUS_OK) {
        fail_msg("%s", error.message);
    }
    world_start(&crew->world);
}

void
crew_end(struct crew *crew)
{
    crew_answer_rest(crew);
    lw_shutdown_begin(&crew->world.dispatcher, true);
    world_turn(&crew->world);
    crew_answer_rest(crew);
    world_deinit(&crew->world);
}

const char *
crew_task(const struct crew *crew, uint32_t i)
{
    static char text[256];
    size_t used = (size_t)snprintf(text, sizeof(text), "%s", i < crew->count ? "" : "-");
    const struct lw_delivery *first = i < crew->count ? crew->tasks[i] : NULL;
    for (const struct lw_delivery *at = first; at; at = at->task_next) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%lld",
                                 at == first ? "" : ",", (long long)at->message.position);
    }
    return text;
}

struct lw_delivery *
crew_member(const struct crew *crew, uint32_t i, uint32_t k)
{
    assert_true(i < crew->count);
    struct lw_delivery *member = crew->tasks[i];
    for (; k > 0; k--) {
        member = member->task_next;
        assert_non_null(member);
    }
    return member;
}

static void
hand_over(struct crew *crew, uint32_t i)
{
    struct lw_delivery *first = crew->tasks[i];
    crew->count--;
    memmove(&crew->tasks[i], &crew->tasks[i + 1],
            (crew->count - i) * sizeof(struct lw_delivery *));
    crew->engine.room++;
    crew->engine.has_changed = true;
    lw_engine_done(&crew->engine, first);
    lw_host_want_turn(crew->engine.host);
    world_turn(&crew->world);
}

static enum lw_verdict
verdict_of(char letter)
{
    switch (letter) {
    case 'o':
        return LW_OK;
    case 'r':
        return LW_RETRY;
    case 'd':
        return LW_DEAD;
    case 'x':
        return LW_DROP;
    default:
        return LW_ERROR;
    }
}

void
crew_answer(struct crew *crew, uint32_t i, const char *verdicts)
{
    assert_true(i < crew->count);
    struct lw_delivery *first = crew->tasks[i];
    first->is_each = true;
    first->task_answers = (uint32_t)strlen(verdicts);
    for (struct lw_delivery *at = first; at; at = at->task_next) {
        at->verdict = LW_PENDING;
        if (*verdicts) {
            at->verdict = (uint8_t)verdict_of(*verdicts++);
        }
    }
    hand_over(crew, i);
}

void
crew_answer_all(struct crew *crew, uint32_t i, enum lw_verdict verdict)
{
    assert_true(i < crew->count);
    crew->tasks[i]->verdict = (uint8_t)verdict;
    hand_over(crew, i);
}

void
crew_answer_rest(struct crew *crew)
{
    while (crew->count > 0) {
        crew_answer_all(crew, 0, LW_OK);
    }
}
