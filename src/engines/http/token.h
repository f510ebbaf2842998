/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bearer token of a handler: a text, file:PATH (file:///PATH) or env:NAME. Files are looked
 * at again before a request, once a second at most, and read when they changed; after an answer
 * of 401 at once. A file that cannot be read leaves the last token in force and says so once.
 * What is made of it is a whole line, `authorization: Bearer TOKEN`. The loop thread.
 */
#ifndef LW_ENGINES_HTTP_TOKEN_H
#define LW_ENGINES_HTTP_TOKEN_H

#include "base/text.h"

struct lw_http_token {
    char *source; /* NULL: none is sent */
    struct lw_text line;
    struct lw_text fresh; /* what is being read */
    uint32_t serial;      /* of the line: another one, another number */
    uint64_t look_at;     /* ns: not before */
    int64_t changed_ns;   /* of the file that was read */
    int64_t size;
    uint64_t inode;
    bool is_unread_said;
};

/* Reads it; `source` is copied, NULL is fine. Fails when it cannot be read, or is no token. */
enum lw_status
lw_http_token_init(struct lw_http_token *token, const char *source, struct lw_error *ret_error);
void lw_http_token_deinit(struct lw_http_token *token);
/*
 * Looks whether it changed. `at_once`: although it was looked at a moment ago. True when the line
 * is another one now. *ret_error gets a status other than OK when the source turned bad, once.
 */
bool lw_http_token_look(struct lw_http_token *token, uint64_t now, bool at_once,
                        struct lw_error *ret_error);
/* The line, or the null view. */
struct lw_bytes lw_http_token_line(const struct lw_http_token *token);

#endif
