/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_curl.c: libcurl can be loaded, and the numbers of its interface that are written down in
 * base/curl.h are those of its own headers, where these are installed.
 */
#include "tests/support/test.h"

#include <dlfcn.h>
#include <string.h>

#include "base/curl.h"

#if __has_include(<curl/curl.h>)
#include <curl/curl.h>
#define HAS_HEADERS 1
#else
#define HAS_HEADERS 0
#endif

static void
libcurl_is_loaded_once_and_given_back(void **state)
{
    struct lw_curl curl = { .handle = NULL };
    (void)state;
    assert_true(lw_curl_load(&curl));
    void *handle = curl.handle;
    assert_true(lw_curl_load(&curl));
    assert_ptr_equal(curl.handle, handle);
    assert_non_null(curl.multi_info_read);
    lw_curl_unload(&curl);
    assert_null(curl.handle);
    lw_curl_unload(&curl);
}

/* A thread that looks up a name may still be in it when its owner is gone. */
static void
its_code_stays_in_memory(void **state)
{
    struct lw_curl curl = { .handle = NULL };
    void *address = NULL;
    Dl_info info;
    (void)state;
    assert_true(lw_curl_load(&curl));
    memcpy(&address, &curl.easy_init, sizeof address);
    lw_curl_unload(&curl);
    assert_int_not_equal(dladdr(address, &info), 0);
    assert_non_null(strstr(info.dli_fname, "libcurl"));
}

#if HAS_HEADERS
#define SAME(name) assert_int_equal((long)LW_##name, (long)name)

static void
the_numbers_are_those_of_the_headers(void **state)
{
    (void)state;
    SAME(CURLOPT_PROXY);
    SAME(CURLOPT_WRITEDATA);
    SAME(CURLOPT_URL);
    SAME(CURLOPT_ERRORBUFFER);
    SAME(CURLOPT_POSTFIELDS);
    SAME(CURLOPT_USERAGENT);
    SAME(CURLOPT_HTTPHEADER);
    SAME(CURLOPT_SSLCERT);
    SAME(CURLOPT_HEADERDATA);
    SAME(CURLOPT_CUSTOMREQUEST);
    SAME(CURLOPT_CAINFO);
    SAME(CURLOPT_SSLKEY);
    SAME(CURLOPT_PRIVATE);
    SAME(CURLOPT_OPENSOCKETDATA);
    SAME(CURLOPT_COPYPOSTFIELDS);
    SAME(CURLOPT_USERNAME);
    SAME(CURLOPT_PASSWORD);
    SAME(CURLOPT_NOPROXY);
    SAME(CURLOPT_CLOSESOCKETDATA);
    SAME(CURLOPT_PROTOCOLS_STR);
    SAME(CURLOPT_WRITEFUNCTION);
    SAME(CURLOPT_HEADERFUNCTION);
    SAME(CURLOPT_OPENSOCKETFUNCTION);
    SAME(CURLOPT_CLOSESOCKETFUNCTION);
    SAME(CURLOPT_POSTFIELDSIZE_LARGE);
    SAME(CURLOPT_POST);
    SAME(CURLOPT_SSL_VERIFYPEER);
    SAME(CURLOPT_SSL_VERIFYHOST);
    SAME(CURLOPT_HTTP_VERSION);
    SAME(CURLOPT_NOSIGNAL);
    SAME(CURLOPT_HTTPAUTH);
    SAME(CURLOPT_CONNECT_ONLY);
    SAME(CURLOPT_TIMEOUT_MS);
    SAME(CURLOPT_CONNECTTIMEOUT_MS);
    SAME(CURLOPT_PIPEWAIT);
    SAME(CURLOPT_SUPPRESS_CONNECT_HEADERS);
    SAME(CURLOPT_QUICK_EXIT);
    SAME(CURLMOPT_SOCKETDATA);
    SAME(CURLMOPT_TIMERDATA);
    SAME(CURLMOPT_SOCKETFUNCTION);
    SAME(CURLMOPT_TIMERFUNCTION);
    SAME(CURLMOPT_MAXCONNECTS);
    SAME(CURLMOPT_MAX_TOTAL_CONNECTIONS);
    SAME(CURLINFO_PRIVATE);
    SAME(CURLINFO_RESPONSE_CODE);
    SAME(CURLINFO_PRETRANSFER_TIME_T);
    SAME(CURL_POLL_REMOVE);
    SAME(CURL_SOCKET_TIMEOUT);
    SAME(CURL_SOCKET_BAD);
    SAME(CURLAUTH_BASIC);
    assert_int_equal(LW_CURL_HTTP_1_1, CURL_HTTP_VERSION_1_1);
    assert_int_equal(LW_CURL_HTTP_2TLS, CURL_HTTP_VERSION_2TLS);
}

static void
the_results_are_those_of_the_headers(void **state)
{
    (void)state;
    SAME(CURLE_OK);
    SAME(CURLE_UNSUPPORTED_PROTOCOL);
    SAME(CURLE_COULDNT_RESOLVE_PROXY);
    SAME(CURLE_COULDNT_RESOLVE_HOST);
    SAME(CURLE_COULDNT_CONNECT);
    SAME(CURLE_WEIRD_SERVER_REPLY);
    SAME(CURLE_HTTP2);
    SAME(CURLE_PARTIAL_FILE);
    SAME(CURLE_WRITE_ERROR);
    SAME(CURLE_OUT_OF_MEMORY);
    SAME(CURLE_OPERATION_TIMEDOUT);
    SAME(CURLE_SSL_CONNECT_ERROR);
    SAME(CURLE_INTERFACE_FAILED);
    SAME(CURLE_GOT_NOTHING);
    SAME(CURLE_SSL_ENGINE_NOTFOUND);
    SAME(CURLE_SSL_ENGINE_SETFAILED);
    SAME(CURLE_SEND_ERROR);
    SAME(CURLE_RECV_ERROR);
    SAME(CURLE_SSL_CERTPROBLEM);
    SAME(CURLE_SSL_CIPHER);
    SAME(CURLE_PEER_FAILED_VERIFICATION);
    SAME(CURLE_BAD_CONTENT_ENCODING);
    SAME(CURLE_SSL_ENGINE_INITFAILED);
    SAME(CURLE_SSL_CACERT_BADFILE);
    SAME(CURLE_SSL_CRL_BADFILE);
    SAME(CURLE_SSL_ISSUER_ERROR);
    SAME(CURLE_SSL_PINNEDPUBKEYNOTMATCH);
    SAME(CURLE_SSL_INVALIDCERTSTATUS);
    SAME(CURLE_HTTP2_STREAM);
    SAME(CURLE_PROXY);
    SAME(CURLE_SSL_CLIENTCERT);
#if LIBCURL_VERSION_NUM >= 0x080600
    SAME(CURLE_TOO_LARGE);
#endif
}

static void
the_structs_have_the_same_form(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct lw_curl_message), sizeof(CURLMsg));
    assert_int_equal(offsetof(struct lw_curl_message, easy), offsetof(CURLMsg, easy_handle));
    assert_int_equal(offsetof(struct lw_curl_message, is), offsetof(CURLMsg, data));
    assert_int_equal(sizeof(struct lw_curl_line), sizeof(struct curl_slist));
    assert_int_equal(offsetof(struct lw_curl_line, next), offsetof(struct curl_slist, next));
    assert_int_equal(sizeof(curl_off_t), sizeof(int64_t));
}
#endif

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libcurl_is_loaded_once_and_given_back),
        cmocka_unit_test(its_code_stays_in_memory),
#if HAS_HEADERS
        cmocka_unit_test(the_numbers_are_those_of_the_headers),
        cmocka_unit_test(the_results_are_those_of_the_headers),
        cmocka_unit_test(the_structs_have_the_same_form),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
