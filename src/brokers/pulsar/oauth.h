/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of OAuth2 client credentials (RFC 6749, 4.4): the issuer's discovery document names the
 * token endpoint, which gives a token for a time. One fetch at a time; the document is kept until
 * a fetch fails, and the key file is read anew for every fetch. The loop thread.
 */
#ifndef LW_BROKERS_PULSAR_OAUTH_H
#define LW_BROKERS_PULSAR_OAUTH_H

#include "base/fetch.h"
#include "brokers/pulsar/auth_settings.h"

/* `error` is NULL when there is a token now. */
typedef void (*lw_pulsar_oauth_fn)(const struct lw_error *error, void *user);

struct lw_pulsar_oauth {
    struct lw_host *host;
    const struct lw_pulsar_auth_settings *settings;
    struct lw_fetch fetch;
    struct lw_deferred deferred; /* the start */
    bool is_starting;
    char *endpoint; /* NULL: not yet discovered */
    char *value;    /* the last token */
    int64_t fetched_ms;
    int64_t renew_ms; /* asked for anew from here on */
    int64_t expires_ms;
    lw_pulsar_oauth_fn fn;
    void *user;
};

void lw_pulsar_oauth_init(struct lw_pulsar_oauth *oauth, struct lw_host *host,
                          const struct lw_pulsar_auth_settings *settings, lw_pulsar_oauth_fn fn,
                          void *user);
void lw_pulsar_oauth_deinit(struct lw_pulsar_oauth *oauth);
/* The kept token, or NULL when it is none, expired, or doubted and older than a second. */
const char *lw_pulsar_oauth_token(const struct lw_pulsar_oauth *oauth, bool is_doubted);
bool lw_pulsar_oauth_is_renewal_due(const struct lw_pulsar_oauth *oauth);
/* Starts a fetch unless one is under way; fn is called once, later, when it ends. */
void lw_pulsar_oauth_start(struct lw_pulsar_oauth *oauth);

#endif
