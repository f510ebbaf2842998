/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OAUTHBEARER with client credentials (sasl.oauthbearer.method=oidc): the token is fetched by our
 * own request, since the client library of many distributions is built without it. libcurl is
 * loaded on first use, so that a start without tokens does not pay for it, and runs by its socket
 * interface on the host's loop: nothing blocks. One request serves all clients of the broker.
 * The few constants of libcurl below are part of its binary interface.
 */
#include <dlfcn.h>
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "brokers/kafka/kafka.h"

enum { WAITING_MAX = 64, ANSWER_BYTES_MAX = 1 << 20, SOCKETS_MAX = 16, EXTENSIONS_MAX = 32 };

enum {
    OPT_WRITEDATA = 10001,
    OPT_URL = 10002,
    OPT_ERRORBUFFER = 10010,
    OPT_CAINFO = 10065,
    OPT_NOSIGNAL = 99,
    OPT_HTTPAUTH = 107,
    OPT_TIMEOUT_MS = 155,
    OPT_COPYPOSTFIELDS = 10165,
    OPT_USERNAME = 10173,
    OPT_PASSWORD = 10174,
    OPT_WRITEFUNCTION = 20011,
    MOPT_SOCKETFUNCTION = 20001,
    MOPT_SOCKETDATA = 10002,
    MOPT_TIMERFUNCTION = 20004,
    MOPT_TIMERDATA = 10005,
    INFO_RESPONSE_CODE = 0x200002,
    POLL_REMOVE = 4,
    SOCKET_TIMEOUT = -1,
    AUTH_BASIC = 1,
    REQUEST_TIMEOUT_MS = 10000
};

struct curl_message {
    int kind;
    void *easy;
    union {
        void *data;
        int result;
    } is;
};

struct curl {
    void *library;
    void *(*easy_init)(void);
    void (*easy_cleanup)(void *easy);
    int (*easy_setopt)(void *easy, int option, ...);
    int (*easy_getinfo)(void *easy, int info, ...);
    char *(*easy_escape)(void *easy, const char *text, int length);
    void (*free)(void *pointer);
    void *(*multi_init)(void);
    int (*multi_cleanup)(void *multi);
    int (*multi_setopt)(void *multi, int option, ...);
    int (*multi_add_handle)(void *multi, void *easy);
    int (*multi_remove_handle)(void *multi, void *easy);
    int (*multi_socket_action)(void *multi, int fd, int events, int *running);
    struct curl_message *(*multi_info_read)(void *multi, int *left);
};

struct socket_watch {
    int fd; /* -1: free */
    struct lw_watch *watch;
};

struct lw_kafka_token {
    struct lw_kafka_broker *broker;
    struct curl curl;
    void *multi;
    void *easy; /* the request under way, or NULL */
    struct lw_text answer;
    char curl_error[256];
    struct lw_timer timer;
    struct socket_watch sockets[SOCKETS_MAX];
    rd_kafka_t *waiting[WAITING_MAX];
    size_t waiting_count;
    char *value; /* the last token */
    int64_t expires_ms;
    int64_t renew_ms; /* asked for anew from here on */
};

static const char *
property(const struct lw_kafka_token *token, const char *name)
{
    return lw_kafka_properties_get(&token->broker->properties, name);
}

bool
lw_kafka_token_is_wanted(const struct lw_kafka_properties *properties)
{
    const char *method = lw_kafka_properties_get(properties, "sasl.oauthbearer.method");
    return method && strcasecmp(method, "oidc") == 0;
}

/* -- Loading --------------------------------------------------------------------------------------- */

static bool
find_symbol(void *library, const char *name, void *ret_function)
{
    void *symbol = dlsym(library, name);
    memcpy(ret_function, &symbol, sizeof symbol); /* an object pointer to a function's */
    return symbol != NULL;
}

static bool
find_all(struct curl *curl)
{
    void *library = curl->library;
    return find_symbol(library, "curl_easy_init", &curl->easy_init) &&
           find_symbol(library, "curl_easy_cleanup", &curl->easy_cleanup) &&
           find_symbol(library, "curl_easy_setopt", &curl->easy_setopt) &&
           find_symbol(library, "curl_easy_getinfo", &curl->easy_getinfo) &&
           find_symbol(library, "curl_easy_escape", &curl->easy_escape) &&
           find_symbol(library, "curl_free", &curl->free) &&
           find_symbol(library, "curl_multi_init", &curl->multi_init) &&
           find_symbol(library, "curl_multi_cleanup", &curl->multi_cleanup) &&
           find_symbol(library, "curl_multi_setopt", &curl->multi_setopt) &&
           find_symbol(library, "curl_multi_add_handle", &curl->multi_add_handle) &&
           find_symbol(library, "curl_multi_remove_handle", &curl->multi_remove_handle) &&
           find_symbol(library, "curl_multi_socket_action", &curl->multi_socket_action) &&
           find_symbol(library, "curl_multi_info_read", &curl->multi_info_read);
}

static bool
load(struct curl *curl)
{
    static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so" };
    for (size_t i = 0; !curl->library && i < sizeof names / sizeof *names; i++) {
        curl->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    return curl->library && find_all(curl);
}

/* -- The host's loop for libcurl ------------------------------------------------------------------ */

static void finish(struct lw_kafka_token *token);

static void
act(struct lw_kafka_token *token, int fd, int events)
{
    int running = 0;
    (void)token->curl.multi_socket_action(token->multi, fd, events, &running);
    if (running == 0 && token->easy) {
        finish(token);
    }
}

static void
on_socket_ready(int fd, int events, void *user)
{
    act(user, fd, events); /* LW_READABLE and LW_WRITABLE are libcurl's own 1 and 2 */
}

static struct socket_watch *
find_socket(struct lw_kafka_token *token, int fd)
{
    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        if (token->sockets[i].fd == fd) {
            return &token->sockets[i];
        }
    }
    return NULL;
}

static void
drop_socket(struct lw_kafka_token *token, struct socket_watch *socket)
{
    if (socket->watch) {
        token->broker->base.host->ops->unwatch(socket->watch);
    }
    socket->watch = NULL;
    socket->fd = -1;
}

static int
on_socket_wanted(void *easy, int fd, int what, void *user, void *socket_user)
{
    (void)easy, (void)socket_user;
    struct lw_kafka_token *token = user;
    struct socket_watch *socket = find_socket(token, fd);
    if (socket) {
        drop_socket(token, socket);
    }
    socket = what == POLL_REMOVE ? NULL : find_socket(token, -1);
    if (socket) {
        struct lw_host *host = token->broker->base.host;
        socket->fd = fd;
        socket->watch = host->ops->watch(host, fd, what & 3, on_socket_ready, token);
    }
    return 0;
}

static int
on_timer_wanted(void *multi, long timeout_ms, void *user)
{
    (void)multi;
    struct lw_kafka_token *token = user;
    struct lw_host *host = token->broker->base.host;
    if (timeout_ms < 0) {
        lw_timers_disarm(&host->timers, &token->timer);
    } else {
        lw_timers_arm(&host->timers, &token->timer, host->now + (uint64_t)timeout_ms * LW_MS);
    }
    return 0;
}

static void
on_timer_due(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    act(LW_CONTAINER(timer, struct lw_kafka_token, timer), SOCKET_TIMEOUT, 0);
}

static size_t
on_data(char *data, size_t size, size_t count, void *user)
{
    struct lw_kafka_token *token = user;
    if (token->answer.size + size * count > ANSWER_BYTES_MAX) {
        return 0;
    }
    lw_text_append_bytes(&token->answer, data, size * count);
    return token->answer.is_failed ? 0 : size * count;
}

/* -- The answer -------------------------------------------------------------------------------------- */

/* Splits "key=value,key=value" in place. */
static size_t
split_extensions(char *text, const char *out[], size_t max)
{
    size_t count = 0;
    char *rest = NULL;
    for (char *pair = strtok_r(text, ",", &rest); pair && count + 2 <= max;
         pair = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(pair, '=');
        if (value) {
            *value = '\0';
            out[count++] = pair;
            out[count++] = value + 1;
        }
    }
    return count;
}

static void
give_token(struct lw_kafka_token *token, rd_kafka_t *rk)
{
    char reason[512];
    const char *extensions[EXTENSIONS_MAX];
    char *text = lw_copy_text(property(token, "sasl.oauthbearer.extensions"));
    size_t count = text ? split_extensions(text, extensions, EXTENSIONS_MAX) : 0;
    const char *principal = property(token, "sasl.oauthbearer.client.id");
    if (rd_kafka_oauthbearer_set_token(rk, token->value, token->expires_ms,
                                       principal ? principal : "laneway", extensions, count,
                                       reason, sizeof reason) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        (void)rd_kafka_oauthbearer_set_token_failure(rk, reason);
    }
    lw_free(text);
}

static void
answer_all(struct lw_kafka_token *token, const char *failure)
{
    struct lw_host *host = token->broker->base.host;
    if (failure) {
        lw_host_log(host, LW_LOG_ERROR, "kafka.token_failed",
                    "no token could be fetched for the broker; trying again",
                    "broker=%s reason=\"%s\"", token->broker->name, failure);
    }
    for (size_t i = 0; i < token->waiting_count; i++) {
        if (failure) {
            (void)rd_kafka_oauthbearer_set_token_failure(token->waiting[i], failure);
        } else {
            give_token(token, token->waiting[i]);
        }
    }
    token->waiting_count = 0;
}

/* NULL when the answer holds a token, else what is wrong with it. */
static const char *
read_answer(struct lw_kafka_token *token)
{
    json_t *root = json_loadb(token->answer.data ? token->answer.data : "", token->answer.size,
                              0, NULL);
    const char *value = json_string_value(json_object_get(root, "access_token"));
    json_int_t seconds = json_integer_value(json_object_get(root, "expires_in"));
    char *copy = value ? lw_copy_text(value) : NULL;
    json_decref(root);
    if (!copy) {
        return "the answer holds no access_token";
    }
    struct lw_host *host = token->broker->base.host;
    int64_t now_ms = host->ops->wall_ms(host);
    int64_t life_ms = seconds > 0 ? (int64_t)seconds * 1000 : 300000;
    lw_free(token->value);
    token->value = copy;
    token->expires_ms = now_ms + life_ms;
    token->renew_ms = now_ms + life_ms / 2;
    return NULL;
}

static void
end_request(struct lw_kafka_token *token)
{
    if (token->easy) {
        (void)token->curl.multi_remove_handle(token->multi, token->easy);
        token->curl.easy_cleanup(token->easy);
        token->easy = NULL;
    }
}

static void
finish(struct lw_kafka_token *token)
{
    int left = 0;
    struct curl_message *message = token->curl.multi_info_read(token->multi, &left);
    if (!message) {
        return;
    }
    long code = 0;
    char failure[512];
    const char *reason = NULL;
    (void)token->curl.easy_getinfo(token->easy, INFO_RESPONSE_CODE, &code);
    if (message->is.result != 0) {
        reason = token->curl_error[0] ? token->curl_error : "the request failed";
    } else if (code != 200) {
        (void)snprintf(failure, sizeof failure, "the token endpoint answers %ld: %.200s", code,
                       token->answer.data ? token->answer.data : "");
        reason = failure;
    } else {
        reason = read_answer(token);
    }
    end_request(token);
    answer_all(token, reason);
}

/* -- The request --------------------------------------------------------------------------------------- */

static bool
set_form(struct lw_kafka_token *token)
{
    struct lw_text form;
    lw_text_init(&form);
    lw_text_append(&form, "grant_type=client_credentials");
    const char *scope = property(token, "sasl.oauthbearer.scope");
    char *escaped = scope ? token->curl.easy_escape(token->easy, scope, 0) : NULL;
    if (escaped) {
        lw_text_format(&form, "&scope=%s", escaped);
        token->curl.free(escaped);
    }
    bool is_set = !form.is_failed &&
                  token->curl.easy_setopt(token->easy, OPT_COPYPOSTFIELDS, form.data) == 0;
    lw_text_deinit(&form);
    return is_set;
}

static bool
set_options(struct lw_kafka_token *token)
{
    struct curl *curl = &token->curl;
    const char *secret = property(token, "sasl.oauthbearer.client.secret");
    const char *ca = property(token, "ssl.ca.location");
    token->curl_error[0] = '\0';
    bool is_set = curl->easy_setopt(token->easy, OPT_URL,
                                    property(token, "sasl.oauthbearer.token.endpoint.url")) ==
                      0 &&
                  curl->easy_setopt(token->easy, OPT_USERNAME,
                                    property(token, "sasl.oauthbearer.client.id")) == 0 &&
                  curl->easy_setopt(token->easy, OPT_PASSWORD, secret ? secret : "") == 0 &&
                  curl->easy_setopt(token->easy, OPT_HTTPAUTH, (long)AUTH_BASIC) == 0 &&
                  curl->easy_setopt(token->easy, OPT_NOSIGNAL, 1L) == 0 &&
                  curl->easy_setopt(token->easy, OPT_TIMEOUT_MS, (long)REQUEST_TIMEOUT_MS) ==
                      0 &&
                  curl->easy_setopt(token->easy, OPT_ERRORBUFFER, token->curl_error) == 0 &&
                  curl->easy_setopt(token->easy, OPT_WRITEFUNCTION, on_data) == 0 &&
                  curl->easy_setopt(token->easy, OPT_WRITEDATA, token) == 0;
    if (is_set && ca) {
        (void)curl->easy_setopt(token->easy, OPT_CAINFO, ca);
    }
    return is_set && set_form(token);
}

static bool
open_multi(struct lw_kafka_token *token)
{
    struct curl *curl = &token->curl;
    if (token->multi) {
        return true;
    }
    if (!load(curl)) {
        return false;
    }
    token->multi = curl->multi_init();
    return token->multi &&
           curl->multi_setopt(token->multi, MOPT_SOCKETFUNCTION, on_socket_wanted) == 0 &&
           curl->multi_setopt(token->multi, MOPT_SOCKETDATA, token) == 0 &&
           curl->multi_setopt(token->multi, MOPT_TIMERFUNCTION, on_timer_wanted) == 0 &&
           curl->multi_setopt(token->multi, MOPT_TIMERDATA, token) == 0;
}

static void
start_request(struct lw_kafka_token *token)
{
    if (!open_multi(token)) {
        answer_all(token, "libcurl (libcurl.so.4) could not be loaded; install libcurl4");
        return;
    }
    lw_text_clear(&token->answer);
    token->easy = token->curl.easy_init();
    if (!token->easy || !set_options(token) ||
        token->curl.multi_add_handle(token->multi, token->easy) != 0) {
        end_request(token);
        answer_all(token, "the request for a token could not be made");
    }
}

void
lw_kafka_token_refresh(struct lw_kafka_token *token, rd_kafka_t *rk)
{
    struct lw_host *host = token->broker->base.host;
    if (token->value && host->ops->wall_ms(host) < token->renew_ms) {
        give_token(token, rk);
        return;
    }
    if (token->waiting_count == WAITING_MAX) {
        (void)rd_kafka_oauthbearer_set_token_failure(rk, "too many clients wait for a token");
        return;
    }
    token->waiting[token->waiting_count++] = rk;
    if (!token->easy) {
        start_request(token);
    }
}

void
lw_kafka_token_forget(struct lw_kafka_token *token, rd_kafka_t *rk)
{
    size_t kept = 0;
    for (size_t i = 0; i < token->waiting_count; i++) {
        if (token->waiting[i] != rk) {
            token->waiting[kept++] = token->waiting[i];
        }
    }
    token->waiting_count = kept;
}

/* -- Life ------------------------------------------------------------------------------------------------ */

enum lw_status
lw_kafka_token_create(struct lw_kafka_broker *broker, struct lw_kafka_token **ret_token,
                      struct lw_error *ret_error)
{
    static const char *const required[] = { "sasl.oauthbearer.client.id",
                                            "sasl.oauthbearer.token.endpoint.url" };
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        if (!lw_kafka_properties_get(&broker->properties, required[i])) {
            return lw_error_set(ret_error, LW_STATUS_CONFIG, "E0410",
                                "broker \"%s\": sasl.oauthbearer.method=oidc needs \"%s\"",
                                broker->name, required[i]);
        }
    }
    struct lw_kafka_token *token = lw_alloc(sizeof *token);
    if (!token) {
        return LW_STATUS_NO_MEMORY;
    }
    token->broker = broker;
    lw_text_init(&token->answer);
    lw_timer_init(&token->timer, on_timer_due);
    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        token->sockets[i].fd = -1;
    }
    *ret_token = token;
    return LW_STATUS_OK;
}

void
lw_kafka_token_destroy(struct lw_kafka_token *token)
{
    if (!token) {
        return;
    }
    end_request(token);
    if (token->multi) {
        (void)token->curl.multi_cleanup(token->multi);
    }
    for (size_t i = 0; i < SOCKETS_MAX; i++) {
        drop_socket(token, &token->sockets[i]);
    }
    lw_timers_disarm(&token->broker->base.host->timers, &token->timer);
    if (token->curl.library) {
        (void)dlclose(token->curl.library);
    }
    lw_text_deinit(&token->answer);
    lw_free(token->value);
    lw_free(token);
}
