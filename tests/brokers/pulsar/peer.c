/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripted peer: sockets that never block, so that the one thread can drive both sides. What
 * is said and when is up to the test.
 */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/brokers/pulsar/peer.h"

enum { PATIENCE = 10000, RESTS = 4 };

/* -- The world ------------------------------------------------------------------------------------- */

static struct world *
world_of(struct lw_pulsar_client *client)
{
    return LW_CONTAINER(client, struct world, client);
}

static void
on_up(struct lw_pulsar_client *client)
{
    world_of(client)->up_count++;
}

static void
on_down(struct lw_pulsar_client *client, const struct lw_error *error)
{
    world_of(client)->down_count++;
    world_of(client)->down = *error;
}

static const struct lw_pulsar_client_ops ops = { .on_up = on_up, .on_down = on_down };

struct lw_pulsar_client_settings
world_settings(void)
{
    return (struct lw_pulsar_client_settings){
        .operation_timeout_ns = 30000 * LW_MS,
        .connection_timeout_ns = 10000 * LW_MS,
        .keep_alive_ns = 30000 * LW_MS,
        .backoff_first_ns = 100 * LW_MS,
        .backoff_max_ns = 60000 * LW_MS,
        .lookups_max = 100,
        .rejected_max = 50,
        .redirects_max = 20,
        .client_version = "Laneway-test",
        .tls = { .validates_hostname = true },
    };
}

void
world_init(struct world *world, const char *url,
           const struct lw_pulsar_client_settings *settings)
{
    struct lw_pulsar_client_settings usual = world_settings();
    struct lw_error error;
    memset(world, 0, sizeof *world);
    virtual_host_init(&world->virtual_host, 1);
    world->host = &world->virtual_host.host;
    if (lw_pulsar_address_parse(url, &world->client.address, &error) != LW_STATUS_OK) {
        fail_msg("%s", error.message);
    }
    lw_pulsar_client_init(&world->client, world->host, "b", settings ? settings : &usual, &ops);
    world->client.rotation.at = 0; /* from the first host on */
}

void
world_deinit(struct world *world)
{
    lw_pulsar_client_deinit(&world->client);
    virtual_host_settle(&world->virtual_host);
    assert_true(lw_list_is_empty(&world->virtual_host.watches));
}

static void
on_dialled(struct lw_pulsar_dial *dial, struct lw_pulsar_connection *connection,
           const struct lw_pulsar_failure *failure)
{
    struct world *world = LW_CONTAINER(dial, struct world, dial);
    world->dialled_count++;
    world->connection = connection;
    if (failure) {
        world->failure = *failure;
    }
}

void
world_dial(struct world *world)
{
    world->connection = NULL;
    world->dialled_count = 0;
    lw_pulsar_dial_service(&world->client, &world->dial, on_dialled);
    assert_int_equal(world->dialled_count, 0);
}

bool
world_is_dialled(void *world)
{
    return ((struct world *)world)->dialled_count > 0;
}

/* Lets the kernel carry what is on its way over loopback. */
static void
look(void)
{
    (void)poll(NULL, 0, 1);
}

void
world_until(struct world *world, bool (*is_true)(void *user), void *user)
{
    for (int i = 0; i < PATIENCE; i++) {
        virtual_host_settle(&world->virtual_host);
        if (is_true(user)) {
            return;
        }
        look();
    }
    fail_msg("what is waited for does not happen");
}

void
world_rest(struct world *world)
{
    for (int i = 0; i < RESTS; i++) {
        virtual_host_settle(&world->virtual_host);
        look();
    }
    virtual_host_settle(&world->virtual_host);
}

/* -- Listening -------------------------------------------------------------------------------------- */

static struct sockaddr_in
address_of(const char *address, uint16_t port)
{
    struct sockaddr_in result = { .sin_family = AF_INET, .sin_port = htons(port) };
    assert_int_equal(inet_pton(AF_INET, address, &result.sin_addr), 1);
    return result;
}

static void
listen_at(struct peer_listener *listener, const char *address, uint16_t port, int backlog)
{
    int on = 1;
    struct sockaddr_in at = address_of(address, port);
    socklen_t size = sizeof at;
    listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(listener->fd >= 0);
    setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_int_equal(bind(listener->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener->fd, backlog), 0);
    assert_int_equal(getsockname(listener->fd, (struct sockaddr *)&at, &size), 0);
    listener->port = ntohs(at.sin_port);
}

void
peer_listen(struct peer_listener *listener, const char *address, uint16_t port)
{
    listen_at(listener, address, port, 64);
}

void
peer_listen_dead(struct peer_listener *listener, const char *address, uint16_t port, int fds[4])
{
    listen_at(listener, address, port, 0);
    struct sockaddr_in at = address_of(address, listener->port);
    for (int i = 0; i < 4; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fds[i], (struct sockaddr *)&at, sizeof at);
    }
}

void
peer_unlisten(struct peer_listener *listener)
{
    close(listener->fd);
}

const char *
peer_url(const struct peer_listener *listener)
{
    static char url[64];
    snprintf(url, sizeof url, "pulsar://127.0.0.1:%d", (int)listener->port);
    return url;
}

bool
peer_is_called(const struct peer_listener *listener)
{
    struct pollfd look_at = { .fd = listener->fd, .events = POLLIN };
    return poll(&look_at, 1, 0) == 1;
}

static bool
is_called(void *listener)
{
    return peer_is_called(listener);
}

void
peer_accept(struct peer *peer, struct peer_listener *listener, struct world *world)
{
    int on = 1;
    world_until(world, is_called, listener);
    memset(peer, 0, sizeof *peer);
    peer->fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(peer->fd >= 0);
    setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    peer->in = malloc(PEER_BYTES);
}

void
peer_hang_up(struct peer *peer)
{
    if (peer->fd >= 0 && peer->in) {
        SSL_free(peer->ssl);
        close(peer->fd);
        free(peer->in);
        peer->in = NULL;
        peer->ssl = NULL;
        peer->fd = -1;
    }
}

/* -- TLS --------------------------------------------------------------------------------------------- */

static bool
is_shaken(void *user)
{
    struct peer *peer = user;
    return SSL_do_handshake(peer->ssl) == 1;
}

void
peer_offer_tls(struct peer *peer, const char *certificate, const char *key)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate_chain_file(ctx, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM), 1);
    peer->ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    SSL_set_fd(peer->ssl, peer->fd);
    SSL_set_accept_state(peer->ssl);
}

void
peer_start_tls(struct peer *peer, struct world *world, const char *certificate, const char *key)
{
    peer_offer_tls(peer, certificate, key);
    world_until(world, is_shaken, peer);
}

/* -- Reading ------------------------------------------------------------------------------------------ */

static void
fill(struct peer *peer)
{
    for (;;) {
        ssize_t got = peer->ssl
                          ? SSL_read(peer->ssl, peer->in + peer->size,
                                     (int)(PEER_BYTES - peer->size))
                          : read(peer->fd, peer->in + peer->size, PEER_BYTES - peer->size);
        if (got <= 0) {
            bool is_waiting = peer->ssl
                                  ? SSL_get_error(peer->ssl, (int)got) == SSL_ERROR_WANT_READ
                                  : got < 0 && errno == EAGAIN;
            peer->is_ended |= !is_waiting;
            return;
        }
        peer->size += (size_t)got;
    }
}

const struct lw_pulsar_command *
peer_poll(struct peer *peer)
{
    memmove(peer->in, peer->in + peer->used, peer->size - peer->used);
    peer->size -= peer->used;
    peer->used = 0;
    fill(peer);
    struct lw_pulsar_scan scan = lw_pulsar_frame_scan(peer->in, peer->size, PEER_BYTES);
    if (scan.state == LW_PULSAR_SCAN_MORE) {
        return NULL;
    }
    assert_int_equal(scan.state, LW_PULSAR_SCAN_FRAME);
    assert_int_equal(lw_pulsar_command_decode(scan.command, &peer->command), LW_PULSAR_OK);
    peer->rest = scan.rest;
    peer->used = scan.size;
    return &peer->command;
}

static bool
has_command(void *user)
{
    struct peer *peer = user;
    return peer_poll(peer) != NULL || peer->is_ended;
}

const struct lw_pulsar_command *
peer_expect(struct peer *peer, struct world *world, enum lw_pulsar_command_type type)
{
    peer->command.type = 0;
    world_until(world, has_command, peer);
    assert_string_equal(lw_pulsar_command_name(peer->command.type),
                        lw_pulsar_command_name((int32_t)type));
    return &peer->command;
}

static bool
has_ended(void *user)
{
    struct peer *peer = user;
    while (peer_poll(peer)) {
        continue;
    }
    return peer->is_ended;
}

void
peer_expect_end(struct peer *peer, struct world *world)
{
    world_until(world, has_ended, peer);
}

/* -- Sending ------------------------------------------------------------------------------------------- */

void
peer_send_bytes(struct peer *peer, const void *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        const uint8_t *from = (const uint8_t *)data + at;
        ssize_t put = peer->ssl ? SSL_write(peer->ssl, from, (int)(size - at))
                                : send(peer->fd, from, size - at, MSG_NOSIGNAL);
        assert_true(put > 0);
        at += (size_t)put;
    }
}

size_t
peer_frame(const struct lw_pulsar_command *command, uint8_t *out, size_t size)
{
    struct lw_proto_writer writer = lw_proto_writer_of(out, size);
    lw_pulsar_command_write(command, &writer);
    assert_false(lw_proto_is_overflow(&writer));
    return writer.size;
}

void
peer_send(struct peer *peer, const struct lw_pulsar_command *command)
{
    uint8_t frame[64 * 1024];
    peer_send_bytes(peer, frame, peer_frame(command, frame, sizeof frame));
}

void
peer_send_message(struct peer *peer, uint64_t consumer_id, uint64_t entry, size_t size,
                  int fill_byte)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_MESSAGE);
    command.message.consumer_id = consumer_id;
    command.message.message_id.ledger = 1;
    command.message.message_id.entry = entry;
    uint8_t *frame = malloc(size + 256);
    struct lw_proto_writer writer = lw_proto_writer_of(frame + 8, 248);
    lw_pulsar_command_encode(&command, &writer);
    lw_proto_store_be32(frame, (uint32_t)(4 + writer.size + size));
    lw_proto_store_be32(frame + 4, (uint32_t)writer.size);
    memset(frame + 8 + writer.size, fill_byte, size);
    peer_send_bytes(peer, frame, 8 + writer.size + size);
    free(frame);
}

void
peer_send_simple(struct peer *peer, enum lw_pulsar_command_type type)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(type);
    peer_send(peer, &command);
}

void
peer_send_success(struct peer *peer, uint64_t request_id)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_SUCCESS);
    command.success.request_id = request_id;
    peer_send(peer, &command);
}

void
peer_send_error(struct peer *peer, uint64_t request_id, int32_t code, const char *text)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_ERROR);
    command.error.request_id = request_id;
    command.error.error = code;
    command.error.message = lw_bytes_of(text);
    peer_send(peer, &command);
}

void
peer_greet(struct peer *peer, struct world *world)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_CONNECTED);
    peer_expect(peer, world, LW_PULSAR_CONNECT);
    command.connected.server_version = lw_bytes_of("Pulsar Server4.2.4");
    command.connected.protocol_version = 21;
    command.connected.max_message_size = 5 * 1024 * 1024;
    command.connected.has |= LW_PULSAR_CONNECTED_HAS_MAX_MESSAGE_SIZE |
                             LW_PULSAR_CONNECTED_HAS_FEATURE_FLAGS;
    command.connected.feature_flags.supports_topic_watchers = true;
    command.connected.feature_flags.supports_get_partitioned_metadata_without_auto_creation =
        true;
    peer_send(peer, &command);
}

void
peer_serve(struct peer *peer, struct peer_listener *listener, struct world *world)
{
    peer_accept(peer, listener, world);
    peer_greet(peer, world);
    world_until(world, world_is_dialled, world);
    assert_non_null(world->connection);
}
