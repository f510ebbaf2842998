/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding libcurl and its functions. The library that Debian calls libcurl4 comes first, the one
 * over GnuTLS has the same interface. A table that lacks one function is as good as none.
 */
#include "base/curl.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static bool
find_symbol(void *handle, const char *name, void *ret_function)
{
    void *symbol = dlsym(handle, name);
    memcpy(ret_function, &symbol, sizeof symbol); /* an object pointer to a function's */
    return symbol != NULL;
}

static bool
find_all(struct lw_curl *curl)
{
    void *handle = curl->handle;
    return find_symbol(handle, "curl_easy_init", &curl->easy_init) &&
           find_symbol(handle, "curl_easy_cleanup", &curl->easy_cleanup) &&
           find_symbol(handle, "curl_easy_setopt", &curl->easy_setopt) &&
           find_symbol(handle, "curl_easy_getinfo", &curl->easy_getinfo) &&
           find_symbol(handle, "curl_easy_strerror", &curl->easy_strerror) &&
           find_symbol(handle, "curl_slist_append", &curl->slist_append) &&
           find_symbol(handle, "curl_slist_free_all", &curl->slist_free_all) &&
           find_symbol(handle, "curl_multi_init", &curl->multi_init) &&
           find_symbol(handle, "curl_multi_cleanup", &curl->multi_cleanup) &&
           find_symbol(handle, "curl_multi_setopt", &curl->multi_setopt) &&
           find_symbol(handle, "curl_multi_add_handle", &curl->multi_add_handle) &&
           find_symbol(handle, "curl_multi_remove_handle", &curl->multi_remove_handle) &&
           find_symbol(handle, "curl_multi_socket_action", &curl->multi_socket_action) &&
           find_symbol(handle, "curl_multi_info_read", &curl->multi_info_read);
}

bool
lw_curl_load(struct lw_curl *curl)
{
    static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so" };
    for (size_t i = 0; !curl->handle && i < sizeof names / sizeof *names; i++) {
        curl->handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (curl->handle && !find_all(curl)) {
            lw_curl_unload(curl);
        }
    }
    return curl->handle != NULL;
}

void
lw_curl_unload(struct lw_curl *curl)
{
    if (curl->handle) {
        (void)dlclose(curl->handle);
    }
    curl->handle = NULL;
}
