/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What TLS sessions share: protocol versions, trusted certificates, our certificate and key. Each
 * file is opened by us first, since OpenSSL's own words for an absent file say nothing to a person.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/tls_session.h"

#define CODE "E0418"

static enum lw_status
refuse(struct lw_error *ret_error, const char *what, const char *path, const char *why,
       const char *help)
{
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, CODE, "%s \"%.200s\" %s",
                                         what, path, why);
    lw_error_help(ret_error, "%s", help);
    ERR_clear_error();
    return status;
}

static enum lw_status
check_readable(const char *what, const char *path, struct lw_error *ret_error)
{
    char byte = 0;
    char why[128];
    FILE *file = fopen(path, "re");
    bool is_read = file && fread(&byte, 1, 1, file) == 1;
    if (!is_read) {
        (void)snprintf(why, sizeof why, "cannot be read: %s",
                       file && errno == 0 ? "it is empty" : strerrordesc_np(errno));
    }
    if (file) {
        (void)fclose(file);
    }
    return is_read ? LW_STATUS_OK
                   : refuse(ret_error, what, path, why, "check the path and the permissions");
}

/* Instead of OpenSSL's default, which asks at the terminal. */
static int
no_password(char *out, int size, int is_writing, void *user)
{
    (void)is_writing;
    bool *is_asked = user;
    *is_asked = true;
    if (size > 0) {
        out[0] = '\0';
    }
    return 0;
}

static enum lw_status
load_trust(SSL_CTX *ctx, const char *path, struct lw_error *ret_error)
{
    if (!path) {
        if (SSL_CTX_set_default_verify_paths(ctx) == 1) {
            return LW_STATUS_OK;
        }
        return lw_error_set(ret_error, LW_STATUS_SYSTEM, CODE,
                            "the system's trusted certificates cannot be read");
    }
    enum lw_status status = check_readable("the trust file", path, ret_error);
    if (status != LW_STATUS_OK || SSL_CTX_load_verify_file(ctx, path) == 1) {
        return status;
    }
    return refuse(ret_error, "the trust file", path, "holds no certificate",
                  "tls.trust_file is a PEM file with the certificates of "
                  "authorities, each between BEGIN CERTIFICATE and END CERTIFICATE");
}

static enum lw_status
load_key(SSL_CTX *ctx, const char *path, struct lw_error *ret_error)
{
    bool is_asked = false;
    enum lw_status status = check_readable("the private key", path, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, &is_asked);
    int is_loaded = SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, NULL);
    if (is_asked) {
        return refuse(ret_error, "the private key", path, "is encrypted",
                      "give a key without a password, readable by this user only: openssl pkey "
                      "-in KEY -out PLAIN");
    }
    if (is_loaded != 1 && ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH) {
        return refuse(ret_error, "the private key", path, "does not belong to the certificate",
                      "tls_certificate_file_path and tls_private_key_file_path are a pair");
    }
    return is_loaded == 1 ? LW_STATUS_OK
                          : refuse(ret_error, "the private key", path, "holds no private key",
                                   "tls_private_key_file_path is a PEM file");
}

static enum lw_status
load_certificate(SSL_CTX *ctx, const struct lw_pulsar_tls_options *options,
                 struct lw_error *ret_error)
{
    const char *path = options->certificate_file;
    if (!path != !options->key_file) {
        enum lw_status status = lw_error_set(
            ret_error, LW_STATUS_CONFIG, CODE, "%s is given without %s",
            path ? "tls_certificate_file_path" : "tls_private_key_file_path",
            path ? "tls_private_key_file_path" : "tls_certificate_file_path");
        lw_error_help(ret_error, "a certificate and its key belong together: give both");
        return status;
    }
    enum lw_status status = check_readable("the certificate", path, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    if (SSL_CTX_use_certificate_chain_file(ctx, path) != 1) {
        return refuse(ret_error, "the certificate", path, "holds no certificate",
                      "tls_certificate_file_path is a PEM file: our certificate, then those "
                      "that vouch for it");
    }
    status = load_key(ctx, options->key_file, ret_error);
    if (status == LW_STATUS_OK && SSL_CTX_check_private_key(ctx) != 1) {
        status = refuse(ret_error, "the private key", options->key_file,
                        "does not belong to the certificate",
                        "tls_certificate_file_path and tls_private_key_file_path are a pair");
    }
    return status;
}

static bool
set_rules(SSL_CTX *ctx, bool is_checking)
{
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(ctx, is_checking ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                       is_checking ? lw_pulsar_tls_on_verify : NULL);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1;
}

static enum lw_status
load_files(SSL_CTX *ctx, const struct lw_pulsar_tls_options *options,
           struct lw_error *ret_error)
{
    enum lw_status status = LW_STATUS_OK;
    if (!options->allows_insecure) {
        status = load_trust(ctx, options->trust_file, ret_error);
    }
    if (status == LW_STATUS_OK && (options->certificate_file || options->key_file)) {
        status = load_certificate(ctx, options, ret_error);
    }
    return status;
}

enum lw_status
lw_pulsar_tls_context_create(const struct lw_pulsar_tls_options *options,
                             struct lw_pulsar_tls_context **ret_context,
                             struct lw_error *ret_error)
{
    enum lw_status status = LW_STATUS_NO_MEMORY;
    struct lw_pulsar_tls_context *context = lw_alloc(sizeof *context);
    SSL_CTX *ctx = context ? SSL_CTX_new(TLS_client_method()) : NULL;
    if (!ctx || !set_rules(ctx, !options->allows_insecure)) {
        (void)lw_error_set(ret_error, status, "", "no memory for TLS");
        goto fail;
    }
    ERR_clear_error();
    status = load_files(ctx, options, ret_error);
    if (status != LW_STATUS_OK) {
        goto fail;
    }
    context->ctx = ctx;
    context->validates_hostname = options->validates_hostname && !options->allows_insecure;
    context->has_certificate = options->certificate_file != NULL;
    *ret_context = context;
    return LW_STATUS_OK;
fail:
    SSL_CTX_free(ctx);
    lw_free(context);
    return status;
}

void
lw_pulsar_tls_context_destroy(struct lw_pulsar_tls_context *context)
{
    if (context) {
        SSL_CTX_free(context->ctx);
        lw_free(context);
    }
}
