/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading auth_plugin and auth_params. Params are JSON or "name:value,name:value" as the clients
 * take them, with the spellings of the Java and of the C++ side. Nobody's mistake may put a secret
 * into a message: only names of params are shown.
 */
#include "brokers/pulsar/auth_settings.h"

#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/error.h"

#define CODE "E0417"
#define REFUSED "E0415"

struct plugin {
    const char *name;
    enum lw_pulsar_auth_kind kind;
};

static const struct plugin plugins[] = {
    { "none", LW_PULSAR_AUTH_NONE },
    { "token", LW_PULSAR_AUTH_TOKEN },
    { "basic", LW_PULSAR_AUTH_BASIC },
    { "tls", LW_PULSAR_AUTH_TLS },
    { "oauth2", LW_PULSAR_AUTH_OAUTH2 },
    { "AuthenticationDisabled", LW_PULSAR_AUTH_NONE },
    { "AuthenticationToken", LW_PULSAR_AUTH_TOKEN },
    { "AuthenticationBasic", LW_PULSAR_AUTH_BASIC },
    { "AuthenticationTls", LW_PULSAR_AUTH_TLS },
    { "AuthenticationOAuth2", LW_PULSAR_AUTH_OAUTH2 },
};

/* A member of the params under its spellings, and where it goes. */
struct member {
    enum lw_pulsar_auth_kind kind;
    const char *names[3];
    size_t offset;
};

#define TO(field) offsetof(struct lw_pulsar_auth_settings, field)

static const struct member members[] = {
    { LW_PULSAR_AUTH_TOKEN, { "token" }, TO(token) },
    { LW_PULSAR_AUTH_BASIC, { "username", "userId", "user" }, TO(username) },
    { LW_PULSAR_AUTH_BASIC, { "password" }, TO(password) },
    { LW_PULSAR_AUTH_BASIC, { "method" }, TO(method) },
    { LW_PULSAR_AUTH_TLS, { "tlsCertFile", "tls_cert_file" }, TO(certificate_file) },
    { LW_PULSAR_AUTH_TLS, { "tlsKeyFile", "tls_key_file" }, TO(key_file) },
    { LW_PULSAR_AUTH_OAUTH2, { "issuer_url", "issuerUrl" }, TO(issuer_url) },
    { LW_PULSAR_AUTH_OAUTH2, { "private_key", "privateKey" }, TO(private_key) },
    { LW_PULSAR_AUTH_OAUTH2, { "client_id", "clientId" }, TO(client_id) },
    { LW_PULSAR_AUTH_OAUTH2, { "client_secret", "clientSecret" }, TO(client_secret) },
    { LW_PULSAR_AUTH_OAUTH2, { "audience" }, TO(audience) },
    { LW_PULSAR_AUTH_OAUTH2, { "scope" }, TO(scope) },
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static enum lw_status
refuse(struct lw_error *ret_error, const char *what, const char *help)
{
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, CODE, "%s", what);
    lw_error_help(ret_error, "%s", help);
    return status;
}

static enum lw_status
no_memory(struct lw_error *ret_error)
{
    return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for credentials");
}

/* -- Params -------------------------------------------------------------------------------------- */

static bool
put(struct lw_pulsar_auth_settings *settings, size_t offset, const char *value)
{
    char *copy = lw_copy_text(value);
    char *old = NULL;
    char *field = (char *)settings + offset;
    memcpy(&old, field, sizeof old);
    lw_free(old);
    memcpy(field, &copy, sizeof copy);
    return copy != NULL;
}

static bool
has_name(const struct member *member, const char *name)
{
    for (size_t i = 0; i < COUNT(member->names); i++) {
        if (member->names[i] && strcmp(member->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static const struct member *
find_member(enum lw_pulsar_auth_kind kind, const char *name)
{
    for (size_t i = 0; i < COUNT(members); i++) {
        if (members[i].kind == kind && has_name(&members[i], name)) {
            return &members[i];
        }
    }
    return NULL;
}

static enum lw_status
read_json(struct lw_pulsar_auth_settings *settings, const char *params,
          struct lw_error *ret_error)
{
    const char *name = NULL;
    json_t *value = NULL;
    json_t *root = json_loads(params, JSON_REJECT_DUPLICATES, NULL);
    enum lw_status status = LW_STATUS_OK;
    if (!json_is_object(root)) {
        json_decref(root);
        return refuse(ret_error, "auth_params begins with { but is not a JSON object",
                      "write it as in auth_params: '{\"issuer_url\": \"...\"}'");
    }
    json_object_foreach(root, name, value)
    {
        /* Members that we do not know are those of other versions. */
        const struct member *member = find_member(settings->kind, name);
        if (member && json_is_string(value) &&
            !put(settings, member->offset, json_string_value(value))) {
            status = no_memory(ret_error);
        }
    }
    json_decref(root);
    return status;
}

/* "tlsCertFile:/a,tlsKeyFile:/b"; the text is changed. */
static enum lw_status
read_pairs(struct lw_pulsar_auth_settings *settings, char *text, struct lw_error *ret_error)
{
    char *rest = NULL;
    for (char *pair = strtok_r(text, ",", &rest); pair; pair = strtok_r(NULL, ",", &rest)) {
        char *value = pair + strcspn(pair, ":=");
        bool has_value = *value != '\0';
        *value = '\0';
        const struct member *member = find_member(settings->kind, pair);
        if (!member || !has_value) {
            return refuse(ret_error, "auth_params is neither JSON nor NAME:VALUE,NAME:VALUE",
                          "docs/pulsar-options.md shows the params of each plugin");
        }
        if (!put(settings, member->offset, value + 1)) {
            return no_memory(ret_error);
        }
    }
    return LW_STATUS_OK;
}

static enum lw_status
read_params(struct lw_pulsar_auth_settings *settings, const char *params,
            struct lw_error *ret_error)
{
    if (params[strspn(params, " \t\r\n")] == '{') {
        return read_json(settings, params, ret_error);
    }
    if (settings->kind == LW_PULSAR_AUTH_TOKEN) {
        return put(settings, TO(token), params) ? LW_STATUS_OK : no_memory(ret_error);
    }
    char *copy = lw_copy_text(params);
    enum lw_status status = copy ? read_pairs(settings, copy, ret_error) : no_memory(ret_error);
    lw_free(copy);
    return status;
}

/* -- The whole ------------------------------------------------------------------------------------- */

/* "org.apache.pulsar.client.impl.auth.AuthenticationToken" is AuthenticationToken. */
static enum lw_status
find_plugin(const char *text, enum lw_pulsar_auth_kind *ret_kind, struct lw_error *ret_error)
{
    const char *dot = strrchr(text, '.');
    const char *name = dot ? dot + 1 : text;
    for (size_t i = 0; i < COUNT(plugins); i++) {
        if (strcasecmp(plugins[i].name, name) == 0) {
            *ret_kind = plugins[i].kind;
            return LW_STATUS_OK;
        }
    }
    bool is_known = strcasestr(name, "athenz") || strcasestr(name, "sasl") ||
                    strcasestr(name, "keystore");
    enum lw_status status = lw_error_set(
        ret_error, is_known ? LW_STATUS_UNSUPPORTED : LW_STATUS_CONFIG,
        is_known ? REFUSED : CODE, "auth_plugin \"%.80s\" is not %s", text,
        is_known ? "served by Laneway" : "known");
    lw_error_help(ret_error, "it is one of none, token, basic, tls and oauth2");
    return status;
}

static enum lw_status
check(const struct lw_pulsar_auth_settings *settings, struct lw_error *ret_error)
{
    bool has_key = settings->private_key || (settings->client_id && settings->client_secret);
    switch (settings->kind) {
    case LW_PULSAR_AUTH_NONE:
        return LW_STATUS_OK;
    case LW_PULSAR_AUTH_TOKEN:
        return settings->token
                   ? LW_STATUS_OK
                   : refuse(ret_error, "auth_plugin token has no token",
                            "give token: \"file:///path\", env:NAME or the token itself");
    case LW_PULSAR_AUTH_BASIC:
        return settings->username && settings->password
                   ? LW_STATUS_OK
                   : refuse(ret_error, "auth_plugin basic needs username and password",
                            "give auth_params: '{\"username\": ..., \"password\": ...}'");
    case LW_PULSAR_AUTH_TLS:
        return settings->certificate_file && settings->key_file
                   ? LW_STATUS_OK
                   : refuse(ret_error, "auth_plugin tls needs a certificate and its key",
                            "give tls_certificate_file_path and tls_private_key_file_path");
    case LW_PULSAR_AUTH_OAUTH2:
        return settings->issuer_url && has_key
                   ? LW_STATUS_OK
                   : refuse(ret_error,
                            "auth_plugin oauth2 needs issuer_url, and private_key or client_id "
                            "with client_secret",
                            "give auth_params: '{\"issuer_url\": ..., \"private_key\": "
                            "\"file:///...\", \"audience\": ...}'");
    }
    return LW_STATUS_OK;
}

static bool
copy_files(struct lw_pulsar_auth_settings *settings,
           const struct lw_pulsar_auth_options *options)
{
    return (!options->trust_file || put(settings, TO(trust_file), options->trust_file)) &&
           (!options->certificate_file ||
            put(settings, TO(certificate_file), options->certificate_file)) &&
           (!options->key_file || put(settings, TO(key_file), options->key_file));
}

static enum lw_status
fill(struct lw_pulsar_auth_settings *settings, const struct lw_pulsar_auth_options *options,
     struct lw_error *ret_error)
{
    enum lw_status status = LW_STATUS_OK;
    settings->kind = options->token ? LW_PULSAR_AUTH_TOKEN : LW_PULSAR_AUTH_NONE;
    if (options->plugin) {
        status = find_plugin(options->plugin, &settings->kind, ret_error);
    } else if (options->params && !options->token) {
        return refuse(ret_error, "auth_params is given without auth_plugin",
                      "say auth_plugin: token, basic, tls or oauth2");
    }
    if (status == LW_STATUS_OK && options->token && settings->kind != LW_PULSAR_AUTH_TOKEN) {
        return refuse(ret_error, "token is given, but auth_plugin is another one",
                      "leave one of them out");
    }
    if (status == LW_STATUS_OK && !copy_files(settings, options)) {
        status = no_memory(ret_error);
    }
    if (status == LW_STATUS_OK && options->params) {
        status = read_params(settings, options->params, ret_error);
    }
    if (status == LW_STATUS_OK && options->token && !put(settings, TO(token), options->token)) {
        status = no_memory(ret_error);
    }
    return status == LW_STATUS_OK ? check(settings, ret_error) : status;
}

enum lw_status
lw_pulsar_auth_settings_init(struct lw_pulsar_auth_settings *settings,
                             const struct lw_pulsar_auth_options *options,
                             struct lw_error *ret_error)
{
    memset(settings, 0, sizeof *settings);
    enum lw_status status = fill(settings, options, ret_error);
    if (status != LW_STATUS_OK) {
        lw_pulsar_auth_settings_deinit(settings);
    }
    return status;
}

void
lw_pulsar_auth_settings_deinit(struct lw_pulsar_auth_settings *settings)
{
    char **texts[] = { &settings->token,      &settings->username,
                       &settings->password,   &settings->method,
                       &settings->issuer_url, &settings->private_key,
                       &settings->client_id,  &settings->client_secret,
                       &settings->audience,   &settings->scope,
                       &settings->trust_file, &settings->certificate_file,
                       &settings->key_file };
    for (size_t i = 0; i < COUNT(texts); i++) {
        lw_free(*texts[i]);
        *texts[i] = NULL;
    }
}
