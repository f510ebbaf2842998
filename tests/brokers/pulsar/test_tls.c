/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our side of TLS against a server object of OpenSSL, both in memory: handshakes, data in cuts of
 * any size, ends, and how every usual mistake reads.
 */
#include "tests/support/test.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/tls.h"
#include "tests/brokers/pulsar/certificates.h"

static struct certificates certificates;

#define PATH(name) certificates_path(&certificates, (name))

static int
setup(void **state)
{
    (void)state;
    const struct certificate_wish wishes[] = {
        { .name = "ca", .is_authority = 1 },
        { .name = "other", .is_authority = 1 },
        { .name = "server", .issuer = "ca", .hosts = "DNS:broker.test,IP:127.0.0.1,IP:::1" },
        { .name = "wild", .issuer = "ca", .hosts = "DNS:*.brokers.test" },
        { .name = "nameless", .issuer = "ca" },
        { .name = "expired",
          .issuer = "ca",
          .hosts = "DNS:broker.test",
          .from_s = -7200,
          .to_s = -60 },
        { .name = "future",
          .issuer = "ca",
          .hosts = "DNS:broker.test",
          .from_s = 3600,
          .to_s = 7200 },
        { .name = "self", .hosts = "DNS:broker.test" },
        { .name = "client", .issuer = "ca" },
        { .name = "stranger", .issuer = "other" },
    };
    certificates_init(&certificates);
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        certificates_make(&certificates, &wishes[i]);
    }
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    certificates_deinit(&certificates);
    return 0;
}

/* -- A server in memory ------------------------------------------------------------------------------ */

struct server {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in;
    BIO *out;
    char name[64]; /* SNI that came */
};

struct server_wish {
    const char *certificate;
    int version; /* 0: any */
    bool wants_client;
};

static int
on_name(SSL *ssl, int *alert, void *user)
{
    (void)alert;
    struct server *server = user;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)snprintf(server->name, sizeof server->name, "%s", name ? name : "");
    return SSL_TLSEXT_ERR_OK;
}

static void
server_init(struct server *server, const struct server_wish *wish)
{
    char file[32];
    memset(server, 0, sizeof *server);
    server->ctx = SSL_CTX_new(TLS_server_method());
    (void)snprintf(file, sizeof file, "%s.pem", wish->certificate);
    assert_int_equal(SSL_CTX_use_certificate_file(server->ctx, PATH(file), SSL_FILETYPE_PEM),
                     1);
    (void)snprintf(file, sizeof file, "%s.key", wish->certificate);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(server->ctx, PATH(file), SSL_FILETYPE_PEM), 1);
    if (wish->version) {
        (void)SSL_CTX_set_min_proto_version(server->ctx, wish->version);
        (void)SSL_CTX_set_max_proto_version(server->ctx, wish->version);
        SSL_CTX_set_security_level(server->ctx, 0);
    }
    if (wish->wants_client) {
        assert_int_equal(SSL_CTX_load_verify_file(server->ctx, PATH("ca.pem")), 1);
        SSL_CTX_set_verify(server->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                           NULL);
    }
    (void)SSL_CTX_set_tlsext_servername_callback(server->ctx, on_name);
    (void)SSL_CTX_set_tlsext_servername_arg(server->ctx, server);
    server->ssl = SSL_new(server->ctx);
    server->in = BIO_new(BIO_s_mem());
    server->out = BIO_new(BIO_s_mem());
    (void)BIO_set_mem_eof_return(server->in, -1);
    SSL_set_bio(server->ssl, server->in, server->out);
    SSL_set_accept_state(server->ssl);
}

static void
server_deinit(struct server *server)
{
    SSL_free(server->ssl);
    SSL_CTX_free(server->ctx);
    ERR_clear_error();
}

/* -- The wire between ---------------------------------------------------------------------------------- */

static size_t piece_count; /* moved so far */
static uint64_t random_state = 88172645463325252u;

static size_t
random_to(size_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)(random_state % (bound + 1));
}

/* Moves at most `limit` bytes each way and lets the server shake hands; false: nothing moved. */
static bool
move(struct lw_pulsar_tls *tls, struct server *server, size_t limit)
{
    char bytes[4096];
    size_t wanted = limit < sizeof bytes ? limit : sizeof bytes;
    size_t sent = lw_pulsar_tls_take(tls, bytes, wanted);
    if (sent > 0) {
        assert_int_equal(BIO_write(server->in, bytes, (int)sent), (int)sent);
    }
    if (!SSL_is_init_finished(server->ssl)) {
        (void)SSL_do_handshake(server->ssl);
        ERR_clear_error();
    }
    int got = BIO_read(server->out, bytes, (int)wanted);
    if (got > 0) {
        assert_int_equal(lw_pulsar_tls_feed(tls, bytes, (size_t)got), got);
    }
    piece_count += (sent > 0) + (got > 0);
    return sent > 0 || got > 0;
}

static void
shake_hands(struct lw_pulsar_tls *tls, struct server *server)
{
    while (move(tls, server, 4096)) {
    }
}

struct pair {
    struct server server;
    struct lw_pulsar_tls_context *context;
    struct lw_pulsar_tls *tls;
};

static void
pair_init(struct pair *pair, const struct server_wish *wish,
          const struct lw_pulsar_tls_options *options, const char *host)
{
    struct lw_error error;
    server_init(&pair->server, wish);
    if (lw_pulsar_tls_context_create(options, &pair->context, &error) != LW_STATUS_OK) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(lw_pulsar_tls_create(pair->context, host, &pair->tls, &error),
                     LW_STATUS_OK);
}

static void
pair_deinit(struct pair *pair)
{
    lw_pulsar_tls_destroy(pair->tls);
    lw_pulsar_tls_context_destroy(pair->context);
    server_deinit(&pair->server);
}

static struct lw_pulsar_tls_options
trusting(void)
{
    return (struct lw_pulsar_tls_options){ .trust_file = PATH("ca.pem"),
                                           .validates_hostname = true };
}

/* A handshake that must end in this state; *ret_error is its reason. */
static void
expect_end(const struct server_wish *wish, const struct lw_pulsar_tls_options *options,
           const char *host, enum lw_pulsar_tls_state state, struct lw_error *ret_error)
{
    struct pair pair;
    pair_init(&pair, wish, options, host);
    shake_hands(pair.tls, &pair.server);
    *ret_error = *lw_pulsar_tls_error(pair.tls);
    if (lw_pulsar_tls_state(pair.tls) != state) {
        fail_msg("state %d: %s", (int)lw_pulsar_tls_state(pair.tls), ret_error->message);
    }
    pair_deinit(&pair);
}

static void
expect_failure(const struct server_wish *wish, const struct lw_pulsar_tls_options *options,
               const char *host, const char *code, const char *text)
{
    struct lw_error error;
    expect_end(wish, options, host, LW_PULSAR_TLS_FAILED, &error);
    assert_string_equal(error.code, code);
    if (!strstr(error.message, text)) {
        fail_msg("\"%s\" is not in: %s", text, error.message);
    }
    assert_true(strlen(error.help) > 20);
    assert_true(error.is_retriable);
}

/* -- Handshakes ------------------------------------------------------------------------------------------ */

static void
a_name_and_both_kinds_of_literal_are_accepted(void **state)
{
    (void)state;
    struct lw_error error;
    struct server_wish wish = { .certificate = "server" };
    struct lw_pulsar_tls_options options = trusting();
    expect_end(&wish, &options, "broker.test", LW_PULSAR_TLS_OPEN, &error);
    expect_end(&wish, &options, "127.0.0.1", LW_PULSAR_TLS_OPEN, &error);
    expect_end(&wish, &options, "::1", LW_PULSAR_TLS_OPEN, &error);
    wish.certificate = "wild";
    expect_end(&wish, &options, "any.brokers.test", LW_PULSAR_TLS_OPEN, &error);
    expect_end(&wish, &options, "any.brokers.test.", LW_PULSAR_TLS_OPEN, &error);
}

static void
the_name_is_sent_and_a_literal_is_not(void **state)
{
    (void)state;
    struct pair pair;
    struct server_wish wish = { .certificate = "server" };
    struct lw_pulsar_tls_options options = trusting();
    pair_init(&pair, &wish, &options, "broker.test");
    shake_hands(pair.tls, &pair.server);
    assert_string_equal(pair.server.name, "broker.test");
    pair_deinit(&pair);
    pair_init(&pair, &wish, &options, "broker.test."); /* as the DNS may write it */
    shake_hands(pair.tls, &pair.server);
    assert_string_equal(pair.server.name, "broker.test");
    pair_deinit(&pair);
    pair_init(&pair, &wish, &options, "127.0.0.1");
    shake_hands(pair.tls, &pair.server);
    assert_string_equal(pair.server.name, "");
    pair_deinit(&pair);
}

static void
tls_1_2_is_spoken_and_1_1_is_not(void **state)
{
    (void)state;
    struct pair pair;
    struct server_wish wish = { .certificate = "server", .version = TLS1_2_VERSION };
    struct lw_pulsar_tls_options options = trusting();
    pair_init(&pair, &wish, &options, "broker.test");
    shake_hands(pair.tls, &pair.server);
    assert_int_equal(lw_pulsar_tls_state(pair.tls), LW_PULSAR_TLS_OPEN);
    assert_string_equal(lw_pulsar_tls_version(pair.tls), "TLSv1.2");
    pair_deinit(&pair);
    wish.version = TLS1_1_VERSION;
    expect_failure(&wish, &options, "broker.test", "E0512", "version");
}

static void
a_client_certificate_is_shown(void **state)
{
    (void)state;
    struct lw_error error;
    struct server_wish wish = { .certificate = "server", .wants_client = true };
    struct lw_pulsar_tls_options options = trusting();
    options.certificate_file = PATH("client.pem");
    options.key_file = PATH("client.key");
    expect_end(&wish, &options, "broker.test", LW_PULSAR_TLS_OPEN, &error);
    wish.version = TLS1_2_VERSION;
    expect_end(&wish, &options, "broker.test", LW_PULSAR_TLS_OPEN, &error);
}

/* -- Mistakes ------------------------------------------------------------------------------------------ */

static void
a_certificate_for_another_host_is_refused(void **state)
{
    (void)state;
    struct server_wish wish = { .certificate = "server" };
    struct lw_pulsar_tls_options options = trusting();
    expect_failure(&wish, &options, "elsewhere.test", "E0511", "broker.test, 127.0.0.1");
    expect_failure(&wish, &options, "127.0.0.2", "E0511", "broker.test");
    wish.certificate = "nameless";
    expect_failure(&wish, &options, "broker.test", "E0511", "no host at all");
    wish.certificate = "wild";
    expect_failure(&wish, &options, "a.b.brokers.test", "E0511", "*.brokers.test");
}

static void
a_certificate_at_the_wrong_time_is_refused(void **state)
{
    (void)state;
    struct server_wish wish = { .certificate = "expired" };
    struct lw_pulsar_tls_options options = trusting();
    expect_failure(&wish, &options, "broker.test", "E0510", "\"CN=expired\" expired at");
    wish.certificate = "future";
    expect_failure(&wish, &options, "broker.test", "E0510", "is not valid before");
}

static void
a_certificate_of_an_unknown_authority_is_refused(void **state)
{
    (void)state;
    struct server_wish wish = { .certificate = "server" };
    struct lw_pulsar_tls_options options = trusting();
    options.trust_file = PATH("other.pem");
    expect_failure(&wish, &options, "broker.test", "E0510", "not trusted");
    options.trust_file = NULL;
    expect_failure(&wish, &options, "broker.test", "E0510", "not trusted");
    options = trusting();
    wish.certificate = "self";
    expect_failure(&wish, &options, "broker.test", "E0510", "self");
}

static void
checks_are_left_out_only_where_that_is_asked_for(void **state)
{
    (void)state;
    struct lw_error error;
    struct server_wish wish = { .certificate = "expired" };
    struct lw_pulsar_tls_options options = { .allows_insecure = true,
                                             .validates_hostname = true };
    expect_end(&wish, &options, "elsewhere", LW_PULSAR_TLS_OPEN, &error);
    options = trusting();
    options.validates_hostname = false;
    wish.certificate = "server";
    expect_end(&wish, &options, "elsewhere", LW_PULSAR_TLS_OPEN, &error);
    options.trust_file = PATH("other.pem");
    expect_failure(&wish, &options, "elsewhere", "E0510", "not trusted");
}

/* In TLS 1.3 our side is open before the server looks at our certificate. */
static void
expect_late_refusal(const struct lw_pulsar_tls_options *options, int version, const char *text)
{
    char byte = 0;
    size_t count = 0;
    struct pair pair;
    struct server_wish wish = { .certificate = "server",
                                .wants_client = true,
                                .version = version };
    pair_init(&pair, &wish, options, "broker.test");
    shake_hands(pair.tls, &pair.server);
    enum lw_status status = lw_pulsar_tls_read(pair.tls, &byte, 1, &count);
    assert_int_equal(status, LW_STATUS_UNAVAILABLE);
    assert_int_equal(lw_pulsar_tls_state(pair.tls), LW_PULSAR_TLS_FAILED);
    assert_string_equal(lw_pulsar_tls_error(pair.tls)->code, "E0512");
    assert_non_null(strstr(lw_pulsar_tls_error(pair.tls)->message, text));
    pair_deinit(&pair);
}

static void
a_missing_or_foreign_client_certificate_is_explained(void **state)
{
    (void)state;
    struct lw_pulsar_tls_options options = trusting();
    expect_late_refusal(&options, TLS1_3_VERSION, "wants a certificate of ours");
    expect_late_refusal(&options, TLS1_2_VERSION, "wants a certificate of ours");
    options.certificate_file = PATH("stranger.pem");
    options.key_file = PATH("stranger.key");
    expect_late_refusal(&options, TLS1_3_VERSION, "refused our certificate");
    expect_late_refusal(&options, TLS1_2_VERSION, "refused our certificate");
}

static void
expect_not_tls(const void *answer, size_t size)
{
    struct pair pair;
    struct server_wish wish = { .certificate = "server" };
    struct lw_pulsar_tls_options options = trusting();
    pair_init(&pair, &wish, &options, "broker.test");
    (void)lw_pulsar_tls_feed(pair.tls, answer, size);
    lw_pulsar_tls_end(pair.tls);
    assert_int_equal(lw_pulsar_tls_state(pair.tls), LW_PULSAR_TLS_FAILED);
    assert_string_equal(lw_pulsar_tls_error(pair.tls)->code, "E0509");
    assert_non_null(strstr(lw_pulsar_tls_error(pair.tls)->help, "pulsar://"));
    pair_deinit(&pair);
}

static void
a_listener_without_tls_is_recognised(void **state)
{
    (void)state;
    static const char frame[] = "\x00\x00\x00\x19\x00\x00\x00\x15\x08\x03\x1a\x11xxxxxxxxxxxx";
    static const char http[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    expect_not_tls("", 0); /* it only ends the connection, as a broker does */
    expect_not_tls(frame, sizeof frame - 1);
    expect_not_tls(http, sizeof http - 1);
}

static void
plaintext_that_met_tls_is_recognised(void **state)
{
    (void)state;
    struct lw_error error;
    assert_true(lw_pulsar_tls_is_record("\x15\x03\x03\x00\x02\x02\x46", 7));
    assert_true(lw_pulsar_tls_is_record("\x16\x03\x01", 3));
    assert_false(lw_pulsar_tls_is_record("\x00\x00\x00\x19", 4));
    assert_false(lw_pulsar_tls_is_record("\x15\x03", 2));
    lw_pulsar_tls_explain_plaintext("h", &error);
    assert_string_equal(error.code, "E0509");
    assert_non_null(strstr(error.help, "pulsar+ssl://"));
}

/* -- Files ----------------------------------------------------------------------------------------------- */

static void
expect_no_context(const struct lw_pulsar_tls_options *options, const char *text)
{
    struct lw_error error;
    struct lw_pulsar_tls_context *context = NULL;
    uint64_t live = lw_alloc_live();
    assert_int_equal(lw_pulsar_tls_context_create(options, &context, &error), LW_STATUS_CONFIG);
    assert_string_equal(error.code, "E0418");
    if (!strstr(error.message, text)) {
        fail_msg("\"%s\" is not in: %s", text, error.message);
    }
    assert_int_equal(lw_alloc_live(), live);
}

static void
write_file(const char *name, const char *text)
{
    FILE *file = fopen(PATH(name), "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void
files_that_cannot_be_used_are_named(void **state)
{
    (void)state;
    write_file("empty.txt", "");
    write_file("prose.txt", "not a certificate\n");
    struct lw_pulsar_tls_options options = { .trust_file = PATH("absent.pem") };
    expect_no_context(&options, "absent.pem\" cannot be read: No such file");
    options.trust_file = PATH("empty.txt");
    expect_no_context(&options, "cannot be read");
    options.trust_file = PATH("prose.txt");
    expect_no_context(&options, "holds no certificate");
    options = trusting();
    options.certificate_file = PATH("client.pem");
    expect_no_context(&options, "without tls_private_key_file_path");
    options.key_file = PATH("client.pem");
    expect_no_context(&options, "holds no private key");
    options.key_file = PATH("server.key");
    expect_no_context(&options, "does not belong to the certificate");
    options.certificate_file = NULL;
    expect_no_context(&options, "without tls_certificate_file_path");
}

static void
an_encrypted_key_is_refused_without_asking(void **state)
{
    (void)state;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    FILE *file = fopen(PATH("locked.key"), "w");
    assert_non_null(file);
    assert_int_equal(
        PEM_write_PKCS8PrivateKey(file, key, EVP_aes_128_cbc(), "secret", 6, NULL, NULL), 1);
    (void)fclose(file);
    EVP_PKEY_free(key);
    struct lw_pulsar_tls_options options = trusting();
    options.certificate_file = PATH("client.pem");
    options.key_file = PATH("locked.key");
    expect_no_context(&options, "is encrypted");
}

/* -- Data ------------------------------------------------------------------------------------------------ */

enum { DATA_BYTES = 20000 };

struct flow {
    unsigned char sent[DATA_BYTES];
    size_t to_server; /* bytes written by us */
    size_t at_server;
    size_t to_client;
    size_t at_client;
};

static void
write_some(struct pair *pair, struct flow *flow, size_t cut)
{
    size_t count = 0;
    size_t left = DATA_BYTES - flow->to_server;
    size_t size = cut < left ? cut : left;
    if (size > 0 && lw_pulsar_tls_write(pair->tls, flow->sent + flow->to_server, size,
                                        &count) == LW_STATUS_OK) {
        flow->to_server += count;
    }
    left = DATA_BYTES - flow->to_client;
    size = cut < left ? cut : left;
    if (size > 0 && SSL_is_init_finished(pair->server.ssl) &&
        SSL_write_ex(pair->server.ssl, flow->sent + flow->to_client, size, &count) == 1) {
        flow->to_client += count;
    }
}

static void
read_some(struct pair *pair, struct flow *flow, size_t cut)
{
    unsigned char bytes[2048];
    size_t count = 0;
    size_t size = cut < sizeof bytes ? cut : sizeof bytes;
    if (lw_pulsar_tls_read(pair->tls, bytes, size, &count) == LW_STATUS_OK) {
        assert_true(count <= size && flow->at_client + count <= DATA_BYTES);
        assert_memory_equal(bytes, flow->sent + flow->at_client, count);
        flow->at_client += count;
    }
    if (SSL_is_init_finished(pair->server.ssl) &&
        SSL_read_ex(pair->server.ssl, bytes, size, &count) == 1) {
        assert_memory_equal(bytes, flow->sent + flow->at_server, count);
        flow->at_server += count;
    }
    ERR_clear_error();
}

/* One session whose bytes are cut at random everywhere, the handshake included. */
static void
run_cut(int version, size_t largest)
{
    static struct flow flow;
    struct pair pair;
    struct server_wish wish = { .certificate = "server", .version = version };
    struct lw_pulsar_tls_options options = trusting();
    memset(&flow, 0, sizeof flow);
    for (size_t i = 0; i < DATA_BYTES; i++) {
        flow.sent[i] = (unsigned char)random_to(255);
    }
    pair_init(&pair, &wish, &options, "broker.test");
    for (int turn = 0;
         turn < 200000 && (flow.at_server < DATA_BYTES || flow.at_client < DATA_BYTES);
         turn++) {
        write_some(&pair, &flow, 1 + random_to(largest));
        (void)move(pair.tls, &pair.server, 1 + random_to(largest));
        read_some(&pair, &flow, 1 + random_to(largest));
    }
    assert_int_equal(flow.at_server, DATA_BYTES);
    assert_int_equal(flow.at_client, DATA_BYTES);
    pair_deinit(&pair);
}

static void
data_survives_a_thousand_random_cuts(void **state)
{
    (void)state;
    piece_count = 0;
    for (int i = 0; i < 8; i++) {
        run_cut(i % 2 ? TLS1_2_VERSION : TLS1_3_VERSION, i < 6 ? 300 : 3000);
    }
    assert_true(piece_count > 1000);
}

static void
a_handshake_survives_single_bytes(void **state)
{
    (void)state;
    struct pair pair;
    struct server_wish wish = { .certificate = "server" };
    struct lw_pulsar_tls_options options = trusting();
    pair_init(&pair, &wish, &options, "broker.test");
    while (move(pair.tls, &pair.server, 1)) {
    }
    assert_int_equal(lw_pulsar_tls_state(pair.tls), LW_PULSAR_TLS_OPEN);
    pair_deinit(&pair);
}

static void
garbage_in_the_middle_fails_the_session(void **state)
{
    (void)state;
    char byte = 0;
    size_t count = 0;
    struct pair pair;
    struct server_wish wish = { .certificate = "server" };
    struct lw_pulsar_tls_options options = trusting();
    pair_init(&pair, &wish, &options, "broker.test");
    shake_hands(pair.tls, &pair.server);
    assert_int_equal(lw_pulsar_tls_feed(pair.tls, "garbage and more", 16), 16);
    assert_int_equal(lw_pulsar_tls_read(pair.tls, &byte, 1, &count), LW_STATUS_UNAVAILABLE);
    assert_string_equal(lw_pulsar_tls_error(pair.tls)->code, "E0512");
    assert_int_equal(lw_pulsar_tls_write(pair.tls, "x", 1, &count), LW_STATUS_UNAVAILABLE);
    assert_int_equal(lw_pulsar_tls_feed(pair.tls, "x", 1), 1);
    pair_deinit(&pair);
}

static void
what_waits_inside_is_bounded(void **state)
{
    (void)state;
    static char block[64 * 1024];
    size_t count = 0;
    size_t total = 0;
    struct pair pair;
    struct server_wish wish = { .certificate = "server" };
    struct lw_pulsar_tls_options options = trusting();
    pair_init(&pair, &wish, &options, "broker.test");
    assert_int_equal(lw_pulsar_tls_write(pair.tls, block, 1, &count), LW_STATUS_AGAIN);
    shake_hands(pair.tls, &pair.server);
    while (lw_pulsar_tls_write(pair.tls, block, sizeof block, &count) == LW_STATUS_OK) {
        total += count;
        assert_true(total < 1024 * 1024);
    }
    assert_true(total >= 200 * 1024);
    assert_true(lw_pulsar_tls_has_output(pair.tls));
    total = 0;
    for (size_t taken = 1; taken > 0; total += taken) {
        taken = lw_pulsar_tls_feed(pair.tls, block, sizeof block);
        assert_true(total < 1024 * 1024);
    }
    pair_deinit(&pair);
}

static void
a_farewell_closes_and_its_absence_fails(void **state)
{
    (void)state;
    char byte = 0;
    size_t count = 0;
    struct pair pair;
    struct server_wish wish = { .certificate = "server" };
    struct lw_pulsar_tls_options options = trusting();
    pair_init(&pair, &wish, &options, "broker.test");
    shake_hands(pair.tls, &pair.server);
    (void)SSL_shutdown(pair.server.ssl);
    (void)move(pair.tls, &pair.server, 4096);
    assert_int_equal(lw_pulsar_tls_read(pair.tls, &byte, 1, &count), LW_STATUS_CLOSED);
    lw_pulsar_tls_end(pair.tls);
    assert_int_equal(lw_pulsar_tls_state(pair.tls), LW_PULSAR_TLS_CLOSED);
    pair_deinit(&pair);
    pair_init(&pair, &wish, &options, "broker.test");
    shake_hands(pair.tls, &pair.server);
    lw_pulsar_tls_end(pair.tls);
    assert_int_equal(lw_pulsar_tls_state(pair.tls), LW_PULSAR_TLS_FAILED);
    assert_non_null(strstr(lw_pulsar_tls_error(pair.tls)->message, "without a farewell"));
    pair_deinit(&pair);
}

static void
our_farewell_is_sent(void **state)
{
    (void)state;
    char byte = 0;
    size_t count = 0;
    struct pair pair;
    struct server_wish wish = { .certificate = "server" };
    struct lw_pulsar_tls_options options = trusting();
    pair_init(&pair, &wish, &options, "broker.test");
    shake_hands(pair.tls, &pair.server);
    lw_pulsar_tls_close(pair.tls);
    assert_true(move(pair.tls, &pair.server, 4096));
    int result = SSL_read_ex(pair.server.ssl, &byte, 1, &count);
    assert_int_equal(SSL_get_error(pair.server.ssl, result), SSL_ERROR_ZERO_RETURN);
    lw_pulsar_tls_close(pair.tls);
    pair_deinit(&pair);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_and_both_kinds_of_literal_are_accepted),
        cmocka_unit_test(the_name_is_sent_and_a_literal_is_not),
        cmocka_unit_test(tls_1_2_is_spoken_and_1_1_is_not),
        cmocka_unit_test(a_client_certificate_is_shown),
        cmocka_unit_test(a_certificate_for_another_host_is_refused),
        cmocka_unit_test(a_certificate_at_the_wrong_time_is_refused),
        cmocka_unit_test(a_certificate_of_an_unknown_authority_is_refused),
        cmocka_unit_test(checks_are_left_out_only_where_that_is_asked_for),
        cmocka_unit_test(a_missing_or_foreign_client_certificate_is_explained),
        cmocka_unit_test(a_listener_without_tls_is_recognised),
        cmocka_unit_test(plaintext_that_met_tls_is_recognised),
        cmocka_unit_test(files_that_cannot_be_used_are_named),
        cmocka_unit_test(an_encrypted_key_is_refused_without_asking),
        cmocka_unit_test(data_survives_a_thousand_random_cuts),
        cmocka_unit_test(a_handshake_survives_single_bytes),
        cmocka_unit_test(garbage_in_the_middle_fails_the_session),
        cmocka_unit_test(what_waits_inside_is_bounded),
        cmocka_unit_test(a_farewell_closes_and_its_absence_fails),
        cmocka_unit_test(our_farewell_is_sent),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
