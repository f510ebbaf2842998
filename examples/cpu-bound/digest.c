/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same digest as digest.py, as a plug-in: 500 rounds of SHA-256 by OpenSSL. digests-c.yaml
 * names it. Built by
 *   cc -O2 -shared -fPIC -o digest.so digest.c $(pkg-config --cflags laneway) -lcrypto
 */
#include <openssl/evp.h>
#include <stdio.h>

#include <laneway/handler.h>

enum { ROUNDS = 500, DIGEST_BYTES = 32 };

/* Looking an algorithm up is slow, so it is done once, before the first message. */
static enum lw_status
open_digest(const struct lw_handler_setup *setup, void **ret_user, struct lw_error *error)
{
    (void)setup;
    *ret_user = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!*ret_user) {
        (void)snprintf(error->message, sizeof error->message, "OpenSSL has no SHA-256");
        return LW_STATUS_UNSUPPORTED;
    }
    return LW_STATUS_OK;
}

static void
close_digest(void *user)
{
    EVP_MD_free(user);
}

static bool
hash(EVP_MD_CTX *context, const EVP_MD *sha256, struct lw_bytes in, unsigned char *out)
{
    return EVP_DigestInit_ex2(context, sha256, NULL) &&
           EVP_DigestUpdate(context, in.data, in.size) &&
           EVP_DigestFinal_ex(context, out, NULL);
}

static bool
compute(const EVP_MD *sha256, struct lw_bytes in, unsigned char value[DIGEST_BYTES])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_done = context != NULL;
    for (int i = 0; i < ROUNDS && is_done; i++) {
        is_done = hash(context, sha256, in, value);
        in = (struct lw_bytes){ value, DIGEST_BYTES };
    }
    EVP_MD_CTX_free(context);
    return is_done;
}

static enum lw_verdict
digest(struct lw_delivery *delivery, void *user)
{
    unsigned char value[DIGEST_BYTES];
    char text[2 * DIGEST_BYTES + 1];
    if (!compute(user, lw_delivery_value(delivery), value)) {
        return lw_delivery_retry(delivery, "OpenSSL found no memory", -1);
    }
    for (int i = 0; i < DIGEST_BYTES; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", value[i]);
    }
    if (lw_delivery_reply(delivery, lw_bytes_of(text)) != LW_STATUS_OK) {
        return lw_delivery_retry(delivery, "no memory for the reply", -1);
    }
    return LW_OK;
}

LW_HANDLER(lw_handler) = {
    LW_HANDLER_HEAD,     .about = "digests documents", .handle = digest,
    .open = open_digest, .close = close_digest,
};
