/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets from where people put them: a file named by a URL, and a token as editors and copying
 * leave it. Who reads one decides when, and words the error around what is said here. Any thread.
 */
#ifndef LW_BASE_SECRET_H
#define LW_BASE_SECRET_H

#include <stddef.h>

#include "base/text.h"

#define LW_SECRET_BYTES_MAX ((size_t)64 * 1024)

/* The path of "file:///x", "file:/x" and "file:x"; NULL: it is no such URL. */
const char *lw_secret_path(const char *source);
/*
 * Appends what the file holds, at most LW_SECRET_BYTES_MAX. Returns NULL, or why not, to be said
 * behind its name; `why` is room for that. Without memory `out` says so (is_failed).
 */
const char *lw_secret_read_file(const char *path, struct lw_text *out, char *why, size_t size);
/* Drops white space at both ends; returns NULL, or what is wrong with it as a token. */
const char *lw_secret_tidy_token(struct lw_text *token);

#endif
