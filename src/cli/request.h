/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a running service over its control socket: see service/requests.h for the requests. */
#ifndef LW_CLI_REQUEST_H
#define LW_CLI_REQUEST_H

#include "base/json.h"
#include "cli/command.h"

/* Begins {"request": NAME into `text`, which it initialises. */
void lw_cli_request_begin(struct lw_json *json, struct lw_text *text, const char *name);
/*
 * Ends and sends the request to --url, LANEWAY_URL or the only socket there is, and waits for the
 * answer. On success prints the answer's `text`, or with --json the object at `key`, or nothing
 * when both are absent. Returns the exit code. Frees `text`.
 */
int lw_cli_request_send(struct lw_cli *cli, struct lw_json *json, struct lw_text *text,
                        const char *key);

#endif
