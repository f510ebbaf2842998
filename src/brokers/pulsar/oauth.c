/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discovery, then the request for a token. An answer is judged strictly where it decides (the
 * endpoint, the token) and kindly where servers differ (expires_in as a text, or absent).
 */
#include "brokers/pulsar/oauth.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define CODE "E0513"

enum { LIFE_MS = 300 * 1000, FRESH_MS = 1000 };

static int64_t
wall_ms(const struct lw_pulsar_oauth *oauth)
{
    return oauth->host->ops->wall_ms(oauth->host);
}

static void
tell(struct lw_pulsar_oauth *oauth, const struct lw_error *error)
{
    if (error) {
        lw_free(oauth->endpoint); /* it may have moved */
        oauth->endpoint = NULL;
    }
    oauth->fn(error, oauth->user);
}

static void
tell_failure(struct lw_pulsar_oauth *oauth, const char *where, const char *why)
{
    struct lw_error error;
    (void)lw_error_set(&error, LW_STATUS_UNAVAILABLE, CODE,
                       "no token could be fetched from \"%.150s\": %s%.250s",
                       oauth->settings->issuer_url, where, why);
    lw_error_help(&error, "check issuer_url, audience, scope and the client's id and secret in "
                          "auth_params. Still trying; nothing is lost.");
    error.is_retriable = true;
    tell(oauth, &error);
}

/* What the server says went wrong, if it says so in JSON; never its whole answer. */
static void
tell_answer(struct lw_pulsar_oauth *oauth, const char *where,
            const struct lw_fetch_answer *answer)
{
    char why[256];
    json_t *root = json_loadb(answer->data, answer->size, 0, NULL);
    const char *error = json_string_value(json_object_get(root, "error"));
    const char *text = json_string_value(json_object_get(root, "error_description"));
    if (answer->code != 0 && error) {
        (void)snprintf(why, sizeof why, "answers %ld: %.60s%s%.120s", answer->code, error,
                       text ? ", " : "", text ? text : "");
    } else {
        (void)snprintf(why, sizeof why, "%.250s", answer->failure);
    }
    json_decref(root);
    tell_failure(oauth, where, why);
}

/* -- The token ------------------------------------------------------------------------------------- */

static int64_t
life_ms_of(json_t *root, const char *token, int64_t now_ms)
{
    json_t *member = json_object_get(root, "expires_in");
    int64_t seconds = 0;
    if (json_is_number(member)) {
        double number = json_number_value(member);
        seconds = number > 0 && number < 1e9 ? (int64_t)number : 0;
    } else if (json_is_string(member)) {
        (void)lw_text_to_int(json_string_value(member), &seconds);
    }
    int64_t expiry = seconds > 0 ? -1 : lw_pulsar_token_expiry(token);
    if (expiry > 0 && expiry < INT64_MAX / 1000 && expiry * 1000 > now_ms) {
        return expiry * 1000 - now_ms;
    }
    return seconds > 0 && seconds < 1000000000 ? seconds * 1000 : LIFE_MS;
}

/* NULL when the answer holds a token, else what is wrong with it. */
static const char *
keep_token(struct lw_pulsar_oauth *oauth, const struct lw_fetch_answer *answer)
{
    json_t *root = json_loadb(answer->data, answer->size, 0, NULL);
    const char *value = json_string_value(json_object_get(root, "access_token"));
    int64_t now_ms = wall_ms(oauth);
    int64_t life_ms = value ? life_ms_of(root, value, now_ms) : 0;
    char *copy = value && *value ? lw_copy_text(value) : NULL;
    json_decref(root);
    if (!copy) {
        return "the answer holds no access_token";
    }
    lw_free(oauth->value);
    oauth->value = copy;
    oauth->fetched_ms = now_ms;
    oauth->expires_ms = now_ms + life_ms;
    oauth->renew_ms = now_ms + life_ms / 10 * 9;
    return NULL;
}

static void
on_token(const struct lw_fetch_answer *answer, void *user)
{
    struct lw_pulsar_oauth *oauth = user;
    const char *why = answer->failure ? NULL : keep_token(oauth, answer);
    if (answer->failure) {
        tell_answer(oauth, "the token endpoint ", answer);
    } else if (why) {
        tell_failure(oauth, "", why);
    } else {
        tell(oauth, NULL);
    }
}

static void
add_field(struct lw_text *form, const char *name, const char *value)
{
    if (value && *value) {
        lw_text_format(form, "&%s=", name);
        lw_fetch_escape(form, value);
    }
}

static void
request_token(struct lw_pulsar_oauth *oauth, const char *client_id, const char *client_secret)
{
    const struct lw_pulsar_auth_settings *settings = oauth->settings;
    struct lw_text form;
    lw_text_init(&form);
    lw_text_append(&form, "grant_type=client_credentials");
    add_field(&form, "client_id", client_id);
    add_field(&form, "client_secret", client_secret);
    add_field(&form, "audience", settings->audience);
    add_field(&form, "scope", settings->scope);
    if (form.is_failed) {
        tell_failure(oauth, "", "no memory for the request");
    } else {
        struct lw_fetch_request request = { .url = oauth->endpoint,
                                            .form = form.data,
                                            .ca_file = settings->trust_file };
        lw_fetch_start(&oauth->fetch, &request, on_token, oauth);
    }
    lw_text_deinit(&form);
}

/* With the discovery document there: the id and the secret, then the request. */
static void
read_key(struct lw_pulsar_oauth *oauth)
{
    const struct lw_pulsar_auth_settings *settings = oauth->settings;
    if (!settings->private_key) {
        request_token(oauth, settings->client_id, settings->client_secret);
        return;
    }
    struct lw_text text;
    struct lw_error error;
    lw_text_init(&text);
    enum lw_status status = lw_pulsar_secret_read(settings->private_key, &text, &error);
    json_t *root = json_loadb(text.data ? text.data : "", text.size, 0, NULL);
    const char *id = json_string_value(json_object_get(root, "client_id"));
    const char *secret = json_string_value(json_object_get(root, "client_secret"));
    if (status != LW_STATUS_OK) {
        tell(oauth, &error);
    } else if (!id || !secret) {
        tell_failure(oauth, "", "the key file is no JSON with client_id and client_secret");
    } else {
        request_token(oauth, id, secret);
    }
    json_decref(root);
    lw_text_deinit(&text);
}

/* -- Discovery -------------------------------------------------------------------------------------- */

/* A secret sent to an https issuer's choice of endpoint must not leave it in clear. */
static bool
is_endpoint(const char *text, const char *issuer)
{
    return strncmp(text, "https://", 8) == 0 ||
           (strncmp(text, "http://", 7) == 0 && strncmp(issuer, "http://", 7) == 0);
}

static void
on_discovered(const struct lw_fetch_answer *answer, void *user)
{
    struct lw_pulsar_oauth *oauth = user;
    if (answer->failure) {
        tell_answer(oauth, "the discovery document: ", answer);
        return;
    }
    json_t *root = json_loadb(answer->data, answer->size, 0, NULL);
    const char *value = json_string_value(json_object_get(root, "token_endpoint"));
    bool is_fine = value && is_endpoint(value, oauth->settings->issuer_url);
    oauth->endpoint = is_fine ? lw_copy_text(value) : NULL;
    json_decref(root);
    if (oauth->endpoint) {
        read_key(oauth);
    } else {
        tell_failure(oauth, "", "the discovery document names no usable token_endpoint");
    }
}

static void
discover(struct lw_pulsar_oauth *oauth)
{
    const char *issuer = oauth->settings->issuer_url;
    size_t size = strlen(issuer);
    size_t end = size > 0 && issuer[size - 1] == '/' ? size - 1 : size;
    struct lw_text url;
    lw_text_init(&url);
    lw_text_append_bytes(&url, issuer, end);
    lw_text_append(&url, "/.well-known/openid-configuration");
    struct lw_fetch_request request = { .url = url.is_failed ? "" : url.data,
                                        .ca_file = oauth->settings->trust_file };
    lw_fetch_start(&oauth->fetch, &request, on_discovered, oauth);
    lw_text_deinit(&url);
}

/* fn must not run inside the start, and a bad key file would call it: so the start is deferred. */
static void
on_start(struct lw_deferred *deferred)
{
    struct lw_pulsar_oauth *oauth = LW_CONTAINER(deferred, struct lw_pulsar_oauth, deferred);
    oauth->is_starting = false;
    if (oauth->endpoint) {
        read_key(oauth);
    } else {
        discover(oauth);
    }
}

void
lw_pulsar_oauth_start(struct lw_pulsar_oauth *oauth)
{
    if (!oauth->is_starting && !lw_fetch_is_busy(&oauth->fetch)) {
        oauth->is_starting = true;
        lw_host_defer(oauth->host, &oauth->deferred);
    }
}

/* -- State ------------------------------------------------------------------------------------------- */

const char *
lw_pulsar_oauth_token(const struct lw_pulsar_oauth *oauth, bool is_doubted)
{
    int64_t now_ms = wall_ms(oauth);
    bool is_usable = oauth->value && now_ms < oauth->expires_ms &&
                     (!is_doubted || now_ms < oauth->fetched_ms + FRESH_MS);
    return is_usable ? oauth->value : NULL;
}

bool
lw_pulsar_oauth_is_renewal_due(const struct lw_pulsar_oauth *oauth)
{
    return !oauth->value || wall_ms(oauth) >= oauth->renew_ms;
}

void
lw_pulsar_oauth_init(struct lw_pulsar_oauth *oauth, struct lw_host *host,
                     const struct lw_pulsar_auth_settings *settings, lw_pulsar_oauth_fn fn,
                     void *user)
{
    memset(oauth, 0, sizeof *oauth);
    oauth->host = host;
    oauth->settings = settings;
    oauth->fn = fn;
    oauth->user = user;
    lw_deferred_init(&oauth->deferred, on_start);
    lw_fetch_init(&oauth->fetch, host);
}

void
lw_pulsar_oauth_deinit(struct lw_pulsar_oauth *oauth)
{
    lw_deferred_cancel(&oauth->deferred);
    lw_fetch_deinit(&oauth->fetch);
    lw_free(oauth->endpoint);
    lw_free(oauth->value);
}
