/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a search: a connection to the service, the request, redirects (with the broker's
 * word on whether the next one decides), and for owners the connection to the owner, through a
 * proxy if the answer says so. With a service URL for TLS only addresses for TLS are taken.
 */
#include "brokers/pulsar/search.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "brokers/pulsar/connection_state.h"

enum { URL_BYTES = 512 };

static void ask_service(struct lw_pulsar_search *search);
static void on_asking(struct lw_pulsar_dial *dial, struct lw_pulsar_connection *connection,
                      const struct lw_pulsar_failure *failure);

static const char *
what_of(const struct lw_pulsar_search *search)
{
    return search->what.data;
}

/* -- Failing ----------------------------------------------------------------------------------------------- */

static void
fail(struct lw_pulsar_search *search, const struct lw_pulsar_failure *failure)
{
    lw_pulsar_search_finish(search, &(struct lw_pulsar_find_result){ .failure = failure });
}

static void
fail_refused(struct lw_pulsar_search *search, int32_t code, struct lw_bytes message)
{
    struct lw_pulsar_failure failure;
    lw_pulsar_failure_server(search->client, what_of(search), code, message, &failure);
    fail(search, &failure);
}

static void
fail_because(struct lw_pulsar_search *search, const char *why)
{
    struct lw_pulsar_failure failure = { .code = -1, .is_retried = true };
    (void)lw_error_set(&failure.error, LW_STATUS_UNAVAILABLE, "E0514",
                       "cannot %s at broker \"%s\": %s", what_of(search), search->client->name,
                       why);
    failure.error.is_retriable = true;
    fail(search, &failure);
}

/* The broker does not say where it is reached in the way that the service URL asks for. */
static void
fail_without_url(struct lw_pulsar_search *search)
{
    struct lw_pulsar_failure failure = { .code = -1, .is_retried = false };
    bool is_tls = search->client->address.is_tls;
    (void)lw_error_set(&failure.error, LW_STATUS_CONFIG, "E0514",
                       "cannot %s at broker \"%s\": its owner has no address %s TLS",
                       what_of(search), search->client->name, is_tls ? "for" : "without");
    lw_error_help(&failure.error, "%s",
                  is_tls ? "set brokerServicePortTls at the broker, or use pulsar://"
                         : "use pulsar+ssl://, or open brokerServicePort at the broker");
    fail(search, &failure);
}

void
lw_pulsar_search_on_deadline(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_search *search = LW_CONTAINER(timer, struct lw_pulsar_search, timer);
    struct lw_pulsar_failure failure;
    (void)now;
    lw_pulsar_failure_timeout(search->client, what_of(search), &failure);
    fail(search, &failure);
}

/* -- Dialling ------------------------------------------------------------------------------------------------ */

/* While a request is out its own deadline counts, else the search's. */
static void
watch_deadline(struct lw_pulsar_search *search)
{
    lw_timers_arm(&search->client->host->timers, &search->timer, search->deadline);
}

static void
on_owner(struct lw_pulsar_dial *dial, struct lw_pulsar_connection *connection,
         const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_search *search = LW_CONTAINER(dial, struct lw_pulsar_search, dial);
    if (connection) {
        lw_pulsar_search_finish(search, &(struct lw_pulsar_find_result){ .owner = connection });
    } else {
        fail(search, failure);
    }
}

/* The broker that was assigned is tried once; the service knows better if it is not there. */
static void
on_assigned(struct lw_pulsar_dial *dial, struct lw_pulsar_connection *connection,
            const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_search *search = LW_CONTAINER(dial, struct lw_pulsar_search, dial);
    (void)failure;
    if (connection) {
        lw_pulsar_search_finish(search, &(struct lw_pulsar_find_result){ .owner = connection });
    } else {
        ask_service(search);
    }
}

/* False when the URL is none that this client may use. */
static bool
parse_url(const struct lw_pulsar_client *client, struct lw_bytes url,
          struct lw_pulsar_host *ret_host)
{
    char text[URL_BYTES];
    bool is_tls = false;
    if (url.size >= sizeof text) {
        return false;
    }
    memcpy(text, url.data, url.size);
    text[url.size] = '\0';
    return lw_pulsar_address_parse_broker(text, ret_host, &is_tls) &&
           is_tls == client->address.is_tls;
}

static void
ask_service(struct lw_pulsar_search *search)
{
    struct lw_pulsar_target target;
    watch_deadline(search);
    if (!search->service) {
        lw_pulsar_dial_service(search->client, &search->dial, on_asking);
    } else if (parse_url(search->client, lw_bytes_of(search->service), &target.logical)) {
        target.physical = target.logical;
        lw_pulsar_dial_target(search->client, &target, &search->dial, on_asking);
    } else {
        fail_because(search, "the address of its new cluster is not one of a broker");
    }
}

void
lw_pulsar_search_run(struct lw_pulsar_search *search)
{
    struct lw_pulsar_client *client = search->client;
    struct lw_pulsar_target target;
    bool is_assigned = search->assigned &&
                       parse_url(client, lw_bytes_of(search->assigned), &target.logical);
    if (!is_assigned) {
        ask_service(search);
        return;
    }
    target.physical = client->is_proxied ? *lw_pulsar_rotation_host(&client->rotation)
                                         : target.logical;
    lw_pulsar_dial_target(client, &target, &search->dial, on_assigned);
}

/* -- Answers --------------------------------------------------------------------------------------------------- */

static void
take_partitions(struct lw_pulsar_search *search,
                const struct lw_pulsar_partitioned_metadata_response *response)
{
    if (response->response != LW_PULSAR_PARTITIONED_SUCCESS) {
        fail_refused(search, response->error, response->message);
        return;
    }
    lw_pulsar_search_finish(search,
                            &(struct lw_pulsar_find_result){ .partitions = response->partitions,
                                                             .is_exact = search->is_exact });
}

static void
take_topics(struct lw_pulsar_search *search,
            const struct lw_pulsar_get_topics_response *response)
{
    struct lw_pulsar_topics topics = { .names = response->topics,
                                       .hash = response->topics_hash,
                                       .is_filtered = response->filtered,
                                       .is_changed = response->changed };
    lw_pulsar_search_finish(search, &(struct lw_pulsar_find_result){ .topics = &topics });
}

static void
take_owner(struct lw_pulsar_search *search, const struct lw_pulsar_host *through,
           const struct lw_pulsar_lookup_response *response)
{
    struct lw_pulsar_client *client = search->client;
    struct lw_pulsar_target target;
    bool is_redirect = response->response == LW_PULSAR_LOOKUP_REDIRECT;
    struct lw_bytes url = client->address.is_tls ? response->broker_service_url_tls
                                                 : response->broker_service_url;
    if (!is_redirect && response->response != LW_PULSAR_LOOKUP_CONNECT) {
        fail_refused(search, response->error, response->message);
    } else if (url.size == 0) {
        fail_without_url(search);
    } else if (!parse_url(client, url, &target.logical)) {
        fail_because(search, "the address that it answered is not one of a broker");
    } else if (is_redirect && ++search->redirects > client->options.redirects_max) {
        fail_because(search, "brokers send the question round in circles");
    } else {
        target.physical = response->proxy_through_service_url ? *through : target.logical;
        search->is_authoritative = response->authoritative;
        client->is_proxied = !lw_pulsar_host_is_same(&target.physical, &target.logical);
        watch_deadline(search);
        lw_pulsar_dial_target(client, &target, &search->dial,
                              is_redirect ? on_asking : on_owner);
    }
}

static void
on_answer(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
          const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_search *search = LW_CONTAINER(request, struct lw_pulsar_search, request);
    if (!answer) {
        fail(search, failure);
        return;
    }
    switch (search->kind) {
    case LW_PULSAR_SEARCH_PARTITIONS:
        take_partitions(search, &answer->partitioned_metadata_response);
        break;
    case LW_PULSAR_SEARCH_OWNER:
        take_owner(search, &search->through, &answer->lookup_response);
        break;
    case LW_PULSAR_SEARCH_TOPICS:
        take_topics(search, &answer->get_topics_response);
        break;
    }
}

/* -- Requests --------------------------------------------------------------------------------------------------- */

static struct lw_pulsar_command
partitions_command(const struct lw_pulsar_search *search,
                   const struct lw_pulsar_connection *connection, uint64_t id)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_PARTITIONED_METADATA);
    struct lw_pulsar_partitioned_metadata *metadata = &command.partitioned_metadata;
    metadata->topic = lw_bytes_of(search->name);
    metadata->request_id = id;
    metadata->metadata_auto_creation_enabled = search->creates ||
                                               !connection->has_partitions_without_creation;
    return command;
}

static struct lw_pulsar_command
owner_command(const struct lw_pulsar_search *search, uint64_t id)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_LOOKUP);
    command.lookup.topic = lw_bytes_of(search->name);
    command.lookup.request_id = id;
    command.lookup.authoritative = search->is_authoritative;
    command.lookup.advertised_listener_name = lw_bytes_of(
        search->client->options.listener_name);
    return command;
}

static struct lw_pulsar_command
topics_command(const struct lw_pulsar_search *search, uint64_t id)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_GET_TOPICS_OF_NAMESPACE);
    struct lw_pulsar_get_topics *topics = &command.get_topics;
    topics->request_id = id;
    topics->namespace_name = lw_bytes_of(search->name);
    topics->mode = search->mode;
    topics->topics_pattern = lw_bytes_of(search->pattern);
    topics->topics_hash = (struct lw_bytes){ search->hash, search->hash_size };
    return command;
}

static struct lw_pulsar_command
command_of(const struct lw_pulsar_search *search, const struct lw_pulsar_connection *connection,
           uint64_t id)
{
    switch (search->kind) {
    case LW_PULSAR_SEARCH_PARTITIONS:
        return partitions_command(search, connection, id);
    case LW_PULSAR_SEARCH_OWNER:
        return owner_command(search, id);
    case LW_PULSAR_SEARCH_TOPICS:
        break;
    }
    return topics_command(search, id);
}

static void
on_asking(struct lw_pulsar_dial *dial, struct lw_pulsar_connection *connection,
          const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_search *search = LW_CONTAINER(dial, struct lw_pulsar_search, dial);
    struct lw_host *host = search->client->host;
    if (!connection) {
        fail(search, failure);
        return;
    }
    uint64_t left = search->deadline > host->now ? search->deadline - host->now : 0;
    lw_timers_disarm(&host->timers, &search->timer);
    search->through = connection->target.physical;
    search->is_exact = !search->creates && connection->has_partitions_without_creation;
    uint64_t id = lw_pulsar_request_begin(connection, &search->request, on_answer,
                                          what_of(search), left);
    struct lw_pulsar_command command = command_of(search, connection, id);
    (void)lw_pulsar_connection_send(connection, &command);
}
