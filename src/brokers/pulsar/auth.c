/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider: who asks waits in one of two lists. `ready` is answered by deferred work from what
 * is at hand (also from files, read then); `waiting` is answered when a token was fetched.
 */
#include "brokers/pulsar/auth.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/json.h"
#include "brokers/pulsar/auth_settings.h"
#include "brokers/pulsar/oauth.h"

struct lw_pulsar_auth {
    struct lw_host *host;
    struct lw_pulsar_auth_settings settings;
    struct lw_pulsar_oauth oauth;
    struct lw_list ready;
    struct lw_list waiting;
    struct lw_deferred deferred;
    struct lw_text data;   /* of the last answer */
    struct lw_error error; /* of the last attempt */
    bool has_error;
    int64_t given_expiry_s; /* of the last token given; -1: it does not say */
};

/* -- Credentials ---------------------------------------------------------------------------------- */

static enum lw_status
give_text(struct lw_pulsar_auth *auth, const char *method, struct lw_pulsar_credentials *out,
          struct lw_error *ret_error)
{
    if (auth->data.is_failed) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for credentials");
    }
    out->method = method;
    out->data = (struct lw_bytes){ auth->data.data ? auth->data.data : "", auth->data.size };
    return LW_STATUS_OK;
}

static enum lw_status
give_token(struct lw_pulsar_auth *auth, struct lw_pulsar_credentials *out,
           struct lw_error *ret_error)
{
    enum lw_status status = lw_pulsar_token_read(auth->settings.token, &auth->data, ret_error);
    return status == LW_STATUS_OK ? give_text(auth, "token", out, ret_error) : status;
}

static enum lw_status
give_fetched(struct lw_pulsar_auth *auth, struct lw_pulsar_credentials *out,
             struct lw_error *ret_error)
{
    /* It was judged usable when it was chosen, at most a turn ago. */
    lw_text_append(&auth->data, auth->oauth.value ? auth->oauth.value : "");
    return give_text(auth, "token", out, ret_error);
}

static enum lw_status
give_basic(struct lw_pulsar_auth *auth, struct lw_pulsar_credentials *out,
           struct lw_error *ret_error)
{
    const struct lw_pulsar_auth_settings *settings = &auth->settings;
    lw_text_format(&auth->data, "%s:%s", settings->username, settings->password);
    return give_text(auth, settings->method ? settings->method : "basic", out, ret_error);
}

/* `out` has the data borrowed from auth->data. */
static enum lw_status
give(struct lw_pulsar_auth *auth, struct lw_pulsar_credentials *out, struct lw_error *ret_error)
{
    lw_text_clear(&auth->data);
    *out = (struct lw_pulsar_credentials){ .method = "none" };
    switch (auth->settings.kind) {
    case LW_PULSAR_AUTH_NONE:
        return LW_STATUS_OK;
    case LW_PULSAR_AUTH_TLS:
        out->method = "tls";
        return LW_STATUS_OK;
    case LW_PULSAR_AUTH_TOKEN:
        return give_token(auth, out, ret_error);
    case LW_PULSAR_AUTH_BASIC:
        return give_basic(auth, out, ret_error);
    case LW_PULSAR_AUTH_OAUTH2:
        return give_fetched(auth, out, ret_error);
    }
    return LW_STATUS_INTERNAL;
}

/* -- Answering ------------------------------------------------------------------------------------ */

static void
answer_one(struct lw_pulsar_auth *auth, struct lw_pulsar_auth_request *request,
           const struct lw_error *failure)
{
    struct lw_pulsar_credentials credentials;
    struct lw_error error;
    request->is_asked = false;
    if (!failure && give(auth, &credentials, &error) != LW_STATUS_OK) {
        failure = &error;
    }
    auth->has_error = failure != NULL;
    if (failure) {
        auth->error = *failure;
        request->fn(request, NULL, &auth->error);
        return;
    }
    bool is_token = strcmp(credentials.method, "token") == 0;
    auth->given_expiry_s = is_token ? lw_pulsar_token_expiry(credentials.data.data) : -1;
    request->fn(request, &credentials, NULL);
}

/* Whoever asks again from inside its answer is answered next time. */
static void
answer_all(struct lw_pulsar_auth *auth, struct lw_list *list, const struct lw_error *failure)
{
    struct lw_list batch;
    lw_list_init(&batch);
    for (struct lw_list *node; (node = lw_list_pop(list)) != NULL;) {
        lw_list_push(&batch, node);
    }
    for (struct lw_list *node; (node = lw_list_pop(&batch)) != NULL;) {
        answer_one(auth, LW_CONTAINER(node, struct lw_pulsar_auth_request, link), failure);
    }
}

static void
on_ready(struct lw_deferred *deferred)
{
    struct lw_pulsar_auth *auth = LW_CONTAINER(deferred, struct lw_pulsar_auth, deferred);
    answer_all(auth, &auth->ready, NULL);
}

static void
on_fetched(const struct lw_error *error, void *user)
{
    struct lw_pulsar_auth *auth = user;
    if (error) {
        auth->error = *error;
        auth->has_error = true;
        lw_host_log(auth->host, LW_LOG_WARN, "pulsar.token_failed", error->message, "code=%s",
                    error->code);
    }
    answer_all(auth, &auth->waiting, error);
}

void
lw_pulsar_auth_ask(struct lw_pulsar_auth *auth, struct lw_pulsar_auth_request *request,
                   lw_pulsar_auth_fn fn, bool is_challenge)
{
    lw_assert(!request->is_asked);
    lw_list_init(&request->link);
    request->fn = fn;
    request->is_asked = true;
    bool is_fetched = auth->settings.kind == LW_PULSAR_AUTH_OAUTH2;
    bool is_ready = !is_fetched || lw_pulsar_oauth_token(&auth->oauth, is_challenge) != NULL;
    lw_list_push(is_ready ? &auth->ready : &auth->waiting, &request->link);
    if (is_ready) {
        lw_host_defer(auth->host, &auth->deferred);
    }
    if (is_fetched && (!is_ready || lw_pulsar_oauth_is_renewal_due(&auth->oauth))) {
        lw_pulsar_oauth_start(&auth->oauth);
    }
}

void
lw_pulsar_auth_cancel(struct lw_pulsar_auth_request *request)
{
    if (request->is_asked) {
        lw_list_remove(&request->link);
        request->is_asked = false;
    }
}

/* -- Life ---------------------------------------------------------------------------------------- */

enum lw_status
lw_pulsar_auth_create(struct lw_host *host, const struct lw_pulsar_auth_options *options,
                      struct lw_pulsar_auth **ret_auth, struct lw_error *ret_error)
{
    struct lw_pulsar_auth *auth = lw_alloc(sizeof *auth);
    if (!auth) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for credentials");
    }
    enum lw_status status = lw_pulsar_auth_settings_init(&auth->settings, options, ret_error);
    if (status != LW_STATUS_OK) {
        lw_free(auth);
        return status;
    }
    auth->host = host;
    auth->given_expiry_s = -1;
    lw_list_init(&auth->ready);
    lw_list_init(&auth->waiting);
    lw_text_init(&auth->data);
    lw_deferred_init(&auth->deferred, on_ready);
    lw_pulsar_oauth_init(&auth->oauth, host, &auth->settings, on_fetched, auth);
    *ret_auth = auth;
    return LW_STATUS_OK;
}

static void
forget_all(struct lw_list *list)
{
    for (struct lw_list *node; (node = lw_list_pop(list)) != NULL;) {
        LW_CONTAINER(node, struct lw_pulsar_auth_request, link)->is_asked = false;
    }
}

void
lw_pulsar_auth_destroy(struct lw_pulsar_auth *auth)
{
    if (!auth) {
        return;
    }
    forget_all(&auth->ready);
    forget_all(&auth->waiting);
    lw_deferred_cancel(&auth->deferred);
    lw_pulsar_oauth_deinit(&auth->oauth);
    lw_pulsar_auth_settings_deinit(&auth->settings);
    lw_text_deinit(&auth->data);
    lw_free(auth);
}

enum lw_pulsar_auth_kind
lw_pulsar_auth_kind(const struct lw_pulsar_auth *auth)
{
    return auth->settings.kind;
}

const char *
lw_pulsar_auth_certificate_file(const struct lw_pulsar_auth *auth)
{
    return auth->settings.certificate_file;
}

const char *
lw_pulsar_auth_key_file(const struct lw_pulsar_auth *auth)
{
    return auth->settings.key_file;
}

const struct lw_error *
lw_pulsar_auth_error(const struct lw_pulsar_auth *auth)
{
    return auth->has_error ? &auth->error : NULL;
}

/* -- A refusal -------------------------------------------------------------------------------------- */

static void
help_refused(struct lw_pulsar_auth *auth, struct lw_error *ret_error)
{
    char when[32];
    int64_t expiry_s = auth->given_expiry_s;
    bool is_expired = expiry_s >= 0 && expiry_s < INT64_MAX / 1000 &&
                      expiry_s * 1000 <= auth->host->ops->wall_ms(auth->host);
    if (auth->settings.kind == LW_PULSAR_AUTH_NONE) {
        lw_error_help(ret_error,
                      "it wants credentials and none are configured: give auth.token, "
                      "or auth.plugin and auth.params. Still trying; nothing is "
                      "lost.");
    } else if (is_expired) {
        lw_json_time(expiry_s * 1000, when);
        lw_error_help(ret_error,
                      "the token expired at %s. Put a new one in its place: it is "
                      "read again at every attempt. Nothing is lost.",
                      when);
    } else if (auth->settings.kind == LW_PULSAR_AUTH_TLS) {
        lw_error_help(ret_error, "the broker must trust the authority that signed the "
                                 "certificate in tls.certificate_file. Still trying; "
                                 "nothing is lost.");
    } else {
        lw_error_help(ret_error,
                      "check auth.token, or auth.plugin and auth.params: the key that "
                      "signed it, the user, the method. Still trying; nothing is "
                      "lost.");
    }
}

void
lw_pulsar_auth_explain(struct lw_pulsar_auth *auth, const char *broker, const char *reason,
                       struct lw_error *ret_error)
{
    (void)lw_error_set(ret_error, LW_STATUS_DENIED, "E0502",
                       "broker \"%s\" refused the authentication: %s", broker, reason);
    help_refused(auth, ret_error);
    if (ret_error) {
        ret_error->is_retriable = true;
    }
}
