/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of secrets are small and local, so they are read at once. A token is checked for what a
 * server's answer would not tell: a line end, a word too much, a blank within.
 */
#include "base/secret.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *
lw_secret_path(const char *source)
{
    if (strncmp(source, "file:", 5) != 0) {
        return NULL;
    }
    return strncmp(source, "file://", 7) == 0 ? source + 7 : source + 5;
}

const char *
lw_secret_read_file(const char *path, struct lw_text *out, char *why, size_t size)
{
    char bytes[4096];
    size_t got = 0;
    size_t before = out->size;
    FILE *file = fopen(path, "re");
    if (!file) {
        (void)snprintf(why, size, "cannot be read: %s", strerrordesc_np(errno));
        return why;
    }
    while (out->size - before <= LW_SECRET_BYTES_MAX && !out->is_failed &&
           (got = fread(bytes, 1, sizeof bytes, file)) > 0) {
        lw_text_append_bytes(out, bytes, got);
    }
    bool is_broken = ferror(file) != 0;
    (void)fclose(file);
    if (is_broken) {
        return "cannot be read";
    }
    return out->size - before > LW_SECRET_BYTES_MAX ? "is larger than 64 KiB" : NULL;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void
trim(struct lw_text *text)
{
    size_t start = 0;
    while (text->size > 0 && is_blank(text->data[text->size - 1])) {
        text->size--;
    }
    while (start < text->size && is_blank(text->data[start])) {
        start++;
    }
    if (text->data) {
        text->size -= start;
        memmove(text->data, text->data + start, text->size);
        text->data[text->size] = '\0';
    }
}

const char *
lw_secret_tidy_token(struct lw_text *token)
{
    trim(token);
    if (token->size == 0) {
        return "is empty";
    }
    if (strncasecmp(token->data, "bearer ", 7) == 0) {
        return "begins with \"Bearer\", which is no part of the token";
    }
    for (size_t i = 0; i < token->size; i++) {
        if ((unsigned char)token->data[i] <= ' ' || (unsigned char)token->data[i] >= 0x7f) {
            return "holds blanks or control characters";
        }
    }
    return NULL;
}
