/* SPDX-License-Identifier: Apache-2.0 */
/* The owner's socket, PATH-socket: how it is made and reached. */
#ifndef LW_BROKERS_SPOOL_SOCKET_H
#define LW_BROKERS_SPOOL_SOCKET_H

#include <laneway/laneway.h>

/* Made anew, mode 0600, not blocking; -1: it cannot be (errno). The owner's lock is held. */
int lw_spool_socket_listen(const char *path);
/* Connected and blocking; -1: nobody listens (errno). */
int lw_spool_socket_connect(const char *path);
void lw_spool_socket_remove(const char *path);

#endif
