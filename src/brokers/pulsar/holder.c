/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First the credentials, then the statistics of the topic, then the line. What the API cannot tell
 * (it is elsewhere, it does not let us) is not worth a line: the refusal itself was logged, and the
 * next attempt asks again.
 */
#include "brokers/pulsar/holder.h"

#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "brokers/pulsar/admin.h"
#include "brokers/pulsar/names.h"

enum { TIMEOUT_MS = 5000, VALUE_BYTES = 256 };

static void
finish(struct lw_pulsar_holder *holder)
{
    lw_free(holder->topic);
    lw_free(holder->subscription);
    holder->topic = NULL;
    holder->subscription = NULL;
}

/* -- The answer ----------------------------------------------------------------------------------- */

static const char *
field(const json_t *consumer, const char *name, char out[VALUE_BYTES])
{
    const char *value = json_string_value(json_object_get(consumer, name));
    return lw_log_quote(value ? value : "", out, VALUE_BYTES);
}

static void
say(struct lw_pulsar_holder *holder, const json_t *consumer)
{
    char name[VALUE_BYTES], address[VALUE_BYTES], since[VALUE_BYTES];
    struct lw_text line;
    lw_text_init(&line);
    lw_text_format(&line, "broker=%s topic=%s subscription=%s consumer=%s address=%s since=%s",
                   holder->client->name, holder->topic, holder->subscription,
                   field(consumer, "consumerName", name), field(consumer, "address", address),
                   field(consumer, "connectedSince", since));
    if (line.is_failed || (holder->said.data && strcmp(line.data, holder->said.data) == 0)) {
        lw_text_deinit(&line);
        return;
    }
    lw_host_log(holder->client->host, LW_LOG_WARN, "pulsar.subscription_held",
                "another consumer has the subscription; this one waits for it", "%s",
                line.data);
    lw_text_deinit(&holder->said);
    holder->said = line;
}

static void
on_answer(const struct lw_fetch_answer *answer, void *user)
{
    struct lw_pulsar_holder *holder = user;
    json_t *root = answer->failure ? NULL : json_loadb(answer->data, answer->size, 0, NULL);
    json_t *all = json_object_get(root, "subscriptions");
    json_t *consumers = json_object_get(json_object_get(all, holder->subscription),
                                        "consumers");
    json_t *first = json_array_get(consumers, 0);
    if (first) {
        say(holder, first);
    }
    json_decref(root);
    finish(holder);
}

/* -- The question ----------------------------------------------------------------------------------- */

static void
request(struct lw_pulsar_holder *holder, const struct lw_pulsar_credentials *credentials)
{
    struct lw_pulsar_name name;
    struct lw_text url, authorization;
    lw_text_init(&url);
    lw_text_init(&authorization);
    lw_pulsar_admin_authorize(holder->client, credentials, &authorization);
    if (lw_pulsar_address_admin(&holder->client->address, holder->base, &url, NULL) !=
            LW_STATUS_OK ||
        lw_pulsar_name_parse(holder->topic, &name, NULL) != LW_STATUS_OK) {
        finish(holder);
    } else {
        lw_text_append(&url, "/admin/v2/");
        lw_pulsar_name_rest_path(&name, &url);
        lw_text_append(&url, "/stats");
        struct lw_fetch_request fetch = { .url = url.is_failed ? "" : url.data,
                                          .timeout_ms = TIMEOUT_MS };
        fetch.headers[0] = authorization.size > 0 ? authorization.data : NULL;
        lw_pulsar_admin_trust(holder->client, &fetch);
        lw_fetch_start(&holder->fetch, &fetch, on_answer, holder);
    }
    lw_text_deinit(&url);
    lw_text_deinit(&authorization);
}

static void
on_credentials(struct lw_pulsar_auth_request *ask,
               const struct lw_pulsar_credentials *credentials, const struct lw_error *error)
{
    struct lw_pulsar_holder *holder = LW_CONTAINER(ask, struct lw_pulsar_holder, ask);
    if (error) {
        finish(holder);
    } else {
        request(holder, credentials);
    }
}

void
lw_pulsar_holder_ask(struct lw_pulsar_holder *holder, const char *topic,
                     const char *subscription)
{
    if (!holder->base || holder->topic) {
        return;
    }
    holder->topic = lw_copy_text(topic);
    holder->subscription = lw_copy_text(subscription);
    if (!holder->topic || !holder->subscription) {
        finish(holder);
    } else {
        lw_pulsar_auth_ask(holder->client->auth, &holder->ask, on_credentials, false);
    }
}

/* -- Its life ------------------------------------------------------------------------------------- */

void
lw_pulsar_holder_init(struct lw_pulsar_holder *holder, struct lw_pulsar_client *client,
                      const char *base)
{
    memset(holder, 0, sizeof *holder);
    holder->client = client;
    holder->base = base && *base ? base : NULL;
    lw_text_init(&holder->said);
    lw_fetch_init(&holder->fetch, client->host);
}

void
lw_pulsar_holder_deinit(struct lw_pulsar_holder *holder)
{
    lw_pulsar_auth_cancel(&holder->ask);
    lw_fetch_deinit(&holder->fetch);
    lw_text_deinit(&holder->said);
    finish(holder);
}
