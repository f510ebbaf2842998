/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens from files. A stat of a local file costs about a microsecond and is made once a second
 * while there are requests; nothing watches, so an idle service touches nothing.
 */
#include "engines/http/token.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/secret.h"
#include "base/timers.h"

#define CODE "E0623"
#define LOOK_EVERY (1000 * LW_MS)

static enum lw_status
refuse(struct lw_error *ret_error, const char *what, const char *name, const char *why)
{
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, CODE, "%s%s%s %s", what,
                                         name ? " " : "", name ? name : "", why);
    lw_error_help(ret_error, "a file is read again when it changes, so a correct one is found "
                             "by itself; the token alone belongs into it, without \"Bearer\"");
    return status;
}

static enum lw_status
read_source(struct lw_http_token *token, struct lw_error *ret_error)
{
    const char *path = lw_secret_path(token->source);
    const char *what = path ? "the token file" : "the token";
    const char *name = path;
    const char *fault = NULL;
    char why[128];
    lw_text_clear(&token->fresh);
    if (path) {
        fault = lw_secret_read_file(path, &token->fresh, why, sizeof why);
    } else if (strncmp(token->source, "env:", 4) == 0) {
        name = token->source + 4;
        what = "the environment variable";
        lw_text_append(&token->fresh, getenv(name) ? getenv(name) : "");
    } else {
        lw_text_append(&token->fresh, token->source);
    }
    if (token->fresh.is_failed) {
        lw_text_deinit(&token->fresh);
        lw_text_init(&token->fresh);
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    fault = fault ? fault : lw_secret_tidy_token(&token->fresh);
    return fault ? refuse(ret_error, what, name, fault) : LW_STATUS_OK;
}

/* Makes what was read the token in force; true when it is another one. */
static bool
take(struct lw_http_token *token)
{
    static const char prefix[] = "authorization: Bearer ";
    struct lw_bytes before = lw_http_token_line(token);
    size_t length = sizeof prefix - 1;
    if (before.size == length + token->fresh.size && before.data &&
        memcmp(token->line.data + length, token->fresh.data, token->fresh.size) == 0) {
        return false;
    }
    struct lw_text line;
    lw_text_init(&line);
    lw_text_append(&line, prefix);
    lw_text_append_bytes(&line, token->fresh.data, token->fresh.size);
    if (line.is_failed) {
        lw_text_deinit(&line);
        token->changed_ns = -1; /* looked at again */
        return false;
    }
    lw_text_deinit(&token->line);
    token->line = line;
    token->serial++;
    return true;
}

static bool
has_changed(struct lw_http_token *token, const char *path)
{
    struct stat state;
    if (stat(path, &state) != 0) {
        bool was_there = token->changed_ns != 0;
        token->changed_ns = 0;
        return was_there;
    }
    int64_t changed_ns = (int64_t)state.st_mtim.tv_sec * 1000000000 + state.st_mtim.tv_nsec;
    bool is_same = token->changed_ns == changed_ns && token->size == state.st_size &&
                   token->inode == state.st_ino;
    token->changed_ns = changed_ns;
    token->size = state.st_size;
    token->inode = state.st_ino;
    return !is_same;
}

bool
lw_http_token_look(struct lw_http_token *token, uint64_t now, bool at_once,
                   struct lw_error *ret_error)
{
    ret_error->status = LW_STATUS_OK;
    const char *path = token->source ? lw_secret_path(token->source) : NULL;
    if (!path || (!at_once && now < token->look_at)) {
        return false;
    }
    token->look_at = now + LOOK_EVERY;
    if (!has_changed(token, path) && !at_once) {
        return false;
    }
    if (read_source(token, ret_error) == LW_STATUS_OK) {
        token->is_unread_said = false;
        return take(token);
    }
    if (ret_error->status == LW_STATUS_NO_MEMORY) {
        token->changed_ns = -1; /* read again at the next look */
    }
    if (token->is_unread_said) {
        ret_error->status = LW_STATUS_OK;
    }
    token->is_unread_said = true;
    return false;
}

enum lw_status
lw_http_token_init(struct lw_http_token *token, const char *source, struct lw_error *ret_error)
{
    *token = (struct lw_http_token){ .source = lw_copy_text(source) };
    lw_text_init(&token->line);
    lw_text_init(&token->fresh);
    if (!source) {
        return LW_STATUS_OK;
    }
    if (!token->source) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    const char *path = lw_secret_path(source);
    if (path) {
        (void)has_changed(token, path);
    }
    enum lw_status status = read_source(token, ret_error);
    if (status == LW_STATUS_OK && !take(token)) {
        status = lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    return status;
}

void
lw_http_token_deinit(struct lw_http_token *token)
{
    lw_free(token->source);
    token->source = NULL;
    lw_text_deinit(&token->line);
    lw_text_deinit(&token->fresh);
}

struct lw_bytes
lw_http_token_line(const struct lw_http_token *token)
{
    return (struct lw_bytes){ token->line.size > 0 ? token->line.data : NULL,
                              token->line.size };
}
