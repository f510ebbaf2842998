/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What auth_plugin and auth_params mean, as data: the names and forms of the official clients,
 * read once. Owns its texts.
 */
#ifndef LW_BROKERS_PULSAR_AUTH_SETTINGS_H
#define LW_BROKERS_PULSAR_AUTH_SETTINGS_H

#include "base/text.h"
#include "brokers/pulsar/auth.h"

struct lw_pulsar_auth_settings {
    enum lw_pulsar_auth_kind kind;
    char *token; /* a source: the token itself, token:..., file:..., env:NAME */
    char *username;
    char *password;
    char *method; /* of basic; NULL: "basic" */
    char *issuer_url;
    char *private_key; /* file:..., a path, data:application/json;base64,... */
    char *client_id;   /* inline, instead of private_key */
    char *client_secret;
    char *audience;
    char *scope;
    char *trust_file;
    char *certificate_file;
    char *key_file;
};

enum lw_status lw_pulsar_auth_settings_init(struct lw_pulsar_auth_settings *settings,
                                            const struct lw_pulsar_auth_options *options,
                                            struct lw_error *ret_error);
void lw_pulsar_auth_settings_deinit(struct lw_pulsar_auth_settings *settings);

/* -- Sources of secrets ------------------------------------------------------------------------ */

/*
 * Reads a token source anew into `out`, without white space around it. E0417 says what is wrong
 * (absent, empty, "Bearer ", blanks inside), never the token.
 */
enum lw_status
lw_pulsar_token_read(const char *source, struct lw_text *out, struct lw_error *ret_error);
/* Seconds since 1970 at which a JWT says that it expires; -1 when it does not say. */
int64_t lw_pulsar_token_expiry(const char *token);
/* Reads a file:..., a path, or data:...;base64,...: E0417. */
enum lw_status
lw_pulsar_secret_read(const char *source, struct lw_text *out, struct lw_error *ret_error);

#endif
