/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials: what each method gives, where tokens are read from, what is said about bad ones,
 * and tokens of OAuth2 from an issuer that is a child process here.
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

#include "base/alloc.h"
#include "base/loop.h"
#include "brokers/pulsar/auth.h"
#include "brokers/pulsar/auth_settings.h"

static char folder[] = "/tmp/lw-auth-XXXXXX";
static struct lw_loop *loop;
static int64_t wall_ms = INT64_C(1800000000000); /* moved by tests */

static int64_t
moved_wall(struct lw_host *host)
{
    (void)host;
    return wall_ms;
}

static const char *
path_of(const char *name)
{
    static char paths[8][128];
    static unsigned int next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void
write_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* -- Asking ----------------------------------------------------------------------------------------- */

struct asker {
    struct lw_pulsar_auth_request request; /* first */
    char method[32];
    char data[512];
    size_t size;
    bool has_data;
    struct lw_error error;
    int answers;
};

static void
on_answer(struct lw_pulsar_auth_request *request, const struct lw_pulsar_credentials *given,
          const struct lw_error *error)
{
    struct asker *asker = (struct asker *)(void *)request;
    asker->answers++;
    asker->error = error ? *error : (struct lw_error){ 0 };
    if (given) {
        (void)snprintf(asker->method, sizeof asker->method, "%s", given->method);
        asker->has_data = given->data.data != NULL;
        asker->size = given->data.size;
        (void)snprintf(asker->data, sizeof asker->data, "%.*s", (int)given->data.size,
                       given->data.data ? (const char *)given->data.data : "");
    }
}

static void
wait_for(struct asker *asker)
{
    struct lw_host *host = lw_loop_host(loop);
    uint64_t deadline = host->ops->refresh(host) + 20000 * LW_MS;
    while (asker->answers == 0 && host->now < deadline) {
        lw_loop_turn_until(loop, deadline);
    }
    assert_int_equal(asker->answers, 1);
}

/* Asks and waits; never answered inside the call. */
static struct asker
ask(struct lw_pulsar_auth *auth, bool is_challenge)
{
    static struct asker asker;
    memset(&asker, 0, sizeof asker);
    lw_pulsar_auth_ask(auth, &asker.request, on_answer, is_challenge);
    assert_int_equal(asker.answers, 0);
    wait_for(&asker);
    return asker;
}

static struct lw_pulsar_auth *
create(const struct lw_pulsar_auth_options *options)
{
    struct lw_error error;
    struct lw_pulsar_auth *auth = NULL;
    if (lw_pulsar_auth_create(lw_loop_host(loop), options, &auth, &error) != LW_STATUS_OK) {
        fail_msg("%s", error.message);
    }
    return auth;
}

static void
expect_given(const struct lw_pulsar_auth_options *options, const char *method, const char *data)
{
    struct lw_pulsar_auth *auth = create(options);
    struct asker asker = ask(auth, false);
    assert_string_equal(asker.error.message, "");
    assert_string_equal(asker.method, method);
    assert_int_equal(asker.has_data, data != NULL);
    assert_string_equal(asker.data, data ? data : "");
    assert_null(lw_pulsar_auth_error(auth));
    lw_pulsar_auth_destroy(auth);
}

#define OPTIONS(...) (&(const struct lw_pulsar_auth_options){ __VA_ARGS__ })

/* -- Methods ---------------------------------------------------------------------------------------- */

static void
each_method_gives_its_name_and_data(void **state)
{
    (void)state;
    expect_given(OPTIONS(.plugin = NULL), "none", NULL);
    expect_given(OPTIONS(.plugin = "none"), "none", NULL);
    expect_given(OPTIONS(.token = "abc"), "token", "abc");
    expect_given(OPTIONS(.plugin = "token", .params = "token:abc"), "token", "abc");
    expect_given(OPTIONS(.plugin = "token", .params = "{\"token\": \"abc\"}"), "token", "abc");
    expect_given(
        OPTIONS(.plugin = "basic", .params = "{\"username\": \"me\", \"password\": \"p:w\"}"),
        "basic", "me:p:w");
    expect_given(OPTIONS(.plugin = "basic", .params = "{\"userId\": \"me\", \"password\": "
                                                      "\"pw\", \"method\": \"oms3.0\"}"),
                 "oms3.0", "me:pw");
    expect_given(OPTIONS(.plugin = "tls", .certificate_file = "/c", .key_file = "/k"), "tls",
                 NULL);
}

static void
classes_of_the_clients_are_known(void **state)
{
    (void)state;
    expect_given(OPTIONS(.plugin = "org.apache.pulsar.client.impl.auth.AuthenticationToken",
                         .params = "abc"),
                 "token", "abc");
    struct lw_pulsar_auth *auth = create(
        OPTIONS(.plugin = "org.apache.pulsar.client.impl.auth.AuthenticationTls",
                .params = "tlsCertFile:/a,tlsKeyFile:/b"));
    assert_int_equal(lw_pulsar_auth_kind(auth), LW_PULSAR_AUTH_TLS);
    assert_string_equal(lw_pulsar_auth_certificate_file(auth), "/a");
    assert_string_equal(lw_pulsar_auth_key_file(auth), "/b");
    lw_pulsar_auth_destroy(auth);
}

struct refusal {
    struct lw_pulsar_auth_options options;
    const char *code;
};

static const struct refusal refusals[] = {
    { { .plugin = "tokne" }, "E0417" },
    { { .plugin = "athenz", .params = "{}" }, "E0415" },
    { { .plugin = "AuthenticationSasl" }, "E0415" },
    { { .plugin = "token" }, "E0417" },
    { { .plugin = "basic", .params = "{\"username\": \"me\"}" }, "E0417" },
    { { .plugin = "basic", .params = "{\"password\": \"s3cret\"" }, "E0417" },
    { { .plugin = "basic", .params = "s3cret" }, "E0417" },
    { { .plugin = "basic", .params = "[\"s3cret\"]" }, "E0417" },
    { { .plugin = "tls", .certificate_file = "/c" }, "E0417" },
    { { .plugin = "oauth2", .params = "{\"issuer_url\": \"http://x\"}" }, "E0417" },
    { { .plugin = "oauth2", .params = "{\"client_id\": \"a\", \"client_secret\": \"s3cret\"}" },
      "E0417" },
    { { .params = "s3cret" }, "E0417" },
    { { .plugin = "basic", .token = "s3cret" }, "E0417" },
};

static void
incomplete_settings_are_refused_without_showing_secrets(void **state)
{
    (void)state;
    uint64_t live = lw_alloc_live();
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct lw_error error;
        struct lw_pulsar_auth *auth = NULL;
        assert_int_not_equal(
            lw_pulsar_auth_create(lw_loop_host(loop), &refusals[i].options, &auth, &error),
            LW_STATUS_OK);
        assert_string_equal(error.code, refusals[i].code);
        assert_null(strstr(error.message, "s3cret"));
        assert_true(strlen(error.help) > 10);
    }
    assert_int_equal(lw_alloc_live(), live);
}

/* -- Sources of tokens ---------------------------------------------------------------------------------- */

static void
a_token_file_is_read_again_and_trimmed(void **state)
{
    (void)state;
    char source[160];
    write_file("token", "first\n");
    (void)snprintf(source, sizeof source, "file://%s", path_of("token"));
    struct lw_pulsar_auth *auth = create(OPTIONS(.token = source));
    assert_string_equal(ask(auth, false).data, "first");
    write_file("token", "  second \r\n\n");
    assert_string_equal(ask(auth, true).data, "second");
    assert_int_equal(unlink(path_of("token")), 0);
    struct asker asker = ask(auth, true);
    assert_string_equal(asker.error.code, "E0417");
    assert_non_null(strstr(asker.error.message, "No such file"));
    assert_non_null(lw_pulsar_auth_error(auth));
    write_file("token", "third");
    assert_string_equal(ask(auth, true).data, "third");
    assert_null(lw_pulsar_auth_error(auth));
    lw_pulsar_auth_destroy(auth);
}

static void
a_variable_is_read_and_missed(void **state)
{
    (void)state;
    struct lw_pulsar_auth *auth = create(OPTIONS(.token = "env:LW_TEST_TOKEN"));
    assert_int_equal(setenv("LW_TEST_TOKEN", "from-env", 1), 0);
    assert_string_equal(ask(auth, false).data, "from-env");
    assert_int_equal(unsetenv("LW_TEST_TOKEN"), 0);
    struct asker asker = ask(auth, false);
    assert_non_null(strstr(asker.error.message, "\"LW_TEST_TOKEN\" is not set"));
    lw_pulsar_auth_destroy(auth);
}

static void
spoilt_tokens_are_told_apart(void **state)
{
    (void)state;
    static const char *const tokens[][2] = { { " \n", "is empty" },
                                             { "Bearer s3cret", "Bearer" },
                                             { "s3c ret", "blanks" },
                                             { "s3c\nret", "blanks" },
                                             { "token:", "is empty" } };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        struct lw_text out;
        struct lw_error error;
        lw_text_init(&out);
        assert_int_equal(lw_pulsar_token_read(tokens[i][0], &out, &error), LW_STATUS_CONFIG);
        assert_non_null(strstr(error.message, tokens[i][1]));
        assert_null(strstr(error.message, "s3c"));
        lw_text_deinit(&out);
    }
}

/* {"sub":"me","exp":1700000000} between a header and a signature. */
#define EXPIRED_JWT "eyJhbGciOiJub25lIn0.eyJzdWIiOiJtZSIsImV4cCI6MTcwMDAwMDAwMH0.c2ln"

static void
a_refused_token_that_expired_says_so(void **state)
{
    (void)state;
    struct lw_error error;
    assert_int_equal(lw_pulsar_token_expiry(EXPIRED_JWT), 1700000000);
    assert_int_equal(lw_pulsar_token_expiry("opaque"), -1);
    assert_int_equal(lw_pulsar_token_expiry("a.b.c"), -1);
    assert_int_equal(lw_pulsar_token_expiry(".."), -1);
    struct lw_pulsar_auth *auth = create(OPTIONS(.token = EXPIRED_JWT));
    (void)ask(auth, false);
    lw_pulsar_auth_explain(auth, "main", "Failed to authenticate", &error);
    assert_string_equal(error.code, "E0502");
    assert_int_equal(error.status, LW_STATUS_DENIED);
    assert_non_null(strstr(error.help, "expired at 2023-11-14"));
    lw_pulsar_auth_destroy(auth);
    auth = create(OPTIONS(.plugin = NULL));
    lw_pulsar_auth_explain(auth, "main", "x", &error);
    assert_non_null(strstr(error.help, "none are configured"));
    lw_pulsar_auth_destroy(auth);
}

static void
a_cancelled_request_is_not_answered(void **state)
{
    (void)state;
    struct asker first = { .answers = 0 };
    struct asker second = { .answers = 0 };
    struct lw_pulsar_auth *auth = create(OPTIONS(.token = "abc"));
    lw_pulsar_auth_ask(auth, &first.request, on_answer, false);
    lw_pulsar_auth_ask(auth, &second.request, on_answer, false);
    lw_pulsar_auth_cancel(&first.request);
    lw_pulsar_auth_cancel(&first.request);
    wait_for(&second);
    assert_int_equal(first.answers, 0);
    lw_pulsar_auth_destroy(auth);
}

/* -- An issuer ------------------------------------------------------------------------------------------- */

static char issuer[64];
static pid_t issuer_pid;
static int issuer_count; /* names the fetches of one issuer */

/* Token requests are counted in the token; "short" gets 100 s. */
static void
respond(int fd, const char *request)
{
    char body[256] = "{\"unexpected\":true}";
    const char *line = "200 OK";
    if (strncmp(request, "GET /base/.well-known/openid-configuration ", 43) == 0) {
        (void)snprintf(body, sizeof body, "{\"token_endpoint\":\"%s/token\"}", issuer);
    } else if (strncmp(request, "POST /base/token ", 17) != 0) {
        line = "404 Not Found";
    } else if (!strstr(request, "grant_type=client_credentials&client_id=") ||
               !strstr(request, "client_secret=s%263cret") ||
               !strstr(request, "audience=urn%3Apulsar&scope=a%20b")) {
        line = "401 Unauthorized";
        (void)snprintf(body, sizeof body,
                       "{\"error\":\"invalid_client\",\"error_description\":\"no such one\"}");
    } else {
        const char *life = strstr(request, "client_id=short") ? "\"100\"" : "3600";
        (void)snprintf(body, sizeof body, "{\"access_token\":\"t%d\",\"expires_in\":%s}",
                       ++issuer_count, life);
    }
    (void)dprintf(fd, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s", line,
                  strlen(body), body);
}

/* Reads until the whole request is there: head, and as many bytes as it announces. */
static void
read_request(int fd, char *request, size_t room)
{
    size_t size = 0;
    for (ssize_t got = 1; got > 0 && size + 1 < room; size += got > 0 ? (size_t)got : 0) {
        request[size] = '\0';
        const char *body = strstr(request, "\r\n\r\n");
        const char *length = strstr(request, "Content-Length: ");
        if (body && (!length || strlen(body + 4) >= strtoul(length + 16, NULL, 10))) {
            return;
        }
        got = read(fd, request + size, room - size - 1);
    }
    request[size] = '\0';
}

static void
serve(int listener)
{
    for (;;) {
        char request[4096];
        int fd = accept(listener, NULL, NULL);
        if (fd >= 0) {
            read_request(fd, request, sizeof request);
            respond(fd, request);
            (void)close(fd);
        }
    }
}

static void
open_issuer(void)
{
    struct sockaddr_in name = { .sin_family = AF_INET };
    socklen_t size = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (struct sockaddr *)&name, size), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &size), 0);
    (void)snprintf(issuer, sizeof issuer, "http://127.0.0.1:%d/base", ntohs(name.sin_port));
    issuer_pid = fork();
    if (issuer_pid == 0) {
        serve(listener);
    }
    (void)close(listener);
}

static void
close_issuer(void)
{
    if (issuer_pid > 0) {
        (void)kill(issuer_pid, SIGKILL);
        (void)waitpid(issuer_pid, NULL, 0);
    }
    issuer_pid = 0;
}

static struct lw_pulsar_auth *
create_oauth(const char *key)
{
    char params[512];
    (void)snprintf(params, sizeof params,
                   "{\"type\":\"client_credentials\",\"issuer_url\":\"%s/\",%s,"
                   "\"audience\":\"urn:pulsar\",\"scope\":\"a b\"}",
                   issuer, key);
    return create(OPTIONS(.plugin = "oauth2", .params = params));
}

#define GOOD_KEY "\"client_id\":\"me\",\"client_secret\":\"s&3cret\""

static void
a_token_is_fetched_once_and_kept(void **state)
{
    (void)state;
    open_issuer();
    struct asker second = { .answers = 0 };
    struct asker third = { .answers = 0 };
    struct lw_pulsar_auth *auth = create_oauth(GOOD_KEY);
    lw_pulsar_auth_ask(auth, &second.request, on_answer, false);
    lw_pulsar_auth_ask(auth, &third.request, on_answer, true);
    wait_for(&second);
    wait_for(&third);
    assert_string_equal(second.method, "token");
    assert_string_equal(second.data, "t1");
    assert_string_equal(third.data, "t1"); /* one fetch for both */
    close_issuer();
    assert_string_equal(ask(auth, false).data, "t1"); /* nobody is there to ask */
    lw_pulsar_auth_destroy(auth);
}

static void
an_expired_token_is_fetched_anew_and_a_failure_is_kept(void **state)
{
    (void)state;
    open_issuer();
    struct lw_pulsar_auth *auth = create_oauth(
        "\"client_id\":\"short\",\"client_secret\":\"s&3cret\"");
    assert_string_equal(ask(auth, false).data, "t1");
    wall_ms += 100 * 1000;
    assert_string_equal(ask(auth, false).data, "t2");
    close_issuer();
    wall_ms += 95 * 1000;
    assert_string_equal(ask(auth, false).data, "t2"); /* not expired yet */
    struct asker asker = ask(auth, true);             /* but doubted, and no issuer */
    assert_string_equal(asker.error.code, "E0513");
    assert_string_equal(lw_pulsar_auth_error(auth)->code, "E0513");
    lw_pulsar_auth_destroy(auth);
}

static void
a_key_file_is_read_for_every_fetch(void **state)
{
    (void)state;
    char key[160];
    open_issuer();
    write_file("key.json", "{\"type\":\"client_credentials\",\"client_id\":\"me\","
                           "\"client_secret\":\"wrong\",\"client_email\":\"x\"}");
    (void)snprintf(key, sizeof key, "\"private_key\":\"file://%s\"", path_of("key.json"));
    struct lw_pulsar_auth *auth = create_oauth(key);
    struct asker asker = ask(auth, false);
    assert_string_equal(asker.error.code, "E0513");
    assert_non_null(strstr(asker.error.message, "answers 401: invalid_client, no such one"));
    assert_null(strstr(asker.error.message, "wrong"));
    write_file("key.json", "{\"client_id\":\"me\",\"client_secret\":\"s&3cret\"}");
    assert_string_equal(ask(auth, false).data, "t1");
    lw_pulsar_auth_destroy(auth);
    close_issuer();
}

static void
a_key_in_the_params_is_read(void **state)
{
    (void)state;
    open_issuer();
    /* {"client_id":"me","client_secret":"s&3cret"} */
    struct lw_pulsar_auth *auth = create_oauth(
        "\"private_key\":\"data:application/json;base64,"
        "eyJjbGllbnRfaWQiOiJtZSIsImNsaWVudF9zZWNyZXQiOiJzJjNjcmV0In0=\"");
    assert_string_equal(ask(auth, false).data, "t1");
    lw_pulsar_auth_destroy(auth);
    auth = create_oauth("\"private_key\":\"data:text,abc\"");
    assert_string_equal(ask(auth, false).error.code, "E0417");
    lw_pulsar_auth_destroy(auth);
    auth = create_oauth("\"private_key\":\"/nowhere/key.json\"");
    assert_string_equal(ask(auth, false).error.code, "E0417");
    lw_pulsar_auth_destroy(auth);
    close_issuer();
}

static void
an_issuer_that_is_none_is_explained(void **state)
{
    (void)state;
    open_issuer();
    char params[256];
    (void)snprintf(params, sizeof params, "{\"issuer_url\":\"%s/nowhere\"," GOOD_KEY "}",
                   issuer);
    struct lw_pulsar_auth *auth = create(OPTIONS(.plugin = "oauth2", .params = params));
    struct asker asker = ask(auth, false);
    assert_string_equal(asker.error.code, "E0513");
    assert_non_null(strstr(asker.error.message, "the discovery document: answers 404"));
    assert_true(asker.error.is_retriable);
    lw_pulsar_auth_destroy(auth);
    close_issuer();
}

static void
a_fetch_under_way_is_given_up_at_the_end(void **state)
{
    (void)state;
    open_issuer();
    struct asker asker = { .answers = 0 };
    struct lw_pulsar_auth *auth = create_oauth(GOOD_KEY);
    lw_pulsar_auth_ask(auth, &asker.request, on_answer, false);
    lw_loop_poll(loop);
    lw_pulsar_auth_destroy(auth);
    lw_pulsar_auth_cancel(&asker.request);
    assert_int_equal(asker.answers, 0);
    close_issuer();
}

/* -- Life ---------------------------------------------------------------------------------------- */

static int
setup(void **state)
{
    (void)state;
    (void)unsetenv("http_proxy");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(lw_loop_create(1, &loop), LW_STATUS_OK);
    static struct lw_host_ops ops;
    ops = *lw_loop_host(loop)->ops;
    ops.wall_ms = moved_wall;
    lw_loop_host(loop)->ops = &ops;
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    close_issuer();
    lw_loop_destroy(loop);
    (void)unlink(path_of("token"));
    (void)unlink(path_of("key.json"));
    return rmdir(folder);
}

static int
end_issuer(void **state)
{
    (void)state;
    close_issuer();
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_method_gives_its_name_and_data),
        cmocka_unit_test(classes_of_the_clients_are_known),
        cmocka_unit_test(incomplete_settings_are_refused_without_showing_secrets),
        cmocka_unit_test(a_token_file_is_read_again_and_trimmed),
        cmocka_unit_test(a_variable_is_read_and_missed),
        cmocka_unit_test(spoilt_tokens_are_told_apart),
        cmocka_unit_test(a_refused_token_that_expired_says_so),
        cmocka_unit_test(a_cancelled_request_is_not_answered),
        cmocka_unit_test_teardown(a_token_is_fetched_once_and_kept, end_issuer),
        cmocka_unit_test_teardown(an_expired_token_is_fetched_anew_and_a_failure_is_kept,
                                  end_issuer),
        cmocka_unit_test_teardown(a_key_file_is_read_for_every_fetch, end_issuer),
        cmocka_unit_test_teardown(a_key_in_the_params_is_read, end_issuer),
        cmocka_unit_test_teardown(an_issuer_that_is_none_is_explained, end_issuer),
        cmocka_unit_test_teardown(a_fetch_under_way_is_given_up_at_the_end, end_issuer),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
