/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to an open connection: the name's addresses, TCP to one after the other, TLS on it. One
 * timer bounds all of it and what follows until CONNECTED; while other addresses are left, each
 * gets its share of what remains, so that a dead one does not use up the whole. Nothing blocks.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "brokers/pulsar/connection_state.h"

#define TLS_FILES_KEPT_NS (1000 * LW_MS)

enum { KEEPALIVE_IDLE_S = 60, KEEPALIVE_INTERVAL_S = 6, KEEPALIVE_PROBES = 10 };

static void
say_unreachable(struct lw_pulsar_connection *connection, const char *why,
                struct lw_error *ret_error)
{
    (void)lw_error_set(ret_error, LW_STATUS_UNAVAILABLE, "E0501",
                       "broker \"%s\" cannot be reached at %s: %s", connection->client->name,
                       connection->name, why);
    lw_error_help(ret_error, "check address and network. Still trying; nothing is lost.");
}

static void
end_unreachable(struct lw_pulsar_connection *connection, const char *why)
{
    struct lw_error error;
    say_unreachable(connection, why, &error);
    lw_pulsar_connection_end(connection, -1, &error);
}

/* -- The socket -------------------------------------------------------------------------------------- */

void
lw_pulsar_connection_set_events(struct lw_pulsar_connection *connection, int events)
{
    if (connection->watch && connection->events != events) {
        connection->events = events;
        connection->client->host->ops->rewatch(connection->watch, events);
    }
}

void
lw_pulsar_connection_close_socket(struct lw_pulsar_connection *connection)
{
    if (connection->watch) {
        connection->client->host->ops->unwatch(connection->watch);
        connection->watch = NULL;
    }
    if (connection->fd >= 0) {
        close(connection->fd);
        connection->fd = -1;
    }
    lw_pulsar_tls_destroy(connection->tls);
    connection->tls = NULL;
    lw_free(connection->cipher);
    connection->cipher = NULL;
}

static void
on_written_error(struct lw_pulsar_connection *connection)
{
    int error = 0;
    socklen_t size = sizeof error;
    struct lw_error told;
    if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
    }
    if (error != 0) {
        say_unreachable(connection, strerrordesc_np(error), &told);
        lw_pulsar_connection_try_next(connection, &told);
        return;
    }
    lw_pulsar_connection_set_events(connection, LW_READABLE);
    lw_pulsar_connection_on_open(connection);
}

static void
on_event(int fd, int events, void *user)
{
    struct lw_pulsar_connection *connection = user;
    (void)fd;
    if (connection->state == LW_PULSAR_CONNECTING && connection->step == LW_PULSAR_REACHING) {
        on_written_error(connection);
        return;
    }
    if (events & LW_WRITABLE) {
        connection->out.is_blocked = false;
        lw_pulsar_connection_flush(connection);
    }
    if (events & LW_READABLE && connection->fd >= 0) {
        lw_pulsar_connection_read(connection);
    }
}

/* Best effort: without these it works, only less well. */
static void
tune(int fd)
{
    int on = 1;
    int idle = KEEPALIVE_IDLE_S;
    int interval = KEEPALIVE_INTERVAL_S;
    int probes = KEEPALIVE_PROBES;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

/* Where TCP goes. */
static const struct lw_pulsar_host *
dialled_host(const struct lw_pulsar_connection *connection)
{
    const struct lw_pulsar_client_settings *options = &connection->client->options;
    return options->has_proxy ? &options->proxy : &connection->target.physical;
}

/* 0 when the connection is made or on its way, else why not. */
static int
dial_address(struct lw_pulsar_connection *connection,
             const struct lw_pulsar_socket_address *address)
{
    struct lw_host *host = connection->client->host;
    int family = address->address.ss_family;
    connection->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connection->fd < 0) {
        return errno;
    }
    tune(connection->fd);
    const struct sockaddr *to = (const struct sockaddr *)&address->address;
    if (connect(connection->fd, to, address->size) != 0 && errno != EINPROGRESS) {
        return errno;
    }
    connection->events = LW_WRITABLE;
    connection->watch = host->ops->watch(host, connection->fd, LW_WRITABLE, on_event,
                                         connection);
    return connection->watch ? 0 : ENOMEM;
}

/* -- Addresses in turn --------------------------------------------------------------------------------- */

/* The share of this address in the time that is left. */
static void
arm_share(struct lw_pulsar_connection *connection)
{
    struct lw_host *host = connection->client->host;
    uint64_t now = host->now;
    uint64_t left = connection->deadline > now ? connection->deadline - now : 0;
    size_t count = connection->address_count - connection->address_at;
    lw_timers_arm(&host->timers, &connection->timer, now + left / (count ? count : 1));
}

/* What was read or encrypted for the address before this one is of no use. */
static void
forget_attempt(struct lw_pulsar_connection *connection)
{
    lw_pulsar_connection_close_socket(connection);
    lw_pulsar_connection_drop_output(connection);
    connection->filled = 0;
    connection->scanned = 0;
    connection->wanted = 0;
    connection->received = 0;
    connection->is_end = false;
}

/* Goes on from the present address to the first that can be dialled. */
static void
reach(struct lw_pulsar_connection *connection)
{
    while (connection->address_at < connection->address_count) {
        connection->step = LW_PULSAR_REACHING;
        arm_share(connection);
        int failed = dial_address(connection, &connection->addresses[connection->address_at]);
        if (failed == 0) {
            return;
        }
        say_unreachable(connection, strerrordesc_np(failed), &connection->attempt);
        forget_attempt(connection);
        connection->address_at++;
    }
    lw_pulsar_connection_end(connection, -1, &connection->attempt);
}

void
lw_pulsar_connection_try_next(struct lw_pulsar_connection *connection,
                              const struct lw_error *error)
{
    connection->attempt = *error;
    connection->address_at++;
    lw_pulsar_auth_cancel(&connection->auth);
    forget_attempt(connection);
    reach(connection);
}

static void
add_address(struct lw_pulsar_connection *connection, const struct sockaddr *from,
            socklen_t size)
{
    struct lw_pulsar_socket_address *to = &connection->addresses[connection->address_count];
    uint16_t port = htons(dialled_host(connection)->port);
    memcpy(&to->address, from, size);
    to->size = size;
    if (from->sa_family == AF_INET6) {
        ((struct sockaddr_in6 *)&to->address)->sin6_port = port;
    } else {
        ((struct sockaddr_in *)&to->address)->sin_port = port;
    }
    connection->address_count++;
}

static void
on_resolved(struct lw_resolve *resolve, const struct addrinfo *addresses, const char *failure)
{
    struct lw_pulsar_connection *connection = LW_CONTAINER(resolve, struct lw_pulsar_connection,
                                                           resolve);
    for (const struct addrinfo *at = addresses; at; at = at->ai_next) {
        bool is_ip = at->ai_family == AF_INET || at->ai_family == AF_INET6;
        if (is_ip && connection->address_count < LW_PULSAR_ADDRESSES_MAX &&
            at->ai_addrlen <= sizeof(struct sockaddr_storage)) {
            add_address(connection, at->ai_addr, at->ai_addrlen);
        }
    }
    if (connection->address_count == 0) {
        end_unreachable(connection, failure ? failure : "the name has no address");
        return;
    }
    reach(connection);
}

/* An IP literal needs no look-up. */
static bool
add_literal(struct lw_pulsar_connection *connection)
{
    const char *name = dialled_host(connection)->name;
    struct sockaddr_in ip4 = { .sin_family = AF_INET };
    struct sockaddr_in6 ip6 = { .sin6_family = AF_INET6 };
    if (inet_pton(AF_INET, name, &ip4.sin_addr) == 1) {
        add_address(connection, (const struct sockaddr *)&ip4, sizeof ip4);
    } else if (inet_pton(AF_INET6, name, &ip6.sin6_addr) == 1) {
        add_address(connection, (const struct sockaddr *)&ip6, sizeof ip6);
    }
    return connection->address_count > 0;
}

void
lw_pulsar_connection_open(struct lw_pulsar_connection *connection)
{
    struct lw_host *host = connection->client->host;
    connection->state = LW_PULSAR_CONNECTING;
    connection->step = LW_PULSAR_RESOLVING;
    connection->deadline = host->now + connection->client->options.connection_timeout_ns;
    if (add_literal(connection)) {
        reach(connection);
        return;
    }
    lw_timers_arm(&host->timers, &connection->timer, connection->deadline);
    if (!lw_host_resolve(host, &connection->resolve, dialled_host(connection)->name,
                         on_resolved)) {
        end_unreachable(connection, "its name cannot be looked up");
    }
}

/* -- TLS -------------------------------------------------------------------------------------------------- */

/* Certificates may have been replaced, so files are read again, but not for each of a burst. */
static enum lw_status
refresh_context(struct lw_pulsar_client *client, struct lw_error *ret_error)
{
    struct lw_pulsar_tls_options options = client->options.tls;
    if (client->tls && client->host->now - client->tls_made_at <= TLS_FILES_KEPT_NS) {
        return LW_STATUS_OK;
    }
    if (client->auth && lw_pulsar_auth_certificate_file(client->auth)) {
        options.certificate_file = lw_pulsar_auth_certificate_file(client->auth);
        options.key_file = lw_pulsar_auth_key_file(client->auth);
    }
    struct lw_pulsar_tls_context *context = NULL;
    enum lw_status status = lw_pulsar_tls_context_create(&options, &context, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    lw_pulsar_tls_context_destroy(client->tls);
    client->tls = context;
    client->tls_made_at = client->host->now;
    return LW_STATUS_OK;
}

static void
start_tls(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_client *client = connection->client;
    struct lw_error error;
    enum lw_status status = refresh_context(client, &error);
    if (status == LW_STATUS_OK) {
        status = lw_pulsar_tls_create(client->tls, connection->target.physical.name,
                                      &connection->tls, &error);
    }
    if (status == LW_STATUS_OK) {
        connection->cipher = lw_resize_array(NULL, 1, sizeof *connection->cipher);
        status = connection->cipher
                     ? LW_STATUS_OK
                     : lw_error_set(&error, LW_STATUS_NO_MEMORY, "", "no memory for TLS");
    }
    if (status != LW_STATUS_OK || !connection->cipher) {
        lw_pulsar_connection_end(connection, -1, &error);
        return;
    }
    connection->cipher->in_size = 0;
    connection->cipher->in_used = 0;
    connection->cipher->out_size = 0;
    connection->cipher->out_used = 0;
    connection->step = LW_PULSAR_SHAKING_HANDS;
    lw_pulsar_connection_flush(connection);
}

/* TCP is there. */
void
lw_pulsar_connection_on_open(struct lw_pulsar_connection *connection)
{
    if (connection->client->address.is_tls) {
        start_tls(connection);
    } else {
        lw_pulsar_connection_greet(connection);
    }
}
