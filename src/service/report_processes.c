/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes them: counts since the start, averages over one message of each batch, and the last
 * value beside each average. All times are nanoseconds, since a hand-over under load takes a
 * few hundred. Loop thread.
 */
#include "service/report_processes.h"

#include "engines/processes/engine.h"

static void
put(struct lw_json *json, const char *name, uint64_t value)
{
    lw_json_key(json, name);
    lw_json_int(json, (int64_t)value);
}

static void
put_flushes(struct lw_json *json, const struct lw_processes_figures *figures)
{
    static const char *const reasons[LW_PROCESSES_FLUSH_COUNT] = {
        [LW_PROCESSES_BY_SIZE] = "size",
        [LW_PROCESSES_BY_TIMER] = "timer",
        [LW_PROCESSES_BY_DEMAND] = "demand",
        [LW_PROCESSES_BY_RESIDENCE] = "demand_min_residence",
        [LW_PROCESSES_BY_CLOSE] = "close",
    };
    uint64_t batches = 0;
    lw_json_key(json, "flushes");
    lw_json_object(json);
    for (int i = 0; i < LW_PROCESSES_FLUSH_COUNT; i++) {
        put(json, reasons[i], figures->flushes[i]);
        batches += figures->flushes[i];
    }
    lw_json_object_end(json);
    put(json, "batch_size", batches > 0 ? figures->messages / batches : 0);
    put(json, "batch_size_last", figures->last_size);
    put(json, "batch_wait_last_ns", figures->last_wait_ns);
}

static uint64_t
average(uint64_t sum, uint64_t count)
{
    return count > 0 ? sum / count : 0;
}

static void
put_times(struct lw_json *json, const struct lw_processes_figures *figures)
{
    put(json, "handover_ns", average(figures->handover_ns, figures->timed));
    put(json, "handover_last_ns", figures->last_handover_ns);
    put(json, "execution_ns", average(figures->execution_ns, figures->timed));
    put(json, "execution_last_ns", figures->last_execution_ns);
    put(json, "return_ns", average(figures->return_ns, figures->timed));
    put(json, "return_last_ns", figures->last_return_ns);
}

void
lw_report_processes_json(struct lw_json *json, const struct lw_engine *engine)
{
    struct lw_processes_figures figures;
    if (!lw_processes_engine_is(engine)) {
        return;
    }
    lw_processes_engine_figures(engine, &figures);
    lw_json_key(json, "processes");
    lw_json_object(json);
    put(json, "workers", figures.workers);
    put(json, "messages", figures.messages);
    put_flushes(json, &figures);
    put(json, "buffered", figures.buffered);
    put(json, "buffered_ns", figures.buffered_ns);
    put_times(json, &figures);
    put(json, "worker_wakes", figures.worker_wakes);
    put(json, "owner_wakes", figures.owner_wakes);
    put(json, "large", figures.items);
    put(json, "crashes", figures.crashes);
    put(json, "charged", figures.charged);
    put(json, "recycled", figures.recycled);
    lw_json_object_end(json);
}
