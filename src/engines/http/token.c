/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens from files. A stat of a local file costs about a microsecond and is made once a second
 * while there are requests; nothing watches, so an idle service touches nothing.
 */
#include "engines/http/token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/timers.h"

#define CODE "E0623"
#define LOOK_EVERY (1000 * LW_MS)

enum { TOKEN_BYTES_MAX = 64 * 1024 };

static enum lw_status
refuse(struct lw_error *ret_error, const char *what, const char *name, const char *why)
{
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, CODE, "%s%s%s %s", what,
                                         name ? " " : "", name ? name : "", why);
    lw_error_help(ret_error, "a file is read again when it changes, so a correct one is found "
                             "by itself; the token alone belongs into it, without \"Bearer\"");
    return status;
}

/* "file:///x", "file:/x" and "file:x" are paths; NULL: it is no such URL. */
static const char *
path_of(const char *source)
{
    if (strncmp(source, "file:", 5) != 0) {
        return NULL;
    }
    return strncmp(source, "file://", 7) == 0 ? source + 7 : source + 5;
}

static void
trim(struct lw_text *text)
{
    size_t start = 0;
    while (text->size > 0 && strchr(" \t\r\n", text->data[text->size - 1])) {
        text->size--;
    }
    while (start < text->size && strchr(" \t\r\n", text->data[start])) {
        start++;
    }
    if (text->data) {
        text->size -= start;
        memmove(text->data, text->data + start, text->size);
        text->data[text->size] = '\0';
    }
}

static const char *
find_fault(const struct lw_text *token)
{
    if (token->size == 0) {
        return "is empty";
    }
    if (strncasecmp(token->data, "bearer ", 7) == 0) {
        return "begins with \"Bearer\", which is added by itself";
    }
    for (size_t i = 0; i < token->size; i++) {
        if ((unsigned char)token->data[i] <= ' ' || (unsigned char)token->data[i] >= 0x7f) {
            return "holds blanks or control characters";
        }
    }
    return NULL;
}

static enum lw_status
read_file(struct lw_http_token *token, const char *path, struct lw_error *ret_error)
{
    char bytes[1024];
    size_t size = 0;
    FILE *file = fopen(path, "re");
    if (!file) {
        char why[128];
        (void)snprintf(why, sizeof why, "cannot be read: %s", strerrordesc_np(errno));
        return refuse(ret_error, "the token file", path, why);
    }
    while (token->fresh.size <= TOKEN_BYTES_MAX &&
           (size = fread(bytes, 1, sizeof bytes, file)) > 0) {
        lw_text_append_bytes(&token->fresh, bytes, size);
    }
    bool is_broken = ferror(file) != 0;
    (void)fclose(file);
    if (is_broken || token->fresh.size > TOKEN_BYTES_MAX) {
        return refuse(ret_error, "the token file", path,
                      is_broken ? "cannot be read" : "is larger than 64 KiB");
    }
    return LW_STATUS_OK;
}

static enum lw_status
read_source(struct lw_http_token *token, struct lw_error *ret_error)
{
    const char *path = path_of(token->source);
    const char *what = path ? "the token file" : "the token";
    const char *name = path;
    enum lw_status status = LW_STATUS_OK;
    lw_text_clear(&token->fresh);
    if (path) {
        status = read_file(token, path, ret_error);
    } else if (strncmp(token->source, "env:", 4) == 0) {
        name = token->source + 4;
        what = "the environment variable";
        lw_text_append(&token->fresh, getenv(name) ? getenv(name) : "");
    } else {
        lw_text_append(&token->fresh, token->source);
    }
    if (status != LW_STATUS_OK) {
        return status;
    }
    if (token->fresh.is_failed) {
        lw_text_deinit(&token->fresh);
        lw_text_init(&token->fresh);
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "out of memory");
    }
    trim(&token->fresh);
    const char *fault = find_fault(&token->fresh);
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
    const char *path = token->source ? path_of(token->source) : NULL;
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
    const char *path = path_of(source);
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
