/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logins at a real cluster with SASL: what is accepted, what is refused and how that reads. The
 * tokens of client credentials come from an endpoint that is a child process here and answers
 * one secret only; the cluster takes any unsecured token.
 */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "tests/kafka/cluster.h"

static char address[64];
static char endpoint[64];
static pid_t endpoint_pid;

/* -- The endpoint ------------------------------------------------------------------------------- */

static void
encode(struct lw_text *out, const char *text)
{
    struct lw_text base64;
    struct lw_json json;
    lw_text_init(&base64);
    lw_json_init(&json, &base64);
    lw_json_base64(&json, lw_bytes_of(text));
    for (const char *at = base64.data; at && *at; at++) {
        if (*at != '"' && *at != '=') {
            lw_text_append_char(out, (char)(*at == '+' ? '-' : *at == '/' ? '_' : *at));
        }
    }
    lw_text_deinit(&base64);
}

/* An unsecured token of RFC 7519 for the principal "me". */
static void
append_token(struct lw_text *out)
{
    char claims[128];
    long long now = (long long)(lw_clock_wall_ms() / 1000);
    (void)snprintf(claims, sizeof claims, "{\"sub\":\"me\",\"iat\":%lld,\"exp\":%lld}", now,
                   now + 300);
    encode(out, "{\"alg\":\"none\"}");
    lw_text_append(out, ".");
    encode(out, claims);
    lw_text_append(out, ".");
}

static void
respond(int fd, const char *request)
{
    struct lw_text token;
    lw_text_init(&token);
    /* me:secret, as RFC 7617 writes it. */
    if (!strstr(request, "Authorization: Basic bWU6c2VjcmV0")) {
        (void)dprintf(fd, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 7\r\n\r\nunknown");
        return;
    }
    lw_text_append(&token, "{\"expires_in\":300,\"access_token\":\"");
    append_token(&token);
    lw_text_append(&token, "\"}");
    (void)dprintf(fd, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", token.size,
                  token.data);
    lw_text_deinit(&token);
}

static void
serve(int listener)
{
    for (;;) {
        char request[4096];
        int fd = accept(listener, NULL, NULL);
        ssize_t size = fd >= 0 ? read(fd, request, sizeof request - 1) : 0;
        if (size > 0) {
            request[size] = '\0';
            respond(fd, request);
        }
        close(fd);
    }
}

static void
open_endpoint(void)
{
    struct sockaddr_in name = { .sin_family = AF_INET };
    socklen_t size = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (struct sockaddr *)&name, size), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &size), 0);
    (void)snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%d/token",
                   ntohs(name.sin_port));
    endpoint_pid = fork();
    if (endpoint_pid == 0) {
        serve(listener);
    }
    close(listener);
}

static int
setup(void **state)
{
    (void)state;
    cluster_tool("start --sasl");
    FILE *file = popen(LW_SOURCE_DIR "/tools/broker kafka address --sasl", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%63s", address), 1);
    (void)pclose(file);
    open_endpoint();
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    (void)kill(endpoint_pid, SIGKILL);
    (void)waitpid(endpoint_pid, NULL, 0);
    cluster_tool("stop --sasl");
    return 0;
}

/* -- Logins ------------------------------------------------------------------------------------------ */

static bool
is_judged(struct driver *driver, void *user)
{
    (void)user;
    return driver->ups + driver->downs > 0;
}

/* Asks for a topic that does not exist, which is enough to log in. */
static void
log_in(struct driver *driver, const struct lw_property *properties)
{
    static struct lw_publication any;
    any = (struct lw_publication){ .topic = "anything", .partition = -1, .event_time_ms = -1 };
    driver_open(driver, address, properties);
    driver_start(driver);
    driver_publish(driver, &any);
    driver_run(driver, is_judged, NULL, DRIVER_PATIENCE_MS);
}

static void
expect_accepted(const struct lw_property *properties)
{
    struct driver driver;
    log_in(&driver, properties);
    assert_string_equal(driver.last_error.message, "");
    assert_int_equal(driver.ups, 1);
    driver_close(&driver);
}

static void
expect_refused(const struct lw_property *properties, const char *code, const char *part)
{
    struct driver driver;
    log_in(&driver, properties);
    assert_int_equal(driver.downs, 1);
    assert_string_equal(driver.last_error.code, code);
    assert_non_null(strstr(driver.last_error.message, part));
    assert_true(driver.last_error.help[0] != '\0');
    driver_close(&driver);
}

static void
a_password_is_accepted(void **state)
{
    (void)state;
    const struct lw_property properties[] = { { "security.protocol", "sasl_plaintext" },
                                              { "sasl.mechanism", "PLAIN" },
                                              { "sasl.username", "laneway" },
                                              { "sasl.password", "laneway-secret" },
                                              { NULL, NULL } };
    expect_accepted(properties);
}

static void
a_wrong_password_is_said(void **state)
{
    (void)state;
    const struct lw_property properties[] = { { "security.protocol", "sasl_plaintext" },
                                              { "sasl.mechanism", "PLAIN" },
                                              { "sasl.username", "laneway" },
                                              { "sasl.password", "wrong" },
                                              { NULL, NULL } };
    expect_refused(properties, "E0502", "Invalid username or password");
}

static void
no_login_at_all_points_to_the_protocol(void **state)
{
    (void)state;
    struct driver driver;
    log_in(&driver, NULL);
    assert_string_equal(driver.last_error.code, "E0501");
    assert_non_null(strstr(driver.last_error.help, "sasl_plaintext"));
    driver_close(&driver);
}

static void
an_unsecured_token_of_the_client_is_accepted(void **state)
{
    (void)state;
    const struct lw_property properties[] = { { "security.protocol", "sasl_plaintext" },
                                              { "sasl.mechanism", "OAUTHBEARER" },
                                              { "enable.sasl.oauthbearer.unsecure.jwt",
                                                "true" },
                                              { "sasl.oauthbearer.config", "principal=me" },
                                              { NULL, NULL } };
    expect_accepted(properties);
}

static void
with_credentials(struct lw_property *properties, const char *secret)
{
    const struct lw_property all[] = { { "security.protocol", "sasl_plaintext" },
                                       { "sasl.mechanism", "OAUTHBEARER" },
                                       { "sasl.oauthbearer.method", "oidc" },
                                       { "sasl.oauthbearer.client.id", "me" },
                                       { "sasl.oauthbearer.client.secret", secret },
                                       { "sasl.oauthbearer.scope", "read write" },
                                       { "sasl.oauthbearer.token.endpoint.url", endpoint },
                                       { NULL, NULL } };
    memcpy(properties, all, sizeof all);
}

static void
a_token_for_client_credentials_is_fetched_and_accepted(void **state)
{
    (void)state;
    struct lw_property properties[8];
    with_credentials(properties, "secret");
    expect_accepted(properties);
}

static void
an_endpoint_that_refuses_is_said(void **state)
{
    (void)state;
    struct lw_property properties[8];
    with_credentials(properties, "other");
    expect_refused(properties, "E0502", "the token endpoint answers 401");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_password_is_accepted),
        cmocka_unit_test(a_wrong_password_is_said),
        cmocka_unit_test(no_login_at_all_points_to_the_protocol),
        cmocka_unit_test(an_unsecured_token_of_the_client_is_accepted),
        cmocka_unit_test(a_token_for_client_credentials_is_fetched_and_accepted),
        cmocka_unit_test(an_endpoint_that_refuses_is_said),
    };
    (void)cluster_address();
    return cmocka_run_group_tests(tests, setup, teardown);
}
