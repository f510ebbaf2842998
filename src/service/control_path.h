/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where control sockets lie: in $XDG_RUNTIME_DIR, else /run/laneway if it may be written, else
 * laneway-UID under the temporary directory, which is made for its user alone. Both sides use
 * the same rules: the service to make its socket, the command to find the only one.
 */
#ifndef LW_SERVICE_CONTROL_PATH_H
#define LW_SERVICE_CONTROL_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include <laneway/laneway.h>

enum { LW_CONTROL_PATH_MAX = 108 }; /* sun_path of Linux, the zero included */

/* Writes DIRECTORY/NAME.sock for a new socket; makes the directory under the temporary one. */
enum lw_status lw_control_path_make(const char *name, char out[LW_CONTROL_PATH_MAX],
                                    struct lw_error *ret_error);
/* Writes the path with -PID before ".sock". */
bool lw_control_path_with_pid(const char *path, long pid, char out[LW_CONTROL_PATH_MAX]);
/* Connects; -1 with errno. Blocking; the caller closes. */
int lw_control_path_connect(const char *path);

struct lw_control_paths {
    char paths[32][LW_CONTROL_PATH_MAX];
    size_t count;
};
/* Lists sockets that somebody answers on, in all the places; at most 32. */
void lw_control_paths_find(struct lw_control_paths *ret_paths);

#endif
