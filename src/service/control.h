/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket: requests as lines of JSON over a unix socket that only its user can open
 * (mode 0600), served on the loop. One line in, one line out, in order. Bounded: 16 clients, a
 * request of at most 64 KiB, and no new request is read from a client that does not read its
 * answers. Loop thread.
 */
#ifndef LW_SERVICE_CONTROL_H
#define LW_SERVICE_CONTROL_H

#include "service/requests.h"

struct lw_control;

/*
 * Listens on `path`, or in the usual place under the dispatcher's name when `path` is NULL.
 * When a live process holds the path, NAME-PID.sock is used instead and logged; a dead one's is
 * replaced. Borrows `requests`.
 */
enum lw_status lw_control_open(struct lw_requests *requests, const char *path,
                               struct lw_control **ret_control, struct lw_error *ret_error);
/* Closes all, removes the socket's file. NULL is fine. */
void lw_control_close(struct lw_control *control);
const char *lw_control_path(const struct lw_control *control);

#endif
