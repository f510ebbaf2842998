/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks for what: equal questions share one search while it waits or runs, as many run as the
 * options allow, the others wait in order. Results are cached nowhere: topics move.
 */
#include "brokers/pulsar/lookup.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "brokers/pulsar/search.h"

/* -- A search ------------------------------------------------------------------------------------------ */

static const char *
verb_of(enum lw_pulsar_search_kind kind)
{
    switch (kind) {
    case LW_PULSAR_SEARCH_PARTITIONS:
        return "find the partitions of";
    case LW_PULSAR_SEARCH_OWNER:
        return "find the owner of";
    case LW_PULSAR_SEARCH_TOPICS:
        return "list the topics of";
    }
    return "find";
}

/* Lengths keep apart what would read the same. */
static void
write_key(const struct lw_pulsar_query *query, struct lw_text *out)
{
    const char *pattern = query->pattern ? query->pattern : "";
    lw_text_format(out, "%d %d %d %zu:%s %zu:%s ", (int)query->kind, (int)query->creates,
                   (int)query->mode, strlen(query->name), query->name, strlen(pattern),
                   pattern);
    lw_text_append_bytes(out, query->hash.data ? query->hash.data : "", query->hash.size);
    lw_text_append_char(out, ' ');
    lw_text_append_bytes(out, query->assigned.data ? query->assigned.data : "",
                         query->assigned.size);
    lw_text_format(out, " %s", query->service ? query->service : "");
}

static void
free_search(struct lw_pulsar_search *search)
{
    lw_text_deinit(&search->key);
    lw_text_deinit(&search->what);
    lw_free(search->name);
    lw_free(search->pattern);
    lw_free(search->hash);
    lw_free(search->assigned);
    lw_free(search->service);
    lw_free(search);
}

static bool
copy_query(struct lw_pulsar_search *search, const struct lw_pulsar_query *query)
{
    search->kind = query->kind;
    search->mode = query->mode;
    search->creates = query->creates;
    search->hash_size = query->hash.size;
    search->name = lw_copy_text(query->name);
    search->pattern = lw_copy_text(query->pattern);
    search->hash = query->hash.data ? lw_copy_text_n(query->hash.data, query->hash.size) : NULL;
    search->assigned = query->assigned.size > 0
                           ? lw_copy_text_n(query->assigned.data, query->assigned.size)
                           : NULL;
    search->service = lw_copy_text(query->service);
    lw_text_format(&search->what, "%s %s", verb_of(query->kind), query->name);
    return search->name && !search->pattern == !query->pattern &&
           !search->service == !query->service && !search->hash == !query->hash.data &&
           !search->assigned == (query->assigned.size == 0) && !search->what.is_failed;
}

/* Takes the key over. NULL: no memory. */
static struct lw_pulsar_search *
create_search(struct lw_pulsar_client *client, const struct lw_pulsar_query *query,
              struct lw_text *key)
{
    struct lw_pulsar_search *search = lw_alloc(sizeof *search);
    if (!search) {
        return NULL;
    }
    search->client = client;
    lw_list_init(&search->link);
    lw_list_init(&search->finds);
    lw_timer_init(&search->timer, lw_pulsar_search_on_deadline);
    struct lw_bytes name = { key->data, key->size };
    if (!copy_query(search, query) ||
        lw_map_set(&client->searches, name, search) != LW_STATUS_OK) {
        free_search(search);
        return NULL;
    }
    search->key = *key;
    lw_text_init(key);
    search->deadline = client->host->now + client->options.operation_timeout_ns;
    lw_timers_arm(&client->host->timers, &search->timer, search->deadline);
    return search;
}

/* -- Places ----------------------------------------------------------------------------------------------- */

static void
run(struct lw_pulsar_search *search)
{
    struct lw_pulsar_client *client = search->client;
    lw_list_remove(&search->link);
    lw_list_push(&client->lookups, &search->link);
    client->lookup_count++;
    search->is_running = true;
    lw_pulsar_search_run(search);
}

static void
run_waiting(struct lw_pulsar_client *client)
{
    while (client->lookup_count < client->options.lookups_max) {
        struct lw_list *node = lw_list_first(&client->lookups_waiting);
        if (!node) {
            return;
        }
        run(LW_CONTAINER(node, struct lw_pulsar_search, link));
    }
}

/* Nobody finds it any more, and its place is free. */
static void
leave(struct lw_pulsar_search *search)
{
    struct lw_pulsar_client *client = search->client;
    lw_timers_disarm(&client->host->timers, &search->timer);
    lw_pulsar_dial_cancel(&search->dial);
    lw_pulsar_request_cancel(&search->request);
    (void)lw_map_remove(&client->searches,
                        (struct lw_bytes){ search->key.data, search->key.size });
    lw_list_remove(&search->link);
    client->lookup_count -= search->is_running ? 1 : 0;
}

/* -- Ending ------------------------------------------------------------------------------------------------ */

static void
answer(struct lw_pulsar_find *find, const struct lw_pulsar_find_result *result)
{
    struct lw_pulsar_find_result gone;
    struct lw_pulsar_failure failure = { .code = -1, .is_retried = true };
    find->is_asked = false;
    find->search = NULL;
    if (result->owner && lw_pulsar_connection_state(result->owner) != LW_PULSAR_READY) {
        /* One who was told before closed it. */
        (void)lw_error_set(&failure.error, LW_STATUS_CLOSED, "E0501",
                           "the connection to %s was closed",
                           lw_pulsar_connection_name(result->owner));
        gone = (struct lw_pulsar_find_result){ .failure = &failure };
        result = &gone;
    }
    find->fn(find, result);
}

void
lw_pulsar_search_finish(struct lw_pulsar_search *search,
                        const struct lw_pulsar_find_result *result)
{
    struct lw_pulsar_client *client = search->client;
    struct lw_list batch;
    lw_list_init(&batch);
    leave(search);
    for (struct lw_list *node; (node = lw_list_pop(&search->finds)) != NULL;) {
        LW_CONTAINER(node, struct lw_pulsar_find, link)->search = NULL;
        lw_list_push(&batch, node);
    }
    if (!result->failure) {
        lw_pulsar_rotation_succeed(&client->rotation);
    }
    run_waiting(client);
    for (struct lw_list *node; (node = lw_list_pop(&batch)) != NULL;) {
        answer(LW_CONTAINER(node, struct lw_pulsar_find, link), result);
    }
    free_search(search);
}

void
lw_pulsar_find_cancel(struct lw_pulsar_find *find)
{
    struct lw_pulsar_search *search = find->search;
    if (!find->is_asked) {
        return;
    }
    lw_list_remove(&find->link);
    find->is_asked = false;
    find->search = NULL;
    if (search && lw_list_is_empty(&search->finds)) {
        struct lw_pulsar_client *client = search->client;
        leave(search);
        free_search(search);
        run_waiting(client);
    }
}

static void
forget_finds(struct lw_list *finds)
{
    for (struct lw_list *node; (node = lw_list_pop(finds)) != NULL;) {
        struct lw_pulsar_find *find = LW_CONTAINER(node, struct lw_pulsar_find, link);
        find->is_asked = false;
        find->search = NULL;
    }
}

static void
drop_list(struct lw_list *list)
{
    for (struct lw_list *node; (node = lw_list_first(list)) != NULL;) {
        struct lw_pulsar_search *search = LW_CONTAINER(node, struct lw_pulsar_search, link);
        forget_finds(&search->finds);
        leave(search);
        free_search(search);
    }
}

void
lw_pulsar_search_drop_all(struct lw_pulsar_client *client)
{
    drop_list(&client->lookups);
    drop_list(&client->lookups_waiting);
    forget_finds(&client->lookups_refused);
}

void
lw_pulsar_search_refuse_all(struct lw_deferred *deferred)
{
    struct lw_pulsar_client *client = LW_CONTAINER(deferred, struct lw_pulsar_client,
                                                   lookups_deferred);
    struct lw_pulsar_failure failure = { .code = -1, .is_retried = true };
    struct lw_pulsar_find_result result = { .failure = &failure };
    (void)lw_error_set(&failure.error, LW_STATUS_NO_MEMORY, "", "no memory for a lookup");
    for (struct lw_list *node; (node = lw_list_pop(&client->lookups_refused)) != NULL;) {
        answer(LW_CONTAINER(node, struct lw_pulsar_find, link), &result);
    }
}

/* -- Asking ------------------------------------------------------------------------------------------------- */

static struct lw_pulsar_search *
share_or_create(struct lw_pulsar_client *client, const struct lw_pulsar_query *query)
{
    struct lw_text key;
    lw_text_init(&key);
    write_key(query, &key);
    struct lw_pulsar_search *search = NULL;
    if (!key.is_failed) {
        search = lw_map_get(&client->searches, (struct lw_bytes){ key.data, key.size });
    }
    if (!search && !key.is_failed) {
        search = create_search(client, query, &key);
    }
    lw_text_deinit(&key);
    return search;
}

static void
ask(struct lw_pulsar_client *client, struct lw_pulsar_find *find, lw_pulsar_find_fn fn,
    const struct lw_pulsar_query *query)
{
    lw_assert(!find->is_asked);
    find->fn = fn;
    find->is_asked = true;
    find->search = share_or_create(client, query);
    if (!find->search) {
        lw_list_push(&client->lookups_refused, &find->link);
        lw_host_defer(client->host, &client->lookups_deferred);
        return;
    }
    bool is_new = lw_list_is_empty(&find->search->finds);
    lw_list_push(&find->search->finds, &find->link);
    if (is_new) {
        lw_list_push(&client->lookups_waiting, &find->search->link);
        run_waiting(client);
    }
}

void
lw_pulsar_find_partitions(struct lw_pulsar_client *client, struct lw_pulsar_find *find,
                          const char *topic, bool creates, lw_pulsar_find_fn fn)
{
    struct lw_pulsar_query query = { .kind = LW_PULSAR_SEARCH_PARTITIONS,
                                     .name = topic,
                                     .creates = creates };
    ask(client, find, fn, &query);
}

void
lw_pulsar_find_owner(struct lw_pulsar_client *client, struct lw_pulsar_find *find,
                     const char *topic, struct lw_bytes assigned, lw_pulsar_find_fn fn)
{
    struct lw_pulsar_query query = { .kind = LW_PULSAR_SEARCH_OWNER,
                                     .name = topic,
                                     .assigned = assigned };
    ask(client, find, fn, &query);
}

void
lw_pulsar_find_owner_at(struct lw_pulsar_client *client, struct lw_pulsar_find *find,
                        const char *topic, const char *service, lw_pulsar_find_fn fn)
{
    struct lw_pulsar_query query = { .kind = LW_PULSAR_SEARCH_OWNER,
                                     .name = topic,
                                     .service = service };
    ask(client, find, fn, &query);
}

void
lw_pulsar_topic_moved(struct lw_pulsar_client *client, const char *topic,
                      const struct lw_pulsar_topic_migrated *to, char *out, size_t size)
{
    struct lw_bytes url = client->address.is_tls ? to->broker_service_url_tls
                                                 : to->broker_service_url;
    const char *comma = url.size > 0 ? memchr(url.data, ',', url.size) : NULL;
    size_t length = comma ? (size_t)(comma - (const char *)url.data) : url.size;
    if (length > 0 && length < size && strncmp(out, url.data, length) == 0 && !out[length]) {
        return;
    }
    length = length < size ? length : 0;
    memcpy(out, url.data ? url.data : "", length);
    out[length] = '\0';
    lw_host_log(client->host, LW_LOG_WARN, "pulsar.topic_moved",
                length > 0
                    ? "the topic has moved to another cluster and is followed there; "
                      "change the broker's address before the old one goes"
                    : "the topic has moved to another cluster, whose address is not known "
                      "here (TLS or not, as the broker's own)",
                "broker=%s topic=%s url=%s", client->name, topic, out);
}

/* All of it is the question. NOLINTBEGIN(readability-function-size) */
void
lw_pulsar_find_topics(struct lw_pulsar_client *client, struct lw_pulsar_find *find,
                      const char *namespace_name, int32_t mode, const char *pattern,
                      struct lw_bytes hash, lw_pulsar_find_fn fn)
{
    struct lw_pulsar_query query = { .kind = LW_PULSAR_SEARCH_TOPICS,
                                     .name = namespace_name,
                                     .mode = mode,
                                     .pattern = pattern,
                                     .hash = hash };
    ask(client, find, fn, &query);
}
/* NOLINTEND(readability-function-size) */
