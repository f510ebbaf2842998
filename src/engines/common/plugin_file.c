/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading handlers from shared objects. The loader's own texts are good for programmers only, so
 * its usual failures are recognised and said in the user's terms; what is not recognised is passed
 * on in its words. The symbol's kind and size are asked for (dladdr1) before its bytes are read as
 * a handler: a function of that name, or a smaller object, must not be taken for one.
 */
#include "engines/common/plugin_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "engines/common/shared_object.h"

enum { NAME_BYTES_MAX = 256 };

/* Everything up to the first function: the least that a handler can consist of. */
#define TABLE_BYTES_MIN offsetof(struct lw_handler_plugin, handle)

/* What the errors name. */
struct subject {
    const char *handler;
    const char *path;
    const char *symbol;
};

static enum lw_status
refuse(const struct subject *of, const char *why, struct lw_error *ret_error)
{
    return lw_error_set(ret_error, LW_STATUS_CONFIG, "E0601",
                        "handler \"%s\" cannot be loaded: %s: %s", of->handler, of->path, why);
}

/* -- The file ----------------------------------------------------------------------------------- */

static enum lw_status
check_file(const struct subject *of, struct lw_error *ret_error)
{
    int code = 0;
    const char *fault = lw_shared_object_fault(of->path, &code);
    if (!fault) {
        return LW_STATUS_OK;
    }
    enum lw_status status = refuse(of, fault, ret_error);
    if (code == ENOENT || code == ENOTDIR) {
        lw_error_help(ret_error,
                      "build the plug-in, or correct `plugin`; a relative path begins "
                      "at the folder of the configuration file");
    } else if (code == EACCES) {
        lw_error_help(ret_error, "the user that runs Laneway must be allowed to read the file");
    } else if (code == 0) {
        lw_error_help(ret_error,
                      "build it on this machine: cc -shared -fPIC -o NAME.so NAME.c");
    }
    return status;
}

enum lw_status
lw_plugin_file_check(const char *handler, const char *path, struct lw_error *ret_error)
{
    const struct subject of = { handler, path, NULL };
    return check_file(&of, ret_error);
}

/* -- The loader --------------------------------------------------------------------------------- */

/* Copies the word that ends at `end` or at a blank, comma or colon. */
static void
copy_word(const char *text, const char *end, char out[NAME_BYTES_MAX])
{
    size_t length = strcspn(text, " ,:\t\n");
    if (end && text + length > end) {
        length = (size_t)(end - text);
    }
    length = length < NAME_BYTES_MAX - 1 ? length : NAME_BYTES_MAX - 1;
    memcpy(out, text, length);
    out[length] = '\0';
}

static enum lw_status
refuse_undefined(const struct subject *of, const char *name, struct lw_error *ret_error)
{
    enum lw_status status = lw_error_set(
        ret_error, LW_STATUS_CONFIG, "E0601",
        "handler \"%s\" cannot be loaded: %s: it uses \"%s\", which nobody defines",
        of->handler, of->path, name);
    if (strncmp(name, "lw_", 3) == 0) {
        lw_error_help(ret_error,
                      "it is no function of Laneway %s, or this program does not export it: a "
                      "program that embeds the static library is linked with -rdynamic",
                      lw_version());
    } else {
        lw_error_help(ret_error, "link the plug-in with the library that has it (-lNAME)");
    }
    return status;
}

/* Says what the loader said, in the user's terms where it is one of its usual complaints. */
static enum lw_status
refuse_loading(const struct subject *of, const char *said, struct lw_error *ret_error)
{
    static const char undefined[] = "undefined symbol: ";
    static const char absent[] = ": cannot open shared object file";
    char name[NAME_BYTES_MAX];
    const char *at = strstr(said, undefined);
    if (at) {
        copy_word(at + sizeof undefined - 1, NULL, name);
        return refuse_undefined(of, name, ret_error);
    }
    at = strstr(said, absent);
    if (at && strncmp(said, of->path, strlen(of->path)) != 0) {
        copy_word(said, at, name);
        enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, "E0601",
                                             "handler \"%s\" cannot be loaded: %s: it needs "
                                             "the library \"%s\", which is not there",
                                             of->handler, of->path, name);
        lw_error_help(ret_error, "install that library, or build the plug-in with "
                                 "-Wl,-rpath,FOLDER; ldd shows what it finds");
        return status;
    }
    if (strncmp(said, of->path, strlen(of->path)) == 0 &&
        strncmp(said + strlen(of->path), ": ", 2) == 0) {
        said += strlen(of->path) + 2;
    }
    enum lw_status status = refuse(of, said, ret_error);
    if (strstr(said, "failed to map segment")) {
        lw_error_help(ret_error, "its file system may be mounted noexec, where no code can be "
                                 "loaded from");
    }
    return status;
}

/* A slash keeps the loader from searching its folders. */
static void *
open_object(const char *path)
{
    char here[PATH_MAX];
    if (strchr(path, '/')) {
        return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    }
    int length = snprintf(here, sizeof here, "./%s", path);
    if (length < 0 || (size_t)length >= sizeof here) {
        return NULL;
    }
    return dlopen(here, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* -- The handler -------------------------------------------------------------------------------- */

static enum lw_status
refuse_symbol(const struct subject *of, const char *why, struct lw_error *ret_error)
{
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, "E0607",
                                         "handler \"%s\" cannot be loaded: %s: \"%s\" %s",
                                         of->handler, of->path, of->symbol, why);
    lw_error_help(ret_error,
                  "the plug-in exports a handler by LW_HANDLER(%s) = { "
                  "LW_HANDLER_HEAD, .handle = ... }; `symbol` names it",
                  of->symbol);
    return status;
}

/* The bytes that the symbol has; 0 when it is no data. */
static size_t
data_size(const void *address)
{
    Dl_info about;
    void *extra = NULL;
    if (dladdr1(address, &about, &extra, RTLD_DL_SYMENT) == 0 || !extra) {
        return 0;
    }
    const ElfW(Sym) *symbol = extra;
    return (symbol->st_info & 0xf) == STT_OBJECT ? symbol->st_size : 0;
}

static enum lw_status
refuse_abi(const struct subject *of, uint32_t abi, struct lw_error *ret_error)
{
    enum lw_status status = lw_error_set(
        ret_error, LW_STATUS_CONFIG, "E0608",
        "handler \"%s\" cannot be loaded: %s: it was built for handler ABI %u; this is %d",
        of->handler, of->path, (unsigned)abi, LW_HANDLER_ABI);
    lw_error_help(ret_error, "build it again with laneway/handler.h of Laneway %s",
                  lw_version());
    return status;
}

/* What a newer plug-in has beyond the table of this version must not be in use. */
static bool
is_beyond(const void *found, size_t size)
{
    const char *bytes = found;
    for (size_t i = sizeof(struct lw_handler_plugin); i < size; i++) {
        if (bytes[i] != 0) {
            return true;
        }
    }
    return false;
}

static enum lw_status
read_table(const struct subject *of, const void *found, struct lw_handler_plugin *ret_table,
           struct lw_error *ret_error)
{
    struct lw_handler_plugin table = { 0 };
    size_t there = data_size(found);
    if (there < TABLE_BYTES_MIN) {
        return refuse_symbol(of, "is not a handler", ret_error);
    }
    memcpy(&table, found, there < sizeof table ? there : sizeof table);
    if (table.abi != LW_HANDLER_ABI) {
        return refuse_abi(of, table.abi, ret_error);
    }
    if (table.size < TABLE_BYTES_MIN || table.size > there) {
        return refuse_symbol(of, "is not a handler", ret_error);
    }
    if (is_beyond(found, table.size)) {
        return refuse_symbol(of, "needs a newer version of Laneway", ret_error);
    }
    if (table.size < sizeof table) {
        memset((char *)&table + table.size, 0, sizeof table - table.size);
    }
    if (!table.handle && !table.handle_async && !table.handle_batch &&
        !table.handle_batch_async) {
        return refuse_symbol(of,
                             "has none of handle, handle_async, handle_batch and "
                             "handle_batch_async",
                             ret_error);
    }
    *ret_table = table;
    return LW_STATUS_OK;
}

enum lw_status
lw_plugin_file_load(const char *handler, const char *path, const char *symbol,
                    struct lw_plugin_file *ret_file, struct lw_error *ret_error)
{
    const struct subject of = { handler, path, symbol ? symbol : LW_HANDLER_SYMBOL };
    struct lw_plugin_file file = { 0 };
    enum lw_status status = check_file(&of, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    file.object = open_object(path);
    if (!file.object) {
        const char *said = dlerror(); /* NOLINT(concurrency-mt-unsafe): per thread in glibc */
        return refuse_loading(&of, said ? said : "its path is too long", ret_error);
    }
    const void *found = dlsym(file.object, of.symbol);
    status = found ? read_table(&of, found, &file.table, ret_error)
                   : refuse_symbol(&of, "is not among what it exports", ret_error);
    if (status != LW_STATUS_OK) {
        (void)dlclose(file.object);
        return status;
    }
    *ret_file = file;
    return LW_STATUS_OK;
}

/* -- Its life ----------------------------------------------------------------------------------- */

/* The plug-in's own words; they may lack the end, or be left out. */
static enum lw_status
refuse_open(const struct lw_handler_setup *setup, enum lw_status status,
            const struct lw_error *said, struct lw_error *ret_error)
{
    size_t length = strnlen(said->message, sizeof said->message);
    const char *why = length > 0 ? said->message : lw_status_name(status);
    int shown = (int)(length > 0 ? length : strlen(why));
    (void)lw_error_set(ret_error, status, "E0609", "handler \"%s\" cannot start: %.*s",
                       setup->handler, shown, why);
    lw_error_help(ret_error, "%.*s", (int)strnlen(said->help, sizeof said->help), said->help);
    return status;
}

enum lw_status
lw_plugin_file_open(struct lw_plugin_file *file, const struct lw_handler_setup *setup,
                    struct lw_error *ret_error)
{
    struct lw_error said = { 0 };
    void *user = NULL;
    enum lw_status status = LW_STATUS_OK;
    if (file->table.open) {
        status = file->table.open(setup, &user, &said);
    }
    if (status != LW_STATUS_OK) {
        bool is_known = (unsigned)status <= LW_STATUS_INTERNAL;
        return refuse_open(setup, is_known ? status : LW_STATUS_INTERNAL, &said, ret_error);
    }
    file->user = user;
    file->is_open = true;
    return LW_STATUS_OK;
}

void
lw_plugin_file_close(struct lw_plugin_file *file)
{
    if (file->is_open && file->table.close) {
        file->table.close(file->user);
    }
    file->is_open = false;
    if (file->object) {
        (void)dlclose(file->object);
    }
    file->object = NULL;
}

const char *
lw_handler_option(const struct lw_handler_setup *setup, const char *name, const char *otherwise)
{
    for (size_t i = 0; i < setup->option_count; i++) {
        if (strcmp(setup->options[i].name, name) == 0) {
            return setup->options[i].value;
        }
    }
    return otherwise;
}
