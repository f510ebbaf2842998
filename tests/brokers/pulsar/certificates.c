/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys are elliptic, since those are made in a moment, and files lie in a folder under /tmp that
 * the end removes.
 */
#include "tests/brokers/pulsar/certificates.h"

#include "tests/support/test.h"

#include <dirent.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *
certificates_path(const struct certificates *certificates, const char *name)
{
    static char paths[64][320];
    static unsigned int next;
    char *path = paths[next++ % 64];
    (void)snprintf(path, sizeof paths[0], "%s/%s", certificates->folder, name);
    return path;
}

static const char *
path_with(const struct certificates *certificates, const char *name, const char *ending)
{
    char file[64];
    (void)snprintf(file, sizeof file, "%s%s", name, ending);
    return certificates_path(certificates, file);
}

void
certificates_init(struct certificates *certificates)
{
    (void)snprintf(certificates->folder, sizeof certificates->folder, "/tmp/lw-tls-XXXXXX");
    assert_non_null(mkdtemp(certificates->folder));
}

void
certificates_deinit(struct certificates *certificates)
{
    DIR *folder = opendir(certificates->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] != '.') {
            (void)unlink(certificates_path(certificates, entry->d_name));
        }
    }
    (void)closedir(folder);
    (void)rmdir(certificates->folder);
}

static void
add_extension(X509 *certificate, X509 *issuer, int id, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, id, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static void
read_issuer(const struct certificates *certificates, const char *name, X509 **ret_certificate,
            EVP_PKEY **ret_key)
{
    FILE *file = fopen(path_with(certificates, name, ".pem"), "r");
    assert_non_null(file);
    *ret_certificate = PEM_read_X509(file, NULL, NULL, NULL);
    (void)fclose(file);
    file = fopen(path_with(certificates, name, ".key"), "r");
    assert_non_null(file);
    *ret_key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
    (void)fclose(file);
    assert_non_null(*ret_certificate);
    assert_non_null(*ret_key);
}

static void
write_files(const struct certificates *certificates, const char *name, X509 *certificate,
            EVP_PKEY *key)
{
    FILE *file = fopen(path_with(certificates, name, ".pem"), "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    (void)fclose(file);
    file = fopen(path_with(certificates, name, ".key"), "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    (void)fclose(file);
}

static X509 *
new_certificate(const struct certificate_wish *wish, EVP_PKEY *key)
{
    static long serial = 1;
    bool is_timed = wish->from_s != 0 || wish->to_s != 0;
    X509 *certificate = X509_new();
    assert_non_null(certificate);
    (void)X509_set_version(certificate, 2);
    (void)ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
    (void)X509_gmtime_adj(X509_getm_notBefore(certificate), is_timed ? wish->from_s : -3600);
    (void)X509_gmtime_adj(X509_getm_notAfter(certificate), is_timed ? wish->to_s : 3600);
    (void)X509_set_pubkey(certificate, key);
    (void)X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                                     (const unsigned char *)wish->name, -1, -1, 0);
    return certificate;
}

void
certificates_make(struct certificates *certificates, const struct certificate_wish *wish)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = new_certificate(wish, key);
    X509 *issuer = certificate;
    EVP_PKEY *issuer_key = key;
    if (wish->issuer) {
        read_issuer(certificates, wish->issuer, &issuer, &issuer_key);
    }
    (void)X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
    add_extension(certificate, issuer, NID_basic_constraints,
                  wish->is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (wish->hosts) {
        add_extension(certificate, issuer, NID_subject_alt_name, wish->hosts);
    }
    assert_true(X509_sign(certificate, issuer_key, EVP_sha256()) > 0);
    write_files(certificates, wish->name, certificate, key);
    if (wish->issuer) {
        X509_free(issuer);
        EVP_PKEY_free(issuer_key);
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
}
