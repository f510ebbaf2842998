/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of tasks. Spare ones are reused first in, first out, so that ids look like a count
 * in a quiet program's log. Ids only go up; they stay below 2^53, where JSON numbers of other
 * languages stop being exact, for longer than a process lives.
 */
#include "engines/programs/tasks.h"

#include "base/alloc.h"
#include "base/assert.h"

bool
lw_programs_tasks_init(struct lw_programs_tasks *tasks, uint32_t capacity)
{
    tasks->all = lw_alloc_array(capacity, sizeof *tasks->all);
    tasks->capacity = capacity;
    tasks->count = 0;
    tasks->rounds = 0;
    lw_list_init(&tasks->spare);
    for (uint32_t i = 0; tasks->all && i < capacity; i++) {
        lw_list_push(&tasks->spare, &tasks->all[i].link);
    }
    return tasks->all != NULL;
}

void
lw_programs_tasks_deinit(struct lw_programs_tasks *tasks)
{
    lw_free(tasks->all);
    tasks->all = NULL;
}

struct lw_programs_task *
lw_programs_tasks_take(struct lw_programs_tasks *tasks, struct lw_delivery *delivery)
{
    struct lw_list *node = lw_list_pop(&tasks->spare);
    if (!node) {
        return NULL;
    }
    struct lw_programs_task *task = LW_CONTAINER(node, struct lw_programs_task, link);
    task->delivery = delivery;
    task->worker = NULL;
    task->id = 0;
    task->deadline = LW_NEVER;
    task->has_clock = false;
    task->is_extended = false;
    task->is_late = false;
    delivery->engine_data = task;
    tasks->count++;
    return task;
}

void
lw_programs_tasks_give(struct lw_programs_tasks *tasks, struct lw_programs_task *task)
{
    lw_assert(task->delivery != NULL);
    task->delivery->engine_data = NULL;
    task->delivery = NULL;
    task->worker = NULL;
    task->id = 0;
    lw_list_remove(&task->link);
    lw_list_push(&tasks->spare, &task->link);
    tasks->count--;
}

int64_t
lw_programs_tasks_name(struct lw_programs_tasks *tasks, struct lw_programs_task *task)
{
    int64_t place = task - tasks->all;
    int64_t id = tasks->rounds - tasks->rounds % tasks->capacity + place;
    while (id <= tasks->rounds) {
        id += tasks->capacity; /* later than every id given before, so none comes twice */
    }
    tasks->rounds = id;
    task->id = id;
    return id;
}

struct lw_programs_task *
lw_programs_tasks_find(const struct lw_programs_tasks *tasks, int64_t id)
{
    if (id <= 0) {
        return NULL;
    }
    struct lw_programs_task *task = &tasks->all[id % tasks->capacity];
    return task->id == id ? task : NULL;
}
