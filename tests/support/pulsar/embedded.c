/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded broker's frame: memory, the clock that a test can move, members that listen, and
 * the work at the end of a turn: serve subscriptions, write, bury connections that ended. One
 * timer of the host is armed for the first alarm; alarms are few, so they are a sorted list.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "tests/support/pulsar/embedded_state.h"

void *
embedded_new(size_t size)
{
    void *memory = calloc(1, size == 0 ? 1 : size);
    lw_assert(memory != NULL);
    return memory;
}

void *
embedded_bigger(void *array, uint64_t count, size_t size)
{
    void *memory = realloc(array, (size_t)count * size);
    lw_assert(memory != NULL);
    return memory;
}

void *
embedded_copy(const void *data, size_t size)
{
    void *copy = embedded_new(size);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

void
embedded_text(char *out, size_t size, struct lw_bytes bytes)
{
    size_t length = bytes.size < size - 1 ? bytes.size : size - 1;
    if (length > 0) {
        memcpy(out, bytes.data, length);
    }
    out[length] = '\0';
}

struct lw_bytes
embedded_bytes(const char *text)
{
    return (struct lw_bytes){ text, text == NULL ? 0 : strlen(text) };
}

/* -- Time --------------------------------------------------------------------------------------- */

int64_t
embedded_now_ms(struct embedded *broker)
{
    return broker->host->ops->wall_ms(broker->host) + broker->offset_ms;
}

static void
arm_timer(struct embedded *broker)
{
    struct lw_list *first = lw_list_first(&broker->alarms);
    if (first == NULL) {
        lw_timers_disarm(&broker->host->timers, &broker->timer);
        return;
    }
    const struct embedded_alarm *alarm = LW_CONTAINER(first, struct embedded_alarm, link);
    int64_t wait_ms = alarm->due_ms - embedded_now_ms(broker);
    uint64_t wait = wait_ms > 0 ? (uint64_t)wait_ms * LW_MS : 0;
    uint64_t now = broker->host->ops->refresh(broker->host);
    lw_timers_arm(&broker->host->timers, &broker->timer, now + wait);
    if (!broker->host->is_in_turn) {
        lw_host_want_turn(broker->host);
    }
}

void
embedded_alarm_init(struct embedded_alarm *alarm, void (*fn)(struct embedded_alarm *))
{
    lw_list_init(&alarm->link);
    alarm->fn = fn;
}

void
embedded_arm(struct embedded *broker, struct embedded_alarm *alarm, int64_t due_ms)
{
    lw_list_remove(&alarm->link);
    alarm->due_ms = due_ms;
    struct lw_list *at = broker->alarms.next;
    while (at != &broker->alarms &&
           LW_CONTAINER(at, struct embedded_alarm, link)->due_ms <= due_ms) {
        at = at->next;
    }
    lw_list_insert(at, &alarm->link);
    arm_timer(broker);
}

void
embedded_disarm(struct embedded_alarm *alarm)
{
    lw_list_remove(&alarm->link);
}

static void
run_alarms(struct embedded *broker)
{
    int64_t now_ms = embedded_now_ms(broker);
    struct lw_list *first;
    while ((first = lw_list_first(&broker->alarms)) != NULL) {
        struct embedded_alarm *alarm = LW_CONTAINER(first, struct embedded_alarm, link);
        if (alarm->due_ms > now_ms) {
            break;
        }
        lw_list_remove(&alarm->link);
        alarm->fn(alarm);
    }
    arm_timer(broker);
    embedded_want_work(broker);
}

static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    run_alarms(LW_CONTAINER(timer, struct embedded, timer));
}

void
embedded_pass_ms(struct embedded *broker, int64_t ms)
{
    broker->offset_ms += ms;
    run_alarms(broker);
}

/* -- The end of a turn ---------------------------------------------------------------------------- */

void
embedded_want_work(struct embedded *broker)
{
    if (!broker->is_dying) {
        lw_host_defer(broker->host, &broker->work);
    }
}

void
embedded_want_dispatch(struct embedded_subscription *subscription)
{
    struct embedded *broker = subscription->topic->broker;
    if (lw_list_is_empty(&subscription->ready)) {
        lw_list_push(&broker->ready, &subscription->ready);
    }
    embedded_want_work(broker);
}

static void
work(struct lw_deferred *deferred)
{
    struct embedded *broker = LW_CONTAINER(deferred, struct embedded, work);
    struct lw_list *node;
    while ((node = lw_list_pop(&broker->ready)) != NULL) {
        embedded_dispatch(LW_CONTAINER(node, struct embedded_subscription, ready));
    }
    for (node = broker->sessions.next; node != &broker->sessions; node = node->next) {
        embedded_flush(LW_CONTAINER(node, struct embedded_session, link));
    }
    embedded_bury(broker);
}

/* -- Members -------------------------------------------------------------------------------------- */

static int
listen_at(uint16_t *port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    lw_assert(fd >= 0);
    int on = 1;
    lw_assert(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(*port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 128) != 0) {
        fprintf(stderr, "embedded broker: port %u: %s\n", *port, strerrordesc_np(errno));
        abort();
    }
    socklen_t size = sizeof address;
    lw_assert(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void
on_listener(int fd, int events, void *user)
{
    struct embedded_member *member = user;
    (void)events;
    for (int i = 0; i < member->broker->member_count; i++) {
        if (member->broker->members[i] == member) {
            embedded_accept(member->broker, fd, i, fd == member->tls_fd);
        }
    }
}

static void
member_open(struct embedded_member *member)
{
    struct embedded *broker = member->broker;
    struct lw_host *host = broker->host;
    member->fd = listen_at(&member->port);
    member->watch = host->ops->watch(host, member->fd, LW_READABLE, on_listener, member);
    lw_assert(member->watch != NULL);
    snprintf(member->url, sizeof member->url, "pulsar://127.0.0.1:%u", member->port);
    if (broker->tls != NULL) {
        member->tls_fd = listen_at(&member->tls_port);
        member->tls_watch = host->ops->watch(host, member->tls_fd, LW_READABLE, on_listener,
                                             member);
        lw_assert(member->tls_watch != NULL);
        snprintf(member->tls_url, sizeof member->tls_url, "pulsar+ssl://127.0.0.1:%u",
                 member->tls_port);
    }
}

static void
member_close(struct embedded_member *member)
{
    const struct lw_host_ops *ops = member->broker->host->ops;
    if (member->watch != NULL) {
        ops->unwatch(member->watch);
        close(member->fd);
        member->watch = NULL;
    }
    if (member->tls_watch != NULL) {
        ops->unwatch(member->tls_watch);
        close(member->tls_fd);
        member->tls_watch = NULL;
    }
    member->fd = member->tls_fd = -1;
}

int
embedded_add_member(struct embedded *broker, bool is_proxy)
{
    lw_assert(broker->member_count < 8);
    struct embedded_member *member = embedded_new(sizeof *member);
    member->broker = broker;
    member->is_proxy = is_proxy;
    member->tls_fd = -1;
    member->port = broker->member_count == 0 ? broker->settings.port : 0;
    member_open(member);
    broker->members[broker->member_count] = member;
    return broker->member_count++;
}

const char *
embedded_url(const struct embedded *broker, int member)
{
    return broker->members[member]->url;
}

const char *
embedded_tls_url(const struct embedded *broker, int member)
{
    return broker->tls == NULL ? NULL : broker->members[member]->tls_url;
}

void
embedded_set_listening(struct embedded *broker, int member, bool is_listening)
{
    struct embedded_member *it = broker->members[member];
    if (is_listening && it->watch == NULL) {
        member_open(it);
    } else if (!is_listening) {
        member_close(it);
    }
}

/* -- Birth and death ------------------------------------------------------------------------------ */

void
embedded_settings_init(struct embedded_settings *settings)
{
    *settings = (struct embedded_settings){
        .max_message_size = LW_PULSAR_MESSAGE_BYTES_DEFAULT,
        .proxy_flag = true,
        .needs_lookup = true,
        .creates_topics = true,
        .is_batch_index_ack = true,
        .has_topic_watchers = true,
        .tells_end = true,
        .read_batch = 100,
        .keep_alive_ms = 30000,
        .liveness_ms = 5000,
        .failover_delay_ms = 1000,
        .challenge_ms = 2000,
    };
}

static SSL_CTX *
make_tls(const struct embedded_settings *settings)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    lw_assert(ctx != NULL);
    bool is_fine = SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
                   SSL_CTX_use_certificate_chain_file(ctx, settings->tls_certificate_file) ==
                       1 &&
                   SSL_CTX_use_PrivateKey_file(ctx, settings->tls_key_file, SSL_FILETYPE_PEM) ==
                       1;
    if (is_fine && settings->tls_trust_file != NULL) {
        is_fine = SSL_CTX_load_verify_locations(ctx, settings->tls_trust_file, NULL) == 1;
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    if (!is_fine) {
        ERR_print_errors_fp(stderr);
        abort();
    }
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return ctx;
}

struct embedded *
embedded_create(struct lw_host *host, const struct embedded_settings *settings)
{
    struct embedded *broker = embedded_new(sizeof *broker);
    broker->host = host;
    broker->settings = *settings;
    lw_timer_init(&broker->timer, on_timer);
    lw_deferred_init(&broker->work, work);
    struct lw_list *lists[] = { &broker->alarms,      &broker->sessions, &broker->topics,
                                &broker->partitioned, &broker->ready,    &broker->contests,
                                &broker->late,        &broker->rules };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        lw_list_init(lists[i]);
    }
    broker->next_ledger = 7;
    broker->next_serial = broker->next_scope = 1;
    broker->started_ms = embedded_now_ms(broker);
    if (settings->tls_certificate_file != NULL) {
        broker->tls = make_tls(settings);
    }
    embedded_add_member(broker, false);
    return broker;
}

void
embedded_destroy(struct embedded *broker)
{
    if (broker == NULL) {
        return;
    }
    broker->is_dying = true;
    embedded_drop_all(broker);
    embedded_clear_faults(broker);
    for (int i = 0; i < broker->member_count; i++) {
        member_close(broker->members[i]);
        free(broker->members[i]);
    }
    struct lw_list *node;
    while ((node = lw_list_first(&broker->topics)) != NULL) {
        embedded_topic_free(LW_CONTAINER(node, struct embedded_topic, link));
    }
    embedded_partitions_free(broker);
    lw_deferred_cancel(&broker->work);
    lw_timers_disarm(&broker->host->timers, &broker->timer);
    SSL_CTX_free(broker->tls);
    free(broker);
}

struct embedded_settings *
embedded_settings(struct embedded *broker)
{
    return &broker->settings;
}
