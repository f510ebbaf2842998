/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the little programs are that Laneway installs for itself (libexec/laneway): beside the
 * command or the library that runs, so that a build folder and a moved installation work, else
 * under the prefix that was configured. Only one that belongs to root or to us and that not
 * everybody may write is taken, in folders of which the same is true, since it may be run as root.
 */
#ifndef LW_BASE_INSTALLED_H
#define LW_BASE_INSTALLED_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the path of the program `name`; false when there is none, or it does not fit. */
bool lw_installed_find(const char *name, char *ret_path, size_t size);
/* The same, beginning at the file `from`; for tests. */
bool lw_installed_find_near(const char *from, const char *name, char *ret_path, size_t size);

#endif
