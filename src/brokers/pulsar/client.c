/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared part of a broker: it is set up here and taken down; its pieces live in pool.c,
 * lookup.c, connection*.c and block.c. Output of a turn goes out in one hook at the end of the
 * turn; what is sent by a hook that runs later waits for deferred work of the next turn, which
 * follows at once.
 */
#include "brokers/pulsar/client.h"

#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/connection_state.h"
#include "brokers/pulsar/search.h"

static uint64_t
on_turn(struct lw_turn *turn, uint64_t now)
{
    struct lw_pulsar_client *client = LW_CONTAINER(turn, struct lw_pulsar_client, turn);
    (void)now;
    lw_pulsar_client_flush(client);
    return LW_NEVER;
}

static void
on_flush(struct lw_deferred *deferred)
{
    lw_pulsar_client_flush(LW_CONTAINER(deferred, struct lw_pulsar_client, flush));
}

static void
init_lists(struct lw_pulsar_client *client)
{
    lw_list_init(&client->connections);
    lw_list_init(&client->ended);
    lw_list_init(&client->dirty);
    lw_list_init(&client->lookups);
    lw_list_init(&client->lookups_waiting);
    lw_list_init(&client->lookups_refused);
}

void
lw_pulsar_client_init(struct lw_pulsar_client *client, struct lw_host *host, const char *name,
                      const struct lw_pulsar_client_settings *options,
                      const struct lw_pulsar_client_ops *ops)
{
    struct lw_pulsar_address address = client->address;
    struct lw_pulsar_auth *auth = client->auth;
    memset(client, 0, sizeof *client);
    client->address = address;
    client->auth = auth;
    client->host = host;
    client->name = name;
    client->ops = ops;
    client->options = *options;
    init_lists(client);
    lw_map_init(&client->searches, lw_host_random(host));
    lw_deferred_init(&client->flush, on_flush);
    lw_deferred_init(&client->lookups_deferred, lw_pulsar_search_refuse_all);
    client->turn.fn = on_turn;
    lw_host_add_turn(host, &client->turn);
    if (address.count > 0) {
        lw_pulsar_rotation_init(&client->rotation, &client->address, lw_host_random(host));
    }
}

void
lw_pulsar_client_deinit(struct lw_pulsar_client *client)
{
    client->is_closing = true;
    lw_pulsar_search_drop_all(client);
    lw_pulsar_pool_drop_all(client);
    lw_deferred_cancel(&client->flush);
    lw_deferred_cancel(&client->lookups_deferred);
    lw_host_remove_turn(&client->turn);
    lw_map_deinit(&client->searches);
    while (client->spare_blocks) {
        struct lw_pulsar_block *block = client->spare_blocks;
        client->spare_blocks = block->next;
        lw_free(block);
    }
    lw_pulsar_arrays_deinit(&client->arrays);
    lw_pulsar_tls_context_destroy(client->tls);
    lw_pulsar_auth_destroy(client->auth);
    lw_pulsar_address_deinit(&client->address);
}
