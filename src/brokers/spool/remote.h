/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing into a spool that another process owns. */
#ifndef LW_BROKERS_SPOOL_REMOTE_H
#define LW_BROKERS_SPOOL_REMOTE_H

#include "brokers/spool/client.h"

/*
 * Sends a batch and waits until the owner has committed it; every item gets its status. After the
 * owner's end all that was sent is UNKNOWN, and all later UNAVAILABLE until there is an owner again.
 * False: there is none now, ret_error says so. Blocks; a thread of its own.
 */
bool lw_spool_remote_publish(struct lw_spool_client *client, struct lw_spool_batch *batch,
                             struct lw_error *ret_error);

#endif
