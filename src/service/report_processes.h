/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of engine processes in the status: batches and why they were handed over, what a
 * message takes on its way there and back, wake-ups, crashes.
 */
#ifndef LW_SERVICE_REPORT_PROCESSES_H
#define LW_SERVICE_REPORT_PROCESSES_H

#include <laneway/plugin.h>

#include "base/json.h"

/* Adds the key "processes" to the open object of an engine; nothing for another engine. */
void lw_report_processes_json(struct lw_json *json, const struct lw_engine *engine);

#endif
