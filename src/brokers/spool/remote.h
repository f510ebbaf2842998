/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing into a spool that another process owns. */
#ifndef LW_BROKERS_SPOOL_REMOTE_H
#define LW_BROKERS_SPOOL_REMOTE_H

#include "brokers/spool/client.h"

/*
 * Sends a batch and waits until the owner has committed it; every item gets its status. What an owner
 * had taken that ended is UNKNOWN, the rest UNAVAILABLE until there is an owner again. False: there
 * is none now, ret_error says so; *ret_is_taken: one may have something of it. Blocks; a thread of
 * its own.
 */
bool lw_spool_remote_publish(struct lw_spool_client *client, struct lw_spool_batch *batch,
                             bool *ret_is_taken, struct lw_error *ret_error);

#endif
