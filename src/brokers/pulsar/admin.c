/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin API, for the command. Requests go one after another over a loop of their own, which is
 * turned here until the answer or the time-out, so nothing else of the program runs meanwhile.
 * Credentials are the broker's: a token as bearer, basic as basic, a certificate by TLS. Asking
 * creates nothing. A topic without partitions counts as one.
 */
#include "brokers/pulsar/admin.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/fetch.h"
#include "base/json.h"
#include "base/loop.h"
#include "brokers/pulsar/names.h"

enum { HTTP_OK = 200, HTTP_CREATED = 201, HTTP_NO_CONTENT = 204, HTTP_BAD = 400 };
enum { HTTP_NOBODY = 401, HTTP_FORBIDDEN = 403, HTTP_MISSING = 404, HTTP_CONFLICT = 409 };
enum { MINUTE_MS = 60000 };

struct admin {
    struct lw_pulsar_client *client;
    struct lw_loop *loop;
    struct lw_fetch fetch;
    struct lw_text base; /* URL without a slash at its end */
    struct lw_text url;
    struct lw_text authorization;
    uint64_t deadline; /* of the loop's time */
    /* credentials */
    struct lw_pulsar_auth_request ask;
    struct lw_error failure;
    bool is_known;
    /* the answer */
    bool is_answered;
    long code; /* 0: none */
    struct lw_pulsar_admin_answer answer;
};

/* -- Credentials ----------------------------------------------------------------------------------- */

/* fetch.c writes basic credentials itself, from user and password; here they are one text. */
static void
write_basic(struct lw_text *out, struct lw_bytes data)
{
    struct lw_text quoted;
    struct lw_json json;
    lw_text_init(&quoted);
    lw_json_init(&json, &quoted);
    lw_json_base64(&json, data);
    lw_text_append(out, "Authorization: Basic ");
    if (quoted.size >= 2) {
        lw_text_append_bytes(out, quoted.data + 1, quoted.size - 2);
    }
    out->is_failed |= quoted.is_failed;
    lw_text_deinit(&quoted);
}

void
lw_pulsar_admin_authorize(const struct lw_pulsar_client *client,
                          const struct lw_pulsar_credentials *credentials, struct lw_text *out)
{
    if (strcmp(credentials->method, "token") == 0) {
        lw_text_append(out, "Authorization: Bearer ");
        lw_text_append_bytes(out, credentials->data.data, credentials->data.size);
    } else if (lw_pulsar_auth_kind(client->auth) == LW_PULSAR_AUTH_BASIC) {
        write_basic(out, credentials->data);
    }
}

static void
on_credentials(struct lw_pulsar_auth_request *request,
               const struct lw_pulsar_credentials *credentials, const struct lw_error *error)
{
    struct admin *admin = LW_CONTAINER(request, struct admin, ask);
    admin->is_known = true;
    if (error) {
        admin->failure = *error;
    } else {
        lw_pulsar_admin_authorize(admin->client, credentials, &admin->authorization);
    }
}

/* They come on the broker's own host; tokens of an issuer need its descriptors, too. */
static void
await_credentials(struct admin *admin)
{
    struct lw_host *host = admin->client->host;
    struct lw_loop *loop = lw_loop_of(host);
    struct lw_host *own = lw_loop_host(admin->loop);
    while (!admin->is_known && own->ops->refresh(own) < admin->deadline) {
        if (loop) {
            lw_loop_turn_until(loop, host->ops->refresh(host) + 50 * LW_MS);
        } else {
            (void)lw_host_turn(host);
        }
    }
}

static enum lw_status
get_credentials(struct admin *admin, struct lw_error *ret_error)
{
    struct lw_pulsar_auth *auth = admin->client->auth;
    if (!auth || lw_pulsar_auth_kind(auth) == LW_PULSAR_AUTH_NONE) {
        return LW_STATUS_OK;
    }
    lw_pulsar_auth_ask(auth, &admin->ask, on_credentials, false);
    await_credentials(admin);
    lw_pulsar_auth_cancel(&admin->ask);
    if (!admin->is_known) {
        return lw_error_set(ret_error, LW_STATUS_TIMEOUT, "E0513",
                            "no credentials for broker \"%s\" came in time",
                            admin->client->name);
    }
    if (admin->failure.status != LW_STATUS_OK && ret_error) {
        *ret_error = admin->failure;
    }
    return admin->failure.status;
}

/* -- Opening --------------------------------------------------------------------------------------- */

static enum lw_status
open_admin(struct admin *admin, struct lw_pulsar_client *client, const char *url,
           int64_t timeout_ms, struct lw_error *ret_error)
{
    memset(admin, 0, sizeof *admin);
    admin->client = client;
    lw_text_init(&admin->base);
    lw_text_init(&admin->url);
    lw_text_init(&admin->authorization);
    enum lw_status status = lw_pulsar_address_admin(&client->address, url, &admin->base,
                                                    ret_error);
    if (status == LW_STATUS_OK && lw_loop_create(1, &admin->loop) != LW_STATUS_OK) {
        status = lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a request");
    }
    if (status != LW_STATUS_OK) {
        return status;
    }
    struct lw_host *host = lw_loop_host(admin->loop);
    admin->deadline = host->ops->refresh(host) + (uint64_t)timeout_ms * LW_MS;
    lw_fetch_init(&admin->fetch, host);
    return get_credentials(admin, ret_error);
}

static void
close_admin(struct admin *admin)
{
    if (admin->loop) {
        lw_fetch_deinit(&admin->fetch);
        lw_loop_destroy(admin->loop);
    }
    lw_text_deinit(&admin->base);
    lw_text_deinit(&admin->url);
    lw_text_deinit(&admin->authorization);
}

/* -- Requests -------------------------------------------------------------------------------------- */

/* Errors are {"reason": "..."}; some are plain text. */
void
lw_pulsar_admin_read(const struct lw_fetch_answer *answer, struct lw_pulsar_admin_answer *ret)
{
    json_t *json = json_loadb(answer->data, answer->size, JSON_DECODE_ANY, NULL);
    json_t *partitions = json_object_get(json, "partitions");
    const char *reason = json_string_value(json_object_get(json, "reason"));
    json_int_t number = json_is_integer(partitions) ? json_integer_value(partitions) : -1;
    ret->partitions = number >= 0 && number <= INT32_MAX ? (int32_t)number : -1;
    bool is_page = answer->size > 0 && answer->data[0] == '<';
    if (!reason && is_page) { /* for browsers: nothing of it is for a line of text */
        (void)snprintf(ret->reason, sizeof ret->reason, "the admin API answered %ld",
                       answer->code);
    } else {
        const char *failure = answer->failure ? answer->failure : "";
        lw_text_copy(ret->reason, sizeof ret->reason, reason ? reason : failure);
    }
    json_decref(json);
}

static void
on_answer(const struct lw_fetch_answer *answer, void *user)
{
    struct admin *admin = user;
    admin->is_answered = true;
    admin->code = answer->code;
    lw_pulsar_admin_read(answer, &admin->answer);
}

void
lw_pulsar_admin_trust(const struct lw_pulsar_client *client, struct lw_fetch_request *request)
{
    const struct lw_pulsar_tls_options *tls = &client->options.tls;
    const struct lw_pulsar_auth *auth = client->auth;
    const char *certificate = auth ? lw_pulsar_auth_certificate_file(auth) : NULL;
    const char *key = auth ? lw_pulsar_auth_key_file(auth) : NULL;
    request->ca_file = tls->trust_file;
    request->certificate_file = certificate ? certificate : tls->certificate_file;
    request->key_file = key ? key : tls->key_file;
    request->allows_any_certificate = tls->allows_insecure;
    request->allows_any_host = !tls->validates_hostname;
}

/* True when the API answered for this topic, with whatever code. */
static bool
request(struct admin *admin, const char *method, const struct lw_pulsar_name *name,
        const char *suffix, const char *body)
{
    struct lw_host *host = lw_loop_host(admin->loop);
    uint64_t now = host->ops->refresh(host);
    lw_text_clear(&admin->url);
    lw_text_format(&admin->url, "%s/admin/v2/", admin->base.data);
    lw_pulsar_name_rest_path(name, &admin->url);
    lw_text_append(&admin->url, suffix);
    admin->is_answered = false;
    admin->code = 0;
    lw_text_copy(admin->answer.reason, sizeof admin->answer.reason,
                 "it did not answer in time");
    if (admin->url.is_failed || admin->authorization.is_failed || now >= admin->deadline) {
        return false;
    }
    struct lw_fetch_request fetch = { .url = admin->url.data,
                                      .method = method,
                                      .form = body,
                                      .timeout_ms = (int64_t)((admin->deadline - now) / LW_MS) +
                                                    1 };
    lw_pulsar_admin_trust(admin->client, &fetch);
    fetch.headers[0] = "Content-Type: application/json";
    fetch.headers[1] = admin->authorization.data;
    lw_fetch_start(&admin->fetch, &fetch, on_answer, admin);
    while (!admin->is_answered) {
        lw_loop_turn_until(admin->loop, LW_NEVER); /* its own time-out ends it */
    }
    return admin->code != 0 && admin->code != HTTP_NOBODY;
}

/* It did not answer, or does not know who we are: the same for each topic. */
static enum lw_status
say_failure(const struct admin *admin, struct lw_error *ret_error)
{
    if (admin->code == HTTP_NOBODY && admin->client->auth) {
        lw_pulsar_auth_explain(admin->client->auth, admin->client->name, admin->answer.reason,
                               ret_error);
        return LW_STATUS_DENIED;
    }
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0501",
                                         "the admin API of broker \"%s\" at %s cannot be "
                                         "reached: %s",
                                         admin->client->name, admin->base.data,
                                         admin->answer.reason);
    lw_error_help(
        ret_error,
        "its address is the property admin_url, such as http://HOST:8080; without it it "
        "is looked for at the first host of the broker's url");
    return status;
}

/* What a code means for one topic. */
static enum lw_status
status_of(long code)
{
    switch (code) {
    case HTTP_OK:
    case HTTP_CREATED:
    case HTTP_NO_CONTENT:
        return LW_STATUS_OK;
    case HTTP_NOBODY:
    case HTTP_FORBIDDEN:
        return LW_STATUS_DENIED;
    case HTTP_MISSING:
        return LW_STATUS_NOT_FOUND;
    case HTTP_CONFLICT:
        return LW_STATUS_ALREADY;
    case HTTP_BAD:
        return LW_STATUS_INVALID;
    default: /* the codes of HTTP, not ours */
        return LW_STATUS_UNAVAILABLE;
    }
}

static void
fill(const struct admin *admin, struct lw_topic_info *info)
{
    info->status = status_of(admin->code);
    lw_text_copy(info->reason, sizeof info->reason,
                 info->status == LW_STATUS_OK ? "" : admin->answer.reason);
}

static bool
parse(struct lw_topic_info *info, struct lw_pulsar_name *ret_name)
{
    struct lw_error error;
    if (lw_pulsar_name_parse(info->name, ret_name, &error) == LW_STATUS_OK) {
        return true;
    }
    info->status = LW_STATUS_INVALID;
    info->partitions = 0;
    lw_text_copy(info->reason, sizeof info->reason, error.message);
    return false;
}

/* -- Asking ---------------------------------------------------------------------------------------- */

/* A topic that is not partitioned shows 0 partitions, and so may one that is absent. */
static bool
describe(struct admin *admin, struct lw_topic_info *info, const struct lw_pulsar_name *name)
{
    if (!request(admin, "GET", name, "/partitions", NULL)) {
        return false;
    }
    info->partitions = admin->code == HTTP_OK && admin->answer.partitions > 0
                           ? admin->answer.partitions
                           : 0;
    if (admin->code == HTTP_OK && admin->answer.partitions <= 0) {
        if (!request(admin, "GET", name, "/stats", NULL)) {
            return false;
        }
        info->partitions = admin->code == HTTP_OK ? 1 : 0;
    }
    fill(admin, info);
    if (info->status == LW_STATUS_NOT_FOUND) {
        info->status = LW_STATUS_OK; /* absent is an answer */
    }
    return true;
}

/* The table's signature. NOLINTBEGIN(readability-function-size) */
enum lw_status
lw_pulsar_admin_describe(struct lw_pulsar_client *client, const char *url,
                         struct lw_topic_info *topics, size_t n, int64_t timeout_ms,
                         struct lw_error *ret_error)
{
    struct admin admin;
    struct lw_pulsar_name name;
    enum lw_status status = open_admin(&admin, client, url, timeout_ms, ret_error);
    for (size_t i = 0; i < n && status == LW_STATUS_OK; i++) {
        if (parse(&topics[i], &name) && !describe(&admin, &topics[i], &name)) {
            status = say_failure(&admin, ret_error);
        }
    }
    close_admin(&admin);
    return status;
}
/* NOLINTEND(readability-function-size) */

/* -- Creating -------------------------------------------------------------------------------------- */

static bool
set_retention(struct admin *admin, struct lw_topic_info *info,
              const struct lw_pulsar_name *name)
{
    char body[128];
    int64_t minutes = (info->retention_ms + MINUTE_MS - 1) / MINUTE_MS;
    (void)snprintf(body, sizeof body,
                   "{\"retentionTimeInMinutes\": %" PRId64 ", \"retentionSizeInMB\": -1}",
                   minutes);
    if (!request(admin, "POST", name, "/retention", body)) {
        return false;
    }
    if (status_of(admin->code) != LW_STATUS_OK) {
        info->status = status_of(admin->code);
        (void)snprintf(info->reason, sizeof info->reason,
                       "created, but its retention is not "
                       "set: %.100s",
                       admin->answer.reason);
    }
    return true;
}

static bool
create(struct admin *admin, struct lw_topic_info *info, const struct lw_pulsar_name *name)
{
    char count[16];
    bool is_partitioned = info->partitions > 1 && name->partition < 0;
    (void)snprintf(count, sizeof count, "%d", (int)info->partitions);
    if (!request(admin, "PUT", name, is_partitioned ? "/partitions" : "",
                 is_partitioned ? count : "{}")) {
        return false;
    }
    fill(admin, info);
    bool wants_retention = info->status == LW_STATUS_OK && info->retention_ms >= 0;
    return !wants_retention || set_retention(admin, info, name);
}

/* The table's signature. NOLINTBEGIN(readability-function-size) */
enum lw_status
lw_pulsar_admin_create(struct lw_pulsar_client *client, const char *url,
                       struct lw_topic_info *topics, size_t n, int64_t timeout_ms,
                       struct lw_error *ret_error)
{
    struct admin admin;
    struct lw_pulsar_name name;
    enum lw_status status = open_admin(&admin, client, url, timeout_ms, ret_error);
    for (size_t i = 0; i < n && status == LW_STATUS_OK; i++) {
        if (parse(&topics[i], &name) && !create(&admin, &topics[i], &name)) {
            status = say_failure(&admin, ret_error);
        }
    }
    close_admin(&admin);
    return status;
}
/* NOLINTEND(readability-function-size) */
