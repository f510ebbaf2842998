/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OAUTHBEARER with client credentials (sasl.oauthbearer.method=oidc): the token is fetched by our
 * own request, since the client library of many distributions is built without it. Nothing blocks,
 * and one request serves all clients of the broker.
 */
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/fetch.h"
#include "base/log.h"
#include "base/text.h"
#include "brokers/kafka/kafka.h"

enum { WAITING_MAX = 64, EXTENSIONS_MAX = 32 };

struct lw_kafka_token {
    struct lw_kafka_broker *broker;
    struct lw_fetch fetch;
    rd_kafka_t *waiting[WAITING_MAX];
    size_t waiting_count;
    char *value; /* the last token */
    int64_t expires_ms;
    int64_t renew_ms; /* asked for anew from here on */
};

static const char *
property(const struct lw_kafka_token *token, const char *name)
{
    return lw_properties_get(&token->broker->properties, name);
}

bool
lw_kafka_token_is_wanted(const struct lw_properties *properties)
{
    const char *method = lw_properties_get(properties, "sasl.oauthbearer.method");
    return method && strcasecmp(method, "oidc") == 0;
}

/* -- The answer -------------------------------------------------------------------------------------- */

/* Splits "key=value,key=value" in place. */
static size_t
split_extensions(char *text, const char *out[], size_t max)
{
    size_t count = 0;
    char *rest = NULL;
    for (char *pair = strtok_r(text, ",", &rest); pair && count + 2 <= max;
         pair = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(pair, '=');
        if (value) {
            *value = '\0';
            out[count++] = pair;
            out[count++] = value + 1;
        }
    }
    return count;
}

static void
give_token(struct lw_kafka_token *token, rd_kafka_t *rk)
{
    char reason[512];
    const char *extensions[EXTENSIONS_MAX];
    char *text = lw_copy_text(property(token, "sasl.oauthbearer.extensions"));
    size_t count = text ? split_extensions(text, extensions, EXTENSIONS_MAX) : 0;
    const char *principal = property(token, "sasl.oauthbearer.client.id");
    if (rd_kafka_oauthbearer_set_token(rk, token->value, token->expires_ms,
                                       principal ? principal : "laneway", extensions, count,
                                       reason, sizeof reason) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        (void)rd_kafka_oauthbearer_set_token_failure(rk, reason);
    }
    lw_free(text);
}

static void
answer_all(struct lw_kafka_token *token, const char *failure)
{
    struct lw_host *host = token->broker->base.host;
    char quoted[512];
    if (failure) {
        lw_host_log(host, LW_LOG_ERROR, "kafka.token_failed",
                    "no token could be fetched for the broker; trying again",
                    "broker=%s reason=%s", token->broker->name,
                    lw_log_quote(failure, quoted, sizeof quoted));
    }
    for (size_t i = 0; i < token->waiting_count; i++) {
        if (failure) {
            (void)rd_kafka_oauthbearer_set_token_failure(token->waiting[i], failure);
        } else {
            give_token(token, token->waiting[i]);
        }
    }
    token->waiting_count = 0;
}

/* NULL when the answer holds a token, else what is wrong with it. */
static const char *
read_answer(struct lw_kafka_token *token, const struct lw_fetch_answer *answer)
{
    json_t *root = json_loadb(answer->data, answer->size, 0, NULL);
    const char *value = json_string_value(json_object_get(root, "access_token"));
    json_int_t seconds = json_integer_value(json_object_get(root, "expires_in"));
    char *copy = value ? lw_copy_text(value) : NULL;
    json_decref(root);
    if (!copy) {
        return "the answer holds no access_token";
    }
    struct lw_host *host = token->broker->base.host;
    int64_t now_ms = host->ops->wall_ms(host);
    int64_t life_ms = seconds > 0 ? (int64_t)seconds * 1000 : 300000;
    lw_free(token->value);
    token->value = copy;
    token->expires_ms = now_ms + life_ms;
    token->renew_ms = now_ms + life_ms / 2;
    return NULL;
}

static void
on_answer(const struct lw_fetch_answer *answer, void *user)
{
    struct lw_kafka_token *token = user;
    char failure[512];
    const char *reason = answer->failure;
    if (reason && answer->code != 0) {
        (void)snprintf(failure, sizeof failure, "the token endpoint %.480s", reason);
        reason = failure;
    }
    answer_all(token, reason ? reason : read_answer(token, answer));
}

/* -- The request --------------------------------------------------------------------------------------- */

static void
start_request(struct lw_kafka_token *token)
{
    struct lw_text form;
    const char *scope = property(token, "sasl.oauthbearer.scope");
    const char *secret = property(token, "sasl.oauthbearer.client.secret");
    lw_text_init(&form);
    lw_text_append(&form, "grant_type=client_credentials");
    if (scope) {
        lw_text_append(&form, "&scope=");
        lw_fetch_escape(&form, scope);
    }
    if (form.is_failed) {
        answer_all(token, "no memory for the request for a token");
    } else {
        struct lw_fetch_request request = {
            .url = property(token, "sasl.oauthbearer.token.endpoint.url"),
            .form = form.data,
            .username = property(token, "sasl.oauthbearer.client.id"),
            .password = secret ? secret : "",
            .ca_file = property(token, "ssl.ca.location"),
        };
        lw_fetch_start(&token->fetch, &request, on_answer, token);
    }
    lw_text_deinit(&form);
}

void
lw_kafka_token_refresh(struct lw_kafka_token *token, rd_kafka_t *rk)
{
    struct lw_host *host = token->broker->base.host;
    if (token->value && host->ops->wall_ms(host) < token->renew_ms) {
        give_token(token, rk);
        return;
    }
    if (token->waiting_count == WAITING_MAX) {
        (void)rd_kafka_oauthbearer_set_token_failure(rk, "too many clients wait for a token");
        return;
    }
    token->waiting[token->waiting_count++] = rk;
    if (!lw_fetch_is_busy(&token->fetch)) {
        start_request(token);
    }
}

void
lw_kafka_token_forget(struct lw_kafka_token *token, rd_kafka_t *rk)
{
    size_t kept = 0;
    for (size_t i = 0; i < token->waiting_count; i++) {
        if (token->waiting[i] != rk) {
            token->waiting[kept++] = token->waiting[i];
        }
    }
    token->waiting_count = kept;
}

/* -- Life ------------------------------------------------------------------------------------------------ */

enum lw_status
lw_kafka_token_create(struct lw_kafka_broker *broker, struct lw_kafka_token **ret_token,
                      struct lw_error *ret_error)
{
    static const char *const required[] = { "sasl.oauthbearer.client.id",
                                            "sasl.oauthbearer.token.endpoint.url" };
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        if (!lw_properties_get(&broker->properties, required[i])) {
            return lw_error_set(ret_error, LW_STATUS_CONFIG, "E0410",
                                "broker \"%s\": sasl.oauthbearer.method=oidc needs \"%s\"",
                                broker->name, required[i]);
        }
    }
    struct lw_kafka_token *token = lw_alloc(sizeof *token);
    if (!token) {
        return LW_STATUS_NO_MEMORY;
    }
    token->broker = broker;
    lw_fetch_init(&token->fetch, broker->base.host);
    *ret_token = token;
    return LW_STATUS_OK;
}

void
lw_kafka_token_destroy(struct lw_kafka_token *token)
{
    if (!token) {
        return;
    }
    lw_fetch_deinit(&token->fetch);
    lw_free(token->value);
    lw_free(token);
}
