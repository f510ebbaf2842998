/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the client's secrets are read from, in the forms of its options: base/secret.h opens the
 * files and checks tokens, since the broker's answer would not tell.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/secret.h"
#include "brokers/pulsar/auth_settings.h"

#define CODE "E0417"

enum { CLAIMS_BYTES_MAX = 16 * 1024 };

static enum lw_status
refuse(struct lw_error *ret_error, const char *what, const char *name, const char *why)
{
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, CODE, "%s \"%.200s\" %s",
                                         what, name, why);
    lw_error_help(ret_error, "it is read again at every connection and challenge, so a correct "
                             "one is found by itself");
    if (ret_error) {
        ret_error->is_retriable = true;
    }
    return status;
}

static enum lw_status
read_file(const char *what, const char *path, struct lw_text *out, struct lw_error *ret_error)
{
    char why[128];
    const char *fault = lw_secret_read_file(path, out, why, sizeof why);
    fault = !fault && out->is_failed ? "cannot be read: no memory" : fault;
    return fault ? refuse(ret_error, what, path, fault) : LW_STATUS_OK;
}

static enum lw_status
read_data_url(const char *source, struct lw_text *out, struct lw_error *ret_error)
{
    void *bytes = NULL;
    size_t size = 0;
    const char *comma = strchr(source, ',');
    bool is_base64 = comma && comma - source >= 7 && strncmp(comma - 7, ";base64", 7) == 0;
    if (!is_base64 || !lw_base64_decode(comma + 1, strlen(comma + 1), &bytes, &size)) {
        return refuse(ret_error, "private_key", "data:...",
                      "is not data:application/json;base64,...");
    }
    lw_text_append_bytes(out, bytes, size);
    lw_free(bytes);
    return LW_STATUS_OK;
}

enum lw_status
lw_pulsar_secret_read(const char *source, struct lw_text *out, struct lw_error *ret_error)
{
    if (strncmp(source, "data:", 5) == 0) {
        return read_data_url(source, out, ret_error);
    }
    const char *path = lw_secret_path(source);
    return read_file("the key file", path ? path : source, out, ret_error);
}

/* -- Tokens ---------------------------------------------------------------------------------------- */

static enum lw_status
read_token(const char *source, struct lw_text *out, const char **ret_what,
           const char **ret_name, struct lw_error *ret_error)
{
    const char *path = lw_secret_path(source);
    *ret_name = path ? path : "token";
    *ret_what = path ? "the token file" : "the property";
    if (path) {
        return read_file(*ret_what, path, out, ret_error);
    }
    if (strncmp(source, "env:", 4) == 0) {
        const char *value = getenv(source + 4);
        *ret_name = source + 4;
        *ret_what = "the environment variable";
        if (!value) {
            return refuse(ret_error, *ret_what, *ret_name, "is not set");
        }
        lw_text_append(out, value);
        return LW_STATUS_OK;
    }
    lw_text_append(out, strncmp(source, "token:", 6) == 0 ? source + 6 : source);
    return LW_STATUS_OK;
}

enum lw_status
lw_pulsar_token_read(const char *source, struct lw_text *out, struct lw_error *ret_error)
{
    const char *what = NULL;
    const char *name = NULL;
    enum lw_status status = read_token(source, out, &what, &name, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    if (out->is_failed) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a token");
    }
    const char *fault = lw_secret_tidy_token(out);
    return fault ? refuse(ret_error, what, name, fault) : LW_STATUS_OK;
}

/* The alphabet of URLs to the ordinary one, with its padding. */
static bool
to_base64(const char *text, size_t size, struct lw_text *out)
{
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        lw_text_append_char(out, (char)(c == '-' ? '+' : c == '_' ? '/' : c));
    }
    while (out->size % 4 != 0 && !out->is_failed) {
        lw_text_append_char(out, '=');
    }
    return !out->is_failed;
}

int64_t
lw_pulsar_token_expiry(const char *token)
{
    const char *first = strchr(token, '.');
    const char *second = first ? strchr(first + 1, '.') : NULL;
    if (!second || second - first > CLAIMS_BYTES_MAX) {
        return -1;
    }
    struct lw_text base64;
    void *claims = NULL;
    size_t size = 0;
    int64_t expiry = -1;
    lw_text_init(&base64);
    if (to_base64(first + 1, (size_t)(second - first - 1), &base64) && base64.size > 0 &&
        lw_base64_decode(base64.data, base64.size, &claims, &size)) {
        json_t *root = json_loadb(claims, size, 0, NULL);
        json_t *value = json_object_get(root, "exp");
        expiry = json_is_integer(value) ? json_integer_value(value) : -1;
        json_decref(root);
        lw_free(claims);
    }
    lw_text_deinit(&base64);
    return expiry;
}
