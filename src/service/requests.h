/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a running service can be asked: one table of requests, whatever way they come. A request
 * is a JSON object {"request": NAME, ...}; the answer is one too, {"ok": true, ...} or
 * {"ok": false, "code": ..., "error": ..., "help": ..., "exit": N}. Loop thread.
 *
 *   status   as: "json" (default) or "text"
 *   explain  topic, max, as
 *   pause    target (PIPELINE, PIPELINE/TOPIC or TOPIC), who, why, for_ms (0: until resumed)
 *   resume   target
 *   drain    finish and end, as SIGTERM does
 */
#ifndef LW_SERVICE_REQUESTS_H
#define LW_SERVICE_REQUESTS_H

#include "service/report.h"

struct lw_requests;

/* After all subscriptions were added; borrows the dispatcher, which must outlive it. */
enum lw_status
lw_requests_create(struct lw_dispatcher *dispatcher, struct lw_requests **ret_requests);
void lw_requests_destroy(struct lw_requests *requests);
const struct lw_report *lw_requests_report(const struct lw_requests *requests);

/* Answers the request in `line` (not terminated): appends one line of JSON. */
void lw_requests_answer(struct lw_requests *requests, const char *line, size_t length,
                        struct lw_text *out);

#endif
