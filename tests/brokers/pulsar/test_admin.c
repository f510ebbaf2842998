/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topics through the admin API, with a small HTTP server on a thread, since these calls block: what
 * is asked, with which credentials, and what the answers mean.
 */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "brokers/pulsar/admin.h"
#include "brokers/pulsar/holder.h"
#include "tests/brokers/pulsar/peer.h"

#define TOPIC "/admin/v2/persistent/public/default/"

enum { ANSWERS_MAX = 4, REQUEST_BYTES = 2048 };

struct answer {
    int code;
    const char *body;
};

/* Answers one request after another, each on a connection of its own. */
static struct server {
    int fd;
    uint16_t port;
    pthread_t thread;
    struct answer answers[ANSWERS_MAX];
    size_t count;
    char requests[ANSWERS_MAX][REQUEST_BYTES];
} server;

static struct world world;
static char url[64];
static uint64_t live;

static void
answer_one(int fd, size_t index)
{
    char *request = server.requests[index];
    size_t size = 0;
    ssize_t got = 1;
    bool is_whole = false;
    while (got > 0 && size < REQUEST_BYTES - 1 && !is_whole) {
        got = read(fd, request + size, REQUEST_BYTES - 1 - size);
        size += got > 0 ? (size_t)got : 0;
        request[size] = '\0';
        const char *end = strstr(request, "\r\n\r\n");
        const char *length = strstr(request, "Content-Length: ");
        int body = 0;
        if (length) {
            (void)sscanf(length, "Content-Length: %d", &body);
        }
        is_whole = end && strlen(end + 4) >= (size_t)body;
    }
    const struct answer *answer = &server.answers[index];
    (void)dprintf(fd, "HTTP/1.1 %d x\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                  answer->code, strlen(answer->body), answer->body);
    (void)close(fd);
}

static void *
serve(void *unused)
{
    (void)unused;
    for (size_t i = 0; i < server.count; i++) {
        int fd = accept(server.fd, NULL, NULL);
        if (fd < 0) {
            break;
        }
        answer_one(fd, i);
    }
    return NULL;
}

static void
expect(size_t count, const struct answer *answers)
{
    server.count = count;
    memcpy(server.answers, answers, count * sizeof *answers);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static void
join(void)
{
    assert_int_equal(pthread_join(server.thread, NULL), 0);
}

static int
set_up(void **state)
{
    (void)state;
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof address;
    memset(&server, 0, sizeof server);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server.fd, 8), 0);
    assert_int_equal(getsockname(server.fd, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/", ntohs(address.sin_port));
    live = lw_alloc_live();
    world_init(&world, "pulsar://127.0.0.1:1", NULL);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    world_deinit(&world);
    (void)close(server.fd);
    assert_int_equal(lw_alloc_live(), live);
    return 0;
}

static enum lw_status
describe(struct lw_topic_info *topics, size_t n, struct lw_error *ret_error)
{
    return lw_pulsar_admin_describe(&world.client, url, topics, n, 5000, ret_error);
}

static enum lw_status
create(struct lw_topic_info *topics, size_t n)
{
    struct lw_error error;
    return lw_pulsar_admin_create(&world.client, url, topics, n, 5000, &error);
}

static void
assert_request(size_t index, const char *method, const char *path)
{
    char line[256];
    int length = snprintf(line, sizeof line, "%s %s HTTP/1.1\r\n", method, path);
    assert_memory_equal(server.requests[index], line, (size_t)length);
}

static void
a_partitioned_topic_tells_its_number(void **state)
{
    (void)state;
    struct lw_error error;
    struct lw_topic_info topic = { .name = "orders" };
    expect(1, (struct answer[]){ { 200, "{\"partitions\":3}" } });
    assert_int_equal(describe(&topic, 1, &error), LW_STATUS_OK);
    join();
    assert_request(0, "GET", TOPIC "orders/partitions");
    assert_int_equal(topic.partitions, 3);
    assert_int_equal(topic.status, LW_STATUS_OK);
}

static void
a_topic_without_partitions_counts_as_one_if_it_is_there(void **state)
{
    (void)state;
    struct lw_error error;
    struct lw_topic_info topics[] = { { .name = "a" }, { .name = "b/c/d e" } };
    expect(4, (struct answer[]){ { 200, "{\"partitions\":0}" },
                                 { 200, "{}" },
                                 { 200, "{\"partitions\":0}" },
                                 { 404, "{\"reason\":\"Topic not found\"}" } });
    assert_int_equal(describe(topics, 2, &error), LW_STATUS_OK);
    join();
    assert_request(1, "GET", TOPIC "a/stats");
    assert_request(3, "GET", "/admin/v2/persistent/b/c/d%20e/stats");
    assert_int_equal(topics[0].partitions, 1);
    assert_int_equal(topics[1].partitions, 0);
    assert_int_equal(topics[1].status, LW_STATUS_OK); /* absent is an answer */
}

static void
what_may_not_be_asked_is_denied_for_that_topic_only(void **state)
{
    (void)state;
    struct lw_error error;
    struct lw_topic_info topics[] = { { .name = "a" }, { .name = "a/b" }, { .name = "c" } };
    expect(2, (struct answer[]){ { 403, "{\"reason\":\"not yours\"}" },
                                 { 200, "{\"partitions\":2}" } });
    assert_int_equal(describe(topics, 3, &error), LW_STATUS_OK);
    join();
    assert_int_equal(topics[0].status, LW_STATUS_DENIED);
    assert_string_equal(topics[0].reason, "not yours");
    assert_int_equal(topics[1].status, LW_STATUS_INVALID);
    assert_int_equal(topics[2].partitions, 2);
}

static void
use_credentials(const char *plugin, const char *token, const char *params)
{
    struct lw_error error;
    struct lw_pulsar_auth_options options = { .plugin = plugin,
                                              .token = token,
                                              .params = params };
    assert_int_equal(lw_pulsar_auth_create(world.host, &options, &world.client.auth, &error),
                     LW_STATUS_OK);
}

static void
who_is_not_known_is_refused_as_a_whole(void **state)
{
    (void)state;
    struct lw_error error;
    struct lw_topic_info topics[] = { { .name = "a" }, { .name = "b" } };
    use_credentials(NULL, "no-token-of-theirs", NULL);
    expect(1, (struct answer[]){ { 401, "<html><title>Error 401</title></html>" } });
    assert_int_equal(describe(topics, 2, &error), LW_STATUS_DENIED);
    join();
    assert_string_equal(error.code, "E0502");
    assert_string_equal(error.message, "broker \"b\" refused the authentication: "
                                       "the admin API answered 401");
    assert_non_null(strstr(error.help, "auth.token"));
}

/* The server answers in real time and the client's timers go by the moved clock: both pass. */
static bool
is_answered(void *user)
{
    const struct lw_pulsar_holder *holder = user;
    virtual_host_pass(&world.virtual_host, LW_MS);
    return !holder->topic;
}

static void
who_holds_a_subscription_is_asked_and_said(void **state)
{
    (void)state;
    struct lw_pulsar_holder holder;
    use_credentials(NULL, NULL, NULL);
    lw_pulsar_holder_init(&holder, &world.client, url);
    expect(2, (struct answer[]){ { 200, "{\"subscriptions\":{\"s\":{\"consumers\":[{"
                                        "\"consumerName\":\"mine \\\"1\\\"\",\"address\":"
                                        "\"/10.0.0.1:7\"}]}}}" },
                                 { 200, "{\"subscriptions\":{\"s\":{\"consumers\":[]}}}" } });
    lw_pulsar_holder_ask(&holder, "persistent://public/default/a-partition-0", "s");
    lw_pulsar_holder_ask(&holder, "persistent://public/default/b", "s"); /* not meanwhile */
    world_until(&world, is_answered, &holder);
    assert_non_null(strstr(holder.said.data, "subscription=s consumer=\"mine \\\"1\\\"\" "
                                             "address=\"/10.0.0.1:7\" since=\"\""));
    lw_pulsar_holder_ask(&holder, "persistent://public/default/a-partition-0", "s");
    world_until(&world, is_answered, &holder);
    join();
    assert_request(0, "GET", TOPIC "a-partition-0/stats");
    lw_pulsar_holder_deinit(&holder);
}

static void
without_an_address_of_the_admin_api_nobody_is_asked(void **state)
{
    (void)state;
    struct lw_pulsar_holder holder;
    lw_pulsar_holder_init(&holder, &world.client, NULL);
    lw_pulsar_holder_ask(&holder, "persistent://public/default/a", "s");
    assert_null(holder.topic);
    lw_pulsar_holder_deinit(&holder);
}

static void
topics_are_made_with_and_without_partitions(void **state)
{
    (void)state;
    struct lw_topic_info topics[] = {
        { .name = "a", .partitions = 4, .retention_ms = -1 },
        { .name = "b", .partitions = 1, .retention_ms = -1 },
        { .name = "c", .partitions = 2, .retention_ms = -1 },
    };
    expect(3, (struct answer[]){ { 204, "" },
                                 { 204, "" },
                                 { 409, "{\"reason\":\"This topic already exists\"}" } });
    assert_int_equal(create(topics, 3), LW_STATUS_OK);
    join();
    assert_request(0, "PUT", TOPIC "a/partitions");
    assert_non_null(strstr(server.requests[0], "Content-Type: application/json\r\n"));
    assert_string_equal(strstr(server.requests[0], "\r\n\r\n"), "\r\n\r\n4");
    assert_request(1, "PUT", TOPIC "b");
    assert_int_equal(topics[0].status, LW_STATUS_OK);
    assert_int_equal(topics[1].status, LW_STATUS_OK);
    assert_int_equal(topics[2].status, LW_STATUS_ALREADY);
}

static void
retention_is_set_in_whole_minutes(void **state)
{
    (void)state;
    struct lw_topic_info topic = { .name = "a", .partitions = 2, .retention_ms = 90000 };
    expect(2, (struct answer[]){ { 204, "" }, { 204, "" } });
    assert_int_equal(create(&topic, 1), LW_STATUS_OK);
    join();
    assert_request(1, "POST", TOPIC "a/retention");
    assert_non_null(strstr(server.requests[1], "\"retentionTimeInMinutes\": 2"));
}

static void
a_token_is_shown_as_bearer(void **state)
{
    (void)state;
    struct lw_error error;
    struct lw_topic_info topic = { .name = "a" };
    use_credentials(NULL, "secret.token", NULL);
    expect(1, (struct answer[]){ { 200, "{\"partitions\":3}" } });
    assert_int_equal(describe(&topic, 1, &error), LW_STATUS_OK);
    join();
    assert_non_null(strstr(server.requests[0], "Authorization: Bearer secret.token\r\n"));
}

static void
a_password_is_shown_as_basic(void **state)
{
    (void)state;
    struct lw_error error;
    struct lw_topic_info topic = { .name = "a" };
    use_credentials("basic", NULL, "{\"username\":\"me\",\"password\":\"pw\"}");
    expect(1, (struct answer[]){ { 200, "{\"partitions\":3}" } });
    assert_int_equal(describe(&topic, 1, &error), LW_STATUS_OK);
    join();
    assert_non_null(strstr(server.requests[0], "Authorization: Basic bWU6cHc=\r\n"));
}

static void
an_api_that_is_not_there_is_said_with_its_address(void **state)
{
    (void)state;
    struct lw_error error;
    struct lw_topic_info topic = { .name = "a" };
    (void)close(server.fd);
    server.fd = -1;
    assert_int_equal(describe(&topic, 1, &error), LW_STATUS_UNAVAILABLE);
    assert_string_equal(error.code, "E0501");
    assert_non_null(strstr(error.message, "127.0.0.1"));
    assert_non_null(strstr(error.help, "admin_url"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_partitioned_topic_tells_its_number),
        TEST(a_topic_without_partitions_counts_as_one_if_it_is_there),
        TEST(what_may_not_be_asked_is_denied_for_that_topic_only),
        TEST(who_is_not_known_is_refused_as_a_whole),
        TEST(who_holds_a_subscription_is_asked_and_said),
        TEST(without_an_address_of_the_admin_api_nobody_is_asked),
        TEST(topics_are_made_with_and_without_partitions),
        TEST(retention_is_set_in_whole_minutes),
        TEST(a_token_is_shown_as_bearer),
        TEST(a_password_is_shown_as_basic),
        TEST(an_api_that_is_not_there_is_said_with_its_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
