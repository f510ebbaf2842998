/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl, loaded on first use: a start that fetches nothing does not pay for it. Its functions
 * as a table, and the few constants of its binary interface that are used here; its headers are
 * not needed to build (tests/base/test_curl.c holds the numbers against them).
 */
#ifndef LW_BASE_CURL_H
#define LW_BASE_CURL_H

#include <stdbool.h>

enum {
    LW_CURLOPT_PROXY = 10004,
    LW_CURLOPT_WRITEDATA = 10001,
    LW_CURLOPT_URL = 10002,
    LW_CURLOPT_ERRORBUFFER = 10010,
    LW_CURLOPT_POSTFIELDS = 10015,
    LW_CURLOPT_USERAGENT = 10018,
    LW_CURLOPT_HTTPHEADER = 10023,
    LW_CURLOPT_SSLCERT = 10025,
    LW_CURLOPT_HEADERDATA = 10029,
    LW_CURLOPT_CUSTOMREQUEST = 10036,
    LW_CURLOPT_CAINFO = 10065,
    LW_CURLOPT_SSLKEY = 10087,
    LW_CURLOPT_PRIVATE = 10103,
    LW_CURLOPT_OPENSOCKETDATA = 10164,
    LW_CURLOPT_COPYPOSTFIELDS = 10165,
    LW_CURLOPT_USERNAME = 10173,
    LW_CURLOPT_PASSWORD = 10174,
    LW_CURLOPT_NOPROXY = 10177,
    LW_CURLOPT_CLOSESOCKETDATA = 10209,
    LW_CURLOPT_PROTOCOLS_STR = 10318,
    LW_CURLOPT_WRITEFUNCTION = 20011,
    LW_CURLOPT_HEADERFUNCTION = 20079,
    LW_CURLOPT_OPENSOCKETFUNCTION = 20163,
    LW_CURLOPT_CLOSESOCKETFUNCTION = 20208,
    LW_CURLOPT_POSTFIELDSIZE_LARGE = 30120,
    LW_CURLOPT_POST = 47,
    LW_CURLOPT_SSL_VERIFYPEER = 64,
    LW_CURLOPT_SSL_VERIFYHOST = 81,
    LW_CURLOPT_HTTP_VERSION = 84,
    LW_CURLOPT_NOSIGNAL = 99,
    LW_CURLOPT_HTTPAUTH = 107,
    LW_CURLOPT_CONNECT_ONLY = 141,
    LW_CURLOPT_TIMEOUT_MS = 155,
    LW_CURLOPT_CONNECTTIMEOUT_MS = 156,
    LW_CURLOPT_PIPEWAIT = 237,
    LW_CURLOPT_SUPPRESS_CONNECT_HEADERS = 265,
    LW_CURLOPT_QUICK_EXIT = 322,
    LW_CURLMOPT_SOCKETDATA = 10002,
    LW_CURLMOPT_TIMERDATA = 10005,
    LW_CURLMOPT_SOCKETFUNCTION = 20001,
    LW_CURLMOPT_TIMERFUNCTION = 20004,
    LW_CURLMOPT_MAXCONNECTS = 6,
    LW_CURLMOPT_MAX_TOTAL_CONNECTIONS = 13,
    LW_CURLINFO_PRIVATE = 0x100015,
    LW_CURLINFO_RESPONSE_CODE = 0x200002,
    LW_CURLINFO_PRETRANSFER_TIME_T = 0x600035,
    LW_CURL_POLL_REMOVE = 4,
    LW_CURL_SOCKET_TIMEOUT = -1,
    LW_CURL_SOCKET_BAD = -1,
    LW_CURLAUTH_BASIC = 1,
    LW_CURL_HTTP_1_1 = 2,
    LW_CURL_HTTP_2TLS = 4
};

/* Results of a transfer that are told apart. */
enum {
    LW_CURLE_OK = 0,
    LW_CURLE_UNSUPPORTED_PROTOCOL = 1,
    LW_CURLE_COULDNT_RESOLVE_PROXY = 5,
    LW_CURLE_COULDNT_RESOLVE_HOST = 6,
    LW_CURLE_COULDNT_CONNECT = 7,
    LW_CURLE_WEIRD_SERVER_REPLY = 8,
    LW_CURLE_HTTP2 = 16,
    LW_CURLE_PARTIAL_FILE = 18,
    LW_CURLE_WRITE_ERROR = 23,
    LW_CURLE_OUT_OF_MEMORY = 27,
    LW_CURLE_OPERATION_TIMEDOUT = 28,
    LW_CURLE_SSL_CONNECT_ERROR = 35,
    LW_CURLE_INTERFACE_FAILED = 45,
    LW_CURLE_GOT_NOTHING = 52,
    LW_CURLE_SSL_ENGINE_NOTFOUND = 53,
    LW_CURLE_SSL_ENGINE_SETFAILED = 54,
    LW_CURLE_SEND_ERROR = 55,
    LW_CURLE_RECV_ERROR = 56,
    LW_CURLE_SSL_CERTPROBLEM = 58,
    LW_CURLE_SSL_CIPHER = 59,
    LW_CURLE_PEER_FAILED_VERIFICATION = 60,
    LW_CURLE_BAD_CONTENT_ENCODING = 61,
    LW_CURLE_SSL_ENGINE_INITFAILED = 66,
    LW_CURLE_SSL_CACERT_BADFILE = 77,
    LW_CURLE_SSL_CRL_BADFILE = 82,
    LW_CURLE_SSL_ISSUER_ERROR = 83,
    LW_CURLE_SSL_PINNEDPUBKEYNOTMATCH = 90,
    LW_CURLE_SSL_INVALIDCERTSTATUS = 91,
    LW_CURLE_HTTP2_STREAM = 92,
    LW_CURLE_PROXY = 97,
    LW_CURLE_SSL_CLIENTCERT = 98,
    LW_CURLE_TOO_LARGE = 100
};

/* CURLMsg: a transfer that ended. */
struct lw_curl_message {
    int kind;
    void *easy;
    union {
        void *data;
        int result;
    } is;
};

/* struct curl_slist: a list that libcurl reads and never changes. */
struct lw_curl_line {
    char *data;
    struct lw_curl_line *next;
};

struct lw_curl {
    void *handle; /* NULL: not loaded */
    void *(*easy_init)(void);
    void (*easy_cleanup)(void *easy);
    int (*easy_setopt)(void *easy, int option, ...);
    int (*easy_getinfo)(void *easy, int info, ...);
    const char *(*easy_strerror)(int result);
    void *(*slist_append)(void *list, const char *line);
    void (*slist_free_all)(void *list);
    void *(*multi_init)(void);
    int (*multi_cleanup)(void *multi);
    int (*multi_setopt)(void *multi, int option, ...);
    int (*multi_add_handle)(void *multi, void *easy);
    int (*multi_remove_handle)(void *multi, void *easy);
    int (*multi_socket_action)(void *multi, int fd, int events, int *running);
    struct lw_curl_message *(*multi_info_read)(void *multi, int *left);
};

/* False when there is no libcurl here; may be called again. Nothing to do when it is loaded. */
bool lw_curl_load(struct lw_curl *curl);
/*
 * After everything of it was cleaned up; harmless when it is not loaded. The code stays in memory:
 * a name that is still looked up has a thread in it, which nobody waits for.
 */
void lw_curl_unload(struct lw_curl *curl);

#endif
